"""Anthropic Messages as a server writes it, and the rules it has for requests.

Owns: the members of this wire. Does not know: sockets, the other wires.
Source: https://docs.anthropic.com/en/api/messages and .../messages-streaming
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .anthropic_rules import check
from .script import Answer, Call
from .wire import Memory, argument_pieces, error_type, frame, model_of, pieces

__all__ = ["check", "document", "error", "frames"]

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "unspecified": None,
}
_Event = dict[str, Any]
_Block = tuple[dict[str, Any], list[dict[str, Any]]]


def document(answer: Answer, body: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """The answer as one JSON document; arguments that are no JSON object become ``{}``."""
    blocks: list[dict[str, Any]] = []
    if answer.reasoning is not None:
        seal = memory.seal("signature", answer.reasoning)
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": seal})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for call in answer.calls:
        name = memory.name("call") if call.id is None else call.id
        blocks.append({"type": "tool_use", "id": name, "name": call.name, "input": _object(call)})
    known = {"id": memory.name("msg"), "type": "message", "role": "assistant", "model": model_of(answer, body)}
    known |= {"content": blocks} | _end(answer)
    return known | ({} if answer.usage is None else {"usage": _usage(answer)})


def frames(answer: Answer, body: Mapping[str, Any], memory: Memory) -> list[bytes]:
    """The stream of the answer, frame by frame."""
    whole = document(answer, body, memory)
    return [frame(event, answer.newline, event=event["type"]) for event in _events(answer, whole)]


def _events(answer: Answer, whole: dict[str, Any]) -> Iterator[_Event]:
    opened = whole | {"content": [], "stop_reason": None, "stop_sequence": None}
    opened.pop("stop_details", None)
    if isinstance(answer.usage, tuple):
        opened["usage"] = whole["usage"] | {"output_tokens": 1}
    yield {"type": "message_start", "message": opened}
    for index, (start, deltas) in enumerate(_blocks(answer, whole["content"])):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        if index == 0:
            yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if answer.done or answer.finish != "unspecified":
        counted = {} if answer.usage is None else {"usage": whole["usage"]}
        yield {"type": "message_delta", "delta": _end(answer)} | counted
    if answer.done:
        yield {"type": "message_stop"}


def _blocks(answer: Answer, blocks: list[dict[str, Any]]) -> Iterator[_Block]:
    calls = iter(answer.calls)
    for block in blocks:
        if block["type"] == "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            yield block | {"thinking": "", "signature": ""}, deltas
        elif block["type"] == "text":
            texts = pieces(block["text"], answer.chunk_text)
            yield block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in texts]
        else:
            parts = ["", *argument_pieces(next(calls))]
            yield block | {"input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]


def error(status: int, message: str, type: str | None, code: str | None, memory: Memory) -> dict[str, Any]:
    """The body of an HTTP error; this wire has no ``code``."""
    word = type or error_type(status, _ERROR_TYPES)
    return {"type": "error", "error": {"type": word, "message": message}, "request_id": memory.name("req")}


def _end(answer: Answer) -> dict[str, Any]:
    reason = _STOP_REASONS.get(answer.finish, answer.finish)
    if answer.refusal is None:
        return {"stop_reason": reason, "stop_sequence": None}
    details = {"type": "refusal", "category": None, "explanation": answer.refusal}
    reason = "refusal" if reason == "end_turn" else reason
    return {"stop_reason": reason, "stop_sequence": None, "stop_details": details}


def _object(call: Call) -> dict[str, Any]:
    if not isinstance(call.arguments, str):
        return dict(call.arguments)
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _usage(answer: Answer) -> dict[str, Any]:
    if not isinstance(answer.usage, tuple):
        return dict(answer.usage or {})
    spent, written = answer.usage
    cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"input_tokens": spent} | cached | {"output_tokens": written}
