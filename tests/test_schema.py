# ruff: noqa: UP045 - that Optional and Union are understood is what is tested
"""Python types as JSON Schema, JSON as Python values, complaints where they do not fit."""

import collections
import enum
import functools
import inspect
import itertools
import sys
import typing
from collections import abc
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union
from uuid import UUID

import jsonschema
import msgspec
import pydantic
import pytest
import typing_extensions as extensions

from openagent.errors import ConfigError
from openagent.schema import (
    Mismatch,
    check,
    check_schema,
    convert,
    expand,
    function_schema,
    takes_self,
    type_schema,
    without_nulls,
)


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


class Mixed(enum.Enum):
    ONE = 1
    X = "x"
    NOTHING = None


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    """A place on the plane.

    Attributes:
        x: how far to the right
    """

    x: float
    y: float = 0


@dataclass
class Node:
    value: int
    next: Optional["Node"] = None
    children: list["Node"] = field(default_factory=list)


class Pair(NamedTuple):
    left: int
    right: str = "z"


class Movie(TypedDict, total=False):
    title: str
    place: Point


T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    it: T
    more: list[T] = field(default_factory=list)


@dataclass(frozen=True)
class AtLeast:
    """A limit as annotated_types writes it."""

    ge: Any


@dataclass(frozen=True)
class Length:
    min_length: int
    max_length: int | None = None


class Struct(msgspec.Struct):
    a: int


UserId = NewType("UserId", int)

POINT = {
    "type": "object",
    "properties": {
        "x": {"type": "number", "description": "how far to the right"},
        "y": {"type": "number", "default": 0},
    },
    "required": ["x"],
    "additionalProperties": False,
    "description": "A place on the plane.",
}
PAIR = {
    "type": "object",
    "properties": {"left": {"type": "integer"}, "right": {"type": "string", "default": "z"}},
    "required": ["left"],
    "additionalProperties": False,
}
NODE = {
    "type": "object",
    "properties": {
        "value": {"type": "integer"},
        "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}], "default": None},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
    },
    "required": ["value"],
    "additionalProperties": False,
}
NULL = {"type": "null"}
INT = {"type": "integer"}
STR = {"type": "string"}

