"""Many prompts, a few at a time.

Never more than a window of prompts is on its way or waits to be taken, so what comes in may be endless.

Owns: the window, the order, executors, how a run ends. Does not know: how one prompt is answered.
"""

from __future__ import annotations

import os
import pickle
import queue
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import AgentError, ConfigError
from ..forms import Form
from ..options import AgentOptions
from .crew import Crew, Plan, answer_elsewhere
from .pace import Pace
from .progress import Progress
from .prompts import check_template, is_frame, rows, size_of, with_columns
from .results import Budget, Result, Tally

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

WINDOW_PER_WORKER = 8
TRIES = 3  # how often a task is sent before losing it is its error
_END = object()


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
    progress: bool = True,
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
    is a folder of answers. Leaving the loop, or Ctrl-C, stops what is going on.
    """
    if not isinstance(options, AgentOptions):
        raise ConfigError(f"options {options!r:.100} must be AgentOptions")
    if isinstance(prompts, (str, Mapping)) or not isinstance(prompts, Iterable):
        raise ConfigError(f"prompts {prompts!r:.100} must be several: a list, a generator, a data frame")
    for name, number in (("workers", workers), ("window", workers if window is None else window)):
        if type(number) is not int or number < 1:
            raise ConfigError(f"{name} {number!r} must be a whole number, 1 or more")
    check_template(template)
    if schema is not None:
        Form(schema)  # a wrong one is told before anything is sent
    folder = None if cache is None else os.fspath(cache)
    plan = Plan(os.urandom(8).hex(), options, pace or Pace(), template, folder, schema)
    return Run(
        prompts,
        _desk(plan, executor, workers),
        window=window or WINDOW_PER_WORKER * workers,
        ordered=ordered,
        raise_errors=raise_errors,
        budget=budget or Budget(),
        progress=progress,
    )


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
        progress: bool,
    ) -> None:
        self.tally = Tally()
        self._frame = prompts if is_frame(prompts) else None
        self._total = size_of(prompts)
        sources = iter(prompts) if self._frame is None else rows(self._frame)
        # The generators know nothing of this object, so that dropping it closes them at once.
        came = _results(desk, sources, window=window, ordered=ordered, budget=budget, tally=self.tally)
        self._results = _told(came, self.tally, Progress(self._total) if progress else None, raise_errors)

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Result:
        return next(self._results)

    def frame(self) -> Any:
        """The data frame with what is still to come of the answers added in columns; its index is kept."""
        if self._frame is None or self._total is None:
            raise ConfigError("frame() gives back a data frame, and the prompts were none")
        found = {result.index: result for result in self}
        results = [found.get(index) for index in range(self._total)]
        usages = [result.usage if result else None for result in results]
        return with_columns(
            self._frame,
            {
                "answer": [result.answer if result else None for result in results],
                "finish_reason": [_text(result.finish_reason) if result else None for result in results],
                "input_tokens": [usage.input_tokens if usage else None for usage in usages],
                "output_tokens": [usage.output_tokens if usage else None for usage in usages],
                "seconds": [result.seconds if result else None for result in results],
                "error": [_text(result.error) if result else None for result in results],
            },
        )

    def close(self) -> None:
        """Stop what is going on."""
        self._results.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Desk:
    """Hands tasks to an executor and knows how to stop them."""

    def __init__(
        self, executor: Executor, task: Callable[[int, Any], tuple[Any, ...]], crew: Crew | None, *, is_ours: bool
    ) -> None:
        self._executor, self._task, self._crew, self._is_ours = executor, task, crew, is_ours

    def submit(self, index: int, source: Any) -> Future[Result]:
        """Send a task on its way; a prompt that cannot travel has failed at once."""
        from concurrent.futures import Future

        try:
            return self._executor.submit(*self._task(index, source))
        except ConfigError as exc:
            failed: Future[Result] = Future()
            failed.set_result(Result(index, source, error=exc))
            return failed
        except RuntimeError as exc:  # a broken pool, or one that was shut down
            raise AgentError(f"the executor takes no more tasks: {exc}") from exc

    def leave(self, waiting: Iterable[Future[Result]]) -> None:
        """Drop what waits; what runs in this process is interrupted, and over when this returns."""
        from concurrent.futures import wait

        if self._crew is not None:
            self._crew.stop()
        running = [future for future in waiting if not future.cancel()]
        if self._crew is not None:
            wait(running)
            self._crew.close()
        if self._is_ours:
            self._executor.shutdown(wait=True)


def _desk(plan: Plan, executor: Executor | None, workers: int) -> Desk:
    from concurrent.futures import ThreadPoolExecutor

    if executor is None or isinstance(executor, ThreadPoolExecutor):
        crew = Crew(plan)
        own = executor or ThreadPoolExecutor(workers, "openagent batch")
        return Desk(own, lambda index, source: (crew.answer, index, source), crew, is_ours=executor is None)
    if not callable(getattr(executor, "submit", None)):
        raise ConfigError(f"executor {executor!r:.100} has no submit(); that of dask is client.get_executor()")
    packed = replace(plan, pace=plan.pace.shared(workers)).packed()
    return Desk(executor, lambda index, source: (answer_elsewhere, packed, index, _packed(source)), None, is_ours=False)


def _packed(source: Any) -> bytes:
    try:
        return pickle.dumps(source)
    except Exception as exc:
        raise ConfigError(f"prompt {source!r:.100} cannot be pickled for another process: {exc}") from exc


def _results(
    desk: Desk, sources: Iterator[Any], *, window: int, ordered: bool, budget: Budget, tally: Tally
) -> Generator[Result, None, None]:
    """The results as they come, or in order; those that wait for their place count into the window."""
    done: queue.SimpleQueue[Future[Result]] = queue.SimpleQueue()
    waiting: dict[Future[Result], tuple[int, Any, int]] = {}
    early: dict[int, Result] = {}
    sent = place = 0

    def send(index: int, source: Any, losses: int) -> None:
        future = desk.submit(index, source)
        waiting[future] = (index, source, losses)
        future.add_done_callback(done.put)

    try:
        while True:
            while len(waiting) + len(early) < window and tally.ended_by is None:
                if not tally.allows(budget, len(waiting)):
                    if waiting:
                        break  # what comes back may have cost less than it was taken for
                    tally.ended_by = "budget" if _has_next(sources) else "end"
                elif (source := next(sources, _END)) is _END:
                    tally.ended_by = "end"
                else:
                    send(sent, source, 0)
                    sent += 1
            if not waiting:
                return
            future = done.get()
            index, source, losses = waiting.pop(future)
            result = _outcome(future, index, source, losses + 1)
            if result is None:
                send(index, source, losses + 1)
                continue
            tally.add(result)
            if not ordered:
                yield result
                continue
            early[index] = result
            while place in early:
                yield early.pop(place)
                place += 1
    finally:
        desk.leave(waiting)


def _has_next(sources: Iterator[Any]) -> bool:
    return next(sources, _END) is not _END


def _outcome(future: Future[Result], index: int, source: Any, tries: int) -> Result | None:
    """The result of a task; None if its executor lost it and it is to be sent again.

    A task itself never raises, so what comes out of the future is the executor's.
    """
    from concurrent.futures import BrokenExecutor

    try:
        return replace(future.result(), input=source)
    except BrokenExecutor as exc:
        raise AgentError(f"the executor broke: {exc}") from exc
    except Exception as exc:
        if tries < TRIES:
            return None
        lost = AgentError(f"the executor lost the task {tries} times: {type(exc).__name__}: {exc}")
        return Result(index, source, error=lost)


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


def _text(value: object) -> str | None:
    return None if value is None else str(value)
