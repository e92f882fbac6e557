"""Calls that a server left in the text, as some do for models whose format they do not know.

Only an answer that is nothing but calls is taken for calls: ``<tool_call>{...}</tool_call>`` once or more,
or one bare JSON object with ``name`` and ``arguments``, of tools that were offered. An answer that talks
about a call stays text. Who has it: Qwen2.5-Coder on llama.cpp.

Owns: recognising such an answer. Does not know: wire formats; it wraps any adapter.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from . import codec
from .adapters import ProviderAdapter, Transport
from .events import CallAnnounced, Event, TextDelta, TurnFinished
from .messages import ContentBlock, FinishReason, Message, ToolUseBlock
from .options import AgentOptions
from .tools import Tool

_TAGGED = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_BEGINNINGS = ("<tool_call>", "{")


class Rescued(ProviderAdapter):
    """An adapter that hands out another's turns, calls in the text taken for calls."""

    def __init__(
        self,
        options: AgentOptions,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        transport: Transport,
        *,
        inner: Callable[..., ProviderAdapter],
    ) -> None:
        super().__init__(options, messages, tools, transport)
        self._inner = inner(options, messages, tools, transport)

    @property
    def heard(self) -> list[ContentBlock]:
        """The text heard so far in the round under way."""
        return self._inner.heard

    def execute_round(
        self, final_response_instruction: str | None = None, include_tools: bool = True
    ) -> Iterator[Event]:
        """See ``ProviderAdapter``. Text is held back while it may still be a call."""
        pieces: list[str] = []
        is_held = include_tools
        turn: TurnFinished | None = None
        for event in self._inner.execute_round(final_response_instruction, include_tools):
            if isinstance(event, TurnFinished):
                turn = event
            elif is_held and isinstance(event, TextDelta):
                pieces.append(event.text)
                if len(pieces) < 20 and not may_be_call("".join(pieces)):
                    yield TextDelta("".join(pieces))
                    is_held = False
            else:
                yield event
        if turn is None:
            return
        held = "".join(pieces)
        names = [tool.name for tool in self.tools]
        calls = found_calls(held, names) if is_held and not turn.message.calls and turn.finish_reason == "stop" else []
        if calls:
            yield from (CallAnnounced(call.id, call.name) for call in calls)
            finish = FinishReason("tool_calls", turn.finish_reason.raw)
            turn = replace(turn, message=Message("assistant", [*calls]), finish_reason=finish)
        elif is_held and held:
            yield TextDelta(held)
        self._inner.turn = turn
        yield turn

    def record_assistant_turn(self) -> None:
        """See ``ProviderAdapter``."""
        self._inner.record_assistant_turn()

    def record_tool_result(self, call_id: str, content: Any, is_error: bool = False) -> None:
        """See ``ProviderAdapter``."""
        self._inner.record_tool_result(call_id, content, is_error)


def may_be_call(text: str) -> bool:
    """Whether a text may be the beginning of calls.

    >>> [may_be_call(text) for text in ("", " <tool", "{", "<b>", "Use {")]
    [True, True, True, False, False]
    """
    start = text.lstrip()[:11]
    return any(start.startswith(beginning) or beginning.startswith(start) for beginning in _BEGINNINGS)


def found_calls(text: str, names: Sequence[str]) -> list[ToolUseBlock]:
    """The calls that a text consists of; none if it is anything else."""
    tagged = _TAGGED.findall(text)
    if tagged and _TAGGED.sub("", text).strip():
        return []
    calls = [_call(part, names) for part in tagged or [text]]
    return [call for call in calls if call is not None] if None not in calls else []


def _call(text: str, names: Sequence[str]) -> ToolUseBlock | None:
    try:
        said = codec.parse(text)
    except ValueError:
        return None
    if not isinstance(said, dict) or said.keys() != {"name", "arguments"} or said["name"] not in names:
        return None
    if not isinstance(said["arguments"], dict):
        return None
    return ToolUseBlock(f"call_{uuid.uuid4().hex}", said["name"], said["arguments"])