# type, its schema, JSON values with what becomes of them, JSON values with the complaint about them
TYPES: list[tuple[Any, dict[str, Any], list[tuple[Any, Any]], list[tuple[Any, str]]]] = [
    (Any, {}, [(1, 1), ([None], [None])], []),
    (object, {}, [({"a": 1}, {"a": 1})], []),
    (str, STR, [("é", "é"), ("", "")], [(1, "x: expected string, got 1")]),
    (int, INT, [(1, 1), (1.0, 1)], [(True, "x: expected integer, got true"), ("1", 'x: expected integer, got "1"')]),
    (float, {"type": "number"}, [(1, 1.0), (0.5, 0.5)], [("1", 'x: expected number, got "1"')]),
    (bool, {"type": "boolean"}, [(True, True)], [(1, "x: expected boolean, got 1")]),
    (None, NULL, [(None, None)], [(0, "x: expected null, got 0")]),
    (list, {"type": "array", "items": {}}, [([1, "a"], [1, "a"])], [("ab", 'x: expected array, got "ab"')]),
    (list[int], {"type": "array", "items": INT}, [([1, 2.0], [1, 2])], [([1, "a"], 'x[1]: expected integer, got "a"')]),
    (typing.List[int], {"type": "array", "items": INT}, [([1], [1])], []),  # noqa: UP006
    (list[list[str]], {"type": "array", "items": {"type": "array", "items": STR}}, [([["a"], []], [["a"], []])], []),
    (abc.Sequence[str], {"type": "array", "items": STR}, [(["a"], ["a"])], []),
    (abc.Iterable[str], {"type": "array", "items": STR}, [(["a"], ["a"])], []),
    (collections.deque, {"type": "array", "items": {}}, [([1], collections.deque([1]))], []),
    (tuple, {"type": "array", "items": {}}, [([1, "a"], (1, "a"))], []),
    (tuple[int, ...], {"type": "array", "items": INT}, [([1, 2], (1, 2))], []),
    (
        tuple[int, str],
        {"type": "array", "prefixItems": [INT, STR], "minItems": 2, "maxItems": 2},
        [([1, "a"], (1, "a"))],
        [([1], "x: expected minItems 2, got [1]"), (["a", "a"], 'x[0]: expected integer, got "a"')],
    ),
    (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}, [([], ())], []),
    (
        set[str],
        {"type": "array", "items": STR, "uniqueItems": True},
        [(["a", "b"], {"a", "b"})],
        [(["a", "a"], 'x: expected uniqueItems true, got ["a", "a"]')],
    ),
    (frozenset[int], {"type": "array", "items": INT, "uniqueItems": True}, [([1], frozenset({1}))], []),
    (
        set[Any],
        {"type": "array", "items": {}, "uniqueItems": True},
        [([1], {1})],
        [([[1]], "x: expected an array of values that a set can hold, got [[1]]")],
    ),
    (dict, {"type": "object"}, [({"a": 1}, {"a": 1})], [([], "x: expected object, got []")]),
    (dict[str, Any], {"type": "object"}, [({"a": None}, {"a": None})], []),
    (
        dict[str, int],
        {"type": "object", "additionalProperties": INT},
        [({"1": 1}, {"1": 1})],
        [({"a": "b"}, 'x.a: expected integer, got "b"')],
    ),
    (
        dict[int, str],
        {"type": "object", "additionalProperties": STR},
        [({"1": "a"}, {1: "a"})],
        [({"b": "a"}, 'x.b: expected an integer, got "b"')],
    ),
    (
        dict[Color, int],
        {"type": "object", "propertyNames": {"type": "string", "enum": ["r", "b"]}, "additionalProperties": INT},
        [({"r": 1}, {Color.RED: 1})],
        [({"q": 1}, 'x: expected one of "r", "b", got "q"')],
    ),
    (
        abc.Mapping[date, Any],
        {"type": "object", "propertyNames": {"type": "string", "format": "date"}},
        [({"2025-01-31": 1}, {date(2025, 1, 31): 1})],
        [],
    ),
    (Optional[int], {"anyOf": [INT, NULL]}, [(1, 1), (None, None)], [("a", 'x: expected integer or null, got "a"')]),
    (int | str, {"anyOf": [INT, STR]}, [(1, 1), ("1", "1")], [([], "x: expected integer or string, got []")]),
    (Union[float, int], {"anyOf": [{"type": "number"}, INT]}, [(1, 1), (1.0, 1.0)], []),
    (
        date | str,
        {"anyOf": [{"type": "string", "format": "date"}, STR]},
        [("2025-01-31", date(2025, 1, 31)), ("soon", "soon")],
        [(1, "x: expected string, got 1")],
    ),
    (str | date, {"anyOf": [STR, {"type": "string", "format": "date"}]}, [("2025-01-31", date(2025, 1, 31))], []),
    (str | bytes, {"anyOf": [STR, {"type": "string", "contentEncoding": "base64"}]}, [("aGk=", "aGk=")], []),
    (Path | str, {"anyOf": [{"type": "string", "format": "path"}, STR]}, [("a/b", "a/b")], []),
    (Color | str, {"anyOf": [{"type": "string", "enum": ["r", "b"]}, STR]}, [("r", Color.RED), ("q", "q")], []),
    (Union[Any, None], {}, [(None, None), (1, 1)], []),
    (
        Literal["a", "b"],
        {"type": "string", "enum": ["a", "b"]},
        [("a", "a")],
        [("c", 'x: expected one of "a", "b", got "c"')],
    ),
    (
        Literal[1, "a", None],
        {"enum": [1, "a", None]},
        [(1, 1), (None, None)],
        [(True, 'x: expected one of 1, "a", null, got true')],
    ),
    (Literal[Color.RED], {"type": "string", "enum": ["r"]}, [("r", Color.RED)], []),
    (
        Color,
        {"type": "string", "enum": ["r", "b"]},
        [("b", Color.BLUE)],
        [("RED", 'x: expected one of "r", "b", got "RED"')],
    ),
    (Mixed, {"enum": [1, "x", None]}, [(1, Mixed.ONE), ("x", Mixed.X), (None, Mixed.NOTHING)], []),
    (Level, {"type": "integer", "enum": [1, 2]}, [(2, Level.HIGH), (1.0, Level.LOW)], []),
    (
        date,
        {"type": "string", "format": "date"},
        [("2025-01-31", date(2025, 1, 31))],
        [("31.1.", 'x: expected a date such as "2025-01-31", got "31.1."')],
    ),
    (
        time,
        {"type": "string", "format": "time"},
        [("10:11", time(10, 11)), ("10:11:12Z", time(10, 11, 12, tzinfo=timezone.utc))],
        [("25:00", 'x: expected a time such as "10:11:12", got "25:00"')],
    ),
    (
        datetime,
        {"type": "string", "format": "date-time"},
        [
            ("2025-01-31T10:11:12.5Z", datetime(2025, 1, 31, 10, 11, 12, 500_000, tzinfo=timezone.utc)),
            ("2025-01-31 10:11", datetime(2025, 1, 31, 10, 11)),
            ("2025-01-31", datetime(2025, 1, 31)),
        ],
        [("now", 'x: expected a date and time such as "2025-01-31T10:11:12Z", got "now"')],
    ),
    (
        timedelta,
        {"anyOf": [{"type": "string", "format": "duration"}, {"type": "number", "description": "seconds"}]},
        [("PT1H30M", timedelta(hours=1.5)), (90, timedelta(seconds=90))],
        [
            ("long", 'x: expected a duration such as "PT1H30M", or seconds, got "long"'),
            (None, "x: expected string or number, got null"),
            (1e300, 'x: expected a duration such as "PT1H30M", or seconds, got 1e+300'),
        ],
    ),
    (
        Decimal,
        {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]},
        [("1.50", Decimal("1.50")), (0.1, Decimal("0.1"))],
        [("NaN", 'x: expected a decimal number, got "NaN"'), ("a", 'x: expected a decimal number, got "a"')],
    ),
    (
        UUID,
        {"type": "string", "format": "uuid"},
        [("550e8400-e29b-41d4-a716-446655440000", UUID("550e8400-e29b-41d4-a716-446655440000"))],
        [("5", 'x: expected a UUID, got "5"')],
    ),
    (Path, {"type": "string", "format": "path"}, [("a/b", Path("a/b"))], [(1, "x: expected string, got 1")]),
    (
        bytes,
        {"type": "string", "contentEncoding": "base64"},
        [("aGk=", b"hi")],
        [("a", 'x: expected bytes in base64, got "a"')],
    ),
    (bytearray, {"type": "string", "contentEncoding": "base64"}, [("aGk=", bytearray(b"hi"))], []),
    (UserId, INT, [(1, 1)], []),
    (T, {}, [(1, 1)], []),
    (Annotated[int, "how many"], INT | {"description": "how many"}, [(1, 1)], []),
    (Annotated[int, AtLeast(1)], INT | {"minimum": 1}, [(1, 1)], [(0, "x: expected minimum 1, got 0")]),
    (
        Annotated[int | None, AtLeast(1)],
        {"anyOf": [INT | {"minimum": 1}, NULL]},
        [(None, None)],
        [(0, "x: expected minimum 1, got 0")],
    ),
    (
        Annotated[str, Length(1, 2)],
        STR | {"minLength": 1, "maxLength": 2},
        [("a", "a")],
        [("", 'x: expected minLength 1, got ""')],
    ),
    (Annotated[list[int], Length(1)], {"type": "array", "items": INT, "minItems": 1}, [([1], [1])], []),
    (Annotated[dict[str, Any], Length(1)], {"type": "object", "minProperties": 1}, [({"a": 1}, {"a": 1})], []),
    (
        Annotated[
            str, msgspec.Meta(pattern="^a", title="T", description="D", examples=["ab"], extra_json_schema={"x-y": 1})
        ],
        STR | {"pattern": "^a", "title": "T", "description": "D", "examples": ["ab"], "x-y": 1},
        [("ab", "ab")],
        [("b", 'x: expected pattern "^a", got "b"')],
    ),
    (
        Annotated[date, AtLeast(date(2025, 1, 1))],
        {"type": "string", "format": "date"},
        [("2025-01-31", date(2025, 1, 31))],
        [("2024-01-31", 'x: expected at least 2025-01-01, got "2024-01-31"')],
    ),
    (
        Annotated[Decimal, AtLeast(0)],
        {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "format": "decimal"}]},
        [("1", Decimal(1))],
        [("-1", 'x: expected at least 0, got "-1"')],
    ),
]

