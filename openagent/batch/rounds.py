"""One round of a batch: its turn in the pace, its retries, its place in the cache.

It stands between the adapter and the transport. As nobody reads along, the events of a round are held back
until it is over; so a stream that broke off is asked for again, too.

Owns: when a request goes out and when it goes out again. Does not know: a provider's JSON, prompts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .. import retry
from ..adapters import MakeDecoder, ProviderAdapter, Request, Transport
from ..decoding import BodyDecoder
from ..errors import AgentError, StreamInterruptedError
from ..events import RoundEvent, TurnFinished
from ..interrupt import Interrupt
from ..messages import Message, Usage
from ..options import AgentOptions
from ..protocols import ADAPTERS
from ..tools import Tool
from .cache import Cache, key_of
from .pace import Pace
from .results import tokens_of

TOO_MANY = (429, 529)


class Paced:
    """The protocol of a batch's client: the real one, with a way out that keeps the pace.

    ``protocol`` is the real one; ``requests`` and ``usage`` count what was sent and spent since ``begin``.
    """

    def __init__(
        self,
        options: AgentOptions,
        *,
        pace: Pace,
        cache: Cache | None,
        interrupt: Interrupt,
        is_stopped: Callable[[], bool],
    ) -> None:
        self.protocol, self._retry = options.protocol, options.retry
        self._adapter: Any = ADAPTERS[options.protocol] if isinstance(options.protocol, str) else options.protocol
        self._pace, self._cache = pace, cache
        self._interrupt, self._is_stopped = interrupt, is_stopped
        self.requests = 0
        self.usage: Usage | None = None

    def begin(self) -> None:
        """Count anew."""
        self.requests, self.usage = 0, None

    def check(self, options: AgentOptions) -> None:
        """See ``ProviderAdapter.check``."""
        self._adapter.check(options)

    def __call__(
        self, options: AgentOptions, messages: Sequence[Message], tools: Sequence[Tool], transport: Transport
    ) -> ProviderAdapter:
        def paced(request: Request, make_decoder: MakeDecoder) -> Iterator[RoundEvent]:
            if self._cache is None:
                events = self._asked(transport, request, make_decoder)
            else:
                events = self._looked_up(self._cache, transport, request, make_decoder)
            if usage := _usage(events):
                self.usage = self.usage + usage if self.usage else usage
            yield from events

        made: ProviderAdapter = self._adapter(options.replace(protocol=self.protocol), messages, tools, paced)
        return made

    def _looked_up(
        self, cache: Cache, transport: Transport, request: Request, make_decoder: MakeDecoder
    ) -> list[RoundEvent]:
        key = key_of(request)
        with cache.alone(key):
            kept = cache.read(key)
            if kept is not None and (events := _replayed(*kept, make_decoder)):
                return events
            recorder = Recorder(make_decoder)
            events = self._asked(transport, request, recorder.start)
            if recorder.is_whole:
                cache.write(key, recorder.headers, bytes(recorder.body))
            return events

    def _asked(self, transport: Transport, request: Request, make_decoder: MakeDecoder) -> list[RoundEvent]:
        """The events of the round, asked for as often as the options allow; none if the run was stopped."""
        failures = 0
        while True:
            self._wait(self._pace.turn())
            if self._is_stopped():
                self._interrupt.set()
                return []
            self.requests += 1
            sent = time.monotonic()
            try:
                events = list(transport(request, make_decoder))
            except AgentError as error:
                failures += 1
                wait = self._pause(error, failures)
                if wait is None:
                    raise
                if error.status in TOO_MANY:
                    self._pace.too_many(error.retry_after, time.monotonic() - sent)
                    wait = 0.0 if error.retry_after is not None else wait  # else its turn comes after what all wait
                self._wait(wait)
            else:
                usage = _usage(events)
                self._pace.answered(tokens_of(usage) if usage else None)
                return events

    def _pause(self, error: AgentError, failures: int) -> float | None:
        if isinstance(error, StreamInterruptedError):
            error.retryable = True  # what was delivered of it reached nobody
        return retry.pause(self._retry, error, failures)

    def _wait(self, seconds: float) -> None:
        """Sleep so long, and on while all are to hold."""
        while seconds > 0 and not self._is_stopped() and not self._interrupt.is_set():
            self._interrupt.sleep(seconds)
            seconds = self._pace.hold


class Recorder:
    """Makes decoders that keep what they are fed."""

    def __init__(self, make_decoder: MakeDecoder) -> None:
        self._make_decoder = make_decoder
        self._decoder: BodyDecoder | None = None
        self.headers: Mapping[str, str] = {}
        self.body = bytearray()

    def start(self, status: int, headers: Mapping[str, str]) -> BodyDecoder:
        """A decoder for a reply; what was kept of the last one is forgotten."""
        decoder = self._decoder = self._make_decoder(status, headers)
        self.headers, self.body = headers, bytearray()
        feed, body = decoder.feed, self.body

        def kept(chunk: bytes) -> list[RoundEvent]:
            body.extend(chunk)
            return feed(chunk)

        decoder.feed = kept  # type: ignore[method-assign]
        return decoder

    @property
    def is_whole(self) -> bool:
        """Whether the last reply was heard to a good end."""
        return self._decoder is not None and self._decoder.turn is not None and self._decoder.failure is None


def _replayed(headers: Mapping[str, str], body: bytes, make_decoder: MakeDecoder) -> list[RoundEvent]:
    """The events of a reply that was kept; none if it does not decode."""
    decoder = make_decoder(200, headers)
    events = [decoder.start(), *decoder.feed(body), *decoder.end()]
    return events if decoder.failure is None and decoder.turn is not None else []


def _usage(events: list[RoundEvent]) -> Usage | None:
    return next((event.usage for event in reversed(events) if isinstance(event, TurnFinished)), None)
