"""The types without parts: what each looks like in JSON, and how its value is read from it.

Owns: the table of leaf types, and the error of a value that does not fit. Does not know: types
that are made of others. Source: the formats of JSON Schema 2020-12 (RFC 3339, ISO 8601, RFC 4122).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path, PosixPath, PurePath, PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

Schema = dict[str, Any]
Convert = Callable[[Any], Any]


class Shape(NamedTuple):
    """How a type looks in JSON, and how its value is made of JSON (``Mismatch`` if it is not)."""

    schema: Schema
    convert: Convert


class Mismatch(ValueError):
    """A JSON value is not what a type wants: where, what was expected, what came."""

    def __init__(self, expected: str, value: Any, path: str = "") -> None:
        super().__init__(expected, value, path)
        self.expected, self.value, self.path = expected, value, path

    def __str__(self) -> str:
        return f"{self.path or 'value'}: expected {self.expected}, got {shown(self.value)}"

    def under(self, key: str | int) -> Mismatch:
        """The same seen from the object or array that holds the value at this key."""
        return Mismatch(self.expected, self.value, joined(key, self.path))


def joined(key: str | int, path: str) -> str:
    """A path with one more step in front.

    >>> joined("points", joined(0, "x"))
    'points[0].x'
    """
    head = f"[{key}]" if isinstance(key, int) else key
    return head + path if not path or path.startswith("[") else f"{head}.{path}"


def shown(value: Any) -> str:
    """A JSON value as text of at most 80 characters.

    >>> shown({"a": None})
    '{"a": null}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def within(key: str | int, convert: Convert, value: Any) -> Any:
    """The converted value of one key; a mismatch names the key."""
    try:
        return convert(value)
    except Mismatch as exc:
        raise exc.under(key) from None


def same(value: Any) -> Any:
    """The value itself."""
    return value


def only(kind: type, expected: str) -> Convert:
    """A conversion that lets instances of this type through, and nothing else."""

    def checked(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise Mismatch(expected, value)

    return checked


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        raise Mismatch("an integer", value)
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Mismatch("a number", value)
    try:
        return float(value)
    except OverflowError:
        raise Mismatch("a number", value) from None


def _text(read: Convert, expected: str) -> Convert:
    """A conversion that reads a text."""

    def convert(value: Any) -> Any:
        if not isinstance(value, str):
            raise Mismatch(expected, value)
        try:
            return read(value)
        except (ValueError, InvalidOperation):  # msgspec's errors are ValueErrors
            raise Mismatch(expected, value) from None

    return convert


def _strictly(kind: Any) -> Convert:
    """What msgspec reads of a text."""

    def convert(value: Any) -> Any:
        import msgspec

        return msgspec.convert(value, kind)

    return convert


def _iso(kind: Any) -> Convert:
    """RFC 3339 as msgspec reads it, else whatever of ISO 8601 the standard library reads."""
    strictly = _strictly(kind)

    def convert(value: str) -> Any:
        try:
            return strictly(value)
        except ValueError:
            return kind.fromisoformat(value.replace("Z", "+00:00"))

    return convert


def _or_number(text: Convert, number: Convert, expected: str) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise Mismatch(expected, value)
        try:
            return text(value) if isinstance(value, str) else number(value)
        except (ValueError, OverflowError, InvalidOperation):
            raise Mismatch(expected, value) from None

    return convert


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError("not a number")
    return number


def _string(read: Convert, expected: str, **more: str) -> Shape:
    return Shape({"type": "string", **more}, _text(read, expected))


_ANY = Shape({}, same)
_DURATION = 'a duration such as "PT1H30M", or seconds'
_BYTES = _string(_strictly(bytes), "bytes in base64", contentEncoding="base64")

LEAVES: dict[Any, Shape] = {
    Any: _ANY,
    object: _ANY,
    inspect.Parameter.empty: _ANY,
    type(None): Shape({"type": "null"}, only(type(None), "null")),
    bool: Shape({"type": "boolean"}, only(bool, "true or false")),
    int: Shape({"type": "integer"}, _int),
    float: Shape({"type": "number"}, _float),
    str: Shape({"type": "string"}, only(str, "a text")),
    bytes: _BYTES,
    bytearray: Shape(_BYTES.schema, lambda value: bytearray(_BYTES.convert(value))),
    date: _string(_iso(date), 'a date such as "2025-01-31"', format="date"),
    time: _string(_iso(time), 'a time such as "10:11:12"', format="time"),
    datetime: _string(_iso(datetime), 'a date and time such as "2025-01-31T10:11:12Z"', format="date-time"),
    timedelta: Shape(
        {"anyOf": [{"type": "string", "format": "duration"}, {"type": "number", "description": "seconds"}]},
        _or_number(_strictly(timedelta), lambda seconds: timedelta(seconds=seconds), _DURATION),
    ),
    Decimal: Shape(
        {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]},
        _or_number(_decimal, lambda number: _decimal(str(number)), "a decimal number"),
    ),
    UUID: _string(UUID, "a UUID", format="uuid"),
    **{kind: _string(kind, "a path", format="path") for kind in (Path, PurePath, PosixPath, PurePosixPath)},
}
