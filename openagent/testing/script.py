"""What a script is made of: the answers a scripted server gives, and the requests it has heard.

Plain frozen values, neutral to the wire format: the endpoint that is asked decides how an answer
is written.

Owns: the values of a script. Does not know: sockets, wire formats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

Framing = Literal["chunked", "length", "close"]
End = Literal["normal", "abrupt", "reset"]
Tokens = Union[tuple[int, int], Mapping[str, Any]]

EVENT_STREAM: Mapping[str, str] = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}


class Headers(dict[str, str]):
    """Headers under lower-case names, found by a name in any case.

    >>> Headers({"Content-Type": "text/plain"})["content-TYPE"]
    'text/plain'
    """

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        super().__init__({name.lower(): value for name, value in (source or {}).items()})

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        """The value under this name, or the default."""
        return super().get(name.lower(), default)


@dataclass(frozen=True)
class Request:
    """One request as it was heard; ``body`` is its parsed JSON, None if it was none."""

    method: str
    path: str
    headers: Headers
    body: Any
    raw: bytes = field(repr=False)


@dataclass(frozen=True)
class Call:
    """A call that the scripted model asks for."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str | None = None
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Answer:
    """A model's answer; see ``answer`` for its fields."""

    text: str
    calls: tuple[Call, ...]
    reasoning: str | None
    finish: str
    usage: Tokens | None
    refusal: str | None
    chunk_text: tuple[str, ...] | None
    delay: float
    framing: Framing
    frames_per_chunk: int
    cut: int | None
    hold: float
    newline: str
    done: bool
    reset: bool
    status: int
    headers: Mapping[str, str]
    model: str | None
    stream: bool | None


@dataclass(frozen=True)
class Failure:
    """An HTTP error in the shape of the wire that is asked."""

    status: int
    message: str
    type: str | None
    code: str | None
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True)
class Raw:
    """Bytes as they are, each chunk one network write."""

    chunks: tuple[bytes, ...]
    status: int
    headers: Mapping[str, str]
    framing: Framing
    end: End
    delay: float
    hold: float


Item = Union[str, Answer, Failure, Raw, Callable[[Request], Any]]


def answer(
    text: str = "",
    *,
    calls: Sequence[Call] = (),
    reasoning: str | None = None,
    finish: str | None = None,
    usage: Tokens | None = (7, 5),
    refusal: str | None = None,
    chunk_text: Sequence[str] | None = None,
    delay: float = 0.0,
    framing: Framing = "chunked",
    frames_per_chunk: int = 1,
    cut: int | None = None,
    hold: float = 0.0,
    newline: str = "\n",
    done: bool = True,
    reset: bool = False,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    model: str | None = None,
    stream: bool | None = None,
) -> Answer:
    """A model's answer, streamed if the request asks for it (or as ``stream`` says).

    ``finish`` is the neutral word (``stop``, ``length``, ``tool_calls``, ``content_filter``,
    ``pause_turn``; any other goes out as it is, ``unspecified`` sends none). ``usage`` is (input,
    output) tokens, or a mapping in the wire's own names. ``chunk_text`` are the text deltas, by
    default one a word. ``delay`` are seconds between chunks. ``cut`` breaks the body off after so
    many bytes (with a TCP reset if ``reset``). ``hold`` keeps the connection open so many seconds
    after the last frame. ``done=False`` leaves the wire's stop event out.
    """
    if chunk_text is not None:
        text = text or "".join(chunk_text)
        if "".join(chunk_text) != text:
            raise ValueError(f"chunk_text {list(chunk_text)!r:.100} does not join to the text {text!r:.100}")
    if frames_per_chunk < 1:
        raise ValueError(f"frames_per_chunk {frames_per_chunk!r} must be 1 or more")
    return Answer(
        text=text,
        calls=tuple(calls),
        reasoning=reasoning,
        finish=finish or ("tool_calls" if calls else "stop"),
        usage=usage,
        refusal=refusal,
        chunk_text=None if chunk_text is None else tuple(chunk_text),
        delay=delay,
        framing=framing,
        frames_per_chunk=frames_per_chunk,
        cut=cut,
        hold=hold,
        newline=newline,
        done=done,
        reset=reset,
        status=status,
        headers=headers or {},
        model=model,
        stream=stream,
    )


def call(
    name: str,
    arguments: Mapping[str, Any] | str | None = None,
    *,
    id: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Call:
    """A call for ``answer``; arguments that are a str go out as they are, JSON or not.

    Without an ``id`` the server numbers its calls: ``call_1``, ``call_2``. ``extra`` are unknown
    members of the call object on the Chat Completions wire.
    """
    return Call(name, {} if arguments is None else arguments, id, extra)


def failure(
    status: int,
    message: str = "the scripted server says no",
    *,
    type: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
    body: str | bytes | None = None,
) -> Failure:
    """An HTTP error in the wire's own shape; ``body`` replaces that shape."""
    return Failure(status, message, type, code, headers or {}, None if body is None else _encoded(body))


def raw(
    *chunks: bytes | str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    framing: Framing = "chunked",
    end: End = "normal",
    delay: float = 0.0,
    hold: float = 0.0,
) -> Raw:
    """Bytes as they are, each chunk one network write and one HTTP chunk.

    The content type is that of an event stream unless ``headers`` are given; a Content-Length or
    Transfer-Encoding among these decides the framing.
    """
    lower = Headers(headers)
    if "transfer-encoding" in lower:
        framing = "chunked"
    elif "content-length" in lower:
        framing = "length"
    encoded = tuple(_encoded(chunk) for chunk in chunks)
    return Raw(encoded, status, EVENT_STREAM if headers is None else headers, framing, end, delay, hold)


def _encoded(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
