"""Tools for models and servers that have none: each decision is JSON, held to a schema by the server.

A small model likes to make the same call again: then it is asked for the answer instead, without constraint.
What comes out is what a server with tools would have said: the same blocks, events and history.

Owns: the order of decisions and answers; which adapter the tools need. Does not know: wire formats; it wraps
any adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .abilities import TOOLS, Abilities, says_no_tools
from .adapters import ProviderAdapter, Transport
from .decisions import SIGNAL, AnswerText, decision_schema, described, plain, read_decision
from .errors import APIError
from .events import CallAnnounced, ResponseStarted, RoundEvent, TextDelta, TurnFinished, spread
from .messages import ContentBlock, FinishReason, Message, TextBlock, ToolUseBlock, Usage
from .options import AgentOptions
from .rescue import Rescued
from .tools import Tool

MakeAdapter = Callable[[AgentOptions, Sequence[Message], Sequence[Tool], Transport], ProviderAdapter]


class Emulated(ProviderAdapter):
    """An adapter that does with another's plain rounds what a server with tools does."""

    def __init__(
        self,
        options: AgentOptions,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        transport: Transport,
        *,
        inner: MakeAdapter,
    ) -> None:
        super().__init__(options, messages, [tool for tool in tools if tool.vendor is None], transport)
        self._inner = inner
        self._round: ProviderAdapter | None = None
        self._answer_text: AnswerText | None = None

    @property
    def heard(self) -> list[ContentBlock]:
        """The text heard so far in the round under way."""
        if self._answer_text is not None:
            return [TextBlock(self._answer_text.whole)] if self._answer_text.whole else []
        return self._round.heard if self._round else []

    def execute_round(
        self, final_response_instruction: str | None = None, include_tools: bool = True
    ) -> Iterator[RoundEvent]:
        """See ``ProviderAdapter.execute_round``."""
        self.turn = None
        offered = self._offered() if include_tools else []
        spent: Usage | None = None
        if offered:
            decision, turn = yield from self._decision(offered, final_response_instruction)
            is_enough = decision == SIGNAL if isinstance(decision, str) else self._was_made(decision)
            if turn is None or not is_enough:
                yield from self._ended(turn)
                return
            spent = turn.usage
        turn = yield from self._answer(final_response_instruction, is_first=not offered)
        if turn is not None and spent is not None:
            turn = replace(turn, usage=spent if turn.usage is None else spent + turn.usage)
        yield from self._ended(turn)

    def _ended(self, turn: TurnFinished | None) -> Iterator[RoundEvent]:
        self.turn = turn
        if turn is not None:
            yield turn

    def _offered(self) -> list[Tool]:
        choice = self.options.tool_choice
        if choice == "none":
            return []
        is_forced = choice not in (None, "auto", "required") and not self.has_recorded
        return [tool for tool in self.tools if tool.name == choice] if is_forced else self.tools

    def _decision(
        self, tools: list[Tool], instruction: str | None
    ) -> Generator[RoundEvent, None, tuple[ToolUseBlock | str, TurnFinished | None]]:
        """Asks for a decision; the turn is None if it was interrupted."""
        must_call = self.options.tool_choice not in (None, "auto") and not self.has_recorded
        form = self.options.response_format
        answer = dict(form) if isinstance(form, Mapping) else {"type": "string"}
        if self._has_results:
            answer = {"const": SIGNAL}  # it is then written without constraint, which small models need
        schema = decision_schema(tools, None if must_call else answer)
        system = "\n\n".join(filter(None, (self.options.system_prompt, described(tools), instruction)))
        text = self._answer_text = AnswerText()
        turn: TurnFinished | None = None
        for event in spread(self._asked(plain(self.messages), system, schema)):
            if isinstance(event, TurnFinished):
                turn = event
            elif not isinstance(event, TextDelta):
                yield event
            elif not self._has_results and (piece := text.fed(event.text)):
                yield TextDelta(piece)
        if turn is None:
            return "", None
        if turn.finish_reason.is_truncated or turn.finish_reason == "content_filter":
            return text.whole, _spoken(turn, text.whole)
        found = read_decision(turn.message.text, tools)
        if isinstance(found, ToolUseBlock):
            if not self._was_made(found):
                yield CallAnnounced(found.id, found.name)
            finish = FinishReason("tool_calls", turn.finish_reason.raw)
            return found, replace(turn, message=Message("assistant", [found]), finish_reason=finish)
        if not text.whole and found and found != SIGNAL:
            yield TextDelta(found)
        return found, _spoken(turn, found)

    def _answer(self, instruction: str | None, *, is_first: bool) -> Generator[RoundEvent, None, TurnFinished | None]:
        """Asks for the answer, without tools and without constraint."""
        self._answer_text = None
        system = "\n\n".join(filter(None, (self.options.system_prompt, instruction)))
        turn: TurnFinished | None = None
        for event in self._asked(plain(self.messages, ask_again=True), system, self.options.response_format):
            if isinstance(event, TurnFinished):
                turn = event
            elif is_first or not isinstance(event, ResponseStarted):
                yield event
        return turn

    def _asked(self, messages: list[Message], system: str, form: Any) -> Iterator[RoundEvent]:
        options = self.options.replace(
            system_prompt=system, response_format=form, tools=(), tool_choice=None, parallel_tool_calls=None
        )
        self._round = self._inner(options, messages, [], self.transport)
        return self._round.execute_round(None, False)

    @property
    def _has_results(self) -> bool:
        return bool(self.messages and self.messages[-1].results)

    def _was_made(self, call: ToolUseBlock) -> bool:
        """Whether the same call has been answered since the last prompt."""
        for message in reversed(self.messages):
            if message.role == "user":
                return False
            if any((made.name, made.input) == (call.name, call.input) for made in message.calls):
                return True
        return False


