"""What the three wire formats of the scripted server share: JSON bytes, frames, memory.

Owns: how a frame is written, what one server has given out, the error of the two OpenAI wires.
Does not know: what else a wire says.
Source: the WHATWG standard for server-sent events.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .script import Answer, Call

CREATED = 1_750_000_000
_WORDS = re.compile(r"\s*\S+\s*|\s+")
_ARGUMENT_PIECE = 16
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_OPENAI_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
}


class Memory:
    """What one server has given out: numbered names, and opaque state with what it came with."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._given: dict[str, Any] = {}
        self._needed: dict[str, str] = {}

    def name(self, kind: str) -> str:
        """The next name of this kind: ``call_1``, then ``call_2``."""
        self._numbers[kind] += 1
        return f"{kind}_{self._numbers[kind]}"

    def seal(self, kind: str, content: Any) -> str:
        """An opaque text that stands for the content."""
        seal = base64.b64encode(self.name(kind).encode()).decode()
        self._given[seal] = content
        return seal

    def tie(self, item: str, reasoning: str) -> None:
        """From now on this item must not come back without that reasoning."""
        self._needed[item] = reasoning

    def needed(self, item: Any) -> str | None:
        """The reasoning that must come back with this item, None if none must."""
        return self._needed.get(item) if isinstance(item, str) else None

    def changed(self, seal: Any, content: Any) -> bool:
        """Whether this opaque text was given out with another content."""
        return isinstance(seal, str) and seal in self._given and self._given[seal] != content


def encoded(value: Any) -> bytes:
    """Compact JSON bytes; halves of surrogate pairs go out escaped, as servers send them."""
    try:
        return _JSON.encode(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def frame(value: Mapping[str, Any], newline: str, *, event: str | None = None) -> bytes:
    """One server-sent event that carries the value as JSON."""
    end = newline.encode()
    head = b"" if event is None else b"event: " + event.encode() + end
    return head + b"data: " + encoded(value) + end + end


def pieces(text: str | None, cut: Sequence[str] | None = None) -> list[str]:
    """The text in pieces: as cut, else word by word.

    >>> pieces("Hello  new world")
    ['Hello  ', 'new ', 'world']
    """
    return list(cut) if cut is not None else _WORDS.findall(text or "")


def argument_text(call: Call) -> str:
    """The arguments as the model writes them."""
    return call.arguments if isinstance(call.arguments, str) else encoded(dict(call.arguments)).decode()


def argument_pieces(call: Call) -> list[str]:
    """The text of the arguments in short pieces."""
    text = argument_text(call)
    return [text[start : start + _ARGUMENT_PIECE] for start in range(0, len(text), _ARGUMENT_PIECE)]


def model_of(answer: Answer, body: Mapping[str, Any]) -> str:
    """The model that the answer names: its own, else the one asked for."""
    return answer.model or str(body.get("model") or "scripted")


def openai_error(status: int, message: str, type: str | None, code: str | None, memory: Memory) -> dict[str, Any]:
    """The body of an HTTP error on both OpenAI wires."""
    word = type or error_type(status, _OPENAI_ERRORS)
    return {"error": {"message": message, "type": word, "param": None, "code": code}}


def error_type(status: int, by_status: Mapping[int, str]) -> str:
    """The vendor's word for a status, by its class if it has none of its own."""
    return by_status.get(status) or by_status[500 if status >= 500 else 400]
