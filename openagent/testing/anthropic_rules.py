"""The rules that an Anthropic Messages server has for requests.

Owns: what is refused on this wire. Does not know: sockets, the other wires.
Source: https://docs.anthropic.com/en/api/messages, .../tool-use, .../extended-thinking and the 400
answers of its server
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .strict import (
    check_answer_schema,
    check_positive,
    check_schema,
    check_text,
    check_tool_names,
    checked_objects,
    demand,
)
from .wire import Memory

_FOREIGN = (
    "input",
    "instructions",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "parallel_tool_calls",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "stream_options",
)
_BLOCKS = {
    "user": ("text", "image", "document", "search_result", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"),
}
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_CALL_ID = re.compile(r"[A-Za-z0-9_-]+")
_MEDIA = ("image/png", "image/jpeg", "image/gif", "image/webp")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def check(body: Mapping[str, Any], headers: Mapping[str, str], memory: Memory) -> None:
    """Refuse a request that a strict server of this wire refuses."""
    demand(headers.get("anthropic-version"), "anthropic-version: header is required")
    both = headers.get("authorization") is not None and headers.get("x-api-key") is not None
    demand(not both, "Only one of the headers 'x-api-key' and 'authorization' is allowed.")
    for name in _FOREIGN:
        demand(name not in body, f"{name}: Extra inputs are not permitted")
    demand("max_tokens" in body, "max_tokens: Field required")
    check_positive(body, "max_tokens")
    _check_system(body)
    _check_tools(body)
    form = (body.get("output_config") or {}).get("format") or {}
    check_answer_schema(form.get("schema"), "output_config.format.schema", all_required=False)
    messages = checked_objects(body.get("messages"), "messages")
    for index, message in enumerate(messages):
        _check_message(message, f"messages.{index}", memory)
    demand(messages[0]["role"] == "user", 'messages: first message must use the "user" role')
    _check_results(messages)
    _check_end(body, messages)


def _check_system(body: Mapping[str, Any]) -> None:
    system = body.get("system", "-")
    if isinstance(system, str):
        _check_spoken(system, "system")
        return
    for index, block in enumerate(checked_objects(system, "system")):
        demand(block.get("type") == "text", f"system.{index}.type: Input should be 'text'")
        _check_spoken(block.get("text"), f"system.{index}.text")


def _check_tools(body: Mapping[str, Any]) -> None:
    tools = body.get("tools", [])
    names = []
    for index, tool in enumerate(checked_objects(tools, "tools") if tools != [] else []):
        name, where = tool.get("name"), f"tools.{index}"
        good = isinstance(name, str) and _TOOL_NAME.fullmatch(name)
        demand(good, f"{where}.name: String should match pattern '^{_TOOL_NAME.pattern}$'")
        if tool.get("type", "custom") == "custom":  # others are the vendor's own
            check_schema(tool.get("input_schema"), f"{where}.input_schema")
        names.append(name)
    check_tool_names(names)
    if "tool_choice" not in body:
        return
    demand(tools, "tool_choice may only be specified while providing tools")
    choice = body["tool_choice"]
    kind = choice.get("type") if isinstance(choice, dict) else None
    demand(kind in ("auto", "any", "tool", "none"), "tool_choice: expected an object of type auto, any, tool or none")
    demand(kind != "tool" or choice.get("name") in names, f"Tool '{choice.get('name')}' not found in provided tools")


def _check_message(message: dict[str, Any], where: str, memory: Memory) -> None:
    role, content = message.get("role"), message.get("content")
    demand(role in _BLOCKS, f'{where}.role: Input should be "user" or "assistant"')
    if isinstance(content, str):
        _check_spoken(content, f"{where}.content")
        return
    blocks = checked_objects(content, f"{where}.content")
    for index, block in enumerate(blocks):
        kind, here = block.get("type"), f"{where}.content.{index}"
        known = kind in _BLOCKS[str(role)] or (role == "assistant" and str(kind).endswith("_tool_result"))
        demand(known, f"{here}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
        _check_block(block, here, memory)
    kinds = [block["type"] in ("thinking", "redacted_thinking") for block in blocks]
    demand(kinds[0] or not any(kinds), f"{where}.content.0.type: Expected `thinking` or `redacted_thinking` first.")


def _check_block(block: dict[str, Any], where: str, memory: Memory) -> None:
    kind = block["type"]
    if kind == "text":
        _check_spoken(block.get("text"), f"{where}.text")
    elif kind == "image":
        _check_image(block.get("source"), f"{where}.source")
    elif kind == "thinking":
        text, seal = block.get("thinking"), block.get("signature")
        demand(isinstance(text, str), f"{where}.thinking: Field required")
        demand(isinstance(seal, str) and seal, f"{where}.signature: Field required")
        changed = memory.changed(seal, text)
        demand(not changed, f"{where}: Invalid `signature` in `thinking` block: the block cannot be modified.")
    elif kind == "redacted_thinking":
        check_text(block.get("data"), f"{where}.data")
    elif kind == "tool_use":
        _check_id(block.get("id"), f"{where}.id")
        name = block.get("name")
        demand(isinstance(name, str) and _TOOL_NAME.fullmatch(name), f"{where}.name: String should match pattern")
        demand(isinstance(block.get("input"), dict), f"{where}.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        _check_result(block, where, memory)


def _check_result(block: dict[str, Any], where: str, memory: Memory) -> None:
    _check_id(block.get("tool_use_id"), f"{where}.tool_use_id")
    demand(isinstance(block.get("is_error", False), bool), f"{where}.is_error: Input should be a valid boolean")
    content = block.get("content", "")
    if isinstance(content, str):
        return
    for index, part in enumerate(checked_objects(content, f"{where}.content")):
        here = f"{where}.content.{index}"
        demand(part.get("type") in ("text", "image", "document", "search_result"), f"{here}: unexpected type")
        _check_block(part, here, memory)


def _check_spoken(text: Any, where: str) -> None:
    demand(isinstance(text, str), f"{where}: Input should be a valid string")
    demand(text, f"{where}: text content blocks must be non-empty")
    demand(text.strip(), f"{where}: text content blocks must contain non-whitespace text")


def _check_id(name: Any, where: str) -> None:
    good = isinstance(name, str) and _CALL_ID.fullmatch(name)
    demand(good, f"{where}: String should match pattern '^{_CALL_ID.pattern}$'")


def _check_image(source: Any, where: str) -> None:
    source = source if isinstance(source, dict) else {}
    if source.get("type") == "base64":
        kind, payload = source.get("media_type"), source.get("data")
        demand(kind in _MEDIA, f"{where}.base64.media_type: Input should be one of {', '.join(_MEDIA)}")
        good = isinstance(payload, str) and _BASE64.fullmatch(payload)
        demand(good, f"{where}.base64.data: the image was not in valid base64")
    else:
        url = source.get("url")
        good = source.get("type") == "url" and isinstance(url, str) and re.fullmatch(r"https?://\S+", url)
        demand(good, f"{where}: Input should be a base64 or url source")


def _check_results(messages: list[dict[str, Any]]) -> None:
    """Every call is answered in the one user message after its turn, results first."""
    seen: set[str] = set()
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        blocks = message["content"] if isinstance(message["content"], list) else []
        if message["role"] == "assistant":
            for name in (block["id"] for block in blocks if block["type"] == "tool_use"):
                demand(name not in seen, f"messages.{index}: `tool_use` ids must be unique: {name}")
                seen.add(name)
                open_calls.add(name)
        else:
            _check_answers(blocks, open_calls, f"messages.{index}")
            open_calls = set()
    _demand_answered(open_calls, f"messages.{len(messages)}")


def _check_answers(blocks: list[dict[str, Any]], open_calls: set[str], where: str) -> None:
    answered: set[str] = set()
    leading = True
    for index, block in enumerate(blocks):
        if block["type"] != "tool_result":
            leading = False
            continue
        name = block["tool_use_id"]
        demand(
            name in open_calls,
            f"{where}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
        )
        demand(leading, f"{where}.content.{index}: `tool_result` blocks must come first in the message.")
        demand(name not in answered, f"{where}: each tool_use must have a single result: {name}")
        answered.add(name)
    _demand_answered(open_calls - answered, where)


def _demand_answered(open_calls: set[str], where: str) -> None:
    demand(
        not open_calls,
        f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(sorted(open_calls))}.",
    )


def _check_end(body: Mapping[str, Any], messages: list[dict[str, Any]]) -> None:
    content = messages[-1]["content"]
    if messages[-1]["role"] == "assistant":
        text = content if isinstance(content, str) else content[-1].get("text", "-")
        demand(text == text.rstrip(), "messages: final assistant content cannot end with trailing whitespace")
    thinking = body.get("thinking") or {}
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    good = type(budget) is int and 1024 <= budget < body["max_tokens"]
    demand(good, "`max_tokens` must be greater than `thinking.budget_tokens`, which is at least 1024")
    if isinstance(content, list) and content[0]["type"] == "tool_result":
        _check_thought(messages)


def _check_thought(messages: list[dict[str, Any]]) -> None:
    """With thinking on, the turn whose results are sent begins with its thinking.

    A turn is all that the assistant says since the user's last prompt: rounds after the first may go without.
    """
    opening: dict[str, Any] = {}
    for message in reversed(messages):
        if message["role"] == "assistant":
            opening = message
        elif isinstance(message["content"], str) or message["content"][0]["type"] != "tool_result":
            break
    content = opening["content"]
    kind = "text" if isinstance(content, str) else content[0]["type"]
    demand(
        kind in ("thinking", "redacted_thinking"),
        f"Expected `thinking` or `redacted_thinking`, but found `{kind}`. "
        "When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
    )
