"""``openagent ask``: one question, and its answer on stdout.

Owns: its arguments, what is done with them, its exit code. Does not know: how an answer comes about.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .. import codec
from ..client import Client
from ..errors import ConfigError
from ..messages import Attachment
from ..waiting import until_first, waiting
from . import conversations
from .arguments import add_conversation, add_model, add_server, attachment, question
from .chat import client_of, named_conversation
from .output import code_of, tell, usage_line, write_events, write_json, write_text
from .shapes import HELP, shape
from .tools import add_tools
from .wire import shown

TRUNCATED = 3
"""The exit code for an answer that was cut."""


def add_ask(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.set_defaults(run=run_ask)
    parser.usage = "openagent ask [QUESTION] [OPTION ...]"
    parser.description = "Ask a question. The answer goes to stdout as it comes, everything else to stderr."
    parser.epilog = (
        "Exit code 3: the answer was cut by the output limit. Settings may come from the environment and from "
        "profiles: docs/configuration.md."
    )
    parser.add_argument(
        "question", nargs="?", default="", metavar="QUESTION", help="what to ask; text on stdin goes before it"
    )
    add_model(parser)
    parser.add_argument("--image", action="append", default=[], metavar="FILE", help="a file or URL; may be repeated")
    parser.add_argument(
        "-a",
        "--attach",
        action="append",
        default=[],
        metavar="FILE",
        help="a file with text or an image, an image's URL, or - for stdin; may be repeated",
    )
    add_tools(parser)
    add_server(parser)
    told = parser.add_argument_group("what is printed")
    form = told.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object: text, calls, finish_reason, usage")
    form.add_argument("--schema", metavar="SHAPE", help=HELP)
    form.add_argument("--events", action="store_true", help="everything that happens, as lines of JSON")
    form.add_argument("--no-stream", action="store_true", help="the whole answer at once")
    form.add_argument("-x", "--extract", action="store_true", help="only the first block of code, if there is one")
    told.add_argument("-u", "--usage", action="store_true", help="tell the tokens on stderr")
    told.add_argument("-v", "--verbose", action="store_true", help="show request and reply on stderr, without secrets")
    add_conversation(parser)


def run_ask(chosen: argparse.Namespace) -> int:
    """Runs the command and returns its exit code."""
    words = question(chosen.question, chosen.attach)
    attached = [*chosen.image, *map(attachment, chosen.attach)]
    if not words and not attached:
        raise ConfigError("there is no question: give one, or pipe a text into stdin")
    name, code = named_conversation(chosen), 0
    with client_of(chosen, name) as client:
        if chosen.verbose:
            client.options = shown(client.options, tell)
        _answer(chosen, client, words, attached)
        if client.finish_reason is not None and client.finish_reason.is_truncated:
            tell("openagent: the answer was cut by the output limit")
            code = TRUNCATED
        if chosen.usage:
            tell(f"openagent: {usage_line(client.usage)}")
        _keep(client, name)
    return code


def _answer(chosen: argparse.Namespace, client: Client, words: str, attached: Sequence[Attachment]) -> None:
    with waiting(f"waiting for {client.options.model or 'the embedded model'}") as line:
        if chosen.json or chosen.events:
            client.send(words, *attached)
            events = client.events()
            write_json(client, events) if chosen.json else write_events(until_first(events, line))
            return
        if chosen.schema is not None:
            text = codec.dump(client.extract(words, shape(chosen.schema), *attached))
        elif chosen.no_stream or chosen.extract:
            text = client.ask(words, *attached)
        else:
            write_text(until_first(client.stream(words, *attached), line))
            return
    write_text([code_of(text) if chosen.extract else text])


def _keep(client: Client, name: str) -> None:
    """Save the conversation; one without a name only as far as that is possible, for ``--continue``."""
    try:
        conversations.save(client, name or conversations.LAST)
    except ConfigError:
        if name:
            raise
