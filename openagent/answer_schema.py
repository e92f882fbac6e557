"""A JSON Schema as the vendors' structured output and strict tools take it.

OpenAI's strict mode and Anthropic's output format take a part of JSON Schema: every object closed, no open
dicts, few constraints. What is only a constraint moves into the description, where the model can read it;
what cannot be said at all makes the whole schema one that cannot be used there.

Owns: what each vendor takes. Does not know: requests, answers.
Source: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas,
https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from . import codec

Schema = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """What one vendor takes: constraints, formats of texts; whether all must be required, and may be recursive.

    ``is_optional``: other schemas are taken, too, but the model is not held to them.
    """

    constraints: frozenset[str]
    formats: frozenset[str]
    all_required: bool
    recursive: bool
    is_optional: bool = False


_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
OPENAI = Dialect(
    frozenset({"pattern", "multipleOf", "minItems", "maxItems", *_BOUNDS}),
    frozenset(_FORMATS),
    all_required=True,
    recursive=True,
    is_optional=True,
)
ANTHROPIC = Dialect(frozenset(), frozenset({*_FORMATS, "uri"}), all_required=False, recursive=False)
SKELETON = Dialect(frozenset(), frozenset(), all_required=False, recursive=True)

_STRICT_HOSTS = ("api.openai.com", ".azure.com", "openrouter.ai")
_NOTES = ("title", "description")
_SILENT = ("$schema", "$id", "$comment", "discriminator")  # they say nothing to a model


def dialect_of(protocol: Any, base_url: str) -> Dialect | None:
    """The vendor's dialect; None for servers that take any schema, or whose rules nobody knows."""
    if protocol == "anthropic":
        return ANTHROPIC
    host = urlsplit(base_url).hostname or ""
    return OPENAI if host.endswith(_STRICT_HOSTS) else None


def adapted(schema: Mapping[str, Any], dialect: Dialect) -> Schema | None:
    """The schema as the vendor takes it; None if it cannot say that.

    An answer that fits it may have nulls for what was optional, and break constraints of the original.
    """
    if schema.get("type") != "object" or "anyOf" in schema or "oneOf" in schema:
        return None  # all vendors want an object at the root
    if not dialect.recursive and _is_recursive(schema):
        return None
    try:
        return _adapted(schema, dialect)
    except _CannotSay:
        return None


def unsayable(schema: Mapping[str, Any], dialect: Dialect) -> str:
    """What in the schema the vendor cannot say, and where; empty if it can say all of it.

    >>> unsayable({"type": "object", "properties": {"a": {"type": "array"}}, "additionalProperties": False}, OPENAI)
    "a: 'items' must be a schema"
    """
    if schema.get("type") != "object" or "anyOf" in schema or "oneOf" in schema:
        return "it must be an object, and no choice of several"
    if not dialect.recursive and _is_recursive(schema):
        return "it refers to itself"
    try:
        _adapted(schema, dialect)
    except _CannotSay as exc:
        return str(exc)
    return ""


def is_strict(schema: Mapping[str, Any], base_url: str) -> bool:
    """Whether an OpenAI-like server at this address can be told to hold the answer strictly to this schema."""
    return dialect_of("", base_url) is OPENAI and adapted(schema, OPENAI) == schema


class _CannotSay(Exception):
    """The vendor's dialect has no words for it."""


def _adapted(schema: Any, dialect: Dialect) -> Schema:
    if not isinstance(schema, Mapping):
        raise _CannotSay("'items' must be a schema" if schema is None else f"{schema!r:.50} is no schema")
    rest = {name: value for name, value in schema.items() if name not in _SILENT}
    told: Schema = {name: rest.pop(name) for name in _NOTES if name in rest}
    told |= _meant(rest, dialect)
    for shared in ("$defs", "definitions"):
        if shared in rest:
            told[shared] = {name: _part(name, part, dialect) for name, part in rest.pop(shared).items()}
    if rest.get("format") in dialect.formats:
        told["format"] = rest.pop("format")
    told |= {name: rest.pop(name) for name in list(rest) if name in dialect.constraints}
    if rest.get("minItems") in (0, 1) and dialect is ANTHROPIC:
        told["minItems"] = rest.pop("minItems")
    if unread := sorted(rest.keys() & _STRUCTURE):
        raise _CannotSay(f"there is no {unread[0]!r}")
    if rest.get("default", "") is None:  # says no more than that it is optional
        del rest["default"]
    if rest:
        noted = ", ".join(f"{name}: {codec.dump(value)}" for name, value in rest.items())
        told["description"] = f"{told['description']} ({noted})" if "description" in told else f"({noted})"
    if "$ref" in told and len(told) > 1:  # a reference must stand alone
        told["anyOf"] = [{"$ref": told.pop("$ref")}]
    return {name: told[name] for name in (*schema, *told) if name in told}  # in the order of the original


