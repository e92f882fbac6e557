"""What a tool is, what may stand for one, and what becomes of a call."""

import copy
import datetime
import decimal
import enum
import itertools
import logging
import math
import pickle
import re
import uuid
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy
import pytest

from openagent.errors import ConfigError, ToolError
from openagent.messages import ToolResultBlock, ToolUseBlock
from openagent.readable import LIMIT, readable
from openagent.running import failure, problem, run
from openagent.tools import Tool, ToolBuilder, as_tool, by_name, tool

NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number", "default": 2}},
    "required": ["a"],
    "additionalProperties": False,
}


@tool
def add(a: float, b: float = 2) -> float:
    """Add two numbers.

    The sum is exact.
    """
    return a + b


class Robot:
    def __init__(self, name: str):
        self.name = name

    @tool
    def greet(self, whom: str) -> str:
        """Greet someone."""
        return f"{self.name} greets {whom}"

    def leave(self, whom: str) -> str:
        """Leave someone."""
        return f"{self.name} leaves {whom}"


def call(name: str = "add", **arguments) -> ToolUseBlock:
    return ToolUseBlock("call-1", name, arguments)


def told(text: str, name: str = "add") -> ToolResultBlock:
    return ToolResultBlock("call-1", {"error": text, "tool": name, "id": "call-1"}, is_error=True)


def content(value):
    """What the model reads of a tool's return value."""
    result = run(Tool("give", handler=lambda _: value), call("give"))
    assert not result.is_error
    return result.content


# Making a tool


def test_a_function_under_tool_is_a_tool_and_still_a_function():
    assert (add.name, add.description, add.input_schema) == ("add", "Add two numbers.\n\nThe sum is exact.", NUMBERS)
    assert (add(1), add(1, b=3), add.__name__, add.__wrapped__(1)) == (3, 4, "add", 3)
    assert add.__doc__ == add.__wrapped__.__doc__
    assert add.execute({"a": 1}) == 3.0


def test_name_and_description_can_be_given():
    made = tool(name="plus", description="Sum.")(add)
    assert (made.name, made.description, made(1)) == ("plus", "Sum.", 3)
    assert tool(name="echo")(lambda a: a).name == "echo"


def test_a_tool_of_parts_gets_one_dict():
    made = Tool(
        "echo", "Say it again.", {"type": "object", "properties": {"text": {"type": "string"}}}, lambda given: given
    )
    assert made.execute({"text": "a"}) == {"text": "a"}
    assert (made(text="a"), made({"text": "a"})) == ({"text": "a"}, {"text": "a"})


def test_a_tools_schema_is_its_own():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    made = Tool("echo", "", schema)
    schema["properties"]["a"]["type"] = "integer"
    assert made.input_schema == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_the_repr_of_a_tool_omits_the_handler():
    assert repr(Tool("a", "b", {}, print)) == (
        "Tool(name='a', description='b', "
        "input_schema={'type': 'object', 'properties': {}, 'required': []}, vendor=None)"
    )


def test_the_builder_takes_parameters_one_by_one():
    """R-140 to R-146."""
    made = tool("forecast", "The weather.").param("city", "string").param("days", "int").build(lambda given: given)
    assert made.to_openai_format() == {
        "type": "function",
        "function": {
            "name": "forecast",
            "description": "The weather.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city", "days"],
            },
        },
    }
    assert run(made, call("forecast", city="Oslo", days=3)).content == {"city": "Oslo", "days": 3}


def test_a_parameter_after_a_full_schema_joins_it_and_a_schema_after_parameters_replaces_them():
    """R-145, without its trap."""
    full = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    joined = tool("t", "d").schema(full).param("b", "list").build()
    assert joined.input_schema == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {}}},
        "required": ["a", "b"],
    }
    assert tool("t", "d").param("b", "list").schema(full).build().input_schema == full


def test_a_builder_is_no_tool_yet():
    assert isinstance(tool("a", "b"), ToolBuilder)
    with pytest.raises(ConfigError, match=r"tool 'a' is not finished: call \.build\(handler\)"):
        as_tool(tool("a", "b"))


