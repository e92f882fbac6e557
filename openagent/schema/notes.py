"""What ``Annotated`` says of a type: a text for the reader, limits for the value.

Owns: notes. Does not know: who defines them; any object with an attribute of one of these names
will do, be it of ``annotated_types``, ``msgspec.Meta`` or pydantic's ``Field``.
Source: https://github.com/annotated-types/annotated-types
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import ConfigError
from .leaves import Mismatch, Schema, Shape

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
KEYWORDS: dict[str, dict[str, str]] = {
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
TEXTS = ("title", "description", "documentation", "examples")
BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "more than"),
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "less than"),
}


def annotated(shape: Shape, notes: Iterable[Any]) -> Shape:
    """The shape with what the notes say added to it; notes of other kinds are passed over."""
    for note in notes:
        shape = _noted(shape, note)
    return shape


def _noted(shape: Shape, note: Any) -> Shape:
    if isinstance(note, str):
        return shape._replace(schema={**shape.schema, "description": note})
    if isinstance(note, type):
        return shape
    if isinstance(inner := getattr(note, "metadata", None), list):  # pydantic's Field keeps its limits there
        shape = annotated(shape, inner)
    limits = {name: value for name in _LIMITS if (value := getattr(note, name, None)) is not None}
    texts = {name: value for name in TEXTS if (value := getattr(note, name, None)) and not callable(value)}
    if "documentation" in texts:
        texts["description"] = texts.pop("documentation")
    extra = getattr(note, "extra_json_schema", None) or {}
    schema = {**_limited(shape.schema, limits), **texts, **extra}
    bounds = {name: limit for name, limit in limits.items() if name in BOUNDS}
    return Shape(schema, _bounded(shape, bounds) if bounds else shape.convert)


_LIMITS = tuple(dict.fromkeys(name for table in KEYWORDS.values() for name in table))


def _limited(schema: Schema, limits: dict[str, Any]) -> Schema:
    """The schema with those limits that it can express, in each of its branches."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [_limited(branch, limits) for branch in schema["anyOf"]]}
    table = KEYWORDS.get(schema.get("type", ""), {})
    found = {table[name]: _limit(name, value) for name, value in limits.items() if name in table}
    return {**schema, **{key: value for key, value in found.items() if value is not None}}


def _limit(name: str, value: Any) -> Any:
    if name == "pattern":
        text = getattr(value, "pattern", value)
        try:
            re.compile(text)
        except re.error as exc:
            raise ConfigError(f"pattern {text!r} is no regular expression: {exc}") from exc
        return text
    return value if isinstance(value, (int, float)) else None


def _bounded(shape: Shape, bounds: dict[str, Any]) -> Callable[[Any], Any]:
    """The conversion, then the bounds again: JSON Schema cannot compare dates, or decimals in a text."""

    def convert(value: Any) -> Any:
        found = shape.convert(value)
        for name, limit in bounds.items():
            holds, words = BOUNDS[name]
            try:
                fits = found is None or holds(found, limit)
            except (TypeError, ArithmeticError):
                fits = True  # a branch of a union that the limit does not concern
            if not fits:
                raise Mismatch(f"{words} {limit}", value)
        return found

    return convert
