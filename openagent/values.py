"""Dataclasses, defined in a tenth of the time, and without ``dataclasses`` to load (5 ms, with ``inspect``).

That compiles six methods a class, 0.6 ms: the 28 classes of a first chat were two thirds of what it waited for beyond
``requests``. Here only ``__init__`` is compiled, when the first value is made; the other methods are closures. What
``dataclasses`` wants to know of a class is made when it asks, so that ``fields``, ``asdict`` and a dataclass that
inherits find what they would find in one of its own (tests/test_values.py).

Owns: how values are made. Does not know: any of them.
Source: https://docs.python.org/3/library/dataclasses.html
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")


class _Missing:
    """What stands for no default."""

    def __repr__(self) -> str:
        return "<factory>"  # it is seen in signatures only, where ``dataclasses`` says so


_MISSING: Any = _Missing()
_TOLD = ("__dataclass_fields__", "__dataclass_params__")


class _Field:
    """What was said of a field where it was declared."""

    def __init__(self, default: Any, factory: Any = _MISSING, repr: bool = True, kw_only: bool = False) -> None:
        self.default, self.factory, self.repr, self.kw_only = default, factory, repr, kw_only
        self.name = self.type = ""

    def named(self, name: str, type: str, kw_only: bool) -> _Field:
        """This field, under the name where it was found."""
        self.name, self.type, self.kw_only = name, type, self.kw_only or kw_only
        return self


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
else:

    def field(*, default=_MISSING, default_factory=_MISSING, repr=True, kw_only=False):
        """As ``dataclasses.field``."""
        return _Field(default, default_factory, repr, kw_only)

    def dataclass(*, frozen=False, slots=False, kw_only=False):
        """As ``dataclasses.dataclass``, for classes that inherit from none of that kind."""

        def decorate(given):
            if hasattr(given, "__value_fields__"):
                raise TypeError(f"{given.__qualname__} must not inherit fields: take dataclasses.dataclass")
            fields = tuple(_found(given, kw_only))
            made = _slotted(given, fields) if slots else _with_defaults(given, fields)
            names = [item.name for item in fields]
            methods = [_repr(fields), *_comparison(names, frozen), _replace]
            methods += _frozen(made, names) if frozen else ()
            methods += _state(names) if frozen and slots else ()
            own = set(vars(given))
            if "__eq__" in own and given.__hash__ is None:
                own.discard("__hash__")  # Python's doing, not the class's
            for method in methods:
                if method.__name__ not in own:
                    method.__qualname__ = f"{made.__qualname__}.{method.__name__}"
                    setattr(made, method.__name__, method)
            if not frozen:
                made.__hash__ = None
            made.__value_fields__ = fields
            made.__match_args__ = tuple(item.name for item in fields if not item.kw_only)
            later = {name: partial(_told, name, fields, {"frozen": frozen, "slots": slots}) for name in _TOLD}
            later |= {"__init__": partial(_init, made, fields, frozen, slots)}  # half of the classes are used by few
            for name, make in later.items():
                if name not in own:
                    setattr(made, name, _Later(made, name, make))
            return made

        return decorate


def replace(value: T, **changes: Any) -> T:
    """A copy of a value with these fields changed."""
    return type(value)(**{item.name: getattr(value, item.name) for item in _fields(value)} | changes)


def defaults(of: type) -> dict[str, Any]:
    """The fields by name with their defaults, new ones where there is a factory; for classes where each has one."""
    return {item.name: item.default if item.factory is _MISSING else item.factory() for item in _fields(of)}


def _fields(of: Any) -> tuple[_Field, ...]:
    found: tuple[_Field, ...] = of.__value_fields__
    return found


class _Later:
    """An attribute of a class that is made when somebody asks for it."""

    def __init__(self, of: type, name: str, make: Callable[[], Any]) -> None:
        self._of, self._name, self._make = of, name, make

    def __get__(self, instance: object, owner: type) -> Any:
        made = self._make()
        setattr(self._of, self._name, made)
        return made.__get__(instance, owner) if isinstance(made, FunctionType) else made


def _told(name: str, fields: tuple[_Field, ...], how: Mapping[str, Any]) -> Any:
    """What ``dataclasses`` would have kept under this name in a class with these fields."""
    import dataclasses

    named: list[Any] = []
    for item in fields:
        said = {"default": item.default, "default_factory": item.factory}
        said = {name: value for name, value in said.items() if value is not _MISSING}
        named.append((item.name, item.type, dataclasses.field(repr=item.repr, kw_only=item.kw_only, **said)))
    return getattr(dataclasses.make_dataclass("Told", named, **how), name)


def _found(given: type, kw_only: bool) -> Iterator[_Field]:
    for name, type in given.__annotations__.items():
        said = vars(given).get(name, _MISSING)
        yield (said if isinstance(said, _Field) else _Field(said)).named(name, type, kw_only)


def _slotted(given: type, fields: tuple[_Field, ...]) -> type:
    """The class made anew, for slots cannot be added."""
    names = tuple(item.name for item in fields)
    space = {name: value for name, value in vars(given).items() if name not in (*names, "__dict__", "__weakref__")}
    made = type(given)(given.__name__, given.__bases__, space | {"__slots__": names})
    made.__qualname__ = given.__qualname__
    return made


def _with_defaults(given: type, fields: tuple[_Field, ...]) -> type:
    """The class, whose attributes are the defaults of the fields."""
    for item in fields:
        if item.default is not _MISSING:
            setattr(given, item.name, item.default)
        elif item.name in vars(given):
            delattr(given, item.name)
    return given


def _init(made: type, fields: tuple[_Field, ...], frozen: bool, slots: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"_missing": _MISSING, "_put": object.__setattr__ if frozen else setattr}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    body: list[str] = []
    for item in fields:
        name = value = parameter = item.name
        if item.default is not _MISSING:
            known[f"_default_{name}"] = item.default
            parameter = f"{name}=_default_{name}"
        elif item.factory is not _MISSING:
            known[f"_new_{name}"] = item.factory
            parameter = f"{name}=_missing"
            value = f"_new_{name}() if {name} is _missing else {name}"
        parameters[item.kw_only].append(parameter)
        if slots:
            known[f"_put_{name}"] = vars(made)[name].__set__  # 0.15 µs quicker, which is felt with pieces of an answer
            body.append(f"_put_{name}(self, {value})")
        else:
            body.append(f"_put(self, {name!r}, {value})")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    listed = ", ".join(["self", *parameters[False], *(["*", *parameters[True]] if parameters[True] else [])])
    lines = "\n  ".join(body or ["pass"])
    source = f"def make({', '.join(known)}):\n def __init__({listed}):\n  {lines}\n return __init__"
    space: dict[str, Any] = {}
    exec(source, vars(sys.modules[made.__module__]), space)
    init: Callable[..., None] = space["make"](**known)
    init.__qualname__ = f"{made.__qualname__}.__init__"
    init.__annotations__ = {item.name: item.type for item in fields} | {"return": None}
    return init


def _repr(fields: tuple[_Field, ...]) -> Callable[[Any], str]:
    names = [item.name for item in fields if item.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    return __repr__


def _comparison(names: list[str], frozen: bool) -> list[Callable[..., Any]]:
    one = attrgetter(*names)

    def values(self: Any) -> tuple[Any, ...]:
        return one(self) if len(names) > 1 else (one(self),)

    def __eq__(self: Any, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return [__eq__, __hash__] if frozen else [__eq__]


def _frozen(made: type, names: list[str]) -> list[Callable[..., None]]:
    def refuse(self: Any, name: str, deed: str) -> None:
        if type(self) is made or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot {deed} field {name!r}")

    def __setattr__(self: Any, name: str, value: Any) -> None:
        refuse(self, name, "assign to")
        object.__setattr__(self, name, value)

    def __delattr__(self: Any, name: str) -> None:
        refuse(self, name, "delete")
        object.__delattr__(self, name)

    return [__setattr__, __delattr__]


def _state(names: list[str]) -> list[Callable[..., Any]]:
    """What ``pickle`` and ``copy`` need where a value has slots, none of which can be set."""

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return [__getstate__, __setstate__]


def _replace(self: T, **changes: Any) -> T:
    return replace(self, **changes)


_replace.__name__ = "__replace__"  # for copy.replace, from Python 3.13 on
