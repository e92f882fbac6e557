"""Script items as the bytes that are played: an answer in the format of its wire, an error likewise.

Owns: which wire an endpoint speaks, how frames become chunks, how a body is cut. Does not know:
sockets, the order of the script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from . import anthropic, chat, responses
from .script import EVENT_STREAM, Answer, End, Failure, Headers, Raw, Request
from .strict import Refused, check_request
from .wire import Memory, encoded

_JSON = {"Content-Type": "application/json"}


class Wire(Protocol):
    """What each of the three wire formats can do."""

    def frames(self, answer: Answer, body: Mapping[str, Any], memory: Memory) -> list[bytes]:
        """The stream of the answer."""

    def document(self, answer: Answer, body: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
        """The answer as one JSON document."""

    def error(self, status: int, message: str, type: str | None, code: str | None, memory: Memory) -> dict[str, Any]:
        """The body of an HTTP error."""

    def check(self, body: Mapping[str, Any], headers: Mapping[str, str], memory: Memory) -> None:
        """Raise ``Refused`` for what a strict server refuses."""


_WIRES: Mapping[str, Wire] = {"/chat/completions": chat, "/responses": responses, "/messages": anthropic}


def wire_of(request: Request) -> Wire | None:
    """The wire format of the endpoint that is asked, None if it is no endpoint."""
    path = request.path.split("?")[0]
    return next((wire for end, wire in _WIRES.items() if path.endswith(end)), None)


def complaint(request: Request, wire: Wire | None, memory: Memory) -> str | None:
    """What a strict server has against the request, None if nothing."""
    try:
        if wire is None:
            return f"Invalid URL ({request.method} {request.path})"
        wire.check(check_request(request), request.headers, memory)
    except Refused as exc:
        return str(exc)
    return None


def reply(item: Answer | Failure | Raw, request: Request, wire: Wire | None, memory: Memory) -> Raw:
    """The item as bytes, in the format that the request asks for."""
    wire = wire or chat
    if isinstance(item, Raw):
        return item
    if isinstance(item, Failure):
        content = item.body
        if content is None:
            content = encoded(wire.error(item.status, item.message, item.type, item.code, memory))
        return Raw((content,), item.status, _merged(_JSON, item.headers), "length", "normal", 0.0, 0.0)
    return _answered(item, request, wire, memory)


def _answered(answer: Answer, request: Request, wire: Wire, memory: Memory) -> Raw:
    body = request.body if isinstance(request.body, dict) else {}
    streamed = body.get("stream") is True if answer.stream is None else answer.stream
    if streamed:
        chunks = list(_joined(wire.frames(answer, body, memory), answer.frames_per_chunk))
    else:
        chunks = [encoded(wire.document(answer, body, memory))]
    named = {"X-Request-Id": memory.name("req")} | dict(EVENT_STREAM if streamed else _JSON)
    if answer.framing == "length":
        named["Content-Length"] = str(sum(map(len, chunks)))
    end: End = "normal"
    if answer.reset or answer.cut is not None:
        end = "reset" if answer.reset else "abrupt"
    headers = _merged(named, answer.headers)
    return Raw(_cut(chunks, answer.cut), answer.status, headers, answer.framing, end, answer.delay, answer.hold)


def _joined(frames: list[bytes], count: int) -> Iterator[bytes]:
    for start in range(0, len(frames), count):
        yield b"".join(frames[start : start + count])


def _cut(chunks: list[bytes], size: int | None) -> tuple[bytes, ...]:
    if size is None:
        return tuple(chunks)
    kept = []
    for chunk in chunks:
        if size <= 0:
            break
        kept.append(chunk[:size])
        size -= len(chunk)
    return tuple(kept)


def _merged(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    named = Headers(theirs)
    return {name: value for name, value in ours.items() if name not in named} | dict(theirs)
