"""The one cursor that ``receive``, ``events``, ``stream`` and ``ask`` share over the events of an exchange.

Owns: what is still to be read, and which thread may read it. Does not know: where an exchange comes from, the client.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from .errors import AgentError
from .events import Event, ResponseStarted, RoundEvent, RoundFinished, RunFinished, TextBurst, TextDelta, TurnFinished
from .interrupt import Interrupt
from .loop import Exchange
from .messages import ContentBlock, FinishReason, TextBlock, Usage

Ending = tuple["FinishReason | None", "Usage | None"]


class Cursor:
    """Where the reading of an exchange stands; ``exchange`` is the latest one, None before the first."""

    def __init__(self, interrupt: Interrupt) -> None:
        self.exchange: Exchange | None = None
        self._ended: Ending = (None, None)  # how the latest request ended, if that was not heard here
        self._interrupt = interrupt
        self._events: Generator[RoundEvent, None, None] | None = None
        self._waiting: deque[RoundEvent] = deque()  # events heard while sending
        self._burst: Iterator[str] = iter(())  # what is still to be told of text that came together
        self._blocks: deque[ContentBlock] = deque()  # blocks to be handed out by blocks()
        self._heard: list[ContentBlock] = []  # the text of a round in auto mode
        self._owner: dict[str, int] = {}  # the thread that uses the client now

    # Who may touch it

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Within this context the client is this thread's; ``AgentError`` if it is another's."""
        self._claim()
        try:
            yield
        finally:
            self._owner.clear()

    def _claim(self) -> None:
        # Not a lock: Ctrl-C between taking it and the try would leave it taken for ever.
        me = threading.get_ident()
        owner = self._owner.setdefault("thread", me)
        if owner != me:
            raise AgentError(f"client is in use by thread {owner}: give each thread a client of its own")
        if getattr(self._events, "gi_running", False):
            raise AgentError(
                "client is in use by this very thread: a tool or hook must not use the client that runs it"
            )

    # Where it stands

    @property
    def ended(self) -> Ending:
        """The finish reason and the usage of the latest request."""
        return (self.exchange.finish_reason, self.exchange.usage) if self.exchange else self._ended

    def recall(self, ended: Ending) -> None:
        """Stand as after a request that ended so."""
        self.discard()
        self.exchange, self._ended = None, ended

    def start(self, exchange: Exchange) -> None:
        """Begin with an exchange; returns when its first event is there."""
        self.exchange = exchange
        self._events = exchange.run()
        first = self._pull()
        if first is not None:
            self._waiting.append(first)

    def discard(self) -> None:
        """Drop what is still to be read."""
        if self._events is not None:
            self._events.close()
            self._events = None
        self._waiting.clear()
        self._drop_burst()
        self._blocks.clear()
        self._heard.clear()

    def _pull(self) -> RoundEvent | None:
        try:
            return next(self._events, None) if self._events is not None else None
        except BaseException:
            self._events = None
            self._blocks.clear()
            raise

    # Reading

    def _step(self) -> RoundEvent | None:
        """The next event, None at the end; the text of it, if it is text, is what ``_texts`` goes on with."""
        self._claim()
        try:
            event = self._waiting.popleft() if self._waiting else self._pull()
        finally:
            self._owner.clear()
        if isinstance(event, TextBurst):
            self._burst = iter(event)
        elif isinstance(event, TextDelta):
            self._burst = iter((event.text,))
        return event

    def _texts(self) -> Iterator[str]:
        """The pieces of text of the latest step, each once. What was read together with an interrupt is not told."""
        burst = None
        while burst is not self._burst:  # another reader may have stepped on meanwhile
            burst = self._burst
            for text in burst:
                if self._interrupt.is_set():
                    self._drop_burst()
                    return
                yield text

    def _drop_burst(self) -> None:
        deque(self._burst, maxlen=0)  # read to its end, for readers that stand in the middle of it

    def events(self) -> Iterator[Event]:
        """Everything that happens, as it happens."""
        while True:
            yield from map(TextDelta, self._texts())
            if (event := self._step()) is None:
                return
            if not isinstance(event, (TextDelta, TextBurst, ResponseStarted, TurnFinished)):
                yield event

    def blocks(self) -> Iterator[ContentBlock]:
        """Pieces of text and calls in manual mode; in auto mode those of the final text."""
        while True:
            if self.exchange is not None and self.exchange.is_auto:
                self._heard.extend(map(TextBlock, self._texts()))
            else:
                yield from map(TextBlock, self._texts())
            while self._blocks:
                if self._interrupt.is_set():
                    self._blocks.clear()
                    return
                yield self._blocks.popleft()
            if (event := self._step()) is None:
                return
            self._collect(event)

    def _collect(self, event: RoundEvent) -> None:
        """Adds to ``_blocks`` what blocks() hands out for an event: the calls, in auto mode the final text."""
        is_auto = self.exchange is not None and self.exchange.is_auto
        if isinstance(event, ResponseStarted):
            self._heard.clear()
        elif isinstance(event, RoundFinished) and not is_auto:
            self._blocks.extend(event.message.calls)
        elif isinstance(event, RunFinished) and event.cause != "interrupted":
            self._blocks.extend(self._heard)
            self._heard.clear()

    def texts(self) -> Iterator[str]:
        """The text of every round, a blank line between two that both spoke."""
        spoke_before = speaks = False
        while True:
            for text in self._texts():
                if not speaks and text.strip():
                    speaks = True
                    if spoke_before:
                        yield "\n\n"
                yield text
            if (event := self._step()) is None:
                return
            if isinstance(event, ResponseStarted):
                spoke_before, speaks = spoke_before or speaks, False

    def last_text(self) -> str:
        """The text of the last round, read to the end."""
        pieces: list[str] = []
        try:
            while True:
                pieces.extend(self._texts())
                if (event := self._step()) is None:
                    return "".join(pieces)
                if isinstance(event, ResponseStarted):
                    pieces.clear()
        except BaseException:
            self.discard()  # nobody reads on: what was run enters the history
            raise
