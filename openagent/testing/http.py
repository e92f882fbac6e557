"""One HTTP/1.1 connection of the scripted server: hears requests, plays raw answers.

Owns: bytes on the connection, framing, how it ends. Does not know: scripts, wire formats.
Source: RFC 9112.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from .script import Headers, Raw, Request

_RECEIVE = 1 << 16
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Gone(Exception):
    """The peer has left, or the server is closing."""


class Connection:
    """The server's end of one TCP connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._heard = bytearray()

    def request(self) -> Request:
        """The next request; ``Gone`` if none comes, ``ValueError`` if it is no HTTP."""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        line, *lines = head.lstrip("\r\n").split("\r\n")
        method, path, _ = line.split(" ")
        headers = Headers()
        for name, _, value in (entry.partition(":") for entry in lines):
            headers[name.strip().lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
        content = self._content(headers)
        return Request(method, path, headers, _parsed(content), content)

    def play(self, reply: Raw, *, keep_alive: bool, body: bool = True) -> bool:
        """Whether the connection can go on after this reply; ``Gone`` if the peer left before its end."""
        stays = keep_alive and reply.end == "normal" and reply.framing != "close"
        self._send(_head(reply, stays))
        if not body:
            return stays
        for index, chunk in enumerate(chunk for chunk in reply.chunks if chunk):
            if index and reply.delay:
                self._pause(reply.delay)
            self._send(b"%x\r\n%b\r\n" % (len(chunk), chunk) if reply.framing == "chunked" else chunk)
        if reply.hold:
            self._pause(reply.hold)
        if reply.end == "reset":
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        elif reply.end == "normal" and reply.framing == "chunked":
            self._send(b"0\r\n\r\n")
        return stays and _is_whole(reply)

    def _content(self, headers: Headers) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return self._take(int(headers.get("content-length", "0")))
        parts = []
        while size := int(self._until(b"\r\n").split(b";")[0], 16):
            parts.append(self._take(size))
            self._until(b"\r\n")
        while self._until(b"\r\n"):  # trailers
            pass
        return b"".join(parts)

    def _until(self, end: bytes) -> bytes:
        start = 0
        while (found := self._heard.find(end, start)) < 0:
            start = max(0, len(self._heard) - len(end))
            self._receive()
        line = self._take(found)
        del self._heard[: len(end)]
        return line

    def _take(self, size: int) -> bytes:
        while len(self._heard) < size:
            self._receive()
        taken = bytes(self._heard[:size])
        del self._heard[:size]
        return taken

    def _receive(self) -> None:
        try:
            chunk = self._sock.recv(_RECEIVE)
        except TimeoutError:
            raise
        except (OSError, ValueError) as exc:
            raise Gone from exc
        if not chunk:
            raise Gone
        self._heard += chunk

    def _send(self, chunk: bytes) -> None:
        try:
            self._sock.sendall(chunk)
        except (OSError, ValueError) as exc:
            raise Gone from exc

    def _pause(self, seconds: float) -> None:
        """Let the seconds pass; ``Gone`` as soon as the peer leaves."""
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                self._sock.settimeout(left)
                self._receive()
        except TimeoutError:
            pass
        finally:
            self._sock.settimeout(None)


def stays_open(request: Request) -> bool:
    """Whether the client wants to use the connection again."""
    return "close" not in request.headers.get("connection", "").lower()


def serve(connection: Connection, answered: Callable[[Request], Raw]) -> None:
    """Answer the requests of a connection until either side has had enough."""
    stays = True
    while stays:
        try:
            request = connection.request()
        except Gone:
            return
        try:
            stays = connection.play(answered(request), keep_alive=stays_open(request), body=request.method != "HEAD")
        except Gone:
            return


def _head(reply: Raw, stays: bool) -> bytes:
    headers = dict(reply.headers)
    named = Headers(headers)
    if reply.framing == "chunked" and "transfer-encoding" not in named:
        headers["Transfer-Encoding"] = "chunked"
    if reply.framing == "length" and "content-length" not in named:
        headers["Content-Length"] = str(sum(map(len, reply.chunks)))
    if not stays and reply.end == "normal" and "connection" not in named:
        headers["Connection"] = "close"
    lines = [
        f"HTTP/1.1 {reply.status} {_phrase(reply.status)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _is_whole(reply: Raw) -> bool:
    if reply.framing != "length":
        return True
    size = sum(map(len, reply.chunks))
    return size >= int(Headers(reply.headers).get("content-length", size))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unassigned"


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
