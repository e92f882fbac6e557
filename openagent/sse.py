"""Bytes of a body in, server-sent events out.

The framing is our own: an event is handed out with the byte that ends it, wherever the network cut
the stream, and the cost is linear in the size of an event. That is why data lines are joined here too;
the other fields of a frame are read by ``sseclient-py``, but for the frame that nearly all servers send
(an optional ``event:`` line and one ``data:`` line), which is read here whole.

Owns: line ends, frames, data. Does not know: JSON, ``[DONE]``, providers.
Source: https://html.spec.whatwg.org/multipage/server-sent-events.html (9.2.5, 9.2.6)
"""

from __future__ import annotations

from typing import Union

from .limits import Limits

_BOM = b"\xef\xbb\xbf"


# One event: its name (None if it has none) and its data, lines joined by LF. A plain tuple: a class costs 0.3 µs.
Frame = tuple[Union[str, None], bytes]


class Framer:
    """Cuts a body into frames. Feed it what arrives; ask for the ``rest`` at the end."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._buffer = bytearray()  # a frame under way
        self._scanned = 0  # it does not end before this place
        self._head: bytes | None = b""  # the first bytes, while they may be a byte order mark
        self._after_cr = False  # an LF that comes next belongs to the CR before it
        self._limits = limits or Limits()
        self._limit = self._limits.event_bytes

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that end in this chunk."""
        return [frame for raw in self.cut(chunk) if (frame := read_frame(raw)) is not None]

    def cut(self, chunk: bytes) -> list[bytes]:
        """The same, not yet read: the lines of each, which end with LF."""
        if self._head is not None:
            chunk = self._without_bom(chunk)
        chunk = self._with_lf(chunk)
        buffer = self._buffer
        frames: list[bytes] = []
        if buffer:
            buffer += chunk
            end = buffer.find(b"\n\n", max(0, self._scanned - 1))
            if end < 0:
                self._scanned = len(buffer)
                self._check_size()
                return []
            with memoryview(buffer) as view:  # cut without copying what may be megabytes twice
                frames.append(bytes(view[:end]))
                chunk = bytes(view[end + 2 :])
        # All frames of a chunk in one split: 0.3 µs a frame, a search for each end costs 1.
        *whole, rest = chunk.split(b"\n\n")
        self._buffer = bytearray(rest)
        self._scanned = len(rest)
        self._check_size()
        return frames + whole

    def _with_lf(self, chunk: bytes) -> bytes:
        """The chunk with one kind of line end: CR LF and CR alone become LF, also when cut between the two."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _without_bom(self, chunk: bytes) -> bytes:
        chunk = (self._head or b"") + chunk
        if len(chunk) < 3 and _BOM.startswith(chunk):
            self._head = chunk
            return b""
        self._head = None
        return chunk.removeprefix(_BOM)

    def _check_size(self) -> None:
        if len(self._buffer) > self._limit:
            raise self._limits.exceeded("event_bytes")

    def rest(self) -> Frame | None:
        """The last frame, if the body ended without the empty line after it."""
        raw, self._buffer = bytes(self._buffer), bytearray()
        return read_frame(raw)


def read_frame(raw: bytes) -> Frame | None:
    """The event in the lines of one frame, which end with LF; None if it has no data."""
    # Nine of ten servers send "data: {...}" alone: one search here against some 3 µs in sseclient.
    if raw.startswith(b"data: ") and b"\n" not in raw:
        return None, raw[6:]
    head, _, tail = raw.partition(b"\n")
    if head.startswith(b"event:") and tail.startswith(b"data:") and b"\n" not in tail:
        name, data = _value(head, 6), _value(tail, 5)
        if name and data:
            return None if name == b"message" else name.decode("utf-8", "replace"), data
    return _read_fields(raw)


def _value(line: bytes, start: int) -> bytes:
    return line[start + 1 :] if line[start : start + 1] == b" " else line[start:]


def _read_fields(raw: bytes) -> Frame | None:
    name, data = b"", []
    for line in raw.splitlines():
        field = line.partition(b":")[0]
        if field == b"data":
            data.append(_value(line, 5))
        elif field == b"event":
            name = line
        elif line.startswith(b"error:"):  # llama.cpp before 2024 reports an error in a field of its own
            return "error", _value(line, 6)
    if not data:  # an event without data is none
        return None
    # sseclient adds line to line, which costs the square of their number, and raises on bytes that are not
    # UTF-8: data lines are joined here.
    import sseclient

    rest = name.decode("utf-8", "replace").encode() + b"\ndata"
    for event in sseclient.SSEClient(iter([rest])).events():
        return None if event.event == "message" else event.event, b"\n".join(data)
    return None
