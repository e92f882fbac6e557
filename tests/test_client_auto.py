"""A client that runs the tools itself: rounds, what becomes of each call, how a run ends."""

import json

import pytest

from openagent import APIError, Message, Tool, ToolError, ToolUseBlock, tool
from openagent.testing import answer, call, failure

Q = Message.user("q")
LOOKS = answer("let me see", calls=[call("look", id="c1")])


def looking(ran=None):
    """A tool that tells what it was given."""
    properties = {"at": {"type": "string"}, "far": {"type": "boolean"}}
    handler = (lambda arguments: "seen") if ran is None else (lambda arguments: ran.append(arguments) or "seen")
    return Tool("look", "Look", {"type": "object", "properties": properties}, handler)


@pytest.fixture
def auto(serve, connect):
    """A client in auto mode with a script, and its server."""

    def start(*script, **settings):
        server = serve(*script)
        return connect(server, auto_execute_tools=True, **({"tools": [looking()]} | settings)), server

    return start


def gave(id, content="seen", is_error=False):
    return Message.tool_result(id, content, is_error=is_error)


def wrong(id, text, name="look"):
    return gave(id, {"error": text, "tool": name, "id": id}, is_error=True)


def use(*ids, name="look", input=None):
    return Message.assistant(*(ToolUseBlock(id, name, input or {}) for id in ids))


def heard(client):
    return [block.text for block in client.receive()]


def test_the_rounds_are_run_and_the_final_text_is_handed_out(auto):
    """T-12 as design.md 7.7 has it; R-40, R-43, B-9: tool-role results, no empty user message, 2 requests."""
    client, server = auto(LOOKS, answer(chunk_text=["4", "2"]))
    client.send("q")
    assert heard(client) == ["4", "2"]
    assert heard(client) == []
    turn = Message.assistant("let me see", ToolUseBlock("c1", "look", {}))
    assert client.history == [Q, turn, gave("c1"), Message.assistant("42")]
    assert (client.finish_reason, len(server.requests)) == ("stop", 2)
    assert server.requests[1].body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "let me see",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
    ]


def test_calls_run_one_after_another_in_their_order(auto):
    """R-45, B-58; harness.md 7.4: one turn, then its results in order."""
    ran = []
    calls = [call("look", {"at": str(index)}, id=f"c{index}") for index in range(4)]
    client, _ = auto(answer(calls=calls), "done", tools=[looking(ran)])
    assert client.ask("q") == "done"
    assert ran == [{"at": str(index)} for index in range(4)]
    assert client.history[2:-1] == [gave(f"c{index}") for index in range(4)]


def test_each_request_starts_fresh(auto):
    """B-82: for an answer that was drained, and for one that was not."""
    client, _ = auto(answer(chunk_text=["a", "b"]), LOOKS, answer(chunk_text=["c", "d"]), "e", "f")
    client.send("q")
    assert heard(client) == ["a", "b"]
    client.send("r")
    assert next(client.receive()).text == "c"
    client.send("s")
    assert heard(client) == ["e"]
    client.send_message(Message.user("t"))
    assert heard(client) == ["f"]


def test_the_text_of_each_speaking_round_is_its_own_paragraph(auto):
    """harness.md 1.8, 7.1: one blank line between two rounds that both spoke, and it is not in the history."""
    silent = answer(calls=[call("look")])
    blank = answer(" ", calls=[call("look")])
    client, _ = auto(silent, LOOKS, silent, blank, "It is 42.", max_tool_iterations=9)
    assert "".join(client.stream("q")).replace(" ", "") == "letmesee\n\nItis42."
    assert [message.text for message in client.history if message.role == "assistant"] == [
        "",
        "let me see",
        "",
        "",
        "It is 42.",
    ]


def test_ask_returns_the_text_of_the_last_round(auto):
    """design.md 3."""
    client, _ = auto(LOOKS, "It is 42.")
    assert client.ask("q") == "It is 42."


# What the model gets wrong


def test_an_unknown_tool_is_told_with_the_close_names_first_and_the_others_run(auto):
    """tc-20, R-50.5, promise 7."""
    calls = [call("get_wether", id="c1"), call("look", id="c2")]
    tools = [looking(), *(Tool(name, "", {}, print) for name in ("add", "get_weather"))]
    client, _ = auto(answer(calls=calls), "done", tools=tools)
    assert client.ask("q") == "done"
    told = "Tool 'get_wether' not found. Available tools: get_weather, look, add"
    assert client.history[2:4] == [wrong("c1", told, "get_wether"), gave("c2")]


BAD_ARGUMENTS = [
    ('{"at": "Os', "the arguments are not valid JSON"),
    ('["Oslo"]', "the arguments are not a JSON object but list"),
    ('{"at": 5}', "invalid arguments"),
    ('{"at": "Oslo"}{"at": "Rome"}', "the arguments are not valid JSON"),
]


