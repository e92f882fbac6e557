"""Bytes of a body in, server-sent events out.

The framing is our own: an event is handed out with the byte that ends it, wherever the network cut
the stream, and the cost is linear in the size of an event. That is why data lines are joined here too;
the other fields of a frame are read by ``sseclient-py``, but for the frame that nearly all servers send
(an optional ``event:`` line and one ``data:`` line), which is read here whole.

Owns: line ends, frames, data. Does not know: JSON, ``[DONE]``, providers.
Source: https://html.spec.whatwg.org/multipage/server-sent-events.html (9.2.5, 9.2.6)
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .errors import InvalidResponseError

MAX_FRAME_BYTES = 64 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
# The end of a line and an empty line after it, whatever the line ends. The order of the alternatives
# keeps CR LF one line end: neither half of it can be taken for a line of its own.
_FRAME_END = re.compile(rb"\n(?:\r\n?|\n)|\r\n(?:\r\n?|\n)|\r\r\n?")


class Frame(NamedTuple):
    """One event: its name (None if it has none) and its data, lines joined by LF."""

    event: str | None
    data: bytes


class Framer:
    """Cuts a body into frames. Feed it what arrives; ask for the ``rest`` at the end."""

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._scanned = 0  # no frame ends before this place
        self._started = False
        self._after_cr = False  # an LF that comes next belongs to the CR before it
        self._limit = max_frame_bytes

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that end in this chunk."""
        buffer = self._buffer
        buffer += chunk
        if not self._is_started() or not buffer:
            return []
        if self._after_cr:
            self._after_cr = False
            if buffer[0] == 10:
                del buffer[0]
        frames: list[Frame] = []
        start, search = 0, _FRAME_END.search
        while found := search(buffer, max(start, self._scanned)):
            frame = read_frame(bytes(buffer[start : found.start()]))
            if frame is not None:
                frames.append(frame)
            start = found.end()
        if start:
            self._after_cr = start == len(buffer) and buffer[-1] == 13
            del buffer[:start]
        self._scanned = max(0, len(buffer) - 3)
        if len(buffer) > self._limit:
            raise InvalidResponseError(f"the server sent an event of more than {self._limit} bytes")
        return frames

    def rest(self) -> Frame | None:
        """The last frame, if the body ended without the empty line after it."""
        frame = read_frame(bytes(self._buffer)) if self._started else None
        self._buffer.clear()
        return frame

    def _is_started(self) -> bool:
        if not self._started:
            if len(self._buffer) < 3 and _BOM.startswith(self._buffer):
                return False
            if self._buffer.startswith(_BOM):
                del self._buffer[:3]
            self._started = True
        return True


def read_frame(raw: bytes) -> Frame | None:
    """The event in the lines of one frame; None if it has no data."""
    # Nine of ten servers send "data: {...}" alone: two searches here against some 3 µs in sseclient.
    if raw.startswith(b"data:") and b"\n" not in raw and b"\r" not in raw:
        return Frame(None, _value(raw, 5)) if len(raw) > 6 else _read_fields(raw)
    head, _, tail = raw.partition(b"\n")
    if head.startswith(b"event:") and tail.startswith(b"data:") and b"\n" not in tail and b"\r" not in raw:
        name, data = _value(head, 6), _value(tail, 5)
        if name and data:
            return Frame(None if name == b"message" else name.decode("utf-8", "replace"), data)
    return _read_fields(raw)


def _value(line: bytes, start: int) -> bytes:
    return line[start + 1 :] if line[start : start + 1] == b" " else line[start:]


def _read_fields(raw: bytes) -> Frame | None:
    import sseclient

    name, data = b"", []
    for line in raw.splitlines():
        field = line.partition(b":")[0]
        if field == b"data":
            data.append(_value(line, 5))
        elif field == b"event":
            name = line
        elif line.startswith(b"error:"):  # llama.cpp before 2024 reports an error in a field of its own
            return Frame("error", _value(line, 6))
    # sseclient adds line to line, which costs the square of their number, and raises on bytes that are not
    # UTF-8: data lines are joined here. An event without data is none.
    rest = name.decode("utf-8", "replace").encode() + b"\ndata"
    for event in sseclient.SSEClient(iter([rest] if data else ())).events():
        return Frame(None if event.event == "message" else event.event, b"\n".join(data))
    return None