# the same for types with definitions: type, schema, $defs, values, complaints
NAMED: list[tuple[Any, dict[str, Any], dict[str, Any], list[tuple[Any, Any]], list[tuple[Any, str]]]] = [
    (
        Point,
        {"$ref": "#/$defs/Point"},
        {"Point": POINT},
        [({"x": 1}, Point(1.0)), ({"x": 1, "y": 2}, Point(1.0, 2.0))],
        [
            ({"y": 1}, 'x: missing "x"'),
            ({"x": "a"}, 'x.x: expected number, got "a"'),
            ({"x": 1, "z": 1}, 'x: unknown "z", known are "x", "y"'),
        ],
    ),
    (
        Optional[Point],
        {"anyOf": [{"$ref": "#/$defs/Point"}, NULL]},
        {"Point": POINT},
        [(None, None), ({"x": 1}, Point(1.0))],
        [
            ({"x": "a"}, 'x.x: expected number, got "a"'),
            ({}, 'x: missing "x"'),
            (1, "x: expected object or null, got 1"),
        ],
    ),
    (
        Point | Pair,
        {"anyOf": [{"$ref": "#/$defs/Point"}, {"$ref": "#/$defs/Pair"}]},
        {"Point": POINT, "Pair": PAIR},
        [({"x": 1}, Point(1.0)), ({"left": 1}, Pair(1))],
        [({"left": "a"}, 'x.left: expected integer, got "a"')],
    ),
    (
        Node,
        {"$ref": "#/$defs/Node"},
        {"Node": NODE},
        [({"value": 1, "next": {"value": 2}, "children": [{"value": 3}]}, Node(1, Node(2), [Node(3)]))],
        [({"value": 1, "children": [{"value": 1, "next": {}}]}, 'x.children[0].next: missing "value"')],
    ),
    (Pair, {"$ref": "#/$defs/Pair"}, {"Pair": PAIR}, [({"left": 1, "right": "b"}, Pair(1, "b"))], []),
    (
        Movie,
        {"$ref": "#/$defs/Movie"},
        {
            "Movie": {
                "type": "object",
                "properties": {"title": STR, "place": {"$ref": "#/$defs/Point"}},
                "required": [],
                "additionalProperties": False,
            },
            "Point": POINT,
        },
        [({}, {}), ({"place": {"x": 1}}, {"place": Point(1.0)})],
        [],
    ),
    (
        list[Box[int]],
        {"type": "array", "items": {"$ref": "#/$defs/Box_int"}},
        {
            "Box_int": {
                "type": "object",
                "properties": {"it": INT, "more": {"type": "array", "items": INT, "default": []}},
                "required": ["it"],
                "additionalProperties": False,
            }
        },
        [([{"it": 1, "more": [2]}], [Box(1, [2])])],
        [([{"it": "a"}], 'x[0].it: expected integer, got "a"')],
    ),
    (
        Annotated[Point, "the corner"],
        {"$ref": "#/$defs/Point", "description": "the corner"},
        {"Point": POINT},
        [({"x": 1}, Point(1.0))],
        [],
    ),
    (
        Struct,
        {"$ref": "#/$defs/Struct"},
        {
            "Struct": {"$ref": "#/$defs/Struct.Struct"},
            "Struct.Struct": {"title": "Struct", "type": "object", "properties": {"a": INT}, "required": ["a"]},
        },
        [({"a": 1}, Struct(1))],
        [],
    ),
]
CASES = [(kind, schema, {}, values, faults) for kind, schema, values, faults in TYPES] + NAMED


