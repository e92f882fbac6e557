"""The limits of a run in auto mode: rounds, calls, size of the results, and the final answer without tools."""

import pytest

from openagent import Message, Tool, ToolUseBlock
from openagent.testing import answer, call

LOOKS = answer("let me see", calls=[call("look", id="c1")])


def looking(ran):
    """A tool that tells what it was given."""
    return Tool("look", "Look", {}, lambda arguments: ran.append(arguments) or "seen")


@pytest.fixture
def auto(serve, connect):
    """A client in auto mode with a script, and its server."""

    def start(*script, **settings):
        server = serve(*script)
        return connect(server, auto_execute_tools=True, **({"tools": [looking([])]} | settings)), server

    return start


def gave(id, content="seen", is_error=False):
    return Message.tool_result(id, content, is_error=is_error)


def heard(client):
    return [block.text for block in client.receive()]


def test_at_the_limit_of_rounds_the_model_answers_without_tools(auto):
    """T-13 as design.md 4 has it; R-43, B-53; harness.md 1.4, 7.11: the instruction in that request only."""
    more = answer("more", calls=[call("look", id="c2")])
    client, server = auto(LOOKS, more, "enough", "fine", max_tool_iterations=2, system_prompt="S")
    client.send("q")
    assert heard(client) == ["enough"]
    assert (client.finish_reason, client.finish_reason.raw, client.finish_reason.is_truncated) == (
        "max_tool_iterations",
        "stop",
        False,
    )
    assert [("tools" in request.body) for request in server.requests] == [True, True, False]
    system = [request.body["messages"][0]["content"] for request in server.requests]
    assert system[:2] == ["S", "S"]
    assert system[2].startswith("S\n\nYou have used all the rounds of tool calls")
    client.ask("r")
    assert server.requests[3].body["messages"][0]["content"] == "S"
    assert [message.role for message in client.history] == [
        "user",
        *["assistant", "tool"] * 2,
        "assistant",
        "user",
        "assistant",
    ]


def test_calls_in_the_final_round_are_answered_and_end_the_run(auto):
    """harness.md 1.10.5, 7.11; T-14, R-42: no call is removed from a turn that is kept."""
    client, server = auto(LOOKS, answer("t", calls=[call("look", id="c2")]), max_tool_iterations=1)
    client.send("q")
    assert heard(client) == ["t"]
    refused = gave("c2", {"error": "not run: no tools were offered for this answer"}, is_error=True)
    assert client.history[-2:] == [Message.assistant("t", ToolUseBlock("c2", "look", {})), refused]
    assert (client.finish_reason, client.finish_reason.raw, len(server.requests)) == (
        "max_tool_iterations",
        "tool_calls",
        2,
    )


def test_without_final_response_the_run_stops_at_the_limit(auto):
    """design.md 4; R-44."""
    client, server = auto(LOOKS, "next", max_tool_iterations=1, final_response=False)
    client.send("q")
    assert heard(client) == ["let ", "me ", "see"]
    assert (client.finish_reason, client.finish_reason.raw, len(server.requests)) == (
        "max_tool_iterations",
        "tool_calls",
        1,
    )
    assert client.history[2:] == [gave("c1")]
    assert client.ask("") == "next"


def test_at_the_limit_of_calls_the_rest_of_the_round_is_refused(auto):
    """harness.md 1.3, 7.12: every call gets a result; broken calls count; then the final round."""
    ran = []
    calls = [call("loook", id="c1"), call("look", id="c2"), call("look", id="c3")]
    client, server = auto(answer(calls=calls), "enough", "fine", max_tool_calls=2, tools=[looking(ran)])
    assert client.ask("q") == "enough"
    assert ran == [{}]
    assert [result.is_error for message in client.history for result in message.results] == [True, False, True]
    assert client.history[4].results[0].content["error"].startswith("not run. You have made all the tool calls")
    assert "You have made all the tool calls" in server.requests[1].body["messages"][0]["content"]
    assert (client.finish_reason, "tools" in server.requests[1].body) == ("max_tool_iterations", False)


def test_the_limit_of_result_characters_is_soft_and_wins(auto):
    """harness.md 1.3: the result that crosses it stays whole; exactly at the limit is not above it."""
    calls = answer(calls=[call("look", id=id) for id in ("c1", "c2", "c3")])
    client, server = auto(calls, "enough", max_tool_result_chars=5, max_tool_calls=2)
    assert client.ask("q") == "enough"
    assert client.history[2:4] == [gave("c1"), gave("c2")]
    assert client.history[4].results[0].content["error"].startswith("not run. The tool results have reached the size")
    assert "The tool results have reached the size" in server.requests[1].body["messages"][0]["content"]
    client, _ = auto(LOOKS, "done", max_tool_result_chars=4)
    assert (client.ask("q"), client.finish_reason) == ("done", "stop")


def test_limits_count_over_one_exchange(auto):
    """harness.md 1.2: state per run."""
    client, server = auto(LOOKS, "a", LOOKS, "b", max_tool_calls=2, max_tool_result_chars=6, max_tool_iterations=2)
    assert (client.ask("q"), client.finish_reason, client.ask("r"), client.finish_reason) == ("a", "stop", "b", "stop")
    assert all("tools" in request.body for request in server.requests)


def test_no_iterations_means_no_tools(auto):
    """T-15 as design.md 3 has it; a model that calls all the same is told, nothing runs."""
    ran = []
    client, server = auto(LOOKS, max_tool_iterations=0, tools=[looking(ran)])
    assert (client.ask("q"), ran, "tools" in server.requests[0].body) == ("let me see", [], False)
    assert client.history[2] == gave("c1", {"error": "not run: no tools were offered for this answer"}, is_error=True)
