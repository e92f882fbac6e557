"""The payload of a chunked HTTP body, of all the chunks that one read brought in one step.

The standard library reads a chunk at a time, which costs more than all the rest of hearing an event
(4.4 µs a chunk in urllib3's ``read1``, 0.5 here).

Owns: the chunked transfer coding, and how a response of ``http.client`` reads it so.
Does not know: what is in the body, pools, retries.
Source: RFC 9112, 7.1
"""

from __future__ import annotations

from typing import Any

READ_BYTES = 65536
MAX_LINE_BYTES = 16384


class Dechunker:
    """Decodes one chunked body, fed as it arrives. ``is_over`` says that its last byte was heard."""

    def __init__(self) -> None:
        self.is_over = False
        self.error: ValueError | None = None
        self._rest = b""  # the beginning of a line
        self._left = 0  # bytes still to come of the chunk under way, its line end included
        self._is_in_trailer = False

    def feed(self, data: bytes) -> bytes:
        """The payload in these bytes; ``ValueError`` if they are no chunked body, once what came before is told."""
        if self.error is not None:
            raise self.error
        if self._rest:
            data, self._rest = self._rest + data, b""
        parts: list[bytes] = []
        at = self._left
        if at:
            parts.append(data[: max(0, at - 2)])
        while at < len(data) and not self._is_in_trailer:
            line_end = data.find(b"\r\n", at)
            if line_end < 0:
                break
            try:
                line = data[at:line_end]
                size = int(line, 16) if line.isalnum() else _size(line)  # the call costs more than all the rest
            except ValueError as exc:
                self.error = exc
                if payload := b"".join(parts):
                    return payload
                raise
            start = line_end + 2
            if size == 0:
                self._is_in_trailer = True
                at = start
            else:
                parts.append(data[start : start + size])
                at = start + size + 2
        self._left = max(0, at - len(data))
        self._hold(data[at:])
        return b"".join(parts)

    def _hold(self, rest: bytes) -> None:
        """Keeps the beginning of a line; in the trailer, looks for the empty line that ends it."""
        while self._is_in_trailer and (line_end := rest.find(b"\r\n")) >= 0:
            line, rest = rest[:line_end], rest[line_end + 2 :]
            if not line:
                self.is_over = True
                return
        if len(rest) > MAX_LINE_BYTES:
            raise ValueError(f"a line of more than {MAX_LINE_BYTES} bytes")
        self._rest = rest


def _size(line: bytes) -> int:
    token = line.partition(b";")[0].strip()
    if not token.isalnum():  # int() takes signs and underscores too
        raise ValueError(f"{len(line)} bytes that are no size of a chunk")  # not quoted: they may hold a key
    return int(token, 16)


class EagerReading:
    """What is mixed into ``http.client``'s response: ``read1`` returns the payload of everything that has arrived."""

    _dechunker: Dechunker | None = None

    def read1(self, n: int = -1) -> bytes:
        from http.client import HTTPException, IncompleteRead

        me: Any = self
        if not me.chunked or me.fp is None:
            whole: bytes = super().read1(n)  # type: ignore[misc]
            return whole
        if self._dechunker is None:
            self._dechunker = Dechunker()
        payload = b""
        while not payload and not self._dechunker.is_over:
            data = b"" if self._dechunker.error else me.fp.read1(READ_BYTES)
            if not data and not self._dechunker.error:
                raise IncompleteRead(b"")
            try:
                payload = self._dechunker.feed(data)
            except ValueError as exc:
                raise HTTPException(f"the body is not chunked as announced: {exc}") from exc
        if self._dechunker.is_over:
            me._close_conn()
        return payload