Json = Union[str, None, typing.List["Json"]]  # noqa: UP006


def nested(x: Json): ...


def taking(kind: Any) -> Any:
    """A function with one parameter x of this type."""

    def function(x):
        return x

    function.__annotations__["x"] = kind
    return function


def outcome(function: Any, arguments: Any) -> Any:
    """What the function gets for x, or the complaint."""
    signature = function_schema(function)
    if complaint := check(signature.schema, arguments):
        return complaint
    try:
        _, bound = signature.bind(arguments)
    except Mismatch as exc:
        return str(exc)
    return bound["x"]


@pytest.mark.parametrize(("kind", "schema", "defs", "values", "faults"), CASES, ids=lambda item: str(item)[:40])
def test_a_type_has_its_schema_its_values_and_its_complaints(kind, schema, defs, values, faults):
    function = taking(kind)
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}
    actual = function_schema(function).schema
    assert actual == (whole | {"$defs": defs} if defs else whole)
    jsonschema.Draft202012Validator.check_schema(actual)
    for plain, value in values:
        found = outcome(function, {"x": plain})
        assert (found, type(found)) == (value, type(value))
    for plain, complaint in faults:
        assert outcome(function, {"x": plain}) == complaint


def test_a_root_stands_by_itself_without_a_reference():
    assert type_schema(Point) == POINT
    assert type_schema(Node) == NODE | {"$defs": {"Node": NODE}}
    assert type_schema(list[Point]) == {"type": "array", "items": {"$ref": "#/$defs/Point"}, "$defs": {"Point": POINT}}


def test_convert_gives_the_value_or_the_path_to_what_is_wrong():
    assert convert([{"x": 1, "y": None}], list[Point]) == [Point(1.0)]
    with pytest.raises(ValueError) as caught:
        convert([{"x": 1}, {"x": "a"}], list[Point])
    assert str(caught.value) == '[1].x: expected a number, got "a"'


def test_an_alias_may_contain_itself():
    signature = function_schema(nested)
    assert list(signature.schema["$defs"]) == ["Json"]
    assert check(signature.schema, {"x": ["a", [None, ["b"]]]}) is None
    assert check(signature.schema, {"x": ["a", [None, [5]]]}) == "x[1][1][0]: expected string or null or array, got 5"
    assert signature.bind({"x": ["a", [None, ["b"]]]}) == ((), {"x": ["a", [None, ["b"]]]})


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (int, "1", 'value: expected an integer, got "1"'),
        (float, True, "value: expected a number, got true"),
        (float, 10**400, "value: expected a number, got 1" + "0" * 76 + "..."),
        (str, 1, "value: expected a text, got 1"),
        (date, 1, 'value: expected a date such as "2025-01-31", got 1'),
        (Decimal, None, "value: expected a decimal number, got null"),
        (list[int], "ab", 'value: expected an array, got "ab"'),
        (tuple[int, str], [1], "value: expected an array of 2 items, got [1]"),
        (dict, [], "value: expected an object, got []"),
        (Point, [], "value: expected an object, got []"),
        (Point, {}, "value: expected an object with 'x', got {}"),
        (Point, {"x": 1, "z": 1}, 'value: expected none but the keys x, y, got "z"'),
        (Color, "q", 'value: expected one of "r", "b", got "q"'),
        (Point | Pair, "q", 'value: expected an object, got "q"'),
        (Optional[list[Point]], [{"x": "a"}], '[0].x: expected a number, got "a"'),
        (int | None, "a", 'value: expected an integer or null, got "a"'),
        (Struct, {"a": "b"}, 'value: expected a valid Struct (Expected `int`, got `str` - at `$.a`), got {"a": "b"}'),
    ],
)
def test_convert_is_as_strict_as_the_schema(kind, value, text):
    with pytest.raises(Mismatch) as caught:
        convert(value, kind)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (complex, "type complex has no form in JSON"),
        (abc.Callable[[int], int], "type collections.abc.Callable[[int], int] has no form in JSON"),
        (Literal[b"a"], "choice b'a' has no form in JSON: its value must be a text, a number, a bool or None"),
        (Annotated[str, SimpleNamespace(pattern="(")], "pattern '(' is no regular expression"),
        (list["Nowhere"], "which cannot be resolved: name 'Nowhere' is not defined"),  # noqa: F821
    ],
)
def test_a_type_without_a_form_in_json_is_refused(kind, text):
    with pytest.raises(ConfigError) as caught:
        type_schema(kind)
    assert text in str(caught.value)


