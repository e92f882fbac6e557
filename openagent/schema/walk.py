"""The walk over types: one rule after another is asked, and what has a name is kept under ``$defs``.

Owns: which rule answers, the names of definitions. Does not know: the rules.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable
from typing import Any, get_args, get_origin

from ..errors import ConfigError
from .leaves import LEAVES, Convert, Schema, Shape
from .objects import resolved


class Walk:
    """One walk over one or several types, which share their ``$defs``.

    The first rule that knows a type gives its shape. Classes with fields get a name there, so
    that they can contain themselves.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.names: dict[str, Any] = {}  # what the place of the type being walked calls things
        self.defs: dict[str, Schema] = {}
        self._names: dict[Any, str] = {}
        self._converts: dict[str, Convert] = {}

    def shape(self, kind: Any) -> Shape:
        """The shape of a type; ``ConfigError`` if JSON has no form of it."""
        if isinstance(kind, (str, typing.ForwardRef)):
            return self._referred(kind if isinstance(kind, str) else kind.__forward_arg__)
        kind = type(None) if kind is None else kind
        if hashable(kind) and kind in LEAVES:
            return LEAVES[kind]
        for rule in self.rules:
            if (shape := rule(self, kind)) is not None:
                return shape
        raise ConfigError(f"type {inspect.formatannotation(kind)} has no form in JSON")

    def _referred(self, text: str) -> Shape:
        """The shape of a type still given by its name: Python 3.10's list["Node"], an alias in itself."""
        kind = resolved(text, self.names, {}, "a part")
        if isinstance(kind, type) and not get_args(kind):
            return self.shape(kind)
        return self.named(typing.ForwardRef(text), lambda _: self.shape(kind))

    def named(self, kind: Any, build: Callable[[str], Shape]) -> Shape:
        """The shape that ``build`` makes under a name, kept in ``$defs`` and referred to."""
        name = self._names.get(kind)
        if name is None:
            name = self._names[kind] = self._free_name(kind)
            self.defs[name] = {}
            self.defs[name], self._converts[name] = build(name)
        return Shape({"$ref": f"#/$defs/{name}"}, lambda value: self._converts[name](value))

    def _free_name(self, kind: Any) -> str:
        base = re.sub(r"\W+", "_", name_of(kind)).strip("_")
        taken = (base if number == 1 else f"{base}{number}" for number in range(1, len(self.defs) + 2))
        return next(name for name in taken if name not in self.defs)

    def rooted(self, schema: Schema) -> Schema:
        """A schema that stands by itself: no ``$ref`` at its root, the ``$defs`` it needs within."""
        root, seen = schema, set()
        while reference := root.get("$ref"):
            if reference in seen:
                raise ConfigError(f"type {reference.rpartition('/')[2]} is nothing but itself")
            seen.add(reference)
            root = {
                **self.defs[reference.removeprefix("#/$defs/")],
                **{key: value for key, value in root.items() if key != "$ref"},
            }
        needed = _needed(root, self.defs)
        return {**root, "$defs": needed} if needed else root


def _needed(schema: Schema, defs: dict[str, Schema]) -> dict[str, Schema]:
    """The definitions that a schema refers to, and those that they refer to."""
    found: dict[str, Schema] = {}
    waiting: list[Schema] = [schema]
    while waiting:
        text = json.dumps(waiting.pop(), default=str)
        for name in re.findall(r'"\$ref": "#/\$defs/([^"/]+)', text):
            if name in defs and name not in found:
                found[name] = defs[name]
                waiting.append(defs[name])
    return {name: defs[name] for name in defs if name in found}


Rule = Callable[[Walk, Any], "Shape | None"]


def hashable(kind: Any) -> bool:
    """Whether the type can be looked up in a table."""
    try:
        hash(kind)
    except TypeError:
        return False
    return True


def name_of(kind: Any) -> str:
    """What a reader would call the type."""
    if get_args(kind):
        return f"{name_of(get_origin(kind))}[{', '.join(map(name_of, get_args(kind)))}]"
    return getattr(kind, "__forward_arg__", None) or getattr(kind, "__name__", None) or str(kind)
