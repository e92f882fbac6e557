"""OpenAI Responses as a server writes it, and the rules it has for requests.

Owns: the members of this wire. Does not know: sockets, the other wires.
Source: https://platform.openai.com/docs/api-reference/responses and .../responses-streaming
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .responses_rules import check
from .script import Answer
from .wire import CREATED, Memory, argument_pieces, argument_text, frame, model_of, openai_error, pieces

__all__ = ["check", "document", "error", "frames"]

_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
_Event = dict[str, Any]
error = openai_error


def document(answer: Answer, body: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """The answer as one JSON document."""
    reason = _REASONS.get(answer.finish)
    known = _opened(answer, body, memory.name("resp"))
    known |= {"status": "incomplete" if reason else "completed", "output": _output(answer, memory)}
    known["incomplete_details"] = {"reason": reason} if reason else None
    return known | ({} if answer.usage is None else {"usage": _usage(answer)})


def frames(answer: Answer, body: Mapping[str, Any], memory: Memory) -> list[bytes]:
    """The stream of the answer, frame by frame."""
    final = document(answer, body, memory)
    return [
        frame(event | {"sequence_number": number}, answer.newline, event=event["type"])
        for number, event in enumerate(_events(answer, body, final))
    ]


def _events(answer: Answer, body: Mapping[str, Any], final: dict[str, Any]) -> Iterator[_Event]:
    opened = _opened(answer, body, final["id"])
    yield {"type": "response.created", "response": opened}
    yield {"type": "response.in_progress", "response": opened}
    calls = iter(answer.calls)
    for index, item in enumerate(final["output"]):
        at = {"item_id": item["id"], "output_index": index}
        if item["type"] == "reasoning":
            start, events = {"summary": [], "encrypted_content": ""}, _reasoning_events(answer, at)
        elif item["type"] == "message":
            start, events = {"content": []}, _message_events(answer, item, at)
        else:
            start, events = {"arguments": ""}, _call_events(argument_pieces(next(calls)), item, at)
        if "status" in item:
            start["status"] = "in_progress"
        yield {"type": "response.output_item.added", "output_index": index, "item": item | start}
        yield from events
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    if answer.done:
        yield {"type": f"response.{final['status']}", "response": final}


def _reasoning_events(answer: Answer, at: dict[str, Any]) -> Iterator[_Event]:
    if not answer.reasoning:
        return
    at = at | {"summary_index": 0}
    kind, part = "response.reasoning_summary", {"type": "summary_text", "text": answer.reasoning}
    yield {"type": f"{kind}_part.added"} | at | {"part": part | {"text": ""}}
    for piece in pieces(answer.reasoning):
        yield {"type": f"{kind}_text.delta"} | at | {"delta": piece}
    yield {"type": f"{kind}_text.done"} | at | {"text": answer.reasoning}
    yield {"type": f"{kind}_part.done"} | at | {"part": part}


def _message_events(answer: Answer, item: dict[str, Any], at: dict[str, Any]) -> Iterator[_Event]:
    for index, part in enumerate(item["content"]):
        here = at | {"content_index": index}
        more: dict[str, Any] = {}
        if part["type"] == "refusal":
            kind, member, deltas = "response.refusal", "refusal", pieces(answer.refusal)
        else:
            kind, member, deltas = "response.output_text", "text", pieces(answer.text, answer.chunk_text)
            more = {"logprobs": []}
        yield {"type": "response.content_part.added"} | here | {"part": part | {member: ""}}
        for piece in deltas:
            yield {"type": f"{kind}.delta"} | here | {"delta": piece} | more
        yield {"type": f"{kind}.done"} | here | {member: part[member]} | more
        yield {"type": "response.content_part.done"} | here | {"part": part}


def _call_events(deltas: list[str], item: dict[str, Any], at: dict[str, Any]) -> Iterator[_Event]:
    kind = "response.function_call_arguments"
    for piece in deltas:
        yield {"type": f"{kind}.delta"} | at | {"delta": piece}
    yield {"type": f"{kind}.done"} | at | {"name": item["name"], "arguments": item["arguments"]}


def _output(answer: Answer, memory: Memory) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.reasoning is not None:
        items.append(_reasoning(answer, memory))
    parts: list[dict[str, Any]] = []
    if answer.text or not (answer.calls or answer.refusal):
        parts.append({"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []})
    if answer.refusal:
        parts.append({"type": "refusal", "refusal": answer.refusal})
    if parts:
        known = {"type": "message", "id": memory.name("msg"), "status": "completed", "role": "assistant"}
        items.append(known | {"content": parts})
    for call in answer.calls:
        known = {"type": "function_call", "id": memory.name("fc"), "status": "completed", "name": call.name}
        call_id = memory.name("call") if call.id is None else call.id
        items.append(known | {"call_id": call_id, "arguments": argument_text(call)})
    if answer.reasoning is not None:
        for item in items[1:]:
            memory.tie(item["id"], items[0]["id"])
    if answer.finish in _REASONS and "status" in items[-1]:
        items[-1]["status"] = "incomplete"
    return items


def _reasoning(answer: Answer, memory: Memory) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": answer.reasoning}] if answer.reasoning else []
    seal = memory.seal("encrypted", summary)
    return {"type": "reasoning", "id": memory.name("rs"), "summary": summary, "encrypted_content": seal}


def _opened(answer: Answer, body: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": model_of(answer, body),
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": body.get("top_p", 1.0),
        "usage": None,
    }


def _usage(answer: Answer) -> dict[str, Any]:
    if not isinstance(answer.usage, tuple):
        return dict(answer.usage or {})
    spent, written = answer.usage
    return {
        "input_tokens": spent,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": spent + written,
    }