def test_notes_of_other_libraries_are_understood():
    assert type_schema(Annotated[str, pydantic.Field(description="d", min_length=1), Color, object()]) == STR | {
        "minLength": 1,
        "description": "d",
    }
    assert type_schema(Annotated[int, extensions.Doc("d")]) == INT | {"description": "d"}


def test_two_classes_of_one_name_get_two_definitions():
    def made(kind):
        @dataclass
        class Same:
            a: kind

        return Same

    assert list(function_schema(taking(tuple[made(int), made(str)])).schema["$defs"]) == ["Same", "Same2"]


def test_a_class_that_refuses_its_fields_is_a_mismatch():
    @dataclass
    class Even:
        n: int

        def __post_init__(self):
            if self.n % 2:
                raise ValueError("odd")

    assert outcome(taking(Even), {"x": {"n": 1}}) == 'x: expected a valid Even (ValueError: odd), got {"n": 1}'


def test_init_variables_are_fields_and_others_are_not():
    @dataclass
    class Account:
        name: str
        secret: InitVar[int] = 3
        total: typing.ClassVar[int] = 1
        made: int = field(default=0, init=False)

        def __post_init__(self, secret):
            self.made = secret

    assert list(type_schema(Account)["properties"]) == ["name", "secret"]
    assert convert({"name": "a", "secret": 9}, Account).made == 9


def test_a_typed_dict_says_which_keys_are_required():
    class Song(extensions.TypedDict, total=False):
        title: "extensions.Required[str]"
        year: "extensions.NotRequired[int]"

    Song.__annotations__.update(title=extensions.Required[str], year=extensions.NotRequired[int])
    assert type_schema(Song) == {
        "type": "object",
        "properties": {"title": STR, "year": INT},
        "required": ["title"],
        "additionalProperties": False,
    }


def test_a_pydantic_model_knows_its_own_schema():
    inner = pydantic.create_model("Inner", when=(date, ...))
    outer = pydantic.create_model("Outer", inner=(inner, ...))
    schema = function_schema(taking(outer)).schema
    assert (schema["properties"], list(schema["$defs"])) == ({"x": {"$ref": "#/$defs/Outer"}}, ["Outer", "Outer.Inner"])
    assert check(schema, {"x": {"inner": {"when": "2025-01-31"}}}) is None
    assert outcome(taking(outer), {"x": {"inner": {"when": "2025-01-31"}}}) == outer(
        inner=inner(when=date(2025, 1, 31))
    )
    assert outcome(taking(outer), {"x": {"inner": {}}}) == 'x.inner: missing "when"'
    assert outcome(taking(outer), {"x": {"inner": {"when": "x"}}}).startswith("x.inner.when: expected a valid Outer (")
    assert "$ref" not in type_schema(outer)


# Functions


def test_defaults_are_shown_where_json_can_say_them():
    class Odd:
        def __eq__(self, other):
            raise TypeError("an array has no truth")

        __hash__ = None

    def function(
        a=1,
        b: Color = Color.RED,
        c: list[int] = [],  # noqa: B006
        d: date = date(2025, 1, 31),
        e: Any = Odd(),  # noqa: B008
        f: float = float("nan"),
        g: int = None,  # noqa: RUF013
        h: tuple = (1, 2),
        i: Optional[Point] = Point(1),  # noqa: B008
    ):
        """Does nothing."""

    properties = function_schema(function).schema["properties"]
    assert {name: schema.get("default", "none") for name, schema in properties.items()} == {
        "a": 1,
        "b": "r",
        "c": [],
        "d": "2025-01-31",
        "e": "none",
        "f": "none",
        "g": "none",
        "h": [1, 2],
        "i": {"x": 1, "y": 0},
    }
    assert function_schema(function).schema["required"] == []


