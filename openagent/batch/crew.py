"""The clients that answer the prompts of a run, one for each thread that asks.

A crew lives in the process that asks: in ours, or in each worker process of an executor, where the first task
makes it of its pickled ``Plan``.

Owns: clients and who uses which; one prompt from input to result. Does not know: windows, order, files.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from ..client import Client
from ..errors import AgentError, ConfigError
from ..messages import ImageBlock, Message
from ..options import AgentOptions
from .cache import Cache
from .pace import Pace
from .prompts import conversation
from .results import Result
from .rounds import Paced

_making = threading.Lock()


@dataclass(frozen=True)
class Plan:
    """What a crew must know. ``name`` tells the runs of one process apart."""

    name: str
    options: AgentOptions
    pace: Pace
    template: str | None = None
    cache: str | None = None
    schema: Any = None

    def packed(self) -> bytes:
        """The plan for another process; ``ConfigError`` names what cannot travel."""
        try:
            return pickle.dumps(self)
        except Exception as exc:
            raise ConfigError(f"{_culprit(self)} cannot be pickled for another process: {exc}") from exc


class Crew:
    """Clients of one plan; ``answer`` may be called from any number of threads."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._cache = Cache(plan.cache) if plan.cache is not None else None
        self._idle: deque[tuple[Client, Paced]] = deque()
        self._busy: set[Client] = set()
        self._is_stopped = False

    def answer(self, index: int, source: Any) -> Result:
        """The result for a prompt; what goes wrong is in its ``error``."""
        started = time.monotonic()
        client, paced = self._rested() or self._recruit()
        self._busy.add(client)
        paced.begin()
        answer: Any = None
        error: Exception | None = None
        try:
            answer = _asked(client, conversation(source, self._plan.template), self._plan.schema)
            if client.finish_reason is None:
                raise AgentError("interrupted")
        except Exception as exc:
            error, answer = exc, None
        reason = None if error else client.finish_reason
        usage, requests = paced.usage, paced.requests
        self._busy.discard(client)
        self._rest(client, paced)
        seconds = time.monotonic() - started
        return Result(index, source, answer, usage, reason, seconds, requests, error)

    def stop(self) -> None:
        """Interrupt all that is going on; nothing more is asked."""
        self._is_stopped = True
        for client in tuple(self._busy):
            client.interrupt()

    def close(self) -> None:
        """Close the connections of all clients at rest."""
        while self._idle:
            self._idle.pop()[0].close()

    def _rested(self) -> tuple[Client, Paced] | None:
        try:
            return self._idle.pop()
        except IndexError:  # asking before would be too early: another thread may take the last one
            return None

    def _recruit(self) -> tuple[Client, Paced]:
        client = Client(self._plan.options)
        paced = Paced(
            self._plan.options,
            pace=self._plan.pace,
            cache=self._cache,
            interrupt=client.interrupt_handle,
            is_stopped=lambda: self._is_stopped,
        )
        client.options = self._plan.options.replace(protocol=paced, retry=None)
        return client, paced

    def _rest(self, client: Client, paced: Paced) -> None:
        client.clear_history()
        if self._is_stopped:
            client.close()
        else:
            self._idle.append((client, paced))


def _asked(client: Client, prompt: str | list[Message], schema: Any) -> Any:
    """The answer to a text or to messages, in a conversation of its own; with a schema, the value."""
    if isinstance(prompt, str):
        return client.ask(prompt) if schema is None else client.extract(prompt, schema)
    client.history = prompt[:-1]
    if schema is not None:
        images = [block for block in prompt[-1].content if isinstance(block, ImageBlock)]
        return client.extract(prompt[-1].text, schema, *images)
    client.send_message(prompt[-1])
    for _ in client.events():
        pass
    return client.history[-1].text if client.history[-1].role == "assistant" else ""


def answer_elsewhere(packed: bytes, index: int, source: bytes) -> Result:
    """What a worker process runs: the result for a pickled prompt, by the crew that this process has for the plan.

    The input stays out of it: it is known where it came from.
    """
    try:
        with _making:
            crew = _crew_of(packed)
        prompt = pickle.loads(source)
    except Exception as exc:
        told = f"the worker process cannot load what the run needs: {exc}"
        error = ConfigError(f"{told}; put tools, hooks and types into a module that it can import")
        return Result(index, None, error=error)
    return _portable(replace(crew.answer(index, prompt), input=None))


@lru_cache(maxsize=4)
def _crew_of(packed: bytes) -> Crew:
    return Crew(pickle.loads(packed))


def _portable(result: Result) -> Result:
    """The result with an error that can be pickled, as those of a user's hook may not."""
    try:
        pickle.loads(pickle.dumps(result.error))
    except Exception:
        return replace(result, error=AgentError(f"{type(result.error).__name__}: {result.error}"))
    return result


def _culprit(plan: Plan) -> str:
    """The setting that cannot be pickled."""
    options = plan.options
    for item in fields(options):
        value = getattr(options, item.name)
        for part in value if item.name == "tools" else [value]:
            try:
                pickle.dumps(part)
            except Exception:
                return f"tool {part.name!r}" if item.name == "tools" else f"option {item.name}"
    return "schema"
