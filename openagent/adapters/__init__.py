"""The adapter contract: what hides a provider's wire format from the loop.

One adapter object per exchange (a prompt and all its rounds). The loop calls ``execute_round`` for
each round; before it runs the calls of a turn it calls ``record_assistant_turn`` once, then
``record_tool_result`` once per call, in order. To add a wire format, subclass ``WireAdapter``: two pure
methods, ``encode`` and ``decoder``. To replace the network too, subclass ``ProviderAdapter``. Pass the
class as ``AgentOptions(protocol=YourAdapter)``.

Owns: the contract, the request value, sealing of provider state. Does not know: any provider, network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from .. import codec
from ..decoding import BodyDecoder, TurnDecoder
from ..errors import ConfigError
from ..events import RoundEvent, TurnFinished
from ..messages import ContentBlock, ImageBlock, Message, TextBlock, ToolResultBlock, block_to_dict
from ..options import AgentOptions
from ..talk import Bare, Talk, row_of
from ..values import dataclass

if TYPE_CHECKING:
    from ..tools import Tool

RESERVED = ("model", "messages", "input", "stream")


@dataclass(frozen=True)
class Request:
    """One HTTP request: this body to this URL."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"

    def __repr__(self) -> str:
        return f"Request({self.method} {self.url.partition('?')[0]})"  # a query, too, may hold a key


MakeDecoder = Callable[[int, Mapping[str, str]], BodyDecoder]
Transport = Callable[[Request, MakeDecoder], Iterator[RoundEvent]]


class ProviderAdapter(ABC):
    """One exchange with a provider: it keeps the conversation of the exchange and asks for rounds.

    ``messages`` is the conversation as the provider is to see it; a strict server accepts it as it is.
    """

    def __init__(
        self, options: AgentOptions, messages: Sequence[Message], tools: Sequence[Tool], transport: Transport
    ) -> None:
        self.options = options
        self.messages = list(messages)
        self.tools = list(tools)
        self.transport = transport
        self.turn: TurnFinished | None = None
        self.has_recorded = False

    @classmethod
    def check(cls, options: AgentOptions) -> None:
        """Raise ``ConfigError`` for a setting that this provider cannot express."""

    @abstractmethod
    def execute_round(
        self, final_response_instruction: str | None = None, include_tools: bool = True
    ) -> Iterator[RoundEvent]:
        """Send the conversation and yield what is heard.

        First ``ResponseStarted``, then deltas (many pieces of text may be one ``TextBurst``), last
        ``TurnFinished``, which must also be kept as ``self.turn``. The instruction concerns this request
        alone. Ends without ``TurnFinished`` if it was interrupted; raises if the round failed.
        """

    @property
    def heard(self) -> list[ContentBlock]:
        """The text heard so far in the round under way."""
        return []

    def record_assistant_turn(self) -> None:
        """Add the turn just heard to the conversation; once per tool round, before any result."""
        if self.turn is not None:
            self.messages.append(self.turn.message)
            self.has_recorded = True

    def record_tool_result(self, call_id: str, content: Any, is_error: bool = False) -> None:
        """Add the result of a call of that turn; once per call, in the order of the calls."""
        self.messages.append(Message("tool", [ToolResultBlock(call_id, content, is_error)]))


