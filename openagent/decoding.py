"""The bytes of one reply in, the events of one turn out; no network.

What kind of body it is, is read off its first byte and not off its label: servers answer a streaming
request with plain JSON, and plain requests with event streams, under any content type.

Owns: telling streams from documents, ``[DONE]``, how a turn ends, what a broken body means.
Does not know: a provider's JSON (its ``TurnDecoder`` does), sockets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from . import codec, faults
from .assembly import Answer
from .errors import AgentError, InvalidResponseError, StreamInterruptedError
from .events import Response, ResponseStarted, RoundEvent, TurnFinished
from .limits import Limits
from .messages import ContentBlock, FinishReason, Message
from .sse import Frame, Framer, read_frame

_HEAD_BYTES = 8 * faults.MAX_BODY_CHARS
_FIELDS = (b":", b"data", b"event", b"id", b"retry")
_HALF = object()  # what an event says that breaks off


class TurnDecoder(ABC):
    """One provider's reading of one turn: payloads in, an ``Answer`` put together.

    A decoder sets ``answer.ended`` when the turn has ended well, and ``done`` when the protocol's stop
    event came, after which nothing is read. It raises ``APIError`` for an error in the stream.
    """

    head = b"data: "  # what stands before the JSON text in the frames that ``quick`` may know

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.mask: faults.Mask = str  # what its errors quote goes through it
        self.answer = Answer()
        self.done = False

    @abstractmethod
    def payload(self, payload: dict[str, Any]) -> None:
        """Hear the JSON object of one event."""

    @abstractmethod
    def document(self, payload: dict[str, Any]) -> bool:
        """Hear a whole answer in one JSON object; False if it is none."""

    def quick(self, text: bytes) -> bool:
        """Hear the JSON text of an event of the most frequent kind; False if it is of another, and nothing was heard.

        May be left out. It must come to the same as ``payload`` (see the tests of each adapter). Text of which no
        half character can be is left in ``answer.burst``.
        """
        return False

    def message(self) -> Message:
        """The message of the turn, once it has ended; with the state that the provider wants back."""
        return self.answer.message()


class BodyDecoder:
    """Decodes one body, fed as it arrives.

    ``done`` says that nothing more needs to be read; ``failure`` is the error to raise once the events
    returned so far have been told; ``delivered`` whether there were any; ``turn`` the turn, once it has
    ended well.
    """

    def __init__(
        self,
        turn: TurnDecoder,
        *,
        status: int = 200,
        accept_unfinished: bool = False,
        limits: Limits | None = None,
        mask: faults.Mask = str,
    ) -> None:
        self._turn = turn
        self._mask = turn.mask = mask
        self._status = status
        self._accept_unfinished = accept_unfinished
        self._limits = limits or Limits()
        self._bytes_left = self._limits.answer_bytes
        turn.answer.bound(self._limits)
        self._framer = Framer(self._limits)
        self._document: bytearray | None = None
        self._is_known = False
        self._has_framed = False
        self._is_last = False  # the frame under way has no blank line after it
        self._head = b""
        self.delivered = False
        self.done = False
        self._is_quick = codec.is_quick()
        self._frames = 0  # heard while it is not
        self.failure: AgentError | None = None
        self.turn: TurnFinished | None = None

    def start(self) -> ResponseStarted:
        """The first event: the headers are in."""
        return ResponseStarted(self._response())

    def feed(self, chunk: bytes) -> list[RoundEvent]:
        """The events that these bytes complete."""
        if self.done:
            return []
        try:
            self._bytes_left -= len(chunk)
            if self._bytes_left < 0:
                raise self._limits.exceeded("answer_bytes")
            if not self._is_known:
                chunk = self._recognise(chunk)
            elif not self._has_framed and self._document is None and len(self._head) < _HEAD_BYTES:
                self._head += chunk  # to be shown if it turns out to be no answer
            if self._document is not None:
                self._grow(chunk)
            else:
                self._hear_frames(self._framer.cut(chunk))
            return self._finish() if self.done else self._told()
        except AgentError as error:
            return self._fail(error)

    def end(self, failure: AgentError | None = None) -> list[RoundEvent]:
        """The last events, now that the body is over, or broke off with ``failure``.

        If the turn had not ended well by then, ``self.failure`` says what went wrong.
        """
        if self.done:
            return []
        try:
            if failure is None or self._turn.answer.ended:
                self._end_of_body()
        except AgentError as error:
            return self._fail(error)
        answer = self._turn.answer
        if answer.ended or self.done:
            return self._finish()
        if self._accept_unfinished and failure is None and not answer.is_empty():
            return self._finish()
        return self._fail(failure or self._broken_off())

    @property
    def has_ended(self) -> bool:
        """Whether the turn has ended well, as far as it was heard."""
        return self._turn.answer.ended

    @property
    def heard(self) -> list[ContentBlock]:
        """The text heard so far."""
        return self._turn.answer.heard()

    def _recognise(self, chunk: bytes) -> bytes:
        """The bytes held back so far, if they tell what kind of body this is; else nothing."""
        self._head += chunk
        start = self._head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if b"\xef\xbb\xbf".startswith(self._head):
            return b""
        if not start:
            self._head = self._head[-1:]  # of any number of blanks the last one says as much
            return b""
        self._is_known = True
        if start in b"{[<":
            self._document = bytearray()
        return self._head

    def _grow(self, chunk: bytes) -> None:
        assert self._document is not None
        self._document += chunk
        if len(self._document) > self._limits.document_bytes:
            raise self._limits.exceeded("document_bytes")

    def _hear_frames(self, frames: list[bytes]) -> None:
        if not self._is_quick:
            self._frames += len(frames)
            if self._frames > codec.MANY:
                codec.quicken()
                self._is_quick = True
        quick = self._turn.quick if self._is_quick else _not_quick
        answer, head = self._turn.answer, self._turn.head
        start = len(head)
        for raw in frames:
            if raw.startswith(head) and b"\n" not in (text := raw[start:]) and quick(text):
                self._has_framed = True
                continue
            answer.add_burst()
            frame = read_frame(raw)
            if frame is not None:
                self._hear(frame)
            if self.done:
                return
        answer.add_burst()

    def _hear(self, frame: Frame) -> None:
        event, data = frame
        if data[:1] != b"{":
            data = data.strip()
            if data == b"[DONE]":
                self._turn.answer.ended = self.done = True
                return
            if not data:
                return
        payload = self._payload(data)
        if payload is _HALF:
            return
        if isinstance(payload, dict) and event != "error":
            self._has_framed = True
            self._turn.payload(payload)
            self.done = self._turn.done
            return
        if event == "error" and not (isinstance(payload, dict) and payload.get("error")):
            raise faults.from_payload(payload, self._turn.headers, mask=self._mask)
        if isinstance(payload, list) and payload and isinstance(payload[0], dict):
            payload = payload[0]  # Gemini wraps an error in a list
        if isinstance(payload, dict):
            self._has_framed = True
            self._turn.payload(payload)
            self.done = self._turn.done

    def _payload(self, data: bytes) -> Any:
        depth = self._limits.json_depth
        try:
            return codec.parse(data, depth=depth)
        except codec.TooDeep:
            raise self._limits.exceeded("json_depth") from None
        except ValueError:
            pass
        try:  # a gateway that reports an error in the midst of an event leaves its last line whole
            return codec.parse(data.rpartition(b"\n")[2] if b"\n" in data else b"", depth=depth)
        except ValueError:
            if self._is_last:  # the body was cut within it
                return _HALF
            shown = self._mask(data.decode("utf-8", "replace"))[: faults.MAX_SAMPLE_CHARS]
            raise InvalidResponseError(f"the server sent an event that is not JSON: {shown!r}", body=shown) from None

    def _end_of_body(self) -> None:
        if self._document is not None:
            self._hear_document(bytes(self._document))
            return
        if not self._is_known:
            self._framer.feed(self._head)
        frame = self._framer.rest()
        if frame is not None:
            self._is_last = True
            self._hear(frame)
        elif not self._has_framed and not _looks_like_stream(self._head):
            raise self._not_an_answer(self._head)

    def _hear_document(self, body: bytes) -> None:
        if self._head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<":
            raise self._not_an_answer(body)
        try:
            payload = codec.parse(body.removeprefix(b"\xef\xbb\xbf"), depth=self._limits.json_depth)
        except codec.TooDeep:
            raise self._limits.exceeded("json_depth") from None
        except ValueError:
            if not codec.is_cut(body):
                raise self._not_an_answer(body) from None
            said = self._mask(body.decode("utf-8", "replace"))
            raise StreamInterruptedError(f"the reply broke off inside a JSON document: {said[-100:]!r}") from None
        if isinstance(payload, list) and payload and isinstance(payload[0], dict):
            payload = payload[0]
        if isinstance(payload, dict) and payload.get("error"):
            raise faults.from_payload(payload["error"], self._turn.headers, whole=payload, mask=self._mask)
        if not isinstance(payload, dict) or not self._turn.document(payload):
            raise self._not_an_answer(body)
        self._turn.answer.ended = True

    def _not_an_answer(self, body: bytes) -> InvalidResponseError:
        return faults.not_an_answer(self._status, self._turn.headers, body, mask=self._mask)

    def _broken_off(self) -> StreamInterruptedError:
        if self._has_framed or self._document is not None:
            return StreamInterruptedError("the answer broke off before its end")
        return StreamInterruptedError("the server sent an empty stream: nothing was said")

    def _told(self) -> list[RoundEvent]:
        events = self._turn.answer.events
        if events:
            self._turn.answer.events = []
            self.delivered = True
        return events

    def _finish(self) -> list[RoundEvent]:
        self.done = True
        answer = self._turn.answer
        finish = answer.finish or FinishReason("unspecified")
        answer.finish = finish
        self.turn = TurnFinished(self._turn.message(), finish, answer.usage, self._response())
        return [*self._told(), self.turn]

    def _response(self) -> Response:
        answer = self._turn.answer
        headers = self._turn.headers
        limits = {name.lower(): value for name, value in headers.items() if "ratelimit" in name.lower()}
        return Response(answer.id, answer.model, faults.request_id(headers), limits)

    def _fail(self, error: AgentError) -> list[RoundEvent]:
        events = self._told()
        error.blocks = self.heard
        if isinstance(error, StreamInterruptedError):
            error.retryable = not self.delivered
        self.failure = error
        self.done = True
        return events


def _not_quick(text: bytes) -> bool:
    return False


def _looks_like_stream(head: bytes) -> bool:
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return any(head.startswith(field) or field.startswith(head) for field in _FIELDS)  # or cut within the first one
