"""How far a run is, on stderr: a bar in a terminal that has ``tqdm``, else a line now and then.

Owns: what is shown of a run. Does not know: the run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from .results import Tally

SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Tells how far a run is. ``total`` is None if nobody knows how many prompts there are."""

    def __init__(
        self, total: int | None, *, to: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total = total
        self._to = to or sys.stderr
        self._clock = clock
        self._started = self._told = clock()
        self._bar = _bar(total, self._to)

    def show(self, tally: Tally) -> None:
        """Another result is in."""
        if self._bar is not None:
            self._bar.set_postfix(errors=tally.failed, refresh=False)
            self._bar.update(1)
        elif self._clock() - self._told >= SECONDS_BETWEEN_LINES:
            self._told = self._clock()
            print(f"openagent: {line(tally, self._total, self._told - self._started)}", file=self._to, flush=True)

    def close(self) -> None:
        """The run is over."""
        if self._bar is not None:
            self._bar.close()


def line(tally: Tally, total: int | None, seconds: float) -> str:
    """How far a run is after so many seconds.

    >>> line(Tally(answered=50), 200, 10.0)
    '50 of 200, 0 failed, 5.0/s, about 30 s left'
    """
    rate = tally.done / seconds if seconds > 0 else 0.0
    of = f" of {total}" if total is not None else ""
    left = f", about {(total - tally.done) / rate:.0f} s left" if total is not None and rate else ""
    return f"{tally.done}{of}, {tally.failed} failed, {rate:.1f}/s{left}"


def _bar(total: int | None, to: TextIO) -> Any:
    if not to.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, file=to, unit=" prompts")
