"""Answers with a shape, on the three protocols."""

import copy
import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Literal, NamedTuple, TypedDict

import pydantic
import pytest

from openagent import (
    AgentError,
    AgentOptions,
    APIError,
    ConfigError,
    InvalidResponseError,
    Message,
    TextBlock,
    codec,
    map_prompts,
    tool,
)
from openagent.extraction import INSTRUCTION, NEXT_STEP
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


class Size(NamedTuple):
    width: int
    height: int = 1


class Maybe(TypedDict, total=False):
    colour: Colour
    size: Size


@dataclass
class Shelf:
    books: list[Book]
    size: Size
    note: str | None = None


SHELF = {"books": [AS_JSON], "size": {"width": 2, "height": None}, "note": None}
SHAPES = [
    (Shelf, SHELF, Shelf([EMMA], Size(2, 1), None)),
    (Size, {"width": 2}, Size(2, 1)),
    (Maybe, {"colour": None, "size": {"width": 3, "height": 4}}, {"size": Size(3, 4)}),
    (Literal["a", 1], {"value": 1}, 1),
    (Book | Size, {"value": {"width": 2, "height": 3}}, Size(2, 3)),
    (list[Book | None], {"value": [None, AS_JSON]}, [None, EMMA]),
    (Annotated[int, "a number"], {"value": 3}, 3),
    (Point, {"x": 1, "y": 2}, {"x": 1, "y": 2}),
    (list[Point], {"value": [{"x": 1, "y": 2}]}, [{"x": 1, "y": 2}]),
    (list[Book], {"value": [AS_JSON]}, [EMMA]),
    (Colour, {"value": "blue"}, Colour.BLUE),
    (date, {"value": "2024-02-29"}, date(2024, 2, 29)),
    (int | None, {"value": None}, None),
    ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": 3}, {"n": 3}),
    ({"enum": [1, 2]}, {"value": 2}, 2),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("shape", "said", "value"), SHAPES)
def test_each_shape_has_its_value(serve, connect, shape, said, value, protocol):
    server = serve(json.dumps(said))
    assert connect(server, protocol=protocol).extract("q", shape) == value
    assert schema_of(server.requests[0])["type"] == "object"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pydantic_model_comes_out(serve, connect, protocol):
    class Corner(pydantic.BaseModel):
        x: int = pydantic.Field(ge=0)

    class Line(pydantic.BaseModel):
        corners: list[Corner]
        name: str | None = None

    client = connect(serve('{"corners": [{"x": -1}]}', '{"corners": [{"x": 1}]}'), protocol=protocol)
    assert client.extract("q", Line) == Line(corners=[Corner(x=1)])
    assert "minimum 0, got -1" in client.history[2].text


LIMITED = {"type": "object", "properties": {"x": {"type": "integer", "maximum": 9}}, "required": ["x"]}


def test_the_model_is_shown_its_mistake_and_tries_again(serve, connect):
    server = serve('{"x": 10}', '{"x": 9}')
    assert connect(server).extract("q", LIMITED) == {"x": 9}
    told = "That is wrong: x: expected maximum 9, got 10. Give the whole answer again: q"
    assert server.requests[1].body["messages"] == [
        {"role": "system", "content": INSTRUCTION + codec.dump(LIMITED)},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": '{"x": 10}'},
        {"role": "user", "content": told},
    ]
    assert schema_of(server.requests[1]) == schema_of(server.requests[0])


def test_a_value_that_fits_the_schema_but_not_the_type_is_a_mistake_too(serve, connect):
    server = serve('{"value": "2023-02-29"}', '{"value": "2023-02-28"}')
    assert connect(server).extract("q", date) == date(2023, 2, 28)


