"""Tasks out to an executor, results back: ours of threads, or the user's, whose workers may be anywhere and may die.

Owns: executors, tasks that were lost on the way. Does not know: windows, order, how one prompt is answered.
"""

from __future__ import annotations

import pickle
import queue
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import AgentError, ConfigError
from .crew import Crew, Plan, answer_elsewhere
from .results import Result

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

TRIES = 3  # how often a task is sent before losing it is its error


class Desk:
    """Sends prompts on their way and receives their results; its length is how many are on their way."""

    def __init__(
        self, executor: Executor, task: Callable[[int, Any], tuple[Any, ...]], crew: Crew | None, *, is_ours: bool
    ) -> None:
        self._executor, self._task, self._crew, self._is_ours = executor, task, crew, is_ours
        self._waiting: dict[Future[Result], tuple[int, Any, int]] = {}
        self._done: queue.SimpleQueue[Future[Result]] = queue.SimpleQueue()

    def __len__(self) -> int:
        return len(self._waiting)

    def send(self, index: int, source: Any, tries: int = 1) -> None:
        """Send a prompt on its way."""
        future = self._submitted(index, source)
        self._waiting[future] = (index, source, tries)
        future.add_done_callback(self._done.put)

    def receive(self) -> Result:
        """The next result, whichever it is; what the executor lost is sent again."""
        while True:
            future = self._done.get()
            index, source, tries = self._waiting.pop(future)
            result = _outcome(future, index, source, tries)
            if result is not None:
                return result
            self.send(index, source, tries + 1)

    def leave(self) -> None:
        """Drop what waits; what runs in this process is interrupted, and over when this returns."""
        from concurrent.futures import wait

        if self._crew is not None:
            self._crew.stop()
        running = [future for future in self._waiting if not future.cancel()]
        if self._crew is not None:
            wait(running)
            self._crew.close()
        if self._is_ours:
            self._executor.shutdown(wait=True)

    def _submitted(self, index: int, source: Any) -> Future[Result]:
        """The future of a task; of a prompt that cannot travel, one that has failed."""
        from concurrent.futures import Future

        try:
            return self._executor.submit(*self._task(index, source))
        except ConfigError as exc:
            failed: Future[Result] = Future()
            failed.set_result(Result(index, source, error=exc))
            return failed
        except RuntimeError as exc:  # a broken pool, or one that was shut down
            raise AgentError(f"the executor takes no more tasks: {exc}") from exc


def desk_for(plan: Plan, executor: Executor | None, workers: int) -> Desk:
    """The desk of a run; ``ConfigError`` if the executor is none, or the plan cannot travel to its workers."""
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
