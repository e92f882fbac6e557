"""The command line: ``openagent ask "question"``, ``openagent chat``, ``openagent models``,
``openagent batch in.csv -o out.jsonl``, ``openagent doctor``.

The answer goes to stdout as it comes, everything else to stderr. Exit codes: 0 answered, 1 an error,
2 wrong usage or settings, 130 Ctrl-C.

Owns: the commands and their exit codes. Does not know: how an answer comes about.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .. import codec
from ..client import Client
from ..errors import AgentError, ConfigError
from ..messages import Attachment
from ..options import AgentOptions
from . import conversations
from .arguments import add_model, add_server, attachment, question, settings
from .batch import add_batch
from .chat import COMMANDS, Chat, memory, resume, tell
from .demo_tools import add_tools, tooling
from .doctor import add_doctor
from .keyboard import reader
from .models import offered
from .output import code_of, usage_line, write_events, write_json, write_text
from .wire import shown

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        code: int = chosen.run(chosen)
        return code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has what it wanted. What Python still holds back must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except AgentError as error:
        print(f"openagent: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="openagent", description="Talk to a language model.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_ask(commands.add_parser("ask", help="ask a question and print the answer as it comes"))
    chat = commands.add_parser("chat", help="talk in the terminal; Ctrl-C stops an answer, Ctrl-D leaves")
    add_model(chat)
    add_tools(chat)
    _add_conversation(chat)
    about = "ask for each row of a file; goes on where it was stopped"
    add_batch(commands.add_parser("batch", help=about, conflict_handler="resolve"))
    add_doctor(commands.add_parser("doctor", help="find out what a server can do", conflict_handler="resolve"))
    models = commands.add_parser("models", help="list the models that a server offers")
    models.add_argument("--json", action="store_true", help="as a JSON list")
    for command, run in ((chat, _chat), (models, _models)):
        add_server(command)
        command.set_defaults(run=run)
    return parser


def _add_ask(ask: argparse.ArgumentParser) -> None:
    ask.set_defaults(run=_ask)
    ask.add_argument("question", nargs="?", default="", help="what to ask; text on stdin goes before it")
    add_model(ask)
    ask.add_argument("--image", action="append", default=[], metavar="FILE", help="a file or URL; may be repeated")
    ask.add_argument(
        "-a",
        "--attach",
        action="append",
        default=[],
        metavar="FILE",
        help="a file with text or an image, an image's URL, or - for stdin; may be repeated",
    )
    add_tools(ask)
    add_server(ask)
    form = ask.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object: text, calls, finish_reason, usage")
    form.add_argument("--events", action="store_true", help="everything that happens, as lines of JSON")
    form.add_argument("--no-stream", action="store_true", help="the whole answer at once")
    form.add_argument("-x", "--extract", action="store_true", help="only the first block of code, if there is one")
    ask.add_argument("-u", "--usage", action="store_true", help="tell the tokens on stderr")
    ask.add_argument("-v", "--verbose", action="store_true", help="show request and reply on stderr, without secrets")
    _add_conversation(ask)


def _add_conversation(parser: argparse.ArgumentParser) -> None:
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("-c", "--continue", dest="goes_on", action="store_true", help="go on with the last conversation")
    kept.add_argument("--conversation", default="", metavar="NAME", help="go on with this conversation, or begin it")


def _ask(chosen: argparse.Namespace) -> int:
    words = question(chosen.question, chosen.attach)
    attached = [*chosen.image, *map(attachment, chosen.attach)]
    if not words and not attached:
        raise ConfigError("there is no question: give one, or pipe a text into stdin")
    name = _conversation(chosen)
    with Client(**settings(chosen) | tooling(chosen, tell)) as client:
        _resume(client, name)
        if chosen.verbose:
            client.options = shown(client.options, tell)
        _answer(chosen, client, words, attached)
        if client.finish_reason is not None and client.finish_reason.is_truncated:
            tell("openagent: the answer was cut by the output limit")
        if chosen.usage:
            tell(f"openagent: {usage_line(client.usage)}")
        _keep(client, name)
    return 0


def _answer(chosen: argparse.Namespace, client: Client, words: str, attached: Sequence[Attachment]) -> None:
    if chosen.json or chosen.events:
        client.send(words, *attached)
        write_json(client, client.events()) if chosen.json else write_events(client.events())
    elif chosen.no_stream or chosen.extract:
        text = client.ask(words, *attached)
        write_text([code_of(text) if chosen.extract else text])
    else:
        write_text(client.stream(words, *attached))


def _conversation(chosen: argparse.Namespace) -> str:
    """The name of the conversation that is to go on; empty if a new one begins."""
    if chosen.conversation:
        conversations.path_of(chosen.conversation)  # a wrong name is told before anything is sent
    return conversations.latest() if chosen.goes_on else str(chosen.conversation)


def _resume(client: Client, name: str) -> None:
    if name and (path := conversations.path_of(name)).exists():
        resume(client, conversations.load(path))


def _keep(client: Client, name: str) -> None:
    """Save the conversation; one without a name only as far as that is possible, for ``--continue``."""
    kept = conversations.Conversation(client.history, client.options.system_prompt)
    try:
        conversations.save(conversations.path_of(name or conversations.LAST), kept)
    except ConfigError:
        if name:
            raise


def _chat(chosen: argparse.Namespace) -> int:
    name = _conversation(chosen)
    with Client(**settings(chosen) | tooling(chosen, tell)) as client:
        _resume(client, name)
        Chat(client, reader(memory(), list(COMMANDS)), name=name).run()
    return 0


def _models(chosen: argparse.Namespace) -> int:
    names = offered(AgentOptions(**settings(chosen) | {"model": "any"}))
    write_text([codec.dump(names)] if chosen.json else [f"{name}\n" for name in names])
    return 0
