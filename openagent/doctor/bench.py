"""One request at a time, listened to: what came as bytes, what it meant, and when.

Owns: asking for a turn or a document, the time and the number of requests of one examination.
Does not know: what the questions are, what the answers mean.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from .. import codec
from ..abilities import Abilities
from ..adapters import MakeDecoder, ProviderAdapter, Request, WireAdapter, endpoint
from ..connection import Connections
from ..decoding import BodyDecoder
from ..emulation import tooled
from ..errors import AgentError, ConfigError, Timeout
from ..events import (
    CallAnnounced,
    ReasoningDelta,
    Response,
    ResponseStarted,
    RoundEvent,
    TextDelta,
    TurnFinished,
    spread,
)
from ..interrupt import Interrupt
from ..messages import Message
from ..options import AgentOptions
from ..protocols import ADAPTERS
from ..transport import Line
from .report import Quirk

MAX_DOCUMENT_BYTES = 4_000_000


@dataclass
class Heard:
    """One exchange of bytes, and the turn that it was; ``first`` and ``seconds`` count from sending."""

    protocol: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    text: str = ""
    reasoning: str = ""
    deltas: int = 0
    first: float | None = None
    seconds: float = 0.0
    turn: TurnFinished | None = None
    error: AgentError | None = None

    @property
    def body(self) -> bytes:
        """All bytes of the body that were read."""
        return b"".join(self.chunks)

    @property
    def is_refusal(self) -> bool:
        """Whether the server refused what was asked, and not us, or just now."""
        status = self.error.status if self.error else None
        return status is not None and (400 <= status < 500 or status in (500, 501)) and status not in _NOT_THE_REQUEST

    @property
    def is_cut(self) -> bool:
        """Whether the output limit cut the answer, so that it proves little."""
        return self.turn is not None and self.turn.finish_reason.is_truncated


_NOT_THE_REQUEST = (401, 402, 403, 408, 409, 425, 429)


class Listening:
    """A body decoder that remembers what it was fed."""

    def __init__(self, inner: BodyDecoder, heard: Heard) -> None:
        self._inner, self._heard = inner, heard

    def feed(self, chunk: bytes) -> list[RoundEvent]:
        """See ``BodyDecoder``."""
        self._heard.chunks.append(chunk)
        return self._inner.feed(chunk)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Page:
    """The decoder of a body that is no turn."""

    has_ended = delivered = False
    failure: AgentError | None = None

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers, self.body, self.done = headers, bytearray(), False

    def start(self) -> RoundEvent:
        """The first event, of which nothing is made."""
        return ResponseStarted(Response())

    def feed(self, chunk: bytes) -> list[RoundEvent]:
        """Keep the bytes."""
        self.body += chunk
        self.done = len(self.body) > MAX_DOCUMENT_BYTES
        return []

    def end(self, failure: AgentError | None = None) -> list[RoundEvent]:
        """The body is over, or broke off."""
        self.done, self.failure = True, failure
        return []

    @property
    def value(self) -> Any:
        """What the body says as JSON; None if it is none."""
        try:
            return codec.parse(bytes(self.body))
        except ValueError:
            return None


@dataclass
class Bench:
    """One examination under way: its server, its time, what was noticed so far."""

    options: AgentOptions
    expires: float
    connections: Connections = field(default_factory=Connections)
    requests: int = 0
    quirks: dict[str, Quirk] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)  # what turned out to be needed
    is_reasoning: bool = False
    limit_name: str = "max_tokens"  # how this server wants the output limit

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.expires - time.monotonic()

    def note(self, name: str, text: str) -> None:
        """Remember a quirk, once."""
        self.quirks.setdefault(name, Quirk(name, text))

    def budget(self, tokens: int) -> int:
        """How many tokens an answer may have: those who reason need more before they come to the point."""
        return tokens + 1000 if self.is_reasoning else tokens

    def asking(self, **changes: Any) -> AgentOptions:
        """The options of a request: what turned out to be needed, and these settings."""
        given = self.settings | changes
        if self.limit_name != "max_tokens" and (limit := given.pop("max_tokens", None)):
            given["extra_body"] = {self.limit_name: limit}
        return self.options.replace(retry=None, auto_execute_tools=False, **given)

    def ask(self, options: AgentOptions, messages: Sequence[Message], *, share: float = 0.3) -> Heard:
        """One turn. It may take this share of the time left; what goes wrong is in ``error``."""
        adapter, heard = self.adapter(options, messages, share=share)
        return self.listen(adapter, heard)

    def adapter(
        self, options: AgentOptions, messages: Sequence[Message], *, share: float = 0.3
    ) -> tuple[ProviderAdapter | None, Heard]:
        """An adapter whose next round is listened to, and where to find what was heard."""
        heard = Heard(str(options.protocol))
        try:
            if self.left <= 0:
                raise Timeout("there was no time left")
            options = options.replace(deadline=max(0.05, self.left * share))
            made = ADAPTERS[str(options.protocol)]
            made.check(options)
            line = self._line(options, heard)
            return tooled(made, options, Abilities())(options, list(messages), list(options.tools), line), heard
        except AgentError as error:
            heard.error = error
            return None, heard

    def listen(self, adapter: ProviderAdapter | None, heard: Heard) -> Heard:
        """Have the adapter do its next round."""
        if adapter is None:
            return heard
        started = time.monotonic()
        try:
            for event in spread(adapter.execute_round(None, bool(adapter.tools))):
                _hear(heard, event, time.monotonic() - started)
        except AgentError as error:
            heard.error = error
        heard.seconds = time.monotonic() - started
        return heard

    def page(
        self, path: str, *, at_root: bool = True, body: Mapping[str, Any] | None = None, patience: float = 5.0
    ) -> Page | AgentError:
        """A document of the same server, below its root or its base URL, asked for with the same headers."""
        options = self.options.replace(retry=None, deadline=max(0.05, min(patience, self.left * 0.2)))
        parts = urlsplit(options.base_url)
        url = urlunsplit((parts.scheme, parts.netloc, path, "", "")) if at_root else endpoint(options.base_url, path)
        pages: list[Page] = []

        def opened(status: int, headers: Mapping[str, str]) -> Any:
            pages.append(Page(headers))
            return pages[-1]

        self.requests += 1
        try:
            list(Line(options, self.connections, Interrupt())(_plain(options, url, body), opened))
        except AgentError as error:
            return error
        return pages[-1] if pages else ConfigError("nothing was sent")

    def _line(self, options: AgentOptions, heard: Heard) -> Callable[[Request, MakeDecoder], Iterator[RoundEvent]]:
        line = Line(options, self.connections, Interrupt())

        def listened(request: Request, make: MakeDecoder) -> Iterator[RoundEvent]:
            def opened(status: int, headers: Mapping[str, str]) -> Any:
                heard.headers = headers
                return Listening(make(status, headers), heard)

            self.requests += 1
            return line(request, opened)

        return listened


def _hear(heard: Heard, event: RoundEvent, seconds: float) -> None:
    if isinstance(event, TurnFinished):
        heard.turn = event
    elif isinstance(event, (TextDelta, ReasoningDelta, CallAnnounced)):
        heard.first = seconds if heard.first is None else heard.first
        heard.deltas += 1
        if isinstance(event, TextDelta):
            heard.text += event.text
        elif isinstance(event, ReasoningDelta):
            heard.reasoning += event.text


def _plain(options: AgentOptions, url: str, body: Mapping[str, Any] | None) -> Request:
    """A request for a document, with the headers that a request for a turn has."""
    made: Any = ADAPTERS[str(options.protocol)]
    usual = made(options, [Message.user("?")], [], None)
    assert isinstance(usual, WireAdapter)
    wanted = {"accept", "content-type"}
    headers = {name: value for name, value in usual.encode(None, False).headers.items() if name.lower() not in wanted}
    if body is None:
        return Request(url, headers, b"", "GET")
    return Request(url, headers | {"Content-Type": "application/json"}, codec.dump(dict(body)).encode())
