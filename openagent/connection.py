"""HTTP connections that can be cut from another thread in every phase.

A blocked connect, TLS handshake, wait for headers or read ends at once when its socket is shut down.
``requests`` and ``urllib3`` hand out no socket before the response, so our connection class keeps a
duplicate from before ``connect()``. (A name look-up cannot be cut short.)

Owns: sockets and the pool of connections. Does not know: what is sent, why a connection is cut.
Source: urllib3 2.3 to 2.8; the shutdown of a socket that another thread reads wakes that thread (POSIX).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from .chunked import EagerReading

if TYPE_CHECKING:
    import socket

    from requests import PreparedRequest, Response

CHUNK_BYTES = 65536


class Connections:
    """The connections of one client: a pool per host, one request at a time."""

    def __init__(self) -> None:
        self.is_cut: Callable[[], bool] = lambda: False  # whether the exchange under way is over
        self.was_reused = False  # the request under way went out on a connection kept alive
        self._socket: socket.socket | None = None
        self._response: Response | None = None
        self._adapter: Any = None
        self._process = 0
        self._head: tuple[Any, PreparedRequest] | None = None

    def prepared(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> PreparedRequest:
        """The request as ``send`` takes it. ``requests.RequestException`` if its URL is none.

        URL and headers are nearly always those of the request before, and preparing them costs 100 µs.
        """
        import requests

        head = (method, url, dict(headers))
        if self._head is None or self._head[0] != head:
            made = requests.Request(*head).prepare()
            # requests and urllib3 send names and versions of their own unless told to skip it.
            made.headers.setdefault("User-Agent", "@@@SKIP_HEADER@@@")
            made.headers.setdefault("Accept-Encoding", "identity")  # so that no proxy gathers a block to compress
            self._head = head, made
        prepared = self._head[1].copy()
        prepared.prepare_body(body, None)
        return prepared

    def send(
        self,
        request: PreparedRequest,
        *,
        timeout: tuple[float, float],
        proxies: Mapping[str, str],
        verify: bool | str,
        cert: Any,
    ) -> Response:
        """The response to a request, its headers in and its body not yet read.

        The pool is used without a session: a session would add cookies, ``.netrc`` and redirects.
        """
        if self._adapter is None or self._process != os.getpid():
            self._adapter = _adapter_class()(self)  # after a fork the connections are the parent's
            self._process = os.getpid()
        self._response = None
        response: Response = self._adapter.send(
            request, stream=True, timeout=timeout, proxies=proxies, verify=verify, cert=cert
        )
        self._response = response
        return response

    def cut(self) -> None:
        """Shut down the connection under way; whoever is blocked on it wakes up."""
        if self._process != os.getpid():  # a forked child has no business with the parent's
            return
        for shutdown in (self._shutdown_socket, self._shutdown_response):
            try:
                shutdown()
            except (OSError, ValueError, RuntimeError, AttributeError):  # already closed, or not yet open
                pass

    def close(self) -> None:
        """Close all connections. They are opened again when needed."""
        self._socket = self._response = None  # the response would keep its pool alive, and that its connections
        if self._adapter is not None:
            self._adapter.close_connections()

    def entered(self, sock: socket.socket | None, *, was_reused: bool) -> None:
        """A connection says that the request under way goes through this socket."""
        self._socket, self.was_reused = sock, was_reused

    def _shutdown_socket(self) -> None:
        if self._socket is not None:
            self._socket.shutdown(2)  # socket.SHUT_RDWR

    def _shutdown_response(self) -> None:
        # Of a body that ends with the connection the pool has already let the socket go.
        if self._response is not None:
            self._response.raw.shutdown()


def read(response: Response) -> bytes:
    """The next bytes of a body as soon as there are any; empty at its end.

    ``read1`` because all other readers wait for more on bodies that end with the connection.
    """
    chunk: bytes = response.raw.read1(CHUNK_BYTES, decode_content=True)
    return chunk


def drain(response: Response, *, patience: float = 0.05, limit: int = 16 * CHUNK_BYTES) -> None:
    """Read the rest of a body if it comes at once, so that its connection can be used again."""
    sock = getattr(response.raw.connection, "sock", None)
    if sock is None:
        return
    usual = sock.gettimeout()
    sock.settimeout(patience)
    try:
        while limit > 0 and (chunk := read(response)):
            limit -= len(chunk)
    finally:
        sock.settimeout(usual)


@cache
def _adapter_class() -> Any:
    from requests.adapters import HTTPAdapter

    class PoolAdapter(HTTPAdapter):
        """requests' adapter over pools of our connections."""

        def __init__(self, connections: Connections) -> None:
            self.pool_classes = _pool_classes(connections)
            super().__init__(max_retries=0)

        def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
            super().init_poolmanager(*args, **kwargs)
            self.poolmanager.pool_classes_by_scheme = self.pool_classes

        def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
            manager = super().proxy_manager_for(proxy, **kwargs)
            if not proxy.lower().startswith("socks"):
                manager.pool_classes_by_scheme = self.pool_classes
            return manager

        def close_connections(self) -> None:
            # clear() alone leaves them open as long as anybody, such as the traceback of an error, knows the pool.
            for manager in (self.poolmanager, *self.proxy_manager.values()):
                for pool in map(manager.pools.get, manager.pools.keys()):
                    if pool is not None:
                        pool.close()
                manager.clear()

    return PoolAdapter


