"""Dataclasses, defined in a tenth of the time, and without ``dataclasses`` to load (5 ms, with ``inspect``).

That compiles six methods a class, 0.6 ms: the 28 classes of a first chat were two thirds of what it waited for beyond
``requests``. Here only ``__init__`` is compiled, when the first value is made; the other methods are the same functions
for all. What ``dataclasses`` wants to know of a class is made when it asks, so that ``fields``, ``asdict`` and a
dataclass that inherits find what they would find in one of its own (tests/test_values.py).

Owns: how values are made. Does not know: any of them.
Source: https://docs.python.org/3/library/dataclasses.html
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")


class _Missing:
    """What stands for no default."""

    def __repr__(self) -> str:
        return "<factory>"  # it is seen in signatures only, where ``dataclasses`` says so


_MISSING: Any = _Missing()


class _Field:
    """What was said of a field where it was declared."""

    __slots__ = ("default", "factory", "kw_only", "name", "repr", "type")

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
            own = set(vars(given))
            if "__eq__" in own and given.__hash__ is None:
                own.discard("__hash__")  # Python's doing, not the class's
            made = _slotted(given, fields) if slots else _with_defaults(given, fields)
            members = _MEMBERS | (_FROZEN if frozen else _LOOSE) | (_STATE if frozen and slots else {})
            for name, member in members.items():
                if name not in own:
                    setattr(made, name, member)
            made.__value_fields__, made.__value_frozen__ = fields, frozen
            made.__match_args__ = tuple(item.name for item in fields if not item.kw_only)
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


class _Later:
    """An attribute of each class that is made when somebody asks for it."""

    def __init__(self, name: str, make: Callable[[Any, str], Any]) -> None:
        self._name, self._make = name, make

    def __get__(self, instance: object, owner: type) -> Any:
        asked = instance if isinstance(instance, type) else owner  # the former by ``inspect``, from Python 3.13 on
        of = next(kind for kind in asked.__mro__ if "__value_fields__" in vars(kind))
        made = self._make(of, self._name)
        setattr(of, self._name, made)
        return made.__get__(instance, owner) if isinstance(made, FunctionType) else made


def _told(of: Any, name: str) -> Any:
    """What ``dataclasses`` would have kept under this name in a class with these fields."""
    import dataclasses

    named: list[Any] = []
    for item in _fields(of):
        said = {"default": item.default, "default_factory": item.factory}
        said = {name: value for name, value in said.items() if value is not _MISSING}
        named.append((item.name, item.type, dataclasses.field(repr=item.repr, kw_only=item.kw_only, **said)))
    twin = dataclasses.make_dataclass(of.__name__, named, frozen=of.__value_frozen__, slots="__slots__" in vars(of))
    return getattr(twin, name)


def _init(of: Any, name: str) -> Callable[..., None]:
    has_slots = "__slots__" in vars(of)
    known: dict[str, Any] = {"_missing": _MISSING}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    body: list[str] = []
    for item in _fields(of):
        parameter = value = item.name
        if item.default is not _MISSING:
            known[f"_default_{item.name}"] = item.default
            parameter = f"{item.name}=_default_{item.name}"
        elif item.factory is not _MISSING:
            known[f"_new_{item.name}"] = item.factory
            parameter = f"{item.name}=_missing"
            value = f"_new_{item.name}() if {item.name} is _missing else {item.name}"
        parameters[item.kw_only].append(parameter)
        if has_slots:  # 0.15 µs quicker than object.__setattr__, which is felt with pieces of an answer
            known[f"_put_{item.name}"] = vars(of)[item.name].__set__
            body.append(f"_put_{item.name}(self, {value})")
        else:
            body.append(f"{item.name}={value}")
    if not has_slots:
        body = [f"self.__dict__.update({', '.join(body)})"]
    if hasattr(of, "__post_init__"):
        body.append("self.__post_init__()")
    listed = ", ".join(["self", *parameters[False], *(["*", *parameters[True]] if parameters[True] else [])])
    lines = "\n  ".join(body or ["pass"])
    source = f"def make({', '.join(known)}):\n def __init__({listed}):\n  {lines}\n return __init__"
    space: dict[str, Any] = {}
    exec(source, vars(sys.modules[of.__module__]), space)
    init: Callable[..., None] = space["make"](**known)
    init.__qualname__ = f"{of.__qualname__}.__init__"
    init.__annotations__ = {item.name: item.type for item in _fields(of)} | {"return": None}
    return init


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{item.name}={getattr(self, item.name)!r}" for item in _fields(self) if item.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, item.name) for item in _fields(self)])


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _setattr(self: Any, name: str, value: Any) -> None:
    _refuse(self, name, "assign to")
    object.__setattr__(self, name, value)


def _delattr(self: Any, name: str) -> None:
    _refuse(self, name, "delete")
    object.__delattr__(self, name)


def _refuse(self: Any, name: str, deed: str) -> None:
    """``FrozenInstanceError`` but for attributes that a subclass has added."""
    if "__value_fields__" in vars(type(self)) or name in [item.name for item in _fields(self)]:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {deed} field {name!r}")


def _setstate(self: Any, state: tuple[Any, ...]) -> None:
    for item, value in zip(_fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)


_MEMBERS: dict[str, Any] = {
    "__init__": _Later("__init__", _init),
    "__dataclass_fields__": _Later("__dataclass_fields__", _told),
    "__dataclass_params__": _Later("__dataclass_params__", _told),
    "__repr__": _repr,
    "__eq__": _eq,
    "__replace__": replace,  # for copy.replace, from Python 3.13 on
}
_FROZEN = {"__hash__": _hash, "__setattr__": _setattr, "__delattr__": _delattr}
_LOOSE = {"__hash__": None}
_STATE = {"__getstate__": _values, "__setstate__": _setstate}  # for pickle and copy: slots that cannot be set