def test_a_method_has_no_self_and_takes_positional_arguments_by_name():
    """Case tool-03."""

    class Robot:
        def move(
            self,
            a: int,
            /,
            b: Optional[str] = None,
            *,
            c: Literal["x", "y"] = "x",
            d: Color = Color.RED,
            e: list[int] = [],  # noqa: B006
        ):
            return a, b, c, d, e

    robot = Robot()
    signature = function_schema(robot.move)
    assert signature.schema == {
        "type": "object",
        "properties": {
            "a": INT,
            "b": {"anyOf": [STR, NULL], "default": None},
            "c": {"type": "string", "enum": ["x", "y"], "default": "x"},
            "d": {"type": "string", "enum": ["r", "b"], "default": "r"},
            "e": {"type": "array", "items": INT, "default": []},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    args, kwargs = signature.bind({"a": 1, "d": "b"})
    assert robot.move(*args, **kwargs) == (1, None, "x", Color.BLUE, [])
    assert function_schema(Robot.move).schema == signature.schema
    assert (takes_self(Robot.move), takes_self(robot.move)) == (True, False)


def test_a_positional_argument_left_out_is_its_default():
    def function(a: int = 1, b: int = 2, /):
        return a, b

    args, kwargs = function_schema(function).bind({"b": 5})
    assert function(*args, **kwargs) == (1, 5)


@pytest.mark.parametrize(
    "text",
    [
        """Finds a city.

        The nearest one.

        Args:
            city: its name,
                as written there
            days (int): how many
        """,
        """Finds a city.

        The nearest one.

        Parameters
        ----------
        city : str
            its name, as written there
        days
            how many
        """,
        """Finds a city.

        The nearest one.

        :param city: its name, as written there
        :param int days: how many
        """,
    ],
    ids=["google", "numpy", "rest"],
)
def test_descriptions_come_from_the_docstring(text):
    def function(city: str, days: int, more: Annotated[int, "annotated"] = 0):
        pass

    function.__doc__ = text
    signature = function_schema(function)
    texts = {name: schema.get("description") for name, schema in signature.schema["properties"].items()}
    assert texts == {"city": "its name, as written there", "days": "how many", "more": "annotated"}
    assert " ".join(signature.description.split()) == "Finds a city. The nearest one."


def test_partials_classes_and_callable_objects_are_functions_too():
    class Adder:
        def __call__(self, a: int, b: int = 0):
            return a + b

    def add(a: int, b: int):
        return a + b

    @functools.wraps(add)
    def wrapped(*args, **kwargs):
        return add(*args, **kwargs)

    assert function_schema(Adder()).schema["required"] == ["a"]
    assert function_schema(wrapped).schema["required"] == ["a", "b"]
    assert list(function_schema(functools.partial(add, b=1)).schema["properties"]) == ["a"]
    assert function_schema(Point).schema["required"] == ["x"]


def variadic(*rest: int): ...
def keyed(**more: int): ...
def unresolvable(city: "Nowhere"): ...  # noqa: F821
def unsayable(z: complex): ...
def deep(z: list[dict[str, complex]]): ...
async def waiting(): ...


@dataclass
class Lost:
    a: "Nowhere"  # noqa: F821


def lost(z: Lost): ...


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            variadic,
            "parameter '*rest' of variadic: a model must be told each argument by name; use a list or a dict instead",
        ),
        (
            keyed,
            "parameter '**more' of keyed: a model must be told each argument by name; use a list or a dict instead",
        ),
        (
            unresolvable,
            "parameter 'city' of unresolvable is annotated 'Nowhere', which cannot be resolved: "
            "name 'Nowhere' is not defined",
        ),
        (unsayable, "parameter 'z' of unsayable: type complex has no form in JSON"),
        (deep, "parameter 'z' of deep: type complex has no form in JSON"),
        (
            lost,
            "parameter 'z' of lost: field 'a' of Lost is annotated 'Nowhere', which cannot be resolved: "
            "name 'Nowhere' is not defined",
        ),
        (waiting, "function waiting is async: openagent is synchronous, give it a plain function"),
        (min, "the signature of min cannot be read: no signature found for builtin <built-in function min>"),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_a_function_that_no_schema_can_tell_is_refused_by_name(function, text):
    with pytest.raises(ConfigError) as caught:
        function_schema(function)
    assert str(caught.value) == text


def test_annotations_kept_as_texts_see_the_names_around_the_function():
    class Local(enum.Enum):
        A = "a"

    def function(x: "Local | None" = Local.A):
        return Local

    assert function_schema(function).schema["properties"]["x"]["default"] == "a"


# Validation


def test_at_most_three_complaints_are_told_and_long_values_are_cut():
    schema = {"type": "object", "properties": dict.fromkeys("abcd", INT)}
    text = check(schema, dict.fromkeys("abcd", "y" * 1000))
    shown = '"' + "y" * 76 + "..."
    assert text == "; ".join(f"{name}: expected integer, got {shown}" for name in "abc")


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"required": ["a", "b"]}, {}, 'missing "a", "b"'),
        ({"additionalProperties": False}, {"a": 1}, 'unknown "a", known are none'),
        ({"const": 1}, 2, "expected const 1, got 2"),
        ({"properties": {"a": False}}, {"a": 1}, "expected nothing here, got 1"),
        ({"type": ["integer", "null"]}, "a", 'expected integer or null, got "a"'),
        ({"oneOf": [INT, INT]}, 1, "expected oneOf " + '[{"type": "integer"}, {"type": "integer"}], got 1'),
        ({"$ref": "http://127.0.0.1:9/x"}, 1, "the schema cannot be applied (_WrappedReferencingError)"),
        ({"pattern": "("}, "a", "the schema cannot be applied (PatternError)"),
        ({"$ref": "#"}, 1, "the value is nested too deeply"),
    ],
)
def test_a_complaint_is_a_text_whatever_the_schema(schema, value, text):
    assert check(schema, value) in (text, text.replace("PatternError", "error"))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (
            {"properties": {"a": {"exclusiveMinimum": True, "minimum": 0}}},
            "is invalid at ['properties']['a']['exclusiveMinimum']: True is not of type 'number'",
        ),
        (
            {"properties": {"a": {"type": "dict"}}},
            "is invalid at ['properties']['a']['type']: 'dict' is not valid under any of the given schemas",
        ),
        (
            {"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}},
            "cannot be used: $ref 'http://127.0.0.1:9/x' is not in the schema, and nothing is fetched",
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/b"}}},
            "cannot be used: $ref '#/$defs/b' is not in the schema, and nothing is fetched",
        ),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "cannot be used: its $ref lead in a circle",
        ),
        (
            {"$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/a"}]}}},
            "cannot be used: its $ref lead in a circle",
        ),
        ({"properties": {"a": {"pattern": "("}}}, "is invalid at ['properties']['a']['pattern']: '(' is not a 'regex'"),
        ({"properties": []}, "is invalid at ['properties']: [] is not of type 'object'"),
    ],
)
def test_a_schema_that_cannot_be_applied_is_refused_with_the_tools_name(schema, text):
    """Case tool-05."""
    with pytest.raises(ConfigError) as caught:
        check_schema(schema, "search")
    assert str(caught.value) == f"the input schema of tool 'search' {text}"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": True, "y": False}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": INT}},
        {"$schema": "http://example.org/unheard-of", "properties": {"a": INT}},
        {"properties": {"$ref": STR, "d": {"default": {"$ref": "http://127.0.0.1:9/"}}}},
        {"$id": "http://example.org/s", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": INT}},
        {"properties": {"next": {"$ref": "#"}}},
        NODE | {"$defs": {"Node": NODE}},
    ],
)
def test_a_schema_that_can_be_applied_is_kept_as_it_is(schema):
    """Case tool-05: boolean schemas, an unknown ``$schema`` and recursion are fine."""
    assert check_schema(schema, "search") is schema
    assert check(schema, {}) in (None, 'missing "value"')


