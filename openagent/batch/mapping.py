"""Many prompts, a few at a time.

Never more than a window of prompts is on its way or waits to be taken, so what comes in may be endless.

Owns: the window, the order, how a run ends. Does not know: executors, how one prompt is answered.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ConfigError
from ..forms import Form
from ..messages import Usage
from ..options import AgentOptions
from .crew import Plan
from .desk import Desk, desk_for
from .pace import Pace
from .progress import Progress
from .prompts import check_free, check_template, is_frame, rows, size_of, with_columns
from .results import Budget, Result, Tally

if TYPE_CHECKING:
    from concurrent.futures import Executor

WINDOW_PER_WORKER = 8
FRAME_COLUMNS = ("answer", "finish_reason", "input_tokens", "output_tokens", "seconds", "error")


def map_prompts(
    options: AgentOptions,
    prompts: Iterable[Any],
    *,
    template: str | None = None,
    schema: Any = None,
    executor: Executor | None = None,
    workers: int = 8,
    window: int | None = None,
    ordered: bool = True,
    progress: bool | Literal["lines"] = True,
    raise_errors: bool = False,
    pace: Pace | None = None,
    budget: Budget | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Run:
    """Ask every prompt in a conversation of its own: an iterator of ``Result`` as they come, or in order.

    A prompt is a text, a ``Message`` or a list of messages, or a dict that fills ``template`` (``"Translate:
    {text}"``); a data frame gives one for each row, and ``run.frame()`` gives it back with the answers. With
    ``schema`` (a type or a JSON Schema) the answers are values, as from ``Client.extract``.

    At most ``workers`` are asked at once, in threads or in your ``executor`` (processes, a cluster), and at most
    ``window`` are ahead of what you have taken. What goes wrong is the ``error`` of its result, unless
    ``raise_errors``. ``pace`` limits requests and tokens per time, ``budget`` ends the run when it is spent, ``cache``
    is a folder of answers. ``progress`` is shown in a terminal or a notebook, with ``"lines"`` elsewhere as well.
    Leaving the loop, or Ctrl-C, stops what is going on.
    """
    _check(options, prompts, workers=workers, window=window)
    check_template(template)
    if schema is not None:
        Form(schema)  # a wrong one is told before anything is sent
    folder = None if cache is None else os.fspath(cache)
    plan = Plan(os.urandom(8).hex(), options, pace or Pace(), template, folder, schema)
    return Run(
        prompts,
        desk_for(plan, executor, workers),
        window=window or WINDOW_PER_WORKER * workers,
        ordered=ordered,
        raise_errors=raise_errors,
        budget=budget or Budget(),
        progress=progress,
    )


def _check(options: Any, prompts: Any, *, workers: Any, window: Any) -> None:
    if not isinstance(options, AgentOptions):
        raise ConfigError(f"options {options!r:.100} must be AgentOptions")
    if isinstance(prompts, (str, Mapping)) or not isinstance(prompts, Iterable):
        raise ConfigError(f"prompts {prompts!r:.100} must be several: a list, a generator, a data frame")
    for name, number in (("workers", workers), ("window", workers if window is None else window)):
        if type(number) is not int or number < 1:
            raise ConfigError(f"{name} {number!r} must be a whole number, 1 or more")


class Run:
    """The results of a run, as an iterator; ``tally`` is what it has come to so far.

    ``close()`` stops it; so do the end of ``with`` and dropping it.
    """

    def __init__(
        self,
        prompts: Iterable[Any],
        desk: Desk,
        *,
        window: int,
        ordered: bool,
        raise_errors: bool,
        budget: Budget,
        progress: bool | Literal["lines"],
    ) -> None:
        self.tally = Tally()
        self._frame = prompts if is_frame(prompts) else None
        self._total = size_of(prompts)
        sources = iter(prompts) if self._frame is None else rows(self._frame)
        # The generators know nothing of this object, so that dropping it closes them at once.
        came = _results(desk, sources, window=window, ordered=ordered, budget=budget, tally=self.tally)
        told = Progress(self._total, in_pipes=progress == "lines") if progress else None
        self._results = _told(came, self.tally, told, raise_errors)

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Result:
        return next(self._results)

    def frame(self) -> Any:
        """The data frame with what is still to come of the answers added in columns; its index is kept."""
        if self._frame is None or self._total is None:
            raise ConfigError("frame() gives back a data frame, and the prompts were none")
        check_free(self._frame, FRAME_COLUMNS)
        found = {result.index: result for result in self}
        cells = [_cells(found.get(index)) for index in range(self._total)]
        return with_columns(self._frame, {name: [row[name] for row in cells] for name in FRAME_COLUMNS})

    def close(self) -> None:
        """Stop what is going on."""
        self._results.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _results(
    desk: Desk, sources: Iterator[Any], *, window: int, ordered: bool, budget: Budget, tally: Tally
) -> Generator[Result, None, None]:
    """The results as they come, or in order; those that wait for their place count into the window."""
    numbered = enumerate(sources)
    early: dict[int, Result] = {}
    place = 0
    try:
        while True:
            _send(desk, numbered, window - len(early), budget, tally)
            if not desk:
                return
            result = desk.receive()
            tally.add(result)
            if not ordered:
                yield result
                continue
            early[result.index] = result
            while place in early:
                yield early.pop(place)
                place += 1
    finally:
        desk.leave()


def _send(desk: Desk, numbered: Iterator[tuple[int, Any]], most: int, budget: Budget, tally: Tally) -> None:
    """Send prompts until so many are on their way, or there are no more, or the budget is spent."""
    while len(desk) < most and tally.ended_by is None:
        if not tally.allows(budget, len(desk)):
            if desk:
                return  # what comes back may have cost less than it was taken for
            tally.ended_by = "end" if next(numbered, None) is None else "budget"
        elif (numbered_source := next(numbered, None)) is None:
            tally.ended_by = "end"
        else:
            desk.send(*numbered_source)


def _told(
    results: Generator[Result, None, None], tally: Tally, progress: Progress | None, raise_errors: bool
) -> Generator[Result, None, None]:
    """The results, with the progress shown and, if so wanted, the first error raised."""
    try:
        for result in results:
            if progress is not None:
                progress.show(tally)
            if raise_errors and result.error is not None:
                raise result.error
            yield result
    finally:
        results.close()
        if progress is not None:
            progress.close()


def _cells(result: Result | None) -> dict[str, Any]:
    """What stands in the added columns of a row; nothing if it was not asked."""
    if result is None:
        return dict.fromkeys(FRAME_COLUMNS)
    usage = result.usage or Usage()
    values = (result.answer, _text(result.finish_reason), usage.input_tokens, usage.output_tokens)
    return dict(zip(FRAME_COLUMNS, (*values, result.seconds, _text(result.error)), strict=True))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