class WireAdapter(ProviderAdapter):
    """An adapter of a wire format over HTTP. Subclasses encode requests and decode turns; both are pure."""

    _body: BodyDecoder | None = None
    _said: Sequence[Message] = ()  # what the rows kept were encoded from
    _rows: Sequence[Any] = ()

    def __init__(
        self, options: AgentOptions, messages: Sequence[Message], tools: Sequence[Tool], transport: Transport
    ) -> None:
        super().__init__(options, messages, tools, transport)
        self.talk = Talk()

    def beginning(self, bare: Bare) -> tuple[bytes, list[Message]]:
        """The JSON of the conversation as far as ``Talk.written`` has it, and the messages after that."""
        text, count = self.talk.written(self.messages, bare)
        return text, self.messages[count:]

    def rows(self, messages: Sequence[Message], encoded: Callable[[Message], Iterable[Any]], bare: Bare) -> list[Any]:
        """What ``encoded`` makes of each message, in one list; of a message that an earlier round sent, made then.

        Of a message that is one text and nothing else, ``bare`` makes the same in a third of the time. An exchange only
        adds to its conversation: encoding it anew in each round was a seventh of a tool loop of 20 rounds. Rows must
        not be changed. A conversation that was changed all the same is encoded anew.
        """
        if not all(map(is_, self._said, messages)) or len(messages) < len(self._said):
            self._said = self._rows = ()
        rows = list(self._rows)
        for message in messages[len(self._said) :]:
            row = row_of(message, bare)
            rows += encoded(message) if row is None else (row,)
        self._said, self._rows = tuple(messages), tuple(rows)
        return rows

    @abstractmethod
    def encode(self, instruction: str | None, include_tools: bool) -> Request:
        """The request for the next round."""

    @abstractmethod
    def decoder(self, headers: Mapping[str, str]) -> TurnDecoder:
        """A fresh decoder for one turn; ``headers`` are the response's, and ignore case."""

    def execute_round(
        self, final_response_instruction: str | None = None, include_tools: bool = True
    ) -> Iterator[RoundEvent]:
        """See ``ProviderAdapter.execute_round``."""
        self.turn = self._body = None
        request = self.encode(final_response_instruction, include_tools and bool(self.tools))
        yield from self.transport(request, self._make_decoder)
        self.turn = self._body.turn if self._body else None

    def _make_decoder(self, status: int, headers: Mapping[str, str]) -> BodyDecoder:
        turn = self.decoder(headers)
        options = self.options
        self._body = BodyDecoder(
            turn,
            status=status,
            accept_unfinished=options.accept_unfinished,
            limits=options.limits,
            mask=partial(masked, options),
        )
        return self._body

    @property
    def heard(self) -> list[ContentBlock]:
        """The text heard so far in the round under way."""
        return self._body.heard if self._body else []

    @property
    def provider(self) -> str:
        """The provider that provider state belongs to: protocol and host."""
        return f"{self.options.protocol} {urlsplit(self.options.base_url).netloc}"

    def system_prompt(self, instruction: str | None) -> str:
        """The system prompt of a request, the instruction after a blank line."""
        return "\n\n".join(text for text in (self.options.system_prompt, instruction) if text)

    def post(
        self, path: str, auth: Mapping[str, str], body: Mapping[str, Any], member: str = "", *rows: bytes | memoryview
    ) -> Request:
        """The request that posts this body to an endpoint; the user's headers and body members win.

        The member ``member``, if it is named, holds the rows, which are JSON already: commas between, no brackets.
        """
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream", **auth}
        for name, value in self.options.headers.items():
            headers = {known: text for known, text in headers.items() if known.lower() != name.lower()}
            headers[name] = value
        text = written({**body, **self.options.extra_body}).encode()
        if member:
            said = b",".join(filter(None, rows))
            text = b"".join((b'{"', member.encode(), b'":[', said, b"],", memoryview(text)[1:]))
        return Request(endpoint(self.options.base_url, path), headers, text)


def masked(options: AgentOptions, text: str) -> str:
    """The text without the key and the values of the user's headers: servers quote what they refuse."""
    headers = [value.removeprefix("Bearer ") for value in options.headers.values()]
    for secret in (options.api_key, *headers):
        if secret and len(secret) >= 8:
            text = text.replace(secret, "***")
    return text


def written(value: Any) -> str:
    """A part of a request as JSON text; ``ConfigError`` if a value of the user's has none."""
    try:
        return codec.dump(value)
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"the request cannot be written as JSON: {exc}") from exc


def check_extra_body(options: AgentOptions) -> None:
    """``ConfigError`` if the extra body holds a member that is not the user's to set there."""
    taken = [name for name in options.extra_body if name in RESERVED]
    if taken:
        raise ConfigError(f"extra_body must not hold {taken[0]!r}; it has a setting of its own")


def endpoint(base_url: str, path: str) -> str:
    """The URL of an endpoint below a base URL, whose query is kept."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path + path, parts.query, ""))


def sealed(provider: str, state: Mapping[str, Any], content: Sequence[ContentBlock]) -> dict[str, Any]:
    """Provider state bound to the provider and to the blocks that it came with."""
    return {"provider": provider, "blocks": _fingerprint(content), **state}


def unsealed(provider: str, message: Message) -> dict[str, Any]:
    """The state of a message, if it is this provider's and the blocks are still those it came with."""
    state = message.provider_state or {}
    if state.get("provider") != provider or state.get("blocks") != _fingerprint(message.content):
        return {}
    return {name: value for name, value in state.items() if name not in ("provider", "blocks")}


def _fingerprint(content: Sequence[ContentBlock]) -> str:
    from hashlib import sha256

    text = written([block_to_dict(block) for block in content])
    return sha256(text.encode()).hexdigest()[:16]


def result_text(result: ToolResultBlock, *, mark_error: bool = True) -> str:
    """The result as text: a text as it is, other values as JSON; an error legible where no flag says it.

    For an image there is a note.
    """
    parts = result.parts
    content = result.content if parts is None else "\n".join(map(_noted, parts))
    text = content if isinstance(content, str) else written(content)
    if result.is_error and mark_error and isinstance(result.content, str) and not text.lower().startswith("error"):
        return f"Error: {text}"
    return text


def result_blocks(result: ToolResultBlock) -> list[TextBlock | ImageBlock]:
    """The texts and images of a result, for a wire that takes images in results; empty if it has no image."""
    return [
        part if isinstance(part, ImageBlock) else TextBlock(part if isinstance(part, str) else written(part))
        for part in result.parts or ()
        if part != ""
    ]


def _noted(part: Any) -> str:
    if not isinstance(part, ImageBlock):
        return part if isinstance(part, str) else written(part)
    place = part.url.partition(";")[0].removeprefix("data:") if part.url.startswith("data:") else part.url
    return f"[an image ({place}), which cannot be shown here]"
