"""The wheel: ask, run what was asked for, ask again. The same for every provider.

Two promises live here. The history is whole: a turn with calls enters it together with all its
results in one step, also when an error, Ctrl-C or a caller who walks away ends the round. And nothing
half-heard is run: calls are run, or handed out, only after their turn has ended well.

Owns: rounds, limits, the order of hooks and tools, what ends an exchange.
Does not know: a provider's JSON, server-sent events, network.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from .adapters import ProviderAdapter, result_text
from .events import (
    CallFinished,
    CallStarted,
    Cause,
    Event,
    ReasoningDelta,
    RoundFinished,
    RunFinished,
    TurnFinished,
)
from .hooks import PostToolUseEvent, PreToolUseEvent, ask
from .interrupt import Interrupt
from .messages import ContentBlock, FinishReason, Message, ToolResultBlock, ToolUseBlock, Usage
from .options import AgentOptions
from .readable import readable
from .tools import Tool, failure, problem, run

MAX_PAUSES = 5

CANCELLED = {"error": "Tool execution cancelled"}
MAYBE_RUN = {"error": "interrupted while it ran: it may have had effects"}
NOT_RUN = {"error": "not run: the exchange was interrupted before it"}
CUT = {"error": "not run: the answer was cut by the output limit"}
REFUSED = {"error": "not run: the answer was refused"}
NO_TOOLS = {"error": "not run: no tools were offered for this answer"}

ROUNDS_REACHED = (
    "You have used all the rounds of tool calls that are allowed for this question. No tools are available now. "
    "Answer as well as you can from what you already have."
)
CALLS_REACHED = (
    "You have made all the tool calls that are allowed for this question. No tools are available now. "
    "Answer as well as you can from what you already have."
)
SIZE_REACHED = (
    "The tool results have reached the size that is allowed for this question. No tools are available now. "
    "Answer as well as you can from what you already have."
)


class Exchange:
    """One prompt and all its rounds, over the history of a client.

    ``run`` is the exchange; the attributes say how far it has come.
    """

    def __init__(
        self,
        adapter: ProviderAdapter,
        options: AgentOptions,
        *,
        tools: dict[str, Tool],
        history: list[Message],
        interrupt: Interrupt,
    ) -> None:
        self.history = history
        self.is_auto = options.auto_execute_tools
        self.finish_reason: FinishReason | None = None
        self.usage: Usage | None = None
        self.reasoning: list[str] = []
        self._adapter = adapter
        self._options = options
        self._tools = tools
        self._interrupt = interrupt
        self._is_speaking = False  # a turn has begun and has not ended
        self._rounds = 0
        self._tool_rounds = 0
        self._calls = 0
        self._result_chars = 0
        self._pauses = 0
        self._in_hand: ToolResultBlock | None = None  # what a call is answered with if the round ends now

    @property
    def partial(self) -> list[ContentBlock]:
        """The text heard of a turn that has not ended."""
        return self._adapter.heard if self._is_speaking else []

    def run(self) -> Generator[Event, None, None]:
        """The events of all rounds; the last is ``RunFinished``, unless an error is raised."""
        limit: str | None = None
        while True:
            is_final = limit is not None
            turn = yield from self._turn(limit, include_tools=not is_final and self._options.max_tool_iterations > 0)
            if turn is None:
                yield RunFinished("interrupted", None, self.usage)
                return
            results = yield from self._answer_calls(turn, is_final)
            cause = self._cause(turn, is_final)
            if cause is None and self._interrupt.is_set():
                cause, self.finish_reason = "interrupted", None
            limit = self._limit() if results else None
            if cause is None and limit is not None and not self._options.final_response:
                cause = "limit"
            if cause == "limit":
                finish = turn.finish_reason
                self.finish_reason = FinishReason("max_tool_iterations", finish.raw, is_truncated=finish.is_truncated)
            yield RoundFinished(self._rounds, turn.finish_reason, turn.usage, turn.message, turn.response)
            if cause is not None:
                yield RunFinished(cause, self.finish_reason, self.usage)
                return

    def _turn(self, instruction: str | None, *, include_tools: bool) -> Generator[Event, None, TurnFinished | None]:
        """Yields the events of one turn and returns the turn; None if it was interrupted."""
        self._rounds += 1
        self._is_speaking = True
        self.finish_reason = None
        turn: TurnFinished | None = None
        try:
            for event in self._adapter.execute_round(instruction, include_tools):
                if isinstance(event, TurnFinished):
                    turn, self._is_speaking = event, False
                elif self._interrupt.is_set():
                    continue  # what was read together with the interrupt is not told
                elif isinstance(event, ReasoningDelta):
                    if self._options.include_reasoning:
                        self.reasoning.append(event.text)
                        yield event
                else:
                    yield event
        except BaseException:
            # Ctrl-C, an error or a caller who left, after the turn had ended: it is kept all the same.
            if turn is not None:
                self.finish_reason = turn.finish_reason
                self._keep(turn, [])
            raise
        if turn is None:
            return None
        self.finish_reason = turn.finish_reason
        if turn.usage is not None:
            self.usage = turn.usage if self.usage is None else self.usage + turn.usage
        return turn

    def _cause(self, turn: TurnFinished, is_final: bool) -> Cause | None:
        """Why the exchange ends with this turn; None if it goes on."""
        if turn.finish_reason.is_truncated:
            return "limit" if is_final else "truncated"
        if is_final:
            return "limit"
        if turn.finish_reason == "content_filter":
            return "refused"
        if self.is_auto:
            if turn.message.calls and self._options.max_tool_iterations > 0:
                return None
            if turn.finish_reason == "pause_turn" and self._pauses < MAX_PAUSES:
                self._pauses += 1
                return None
        return "completed"

    def _answer_calls(self, turn: TurnFinished, is_final: bool) -> Generator[Event, None, list[ToolResultBlock]]:
        """Keeps the turn, with the results of its calls if it is ours to answer them; returns the results."""
        calls = turn.message.calls
        if not self.is_auto or not calls:
            if turn.finish_reason == "pause_turn":
                self._adapter.record_assistant_turn()
            self._keep(turn, [])
            return []
        refusal = self._refusal(turn, is_final)
        results: list[ToolResultBlock] = []
        try:
            self._adapter.record_assistant_turn()
            for call in calls:
                started = time.monotonic()
                content = refusal or self._limit_result() or (CANCELLED if self._interrupt.is_set() else None)
                if content is None:
                    call = yield from self._answer(call, (*self.history, turn.message, *_messages(results)))
                else:
                    self._in_hand = ToolResultBlock(call.id, content, is_error=True)
                result, self._in_hand = self._in_hand, None
                assert result is not None
                results.append(result)
                self._adapter.record_tool_result(result.tool_use_id, result.content, result.is_error)
                yield CallFinished(call, result, time.monotonic() - started)
        except BaseException:
            if self._in_hand is not None:
                results.append(self._in_hand)
            self._keep(turn, results)
            raise
        self._keep(turn, results)
        self._tool_rounds += refusal is None
        return [] if refusal else results

    def _refusal(self, turn: TurnFinished, is_final: bool) -> dict[str, str] | None:
        """The result of calls that are not run, whatever they are."""
        if turn.finish_reason.is_truncated:
            return CUT
        if turn.finish_reason == "content_filter":
            return REFUSED
        return NO_TOOLS if is_final or self._options.max_tool_iterations == 0 else None

    def _answer(self, call: ToolUseBlock, history: tuple[Message, ...]) -> Generator[Event, None, ToolUseBlock]:
        """Leaves the result of a call in hand; returns the call as it was run (R-50 to R-52)."""
        self._calls += 1
        tool = self._tools.get(call.name)
        text = problem(tool, call, self._tools)
        if text is not None:
            self._in_hand = failure(call, text)
        else:
            before = PreToolUseEvent(call.name, _copied(call.input), call.id, history)
            before, block = ask(self._options.hooks.pre_tool_use, before, action="modify_input", changes="tool_input")
            call = replace(call, input=before.tool_input)
            self._in_hand = _blocked(call, block.reason) if block else None
        if self._in_hand is None and self._interrupt.is_set():
            self._in_hand = ToolResultBlock(call.id, CANCELLED, is_error=True)
            return call
        if self._in_hand is None:
            yield CallStarted(call)
            self._in_hand = ToolResultBlock(call.id, MAYBE_RUN, is_error=True)  # until we know better
            self._in_hand = run(tool, call, self._tools)
        if not self._interrupt.is_set():
            self._in_hand = self._reviewed(call, self._in_hand, history)
        self._result_chars += len(result_text(self._in_hand))
        return call

    def _reviewed(self, call: ToolUseBlock, result: ToolResultBlock, history: tuple[Message, ...]) -> ToolResultBlock:
        """The result after the post hooks."""
        hooks = self._options.hooks.post_tool_use
        if not hooks:
            return result
        seen = (*history, Message("tool", [result]))
        event = PostToolUseEvent(call.name, call.input, call.id, result.content, result.is_error, seen)
        event, block = ask(hooks, event, action="modify_result", changes="tool_result")
        if block:
            return _blocked(call, block.reason)
        return replace(result, content=readable(event.tool_result))

    def _limit(self) -> str | None:
        """The instruction of the last round, if a limit has been reached."""
        if self._result_chars > self._options.max_tool_result_chars:
            return SIZE_REACHED
        if self._calls >= self._options.max_tool_calls:
            return CALLS_REACHED
        return ROUNDS_REACHED if self._tool_rounds >= self._options.max_tool_iterations else None

    def _limit_result(self) -> dict[str, str] | None:
        """What a call gets for a result, if a limit was reached within its round."""
        if self._result_chars > self._options.max_tool_result_chars:
            return {"error": f"not run. {SIZE_REACHED}"}
        if self._calls >= self._options.max_tool_calls:
            return {"error": f"not run. {CALLS_REACHED}"}
        return None

    def _keep(self, turn: TurnFinished, results: list[ToolResultBlock]) -> None:
        """The turn enters the history, with its results, in one step; in auto mode no call stays open."""
        message = turn.message
        if not message.content and not message.provider_state:
            return
        if self.is_auto:
            missing = message.calls[len(results) :]
            results = [*results, *(ToolResultBlock(call.id, NOT_RUN, is_error=True) for call in missing)]
        self.history.extend([message, *_messages(results)])


def _messages(results: list[ToolResultBlock]) -> list[Message]:
    return [Message("tool", [result]) for result in results]


def _copied(input: dict[str, Any]) -> dict[str, Any]:
    """A copy for hooks and tools, who may edit it: the history keeps what the model said."""
    try:
        return deepcopy(input)
    except RecursionError:  # nested hundreds of levels deep
        return input


def _blocked(call: ToolUseBlock, reason: str) -> ToolResultBlock:
    content = {
        "error": "Tool execution blocked by hook",
        "reason": reason or "No reason provided",
        "tool": call.name,
        "id": call.id,
    }
    return ToolResultBlock(call.id, content, is_error=True)