def test_a_value_nested_too_deeply_is_a_complaint():
    value: Any = {"value": 1}
    for _ in range(100_000):
        value = {"value": 1, "next": value}
    assert check(NODE | {"$defs": {"Node": NODE}}, value) == "the value is nested too deeply"
    assert without_nulls(NODE | {"$defs": {"Node": NODE}}, value) is value


@pytest.mark.parametrize("value", [{"a": 1}, {"a": "x"}])
def test_ctrl_c_comes_out_of_a_check_at_whatever_call_it_hits(value):
    """Promise 4: a part of referencing is written in Rust and loses what is raised beneath it."""
    schema = {"type": "object", "properties": {"a": {"anyOf": [INT, NULL]}}}
    check(schema, value)  # what is imported and cached on first use
    for count in itertools.count(1):
        left = count

        def stop(frame, event, argument):
            nonlocal left
            if event != "call" or frame.f_code.co_flags & inspect.CO_GENERATOR:  # of one thrown away nobody hears
                return
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        sys.setprofile(stop)
        try:
            check(schema, value)
        except KeyboardInterrupt:
            continue
        finally:
            sys.setprofile(None)
        assert left > 0  # it was over before
        break
    assert count > 20


def test_a_null_for_an_optional_property_is_not_given():
    """Case arg-12."""

    def search(q: str, limit: int = 10, tag: Optional[str] = None, at: Optional[Point] = None):
        pass

    schema = function_schema(search).schema
    given = {"q": "x", "limit": None, "tag": None, "at": {"x": 1, "y": None}}
    assert without_nulls(schema, given) == {"q": "x", "tag": None, "at": {"x": 1}}
    assert check(schema, without_nulls(schema, {"q": None})) == "q: expected string, got null"
    assert check(schema, without_nulls(schema, {"q": "x", "other": None})) == (
        'unknown "other", known are "q", "limit", "tag", "at"'
    )


