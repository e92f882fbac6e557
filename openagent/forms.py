"""The form an answer is to have: what the model is told, and how its words become a value.

Owns: a type or a JSON Schema as a form; finding and reading the JSON of an answer. Does not know: servers,
how an answer is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import codec
from .answer_schema import SKELETON, adapted
from .errors import ConfigError
from .partial_json import ABSENT
from .schema import check, check_schema, convert, type_schema, without_nulls

_MAX_TRIES = 20  # at how many places of a text the beginning of JSON is tried
_FENCED = re.compile(r"```[\w-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_AT_A_LINES_START = re.compile(r"\n[{\[]")


class Form:
    """A shape as the server has to be told it; ``read`` makes its value of the model's words."""

    def __init__(self, shape: Any) -> None:
        self._kind = None if isinstance(shape, Mapping) else shape
        try:
            inner = dict(shape) if isinstance(shape, Mapping) else type_schema(shape)
            check_schema(inner, "extract")
        except ConfigError as exc:
            raise ConfigError(f"{shape!r:.100} is no shape for an answer: {exc}") from exc
        # Vendors want an object at the root.
        self._is_wrapped = inner.get("type") != "object"
        self.schema = _wrapped(inner) if self._is_wrapped else inner

    def read(self, text: str) -> Any:
        """The value that a text gives; ``ValueError`` with a text for the model if it gives none of this shape."""
        complaint = "there is no JSON in it"
        for said in found(text):
            meant = without_nulls(self.schema, said)
            wrong = check(self.schema, meant)
            if wrong is None:
                return self._value(self.plain(meant))
            others = [_without_members_of_null(said), *([{"value": said}] if self._is_wrapped else [])]
            right = [other for other in others if check(self.schema, other) is None]
            if right:
                return self._value(self.plain(right[0]))
            complaint = wrong
        raise ValueError(complaint)

    def _value(self, plain: Any) -> Any:
        return plain if self._kind is None else convert(plain, self._kind)

    def plain(self, said: Any) -> Any:
        """The part of a JSON value, maybe not yet whole, that is the answer."""
        if not self._is_wrapped or said is ABSENT:
            return said
        return said.get("value", ABSENT) if isinstance(said, dict) else said

    def is_broken_by(self, text: str) -> bool:
        """Whether no server that held the model to the schema would let it say this: not only a limit is exceeded."""
        skeleton = adapted(self.schema, SKELETON) or {"type": "object"}
        try:
            said = codec.parse(text)
        except ValueError:
            return True
        return check(skeleton, without_nulls(self.schema, said)) is not None


def _without_members_of_null(said: Any) -> Any:
    """What was not given in one of several types: their schemas do not tell which of them is meant."""
    if isinstance(said, list):
        return [_without_members_of_null(item) for item in said]
    if not isinstance(said, dict):
        return said
    return {name: _without_members_of_null(item) for name, item in said.items() if item is not None}


def _wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    shared = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {
        "type": "object",
        "properties": {"value": inner},
        "required": ["value"],
        "additionalProperties": False,
        **shared,
    }


def found(text: str) -> Iterator[Any]:
    """The JSON values in a text: the whole of it, else what stands in code fences, else objects and lists.

    >>> list(found('Here: {"a": 1}.')), list(found("```json\\n[1]\\n```")), list(found("none"))
    ([{'a': 1}], [[1]], [])
    """
    try:
        yield _parsed(text)
        return
    except ValueError:
        pass
    fenced = [*_fenced(text)]
    yield from fenced if fenced else _bare(text)


def _parsed(text: str) -> Any:
    value = codec.parse(text)
    return codec.parse(codec.dump(value)) if "\\ud" in text.lower() else value  # without halves of characters


def _fenced(text: str) -> Iterator[Any]:
    for part in _FENCED.findall(text)[:_MAX_TRIES]:
        try:
            yield _parsed(part)
        except ValueError:
            continue


def _bare(text: str) -> Iterator[Any]:
    """What stands in the text itself. Within brackets that are not whole, nothing is an answer of its own."""
    from json import JSONDecoder

    decode = JSONDecoder(strict=False).raw_decode
    opening = _OPENING.search(text)
    for _ in range(_MAX_TRIES):
        if opening is None:
            return
        start = opening.end() - 1
        try:
            _, end = decode(text, start)
            yield _parsed(text[start:end])  # which knows how deep is too deep
            opening = _OPENING.search(text, end)
        except (ValueError, RecursionError):
            opening = _AT_A_LINES_START.search(text, start)