# What changes the meaning, and is not read: it must not be lost.
_VALUES = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref", "$dynamicRef"}
_OBJECTS = {"properties", "required", "additionalProperties", "patternProperties", "propertyNames"}
_OTHERS = {"dependentSchemas", "dependentRequired", "unevaluatedProperties"}
_LISTS = {"items", "prefixItems", "unevaluatedItems", "contains"}
_STRUCTURE = _VALUES | _OBJECTS | _OTHERS | _LISTS


def _meant(rest: Schema, dialect: Dialect) -> Schema:
    """What the schema means, taken out of ``rest``: a reference, a choice, one of several, a kind of value."""
    if "$ref" in rest:
        return {"$ref": rest.pop("$ref")}
    branches = rest.pop("anyOf", None) or rest.pop("oneOf", None)
    if branches is None and len(rest.get("allOf", ())) == 1:
        branches = rest.pop("allOf")
    if branches:
        rest.pop("type", None)
        return {"anyOf": [_adapted(branch, dialect) for branch in branches]}
    if "const" in rest:
        rest["enum"] = [rest.pop("const")]
    if "enum" in rest:
        return _chosen(rest)
    kind = rest.pop("type", None)
    if kind is None:
        raise _CannotSay("'type' is missing")
    if kind == "object":
        return _object(rest, dialect)
    if kind == "array":
        return {"type": kind, "items": _adapted(rest.pop("items", None), dialect)}
    if isinstance(kind, list) and set(kind) & {"object", "array"}:
        raise _CannotSay(f"'type' {kind} must be written as anyOf")
    return {"type": kind}


def _chosen(rest: Schema) -> Schema:
    values, kind = rest.pop("enum"), rest.pop("type", None)
    kinds = list(dict.fromkeys(_KINDS.get(type(value)) for value in values))
    if None in kinds:
        raise _CannotSay("'enum' may hold texts, numbers, booleans and null")
    return {"type": kind or (kinds[0] if len(kinds) == 1 else kinds), "enum": values}


_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def _object(rest: Schema, dialect: Dialect) -> Schema:
    properties, required = rest.pop("properties", {}), list(rest.pop("required", ()))
    is_open = rest.pop("additionalProperties", True)
    if isinstance(is_open, Mapping) or (is_open is not False and not properties):
        raise _CannotSay("an object with any members ('additionalProperties') cannot be told")
    told = {name: _part(name, part, dialect) for name, part in properties.items()}
    if dialect.all_required:
        told = {name: part if name in required else _or_null(part) for name, part in told.items()}
        required = list(properties)
    is_closed = dialect is not SKELETON or not is_open
    closed = {"additionalProperties": False} if is_closed else {}
    return {"type": "object", "properties": told, "required": required, **closed}


def _part(name: str, part: Any, dialect: Dialect) -> Schema:
    try:
        return _adapted(part, dialect)
    except _CannotSay as exc:
        raise _CannotSay(f"{name}{'.' if ': ' in str(exc) else ': '}{exc}") from None


def _or_null(schema: Schema) -> Schema:
    kinds = [branch.get("type") for branch in schema.get("anyOf", ())]
    if "null" in kinds or "null" in schema.get("type", ()):
        return schema
    if kinds:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


def _is_recursive(schema: Mapping[str, Any]) -> bool:
    """Whether a definition, or the root, leads back to itself."""
    shared = {**schema.get("$defs", {}), **schema.get("definitions", {})}
    root = {name: part for name, part in schema.items() if name not in ("$defs", "definitions")}
    known = {name: _references(part) for name, part in {**shared, "": root}.items()}
    return any(name in _reached(known[name], known) for name in known)


def _reached(names: set[str], known: Mapping[str, set[str]]) -> set[str]:
    waiting, seen = list(names), set(names)
    while waiting:
        more = known.get(waiting.pop(), set()) - seen
        seen |= more
        waiting += more
    return seen


def _references(part: Any) -> set[str]:
    """The last steps of the references in a part; of ``#`` itself it is empty."""
    if isinstance(part, Mapping):
        own = {part["$ref"].rpartition("/")[2].lstrip("#")} if isinstance(part.get("$ref"), str) else set()
        return own.union(*map(_references, part.values()))
    return set().union(*map(_references, part)) if isinstance(part, list) else set()
