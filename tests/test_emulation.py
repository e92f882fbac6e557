"""Tools by structured output: what is asked, what comes out, and what a server that cannot do it is told."""

import json

import pytest

from openagent import (
    CallAnnounced,
    CallFinished,
    CallStarted,
    ImageBlock,
    InvalidResponseError,
    Message,
    RoundFinished,
    RunFinished,
    TextBlock,
    TextDelta,
    ToolUseBlock,
    Usage,
    tool,
)
from openagent.abilities import says_no_tools
from openagent.decisions import AnswerText, decision_schema, described, plain
from openagent.errors import APIError
from openagent.testing import answer, call, failure


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


def picks(name, **arguments):
    return json.dumps({"tool": name, "arguments": arguments})


@pytest.fixture
def emulated(serve, connect):
    def start(*script, **settings):
        server = serve(*script)
        usual = {"tools": [add], "auto_execute_tools": True, "tool_mode": "emulated"}
        return connect(server, **usual | settings), server

    return start


def without_ids(history):
    """The history with the ids of calls, which are made up, replaced by their number."""
    text = json.dumps([message.to_dict() for message in history])
    for number, block in enumerate(block for message in history for block in message.calls):
        text = text.replace(block.id, f"c{number}")
    return [Message.from_dict(plain) for plain in json.loads(text)]


ADDED = [
    Message.user("q"),
    Message.assistant(ToolUseBlock("c0", "add", {"a": 1, "b": 2})),
    Message.tool_result("c0", 3),
    Message.assistant("It is 3."),
]
SCHEMA = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"tool": {"const": "add"}, "arguments": add.input_schema},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"answer": {"type": "string"}},
            "required": ["answer"],
            "additionalProperties": False,
        },
    ]
}


@pytest.mark.parametrize("decision", ['{"answer": "now"}', picks("add", a=1, b=2)])
def test_the_tool_is_run_and_the_answer_is_asked_without_constraint(emulated, decision):
    """Whether the model says that it has enough, or makes the same call again."""
    client, server = emulated(picks("add", a=1, b=2), decision, "It is 3.", system_prompt="Be brief.")
    assert client.ask("q") == "It is 3."
    assert (without_ids(client.history), client.finish_reason) == (ADDED, "stop")
    bodies = [request.body for request in server.requests]
    schemas = [body.get("response_format", {}).get("json_schema", {}).get("schema") for body in bodies]
    assert (schemas[0], schemas[2]) == (SCHEMA, None)
    assert schemas[1]["anyOf"][1]["properties"] == {"answer": {"const": "now"}}
    assert [body["messages"][0]["content"] for body in bodies] == [
        f"Be brief.\n\n{described([add])}",
        f"Be brief.\n\n{described([add])}",
        "Be brief.",
    ]
    assert bodies[1]["messages"][1:] == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": '{"tool":"add","arguments":{"a":1,"b":2}}'},
        {"role": "user", "content": "add(1, 2) = 3"},
    ]
    asked = "add(1, 2) = 3\n\nNow answer in one short sentence with this result: q"
    assert bodies[2]["messages"][3] == {"role": "user", "content": asked}
    assert [name for body in bodies for name in body if name.startswith("tool")] == []


def test_the_events_are_those_of_native_tools(emulated):
    script = [answer(picks("add", a=1, b=2), usage=(10, 5)), answer('{"answer": "now"}', usage=(20, 2))]
    client, _ = emulated(*script, answer(chunk_text=["It is", " 3."], usage=(30, 4)))
    client.send("q")
    events = list(client.events())
    kinds = [CallAnnounced, CallStarted, CallFinished, RoundFinished, TextDelta, TextDelta, RoundFinished, RunFinished]
    assert [type(event) for event in events] == kinds
    assert [event.finish_reason for event in events if isinstance(event, RoundFinished)] == ["tool_calls", "stop"]
    usage = client.usage
    assert Usage(usage.input_tokens, usage.output_tokens) == Usage(60, 11)


