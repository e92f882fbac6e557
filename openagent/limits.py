"""How much a server may send before it is not believed any more.

Real answers stay far below; what goes beyond is a broken or hostile server, and would end in the last of the
memory. Each limit is a field, and the error names it.

Owns: the limits, their checks, the error of each. Does not know: who counts.
"""

from __future__ import annotations

from .codec import MAX_DEPTH
from .errors import ConfigError, InvalidResponseError
from .values import dataclass, defaults

_MIB = 1024 * 1024
_WORDS = {
    "event_bytes": "an event of more than {} bytes",
    "document_bytes": "a document of more than {} bytes",
    "answer_bytes": "an answer whose body has more than {} bytes",
    "answer_chars": "more than {} characters of text and reasoning in one answer",
    "argument_chars": "more than {} characters of arguments in one answer",
    "calls": "more than {} calls in one answer",
    "json_depth": "JSON nested more than {} deep",
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one answer may hold at most; beyond it an ``InvalidResponseError`` names the limit.

    ``event_bytes`` counts one event of a stream (and any line of it), ``document_bytes`` an answer in one JSON
    document, ``answer_bytes`` all bytes of an answer's body; ``answer_chars`` text and reasoning together,
    ``argument_chars`` the arguments of all calls. Of an error's body ``error_body_bytes`` are read and the rest is
    left. ``json_depth`` cannot be raised: Python's own stack ends soon after.
    """

    event_bytes: int = 64 * _MIB
    document_bytes: int = 64 * _MIB
    answer_bytes: int = 512 * _MIB
    answer_chars: int = 64 * _MIB
    argument_chars: int = 64 * _MIB
    calls: int = 1000
    error_body_bytes: int = 65_536
    json_depth: int = MAX_DEPTH

    def __post_init__(self) -> None:
        for name in defaults(Limits):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ConfigError(f"limits: {name} {value!r:.100} must be a whole number above 0")
        if self.json_depth > MAX_DEPTH:
            raise ConfigError(f"limits: json_depth {self.json_depth} must be at most {MAX_DEPTH}")

    def exceeded(self, name: str) -> InvalidResponseError:
        """The error of a server that went beyond the limit of this name."""
        value = getattr(self, name)
        advice = "" if name == "json_depth" else f"; if that is right, set limits=Limits({name}=...) to more"
        return InvalidResponseError(f"the server sent {_WORDS[name].format(value)} (the limit {name}){advice}")
