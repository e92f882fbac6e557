"""The shape of an answer, as it is said on a command line: a file, a JSON Schema, or a short list of fields.

Owns: the short list and its words. Does not know: what is asked for in this shape.
"""

from __future__ import annotations

import os
import re
from typing import Any

from .. import codec
from ..errors import ConfigError
from ..schema import TYPE_NAMES, check_schema

HELP = (
    "the shape of the answer, which is one JSON object then: a file with a JSON Schema, or fields as "
    '\'name, age int?, tags list, kind "a"|"b", note: what else is said\''
)

_ANSWER = "answer"  # stands for a tool's name where schemas are checked
_WORD = r'"[^"\n]*"'
_TYPES = 'str, int, float, bool, list, dict, list of int, or words as "a"|"b"'
_FIELD = re.compile(
    rf"""\s* (?P<name>[^\W\d][\w-]*)
    (?: [ \t]+ (?P<kind> {_WORD} (?:\s*\|\s*{_WORD})* | [a-z]\w* (?:[ ]of[ ][a-z]\w*)? ) )?
    (?P<or_null>\?)?
    (?: [ \t]*:[ \t]* (?P<about>[^,\n]*[^,\s]) )?
    \s* (?:[,\n]\s*|$)""",
    re.VERBOSE,
)


def shape(text: str) -> dict[str, Any]:
    """The JSON Schema that is meant; ``ConfigError`` if there is none.

    >>> shape('name, age int?')["properties"]
    {'name': {'type': 'string'}, 'age': {'type': ['integer', 'null']}}
    """
    if text.lstrip().startswith("{"):
        return _schema(text, "--schema")
    if os.path.isfile(text):
        return _schema(_content(text), f"--schema {text!r}")
    if text.endswith(".json"):
        raise ConfigError(f"--schema {text!r}: there is no such file")
    return _from_fields(text)


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"--schema {path!r} cannot be read: {exc}") from exc


def _schema(text: str, origin: str) -> dict[str, Any]:
    try:
        schema = codec.parse(text)
    except ValueError as exc:
        raise ConfigError(f"{origin} is no JSON: {exc}") from exc
    if not isinstance(schema, dict):
        raise ConfigError(f"{origin} is no JSON Schema: it must be an object, not {text.strip():.60}")
    try:
        return check_schema(schema, _ANSWER)
    except ConfigError as exc:
        raise ConfigError(f"{origin} is no JSON Schema: it {str(exc).partition(repr(_ANSWER))[2].lstrip()}") from exc


def _from_fields(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    place = 0
    while place < len(text) or not fields:
        found = _FIELD.match(text, place)
        if found is None:
            raise ConfigError(f"--schema: {text[place:]!r:.60} is no field: a name, then maybe a type, as 'age int'")
        if found["name"] in fields:
            raise ConfigError(f"--schema: there are two fields {found['name']!r}")
        fields[found["name"]] = _field(found)
        place = found.end()
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _field(found: re.Match[str]) -> dict[str, Any]:
    kind, about = found["kind"], found["about"]
    if kind is None and about in TYPE_NAMES:  # as Python writes it
        kind, about = about, None
    kind = kind or "string"
    schema = _enum(kind) if kind.startswith('"') else _type(kind, found["name"])
    if found["or_null"]:
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"].append(None)
    return schema | ({"description": about} if about else {})


def _enum(kind: str) -> dict[str, Any]:
    return {"type": "string", "enum": [word[1:-1] for word in re.findall(_WORD, kind)]}


def _type(kind: str, name: str) -> dict[str, Any]:
    """The schema of a type; a list holds texts, if nothing else is said."""
    outer, _, inner = kind.partition(" of ")
    for word in (outer, inner or "str"):
        if word not in TYPE_NAMES:
            raise ConfigError(f"--schema: field {name!r} has the type {word!r}: it may be {_TYPES}")
    if TYPE_NAMES[outer] == "array":
        return {"type": "array", "items": {"type": TYPE_NAMES[inner or "str"]}}
    if inner:
        raise ConfigError(f"--schema: field {name!r} has the type {kind!r}: only a list is of something")
    return {"type": TYPE_NAMES[outer]}
