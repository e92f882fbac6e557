"""The calls of a turn: which are run, in what order, and what each is answered with.

A call is checked, shown to the hooks, approved, run, and its result shown to the hooks. That is done one
call after another; with ``tool_workers`` the tools themselves run in threads, and everything else still
happens here, in the thread of the caller. Results are recorded in the order of the calls, told as they
come. Whatever ends the turn early, ``Answering.results`` has an answer for each call.

Owns: the order of hooks, approval and tools, the limits within a round. Does not know: rounds, providers.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections import Counter
from collections.abc import Generator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from . import logs
from .adapters import ProviderAdapter, result_text
from .approval import verdict
from .events import CallFinished, CallStarted, Event
from .hooks import PostToolUseEvent, PreToolUseEvent, ask
from .interrupt import Interrupt
from .messages import Message, ToolResultBlock, ToolUseBlock
from .options import AgentOptions
from .readable import readable
from .running import failure, masked, masked_result, problem, run
from .tools import Tool

CANCELLED = {"error": "Tool execution cancelled"}
MAYBE_RUN = {"error": "interrupted while it ran: it may have had effects"}
NOT_RUN = {"error": "not run: the exchange was interrupted before it"}

_LAST = "No tools are available now. Answer as well as you can from what you already have."
ROUNDS_REACHED = f"You have used all the rounds of tool calls that are allowed for this question. {_LAST}"
CALLS_REACHED = f"You have made all the tool calls that are allowed for this question. {_LAST}"
SIZE_REACHED = f"The tool results have reached the size that is allowed for this question. {_LAST}"
REPEATED = f"You keep making the same tool call with the same arguments. {_LAST}"


@dataclass
class Ledger:
    """What the calls of an exchange have used up so far."""

    options: AgentOptions
    tools: dict[str, Tool]
    approved: set[str]  # the tools that the user has approved for good
    rounds: int = 0
    calls: int = 0
    chars: int = 0
    is_repeating: bool = False
    _made: Counter[tuple[str, str]] = field(default_factory=Counter)

    def limit(self) -> str | None:
        """The instruction of the last round, if a limit has been reached."""
        if self.is_repeating:
            return REPEATED
        return self.limit_within() or (ROUNDS_REACHED if self.rounds >= self.options.max_tool_iterations else None)

    def limit_within(self) -> str | None:
        """The same, of the limits that hold within a round."""
        if self.chars > self.options.max_tool_result_chars:
            return SIZE_REACHED
        return CALLS_REACHED if self.calls >= self.options.max_tool_calls else None

    def repeats(self, call: ToolUseBlock) -> bool:
        """Counts the call; whether it had been made as often as is allowed."""
        key = (call.name, call.raw_arguments or _key(call.input))
        self._made[key] += 1
        is_repeated = self._made[key] > self.options.max_repeated_calls
        self.is_repeating = self.is_repeating or is_repeated
        return is_repeated


class Going(NamedTuple):
    """A call whose tool is running."""

    place: int
    tool: Tool
    call: ToolUseBlock
    started: float


class Answering:
    """The calls of one turn and their results."""

    def __init__(
        self, turn: Message, history: list[Message], *, ledger: Ledger, adapter: ProviderAdapter, interrupt: Interrupt
    ) -> None:
        self._turn, self._before = turn, (*history, turn)
        self._ledger, self._adapter, self._interrupt = ledger, adapter, interrupt
        self._options = ledger.options
        self._found: dict[int, ToolResultBlock] = {}
        self._in_hand: dict[int, ToolResultBlock] = {}  # what a call is answered with if the turn ends now
        self._going: dict[int, Going] = {}
        self._done: queue.SimpleQueue[tuple[int, ToolResultBlock | BaseException]] = queue.SimpleQueue()
        self._recorded = 0

    @property
    def results(self) -> list[ToolResultBlock]:
        """A result for each call, in their order, however far they have come."""
        while not self._done.empty():
            place, outcome = self._done.get()
            if isinstance(outcome, ToolResultBlock):
                self._in_hand[place] = outcome
        known = self._in_hand | self._found
        return [known.get(at) or _error(call, NOT_RUN) for at, call in enumerate(self._turn.calls)]

    def run(self, refusal: dict[str, str] | None) -> Generator[Event, None, None]:
        """The events of all calls; a refusal answers them all."""
        self._adapter.record_assistant_turn()
        for place, call in enumerate(self._turn.calls):
            while len(self._going) >= self._options.tool_workers:
                yield from self._next()
            started = time.monotonic()
            content = refusal
            if content is None and (limit := self._ledger.limit_within()):
                content = {"error": f"not run. {limit}"}
            if content is None and self._interrupt.is_set():
                content = CANCELLED
            if content is None:
                yield from self._answer(place, call, started)
            else:
                self._found[place] = _error(call, content)
                yield self._told(place, call, started)
        while self._going:
            yield from self._next()

    def _answer(self, place: int, call: ToolUseBlock, started: float) -> Generator[Event, None, None]:
        """Runs a call, or has a thread run it (R-50 to R-52)."""
        self._ledger.calls += 1
        tool = self._ledger.tools.get(call.name)
        while tool is not None and tool.sequential and self._going:
            yield from self._next()
        call, result = self._admitted(tool, call)
        if self._interrupt.is_set() and result is None:
            result = _error(call, CANCELLED)
        if result is None and tool is not None:
            yield CallStarted(masked(tool, call))
            self._in_hand[place] = _error(call, MAYBE_RUN)  # until we know better
            # The seconds are the tool's: not those of the first validation, which imports jsonschema (0.9 s beside
            # JupyterLab), nor of an approval.
            started = time.monotonic()
            if self._options.tool_workers > 1 and not tool.sequential:
                self._start(Going(place, tool, call, started))
                return
            result = run(tool, call, self._ledger.tools, is_checked=self._is_as_made(place, tool, call))
        assert result is not None
        yield from self._finish(place, call, result, started)

    def _admitted(self, tool: Tool | None, call: ToolUseBlock) -> tuple[ToolUseBlock, ToolResultBlock | None]:
        """The call as it is to be run, and its result if it is not to be run."""
        if self._ledger.repeats(call):
            times = self._options.max_repeated_calls
            return call, failure(call, f"not run: you have made this very call {times} times; its result is above")
        text = problem(tool, call, self._ledger.tools)
        if tool is None or text is not None:
            return call, failure(call, text or "")
        before = PreToolUseEvent(call.name, _copied(call.input), call.id, self._history)
        before, block = ask(self._options.hooks.pre_tool_use, before, action="modify_input", changes="tool_input")
        call = replace(call, input=before.tool_input)
        return call, _blocked(call, block.reason) if block else self._refused(tool, call)

    def _is_as_made(self, place: int, tool: Tool, call: ToolUseBlock) -> bool:
        """Whether nobody can have changed the call since it was checked; a check costs 50 µs."""
        if self._options.hooks.pre_tool_use or self._options.approve or tool.approve:
            return False
        return call.input == self._turn.calls[place].input  # whoever heard CallStarted may have edited that

    def _refused(self, tool: Tool, call: ToolUseBlock) -> ToolResultBlock | None:
        """The result of a call that is not approved."""
        approve = tool.approve or self._options.approve
        if approve is None or tool.name in self._ledger.approved or self._interrupt.is_set():
            return None
        said = verdict(approve, masked(tool, call))
        if said.answer == "always":
            self._ledger.approved.add(tool.name)
        if said.answer != "no":
            return None
        content = {"error": "not run: the user refused this call", "reason": said.reason or "No reason given"}
        return _error(call, content | {"tool": call.name, "id": call.id})

    def _start(self, going: Going) -> None:
        """Has a thread run the call. It is a daemon: Ctrl-C must not have to wait for it."""
        context, tools, done = contextvars.copy_context(), self._ledger.tools, self._done
        is_checked = self._is_as_made(going.place, going.tool, going.call)

        def labour() -> None:
            outcome: ToolResultBlock | BaseException
            try:
                outcome = context.run(partial(run, going.tool, going.call, tools, is_checked=is_checked))
            except BaseException as exc:  # KeyboardInterrupt and its like: goes on in the caller's thread
                outcome = exc
            done.put((going.place, outcome))

        self._going[going.place] = going
        threading.Thread(target=labour, name=f"openagent tool {going.tool.name}", daemon=True).start()

    def _next(self) -> Generator[Event, None, None]:
        """Waits for the next thread to end."""
        place, outcome = self._done.get()
        going = self._going.pop(place)
        if isinstance(outcome, BaseException):
            raise outcome
        yield from self._finish(place, going.call, outcome, going.started)

    def _finish(
        self, place: int, call: ToolUseBlock, result: ToolResultBlock, started: float
    ) -> Generator[Event, None, None]:
        self._in_hand[place] = result
        if not self._interrupt.is_set():
            result = self._reviewed(call, result)
        self._ledger.chars += len(result_text(result))
        self._found[place] = result
        yield self._told(place, call, started)

    def _told(self, place: int, call: ToolUseBlock, started: float) -> CallFinished:
        """Tells the adapter all results whose turn it is; returns the event of this one."""
        while self._recorded in self._found:
            known = self._found[self._recorded]
            self._recorded += 1
            self._adapter.record_tool_result(known.tool_use_id, known.content, known.is_error)
        result, seconds = self._found[place], time.monotonic() - started
        logs.call(call.name, is_error=result.is_error, seconds=seconds)
        tool = self._ledger.tools.get(call.name)
        return CallFinished(masked(tool, call), masked_result(tool, call, result), seconds)

    def _reviewed(self, call: ToolUseBlock, result: ToolResultBlock) -> ToolResultBlock:
        """The result after the post hooks."""
        hooks = self._options.hooks.post_tool_use
        if not hooks:
            return result
        seen = (*self._history, Message("tool", [result]))
        event = PostToolUseEvent(call.name, call.input, call.id, result.content, result.is_error, seen)
        event, block = ask(hooks, event, action="modify_result", changes="tool_result")
        if block:
            return _blocked(call, block.reason)
        return replace(result, content=readable(event.tool_result))

    @property
    def _history(self) -> tuple[Message, ...]:
        """What hooks see: the history, the open turn, the results so far."""
        return (*self._before, *(Message("tool", [self._found[place]]) for place in sorted(self._found)))


def _key(input: dict[str, Any]) -> str:
    """Equal for equal arguments, in whatever order."""
    try:
        return repr(sorted(input.items()))
    except RecursionError:
        return ""


def _copied(input: dict[str, Any]) -> dict[str, Any]:
    """A copy for hooks and tools, who may edit it: the history keeps what the model said."""
    try:
        return deepcopy(input)
    except RecursionError:  # nested hundreds of levels deep
        return input


def _error(call: ToolUseBlock, content: dict[str, str]) -> ToolResultBlock:
    return ToolResultBlock(call.id, content, is_error=True)


def _blocked(call: ToolUseBlock, reason: str) -> ToolResultBlock:
    content = {"error": "Tool execution blocked by hook", "reason": reason or "No reason provided"}
    return _error(call, content | {"tool": call.name, "id": call.id})
