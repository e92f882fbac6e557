"""OpenAI Chat Completions as a server writes it, and the rules it has for requests.

Owns: the members of this wire. Does not know: sockets, the other wires.
Source: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .script import Answer, Call
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
    checked_object,
    checked_objects,
    demand,
)
from .wire import CREATED, Memory, argument_pieces, argument_text, frame, model_of, openai_error, pieces

error = openai_error
_ROLES = ("system", "developer", "user", "assistant", "tool")


def frames(answer: Answer, body: Mapping[str, Any], memory: Memory) -> list[bytes]:
    """The stream of the answer, frame by frame."""
    options = body.get("stream_options") or {}
    with_usage = bool(options.get("include_usage")) and answer.usage is not None
    head = _head(answer, body, memory, "chat.completion.chunk") | ({"usage": None} if with_usage else {})
    chunks = [head | {"choices": [choice]} for choice in _choices(answer, memory)]
    if with_usage:
        chunks.append(head | {"choices": [], "usage": _usage(answer)})
    done = [f"data: [DONE]{answer.newline * 2}".encode()] if answer.done else []
    return [frame(chunk, answer.newline) for chunk in chunks] + done


def _choices(answer: Answer, memory: Memory) -> Iterator[dict[str, Any]]:
    for delta in _deltas(answer, memory):
        yield {"index": 0, "delta": delta, "finish_reason": None}
    if answer.finish != "unspecified":
        yield {"index": 0, "delta": {}, "finish_reason": answer.finish}


def _deltas(answer: Answer, memory: Memory) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    yield from ({"reasoning_content": piece} for piece in pieces(answer.reasoning))
    yield from ({"content": piece} for piece in pieces(answer.text, answer.chunk_text))
    yield from ({"refusal": piece} for piece in pieces(answer.refusal))
    for index, call in enumerate(answer.calls):
        yield {"tool_calls": [{"index": index} | _call(call, "", memory)]}
        for piece in argument_pieces(call):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def document(answer: Answer, body: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """The answer as one JSON document."""
    head = _head(answer, body, memory, "chat.completion")
    calls = [_call(call, argument_text(call), memory) for call in answer.calls]
    message = {"role": "assistant", "content": answer.text or None, "refusal": answer.refusal}
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    if calls:
        message["tool_calls"] = calls  # type: ignore[assignment]
    finish = None if answer.finish == "unspecified" else answer.finish
    choices = [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}]
    return head | {"choices": choices} | ({} if answer.usage is None else {"usage": _usage(answer)})


def _head(answer: Answer, body: Mapping[str, Any], memory: Memory, kind: str) -> dict[str, Any]:
    return {"id": memory.name("chatcmpl"), "object": kind, "created": CREATED, "model": model_of(answer, body)}


def _call(call: Call, arguments: str, memory: Memory) -> dict[str, Any]:
    known = {
        "id": memory.name("call") if call.id is None else call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    return known | dict(call.extra or {})


def _usage(answer: Answer) -> dict[str, Any]:
    if not isinstance(answer.usage, tuple):
        return dict(answer.usage or {})
    prompt, completion = answer.usage
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def check(body: Mapping[str, Any], headers: Mapping[str, str], memory: Memory) -> None:
    """Refuse a request that a strict server of this wire refuses."""
    check_bearer(headers)
    check_positive(body, "max_tokens")
    check_positive(body, "max_completion_tokens")
    both = "max_tokens" in body and "max_completion_tokens" in body
    demand(not both, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    lonely = "stream_options" in body and not body.get("stream")
    demand(not lonely, "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    _check_tools(body)
    form = (body.get("response_format") or {}).get("json_schema") or {}
    if form.get("strict"):
        check_answer_schema(form.get("schema"), "response_format", all_required=True)
    messages = checked_objects(body.get("messages"), "messages")
    for index, message in enumerate(messages):
        _check_message(message, f"messages[{index}]")
    _check_order(messages)


def _check_tools(body: Mapping[str, Any]) -> None:
    if "tools" not in body:
        for name in ("tool_choice", "parallel_tool_calls"):
            demand(name not in body, f"'{name}' is only allowed when 'tools' are specified.")
        return
    names = []
    for index, tool in enumerate(checked_objects(body["tools"], "tools")):
        where = f"tools[{index}]"
        demand(isinstance(tool.get("type"), str) and tool["type"], f"Missing required parameter: '{where}.type'.")
        if tool["type"] != "function":  # a vendor's own tool
            continue
        function = checked_object(tool.get("function"), f"{where}.function")
        check_name(function.get("name"), f"{where}.function.name")
        check_schema(function.get("parameters"), f"{where}.function.parameters")
        names.append(function["name"])
    check_tool_names(names)
    _check_choice(body.get("tool_choice", "auto"), names)
    demand(isinstance(body.get("parallel_tool_calls", True), bool), "Invalid type for 'parallel_tool_calls'.")


def _check_choice(choice: Any, names: list[str]) -> None:
    if isinstance(choice, dict):
        named = (choice.get("function") or {}).get("name")
        demand(named in names, f"Tool choice '{named}' not found in 'tools' parameter.")
    else:
        demand(choice in ("auto", "none", "required"), "Invalid 'tool_choice': expected auto, none or required.")


def _check_message(message: dict[str, Any], where: str) -> None:
    role, content = message.get("role"), message.get("content")
    demand(role in _ROLES, f"Invalid value for '{where}.role': expected one of {', '.join(_ROLES)}.")
    if role in ("system", "developer"):
        check_text(content, f"{where}.content")
    elif role == "user":
        _check_content(content, f"{where}.content", ("text", "image_url", "input_audio", "file"))
    elif role == "tool":
        demand(isinstance(message.get("tool_call_id"), str), f"Missing required parameter: '{where}.tool_call_id'.")
        if content != "":  # the one content that may be empty
            _check_content(content, f"{where}.content", ("text",))
    else:
        _check_assistant(message, where)


def _check_assistant(message: dict[str, Any], where: str) -> None:
    if "tool_calls" in message:
        _check_calls(message["tool_calls"], f"{where}.tool_calls")
    spoken = "tool_calls" in message or isinstance(message.get("refusal"), str)
    if not (spoken and message.get("content") in (None, "")):
        _check_content(message.get("content"), f"{where}.content", ("text", "refusal", "thinking"))


def _check_calls(calls: Any, where: str) -> None:
    seen = set()
    for index, call in enumerate(checked_objects(calls, where)):
        name = call.get("id")
        demand(isinstance(name, str) and name, f"Invalid '{where}[{index}].id': expected a non-empty string.")
        demand(name not in seen, f"Duplicate value for 'tool_call_id' of '{name}' in '{where}'.")
        seen.add(name)
        demand(call.get("type") == "function", f"Invalid value for '{where}[{index}].type': expected 'function'.")
        function = checked_object(call.get("function"), f"{where}[{index}].function")
        check_name(function.get("name"), f"{where}[{index}].function.name")
        check_arguments(function.get("arguments"), f"{where}[{index}].function.arguments")


def _check_content(content: Any, where: str, kinds: tuple[str, ...]) -> None:
    if content is None or isinstance(content, str):
        check_text(content, where)
        return
    for index, part in enumerate(checked_objects(content, where)):
        kind = part.get("type")
        demand(kind in kinds, f"Invalid value: '{kind}' in '{where}[{index}].type'. Supported: {', '.join(kinds)}.")
        if kind in ("text", "refusal"):
            check_text(part.get(kind), f"{where}[{index}].{kind}")
        elif kind == "image_url":
            image = part.get("image_url")
            url = image.get("url") if isinstance(image, dict) else None
            check_image_url(url, f"{where}[{index}].image_url.url")


def _check_order(messages: list[dict[str, Any]]) -> None:
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            name = message["tool_call_id"]
            demand(
                name in open_calls,
                f"Invalid parameter: messages[{index}] with role 'tool' must be a response to a preceding message "
                f"with 'tool_calls' (tool_call_id '{name}').",
            )
            open_calls.remove(name)
            continue
        _demand_answered(open_calls)
        open_calls = {call["id"] for call in message.get("tool_calls", ())}
    _demand_answered(open_calls)


def _demand_answered(open_calls: set[str]) -> None:
    demand(
        not open_calls,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(sorted(open_calls))}",
    )