def test_an_answer_without_a_tool_is_live(emulated):
    text = 'He said "no" \\ \n\u00e9\U0001f600.'
    written = json.dumps({"answer": text})
    client, server = emulated(answer(chunk_text=list(written)))
    client.send("q")
    pieces = [event.text for event in client.events() if isinstance(event, TextDelta)]
    assert (len(pieces) > 10, "".join(pieces), len(server.requests)) == (True, text, 1)
    assert client.history == [Message.user("q"), Message.assistant(text)]


@pytest.mark.parametrize("size", range(1, 9))
def test_the_text_of_an_answer_is_read_whatever_pieces_it_comes_in(size):
    text = 'a "b" \\u \\ \t\u00e9\U0001f600\u2028 {"c": 1}'
    written = ' {\n "answer" : ' + json.dumps(text) + " }"
    heard = AnswerText()
    pieces = [heard.fed(written[start : start + size]) for start in range(0, len(written), size)]
    assert ("".join(pieces), heard.whole) == (text, text)


@pytest.mark.parametrize("said", ['{"answer": "a \\x b"}', '{"answer": "a \\u12 b"}'])
def test_an_answer_with_a_wrong_escape_is_reported_as_what_it_is(emulated, said):
    client, _ = emulated(answer(chunk_text=list(said)))
    with pytest.raises(InvalidResponseError, match="did not hold the answer to the JSON Schema"):
        client.ask("q")


def test_half_a_character_does_not_hold_up_the_text(emulated):
    client, _ = emulated(answer(chunk_text=list('{"answer": "a \\ud83d b"}')))
    assert client.ask("q") == client.history[-1].text == "a \ufffd b"


def test_in_manual_mode_the_call_is_handed_out(emulated):
    client, _ = emulated(picks("add", a=1, b=2), '{"answer": "now"}', "It is 3.", auto_execute_tools=False)
    client.send("q")
    (block,) = client.receive()
    assert (block.name, block.input) == ("add", {"a": 1, "b": 2})
    client.add_tool_result(block.id, 3)
    assert client.ask("") == "It is 3."
    assert without_ids(message for message in client.history if message.content != [TextBlock("")])[0] == ADDED[0]


def test_the_mode_can_be_switched_in_mid_conversation(emulated):
    client, server = emulated(
        picks("add", a=1, b=2), '{"answer": "now"}', "It is 3.", answer(calls=[call("add", {"a": 5})]), "5."
    )
    assert (client.ask("q"), client.ask("r", tool_mode="native")) == ("It is 3.", "5.")
    assert server.requests[3].body["messages"][1]["tool_calls"][0]["function"]["name"] == "add"


def test_wrong_arguments_are_told_to_the_model(emulated):
    client, server = emulated(picks("add", b=1), '{"answer": "now"}', "Sorry.")
    assert client.ask("q") == "Sorry."
    assert "missing" in server.requests[1].body["messages"][3]["content"]


@pytest.mark.parametrize(
    "said", ["I think it is 3.", '{"tool": "sub", "arguments": {}}', '{"answer": "3", "x": 1}', "[]"]
)
def test_a_server_that_ignores_the_schema_is_reported_and_not_asked_again(emulated, said):
    client, server = emulated(said)
    with pytest.raises(InvalidResponseError, match="did not hold the answer to the JSON Schema") as caught:
        client.ask("q")
    assert (caught.value.blocks, len(server.requests), client.history) == ([TextBlock(said)], 1, [Message.user("q")])


def test_a_decision_that_was_cut_is_never_run(emulated):
    client, _ = emulated(answer('{"tool": "add", "arguments": {"a": 1', finish="length"))
    assert (client.ask("q"), client.finish_reason) == ("", "length")
    client, _ = emulated(answer('{"answer": "It is', finish="length"))
    assert (client.ask("q"), client.finish_reason.is_truncated) == ("It is", True)
    assert client.history == [Message.user("q"), Message.assistant("It is")]


