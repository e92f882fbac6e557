"""What is odd about the bytes of one answer, although it could be read.

Owns: the table of oddities, each with who is known for it. Does not know: how the answer was asked for.
Source: public bug reports, see ``tests/cases``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .. import codec
from .bench import Heard

_LINE = re.compile(rb"\r\n|\n|\r")


def quirks(heard: Heard) -> Iterator[tuple[str, str]]:
    """Name and text of each oddity of this answer."""
    yield from _of_http(heard)
    if heard.body.lstrip()[:1] in (b"{", b"["):
        yield "not-streamed", "answers stream: true with one whole JSON document: the text comes all at once"
        return
    lines = _LINE.split(heard.body)
    yield from _of_lines(heard, lines)
    if heard.protocol == "openai-chat":
        payloads = [payload for line in lines if (payload := _payload(line)) is not None]
        yield from _of_chunks(payloads)
        yield from _of_ends(payloads)
        yield from _of_calls([call for delta in map(_delta, payloads) for call in _calls(delta)])


def reasoning_name(heard: Heard) -> str:
    """Where the reasoning was on the wire: a member's name, or the tag in the text; empty if there was none."""
    if not heard.reasoning:
        return ""
    if heard.protocol != "openai-chat":
        return "reasoning items" if heard.protocol == "openai-responses" else "thinking blocks"
    deltas = [_delta(payload) for line in _LINE.split(heard.body) if (payload := _payload(line)) is not None]
    for name in ("reasoning_content", "reasoning", "reasoning_details"):
        if any(delta.get(name) for delta in deltas):
            return name
    return "thinking parts" if any(isinstance(delta.get("content"), list) for delta in deltas) else "<think> tags"


def has_usage(heard: Heard) -> bool:
    """Whether the server told tokens."""
    return heard.turn is not None and heard.turn.usage is not None


def is_buffered(heard: Heard) -> bool:
    """Whether the pieces of an answer were made one by one, and came all at once. Quick servers are not suspected."""
    waited = heard.first or 0.0
    return heard.deltas >= 8 and len(heard.chunks) <= 2 and waited >= 0.1 and heard.seconds - waited < 0.1 * waited


def _of_http(heard: Heard) -> Iterator[tuple[str, str]]:
    headers = heard.headers
    framed = "chunked" in headers.get("Transfer-Encoding", "").lower() or "Content-Length" in headers
    if headers and not framed:
        yield "not-chunked", "sends bodies without HTTP chunks or length: each ends with its connection"
    if "close" in headers.get("Connection", "").lower():
        yield "no-keep-alive", "closes the connection after each answer: a new one for every request"
    kind = headers.get("Content-Type", "")
    if headers and "event-stream" not in kind and heard.body.lstrip()[:1] not in (b"{", b"["):
        yield "content-type", f"sends a stream as {kind or 'nothing in particular'} instead of text/event-stream"
    if is_buffered(heard):
        yield "buffered", "sends the whole stream in one piece: something on the way (a proxy?) seems to hold it back"


def _of_lines(heard: Heard, lines: list[bytes]) -> Iterator[tuple[str, str]]:
    if any(line.startswith(b"error:") for line in lines):
        yield "error-line", "tells errors as a line 'error: ...' in the stream (llama.cpp)"
    if any(line.startswith(b":") for line in lines):
        yield "comments", "sends comment lines to keep the connection alive (OpenRouter, DeepSeek)"
    data = [line[5:] for line in lines if line.startswith(b"data:")]
    if any(line[:1] not in (b" ", b"") for line in data):
        yield "no-space", "leaves out the space after 'data:'"
    is_whole = heard.error is None and heard.turn is not None
    if is_whole and heard.protocol == "openai-chat" and not any(line.strip() == b"[DONE]" for line in data):
        yield "no-done", "ends a stream without [DONE]"


def _of_chunks(payloads: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    choices = [choice for payload in payloads for choice in payload.get("choices") or [] if isinstance(choice, dict)]
    spoken = [payload for payload in payloads if payload.get("choices")]
    if spoken and not any(payload.get("id") for payload in payloads):
        yield "no-id", "sends chunks without an id"
    if payloads and payloads[0].get("choices") == []:
        yield "empty-choices", "begins with a chunk without choices (Azure)"
    if any(not isinstance(choice.get("delta"), dict) and isinstance(choice.get("message"), dict) for choice in choices):
        yield "message-for-delta", "sends a 'message' where a 'delta' belongs"
    nulls = [name for name in ("tool_calls", "function_call") if any(_is_null(_delta(p), name) for p in payloads)]
    if nulls or any("delta" in choice and choice["delta"] is None for choice in choices):
        yield "nulls", f"sends null for what is not there ({', '.join(nulls) or 'delta'})"
    usages = sum(1 for payload in payloads if payload.get("usage"))
    if usages > 2:
        yield "usage-everywhere", "repeats the usage in every chunk, counting up"
    if any(choice.get("usage") for choice in choices):
        yield "usage-in-choice", "tells the usage inside the choice (Moonshot)"


def _of_ends(payloads: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    choices = [payload["choices"][0] for payload in payloads if _first_choice(payload)]
    ends = [place for place, choice in enumerate(choices) if choice.get("finish_reason")]
    if choices and not ends:
        yield "no-finish-reason", "never says why an answer ended"
    if len(ends) > 1:
        yield "several-finish-reasons", "says more than once why an answer ended"
    if ends and any(_says(_delta({"choices": [choice]})) for choice in choices[ends[0] + 1 :]):
        yield "early-finish-reason", "goes on after it said that the answer ended"
    has_calls = any(_calls(_delta(payload)) for payload in payloads)
    if has_calls and ends and choices[ends[-1]]["finish_reason"] == "stop":
        yield "stop-with-calls", "says finish_reason 'stop' although it calls tools"


def _of_calls(calls: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    if not calls:
        return
    named = [call for call in calls if _function(call).get("name")]
    if any(call.get("index") is None for call in calls):
        yield "no-index", "sends calls without an index"
    if not any(call.get("id") for call in calls):
        yield "no-call-id", "sends calls without an id"
    ids = [call["id"] for call in named if call.get("id")]
    rest = [call for call in calls if not _function(call).get("name")]
    if rest and len(ids) > len(set(ids)):
        yield "repeated-id", "repeats id and name in the pieces of a call"
    if any(call.get("id") == "" or _function(call).get("name") == "" for call in rest):
        yield "empty-names", "sends empty ids and names in the later pieces of a call"
    if any(isinstance(_function(call).get("arguments"), dict) for call in calls):
        yield "arguments-object", "sends arguments as an object instead of a text"
    if len(set(ids)) > 1 and len({call.get("index") for call in named}) == 1 and named[0].get("index") is not None:
        yield "one-index", "gives all calls of a turn the same index"


def _payload(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
        return None
    try:
        value = codec.parse(line[5:])
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _first_choice(payload: dict[str, Any]) -> bool:
    choices = payload.get("choices")
    return isinstance(choices, list) and bool(choices) and isinstance(choices[0], dict)


def _delta(payload: dict[str, Any]) -> dict[str, Any]:
    delta = payload["choices"][0].get("delta") if _first_choice(payload) else None
    return delta if isinstance(delta, dict) else {}


def _calls(delta: dict[str, Any]) -> list[dict[str, Any]]:
    calls = delta.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _function(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _is_null(delta: dict[str, Any], name: str) -> bool:
    return name in delta and delta[name] is None


def _says(delta: dict[str, Any]) -> bool:
    return bool(delta.get("content") or delta.get("tool_calls"))
