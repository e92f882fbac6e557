"""The walk over a type: its JSON Schema, and the conversion of JSON into its values.

Owns: types made of other types. Does not know: functions, tools.
Source: JSON Schema Draft 2020-12; the ``typing`` documentation.
"""

from __future__ import annotations

import json
import types
import typing
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ..errors import ConfigError
from .containers import array, mapping
from .docs import documented
from .foreign import known_to_msgspec, pydantic_model
from .leaves import LEAVES, Mismatch, Schema, Shape
from .notes import annotated
from .objects import QUALIFIERS, fields_of, made, names_around, object_of, substituted
from .walk import Rule, Walk


def type_schema(kind: Any) -> Schema:
    """The JSON Schema of a type, its root never a ``$ref``; ``ConfigError`` if JSON has no form of it."""
    walk = Walk(RULES)
    return walk.rooted(walk.shape(kind).schema)


def convert(value: Any, kind: Any) -> Any:
    """The value of a type that a JSON value stands for; ``Mismatch`` (a ``ValueError``) if it does not."""
    return Walk(RULES).shape(kind).convert(value)


def _wrapped(walk: Walk, kind: Any) -> Shape | None:
    """What is another type with something around it: NewType, a type alias, a type variable, Required[]."""
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *notes = get_args(kind)
        return annotated(walk.shape(inner), notes)
    if str(origin).rpartition(".")[2] in QUALIFIERS:
        return walk.shape(get_args(kind)[0])
    if hasattr(kind, "__supertype__"):
        return walk.shape(kind.__supertype__)
    if isinstance(kind, typing.TypeVar):
        return walk.shape(Union[kind.__constraints__] if kind.__constraints__ else kind.__bound__ or Any)
    if type(kind).__name__ == "InitVar":
        return walk.shape(kind.type)
    if type(origin or kind).__name__ == "TypeAliasType":
        alias = origin or kind
        arguments = dict(zip(alias.__type_params__, get_args(kind), strict=False))
        return walk.named(kind, lambda name: walk.shape(substituted(alias.__value__, arguments)))
    return None


def _union(walk: Walk, kind: Any) -> Shape | None:
    if get_origin(kind) not in (Union, types.UnionType):
        return None
    branches = [(_bare(branch), walk.shape(branch)) for branch in get_args(kind)]
    schemas = [shape.schema for _, shape in branches]
    if {} in schemas:
        return Shape({}, partial(_first_fit, branches))
    flat = [one for schema in schemas for one in (schema["anyOf"] if schema.keys() == {"anyOf"} else [schema])]
    return Shape({"anyOf": flat}, partial(_first_fit, branches))


def _bare(kind: Any) -> Any:
    return _bare(get_args(kind)[0]) if get_origin(kind) is Annotated else kind


def _first_fit(branches: list[tuple[Any, Shape]], value: Any) -> Any:
    """The value as the branch of a union that fits it best."""
    misses = []
    for _, shape in sorted(branches, key=lambda branch: _rank(branch[0], value)):
        try:
            return shape.convert(value)
        except Mismatch as exc:
            misses.append(exc)
    deepest = max(misses, key=lambda miss: len(miss.path))
    if deepest.path:
        raise deepest
    raise Mismatch(" or ".join(dict.fromkeys(miss.expected for miss in misses)), value)


def _rank(kind: Any, value: Any) -> int:
    """How late a branch is tried: what JSON says exactly, what few texts fit, any text, any path.

    Not the order of the branches, which ``typing`` does not always keep.
    """
    if kind is str:
        return 2
    if kind is bytes or (isinstance(kind, type) and LEAVES.get(kind, LEAVES[Any]).schema.get("format") == "path"):
        return 3
    return 0 if kind is type(value) else 1


def _choice(walk: Walk, kind: Any) -> Shape | None:
    """A Literal or an Enum: one of some JSON values."""
    if get_origin(kind) is Literal:
        pairs = [(_json_of(member), member) for member in get_args(kind)]
    elif isinstance(kind, type) and issubclass(kind, Enum):
        pairs = [(_json_of(member), member) for member in kind]
    else:
        return None
    values = [value for value, _ in pairs]
    names = {LEAVES[type(value)].schema["type"] for value in values}
    schema: Schema = {"type": names.pop(), "enum": values} if len(names) == 1 else {"enum": values}
    return Shape(schema, partial(_chosen, pairs))


def _json_of(member: Any) -> Any:
    value = member.value if isinstance(member, Enum) else member
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return plain(value)
    if value is None:
        return None
    raise ConfigError(f"choice {member!r} has no form in JSON: its value must be a text, a number, a bool or None")


def _chosen(pairs: list[tuple[Any, Any]], value: Any) -> Any:
    for plain, member in pairs:
        if value == plain and isinstance(value, bool) == isinstance(plain, bool):
            return member
    raise Mismatch(f"one of {', '.join(json.dumps(plain, ensure_ascii=False) for plain, _ in pairs)}", value)


def _fields(walk: Walk, kind: Any) -> Shape | None:
    """A dataclass, a NamedTuple, a TypedDict."""
    fields = fields_of(kind)
    if fields is None:
        return None
    origin = get_origin(kind) or kind

    def build(_: str) -> Shape:
        outer, walk.names = walk.names, names_around(origin)
        schema, read = object_of(fields, walk.shape)
        walk.names = outer
        text = documented(origin).text
        return Shape({**schema, "description": text} if text else schema, made(origin, read))

    return walk.named(kind, build)


RULES: tuple[Rule, ...] = (
    _wrapped,
    _union,
    _choice,
    array,
    mapping,
    _fields,
    pydantic_model,
    known_to_msgspec,
)
