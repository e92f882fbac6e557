"""The rules that an OpenAI Responses server has for requests.

Owns: what is refused on this wire. Does not know: sockets, the other wires.
Source: https://platform.openai.com/docs/api-reference/responses/create and the 400 answers of its server
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .strict import (
    check_answer_schema,
    check_arguments,
    check_bearer,
    check_image_url,
    check_name,
    check_positive,
    check_schema,
    check_text,
    check_tool_names,
    checked_objects,
    demand,
)
from .wire import Memory

_ELSEWHERE = {
    "messages": "'input'",
    "max_tokens": "'max_output_tokens'",
    "max_completion_tokens": "'max_output_tokens'",
    "response_format": "'text.format'",
    "reasoning_effort": "'reasoning.effort'",
    "stop": "nothing",
    "seed": "nothing",
}
_PARTS = {
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "system": ("input_text",),
    "developer": ("input_text",),
    "assistant": ("output_text", "refusal"),
}
_PREFIXES = {"reasoning": "rs", "function_call": "fc", "message": "msg"}


def check(body: Mapping[str, Any], headers: Mapping[str, str], memory: Memory) -> None:
    """Refuse a request that a strict server of this wire refuses."""
    check_bearer(headers)
    for name, moved in _ELSEWHERE.items():
        demand(name not in body, f"Unsupported parameter: '{name}'. In the Responses API it has become {moved}.")
    check_positive(body, "max_output_tokens")
    _check_tools(body)
    form = (body.get("text") or {}).get("format") or {}
    if form.get("strict"):
        check_answer_schema(form.get("schema"), "text.format", all_required=True)
    source = body.get("input")
    if isinstance(source, str):
        check_text(source, "input")
        return
    items = checked_objects(source, "input")
    stored = body.get("store") is not False
    for index, item in enumerate(items):
        _check_item(item, f"input[{index}]", stored, memory)
    _check_reasoning_order(items, memory)
    _check_calls(items)


def _kind(item: Mapping[str, Any]) -> Any:
    return item.get("type", "message")


def _check_tools(body: Mapping[str, Any]) -> None:
    tools = body.get("tools", [])
    names = []
    for index, tool in enumerate(checked_objects(tools, "tools") if tools != [] else []):
        where = f"tools[{index}]"
        demand(isinstance(tool.get("type"), str) and tool["type"], f"Missing required parameter: '{where}.type'.")
        if tool["type"] == "function":
            check_name(tool.get("name"), f"{where}.name")
            check_schema(tool.get("parameters"), f"{where}.parameters")
            names.append(tool["name"])
    check_tool_names(names)
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, dict):
        known = choice.get("type") != "function" or choice.get("name") in names
        demand(known, f"Tool choice 'function' not found in 'tools' parameter: '{choice.get('name')}'.")
    else:
        demand(choice in ("auto", "none", "required"), "Invalid 'tool_choice': expected auto, none or required.")
        demand(choice != "required" or tools, "Tool choice 'required' must be specified with 'tools' parameter.")


def _check_item(item: dict[str, Any], where: str, stored: bool, memory: Memory) -> None:
    kind = _kind(item)
    demand(isinstance(kind, str) and kind, f"Invalid type for '{where}.type': expected a string.")
    prefix = _PREFIXES.get(kind)
    if prefix and item.get("id") is not None:
        fits = isinstance(item["id"], str) and item["id"].startswith(prefix)
        demand(fits, f"Invalid '{where}.id': Expected an ID that begins with '{prefix}'.")
    if kind == "message":
        _check_message(item, where)
    elif kind == "function_call":
        check_text(item.get("call_id"), f"{where}.call_id")
        check_name(item.get("name"), f"{where}.name")
        check_arguments(item.get("arguments"), f"{where}.arguments")
    elif kind == "function_call_output":
        check_text(item.get("call_id"), f"{where}.call_id")
        output = item.get("output")
        if not isinstance(output, str):
            _check_parts(output, f"{where}.output", _PARTS["user"])
    elif kind == "reasoning":
        _check_reasoning(item, where, stored, memory)
    elif kind == "item_reference":
        demand(stored, f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is false.")


def _check_message(item: dict[str, Any], where: str) -> None:
    role, content = item.get("role"), item.get("content")
    demand(role in _PARTS, f"Invalid value for '{where}.role': expected one of {', '.join(_PARTS)}.")
    if isinstance(content, str):
        check_text(content, f"{where}.content")
    else:
        _check_parts(content, f"{where}.content", _PARTS[str(role)])


def _check_parts(content: Any, where: str, kinds: tuple[str, ...]) -> None:
    for index, part in enumerate(checked_objects(content, where)):
        kind, here = part.get("type"), f"{where}[{index}]"
        demand(kind in kinds, f"Invalid value: '{kind}' in '{here}.type'. Supported values are: {', '.join(kinds)}.")
        if kind in ("input_text", "output_text"):
            check_text(part.get("text"), f"{here}.text")
        elif kind == "refusal":
            check_text(part.get("refusal"), f"{here}.refusal")
        elif kind == "input_image" and part.get("file_id") is None:
            check_image_url(part.get("image_url"), f"{here}.image_url")


def _check_reasoning(item: dict[str, Any], where: str, stored: bool, memory: Memory) -> None:
    summary, seal = item.get("summary"), item.get("encrypted_content")
    demand(isinstance(summary, list), f"Missing required parameter: '{where}.summary'.")
    sealed = isinstance(seal, str) and seal
    demand(
        stored or sealed, f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is false."
    )
    changed = memory.changed(seal, summary)
    demand(not changed, f"The encrypted content for item {item.get('id')} could not be verified: it was changed.")


def _check_reasoning_order(items: list[dict[str, Any]], memory: Memory) -> None:
    given = {item.get("id") for item in items if _kind(item) == "reasoning"}
    for index, item in enumerate(items):
        name, kind = item.get("id"), _kind(item)
        needed = memory.needed(name)
        message = f"Item '{name}' of type '{kind}' was provided without its required 'reasoning' item: '{needed}'."
        demand(needed is None or needed in given, message)
        if kind == "reasoning":
            follows = index + 1 < len(items) and _is_the_models(items[index + 1])
            demand(follows, f"Item '{name}' of type 'reasoning' was provided without its required following item.")


def _is_the_models(item: Mapping[str, Any]) -> bool:
    return bool(_kind(item) != "function_call_output" and item.get("role", "assistant") == "assistant")


def _check_calls(items: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    open_calls: set[str] = set()
    for item in items:
        kind, name = _kind(item), item.get("call_id")
        if kind == "function_call":
            demand(name not in seen, f"Duplicate function call with call_id '{name}'.")
            seen.add(str(name))
            open_calls.add(str(name))
        elif kind == "function_call_output":
            demand(name in open_calls, f"No tool call found for function call output with call_id {name}.")
            open_calls.remove(str(name))
        elif item.get("role") == "user":
            _demand_answered(open_calls)
    _demand_answered(open_calls)


def _demand_answered(open_calls: set[str]) -> None:
    demand(not open_calls, f"No tool output found for function call {', '.join(sorted(open_calls))}.")
