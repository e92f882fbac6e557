"""Objects with named fields: dataclasses, NamedTuples, TypedDicts, the parameters of a function.

Owns: what the fields of a class are, and JSON objects to and from them. Does not know: the types
of the fields (it asks the walk for them).
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from types import SimpleNamespace
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from ..errors import ConfigError
from .docs import documented
from .leaves import Convert, Mismatch, Schema, Shape, within

MISSING: Any = inspect.Parameter.empty


class Field(NamedTuple):
    """One key of an object; without a default it is required, unless ``optional``."""

    name: str
    type: Any
    default: Any = MISSING
    optional: bool = False
    text: str = ""

    @property
    def required(self) -> bool:
        """Whether the key must be there."""
        return self.default is MISSING and not self.optional


Read = Callable[[Any], "dict[str, Any]"]


def object_of(fields: Iterable[Field], shape: Callable[[Any], Shape]) -> tuple[Schema, Read]:
    """The closed schema of an object with these fields, and what converts such an object's values."""
    properties: dict[str, Schema] = {}
    converts: dict[str, Convert] = {}
    required = [field.name for field in fields if field.required]
    for field in fields:
        schema, converts[field.name] = shape(field.type)
        text = {"description": field.text} if field.text and "description" not in schema else {}
        properties[field.name] = {**schema, **text, **_default(field.default, converts[field.name])}
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return schema, lambda value: _read(value, converts, required)


def _read(value: Any, converts: dict[str, Convert], required: list[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Mismatch("an object", value)
    for name in required:
        if name not in value:
            raise Mismatch(f"an object with {name!r}", value)
    found: dict[str, Any] = {}
    for name, item in value.items():
        if name not in converts:
            raise Mismatch(f"none but the keys {', '.join(converts) or '(no keys)'}", name)
        try:
            found[name] = within(name, converts[name], item)
        except Mismatch:
            if item is not None or name in required:
                raise  # a null for what may be left out is left out (arg-12)
    return found


def made(kind: Any, read: Read) -> Convert:
    """A conversion that makes an instance of the class out of the object's fields."""

    def convert(value: Any) -> Any:
        fields = read(value)
        try:
            return kind(**fields)
        except Exception as exc:  # the class is the user's, and may refuse with anything
            raise Mismatch(f"a valid {kind.__name__} ({type(exc).__name__}: {exc})", value) from exc

    return convert


def _default(default: Any, convert: Convert) -> Schema:
    """The default as the schema shows it: nothing, if JSON cannot say it or it is of another type."""
    if default is MISSING:
        return {}
    try:
        plain = json.loads(json.dumps(_plain(default), allow_nan=False))
        convert(plain)
    except (TypeError, ValueError, RecursionError):  # a Mismatch is a ValueError
        return {}
    return {"default": plain}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or type(value) in (str, int, float, bool):
        return value
    import msgspec

    return msgspec.to_builtins(value, str_keys=True)


def fields_of(kind: Any) -> list[Field] | None:
    """The fields of a dataclass, a NamedTuple or a TypedDict (or an alias of a generic one), else None."""
    origin = get_origin(kind) or kind
    if not isinstance(origin, type):
        return None
    if dataclasses.is_dataclass(origin):
        found = _dataclass_fields(origin)
    elif issubclass(origin, tuple) and hasattr(origin, "_fields"):
        defaults: dict[str, Any] = getattr(origin, "_field_defaults", {})
        found = [Field(name, None, defaults.get(name, MISSING)) for name in origin._fields]
    elif issubclass(origin, dict) and hasattr(origin, "__total__"):
        found = [Field(name, None) for name in origin.__annotations__]
    else:
        return None
    return _typed(found, kind, origin)


def _dataclass_fields(kind: Any) -> list[Field]:
    found = []
    for field in kind.__dataclass_fields__.values():  # unlike fields(), this has the InitVars, and the ClassVars
        if not field.init or field._field_type is dataclasses._FIELD_CLASSVAR:  # type: ignore[attr-defined]
            continue
        default = field.default
        if field.default_factory in (list, dict):
            default = field.default_factory()
        optional = field.default_factory is not dataclasses.MISSING
        found.append(Field(field.name, None, MISSING if default is dataclasses.MISSING else default, optional))
    return found


def _typed(fields: list[Field], kind: Any, origin: Any) -> list[Field]:
    hints = class_hints(origin, [field.name for field in fields])
    texts = documented(origin).params
    arguments = dict(zip(getattr(origin, "__parameters__", ()), get_args(kind), strict=False))
    typed = []
    for field in fields:
        hint = hints.get(field.name, Any)
        optional = field.optional
        if hasattr(origin, "__required_keys__"):
            # An annotation kept as text hides NotRequired[] from __required_keys__: look at both.
            words = qualifiers(hint)
            optional = "NotRequired" in words or (
                "Required" not in words and field.name not in origin.__required_keys__
            )
        text = texts.get(field.name, "")
        typed.append(field._replace(type=substituted(hint, arguments), optional=optional, text=text))
    return typed


def qualifiers(hint: Any) -> list[str]:
    """The words around a type that say something of its field: Required, NotRequired, ReadOnly, Final."""
    words = []
    while (word := str(get_origin(hint)).rpartition(".")[2]) in QUALIFIERS:
        words.append(word)
        hint = get_args(hint)[0]
    return words


QUALIFIERS = ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")


def substituted(hint: Any, arguments: Mapping[Any, Any]) -> Any:
    """The type with its type variables replaced."""
    if isinstance(hint, typing.TypeVar):
        return arguments.get(hint, hint)
    free = getattr(hint, "__parameters__", ())
    if not free or not get_args(hint) or not arguments:
        return hint
    return hint[tuple(arguments.get(variable, Any) for variable in free)]


def class_hints(kind: Any, fields: Collection[str]) -> dict[str, Any]:
    """The types of a class's fields; ``ConfigError`` naming the one that cannot be resolved."""
    local = {kind.__name__: kind}
    try:
        return get_type_hints(kind, localns=local, include_extras=True)
    except Exception:  # whatever evaluating an annotation may raise; below, one by one
        pass
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        own = vars(base).get("__annotations__", {})
        for name, annotation in ((name, own[name]) for name in own if name in fields):
            hints[name] = resolved(annotation, names_around(base), local, f"field {name!r} of {kind.__name__}")
    return hints


def names_around(kind: type) -> dict[str, Any]:
    """What the module of a class calls things, and the class itself."""
    return {**vars(sys.modules.get(kind.__module__, object)), kind.__name__: kind}


def resolved(annotation: Any, names: dict[str, Any], local: dict[str, Any], place: str) -> Any:
    """The type that one annotation means; ``ConfigError`` naming its place if it means none."""
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, names, local, include_extras=True)["it"]
    except Exception as exc:  # whatever evaluating an annotation may raise
        raise ConfigError(f"{place} is annotated {annotation!r}, which cannot be resolved: {exc}") from exc
