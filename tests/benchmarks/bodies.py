"""The replies that the benchmark's server gives: built once, sent as they are.

A plan is a text in the URL, ``kind.protocol.framing.count``: what is said, on which wire, how the body is cut
(``one`` or ``eight`` events per HTTP chunk, ``large`` HTTP chunks, or up to the ``close`` of the connection).
"""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

PROTOCOLS = ("chat", "responses", "anthropic")
FRAMINGS = ("one", "eight", "close")
WORD = "token "
SMALL, LARGE = 4, 40  # bytes of a fragment of arguments
ROUNDS = 20  # of the tool loop


def frame(event: dict[str, Any], *, named: bool = False) -> bytes:
    """One server-sent event."""
    name = f"event: {event['type']}\n" if named else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


def chat(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}
    return frame(whole)


def delta(protocol: str, text: str) -> bytes:
    """The event of one piece of text."""
    if protocol == "chat":
        return chat({"content": text})
    if protocol == "anthropic":
        inner = {"type": "text_delta", "text": text}
        return frame({"type": "content_block_delta", "index": 0, "delta": inner}, named=True)
    event = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
    return frame(event | {"delta": text, "logprobs": [], "sequence_number": 7}, named=True)


def opening(protocol: str) -> list[bytes]:
    if protocol == "chat":
        return [chat({"role": "assistant", "content": ""})]
    if protocol == "anthropic":
        usage = {"input_tokens": 9, "output_tokens": 1}
        start = {"id": "m1", "type": "message", "role": "assistant", "model": "bench", "content": [], "usage": usage}
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        return [frame({"type": "message_start", "message": start}, named=True), frame(block, named=True)]
    response = {"id": "resp_1", "status": "in_progress", "model": "bench", "output": []}
    item = {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    return [frame({"type": "response.created", "response": response}, named=True), frame(added, named=True)]


def ending(protocol: str, text: str, finish: str = "stop") -> list[bytes]:
    if protocol == "chat":
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        return [chat({}, finish), frame({"id": "chatcmpl-1", "choices": [], "usage": usage}), b"data: [DONE]\n\n"]
    if protocol == "anthropic":
        end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
        stop = {"type": "content_block_stop", "index": 0}
        return [frame(event, named=True) for event in (stop, end, {"type": "message_stop"})]
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    response = {"id": "resp_1", "status": "completed", "model": "bench", "output": [item], "usage": usage}
    return [frame({"type": "response.completed", "response": response}, named=True)]


def burst(protocol: str, count: int) -> list[bytes]:
    """So many pieces of text."""
    text = "" if count > 50_000 else WORD * count
    return [*opening(protocol), *([delta(protocol, WORD)] * count), *ending(protocol, text)]


def call(name: str, fragments: list[str], *, id: str = "call_0") -> list[bytes]:
    """A turn of Chat Completions with one call, its arguments in fragments."""
    start = {"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [{"index": 0, "function": {"arguments": fragment}} for fragment in fragments]
    return [
        *opening("chat"),
        *(chat({"tool_calls": [piece]}) for piece in (start, *pieces)),
        *ending("chat", "", "tool_calls"),
    ]


def arguments(size: int) -> list[bytes]:
    """Arguments of so many bytes in fragments of 4 to 40."""
    chance = random.Random(6)
    text = json.dumps({"text": "lorem ipsum " * (size // 12)})
    fragments, at = [], 0
    while at < len(text):
        width = chance.randint(SMALL, LARGE)
        fragments.append(text[at : at + width])
        at += width
    return call("write", fragments)


def large(size: int) -> list[bytes]:
    """All the text in one event."""
    return [*opening("chat"), chat({"content": "x" * size}), *ending("chat", "")]


def lines(count: int) -> list[bytes]:
    """One event whose JSON is spread over so many data lines."""
    head = b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "token "}}], "pad": [\n'
    return [*opening("chat"), head + b"data: 1,\n" * count + b"data: 1]}\n\n", *ending("chat", "")]


KINDS = {"large": large, "lines": lines, "arguments": arguments}


@cache
def reply(plan: str) -> bytes:
    """The bytes of the whole response, headers included."""
    kind, protocol, framing, count = plan.split(".")
    events = burst(protocol, int(count)) if kind == "burst" else KINDS[kind](int(count))
    return framed(events, framing)


@cache
def tool_reply(results: int) -> bytes:
    """The next turn of a tool loop that has so many results."""
    if results >= ROUNDS:
        return framed(burst("chat", 5), "one")
    return framed(call("add", [f'{{"a": {results}, ', '"b": 2}'], id=f"call_{results}"), "one")


def framed(events: list[bytes], framing: str) -> bytes:
    if framing == "close":
        return head(framing) + b"".join(events)
    body = b"".join(events)
    if framing == "large":
        parts = [body[start : start + 16384] for start in range(0, len(body), 16384)]
    else:
        step = {"one": 1, "eight": 8}[framing]
        parts = [b"".join(events[start : start + step]) for start in range(0, len(events), step)]
    return head(framing) + b"".join(map(chunk, parts)) + b"0\r\n\r\n"


def head(framing: str) -> bytes:
    how = "Connection: close" if framing == "close" else "Transfer-Encoding: chunked"
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{how}\r\n\r\n".encode()


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)
