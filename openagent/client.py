"""The user's object: a conversation with a model.

``send`` starts a request, ``receive``, ``stream``, ``ask`` and ``events`` read what comes; they share one
cursor. All the client does itself is to put the rooms together and to keep what the user sees.

Owns: the state of a conversation and who may touch it when. Does not know: wire formats, network.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import history as histories
from . import logs
from .abilities import Abilities
from .adapters import ProviderAdapter, WireAdapter
from .connection import Connections
from .cursor import Cursor
from .errors import AgentError, ConfigError, PromptBlockedError
from .events import Event
from .hooks import Hooks, UserPromptSubmitEvent, ask
from .interrupt import Interrupt
from .loop import Exchange
from .messages import Attachment, ContentBlock, FinishReason, Message, TextBlock, ToolResultBlock, Usage, attached
from .options import AgentOptions, check_names
from .protocols import ADAPTERS
from .record import HeardResponse, Record, SentRequest
from .talk import Talk
from .transport import Line

if TYPE_CHECKING:
    from . import keeping
    from .conversation import Conversation
    from .tools import Tool


class Client:
    """A conversation with a model.

    ``Client(options)``, or the settings themselves: ``Client(model="qwen3:8b", provider="ollama")``. Use it
    from one thread at a time; ``interrupt()`` may come from any. Reading what comes may raise any
    ``AgentError``; the conversation stays whole and the next ``send`` starts anew.
    """

    def __init__(self, options: AgentOptions | None = None, **settings: Any) -> None:
        if options is None:
            check_names(settings)
            options = AgentOptions(**settings)
        elif settings:
            options = _checked(options).replace(**settings)
        logs.switch_on()
        self._options = _checked(options)
        self._history: list[Message] = []
        self._interrupt = Interrupt()
        self._abilities = Abilities()
        self._connections = Connections()
        self._record = Record()
        self._talk = Talk()
        self._cursor = Cursor(self._interrupt)
        self._approved: set[str] = set()  # the tools that the user has approved for good
        self.tools: dict[str, Tool] = options.registry

    # What the user sets

    @property
    def options(self) -> AgentOptions:
        """The settings of the next request. A new value with other tools refills ``tools``."""
        return self._options

    @options.setter
    def options(self, options: AgentOptions) -> None:
        _checked(options)
        if options.tools != self._options.tools:
            self.tools = options.registry
        self._options = options
        self._abilities.forget()

    @property
    def history(self) -> list[Message]:
        """The conversation so far, yours to edit and to assign."""
        return self._history

    @history.setter
    def history(self, messages: list[Message]) -> None:
        if isinstance(messages, Message) or not isinstance(messages, Iterable):
            raise ConfigError(f"history {messages!r:.100} must be a list of Message")
        messages = messages if isinstance(messages, list) else list(messages)
        histories.check(messages)
        self._history = messages
        if self._cursor.exchange is not None:
            self._cursor.exchange.history = self._history

    def get_tool(self, name: str) -> Tool | None:
        """The tool of this name, if there is one."""
        return self.tools.get(name)

    # What the user sees

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the latest turn ended; None while it goes on and after an interrupt."""
        return self._cursor.ended[0]

    @property
    def last_request(self) -> SentRequest | None:
        """The latest request that went out, secrets masked, also after an error; None before the first."""
        return self._record.request

    @property
    def last_response(self) -> HeardResponse | None:
        """The head of the response to it, secrets masked; None until its headers are in."""
        return self._record.response

    @property
    def usage(self) -> Usage | None:
        """The tokens of the latest request, summed over its rounds; None if the server told none."""
        return self._cursor.ended[1]

    @property
    def reasoning(self) -> str | None:
        """The reasoning of the latest request, if ``include_reasoning`` is set and there was any."""
        return "".join(self._cursor.exchange.reasoning) or None if self._cursor.exchange else None

    @property
    def partial(self) -> list[ContentBlock]:
        """What was heard of a turn that was cut short, or goes on; it is not in the history."""
        return self._cursor.exchange.partial if self._cursor.exchange else []

    # Asking

    def send(self, prompt: str, *attachments: Attachment, **settings: Any) -> None:
        """Ask; returns when the response headers are in, so what the server refuses is raised here.

        Attachments are images (``ImageBlock``, path or URL) and further texts; settings are options of
        this request alone. ``send("")`` lets the model go on after tool results.
        """
        with self._cursor.claimed():
            options = self._prepared(settings)
            blocks = [attached(item) for item in attachments]
            if not isinstance(prompt, str):
                raise ConfigError(f"prompt {prompt!r:.100} must be a text")
            if not prompt and not blocks:
                histories.check_continuation(self._history, is_paused=self.finish_reason == "pause_turn")
            else:
                prompt = self._submitted(prompt, options.hooks)
            self._start(options, Message("user", [TextBlock(prompt), *blocks] if prompt or not blocks else blocks))

    def send_message(self, message: Message, **settings: Any) -> None:
        """Ask with a message of your own; no prompt hooks."""
        with self._cursor.claimed():
            if not isinstance(message, Message):
                raise ConfigError(f"message {message!r:.100} must be a Message")
            self._start(self._prepared(settings), message)

    def retry(self, **settings: Any) -> None:
        """Ask again: drops the answer to the last user message, if there is one, and sends."""
        with self._cursor.claimed():
            options = self._prepared(settings)
            self._history[:] = histories.up_to_last_prompt(self._history)
            self._start(options, None)

    def receive(self) -> Iterator[ContentBlock]:
        """The blocks of the answer as they come.

        Manual mode: pieces of text, then the calls, once their turn is in the history. Auto mode: runs
        the tool rounds, then the pieces of the final text. The iterator holds no state: leave it and
        call again, and it goes on where the last one stopped.
        """
        return self._cursor.blocks()

    def events(self) -> Iterator[Event]:
        """Everything that happens, as it happens; ends with ``RunFinished``."""
        return self._cursor.events()

    def stream(self, prompt: str, *attachments: Attachment, **settings: Any) -> Iterator[str]:
        """Ask, and yield the text of every round live; a blank line between two rounds that both spoke."""
        self.send(prompt, *attachments, **settings)
        return self._cursor.texts()

    def ask(self, prompt: str, *attachments: Attachment, **settings: Any) -> str:
        """Ask, and return the text of the last round (a part of it if ``finish_reason.is_truncated``)."""
        self.send(prompt, *attachments, **settings)
        text = self._cursor.last_text()
        waiting = histories.open_calls(self._history)
        is_cut = self._interrupt.is_set() or (self.finish_reason is not None and self.finish_reason.is_truncated)
        if waiting and not is_cut:
            names = ", ".join(call.name for call in waiting)
            raise AgentError(
                f"the model called {names} and nobody answered: set auto_execute_tools=True, "
                'or answer with add_tool_result() and go on with ask("")'
            )
        return text

    def show(self, prompt: str, *attachments: Attachment, **settings: Any) -> None:
        """Ask, and show the answer live: as Markdown in the cell of a notebook, else as text on stdout."""
        from .showing import show

        def asked() -> Iterator[Event]:
            self.send(prompt, *attachments, **settings)
            yield from self.events()

        try:
            show(asked())
        except BaseException:
            self._cursor.discard()  # nobody reads on: what was run enters the history
            raise

    def extract(self, prompt: str, shape: Any, *attachments: Attachment, retries: int = 2, **settings: Any) -> Any:
        """Ask for an answer of a shape: a dataclass, TypedDict, ``list[...]``, Enum, other type, or a JSON Schema.

        Returns a value of the type (JSON for a JSON Schema). The model is shown its mistake, ``retries`` times.
        ``AgentError`` if the answer is cut, refused or interrupted, ``InvalidResponseError`` if it never fits.
        """
        from .extraction import extract

        return extract(self, prompt, shape, attachments, self._abilities, retries=retries, settings=settings)

    def extract_stream(
        self, prompt: str, shape: Any, *attachments: Attachment, retries: int = 2, **settings: Any
    ) -> Iterator[Any]:
        """The same, live: yields the answer's JSON as it grows, at last the value that ``extract`` returns.

        The JSON is plain dicts and lists, the same object each time: copy what you want to keep. It begins
        anew after a mistake. Of a server without structured output it may come in one piece.
        """
        from .extraction import extract_stream

        return extract_stream(self, prompt, shape, attachments, self._abilities, retries=retries, settings=settings)

    def add_tool_result(self, id: str, content: Any, is_error: bool = False) -> None:
        """Answer an open call; results stand in the order of the calls, whatever the order of answering."""
        from .readable import readable

        with self._cursor.claimed():
            if id not in [call.id for call in histories.open_calls(self._history)]:
                raise ConfigError(f"there is no open call with the id {id!r}: it is unknown or was answered")
            result = ToolResultBlock(id, readable(content), is_error)
            self._history[:] = histories.with_result(self._history, result)

    # Keeping

    def save(self, path: keeping.Place, *, images: keeping.Images = "inline") -> None:
        """Write the conversation to a JSON file, whole or not at all, for nobody but you to read.

        It holds the history, the system prompt, and how the latest request ended; no key and no address.
        ``images="beside"`` puts images into a folder next to it. ``ConfigError`` if it cannot be written.
        """
        from . import keeping
        from .conversation import Conversation

        histories.check(self._history)
        options, (finish_reason, usage) = self._options, self._cursor.ended
        kept = Conversation(self._history, options.system_prompt, finish_reason, usage, options.model)
        keeping.save(path, kept, images=images)

    def to_markdown(self) -> str:
        """The conversation as Markdown, whole, with nothing in it that a page would run or fetch."""
        from . import export

        return export.to_markdown(self._history, self._options.system_prompt)

    def to_html(self) -> str:
        """The same as a page of HTML that stands alone."""
        from . import export

        return export.to_html(self._history, self._options.system_prompt)

    @classmethod
    def load(cls, path: keeping.Place, options: AgentOptions | None = None, **settings: Any) -> Client:
        """A client that goes on with a saved conversation; who is asked is said by options, as for a new one.

        A system prompt in the options replaces the saved one. ``ConfigError`` if there is no such conversation.
        """
        from . import keeping

        kept = keeping.load(path)
        client = cls(options, **settings)
        client._take(kept)
        return client

    def to_openai(self) -> list[dict[str, Any]]:
        """The conversation as a list of Chat Completions messages, the system prompt first; for other libraries.

        The way back is ``client.history = openagent.from_openai(messages)``.
        """
        from .adapters.openai_chat_messages import to_openai

        return to_openai(self._history, self._options.system_prompt)

    def fork(self) -> Client:
        """A client that goes on from here by itself: with a copy of the history, these options and tools.

        It shares no connection, and asks again for approvals that were given for good.
        """
        other = copy.copy(self)
        other._history = copy.deepcopy(self._history)
        return other

    def undo(self) -> list[Message]:
        """Take the last prompt back, with all that followed; returns what was taken out of the history."""
        with self._cursor.claimed():
            self._cursor.discard()
            start = len(histories.up_to_last_prompt(self._history, "undo")) - 1
            self._cursor.recall((None, None))
            taken, self._history[:] = self._history[start:], self._history[:start]
            return taken

    # Stopping

    def interrupt(self) -> None:
        """Stop what is going on, from any thread; the client can be used again at once."""
        self._interrupt.set()

    @property
    def interrupt_handle(self) -> Interrupt:
        """What another thread needs to stop this client: ``set()`` and ``is_set()``."""
        return self._interrupt

    def clear_history(self) -> None:
        """Forget the conversation and what was still coming."""
        with self._cursor.claimed():
            self._cursor.discard()
            self._history.clear()
            self._talk = Talk()

    def close(self) -> None:
        """Drop what was still coming and close all connections. The client can be used again."""
        with self._cursor.claimed():
            self._cursor.discard()
            self._connections.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._options!r}, {len(self._history)} messages)"

    # How it works

    def _prepared(self, settings: dict[str, Any]) -> AgentOptions:
        """The options of a new request, with the tools of the registry; what was still coming is dropped."""
        histories.check(self._history)
        changes = {"tools": _registered(self.tools)} | settings
        options = self._options
        if settings or changes["tools"] != options.tools:  # checking all settings again costs 0.1 ms
            options = _checked(options.replace(**changes))
        self._interrupt.clear()
        self._cursor.discard()
        return options

    def _submitted(self, prompt: str, hooks: Hooks) -> str:
        """The prompt as the prompt hooks leave it."""
        event = UserPromptSubmitEvent(prompt, tuple(self._history))
        event, block = ask(hooks.user_prompt_submit, event, action="modify_prompt", changes="prompt")
        if block:
            raise PromptBlockedError(f"Prompt blocked by hook: {block.reason}")
        return event.prompt

    def _take(self, kept: Conversation) -> None:
        """Stand where a kept conversation stood."""
        self.history = list(kept.messages)
        self._cursor.recall((kept.finish_reason, kept.usage))
        if kept.system_prompt and not self._options.system_prompt:
            self._options = self._options.replace(system_prompt=kept.system_prompt)

    def _start(self, options: AgentOptions, message: Message | None) -> None:
        if options.provider == "local":
            from . import local

            options = local.with_server(options)
        history = list(self._history)
        # A cell that is run again after a failure must not ask twice.
        if message is not None and not (history[-1:] == [message] and message.role == "user"):
            history.append(message)
        history, sendable = histories.settled(history, self._talk.length(history))
        if not sendable:
            raise ConfigError("there is nothing to send: the conversation is empty")
        self._history[:] = history
        make: Any = self._made
        if options.tools:
            from .emulation import tooled

            make = tooled(make, options, self._abilities)
        line = Line(options, self._connections, self._interrupt, self._record)
        adapter = make(options, sendable, list(options.tools), line)
        exchange = Exchange(adapter, options, history=self._history, interrupt=self._interrupt, approved=self._approved)
        self._cursor.start(exchange)

    def _made(self, options: AgentOptions, *args: Any) -> ProviderAdapter:
        """An adapter for the options' protocol, with what is remembered of the conversation."""
        adapter: ProviderAdapter = _adapter_class(options)(options, *args)
        if isinstance(adapter, WireAdapter):
            adapter.talk = self._talk
        return adapter

    def __getstate__(self) -> dict[str, Any]:
        """What travels with ``pickle`` and ``copy``: options (with the key), history, tools; no connections."""
        ended = self._cursor.ended
        return {"options": self._options, "history": self._history, "tools": self.tools, "ended": ended}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["options"])  # type: ignore[misc]
        # copy.copy() hands over the very same list and dict.
        self._history, self.tools = list(state["history"]), dict(state["tools"])
        self._cursor.recall(state["ended"])


def query(prompt: str, options: AgentOptions) -> Iterator[Event]:
    """The events of one request, without history, hooks or tool execution.

    What the server refuses is raised here, before there is an iterator.
    """
    client = Client(options.replace(auto_execute_tools=False, hooks=Hooks()))
    try:
        client.send_message(Message.user(prompt))
    except BaseException:
        client.close()
        raise
    return _query_events(client)


def _query_events(client: Client) -> Iterator[Event]:
    with client:
        yield from client.events()


def _adapter_class(options: AgentOptions) -> Any:
    """What makes adapters for the options' protocol: ours by name, or the user's own."""
    return options.protocol if callable(options.protocol) else ADAPTERS[options.protocol]


def _registered(tools: dict[str, Tool]) -> tuple[Tool, ...]:
    if not tools:
        return ()
    from .tools import registered

    return registered(tools)


def _checked(options: AgentOptions) -> AgentOptions:
    """The options, if their protocol can express them."""
    if not isinstance(options, AgentOptions):
        raise ConfigError(f"options {options!r:.100} must be AgentOptions; a model is given as Client(model=...)")
    _adapter_class(options).check(options)
    return options
