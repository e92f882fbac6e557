"""Markdown on a terminal while it is being written: finished blocks for good, only the last one live.

Owns: where a block of Markdown ends, and drawing with ``rich``, if it is there. Does not know: where the text
comes from.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from itertools import chain
from typing import Any

from ..waiting import shown
from .output import harmless, write_text

REFRESHES_PER_SECOND = 12
SILENT_SECONDS = 2.0
"""After so long a silence in an answer its length is shown."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class Blocks:
    """Text in pieces, cut into blocks of Markdown: at blank lines outside fences of code."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open = ""  # the line that has no end yet
        self._fence = ""

    def feed(self, text: str) -> list[str]:
        """The blocks that this piece completes."""
        *lines, self._open = (self._open + text).split("\n")
        finished = [self._line(line) for line in lines]
        return [block for block in finished if block]

    @property
    def rest(self) -> str:
        """The block that is not finished, as far as it has come."""
        return "\n".join([*self._lines, self._open])

    def tail(self, count: int) -> str:
        """The last lines of the rest; within a fence, with the line that opens it."""
        lines = [*self._lines, self._open]
        head = lines[:1] if self._fence and len(lines) > count else []
        return "\n".join([*head, *lines[-count:]])

    def _line(self, line: str) -> str:
        if not line.strip() and not self._fence:
            return self._taken()
        mark = _FENCE.match(line)
        if self._fence:
            is_end = line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0])
            self._lines.append(line)
            if is_end:
                self._fence = ""
                return self._taken()
            return ""
        before = ""
        if mark is not None:
            before, self._fence = self._taken(), mark[1]
        self._lines.append(line)
        return before

    def _taken(self) -> str:
        block, self._lines = "\n".join(self._lines), []
        return block


def write_markdown(texts: Iterable[str]) -> None:
    """The texts as they come: drawn if this is a terminal that ``rich`` can draw on, else as they are."""
    console = _console()
    if console is None:
        write_text(texts)
    else:
        _draw(texts, console)


def _console() -> Any:
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console()
    return None if console.is_dumb_terminal else console


def _draw(texts: Iterable[str], console: Any) -> None:
    """Draws from the first text on: what is on the screen until then is not ours."""
    pieces = iter(texts)
    first = next(pieces, None)
    if first is None:
        return
    drawing = Drawing(console)
    with shown(drawing):
        drawing.resume()
        try:
            for text in chain([first], pieces):
                drawing.hear(text)
        finally:  # also what an interrupted answer had come to
            drawing.end()


class Drawing:
    """An answer on the screen; its last block is drawn anew until it is finished."""

    def __init__(self, console: Any) -> None:
        self._console, self._blocks, self._is_over = console, Blocks(), False
        self._live: Any = None
        self._heard = time.monotonic()

    def hear(self, text: str) -> None:
        """Take a piece in."""
        self._heard = time.monotonic()
        for block in self._blocks.feed(harmless(text)):
            self._console.print(_drawn(block, self._console))
            self._console.print()

    def pause(self) -> None:
        """Make room, as for a question; what was said stands before it."""
        self._live.stop()
        self._leave()

    def resume(self) -> None:
        """Go on drawing."""
        from rich.live import Live

        # A new one each time: it would go up over what was shown meanwhile. Drawn by a thread of rich, so
        # that what came is seen even if nothing follows it for a while.
        self._live = Live(
            console=self._console, get_renderable=self._last, transient=True, refresh_per_second=REFRESHES_PER_SECOND
        )
        self._live.start()

    def end(self) -> None:
        """Leave the last block as it is now."""
        self._is_over = True
        self._live.stop()
        self._leave()

    def _leave(self) -> None:
        rest, self._blocks = self._blocks.rest, Blocks()
        if rest.strip():
            self._console.print(_drawn(rest, self._console))
            self._console.print()

    def _last(self) -> Any:
        """What is drawn anew: the last lines, and the seconds if nothing comes."""
        from rich.console import Group
        from rich.text import Text

        if self._is_over:
            return ""
        lines, silent = _drawn(self._blocks.tail(max(3, self._console.height - 4)), self._console), self._silence()
        return Group(lines, Text(f"... {silent:.0f} s", style="dim")) if silent >= SILENT_SECONDS else lines

    def _silence(self) -> float:
        return time.monotonic() - self._heard


def _drawn(block: str, console: Any) -> Any:
    """The block as it stands on the screen, without the empty lines that rich puts around some kinds."""
    from rich.markdown import Markdown
    from rich.segment import Segment, Segments

    lines = console.render_lines(Markdown(block), pad=False)
    full = [place for place, line in enumerate(lines) if "".join(segment.text for segment in line).strip()]
    kept = lines[full[0] : full[-1] + 1] if full else []
    return Segments([segment for line in kept for segment in [*line, Segment.line()]])
