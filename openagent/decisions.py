"""Decisions of a model whose tools are emulated: what it is told, what it may write, what it meant.

The tools stand in the system prompt; a decision is ``{"tool": name, "arguments": {...}}`` or
``{"answer": text}``; calls and results of the conversation are told as plain text.

Owns: the prompt, the schema, reading decisions. Does not know: adapters' rounds, wire formats.
Source: llama.cpp's grammars, https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from . import codec
from .adapters import result_blocks, result_text, written
from .errors import InvalidResponseError
from .messages import ContentBlock, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock
from .partial_json import PartialText
from .tools import Tool

INTRODUCTION = "You can use these tools:"
RULE = (
    'Pick the tool that helps with the question and reply with JSON: {"tool": its name, "arguments": {its arguments}}. '
    'Otherwise: {"answer": text}.'
)
SIGNAL = "now"
ANSWER_NOW = "\nNow answer in one short sentence with this result: "


def described(tools: Sequence[Tool]) -> str:
    """The tools as the system prompt has them."""
    return "\n".join([INTRODUCTION, *map(_line, tools), "", RULE])


def _line(tool: Tool) -> str:
    schema = tool.input_schema
    required = schema.get("required", ())
    parameters = (
        f"{name}{'' if name in required else '?'}: {_kind(kind)}" for name, kind in schema.get("properties", {}).items()
    )
    return f"- {tool.name}({', '.join(parameters)}): {tool.description}"


def _kind(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    if "enum" in schema:
        kind = "|".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    else:
        kind = str(schema.get("type") or "any") if not isinstance(schema.get("type"), list) else "any"
        if schema.keys() & {"properties", "items", "anyOf", "$ref"}:
            kind = written({key: value for key, value in schema.items() if key != "description"})
    about = schema.get("description")
    return f"{kind} ({about})" if about else kind


def decision_schema(tools: Sequence[Tool], answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """The JSON Schema of a decision: a call of one of the tools, or an answer unless that is None."""
    shared: dict[str, Any] = {}
    branches = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool.name}, "arguments": _rooted(tool.name, tool.input_schema, shared)},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    if answer is not None:
        branches.append(
            {
                "type": "object",
                "properties": {"answer": _rooted("answer ", answer, shared)},
                "required": ["answer"],
                "additionalProperties": False,
            }
        )
    return {"anyOf": branches, "$defs": shared} if shared else {"anyOf": branches}


def _rooted(name: str, schema: Mapping[str, Any], shared: dict[str, Any]) -> Any:
    """The schema at a place where its references still find what they mean."""
    if '"$ref"' not in json.dumps(schema):
        return dict(schema)
    place = f"#/$defs/{name}"
    shared[name] = _moved(schema, place)
    return {"$ref": place}


def _moved(part: Any, place: str) -> Any:
    if isinstance(part, list):
        return [_moved(item, place) for item in part]
    if not isinstance(part, Mapping):
        return part
    return {
        key: place + value[1:]
        if key == "$ref" and isinstance(value, str) and value[:1] == "#"
        else _moved(value, place)
        for key, value in part.items()
    }


def read_decision(text: str, tools: Sequence[Tool]) -> ToolUseBlock | str:
    """The call or the answer that a decision says.

    ``InvalidResponseError`` if it says neither: then the server did not hold the model to the schema.
    """
    try:
        said = codec.parse(text)
    except ValueError:
        said = None
    if isinstance(said, dict):
        name, arguments = said.get("tool"), said.get("arguments")
        if isinstance(arguments, dict) and any(tool.name == name for tool in tools):
            return ToolUseBlock(f"call_{uuid.uuid4().hex}", str(name), arguments)
        if said.keys() == {"answer"}:
            answer = said["answer"]
            return codec.mend(answer) if isinstance(answer, str) else codec.dump(answer)
    raise InvalidResponseError(
        f"the server did not hold the answer to the JSON Schema that emulated tools need; it said {text[:200]!r}. "
        "Use a server with structured output (with llama.cpp, only protocol='openai-chat' has it), "
        "or tool_mode='native'",
        body=text[:2000],
        blocks=[TextBlock(text)] if text else [],
    )


class AnswerText:
    """The text of ``{"answer": "..."}`` as far as it has come, whatever pieces it comes in."""

    _START = re.compile(r'\s*\{\s*"answer"\s*:\s*"')

    def __init__(self) -> None:
        self._text: PartialText | None = None
        self._waiting = ""

    @property
    def whole(self) -> str:
        """All of it so far."""
        return self._text.text() or "" if self._text is not None else ""

    def fed(self, piece: str) -> str:
        """What a further piece of the JSON adds to the text."""
        if self._text is None:
            if len(self._waiting) >= 100:  # it is something else
                return ""
            self._waiting += piece
            found = self._START.match(self._waiting)
            if not found:
                return ""
            self._text, piece = PartialText(), self._waiting[found.end() :]
        if self._text.is_closed or self._text.is_broken:
            return ""
        return self._text.feed(piece)[0]


def plain(messages: Sequence[Message], *, ask_again: bool = False) -> list[Message]:
    """The conversation without calls and results: decisions as the model wrote them, results said by the user.

    ``ask_again`` puts the last question behind the results at the end, where a small model can see it.
    """
    said: list[Message] = []
    calls: dict[str, ToolUseBlock] = {}
    for message in messages:
        calls |= {call.id: call for call in message.calls}
        content: list[ContentBlock] = []
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                content.append(TextBlock(written({"tool": block.name, "arguments": block.input})))
            elif isinstance(block, ToolResultBlock):
                content += _told(block, calls.get(block.tool_use_id))
            else:
                content.append(block)
        if content == message.content and message.role != "tool":
            said.append(message)
        elif message.role == "tool" and said and said[-1].role == "user":
            said[-1] = Message("user", [*said[-1].content, *content])
        else:
            said.append(Message("user" if message.role == "tool" else message.role, content))
    if ask_again and messages and messages[-1].results:
        question = next((message.text for message in reversed(messages) if message.role == "user" and message.text), "")
        said[-1] = Message("user", [*said[-1].content, TextBlock(ANSWER_NOW + question)])
    return said


def _told(result: ToolResultBlock, call: ToolUseBlock | None) -> list[ContentBlock]:
    """A result as the user would say it: ``add(1, 2) = 3``."""
    blocks = result_blocks(result)
    text = " ".join(block.text for block in blocks if isinstance(block, TextBlock)) if blocks else result_text(result)
    values = (value if isinstance(value, str) else written(value) for value in call.input.values()) if call else ()
    said = f"{call.name}({', '.join(values)}) = {text}" if call else f"Tool result: {text}"
    return [TextBlock(said), *(block for block in blocks if isinstance(block, ImageBlock))]
