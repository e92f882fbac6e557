"""The server of the fault matrix, and what stands in the way to it."""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import ssl
import tempfile
from dataclasses import replace
from functools import cache

import trustme
from soak.fault_cases import IN_BODY, INSTEAD, RECOVERED, ROUNDS, THEN, TURNS, Case

from openagent.testing import ScriptedServer
from openagent.testing.reply import reply, wire_of
from openagent.testing.wire import Memory

NAME = "model.test"  # a host that can be found until it cannot


class Script:
    """What the server does: it plays the round that the request is about, and the fault once, in its round."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._has_failed = False
        self._then = ""  # what the next request meets
        self.server: ScriptedServer | None = None

    def __call__(self, request):
        case = self._case
        if self._then in INSTEAD:
            item = INSTEAD[self._then]
            self._then = "" if THEN[self._then] is None else self._then
            return item
        if b"and now?" in request.raw:
            return "fine"
        number = sum(f"done {n}".encode() in request.raw for n in range(1, ROUNDS + 1))
        if number != case.round or self._has_failed:
            return TURNS[number]
        self._has_failed = case.fault not in INSTEAD or case.fault in RECOVERED
        if case.fault in INSTEAD:
            return INSTEAD[case.fault]
        if case.fault.startswith("dropped"):
            self._drop()
        self._block(case.then)
        if case.fault in IN_BODY or case.then:
            return spoilt(case, reply(TURNS[number], request, wire_of(request), Memory()))
        return TURNS[number]

    def repair(self) -> None:
        """Nothing is wrong with the server any more."""
        self._then = ""

    def _drop(self) -> None:
        assert self.server is not None
        if "refused" in self._case.fault:
            self._block("refused")
        for sock in list(self.server._open):
            sock.shutdown(socket.SHUT_RDWR)

    def _block(self, then: str) -> None:
        """Whoever comes next does not get through."""
        assert self.server is not None
        self._then = then
        if then in ("refused", "proxy refuses"):
            self.server._listener.shutdown(socket.SHUT_RDWR)
        elif then == "TLS":
            self.server._ssl = context(trustme.CA())
        elif then == "DNS":
            names.lost = True


class Names:
    """A look-up of names that knows one more, until it is lost."""

    def __init__(self) -> None:
        self.lost = False
        self._usual = socket.getaddrinfo

    def __call__(self, host, *args, **kwargs):
        if host == NAME and self.lost:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._usual("127.0.0.1" if host == NAME else host, *args, **kwargs)

    @contextlib.contextmanager
    def known(self):
        self.lost = False
        socket.getaddrinfo = self
        try:
            yield
        finally:
            socket.getaddrinfo = self._usual


names = Names()


def spoilt(case: Case, whole):
    """The answer as it comes when it is spoilt."""
    if case.in_bytes:
        return replace(whole, chunks=(b"".join(whole.chunks)[: case.place],), end="abrupt")
    kept = replace(whole, chunks=whole.chunks[: case.place])
    if case.fault.startswith("cut"):
        return replace(kept, end="abrupt")
    if case.fault == "reset":
        return replace(kept, end="reset", hold=0.01)  # or what was sent is lost with it
    if case.fault == "stall":
        return replace(kept, hold=30.0)
    if case.fault == "half frame":
        half = b"".join(whole.chunks[case.place :])[:9]
        return replace(kept, chunks=(*kept.chunks, half), end="abrupt")
    if case.fault == "garbage":
        return replace(kept, chunks=(*kept.chunks, b"data: {garbage\n\n"))
    if case.fault == "error event":
        event = b'event: error\ndata: {"type": "error", "error": {"type": "server_error", "message": "broken"}}\n\n'
        return replace(kept, chunks=(*kept.chunks, event))
    if case.fault == "gzip cut":
        packer = gzip.compress(b"".join(kept.chunks) + os.urandom(64))
        headers = {**whole.headers, "Content-Encoding": "gzip"}
        return replace(kept, chunks=(packer[:-40],), headers=headers, end="abrupt")
    if case.fault == "no chunks":
        end = b"zz\r\nwhat is this\r\n"
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in kept.chunks)
        headers = {**whole.headers, "Transfer-Encoding": "chunked"}
        return replace(kept, chunks=(chunks + end,), framing="close", headers=headers)
    return kept


@cache
def authority() -> tuple[trustme.CA, str]:
    """Whom the clients trust, and the file that says so."""
    made = trustme.CA()
    path = os.path.join(tempfile.mkdtemp(), "authority.pem")
    made.cert_pem.write_to_path(path)
    return made, path


def context(of: trustme.CA) -> ssl.SSLContext:
    """What a server with a certificate of this authority needs."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    of.issue_cert("127.0.0.1").configure_cert(made)
    return made


@cache
def untrusted() -> ScriptedServer:
    """A server whose certificate nobody trusts, for the whole process."""
    return ScriptedServer(ssl_context=context(trustme.CA()))
