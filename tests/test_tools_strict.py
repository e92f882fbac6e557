"""Tools whose schema a server enforces: what is told, what comes back, what cannot be told."""

import pickle
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import jsonschema
import pytest

from openagent import ConfigError, Tool, tool
from openagent.answer_schema import OPENAI, adapted
from openagent.testing import answer, call


@dataclass
class Place:
    city: str
    country: str | None = None
    near: list["Place"] = field(default_factory=list)


@tool(strict=True)
def search(text: Annotated[str, "what to find"], most: int = 10, order: Literal["new", "old"] = "new") -> str:
    """Search."""
    return f"{text} {most} {order}"


TOLD = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "what to find"},
        "most": {"anyOf": [{"type": "integer", "description": "(default: 10)"}, {"type": "null"}]},
        "order": {
            "anyOf": [
                {"type": "string", "enum": ["new", "old"], "description": '(default: "new")'},
                {"type": "null"},
            ]
        },
    },
    "required": ["text", "most", "order"],
    "additionalProperties": False,
}


def test_all_is_required_and_what_may_be_left_out_may_be_null():
    assert search.told_schema() == TOLD
    assert search.input_schema["required"] == ["text"]


def placed(place: Place, tags: set[str], maybe: int | None = None) -> str:
    """Nested, recursive, with a constraint that moves into the description (a set's items differ)."""


@pytest.mark.parametrize("function", [search.function, placed])
def test_what_is_told_is_a_valid_schema_and_stays_as_it_is_when_told_again(function):
    told = tool(strict=True)(function).told_schema()
    jsonschema.Draft202012Validator.check_schema(told)
    assert adapted(told, OPENAI) == told
    objects = [part for part in parts(told) if part.get("type") == "object"]
    assert [
        part for part in objects if part["additionalProperties"] or part["required"] != list(part["properties"])
    ] == []


def parts(schema):
    if isinstance(schema, dict):
        yield schema
        for part in schema.values():
            yield from parts(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from parts(part)


@pytest.mark.parametrize(
    ("protocol", "place"),
    [
        ("openai-chat", lambda sent: (sent["function"]["parameters"], sent["function"]["strict"])),
        ("openai-responses", lambda sent: (sent["parameters"], sent["strict"])),
        ("anthropic", lambda sent: (sent["input_schema"], sent["strict"])),
    ],
)
def test_it_goes_out_as_strict_and_a_null_means_the_default(serve, connect, protocol, place):
    server = serve(answer(calls=[call("search", {"text": "x", "most": None, "order": None})]), "Good.")
    client = connect(server, protocol=protocol, tools=[search], auto_execute_tools=True)
    assert client.ask("q") == "Good."
    assert [result.content for message in client.history for result in message.results] == ["x 10 new"]
    schema, is_strict = place(server.requests[0].body["tools"][0])
    assert is_strict is True
    # Anthropic takes what is left out as left out.
    assert schema == TOLD if protocol != "anthropic" else schema["required"] == ["text"]


def test_a_tool_that_is_not_strict_says_what_it_said(serve, connect):
    plain = tool(search.function)
    assert plain.told_schema() is plain.input_schema
    assert plain.to_openai_format()["function"].keys() == {"name", "description", "parameters"}


def anything(value: dict[str, int]) -> None:
    """Any members."""


def whatever(inner: list[Any]) -> None:
    """Anything."""


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (
            lambda: tool(strict=True)(anything),
            "tool 'anything' cannot be strict here: value: an object with any members ('additionalProperties') "
            "cannot be told",
        ),
        (lambda: tool(strict=True)(whatever), "tool 'whatever' cannot be strict here: inner: 'type' is missing"),
        (
            lambda: Tool("f", "", {"type": "object", "properties": {"a": {"not": {}}}}, strict=True),
            "tool 'f' cannot be strict here: a: 'type' is missing",
        ),
        (
            lambda: Tool("f", "", {"type": "object", "properties": {"a": {"type": "array"}}}, strict=True),
            "tool 'f' cannot be strict here: a: 'items' must be a schema",
        ),
        (lambda: Tool("f", strict="yes"), "strict 'yes' of tool 'f' must be True or False"),
    ],
)
def test_what_cannot_be_told_strictly_is_refused_when_the_tool_is_made(made, complaint):
    with pytest.raises(ConfigError) as caught:
        made()
    assert str(caught.value) == complaint


def test_a_schema_that_refers_to_itself_is_refused_by_anthropic_only(serve, connect):
    strict = tool(strict=True)(placed)
    client = connect(serve("Good.", "no"), protocol="anthropic", tools=[strict])
    with pytest.raises(ConfigError) as caught:
        client.ask("q")
    assert str(caught.value) == "tool 'placed' cannot be strict here: it refers to itself"
    assert connect(serve("Good."), tools=[strict]).ask("q") == "Good."


def test_openai_s_form_of_a_function_may_say_strict_and_copies_keep_it():
    form = {"type": "function", "function": {"name": "f", "parameters": search.input_schema, "strict": True}}
    from openagent.tools import as_tool

    assert as_tool(form).told_schema() == TOLD
    assert pickle.loads(pickle.dumps(as_tool(form))).strict is True