def test_after_the_last_attempt_it_is_an_error_that_says_what_was_wrong(serve, connect):
    client = connect(serve("a", "b", '{"x": 1}'))
    with pytest.raises(InvalidResponseError, match="no answer of this shape in 3 attempts: missing") as caught:
        client.extract("q", Point)
    assert (caught.value.body, len(client.history)) == ('{"x": 1}', 6)
    assert str(caught.value).endswith(f"; the server does not hold the model to a schema: {NEXT_STEP}")
    with pytest.raises(InvalidResponseError, match="in 1 attempts"):
        connect(serve("a")).extract("q", Point, retries=0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cut_answer_is_an_error_that_says_so(serve, connect, protocol):
    client = connect(serve(answer('{"x": 1', finish="length")), protocol=protocol)
    with pytest.raises(AgentError, match="cut by the output limit before it had its shape: raise max_tokens"):
        client.extract("q", Point)


@pytest.mark.parametrize(
    ("protocol", "how"),
    [
        *((protocol, {"text": "I will not.", "finish": "content_filter"}) for protocol in PROTOCOLS),
        ("openai-chat", {"refusal": "I will not."}),
        ("openai-responses", {"refusal": "I will not."}),
    ],
)
def test_a_refusal_is_an_error_that_says_so(serve, connect, protocol, how):
    client = connect(serve(answer(**how)), protocol=protocol)
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


NO_TOOLS = ["the model does not support tools", "Thinking mode does not support this tool_choice"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("said", NO_TOOLS)
def test_a_server_that_has_neither_gets_the_schema_in_the_prompt(serve, connect, protocol, said):
    refused = failure(400, "output_config: Extra inputs are not permitted; no response_format")
    fenced = 'Here you are:\n\n```json\n{"x": 1, "y": 2}\n```'
    server = serve(refused, failure(400, said), fenced)
    client = connect(server, protocol=protocol, system_prompt="Be exact.")
    assert client.extract("q", Point) == {"x": 1, "y": 2}
    body = server.requests[2].body
    told = body.get("system") or body.get("instructions") or body["messages"][0]["content"]
    assert told == "Be exact.\n\n" + INSTRUCTION + codec.dump(schema_of(server.requests[0]))
    assert not body.keys() & {"tools", "response_format", "text", "output_config"}
    assert client.history == [Message.user("q"), Message.assistant(fenced)]


def test_a_mistake_in_an_answer_to_the_prompt_is_shown_too(serve, connect):
    refused = [failure(400, "no response_format"), failure(400, "tools are not supported")]
    server = serve(*refused, "I would say 1 and 2.", '{"x": 1, "y": 2}')
    assert connect(server).extract("q", Point) == {"x": 1, "y": 2}
    shown = server.requests[3].body["messages"]
    assert [message["role"] for message in shown] == ["system", "user", "assistant", "user"]
    assert shown[3]["content"] == "That is wrong: there is no JSON in it. Give the whole answer again: q"


def kinds(server):
    """How each request asked for the shape."""
    formats = {"response_format", "text", "output_config"}
    bodies = [request.body for request in server.requests]
    return ["format" if body.keys() & formats else "call" if "tools" in body else "prompt" for body in bodies]


POINTS = ['{"x": 1, "y": 2}'] * 3
GIVEN = answer(calls=[call("give_answer", {"x": 1, "y": 2})])
NO_FORMAT = failure(400, "This response_format type is unavailable now")
NEITHER = [NO_FORMAT, failure(400, "tools are not supported")]
REMEMBERED = [
    ([NO_FORMAT, GIVEN, GIVEN, GIVEN], ["format", "call", "call", "call"]),
    ([*NEITHER, *POINTS], ["format", "call", "prompt", "prompt", "prompt"]),
    (["one and two", *POINTS], ["format", "prompt", "prompt", "prompt"]),
]


@pytest.mark.parametrize(("script", "asked"), REMEMBERED)
def test_what_a_server_lacks_is_not_asked_for_again(serve, connect, script, asked):
    server = serve(*script)
    client = connect(server)
    assert [client.extract(prompt, Point) for prompt in "qrs"] == [{"x": 1, "y": 2}] * 3
    assert kinds(server) == asked


def test_it_is_forgotten_when_the_options_change_and_another_model_is_asked_anew(serve, connect):
    server = serve(NO_FORMAT, GIVEN, POINTS[0], NO_FORMAT, GIVEN)
    client = connect(server)
    client.extract("q", Point)
    client.extract("r", Point, model="other")
    client.options = client.options.replace(temperature=0)
    client.extract("s", Point)
    assert kinds(server) == ["format", "call", "format", "format", "call"]


BAD_SCHEMAS = [
    "Invalid schema for response_format 'answer': In context=('properties', 'x'), 'oneOf' is not permitted.",
    "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    "The provided JSON schema contains features not supported by xgrammar.",
    "JSON schema conversion failed: Unresolved reference",
]


@pytest.mark.parametrize("said", BAD_SCHEMAS)
def test_a_schema_that_a_server_refuses_is_not_held_against_the_next(serve, connect, said):
    server = serve(failure(400, said), GIVEN, *POINTS[:1])
    client = connect(server)
    assert [client.extract(prompt, Point) for prompt in "qr"] == [{"x": 1, "y": 2}] * 2
    assert kinds(server) == ["format", "call", "format"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("said", ["one and two", "[]", '{"x": 1}', '{"x": 1, "y": "2"}'])
def test_a_server_that_ignores_the_schema_is_noticed_and_said_so(serve, connect, caplog, protocol, said):
    server = serve(said, '{"x": 1, "y": 2}')
    assert connect(server, protocol=protocol).extract("q", Point) == {"x": 1, "y": 2}
    assert kinds(server) == ["format", "prompt"]
    (record,) = caplog.records
    assert record.getMessage() == f"model m is not held to the JSON Schema by its server: {NEXT_STEP}"


def test_a_server_that_ignores_the_schema_is_noticed_though_its_answer_is_cut(serve, connect):
    with pytest.raises(InvalidResponseError, match="does not hold the model to a schema"):
        connect(serve(answer("Once upon a time", finish="length"))).extract("q", Point, retries=0)


def test_a_server_that_ignores_the_call_gets_the_schema_in_the_prompt(serve, connect):
    server = serve(NO_FORMAT, "I cannot call anything.", '{"x": 1, "y": 2}')
    assert connect(server).extract("q", Point) == {"x": 1, "y": 2}
    assert kinds(server) == ["format", "call", "prompt"]


def test_a_call_that_a_server_left_in_the_text_is_the_answer(serve, connect):
    server = serve(NO_FORMAT, '<tool_call>{"name": "give_answer", "arguments": {"x": 1, "y": 2}}</tool_call>')
    assert connect(server).extract("q", Point) == {"x": 1, "y": 2}


def test_what_anthropic_cannot_say_is_asked_for_as_a_call(serve, connect):
    server = serve(answer(calls=[call("give_answer", {"a": 1})]), *POINTS[:1])
    client = connect(server, protocol="anthropic")
    assert (client.extract("q", dict[str, int]), client.extract("r", Point)) == ({"a": 1}, {"x": 1, "y": 2})
    assert kinds(server) == ["call", "format"]


def test_where_a_call_cannot_be_forced_since_the_model_thinks_the_prompt_says_it(serve, connect):
    server = serve('{"a": 1}')
    client = connect(server, protocol="anthropic", reasoning_effort=2000)
    assert client.extract("q", dict[str, int]) == {"a": 1}
    assert kinds(server) == ["prompt"]


def test_other_refusals_are_the_callers(serve, connect):
    with pytest.raises(APIError, match="no such model"):
        connect(serve(failure(404, "no such model"))).extract("q", Point)


def test_a_batch_asks_each_vendor_as_it_wants_to_be_asked(serve):
    server = serve('{"n": 1}', strict=True)
    options = AgentOptions(model="m", base_url=server.url, protocol="anthropic", retry=None)
    shape = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert [result.answer for result in map_prompts(options, ["q"], schema=shape, progress=False)] == [{"n": 1}]


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


# The value as it grows


def snapshots(run):
    """Each partial value, copied as it was; the final value as it is."""
    seen = []
    for value in run:
        seen.append(copy.deepcopy(value))
    return seen


BEGUN = '{"title": "Em'
AUTHORS = '4, "colour": "red", "authors": ["Aus'
EMMA_IN_PIECES = [BEGUN, 'ma", "pages": 47', AUTHORS, 'ten"], "published": "1815-12-23"}']
GROWTH = [
    {"title": "Em"},
    {"title": "Emma"},
    {"title": "Emma", "pages": 474, "colour": "red", "authors": ["Aus"]},
    {"title": "Emma", "pages": 474, "colour": "red", "authors": ["Austen"], "published": "1815-12-23"},
    EMMA,
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_answer_grows_and_ends_as_the_value(serve, connect, protocol):
    client = connect(serve(answer(chunk_text=EMMA_IN_PIECES)), protocol=protocol)
    assert snapshots(client.extract_stream("Emma?", Book)) == GROWTH
    assert client.history[-1] == Message.assistant("".join(EMMA_IN_PIECES))


def test_a_list_grows_item_by_item_and_a_text_letter_by_letter(serve, connect):
    server = serve(answer(chunk_text=['{"val', 'ue": [{"x": 1', ', "y": 2}, {"x"', ": 3", ', "y": 4}]}']))
    assert snapshots(connect(server).extract_stream("q", list[Point])) == [
        [{}],
        [{"x": 1, "y": 2}, {}],
        [{"x": 1, "y": 2}, {"x": 3, "y": 4}],
        [{"x": 1, "y": 2}, {"x": 3, "y": 4}],
    ]
    server = serve(answer(chunk_text=['{"value": "b', "lu", 'e"}']))
    assert snapshots(connect(server).extract_stream("q", Colour)) == ["b", "blu", "blue", Colour.BLUE]


def test_the_partial_values_are_one_growing_object(serve, connect):
    run = connect(serve(answer(chunk_text=EMMA_IN_PIECES))).extract_stream("Emma?", Book)
    *partial, _ = run
    assert {id(value) for value in partial} == {id(partial[0])}


def test_it_is_live(serve, connect):
    held = answer(chunk_text=[BEGUN], hold=30, done=False, finish="unspecified")
    client = connect(serve(held))
    run = client.extract_stream("q", Book)
    assert next(run) == {"title": "Em"}
    client.interrupt()
    with pytest.raises(AgentError, match="interrupted before it had its shape") as caught:
        next(run)
    assert caught.value.blocks == [TextBlock(BEGUN)]


def test_a_forced_call_comes_in_one_piece(serve, connect):
    client = connect(serve(NO_FORMAT, GIVEN))
    assert snapshots(client.extract_stream("q", Point)) == [{"x": 1, "y": 2}]


def test_an_answer_to_the_prompt_grows_too(serve, connect):
    words = answer(chunk_text=["Here:\n```js", 'on\n{"x": 1, ', '"y": 2}\n', "```"])
    assert snapshots(connect(serve(*NEITHER, words)).extract_stream("q", Point)) == [
        {"x": 1},
        {"x": 1, "y": 2},
        {"x": 1, "y": 2},
    ]


def test_after_a_mistake_it_grows_anew(serve, connect):
    server = serve('{"x": 10}', '{"x": 9}')
    assert snapshots(connect(server).extract_stream("q", LIMITED))[-2:] == [{"x": 9}, {"x": 9}]
    assert len(server.requests) == 2


def test_each_round_of_tools_begins_anew(serve, connect):
    @tool
    def look() -> int:
        """Look."""
        return 1

    server = serve(answer("{looking", calls=[call("look", {})]), '{"x": 1, "y": 2}')
    client = connect(server, tools=[look], auto_execute_tools=True)
    assert snapshots(client.extract_stream("q", Point))[-1] == {"x": 1, "y": 2}


def test_what_the_server_refuses_and_what_is_wrong_is_raised_before_there_is_an_iterator(serve, connect):
    with pytest.raises(APIError, match="no such model"):
        connect(serve(failure(404, "no such model"))).extract_stream("q", Point)
    server = serve()
    with pytest.raises(ConfigError, match="is no shape for an answer"):
        connect(server).extract_stream("q", {"type": "nothing"})
    assert server.requests == []


def test_a_cut_answer_is_an_error_after_what_came(serve, connect):
    run = connect(serve(answer(chunk_text=[BEGUN], finish="length"))).extract_stream("q", Book)
    assert next(run) == {"title": "Em"}
    with pytest.raises(AgentError, match="cut by the output limit"):
        next(run)


def test_whoever_leaves_early_can_go_on_with_the_client(serve, connect):
    client = connect(serve(answer(chunk_text=EMMA_IN_PIECES), "Fine."))
    for _ in client.extract_stream("Emma?", Book):
        break
    assert client.ask("r") == "Fine."
