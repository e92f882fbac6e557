"""How far a run is: a bar in a terminal or a notebook that has ``tqdm``, else a line now and then.

Owns: what is shown of a run. Does not know: the run.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, TextIO

from ..waiting import is_notebook
from .results import Tally

SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Tells how far a run is. ``total`` is None if nobody knows how many prompts there are.

    Where nobody watches, as in a pipe, it is quiet, unless ``in_pipes``.
    """

    def __init__(
        self,
        total: int | None,
        *,
        to: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        in_pipes: bool = False,
    ) -> None:
        self._total = total
        self._to = to or sys.stderr
        self._clock = clock
        self._started = self._told = clock()
        is_watched = self._to.isatty() or is_notebook()
        self._has_lines = is_watched or in_pipes
        self._bar = _bar(total, self._to) if is_watched else None

    def show(self, tally: Tally) -> None:
        """Another result is in."""
        if self._bar is not None:
            self._bar.set_postfix(errors=tally.failed, refresh=False)
            self._bar.update(1)
        elif self._has_lines and self._clock() - self._told >= SECONDS_BETWEEN_LINES:
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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets a notebook gets a bar of text
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit=" prompts") if is_notebook() else tqdm(total=total, file=to, unit=" prompts")
