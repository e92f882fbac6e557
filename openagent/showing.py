"""An exchange shown while it goes on: live Markdown in one cell of a notebook, plain text elsewhere.

Owns: what is shown of a run, and when it is drawn anew. Does not know: the client; it is given events.
Source: https://ipython.readthedocs.io/en/stable/api/generated/IPython.display.html (display handles)
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .approval import described
from .events import CallFinished, CallStarted, Event, ReasoningDelta, RoundFinished, RunFinished, TextDelta
from .markup import call_details, closing_line, escaped, reasoning_details, safe_markdown, shortened
from .messages import ToolUseBlock
from .waiting import is_notebook, small, waiting

REFRESH_SECONDS = 0.1
_DRAWING_SHARE = 0.2
"""How much of the time may go into drawing anew what grows and grows."""


class View:
    """What has been heard of a run, as Markdown and as plain text."""

    def __init__(self) -> None:
        self._parts: list[tuple[type[Any], list[str]]] = []  # neighbours are of different kinds
        self._calls: dict[str, int] = {}  # where a call stands
        self.closing = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show yet."""
        return not (self._parts or self.closing)

    def hear(self, event: Event) -> None:
        """Take an event in."""
        if isinstance(event, (TextDelta, ReasoningDelta)):
            if event.text:
                self._add(type(event), event.text)
        elif isinstance(event, CallStarted):
            self._put(event.call, call_details(event.call))
        elif isinstance(event, CallFinished):
            self._put(event.call, call_details(event.call, event.result, event.seconds))
        elif isinstance(event, RoundFinished):
            for call in event.message.calls:
                if call.id not in self._calls:  # manual mode: nobody ran it
                    self._put(call, call_details(call))

    def _add(self, kind: type[Any], text: str) -> None:
        if not self._parts or self._parts[-1][0] is not kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(text)

    def _put(self, call: ToolUseBlock, shown: str) -> None:
        if call.id not in self._calls:
            self._calls[call.id] = len(self._parts)
            self._parts.append((ToolUseBlock, []))
        self._parts[self._calls[call.id]] = (ToolUseBlock, [shown])

    def bundle(self) -> dict[str, str]:
        """The same in the two forms that a notebook keeps."""
        return {"text/markdown": self.markdown(), "text/plain": self.plain()}

    def markdown(self) -> str:
        """Markdown in which nothing of what was heard is HTML."""
        forms: dict[type[Any], Callable[[str], str]] = {TextDelta: safe_markdown, ReasoningDelta: reasoning_details}
        parts = [forms.get(kind, str)("".join(pieces)) for kind, pieces in self._parts]
        return "\n\n".join([*parts, f"<small>{escaped(self.closing)}</small>"] if self.closing else parts)

    def plain(self) -> str:
        """The text alone, and the closing line."""
        texts = ["".join(pieces) for kind, pieces in self._parts if kind is TextDelta]
        return "\n\n".join([*texts, f"({self.closing})"] if self.closing else texts)


class Cell:
    """The output of one cell of a notebook, made when there is something to show and then drawn anew."""

    def __init__(self) -> None:
        self._view = View()
        self._handle: Any = None
        self._due = 0.0
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def hear(self, event: Event) -> None:
        """Take an event in, and draw: now if it is time, else soon, even if nothing follows."""
        self._view.hear(event)
        wait = self._due - time.monotonic()
        if self._view.is_empty or (self._timer is not None and self._timer.is_alive()):
            return
        if wait <= 0:
            self._draw()
        else:
            context = contextvars.copy_context()  # by which Jupyter knows whose cell it is
            self._timer = threading.Timer(wait, context.run, [self._draw])
            self._timer.daemon = True
            self._timer.start()

    def close(self, closing: str) -> None:
        """Draw all of it, with its closing line."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        self._view.closing = closing
        self._draw()

    def wait(self, line: str) -> None:
        """Draw the line of those who wait, while there is nothing else to show."""
        with self._lock:
            if self._view.is_empty:
                self._put({"text/markdown": small(line), "text/plain": line})

    def _draw(self) -> None:
        with self._lock:
            started = time.monotonic()
            self._put(self._view.bundle())
            ended = time.monotonic()
            self._due = ended + max(REFRESH_SECONDS, (ended - started) / _DRAWING_SHARE)

    def _put(self, bundle: dict[str, str]) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)


class Lines:
    """The same as plain text on stdout, for a terminal or a script."""

    def __init__(self) -> None:
        self._last = "\n"

    def hear(self, event: Event) -> None:
        """Write what an event has to say."""
        if isinstance(event, TextDelta):
            self._write(event.text)
        elif isinstance(event, CallFinished):
            said = shortened(str(event.result.content)).replace("\n", " ")
            self._line(f"[{described(event.call)} -> {said}, {event.seconds:.1f} s]")

    def close(self, closing: str) -> None:
        """Write the closing line."""
        self._line(f"({closing})")

    def _line(self, line: str) -> None:
        self._write(("" if self._last.endswith("\n") else "\n") + line + "\n")

    def _write(self, text: str) -> None:
        self._last = text or self._last
        sys.stdout.write(text)
        sys.stdout.flush()


def show(events: Iterator[Event]) -> None:
    """Shows the events of an exchange as they come, to the end.

    Ctrl-C, or a notebook's stop button, ends the answer with ``KeyboardInterrupt``; so does an error with itself.
    What was heard until then stays where it is shown.
    """
    place = Cell() if is_notebook() else Lines()
    started = time.monotonic()
    reason, usage, is_shown = "interrupted", None, False
    try:
        with waiting("waiting for the answer", place.wait if isinstance(place, Cell) else None) as line:
            for event in events:
                if isinstance(event, (TextDelta, ReasoningDelta, CallStarted, RunFinished)):
                    line.stop()
                place.hear(event)
                is_shown = True
                if isinstance(event, RunFinished):
                    reason = event.finish_reason or event.cause
                    usage = event.usage
    except KeyboardInterrupt as stop:
        stop.__dict__["_render_traceback_"] = lambda: ["The answer was stopped; the conversation is as it was."]
        raise
    except Exception:
        reason = "broken off"
        raise
    finally:
        if is_shown:
            place.close(closing_line(reason, usage, time.monotonic() - started))
