"""The short form of a schema: a dict from a parameter's name to its type.

Owns: reading the short form, without the seed's traps (R-144). Does not know: tools.
Source: R-140 to R-145.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from ..errors import ConfigError
from .leaves import Schema

TYPE_NAMES: dict[str, str] = {
    **dict.fromkeys(("string", "str"), "string"),
    **dict.fromkeys(("integer", "int", "i32", "i64", "u32", "u64"), "integer"),
    **dict.fromkeys(("number", "float", "f32", "f64"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "vec"), "array"),
    **dict.fromkeys(("object", "dict", "map"), "object"),
}
_COMPOUND = ("allOf", "anyOf", "oneOf", "not")
_ALONE = {"type", "title", "description", "additionalProperties", "properties", "required", "items"}


def expand(schema: Any, tool: str) -> Schema:
    """The full schema of a tool's input, always ``{"type": "object", "properties": ...}``.

    ``ConfigError`` naming the tool if it is no dict, or its root is not an object.

    >>> expand({"city": "string", "days": {"type": "integer", "optional": True}}, "forecast")["required"]
    ['city']
    """
    if not isinstance(schema, Mapping):
        raise ConfigError(f"the input schema of tool {tool!r} must be a dict, not {schema!r:.100}")
    if not _is_full(schema):
        return _from_short(schema)
    full = {"type": "object", "properties": {}, **deepcopy(dict(schema))}
    if full["type"] != "object":
        raise ConfigError(f"the input schema of tool {tool!r} has type {full['type']!r:.60}: it must be 'object'")
    return full


def _is_full(schema: Mapping[str, Any]) -> bool:
    """Whether this is JSON Schema already, rather than names and their types."""
    return (
        schema.get("type") == "object"
        or (isinstance(schema.get("properties"), Mapping) and "type" in schema)
        or isinstance(schema.get("required"), list)
        or any(key.startswith("$") for key in schema)
        or any(isinstance(schema.get(key), list) for key in _COMPOUND)
        or (("type" in schema or "properties" in schema) and schema.keys() <= _ALONE)
    )


def _from_short(schema: Mapping[str, Any]) -> Schema:
    properties, required = {}, []
    for name, kind in schema.items():
        if isinstance(kind, (str, Mapping)):  # other kinds of values are passed over
            properties[name], needed = expand_property(kind)
            if needed:
                required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def expand_property(kind: str | Mapping[str, Any]) -> tuple[Schema, bool]:
    """The schema of one parameter, and whether it is required.

    ``required: true`` beats ``optional`` and ``default``; a ``required`` list is the property's own.
    """
    if isinstance(kind, str):
        name = TYPE_NAMES.get(kind, "string")
        return ({"type": name, "items": {}} if name == "array" else {"type": name}), True
    schema = deepcopy(dict(kind))
    optional = schema.pop("optional", False) is True
    flag = schema.pop("required") if isinstance(schema.get("required"), bool) else None
    if isinstance(schema.get("type"), str):
        schema["type"] = TYPE_NAMES.get(schema["type"], schema["type"])
    if schema.get("type") == "array":
        schema.setdefault("items", {})
    return schema, flag if flag is not None else not optional and "default" not in schema
