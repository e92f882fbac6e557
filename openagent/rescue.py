"""Calls that a server left in the text, as some do for models whose format they do not know.

Only an answer that is nothing but calls, of tools that were offered, is taken for calls: in the markup of
the model's family (Hermes and Qwen, Mistral, Llama, DeepSeek), or as bare JSON with ``name`` and
``arguments`` whose arguments fit the tool. An answer that talks about a call stays text, and so does what
stands in a code fence: that is how a model shows a call to people.

Owns: recognising such an answer. Does not know: wire formats; it wraps any adapter.
Source: the models' chat templates; who has it: Qwen2.5-Coder on llama.cpp, and any server without the parser.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from . import codec
from .adapters import ProviderAdapter, Transport
from .events import CallAnnounced, RoundEvent, TextDelta, TurnFinished, spread
from .messages import ContentBlock, FinishReason, Message, ToolUseBlock
from .options import AgentOptions
from .schema import check, without_nulls
from .tools import Tool

# One call each, over and over until the end of the text. Compiled when they are needed.
_FORMS = (
    # Hermes, Qwen
    r"\s*<tool_call>(?P<json>\s*\{.*?)</tool_call>\s*",
    # Llama; Qwen3-Coder
    r"\s*(?:<tool_call>\s*)?<function=(?P<name>[\w-]+)>(?P<arguments>.*?)</function>(?:\s*</tool_call>)?\s*",
    # DeepSeek R1, V3; V3.1
    r"\s*(?:<｜tool▁calls▁begin｜>)?\s*<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<name>[\w-]+)"
    r"(?:\n```json\n|<｜tool▁sep｜>)(?P<arguments>\{.*?\})(?:\n```)?<｜tool▁call▁end｜>\s*(?:<｜tool▁calls▁end｜>)?\s*",
    # Mistral, since v11
    r"\s*\[TOOL_CALLS\](?P<name>[\w-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?(?P<arguments>\{.*?\})\s*(?=\[TOOL_CALLS\]|\Z)",
    # Mistral before; Llama; Phi, Granite
    r"\s*(?:\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call\|>)(?P<json>.*?)(?:<\|/tool_call\|>|<\|eo[mt]_id\|>|</s>)?\Z",
)
_PARAMETER = re.compile(r"\s*<parameter=([\w-]+)>\n?(.*?)\n?</parameter>\s*", re.DOTALL)
# How calls begin, blanks left out.
_TAGS = ("<tool_call>", "<function=", "<｜tool▁call", "[TOOL_CALLS]", "<|python_tag|>", "<|tool_call|>")
_KEYS = ("name", "arguments", "parameters", "function", "type")
_BEGINNINGS = (*_TAGS, *(f'{bracket}"{key}"' for bracket in ("{", "[{") for key in _KEYS))


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
    ) -> Iterator[RoundEvent]:
        """See ``ProviderAdapter``. Text is held back while it may still be a call."""
        pieces: list[str] = []
        is_held = include_tools
        turn: TurnFinished | None = None
        for event in spread(self._inner.execute_round(final_response_instruction, include_tools)):
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
        may_call = is_held and not turn.message.calls and turn.finish_reason in ("stop", "tool_calls")
        calls = found_calls(held, self.tools) if may_call else []
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

    >>> [may_be_call(text) for text in ("", " <tool", "[ {", '{"name": "a', '{"answer', "<b>", "Use {")]
    [True, True, True, True, False, False, False]
    """
    start = "".join(text[:200].split())[:20]
    return any(start.startswith(beginning) or beginning.startswith(start) for beginning in _BEGINNINGS)


def found_calls(text: str, tools: Sequence[Tool]) -> list[ToolUseBlock]:
    """The calls that a text consists of; none if it is anything else."""
    text = text.strip()
    offered = {tool.name: tool for tool in tools if tool.vendor is None}
    for form in _FORMS:
        if matches := _matches(re.compile(form, re.DOTALL), text):
            marked = [said for match in matches for said in _said(match.groupdict(), offered)]
            return _calls(marked, offered)
    bare = _values(text)
    return [] if any(_is_talk(said, offered) for said in bare) else _calls(bare, offered)


def _matches(form: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The matches that a text consists of; none if something is left."""
    found: list[re.Match[str]] = []
    place = 0
    while place < len(text):
        match = form.match(text, place)
        if match is None:
            return []
        found.append(match)
        place = match.end()
    return found


def _said(parts: dict[str, Any], offered: dict[str, Tool]) -> list[Any]:
    """What one match says: objects with ``name`` and ``arguments``, if it is right."""
    if "json" in parts:
        return _values(parts["json"]) or [None]
    name, written = parts["name"], parts["arguments"]
    if name in offered and written.strip().startswith("<parameter="):
        return [{"name": name, "arguments": _parameters(written, offered[name])}]
    return [{"name": name, "arguments": _parsed(written)}]


def _parameters(written: str, tool: Tool) -> dict[str, Any] | None:
    """Qwen3-Coder's arguments: texts as they are, all else as JSON."""
    kinds = tool.input_schema.get("properties", {})
    pairs = [match.groups() for match in _matches(_PARAMETER, written)]
    texts = {name for name, kind in kinds.items() if isinstance(kind, dict) and kind.get("type") == "string"}
    return {name: value if name in texts else _parsed(value, value) for name, value in pairs} or None


def _parsed(text: str, otherwise: Any = None) -> Any:
    try:
        return codec.parse(text)
    except ValueError:
        return otherwise


def _values(text: str) -> list[Any]:
    """The JSON values that a text consists of, lists of them unpacked; none if it is anything else."""
    value = _parsed(text)
    if value is None:
        value = [_parsed(line) for line in text.splitlines() if line.strip()]
    return value if isinstance(value, list) else [value]


def _calls(said: list[Any], offered: dict[str, Tool]) -> list[ToolUseBlock]:
    """A call for each of these, or none at all if one is no call of a tool that was offered."""
    calls = []
    for value in map(_unpacked, said):
        arguments = value.get("arguments")
        if value.keys() != {"name", "arguments"} or value["name"] not in offered or not isinstance(arguments, dict):
            return []
        calls.append(ToolUseBlock(f"call_{uuid.uuid4().hex}", value["name"], arguments))
    return calls


def _unpacked(value: Any) -> dict[str, Any]:
    """The call with the keys ``name`` and ``arguments``: OpenAI packs it, Llama says ``parameters``."""
    if not isinstance(value, dict):
        return {}
    if value.get("type") == "function":
        value = {name: part for name, part in value.items() if name not in ("type", "id")}
    if value.keys() == {"function"} and isinstance(value["function"], dict):
        value = value["function"]
    if value.keys() == {"name", "parameters"}:
        value = {"name": value["name"], "arguments": value["parameters"]}
    return value if isinstance(value.get("name"), str) else {}


def _is_talk(value: Any, offered: dict[str, Tool]) -> bool:
    """Whether it only looks like a call: a tool's own schema, an example with blanks to be filled in."""
    call = _unpacked(value)
    tool = offered.get(call.get("name", ""))
    if tool is None:
        return True
    return check(tool.input_schema, without_nulls(tool.input_schema, call.get("arguments"))) is not None
