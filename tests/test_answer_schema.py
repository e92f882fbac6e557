"""What is sent to each vendor for each kind of shape, and what the vendor cannot be asked for."""

import json
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import pytest
from jsonschema import Draft202012Validator

from openagent import AgentOptions, Message
from openagent.adapters.openai_chat import OpenAIChat
from openagent.adapters.openai_responses import OpenAIResponses
from openagent.answer_schema import ANTHROPIC, OPENAI, adapted, dialect_of, is_strict
from openagent.forms import Form
from openagent.testing.strict import Refused, check_answer_schema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(Enum):
    ONE = 1
    TWO = "two"


class Size(NamedTuple):
    width: int
    height: int = 1


class Options(TypedDict, total=False):
    fast: bool


@dataclass
class Author:
    name: str
    born: date | None = None


@dataclass
class Book:
    """A book."""

    title: str
    pages: Annotated[int, "at least one"]
    author: Annotated[Author, "who wrote it"]
    colour: Colour = Colour.RED


@dataclass
class Node:
    name: str
    kids: "list[Node]"


def closed(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT, NUMBER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
DATE = {"type": "string", "format": "date"}
AUTHOR = closed(name=TEXT, born={"anyOf": [DATE, NULL]})
COLOUR = {"type": "string", "enum": ["red", "blue"]}
RED = {"anyOf": [COLOUR | {"description": '(default: "red")'}, NULL]}
LIMITED = {"type": "object", "properties": {"n": {"type": "string", "minLength": 2, "pattern": "^a"}}}

SHAPES = [
    (Author, AUTHOR, AUTHOR | {"required": ["name"]}),
    (Colour, closed(value=COLOUR), closed(value=COLOUR)),
    (Mixed, *[closed(value={"type": ["integer", "string"], "enum": [1, "two"]})] * 2),
    (Literal["a", "b"], *[closed(value=TEXT | {"enum": ["a", "b"]})] * 2),
    (list[datetime], *[closed(value={"type": "array", "items": {"type": "string", "format": "date-time"}})] * 2),
    (int | str | None, *[closed(value={"anyOf": [NUMBER, TEXT, NULL]})] * 2),
    (Options, closed(fast={"anyOf": [{"type": "boolean"}, NULL]}), closed(fast={"type": "boolean"}) | {"required": []}),
    (
        LIMITED,
        closed(n={"anyOf": [{"type": "string", "description": "(minLength: 2)", "pattern": "^a"}, NULL]}),
        closed(n={"type": "string", "description": '(minLength: 2, pattern: "^a")'}) | {"required": []},
    ),
    (
        Size,
        closed(width=NUMBER, height={"anyOf": [NUMBER | {"description": "(default: 1)"}, NULL]}),
        closed(width=NUMBER, height=NUMBER | {"description": "(default: 1)"}) | {"required": ["width"]},
    ),
    (Node, (tree := closed(name=TEXT, kids={"type": "array", "items": {"$ref": "#/$defs/Node"}}))
     | {"$defs": {"Node": tree}}, None),
    (dict[str, int], None, None),
    (tuple[int, str], None, None),
    (Any, None, None),
    (list, None, None),
    (list[dict[str, Any]], None, None),
    ({"type": "object"}, None, None),
    ({"type": "object", "properties": {"a": {"allOf": [TEXT, {"minLength": 1}]}}}, None, None),
    ({"type": "object", "properties": {"a": {"enum": [[1], {}]}}}, None, None),
    ({"type": "object", "properties": {"a": {"type": ["object", "null"]}}}, None, None),
    ({"type": "object", "properties": {"a": True}}, None, None),
    (
        {"type": "object", "properties": {"a": {"allOf": [TEXT]}, "b": {"anyOf": [TEXT, NUMBER]}}, "required": ["a"]},
        closed(a={"anyOf": [TEXT]}, b={"anyOf": [TEXT, NUMBER, NULL]}),
        closed(a={"anyOf": [TEXT]}, b={"anyOf": [TEXT, NUMBER]}) | {"required": ["a"]},
    ),
    (
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        closed(a={"type": ["string", "null"]}),
        closed(a={"type": ["string", "null"]}) | {"required": []},
    ),
    ({"type": "object", "properties": {"a": {"not": TEXT}}}, None, None),
    ({"type": "object", "properties": {"a": {"$ref": "#", "anyOf": [TEXT]}}}, None, None),
    ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, closed(a={"$ref": "#"}), None),
    ({"type": "object", "properties": {"a": TEXT}, "anyOf": [{"required": ["a"]}]}, None, None),
    (
        {"$schema": "x", "type": "object", "properties": {"a": {"oneOf": [{"const": 1}, TEXT]}}, "required": ["a"]},
        *[closed(a={"anyOf": [{"type": "integer", "enum": [1]}, TEXT]})] * 2,
    ),
]  # fmt: skip