@pytest.mark.parametrize(("arguments", "told"), BAD_ARGUMENTS)
def test_bad_arguments_are_told_to_the_model_and_replayed_as_an_object(auto, arguments, told):
    """arg-06, arg-10, arg-14, hist-06, R-147 [Q], harness.md 2.4, design.md 7.5."""
    ran = []
    client, server = auto(answer(calls=[call("look", arguments, id="c1")]), "sorry", "fine", tools=[looking(ran)])
    assert (client.ask("q"), ran, client.ask("r")) == ("sorry", [], "fine")
    result = client.history[2].results[0]
    assert (result.is_error, told in result.content["error"]) == (True, True)
    replayed = server.requests[1].body["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(replayed), dict)


@pytest.mark.parametrize("arguments", ["", "null", "{}", '"{}"'])
def test_no_arguments_are_an_empty_object(auto, arguments):
    """arg-01, arg-02, arg-03; R-184."""
    ran = []
    client, server = auto(answer(calls=[call("look", arguments, id="c1")]), "done", tools=[looking(ran)])
    assert (client.ask("q"), ran) == ("done", [{}])
    assert server.requests[1].body["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_a_failing_tool_is_told_to_the_model(auto):
    """R-50.5, T-18's tool half, promise 7."""

    @tool
    def divide(a: float, b: float) -> float:
        if b < 0:
            raise ToolError("negative numbers are not in stock")
        return a / b

    calls = [call("divide", {"a": 1, "b": b}, id=f"c{b}") for b in (0, -1, 2)]
    client, _ = auto(answer(calls=calls), "done", tools=[divide])
    assert client.ask("q") == "done"
    assert client.history[2:5] == [
        wrong("c0", "ZeroDivisionError: float division by zero", "divide"),
        wrong("c-1", "negative numbers are not in stock", "divide"),
        gave("c2", 0.5),
    ]


def test_a_truncated_call_is_not_run(auto):
    """design.md 7.2, arg-05, promise 2, B-50: not even if its arguments happen to be whole."""
    ran = []
    cut = answer("So ", calls=[call("look", {"at": "x"}, id="c1"), call("look", '{"at":', id="c2")], finish="length")
    client, server = auto(cut, "fine", tools=[looking(ran)])
    assert (client.ask("q"), ran, len(server.requests)) == ("So ", [], 1)
    assert (client.finish_reason, client.finish_reason.is_truncated) == ("length", True)
    result = {"error": "not run: the answer was cut by the output limit"}
    assert client.history[2:] == [gave("c1", result, True), gave("c2", result, True)]
    assert client.ask("r") == "fine"


def test_the_calls_of_a_refused_answer_are_not_run(auto):
    """design.md 4: they get an error result; harness.md 1.10.2."""
    ran = []
    refused = answer(calls=[call("look", id="c1")], finish="content_filter")
    client, server = auto(refused, tools=[looking(ran)])
    assert (client.ask("q"), ran, len(server.requests), client.finish_reason) == ("", [], 1, "content_filter")
    turn = Message.assistant(ToolUseBlock("c1", "look", {}, error="the answer was refused"))
    assert client.history[1:] == [turn, gave("c1", {"error": "not run: the answer was refused"}, True)]


def test_an_unknown_reason_is_kept_word_for_word_and_calls_decide_by_their_presence(auto):
    """B-52, R-86, design.md 7.2."""
    odd = answer(calls=[call("look", id="c1")], finish="stop")
    client, _ = auto(odd, answer("done", finish="insufficient_system_resource"))
    assert (client.ask("q"), client.finish_reason) == ("done", "insufficient_system_resource")


# Rounds that fail


def test_an_error_in_a_later_round_leaves_the_finished_ones(auto):
    """T-18, R-48 as design.md 7.7 has it; B-54."""
    client, server = auto(LOOKS, failure(500), "42")
    client.send("q")
    with pytest.raises(APIError) as caught:
        heard(client)
    turn = Message.assistant("let me see", ToolUseBlock("c1", "look", {}))
    assert (caught.value.status, heard(client), client.finish_reason) == (500, [], None)
    assert client.history == [Q, turn, gave("c1")]
    assert client.ask("") == "42"
    assert server.requests[1].body == server.requests[2].body


def test_a_paused_turn_is_sent_back_at_most_five_times(auto):
    """design.md 7.15."""
    pause = answer("hm", finish="pause_turn")
    client, server = auto(pause, "done")
    assert (client.ask("q"), client.finish_reason) == ("done", "stop")
    assert client.history == [Q, Message.assistant("hm"), Message.assistant("done")]
    client, server = auto(*[pause] * 9)
    assert (client.ask("q"), client.finish_reason, len(server.requests)) == ("hm", "pause_turn", 6)