@pytest.mark.parametrize("name", ["", "a b", "é", "a.b", "x" * 65, None, 1])
def test_a_name_that_no_server_takes_is_refused(name):
    with pytest.raises(ConfigError, match=re.escape(f"tool name {name!r} must be 1 to 64 of the characters")):
        Tool(name)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: tool(lambda a: a), "has no name of its own: give the tool one with name="),
        (lambda: tool(5), "5 is no function and cannot become a tool"),
        (lambda: Tool("a", None), "the description of tool 'a' must be a text, not None"),
        (lambda: Tool("a", "b", {}, 5), "the handler of tool 'a' cannot be called: 5"),
        (lambda: Tool("a", "b", {"type": "dict"}), "the input schema of tool 'a' has type 'dict': it must be 'object'"),
        (lambda: Tool("a", "b", []), "the input schema of tool 'a' must be a dict, not []"),
        (
            lambda: Tool("a", "b", {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/"}}}),
            "the input schema of tool 'a' cannot be used: $ref 'http://127.0.0.1:9/' is not in the schema, "
            "and nothing is fetched",
        ),
        (lambda: as_tool("add"), "'add' is no tool: give a function, a Tool or a dict"),
        (lambda: as_tool({"name": "a", "handle": 1}), "has unknown keys: handle"),
        (lambda: as_tool({"description": "a"}), "has no 'name'"),
        (lambda: as_tool({"type": "web_search"}), "looks like a vendor's own: wrap it in Tool.hosted({...})"),
        (lambda: Tool.hosted({}), "hosted tool {} must be a dict with a 'type'"),
        (lambda: by_name([add, {"name": "add"}]), "two tools are named 'add': names must differ"),
    ],
)
def test_what_is_no_tool_is_refused_with_its_reason(make, text):
    """Case tool-05, among others."""
    with pytest.raises(ConfigError) as caught:
        make()
    assert text in str(caught.value)


def test_dicts_and_functions_may_stand_for_tools():
    def echo(given):
        return given

    schema = {"type": "object", "properties": {"x": True}}
    expected = Tool("echo", "Again.", schema, echo)
    plain = {"name": "echo", "description": "Again."}
    assert as_tool({**plain, "input_schema": schema, "handler": echo}) == expected
    assert as_tool({**plain, "parameters": schema, "handler": echo}) == expected
    assert as_tool({"type": "function", "function": {**plain, "parameters": schema, "strict": False}}) == Tool(
        "echo", "Again.", schema
    )
    assert as_tool({"type": "function", **plain}) == Tool("echo", "Again.")
    assert (as_tool(echo).name, as_tool(echo)(1)) == ("echo", 1)
    assert as_tool(add) is add


def test_tools_are_found_by_name_in_their_order():
    robot = Robot("R2")
    assert list(by_name([robot.leave, add, robot.greet])) == ["leave", "add", "greet"]


def test_a_hosted_tool_goes_to_the_wire_as_it_is():
    vendor = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
    hosted = Tool.hosted(vendor)
    assert (hosted.name, hosted.vendor, hosted.to_openai_format()) == ("web_search", vendor, vendor)
    assert Tool.hosted({"type": "web_search"}).name == "web_search"


# Methods


def test_a_tool_in_a_class_belongs_to_its_object():
    """Case tool-03."""
    robot = Robot("R2")
    expected = {
        "type": "object",
        "properties": {"whom": {"type": "string"}},
        "required": ["whom"],
        "additionalProperties": False,
    }
    assert (robot.greet.name, robot.greet.description, robot.greet.input_schema) == (
        "greet",
        "Greet someone.",
        expected,
    )
    assert robot.greet("you") == Robot.greet(robot, "you") == "R2 greets you"
    assert run(robot.greet, call("greet", whom="you")).content == "R2 greets you"
    assert run(tool(robot.leave), call("leave", whom="you")).content == "R2 leaves you"


def test_a_class_method_belongs_to_its_class():
    class Counter:
        @classmethod
        @tool
        def count(cls, by: int):
            return f"{cls.__name__} {by}"

    assert run(as_tool(Counter.count), call("count", by=1)).content == "Counter 1"
    assert Counter.count(2) == "Counter 2"


def test_a_function_that_takes_no_self_is_not_bound_by_a_class():
    class Holder:
        tool = add

    assert Holder().tool is add


# Copies


def test_a_tool_of_a_module_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(add)) is add
    assert pickle.loads(pickle.dumps(Robot.greet)) is Robot.greet


def test_other_tools_are_pickled_with_what_they_are_made_of():
    echo = Tool("echo", "Again.", {"x": "string"}, repr)
    assert pickle.loads(pickle.dumps(echo)) == echo
    cos = pickle.loads(pickle.dumps(tool(name="cosine", description="Of an angle.")(math.cos)))
    assert (cos.name, cos.description, run(cos, call("cosine", x=0)).content) == ("cosine", "Of an angle.", 1.0)
    hosted = Tool.hosted({"type": "web_search"})
    assert pickle.loads(pickle.dumps(hosted)) == hosted
    bound = pickle.loads(pickle.dumps(Robot("R2").greet))
    assert run(bound, call("greet", whom="you")).content == "R2 greets you"


