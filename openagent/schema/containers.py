"""Arrays and objects without a class of their own: lists, sets, tuples, dicts.

Owns: the rules for containers. Does not know: what they contain. Source: JSON Schema 2020-12, 10.3.
"""

from __future__ import annotations

import collections
import json
import typing
from collections import abc
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, get_args, get_origin

from .leaves import Convert, Mismatch, Schema, Shape, within
from .walk import Walk, hashable

ARRAYS: dict[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.deque: collections.deque,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    abc.Set: set,
    abc.MutableSet: set,
}
SETS = (set, frozenset)
OBJECTS: dict[Any, Callable[[Iterable[Any]], Any]] = {
    dict: dict,
    collections.OrderedDict: collections.OrderedDict,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
}


def array(walk: Walk, kind: Any) -> Shape | None:
    """A list, a set, a tuple, or an abstract relative of theirs."""
    origin = get_origin(kind) or kind
    make = ARRAYS.get(origin) if hashable(origin) else None
    if make is None:
        return None
    items = get_args(kind)
    if make is tuple and kind not in (tuple, typing.Tuple) and items[-1:] != (...,):  # noqa: UP006
        return _record(walk, [item for item in items if item != ()])
    schema, convert_item = walk.shape(items[0] if items else Any)
    more = {"uniqueItems": True} if make in SETS else {}
    return Shape({"type": "array", "items": schema, **more}, partial(_items, make, convert_item))


def _items(make: Callable[[Iterable[Any]], Any], convert_item: Convert, value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        raise Mismatch("an array", value)
    try:
        return make([within(index, convert_item, item) for index, item in enumerate(value)])
    except TypeError:
        raise Mismatch("an array of values that a set can hold", value) from None


def _record(walk: Walk, kinds: list[Any]) -> Shape:
    """A tuple of so many items, each of its own type."""
    shapes = [walk.shape(kind) for kind in kinds]
    size = len(shapes)
    prefix = {"prefixItems": [shape.schema for shape in shapes]} if shapes else {}

    def convert(value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != size:
            raise Mismatch(f"an array of {size} items", value)
        return tuple(within(index, shapes[index].convert, item) for index, item in enumerate(value))

    # Not with "items": false, which llama.cpp refuses (schema must be an object); the sizes say the same.
    return Shape({"type": "array", **prefix, "minItems": size, "maxItems": size}, convert)


def mapping(walk: Walk, kind: Any) -> Shape | None:
    """A dict, or an abstract relative of it; its keys are read from texts."""
    origin = get_origin(kind) or kind
    make = OBJECTS.get(origin) if hashable(origin) else None
    if make is None:
        return None
    key_kind, value_kind = get_args(kind) or (Any, Any)
    key, item = walk.shape(key_kind), walk.shape(value_kind)
    schema: Schema = {"type": "object"}
    if key.schema.get("type") == "string" and key.schema != {"type": "string"}:
        schema["propertyNames"] = key.schema
    if item.schema:
        schema["additionalProperties"] = item.schema

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Mismatch("an object", value)
        return make((within(k, partial(_key, key), k), within(k, item.convert, v)) for k, v in value.items())

    return Shape(schema, convert)


def _key(shape: Shape, text: Any) -> Any:
    """A key of an object as the type of the dict's keys: as a text, else as the JSON it spells."""
    try:
        return shape.convert(text)
    except Mismatch:
        try:
            return shape.convert(json.loads(text))
        except json.JSONDecodeError:
            pass
        raise
