"""Answers with a shape, on the three protocols."""

import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import TypedDict

import pytest

from openagent import AgentError, APIError, ConfigError, InvalidResponseError, Message, tool
from openagent.testing import answer, call, failure

PROTOCOLS = ["openai-chat", "openai-responses", "anthropic"]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Book:
    title: str
    pages: int
    colour: Colour
    authors: list[str]
    published: date


class Point(TypedDict):
    x: int
    y: int


AS_JSON = {"title": "Emma", "pages": 474, "colour": "red", "authors": ["Austen"], "published": "1815-12-23"}
EMMA = Book("Emma", 474, Colour.RED, ["Austen"], date(1815, 12, 23))


def schema_of(request):
    body = request.body
    if "output_config" in body:
        return body["output_config"]["format"]["schema"]
    return (body["text"]["format"] if "text" in body else body["response_format"]["json_schema"])["schema"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_dataclass_comes_out_of_structured_output(serve, connect, protocol):
    server = serve(json.dumps(AS_JSON))
    client = connect(server, protocol=protocol)
    assert client.extract("Emma?", Book) == EMMA
    assert schema_of(server.requests[0])["required"] == list(AS_JSON)
    assert client.history == [Message.user("Emma?"), Message.assistant(json.dumps(AS_JSON))]


SHAPES = [
    (Point, {"x": 1, "y": 2}, {"x": 1, "y": 2}),
    (list[Point], {"value": [{"x": 1, "y": 2}]}, [{"x": 1, "y": 2}]),
    (list[Book], {"value": [AS_JSON]}, [EMMA]),
    (Colour, {"value": "blue"}, Colour.BLUE),
    (date, {"value": "2024-02-29"}, date(2024, 2, 29)),
    (int | None, {"value": None}, None),
    ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": 3}, {"n": 3}),
    ({"enum": [1, 2]}, {"value": 2}, 2),
]


@pytest.mark.parametrize(("shape", "said", "value"), SHAPES)
def test_each_shape_has_its_value(serve, connect, shape, said, value):
    server = serve(json.dumps(said))
    assert connect(server).extract("q", shape) == value
    assert schema_of(server.requests[0])["type"] == "object"


def test_a_pydantic_model_comes_out():
    pydantic = pytest.importorskip("pydantic")
    from openagent.extraction import Form

    class Pair(pydantic.BaseModel):
        a: int
        b: int

    assert Form(Pair).read({"a": 1, "b": 2}) == Pair(a=1, b=2)


WRONG = [
    ("no JSON", "Give the whole answer again: q"),
    ('{"x": 1}', "missing"),
    ('{"x": 1, "y": "2"}', "y: expected integer"),
]


@pytest.mark.parametrize(("said", "told"), WRONG)
def test_the_model_is_shown_its_mistake_and_tries_again(serve, connect, said, told):
    server = serve(said, '{"x": 1, "y": 2}')
    assert connect(server).extract("q", Point) == {"x": 1, "y": 2}
    shown = server.requests[1].body["messages"]
    assert [message["role"] for message in shown] == ["user", "assistant", "user"]
    assert told in shown[2]["content"]


def test_a_value_that_fits_the_schema_but_not_the_type_is_a_mistake_too(serve, connect):
    server = serve('{"value": "2023-02-29"}', '{"value": "2023-02-28"}')
    assert connect(server).extract("q", date) == date(2023, 2, 28)


def test_after_the_last_attempt_it_is_an_error_that_says_what_was_wrong(serve, connect):
    client = connect(serve("a", "b", '{"x": 1}'))
    with pytest.raises(InvalidResponseError, match="no answer of this shape in 3 attempts: missing") as caught:
        client.extract("q", Point)
    assert (caught.value.body, len(client.history)) == ('{"x": 1}', 6)
    with pytest.raises(InvalidResponseError, match="in 1 attempts"):
        connect(serve("a")).extract("q", Point, retries=0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cut_answer_is_an_error_that_says_so(serve, connect, protocol):
    client = connect(serve(answer('{"x": 1', finish="length")), protocol=protocol)
    with pytest.raises(AgentError, match="cut by the output limit before it had its shape: raise max_tokens"):
        client.extract("q", Point)


def test_a_refusal_is_an_error_that_says_so(serve, connect):
    client = connect(serve(answer("I will not.", finish="content_filter")))
    with pytest.raises(AgentError, match=r"the model refused to answer: I will not\."):
        client.extract("q", Point)


REFUSED = [
    ("openai-chat", "This response_format type is unavailable now"),
    ("openai-responses", "Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model"),
    ("anthropic", "output_config.format: Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("protocol", "said"), REFUSED)
def test_a_server_without_structured_output_gets_a_forced_call(serve, connect, protocol, said):
    given = answer(calls=[call("give_answer", {"x": 1, "y": 2})])
    server = serve(failure(400, said), given, "Fine.")
    client = connect(server, protocol=protocol)
    assert client.extract("q", Point) == {"x": 1, "y": 2}
    assert "give_answer" in json.dumps(server.requests[1].body["tool_choice"])
    assert [message.role for message in client.history] == ["user", "assistant", "tool"]
    assert client.ask("r") == "Fine."


def test_a_wrong_forced_call_is_tried_again_as_a_call(serve, connect):
    script = [answer(calls=[call("give_answer", given)]) for given in ({"x": 1}, {"x": 1, "y": 2})]
    server = serve(failure(400, "response_format is not supported"), *script)
    assert connect(server).extract("q", Point) == {"x": 1, "y": 2}
    assert ["tools" in request.body for request in server.requests] == [False, True, True]


def test_other_refusals_are_the_callers(serve, connect):
    with pytest.raises(APIError, match="no such model"):
        connect(serve(failure(404, "no such model"))).extract("q", Point)


def test_tools_may_be_used_on_the_way(serve, connect):
    @tool
    def look() -> int:
        """Look."""
        return 1

    server = serve(answer(calls=[call("look", {})]), '{"x": 1, "y": 2}')
    client = connect(server, tools=[look], auto_execute_tools=True)
    assert client.extract("q", Point) == {"x": 1, "y": 2}
    manual = serve('{"x": 1, "y": 2}')
    assert connect(manual, tools=[look], tool_choice="required").extract("q", Point) == {"x": 1, "y": 2}
    assert "tools" not in manual.requests[0].body


BAD = [
    (lambda client: client.extract("q", {"type": "nothing"}), "is no shape for an answer"),
    (lambda client: client.extract("q", Point, retries=-1), "retries -1 must be a whole number, 0 or more"),
    (lambda client: client.extract("q", Point, response_format="json"), "response_format cannot be set for extract"),
]


@pytest.mark.parametrize(("wrong", "told"), BAD)
def test_wrong_use_is_refused_before_any_request(serve, connect, wrong, told):
    server = serve()
    with pytest.raises(ConfigError, match=told):
        wrong(connect(server))
    assert server.requests == []