def test_a_tool_of_a_local_function_cannot_be_pickled():
    @tool
    def local(a: int):
        pass

    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(local)


def test_a_deep_copy_of_a_tool_is_the_tool():
    assert copy.deepcopy([add]) == [add]
    assert copy.deepcopy(add) is add
    assert {add: 1}[copy.copy(add)] == 1


# Running a call


def test_a_call_gives_what_the_tool_returns():
    assert run(add, call(a=1, b=2.5)) == ToolResultBlock("call-1", 3.5)
    assert run(add, call(a=1, b=None)) == ToolResultBlock("call-1", 3.0)


def test_an_unknown_name_is_told_with_the_names_there_are_the_closest_first():
    """Case tc-20."""
    known = ["add", "get_time", "get_weather"]
    text = "Tool 'get_wether' not found. Available tools: get_weather, get_time, add"
    assert run(None, call("get_wether"), known) == told(text, "get_wether")
    assert problem(None, call("x")) == "Tool 'x' not found. There are no tools."


@pytest.mark.parametrize("raw", ['{"a": [1, 2', "{'a': 1}", "[1]", '{"a": 1} {"a": 2}'])
def test_arguments_that_cannot_be_read_are_told_and_nothing_is_run(raw):
    """Cases arg-06, arg-08, arg-10, arg-14."""
    block = ToolUseBlock("call-1", "add", {}, raw_arguments=raw, error="no JSON object")
    assert run(add, block) == told(f"the arguments of tool 'add' cannot be used: no JSON object. They were: {raw}")


def test_unreadable_arguments_are_quoted_up_to_200_characters():
    block = ToolUseBlock("call-1", "add", {}, raw_arguments="x" * 1000, error="no JSON object")
    assert problem(add, block) == (
        "the arguments of tool 'add' cannot be used: no JSON object. They were: " + "x" * 200
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, 'invalid arguments: missing "a"'),
        ({"a": None}, "invalid arguments: a: expected number, got null"),
        ({"a": "1"}, 'invalid arguments: a: expected number, got "1"'),
        ({"a": 1, "c": 1}, 'invalid arguments: unknown "c", known are "a", "b"'),
    ],
)
def test_bad_arguments_are_told_to_the_model(arguments, text):
    """Case arg-12: a null for a required parameter is an error."""
    assert run(add, call(**arguments)) == told(text)


def test_an_argument_of_the_wrong_form_is_told_to_the_model():
    @tool
    def age(born: datetime.date):
        raise AssertionError("never run")

    assert run(age, call("age", born="long ago")) == told(
        'invalid arguments: born: expected a date such as "2025-01-31", got "long ago"', "age"
    )


def test_no_arguments_are_an_empty_dict():
    """Cases arg-01, arg-02, whose arguments arrive here as {}."""
    assert run(Tool("now", handler=lambda given: given), call("now")).content == {}


def raising(error):
    def handler(given):
        raise error

    return Tool("add", handler=handler)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad \ud83d"), "ValueError: bad \ufffd"),
        (KeyError("a"), "KeyError: 'a'"),
        (ZeroDivisionError(), "ZeroDivisionError: "),
        (ToolError("no such city"), "no such city"),
        (Mute(), "Mute: <a Mute without a text>"),
        (RecursionError("deep"), "RecursionError: deep"),
    ],
)
def test_an_exception_of_the_tool_is_told_to_the_model(error, text):
    assert run(raising(error), call()) == told(text)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_what_is_meant_to_stop_the_program_stops_it(error):
    with pytest.raises(type(error)):
        run(raising(error), call())


def test_the_log_of_a_failure_has_its_place_and_no_arguments(caplog):
    @tool
    def login(secret: str):
        raise ValueError(f"wrong: {secret}")

    with caplog.at_level(logging.DEBUG, "openagent.tools"):
        run(login, call("login", secret="hunter2"))
    assert caplog.text.count("raised ValueError") == 1
    assert "test_tools.py" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_tool_without_a_handler_says_so():
    silent = Tool("silent")
    assert run(silent, call("silent")) == told("tool 'silent' cannot be run here: it has no handler", "silent")
    with pytest.raises(ToolError, match="tool 'silent' has no handler here"):
        silent()


