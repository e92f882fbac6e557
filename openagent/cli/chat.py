"""``openagent chat``: a conversation at the terminal.

A line is a prompt, or a command if it begins with a slash. Ctrl-C stops the answer and not the chat, Ctrl-D leaves.

Owns: the loop of the chat and its commands. Does not know: keys, drawing, files' insides.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from ..client import Client
from ..errors import AgentError, ConfigError
from ..events import TextDelta
from ..messages import Attachment
from ..waiting import until_first, waiting
from . import conversations
from .arguments import add_conversation, add_model, add_server, attachment, settings
from .keyboard import Reader, read_prompt, reader
from .markdown import write_markdown
from .output import tell, usage_line
from .terminal import echo
from .tools import add_tools, tooling

COMMANDS = {
    "/help": "this list",
    "/model": "NAME: who answers from now on; without a name: who does now",
    "/system": "TEXT: the system prompt from now on; without a text: what it is",
    "/tools": "what the model may call",
    "/image": "FILE or URL: goes along with the next prompt",
    "/save": "NAME: keep this conversation; later in the same place without a name",
    "/load": "NAME: go on with a conversation that was kept",
    "/undo": "forget the last prompt and its answer",
    "/retry": "ask the last prompt again",
    "/usage": "the tokens of the last answer",
    "/clear": "forget the conversation",
    "/exit": "leave (also Ctrl-D)",
}
_WELCOME = "Ctrl-C stops an answer, Ctrl-D leaves, /help lists the commands.\n"


class Chat:
    """A chat over a client; ``name`` is the conversation that is kept after each answer, if any."""

    def __init__(self, client: Client, read: Reader, *, name: str = "") -> None:
        self._client = client
        self._read = read
        self._name = name
        self._attached: list[Attachment] = []

    def run(self) -> None:
        """Until the user leaves; then the client is closed."""
        try:
            self._talk()
        finally:
            self._client.close()

    def _talk(self) -> None:
        if sys.stdin.isatty():
            tell(f"{self._client.options.model or 'the embedded model'}. {_WELCOME}")
        while True:
            try:
                typed = read_prompt(self._read)
            except EOFError:
                return
            except KeyboardInterrupt:
                tell("(Ctrl-D or /exit leaves)")
                continue
            if typed == "/exit":
                return
            self._do(typed)

    def _do(self, typed: str) -> None:
        """What was typed; an error ends it and not the chat."""
        try:
            if typed.startswith("/"):
                word, _, rest = typed.partition(" ")
                self._command(word)(rest.strip())
            elif typed or self._attached:
                self._ask(typed)
        except KeyboardInterrupt:
            self._client.close()  # nobody reads on: what was run enters the history, for /save
            tell("(stopped)")
        except AgentError as error:
            tell(f"error: {error}")

    def _command(self, word: str) -> Callable[[str], None]:
        if word not in COMMANDS:
            raise ConfigError(f"there is no command {word}: /help lists them")
        command: Callable[[str], None] = getattr(self, f"_{word[1:]}")
        return command

    def _ask(self, prompt: str) -> None:
        attached, self._attached = self._attached, []
        try:
            self._write(lambda: self._client.stream(prompt, *attached))
        except AgentError:
            self._attached = attached  # so that it can be tried again
            raise
        self._end()

    def _asked_again(self) -> Iterable[str]:
        self._client.retry()
        return (event.text for event in self._client.events() if isinstance(event, TextDelta))

    def _write(self, ask: Callable[[], Iterable[str]]) -> None:
        with echo(False), waiting(f"waiting for {self._client.options.model or 'the embedded model'}") as line:
            write_markdown(until_first(ask(), line))

    def _end(self) -> None:
        reason = self._client.finish_reason
        if reason is not None and reason.is_truncated:
            tell("(the answer was cut by the output limit)")
        if self._name:
            self._save("")

    def _help(self, _: str) -> None:
        for word, text in COMMANDS.items():
            tell(f"{word:8} {text}")

    def _model(self, name: str) -> None:
        if name:
            self._client.options = self._client.options.replace(model=name)
        tell(f"model: {self._client.options.model or 'the embedded model'}")

    def _system(self, text: str) -> None:
        if text:
            self._client.options = self._client.options.replace(system_prompt=text)
        tell(f"system prompt: {self._client.options.system_prompt or 'none'}")

    def _tools(self, _: str) -> None:
        for tool in self._client.tools.values():
            tell(f"{tool.name}: {tool.description.partition(chr(10))[0]}")
        if not self._client.tools:
            tell("there are no tools")

    def _image(self, name: str) -> None:
        if not name:
            raise ConfigError("/image needs a file or a URL")
        self._attached.append(attachment(name))
        tell(f"{name} goes along with the next prompt")

    def _save(self, name: str) -> None:
        if not (name or self._name):
            raise ConfigError("/save needs a name")
        conversations.save(self._client, name or self._name)
        if name:
            self._name = name
            tell(f"kept as {name}")

    def _load(self, name: str) -> None:
        if not (name or self._name):
            raise ConfigError("/load needs a name")
        loaded = Client.load(conversations.path_of(name or self._name), self._client.options)
        self._client.close()
        self._client, self._name = loaded, name or self._name
        tell(f"{len(self._client.history)} messages")

    def _undo(self, _: str) -> None:
        self._client.undo()
        tell(f"{len(self._client.history)} messages are left")

    def _retry(self, _: str) -> None:
        self._write(self._asked_again)
        self._end()

    def _usage(self, _: str) -> None:
        tell(usage_line(self._client.usage))

    def _clear(self, _: str) -> None:
        self._client.clear_history()
        self._name = ""
        tell("the conversation is empty")


def add_chat(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.usage = "openagent chat [OPTION ...]"
    parser.description = (
        "Talk in the terminal. A line is a prompt; Ctrl-C stops an answer, Ctrl-D leaves, /help lists the commands."
    )
    add_model(parser)
    add_tools(parser)
    add_conversation(parser)
    add_server(parser)
    parser.set_defaults(run=run_chat)


def run_chat(chosen: argparse.Namespace) -> int:
    """Runs the command and returns its exit code."""
    name = named_conversation(chosen)
    with client_of(chosen, name) as client:
        Chat(client, reader(memory(), list(COMMANDS)), name=name).run()
    return 0


def named_conversation(chosen: argparse.Namespace) -> str:
    """The name of the conversation that is to go on; empty if a new one begins."""
    if chosen.conversation:
        conversations.path_of(chosen.conversation)  # a wrong name is told before anything is sent
    return conversations.latest() if chosen.goes_on else str(chosen.conversation)


def client_of(chosen: argparse.Namespace, name: str) -> Client:
    """A client as the arguments say, with the conversation of this name if there is one."""
    given = settings(chosen) | tooling(chosen, tell)
    path = conversations.path_of(name) if name else None
    return Client.load(path, **given) if path is not None and path.exists() else Client(**given)


def memory() -> Path:
    """The file of the lines that were typed."""
    return conversations.data_folder() / "typed"
