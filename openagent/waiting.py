"""A line while people wait, with seconds: on a terminal's stderr, or in the cell of a notebook; elsewhere nothing.

It comes after a moment, vanishes when the waiting is over, and makes room while something else is shown.

Owns: the line. Does not know: what is waited for.
Source: https://ipython.readthedocs.io/en/stable/api/generated/IPython.display.html (display handles)
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")

FIRST_SECONDS = 0.3
"""What is quicker needs no line."""
_FRAMES, _PLAIN_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"


class Shown(Protocol):
    """Something on the screen that can make room."""

    def pause(self) -> None:
        """Go away until ``resume``."""

    def resume(self) -> None:
        """Come back."""


_SHOWN: contextvars.ContextVar[Shown | None] = contextvars.ContextVar("_SHOWN", default=None)


class Line:
    """The line; ``draw`` shows a text in the place of the one before, the empty text nothing."""

    def __init__(self, text: str, draw: Callable[[str], None] | None, *, every: float = 0.1) -> None:
        self._text, self._draw, self._every = text, draw, every
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._is_hidden = self._is_drawn = False
        self._over = threading.Event()
        if draw is not None:
            context = contextvars.copy_context()  # by which Jupyter knows whose cell it is
            self._thread = threading.Thread(target=context.run, args=[self._turn], daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Take the line away for good; again is no matter."""
        if not self._over.is_set():
            self._over.set()
            self.pause()

    def pause(self) -> None:
        """Take the line away until ``resume``."""
        with self._lock:
            self._is_hidden = True
            if self._is_drawn and self._draw is not None:
                self._draw("")
            self._is_drawn = False

    def resume(self) -> None:
        """Show the line again."""
        self._is_hidden = False

    def _turn(self) -> None:
        wait, number = FIRST_SECONDS, 0
        while not self._over.wait(wait):
            with self._lock:
                if self._draw is not None and not (self._is_hidden or self._over.is_set()):
                    self._draw(f"{_frame(number)} {self._text} ... {time.monotonic() - self._started:.0f} s")
                    self._is_drawn = True
            wait, number = self._every, number + 1


@contextmanager
def waiting(text: str, cell: Callable[[str], None] | None = None) -> Iterator[Line]:
    """Within this context a line says what is waited for, until its ``stop()``; another line makes room for it.

    ``cell`` draws it in a notebook; without, it gets an output of its own.
    """
    with hidden():
        line = (
            Line(text, cell or _cell(), every=1.0) if is_notebook() else Line(text, _write if is_terminal() else None)
        )
        with shown(line):
            try:
                yield line
            finally:
                line.stop()


@contextmanager
def shown(thing: Shown) -> Iterator[None]:
    """Within this context the thing on the screen makes room where ``hidden`` asks for it."""
    token = _SHOWN.set(thing)
    try:
        yield
    finally:
        _SHOWN.reset(token)


@contextmanager
def hidden() -> Iterator[None]:
    """Within this context nothing that was shown is in the way of what is written or asked."""
    thing = _SHOWN.get()
    if thing is None:
        yield
        return
    thing.pause()
    try:
        yield
    finally:
        thing.resume()


def until_first(items: Iterable[Item], line: Line) -> Iterator[Item]:
    """The items; the line goes when the first comes."""
    for item in items:
        line.stop()
        yield item


def is_notebook() -> bool:
    """Whether a cell can show more than text here."""
    ipython = sys.modules.get("IPython")  # which is loaded wherever this is so
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def is_terminal() -> bool:
    """Whether a person sees what is written to stderr now."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _frame(number: int) -> str:
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    frames = _FRAMES if is_notebook() or encoding.lower().startswith("utf") else _PLAIN_FRAMES
    return frames[number % len(frames)]


def _write(text: str) -> None:
    """The text in the place of what stands on the line, without a code that an old console would show."""
    import shutil  # slow to import

    width = shutil.get_terminal_size().columns - 1
    try:
        sys.stderr.write(f"\r{' ' * width}\r{text[:width]}")
        sys.stderr.flush()
    except (OSError, ValueError):  # the terminal is gone
        pass


def small(text: str) -> str:
    """The line as HTML."""
    from html import escape

    return f"<small>{escape(text)}</small>" if text else ""


def _cell() -> Callable[[str], None]:
    """A place in the cell, made when there is something to show."""
    handles: list[Any] = []

    def draw(text: str) -> None:
        from IPython.display import display

        bundle = {"text/html": small(text), "text/plain": text}
        if handles:
            handles[0].update(bundle, raw=True)
        else:
            handles.append(display(bundle, raw=True, display_id=True))  # type: ignore[no-untyped-call]

    return draw