def test_a_coroutine_is_told_as_a_failure():
    async def later():
        pass

    assert run(Tool("add", handler=lambda _: later()), call()) == told(
        "the tool returned a coroutine, and openagent awaits nothing"
    )


def test_a_failure_has_the_seeds_shape():
    """R-50.5"""
    assert failure(call(), "cancelled") == ToolResultBlock(
        "call-1", {"error": "cancelled", "tool": "add", "id": "call-1"}, is_error=True
    )


# Results


class Color(enum.Enum):
    RED = "r"


@dataclass
class Point:
    x: int
    y: object = None


class Pair(NamedTuple):
    left: int
    right: object


class Broken:
    def __str__(self):
        raise RuntimeError("no words")


class Scalar:
    """A scalar as NumPy has them."""

    shape = ()

    def item(self):
        return 3


class Model:
    """A model as pydantic has them."""

    def model_dump(self):
        return {"a": {1}}


class Closed(dict):
    """A dict that refuses to be read."""

    def items(self):
        raise OSError("closed")


class Frame:
    """A table as pandas has them: iterable, and with a text of its own."""

    shape = (1, 1)

    def __iter__(self):
        raise AssertionError("never read")

    def __str__(self):
        return "   a\n0  1"


circle: dict = {"a": 1}
circle["self"] = circle
shared = [1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (1, 1),
        (2**20_000, hex(2**20_000)),
        (1.5, 1.5),
        ("", ""),
        ("é", "é"),
        ("\udcb0 x", "\ufffd x"),
        ("\ud83d\ude00", "😀"),
        (float("nan"), "NaN"),
        (float("inf"), "inf"),
        ([1, (2, "a")], [1, [2, "a"]]),
        ({2, 1}, [1, 2]),
        (frozenset({"a"}), ["a"]),
        ({1: "a", "b": None, (1, 2): Color.RED, Color.RED: 1}, {"1": "a", "b": None, "(1, 2)": "r", "r": 1}),
        (b"text", "text"),
        (b"\xff", "<1 bytes: /w==>"),
        (bytearray(b"\xff\xfe"), "<2 bytes: //4=>"),
        (datetime.date(2025, 1, 31), "2025-01-31"),
        (datetime.datetime(2025, 1, 31, 10, 11), "2025-01-31T10:11:00"),
        (datetime.time(10, 11), "10:11:00"),
        (datetime.timedelta(hours=1), "1:00:00"),
        (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("a/b"), "a/b"),
        (Color.RED, "r"),
        (Point(1, [Point(2)]), {"x": 1, "y": [{"x": 2, "y": None}]}),
        (Pair(1, {2}), {"left": 1, "right": [2]}),
        (circle, {"a": 1, "self": "<the same dict again>"}),
        ([shared, shared], [[1], [1]]),
        (Broken(), "<a Broken without a text>"),
        ([Broken()], ["<a Broken without a text>"]),
        (Scalar(), 3),
        (Model(), {"a": [1]}),
        (Closed(a=1), "{'a': 1}"),
        ({None}, [None]),
        (Frame(), "   a\n0  1"),
        (range(3), "range(0, 3)"),
        (int, "<class 'int'>"),
        ((letter for letter in "ab"), ["a", "b"]),
        ({"items": iter("ab")}, {"items": ["a", "b"]}),
        (itertools.count(), [*range(LIMIT), f"(cut after {LIMIT} items)"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_of_any_kind_is_json_that_the_model_can_read(value, expected):
    """Cases tool-01 and tool-07."""
    assert content(value) == expected


def test_a_generator_that_fails_is_a_tool_that_fails():
    def handler(_):
        yield 1
        raise ValueError("broken off")

    assert run(Tool("add", handler=handler), call()) == told("ValueError: broken off")


def test_a_set_that_cannot_be_sorted_is_a_list_all_the_same():
    assert sorted(map(str, content({1, "a"}))) == ["1", "a"]


def test_a_result_nested_without_end_is_told_by_its_text_from_some_depth():
    deep = []
    for _ in range(100):
        deep = [deep]
    read = readable(deep)
    for _ in range(51):
        (read,) = read
    assert read == "[" * 50 + "]" * 50


def test_values_of_numpy_and_pandas_are_readable():
    assert content({"a": numpy.int64(1), "b": numpy.bool_(True), "c": numpy.float64("nan")}) == {
        "a": 1,
        "b": True,
        "c": "NaN",
    }
    assert content(numpy.array([1, 2])) == "[1 2]"
