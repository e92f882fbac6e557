"""Calls that a server left in the text."""

import json

import pytest

from openagent import Message, TextDelta, tool
from openagent.testing import answer


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


CALL = json.dumps({"name": "add", "arguments": {"a": 1, "b": 2}})
LEFT = [CALL, f"\n{CALL} ", f"<tool_call>\n{CALL}\n</tool_call>"]
TALK = [
    f"You could use {CALL}",
    f"<tool_call>{CALL}</tool_call> is how it is written.",
    json.dumps({"name": "sub", "arguments": {}}),
    json.dumps({"name": "add", "arguments": {}, "why": "an example"}),
    json.dumps({"name": "add", "arguments": "1, 2"}),
    json.dumps({"name": "Ann"}),
    "{ braces }",
    "<tool_call>add</tool_call>",
]


@pytest.fixture
def ask(serve, connect):
    def run(text, **settings):
        server = serve(answer(chunk_text=[text[:3], text[3:]]), "It is 3.")
        client = connect(server, tools=[add], auto_execute_tools=True, **settings)
        return client.ask("q"), client, server

    return run


@pytest.mark.parametrize("text", LEFT)
def test_a_call_in_the_text_is_run_if_that_is_asked_for(ask, text):
    said, client, server = ask(text, rescue_tool_calls=True)
    assert said == "It is 3."
    (block,) = client.history[1].calls
    assert client.history[1:3] == [Message.assistant(block), Message.tool_result(block.id, 3)]
    assert server.requests[1].body["messages"][1]["tool_calls"][0]["id"] == block.id


@pytest.mark.parametrize("text", LEFT)
def test_it_is_never_run_by_default(ask, text):
    said, client, _ = ask(text)
    assert (said, client.history[1].calls) == (text, [])


@pytest.mark.parametrize("text", TALK)
def test_a_text_that_talks_about_a_call_stays_text(ask, text):
    said, client, _ = ask(text, rescue_tool_calls=True)
    assert (said, client.history) == (text, [Message.user("q"), Message.assistant(text)])


def test_two_calls_in_the_text_are_two_calls(ask):
    said, client, _ = ask(f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", rescue_tool_calls=True)
    assert (said, len(client.history[1].calls)) == ("It is 3.", 2)


def test_a_text_that_can_be_no_call_is_live(serve, connect):
    client = connect(serve(answer(chunk_text=["It", " is", " 3."])), tools=[add], rescue_tool_calls=True)
    client.send("q")
    assert [event.text for event in client.events() if isinstance(event, TextDelta)] == ["It", " is", " 3."]


def test_a_call_that_was_cut_is_not_run(serve, connect):
    client = connect(serve(answer(CALL, finish="length")), tools=[add], rescue_tool_calls=True)
    assert client.ask("q") == CALL
