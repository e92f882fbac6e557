"""A server in a process of its own: it sends what was built before, so that it costs the client nothing.

``/PLAN/v1/...`` is answered with ``bodies.reply(PLAN)``, ``/tools/...`` with the next turn of a tool loop,
``/trickle.PROTOCOL.FRAMING.COUNT/...`` with deltas that say when each was sent; ``/connections`` with their number.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from . import bodies

PAUSE = 0.002  # seconds between two lone deltas


class Server:
    """Serves until its process ends."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._connections = 0

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        while True:
            sock, _ = self._listener.accept()
            self._connections += 1
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

    def _talk(self, sock: socket.socket) -> None:
        received = b""
        try:
            with sock:
                while True:
                    while b"\r\n\r\n" not in received:
                        if not (chunk := sock.recv(65536)):
                            return
                        received += chunk
                    head, _, received = received.partition(b"\r\n\r\n")
                    size = _content_length(head)
                    while len(received) < size:
                        received += sock.recv(1 << 20)
                    body, received = received[:size], received[size:]
                    if not self._answer(sock, head.split(b" ", 2)[1].decode().split("/")[1], body):
                        return
        except OSError:
            return

    def _answer(self, sock: socket.socket, plan: str, body: bytes) -> bool:
        """Sends a reply; False if the connection ends with it."""
        if plan == "connections":
            text = str(self._connections).encode()
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))
        elif plan == "tools":
            sock.sendall(bodies.tool_reply(body.replace(b": ", b":").count(b'"role":"tool"')))
        elif plan.startswith("trickle"):
            _trickle(sock, *plan.split(".")[1:])
        else:
            sock.sendall(bodies.reply(plan))
        return ".close." not in plan


def _trickle(sock: socket.socket, protocol: str, framing: str, count: str) -> None:
    cut = (lambda part: part) if framing == "close" else bodies.chunk
    sock.sendall(bodies.head(framing) + b"".join(map(cut, bodies.opening(protocol))))
    for _ in range(int(count)):
        time.sleep(PAUSE)
        sock.sendall(cut(bodies.delta(protocol, f"{time.perf_counter():.7f} ")))
    sock.sendall(b"".join(map(cut, bodies.ending(protocol, ""))) + (b"" if framing == "close" else b"0\r\n\r\n"))


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0


@contextmanager
def running() -> Iterator[int]:
    """The port of a server in a process of its own."""
    process = subprocess.Popen([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    server = Server()
    print(server.port, flush=True)
    server.serve()
