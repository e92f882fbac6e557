"""The programs that are measured: ours, and three that a user might write instead, which understand nothing.

Each is a function from a port, a plan and what to do with a piece of text to nothing.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

from openagent import Client, TextBlock, ToolUseBlock

Hear = Callable[[str], Any]
Contestant = Callable[[int, str, Hear], None]

PATHS = {"chat": "chat/completions", "responses": "responses", "anthropic": "messages"}
ASKED = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": "Say something."}]}


def url(port: int, plan: str) -> str:
    return f"http://127.0.0.1:{port}/{plan}/v1/{PATHS[_protocol(plan)]}"


def _protocol(plan: str) -> str:
    return plan.split(".")[1] if "." in plan else "chat"


def client(port: int, plan: str, **settings: Any) -> Client:
    protocol = {"chat": "openai-chat", "responses": "openai-responses"}.get(_protocol(plan), "anthropic")
    base_url = f"http://127.0.0.1:{port}/{plan}/v1"
    return Client(model="bench", base_url=base_url, protocol=protocol, api_key="k", **settings)


def ours(port: int, plan: str, hear: Hear) -> None:
    """The whole client in manual mode; of a call its text."""
    with client(port, plan) as asked:
        asked.send("Say something.")
        for block in asked.receive():
            if isinstance(block, TextBlock):
                hear(block.text)
            elif isinstance(block, ToolUseBlock):
                hear(block.input["text"])


def _said_on_chat(event: dict[str, Any]) -> str:
    if not event["choices"]:
        return ""
    delta = event["choices"][0]["delta"]
    if calls := delta.get("tool_calls"):
        return calls[0]["function"]["arguments"]
    return delta.get("content") or ""


def _said_on_responses(event: dict[str, Any]) -> str:
    return event["delta"] if event["type"] == "response.output_text.delta" else ""


def _said_on_anthropic(event: dict[str, Any]) -> str:
    return event["delta"]["text"] if event["type"] == "content_block_delta" else ""


SAID = {"chat": _said_on_chat, "responses": _said_on_responses, "anthropic": _said_on_anthropic}


def with_requests(port: int, plan: str, hear: Hear) -> None:
    """requests + iter_lines + json.loads: the yardstick."""
    import requests

    said, loads, arguments, tell = SAID[_protocol(plan)], json.loads, [], hear
    if plan.startswith("arguments"):
        hear = arguments.append
    with requests.post(url(port, plan), json=ASKED, stream=True) as response:
        for line in response.iter_lines():
            if line.startswith(b"data: {") and (text := said(loads(line[6:]))):
                hear(text)
    if arguments:
        tell(loads("".join(arguments))["text"])


def with_sseclient(port: int, plan: str, hear: Hear) -> None:
    """requests + sseclient-py + json.loads."""
    import requests
    import sseclient

    said, loads = SAID[_protocol(plan)], json.loads
    with requests.post(url(port, plan), json=ASKED, stream=True) as response:
        for event in sseclient.SSEClient(response).events():
            if event.data != "[DONE]" and (text := said(loads(event.data))):
                hear(text)


def with_socket(port: int, plan: str, hear: Hear) -> None:
    """A socket and json.loads, by hand."""
    said, loads, arguments, tell = SAID[_protocol(plan)], json.loads, [], hear
    if plan.startswith("arguments"):
        hear = arguments.append
    for data in _frames(port, plan):
        if data.startswith(b"event: "):
            data = data[data.find(b"\n") + 1 :]
        if data.startswith(b"data: {") and (text := said(loads(data[6:]))):
            hear(text)
    if arguments:
        tell(loads("".join(arguments))["text"])


def _frames(port: int, plan: str) -> Iterator[bytes]:
    body = json.dumps(ASKED).encode()
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"POST /{plan}/v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
        sock.sendall(head.encode() + body)
        received = b""
        while b"\r\n\r\n" not in received:
            received += sock.recv(65536)
        head_text, _, received = received.partition(b"\r\n\r\n")
        chunks = _pieces(sock, received) if b": close" in head_text else _dechunked(sock, received)
        buffer = bytearray()
        for chunk in chunks:
            start = max(0, len(buffer) - 1)
            buffer += chunk
            if buffer.find(b"\n\n", start) < 0:
                continue
            *frames, rest = bytes(buffer).split(b"\n\n")
            buffer = bytearray(rest)
            yield from frames


def _pieces(sock: socket.socket, received: bytes) -> Iterator[bytes]:
    yield received
    while chunk := sock.recv(65536):
        yield chunk


def _dechunked(sock: socket.socket, received: bytes) -> Iterator[bytes]:
    buffer, at = bytearray(received), 0
    while True:
        end = buffer.find(b"\r\n", at)
        if end >= 0:
            size = int(buffer[at:end], 16)
            if size == 0:
                return
            if len(buffer) >= end + 4 + size:
                yield bytes(buffer[end + 2 : end + 2 + size])
                at = end + 4 + size
                continue
        del buffer[:at]
        at = 0
        buffer += sock.recv(65536)


YARDSTICKS: dict[str, Contestant] = {
    "socket": with_socket,
    "requests": with_requests,
    "sseclient": with_sseclient,
}


def requests_conversation(port: int, plan: str) -> Callable[[], str]:
    """A conversation as one writes it with requests: each call is one more turn."""
    import requests

    session, messages = requests.Session(), []
    said, name = SAID[_protocol(plan)], "input" if _protocol(plan) == "responses" else "messages"

    def turn() -> str:
        messages.append({"role": "user", "content": QUESTION})
        asked = {"model": "bench", "stream": True, name: messages}
        pieces = []
        with session.post(url(port, plan), json=asked, stream=True) as response:
            for line in response.iter_lines():
                if line.startswith(b"data: {") and (text := said(json.loads(line[6:]))):
                    pieces.append(text)
        messages.append({"role": "assistant", "content": "".join(pieces)})
        return "".join(pieces)

    return turn


QUESTION = "And what happened next? Tell me the whole story, as long as it takes, and leave nothing out of it."


def requests_tool_loop(port: int) -> str:
    """A tool loop as one writes it with requests."""
    import requests

    session = requests.Session()
    messages: list[dict[str, Any]] = [{"role": "user", "content": "add"}]
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "add", "description": "Add.", "parameters": parameters}}]
    while True:
        pieces, calls = [], {}
        asked = {"model": "bench", "stream": True, "messages": messages, "tools": tools}
        with session.post(url(port, "tools"), json=asked, stream=True) as response:
            for line in response.iter_lines():
                if not line.startswith(b"data: {"):
                    continue
                choices = json.loads(line[6:])["choices"]
                delta = choices[0]["delta"] if choices else {}
                if delta.get("content"):
                    pieces.append(delta["content"])
                for part in delta.get("tool_calls") or []:
                    held = calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
                    held["id"] += part.get("id") or ""
                    held["name"] += part["function"].get("name") or ""
                    held["arguments"] += part["function"].get("arguments") or ""
        if not calls:
            return "".join(pieces)
        made = [
            {"id": held["id"], "type": "function", "function": {"name": held["name"], "arguments": held["arguments"]}}
            for held in calls.values()
        ]
        messages.append({"role": "assistant", "content": "".join(pieces), "tool_calls": made})
        for held in calls.values():
            given = json.loads(held["arguments"])
            messages.append({"role": "tool", "tool_call_id": held["id"], "content": str(given["a"] + given["b"])})