class WithFallback(ProviderAdapter):
    """Native tools, until the server says that it has none; then emulated ones, for good."""

    def __init__(
        self,
        options: AgentOptions,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        transport: Transport,
        *,
        inner: MakeAdapter,
        native: MakeAdapter,
        abilities: Abilities,
    ) -> None:
        super().__init__(options, messages, tools, transport)
        self._now = native(options, messages, tools, transport)
        self._inner = inner
        self._abilities = abilities

    @property
    def heard(self) -> list[ContentBlock]:
        """The text heard so far in the round under way."""
        return self._now.heard

    def execute_round(
        self, final_response_instruction: str | None = None, include_tools: bool = True
    ) -> Iterator[RoundEvent]:
        """See ``ProviderAdapter.execute_round``."""
        try:
            yield from self._now.execute_round(final_response_instruction, include_tools)
        except APIError as exc:
            if isinstance(self._now, Emulated) or not says_no_tools(exc):
                raise
            self._abilities.note(self.options, TOOLS)
            self._now = Emulated(self.options, self._now.messages, self.tools, self.transport, inner=self._inner)
            yield from self._now.execute_round(final_response_instruction, include_tools)

    def record_assistant_turn(self) -> None:
        """See ``ProviderAdapter``."""
        self._now.record_assistant_turn()

    def record_tool_result(self, call_id: str, content: Any, is_error: bool = False) -> None:
        """See ``ProviderAdapter``."""
        self._now.record_tool_result(call_id, content, is_error)


def tooled(inner: MakeAdapter, options: AgentOptions, abilities: Abilities) -> MakeAdapter:
    """What makes adapters with the tools that the options ask for, as far as the server has them."""
    if options.tool_mode == "emulated" or (options.tool_mode == "auto" and abilities.lacks(options, TOOLS)):
        return partial(Emulated, inner=inner)
    native = partial(Rescued, inner=inner) if options.rescue_tool_calls else inner
    return (
        native
        if options.tool_mode == "native"
        else partial(WithFallback, inner=inner, native=native, abilities=abilities)
    )


def _spoken(turn: TurnFinished, text: str) -> TurnFinished:
    return replace(turn, message=Message("assistant", [TextBlock(text)] if text else []))
