"""A real HTTP server on the loopback interface that plays a script.

Owns: the listening socket, the threads, the place in the script, what was heard. Does not know:
wire formats, framing.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from typing import Any

from .http import Connection, serve
from .reply import Wire, complaint, reply, wire_of
from .script import Answer, Failure, Item, Raw, Request, answer, failure
from .wire import Memory

_JOIN_SECONDS = 5.0


class ScriptedServer:
    """A server that answers each request with the next item of its script.

    An item is a text, an ``answer``, a ``failure``, a ``raw``, or a function from the ``Request``
    to one of these. ``strict`` refuses with 400 what a strict vendor refuses and keeps the reason
    in ``complaints``; the item is not used up. ``repeat`` starts the script over at its end.
    ``ssl_context`` makes it HTTPS. With ``accept=False`` nothing is accepted: a connect hangs.

    Read-only: ``url`` (the base URL with ``/v1``), ``port``, ``requests``, ``complaints``,
    ``connections`` (accepted so far), ``open_connections``.
    """

    def __init__(
        self,
        *script: Item,
        strict: bool = True,
        repeat: bool = False,
        ssl_context: ssl.SSLContext | None = None,
        accept: bool = True,
    ) -> None:
        self.requests: list[Request] = []
        self.complaints: list[str] = []
        self.connections = 0
        self._script: list[Item] = list(script)
        self._strict, self._repeat, self._ssl = strict, repeat, ssl_context
        self._next = 0
        self._given = 0
        self._memory = Memory()
        self._lock = threading.Lock()
        self._heard = threading.Condition(self._lock)
        self._open: dict[socket.socket, threading.Thread] = {}
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128 if accept else 0)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if ssl_context else 'http'}://127.0.0.1:{self.port}/v1"
        self._fillers: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, name=f"scripted server {self.port}", daemon=True)
        if accept:
            self._accepting.start()
        else:
            self._fill_backlog()

    @property
    def open_connections(self) -> int:
        """The connections that neither side has closed yet."""
        with self._lock:
            return len(self._open)

    def add(self, *items: Item) -> None:
        """Append to the script."""
        with self._lock:
            self._script.extend(items)

    def wait_for_requests(self, count: int, timeout: float = 5) -> list[Request]:
        """The requests heard, once there are so many; ``TimeoutError`` if that takes too long."""
        with self._heard:
            if not self._heard.wait_for(lambda: len(self.requests) >= count, timeout):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came within {timeout} s")
            return list(self.requests)

    def close(self) -> None:
        """Stop at once: every connection is closed, every thread ends."""
        with self._lock:
            self._closed = True
            connections = dict(self._open)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept on Linux; elsewhere the connect does
        if self._accepting.is_alive():
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        for sock in connections:
            _shut_down(sock)
        if self._accepting.ident is not None:
            self._accepting.join(_JOIN_SECONDS)
        until = time.monotonic() + _JOIN_SECONDS
        for thread in connections.values():
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))
        for sock in (*self._fillers, self._listener):
            sock.close()

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ScriptedServer({self.url}, {len(self.requests)} requests, {len(self.complaints)} complaints)"

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._closed:
                    sock.close()
                    return
                self.connections += 1
                self._start(sock)

    def _start(self, sock: socket.socket) -> None:
        try:
            if self._ssl is not None:
                sock = self._ssl.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError:  # the peer has left already
            sock.close()
            return
        self._open[sock] = threading.Thread(target=self._serve, args=(sock,), daemon=True)
        self._open[sock].start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if isinstance(sock, ssl.SSLSocket):
                sock.do_handshake()
            serve(Connection(sock), self._answered)
        except OSError:  # the peer left in the midst of the handshake
            pass
        except ValueError as exc:
            self._complain(f"this is no HTTP request: {exc}")
        finally:
            with self._lock:
                sock.close()
                self._open.pop(sock)

    def _answered(self, request: Request) -> Raw:
        wire = wire_of(request)
        with self._heard:
            self.requests.append(request)
            self._heard.notify_all()
            against = complaint(request, wire, self._memory) if self._strict else None
            item = self._taken() if against is None else _refusal(against, wire)
        if against is not None:
            self._complain(against)
        return self._reply(item, request, wire)

    def _reply(self, item: Item, request: Request, wire: Wire | None) -> Raw:
        while callable(item):
            try:
                item = item(request)
            except Exception as exc:
                item = self._broken(f"the script's function failed: {exc!r}")
        if isinstance(item, str):
            item = answer(item)
        if not isinstance(item, (Answer, Failure, Raw)):
            item = self._broken(f"the script holds {item!r:.100}, which is no answer")
        try:
            with self._lock:
                return reply(item, request, wire, self._memory)
        except (TypeError, ValueError) as exc:
            item = self._broken(f"the script's answer cannot be written as JSON: {exc}")
            return reply(item, request, wire, self._memory)

    def _taken(self) -> Item:
        if self._repeat and self._next == len(self._script):
            self._next = 0
        if self._next >= len(self._script):
            message = f"the script has ended: {self._given} answers were given"
            self.complaints.append(message)
            return failure(500, message, headers={"x-should-retry": "false"})
        item = self._script[self._next]
        self._next += 1
        self._given += 1
        return item

    def _broken(self, message: str) -> Failure:
        self._complain(message)
        return failure(500, message, headers={"x-should-retry": "false"})

    def _complain(self, message: str) -> None:
        with self._lock:
            self.complaints.append(message)

    def _fill_backlog(self) -> None:
        """Take the one place that a backlog of 0 leaves, so that the next connect hangs."""
        with contextlib.suppress(OSError):
            self._fillers.append(socket.create_connection(("127.0.0.1", self.port), timeout=1))


def _refusal(message: str, wire: Wire | None) -> Failure:
    return failure(404 if wire is None else 400, message)


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # of the TCP connection, also under TLS