# The short form


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ({}, {"type": "object", "properties": {}, "required": []}),
        (
            {"a": "str", "b": "i32", "c": "f64", "d": "bool", "e": "vec", "f": "map", "g": "Whatever"},
            {
                "type": "object",
                "properties": {
                    "a": STR,
                    "b": INT,
                    "c": {"type": "number"},
                    "d": {"type": "boolean"},
                    "e": {"type": "array", "items": {}},
                    "f": {"type": "object"},
                    "g": STR,
                },
                "required": ["a", "b", "c", "d", "e", "f", "g"],
            },
        ),
        (
            {
                "a": {"type": "integer", "optional": True},
                "b": {"type": "integer", "default": 1},
                "c": {"type": "integer", "default": 1, "required": True},
                "d": {"type": "integer", "required": False},
                "e": {"type": "integer"},
                "f": 5,
            },
            {
                "type": "object",
                "properties": {"a": INT, "b": INT | {"default": 1}, "c": INT | {"default": 1}, "d": INT, "e": INT},
                "required": ["c", "e"],
            },
        ),
        (
            {"place": {"type": "object", "properties": {"x": INT}, "required": ["x"]}},
            {
                "type": "object",
                "properties": {"place": {"type": "object", "properties": {"x": INT}, "required": ["x"]}},
                "required": ["place"],
            },
        ),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": "object", "properties": {"a": INT}}, {"type": "object", "properties": {"a": INT}}),
        (
            {"properties": {"a": INT}, "required": ["a"]},
            {"type": "object", "properties": {"a": INT}, "required": ["a"]},
        ),
        ({"$ref": "#/$defs/a"}, {"type": "object", "properties": {}, "$ref": "#/$defs/a"}),
        (
            {"type": "string", "city": "string"},
            {"type": "object", "properties": {"type": STR, "city": STR}, "required": ["type", "city"]},
        ),
    ],
)
def test_the_short_form_becomes_a_schema(short, full):
    """R-140 to R-144, without the traps."""
    assert expand(short, "forecast") == full


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ([], "the input schema of tool 'f' must be a dict, not []"),
        (True, "the input schema of tool 'f' must be a dict, not True"),
        ({"type": "dict"}, "the input schema of tool 'f' has type 'dict': it must be 'object'"),
        ({"type": "array", "items": {}}, "the input schema of tool 'f' has type 'array': it must be 'object'"),
    ],
)
def test_a_schema_whose_root_is_no_object_is_refused(schema, text):
    with pytest.raises(ConfigError) as caught:
        expand(schema, "f")
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"a": {"pattern": "^(a|a)*$"}}}, {"a": "a" * 60 + "!"}),
        ({"patternProperties": {"^(a|a)*$": {}}}, {"a" * 60 + "!": 1}),
        ({"patternProperties": {"^(a|a)*$": {}}, "additionalProperties": False}, {"a" * 60 + "!": 1}),
        ({"items": {"pattern": "^(a|aa)+$"}}, ["a" * 60 + "!"] * 1000),
    ],
)
def test_an_expression_that_never_ends_is_a_complaint(schema, value):
    assert check(schema, value) == "a regular expression of the schema takes too long on this value"


@pytest.mark.parametrize(
    ("schema", "value", "complaint"),
    [
        ({"pattern": "^a+$"}, "aab", 'expected pattern "^a+$", got "aab"'),
        ({"pattern": "^a+$"}, 7, None),
        ({"pattern": r"^\p{L}+$"}, "Grüße", None),  # which JSON Schema has, and Python's re has not
        (
            {"patternProperties": {"^n_": {"type": "integer"}}},
            {"n_1": 1, "n_2": "x", "m": "y"},
            'n_2: expected integer, got "x"',
        ),
        ({"patternProperties": {"^n_": {}}, "additionalProperties": False}, {"n_1": 1}, None),
        ({"patternProperties": {"^n_": {}}, "additionalProperties": False}, {"m": 1}, 'unknown "m", known are none'),
        (
            {"patternProperties": {"^n_": {}}, "additionalProperties": {"type": "null"}},
            {"m": 1},
            "m: expected null, got 1",
        ),
    ],
)
def test_expressions_are_applied_as_json_schema_says(schema, value, complaint):
    assert check(schema, value) == complaint


def test_an_expression_that_cannot_be_stopped_is_refused():
    schema = {"type": "object", "patternProperties": {"^(a|a)*$": {}}, "unevaluatedProperties": False}
    with pytest.raises(ConfigError) as caught:
        check_schema(schema, "f")
    assert str(caught.value) == (
        "the input schema of tool 'f' cannot be used: unevaluatedProperties beside patternProperties: "
        "use additionalProperties"
    )
