"""The wheel: ask, run what was asked for, ask again. The same for every provider.

Two promises live here. The history is whole: a turn with calls enters it together with all its
results in one step, also when an error, Ctrl-C or a caller who walks away ends the round. And nothing
half-heard is run: calls are run, or handed out, only after their turn has ended well.

Owns: rounds, the last round, what ends an exchange. Does not know: how calls are run, JSON of a provider,
network.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property
from typing import TYPE_CHECKING

from .adapters import ProviderAdapter
from .events import Cause, ReasoningDelta, RoundEvent, RoundFinished, RunFinished, TurnFinished
from .interrupt import Interrupt
from .messages import ContentBlock, FinishReason, Message, ToolResultBlock, ToolUseBlock, Usage
from .options import AgentOptions

if TYPE_CHECKING:
    from .calls import Ledger

MAX_PAUSES = 5

CUT = {"error": "not run: the answer was cut by the output limit"}
REFUSED = {"error": "not run: the answer was refused"}
NO_TOOLS = {"error": "not run: no tools were offered for this answer"}


class Exchange:
    """One prompt and all its rounds, over the history of a client.

    ``run`` is the exchange; the attributes say how far it has come.
    """

    def __init__(
        self,
        adapter: ProviderAdapter,
        options: AgentOptions,
        *,
        history: list[Message],
        interrupt: Interrupt,
        approved: set[str],
    ) -> None:
        self.history = history
        self.is_auto = options.auto_execute_tools
        self.finish_reason: FinishReason | None = None
        self.usage: Usage | None = None
        self.reasoning: list[str] = []
        self._adapter = adapter
        self._options = options
        self._approved = approved
        self._interrupt = interrupt
        self._is_speaking = False  # a turn has begun and has not ended
        self._rounds = 0
        self._pauses = 0

    @cached_property
    def _ledger(self) -> Ledger:
        """What the calls of this exchange have taken so far."""
        from .calls import Ledger

        return Ledger(self._options, self._options.registry, self._approved)

    @property
    def partial(self) -> list[ContentBlock]:
        """The text heard of a turn that has not ended."""
        return self._adapter.heard if self._is_speaking else []

    def run(self) -> Generator[RoundEvent, None, None]:
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
            limit = self._ledger.limit() if results else None
            if cause is None and limit is not None and not self._options.final_response:
                cause = "limit"
            if cause == "limit":
                finish = turn.finish_reason
                self.finish_reason = FinishReason("max_tool_iterations", finish.raw, is_truncated=finish.is_truncated)
            message = self._shown(turn.message)
            yield RoundFinished(self._rounds, turn.finish_reason, turn.usage, message, turn.response)
            if cause is not None:
                yield RunFinished(cause, self.finish_reason, self.usage)
                return

    def _turn(
        self, instruction: str | None, *, include_tools: bool
    ) -> Generator[RoundEvent, None, TurnFinished | None]:
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

    def _answer_calls(self, turn: TurnFinished, is_final: bool) -> Generator[RoundEvent, None, list[ToolResultBlock]]:
        """Keeps the turn, with the results of its calls if it is ours to answer them; returns the results."""
        calls = turn.message.calls
        if not self.is_auto or not calls:
            if turn.finish_reason == "pause_turn":
                self._adapter.record_assistant_turn()
            self._keep(turn, [])
            return []
        from .calls import Answering

        refusal = self._refusal(turn, is_final)
        answering = Answering(
            turn.message, self.history, ledger=self._ledger, adapter=self._adapter, interrupt=self._interrupt
        )
        try:
            try:
                yield from answering.run(refusal)
            finally:
                self._keep(turn, answering.results)
        except KeyboardInterrupt:  # may have come while the turn was being kept, and its calls have been run
            self._keep(turn, answering.results)
            raise
        self._ledger.rounds += refusal is None
        return [] if refusal else answering.results

    def _refusal(self, turn: TurnFinished, is_final: bool) -> dict[str, str] | None:
        """The result of calls that are not run, whatever they are."""
        if turn.finish_reason.is_truncated:
            return CUT
        if turn.finish_reason == "content_filter":
            return REFUSED
        return NO_TOOLS if is_final or self._options.max_tool_iterations == 0 else None

    def _keep(self, turn: TurnFinished, results: list[ToolResultBlock]) -> None:
        """The turn enters the history, with its results, in one step; in auto mode no call stays open."""
        message = turn.message
        if not message.content and not message.provider_state:
            return
        if self.is_auto and (missing := message.calls[len(results) :]):
            from .calls import NOT_RUN

            results = [*results, *(ToolResultBlock(call.id, NOT_RUN, is_error=True) for call in missing)]
        place = len(self.history) - 1 - len(results)
        if place < 0 or self.history[place] is not message:  # else Ctrl-C came just after it had been kept
            self.history.extend([message, *_messages(results)])

    def _shown(self, message: Message) -> Message:
        """The message as events show it: sensitive arguments masked, where the calls are ours to run."""
        if not self.is_auto or not message.calls or not any(tool.sensitive for tool in self._ledger.tools.values()):
            return message
        from .running import masked

        tools = self._ledger.tools
        content = [
            masked(tools.get(block.name), block) if isinstance(block, ToolUseBlock) else block
            for block in message.content
        ]
        return Message(message.role, content)


def _messages(results: list[ToolResultBlock]) -> list[Message]:
    return [Message("tool", [result]) for result in results]