def _pool_classes(connections: Connections) -> dict[str, Any]:
    """urllib3's pools with connections that report to ``connections``."""
    from http.client import HTTPResponse

    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    pools = {"http": (HTTPConnectionPool, HTTPConnection), "https": (HTTPSConnectionPool, HTTPSConnection)}
    response = type("EagerResponse", (EagerReading, HTTPResponse), {})
    made = {}
    for scheme, (pool, connection) in pools.items():
        members = {"connections": connections, "response_class": response}
        cuttable = type("CuttableConnection", (_Cuttable, connection), members)
        made[scheme] = type("Pool", (pool,), {"ConnectionCls": cuttable, "QueueCls": _Stack})
    return made


class _Stack:
    """Where a pool keeps its connections, the last one on top, without a lock: a list's own steps are whole.

    ``queue.LifoQueue`` stays locked for ever if Ctrl-C comes while it is being locked, and the next request hangs.
    """

    def __init__(self, maxsize: int) -> None:
        self._items: list[Any] = []
        self._maxsize = maxsize

    def put(self, item: Any, block: bool = False, timeout: float | None = None) -> None:
        from queue import Full

        if len(self._items) >= self._maxsize:
            raise Full
        self._items.append(item)

    def get(self, block: bool = False, timeout: float | None = None) -> Any:
        from queue import Empty

        try:
            return self._items.pop()
        except IndexError:
            raise Empty from None

    def qsize(self) -> int:
        return len(self._items)


class _Cuttable:
    """What is mixed into urllib3's connections: they keep a duplicate of their socket from its birth."""

    connections: Connections
    _duplicate: socket.socket | None = None
    _has_sent = False

    def _new_conn(self) -> socket.socket:
        import socket

        from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

        me: Any = self
        try:
            return self._connected(me._dns_host, me.port, me.timeout, me.source_address, me.socket_options)
        except (socket.gaierror, UnicodeError) as exc:  # the latter of a label that is empty or too long
            raise NameResolutionError(me.host, me, exc) from exc  # type: ignore[arg-type]
        except TimeoutError as exc:
            raise ConnectTimeoutError(me, f"no connection to {me.host} within {me.timeout} s") from exc
        except OSError as exc:
            raise NewConnectionError(me, f"Failed to establish a new connection: {exc}") from exc

    def _connected(self, host: str, port: int, timeout: float, source: Any, settings: Any) -> socket.socket:
        import socket

        failure: OSError = OSError("the name has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM):
            sock = socket.socket(family, kind, protocol)
            try:
                self._keep(sock)
                for setting in settings or ():
                    sock.setsockopt(*setting)
                sock.settimeout(timeout)
                if source:
                    sock.bind(source)
                sock.connect(address)
                return sock
            except OSError as exc:
                sock.close()
                failure = exc
                if self.connections.is_cut():
                    break
            except BaseException:  # Ctrl-C
                sock.close()
                raise
        raise failure

    def _keep(self, sock: socket.socket) -> None:
        self._let_go()
        self._duplicate = sock.dup()
        self._has_sent = False
        self.connections.entered(self._duplicate, was_reused=False)
        if self.connections.is_cut():  # cut before there was a socket to shut down
            raise OSError("cut")

    def _let_go(self) -> None:
        if self._duplicate is not None:
            self._duplicate.close()
            self._duplicate = None

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self._duplicate is not None:
            self.connections.entered(self._duplicate, was_reused=self._has_sent)
        super().request(*args, **kwargs)  # type: ignore[misc]  # connects, if it is not connected
        self._has_sent = True

    def close(self) -> None:
        super().close()  # type: ignore[misc]
        self._let_go()