def test_the_last_round_has_no_tools(emulated):
    client, server = emulated(picks("add", a=1), "It is 1.", max_tool_iterations=1)
    assert (client.ask("q"), client.finish_reason) == ("It is 1.", "max_tool_iterations")
    assert "response_format" not in server.requests[1].body


@pytest.mark.parametrize(
    ("choice", "branches", "first"),
    [("none", None, "Hello."), ("required", 1, picks("add", a=1)), ("add", 1, picks("add", a=1))],
)
def test_the_choice_of_tools_is_honoured(emulated, choice, branches, first):
    client, server = emulated(first, tool_choice=choice, auto_execute_tools=False)
    client.send("q")
    list(client.receive())
    schema = server.requests[0].body.get("response_format", {}).get("json_schema", {}).get("schema")
    assert (len(schema["anyOf"]) if schema else None) == branches


def test_the_answer_keeps_to_a_schema_of_the_users(emulated):
    form = {"type": "object", "properties": {"n": {"type": "integer"}}}
    client, server = emulated('{"answer": {"n": 3}}', response_format=form)
    assert json.loads(client.ask("q")) == {"n": 3}
    branch = server.requests[0].body["response_format"]["json_schema"]["schema"]["anyOf"][1]
    assert branch["properties"] == {"answer": form}


def test_references_in_the_schema_of_a_tool_still_lead_home():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    tree = {"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    grow = tool("grow", "Grow").schema(tree).build(len)
    schema = decision_schema([grow], {"type": "string"})
    assert schema["anyOf"][0]["properties"]["arguments"] == {"$ref": "#/$defs/grow"}
    assert schema["$defs"]["grow"]["$defs"]["Node"]["properties"] == {"next": {"$ref": "#/$defs/grow/$defs/Node"}}


def test_an_image_in_a_result_is_shown_by_the_user():
    image = ImageBlock("https://example.com/a.png")
    content = ["Here:", {"type": "image", "url": image.url, "detail": "auto"}]
    history = [Message.assistant(ToolUseBlock("c", "see", {})), Message.tool_result("c", content)]
    assert plain(history)[1] == Message.user("see() = Here:", image)


# tool_mode="auto"

REFUSALS = [
    "registry.ollama.ai/library/gemma:2b does not support tools",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "tools param requires --jinja flag",
    'No endpoints found that support tool use. Try disabling "add".',
    "`tool calling` is not supported with this model",
]


@pytest.mark.parametrize("said", REFUSALS)
def test_a_server_that_refuses_tools_gets_emulated_ones(emulated, said):
    script = [failure(400, said), picks("add", a=1, b=2), '{"answer": "now"}', "It is 3."]
    client, server = emulated(*script, tool_mode="auto")
    assert client.ask("q") == "It is 3."
    assert without_ids(client.history) == ADDED
    assert [("tools" in request.body) for request in server.requests] == [True, False, False, False]


def test_a_refusal_of_tools_is_remembered_until_the_options_change(emulated):
    refused = failure(400, REFUSALS[0])
    client, server = emulated(refused, *['{"answer": "Hi."}'] * 2, refused, '{"answer": "Hi."}', tool_mode="auto")
    assert [client.ask(prompt) for prompt in "qr"] == ["Hi.", "Hi."]
    client.options = client.options.replace(temperature=0)
    assert client.ask("s") == "Hi."
    assert ["tools" in request.body for request in server.requests] == [True, False, False, True, False]


def test_a_server_that_has_tools_is_left_alone(emulated):
    client, _ = emulated(answer(calls=[call("add", {"a": 1, "b": 2}, id="c0")]), "It is 3.", tool_mode="auto")
    assert (client.ask("q"), client.history) == ("It is 3.", ADDED)


@pytest.mark.parametrize(
    "said", ["invalid schema for tool 'add'", "tool_choice: unknown tool", "the model is not supported"]
)
def test_other_refusals_are_the_callers(emulated, said):
    client, _ = emulated(failure(400, said), tool_mode="auto")
    with pytest.raises(APIError):
        client.ask("q")
    assert not says_no_tools(APIError(said, status=400))