def names(shapes):
    return [str(getattr(row[0], "__name__", row[0]))[:60] for row in shapes]


@pytest.mark.parametrize(("shape", "for_openai", "for_anthropic"), SHAPES, ids=names(SHAPES))
def test_each_vendor_gets_what_it_takes(shape, for_openai, for_anthropic):
    schema = Form(shape).schema
    assert (adapted(schema, OPENAI), adapted(schema, ANTHROPIC)) == (for_openai, for_anthropic)


@pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("shape", [row[0] for row in SHAPES] + [Book], ids=[*names(SHAPES), "Book"])
def test_what_is_sent_is_a_schema_that_needs_no_further_change(shape, dialect):
    schema = adapted(Form(shape).schema, dialect)
    if schema is not None:
        Draft202012Validator.check_schema(schema)
        check_answer_schema(schema, "schema", all_required=dialect is OPENAI)
        assert adapted(schema, dialect) == schema


def test_a_reference_stands_alone_and_what_is_said_of_it_around_it():
    author = adapted(Form(Book).schema, OPENAI)["properties"]["author"]
    assert author == {"anyOf": [{"$ref": "#/$defs/Author"}], "description": "who wrote it"}


def test_the_strict_server_refuses_what_the_vendors_refuse():
    for schema, all_required in [({"type": "object"}, False), (closed(a=TEXT) | {"required": []}, True)]:
        with pytest.raises(Refused):
            check_answer_schema({"type": "array", "items": schema}, "schema", all_required=all_required)


HOSTS = [
    ("openai-chat", "https://api.openai.com/v1", OPENAI),
    ("openai-responses", "https://x.openai.azure.com/openai/v1", OPENAI),
    ("openai-chat", "https://openrouter.ai/api/v1", OPENAI),
    ("openai-chat", "http://localhost:8080/v1", None),
    ("anthropic", "https://api.anthropic.com/v1", ANTHROPIC),
    ("anthropic", "http://localhost:8080/v1", ANTHROPIC),
]


@pytest.mark.parametrize(("protocol", "base_url", "dialect"), HOSTS)
def test_who_speaks_which_dialect(protocol, base_url, dialect):
    assert dialect_of(protocol, base_url) is dialect


def test_a_server_is_asked_to_be_strict_where_that_means_something_and_can_be():
    strict, loose = closed(a=TEXT), json.loads(json.dumps(LIMITED))
    assert [is_strict(schema, "https://api.openai.com/v1") for schema in (strict, loose)] == [True, False]
    assert not is_strict(strict, "http://localhost:8080/v1")


@pytest.mark.parametrize(("adapter", "member"), [(OpenAIChat, "response_format"), (OpenAIResponses, "text")])
def test_openai_is_told_to_be_strict(adapter, member):
    def sent(base_url):
        options = AgentOptions(model="m", base_url=base_url, response_format=closed(a=TEXT))
        body = json.loads(adapter(options, [Message.user("q")], [], iter).encode(None, False).body)[member]
        return body.get("json_schema") or body["format"]

    assert sent("https://api.openai.com/v1") == sent("http://localhost:1/v1") | {"strict": True}
