"""How much a server may send: each limit is a setting, and the error names it."""

import json

import pytest

from openagent import APIError, ConfigError, InvalidResponseError, Limits, Message, Tool
from openagent.client import ADAPTERS
from openagent.codec import MAX_DEPTH
from openagent.testing import answer, call, failure, raw

LOOK = Tool("look", "", {}, lambda arguments: len(arguments))
WORDS = "word " * 20
LONG = {"at": "x" * 100}
JSON = {"Content-Type": "application/json"}
DEEP = '{"a":' * 20 + "1" + "}" * 20


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "10", None])
def test_a_limit_is_a_whole_number_above_zero(value):
    with pytest.raises(ConfigError, match="calls"):
        Limits(calls=value)


def test_depth_cannot_be_raised():
    with pytest.raises(ConfigError, match=f"json_depth {MAX_DEPTH + 1} must be at most {MAX_DEPTH}"):
        Limits(json_depth=MAX_DEPTH + 1)


def test_limits_must_be_limits(connect, serve):
    with pytest.raises(ConfigError, match="limits"):
        connect(serve(), limits={"calls": 1})


HUGE = {
    "answer_chars": answer(WORDS),
    "answer_chars of reasoning": answer("x", reasoning=WORDS),
    "argument_chars": answer(calls=[call("look", LONG)]),
    "argument_chars of all calls": answer(calls=[call("look", {"a": "x" * 20})] * 3),
    "calls": answer(calls=[call("look")] * 21),
    "event_bytes": raw(b"data: {" + b" " * 3000),
    "event_bytes of a line": raw(*[b"x" * 100] * 30, headers={}),
    "answer_bytes of blanks": raw(*[b"\n" * 1000] * 60),
    "answer_bytes": raw(*[b": heartbeat heartbeat\n\n"] * 2500),
    "document_bytes": raw(b"{" + b" " * 3000, headers=JSON),
    "json_depth": raw(f"data: {DEEP}\n\n"),
    "json_depth of a document": raw(DEEP, headers=JSON),
}
LIMITS = Limits(
    answer_chars=50,
    argument_chars=50,
    calls=20,
    event_bytes=2900,
    answer_bytes=50_000,
    document_bytes=2900,
    json_depth=15,
)


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("what", HUGE)
def test_beyond_a_limit_is_an_error_that_names_it_and_the_client_goes_on(serve, connect, what, protocol):
    """Issue 4.5, sse-21: nothing of it is kept, run or asked for again."""
    ran = []
    tools = [Tool("look", "", {}, ran.append)]
    client = connect(serve(HUGE[what], "fine"), protocol=protocol, limits=LIMITS, tools=tools, auto_execute_tools=True)
    name = what.split()[0]
    with pytest.raises(
        InvalidResponseError, match=rf"more than {getattr(LIMITS, name)} .*\(the limit {name}\)"
    ) as caught:
        client.ask("q")
    assert (caught.value.retryable, ran, client.history) == (False, [], [Message.user("q")])
    assert (client.ask("q"), client.history[-1]) == ("fine", Message.assistant("fine"))


LAST_EVENTS = {
    "openai-chat": {"choices": [{"index": 0, "delta": {"content": WORDS}, "finish_reason": "stop"}]},
    "openai-responses": {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": WORDS},
    "anthropic": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORDS}},
}


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_limit_counts_for_a_last_event_without_its_blank_line(serve, connect, protocol):
    """Issue 4.5: it is no broken stream, which would be asked for again."""
    events = [{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]
    events = [*events * (protocol == "anthropic"), LAST_EVENTS[protocol]]
    body = "\n\n".join(f"data: {json.dumps(event)}" for event in events)
    client = connect(serve(raw(body)), protocol=protocol, limits=LIMITS)
    with pytest.raises(InvalidResponseError, match="the limit answer_chars"):
        client.ask("q")


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_up_to_the_limits_an_answer_is_heard(serve, connect, protocol):
    turn = answer("x" * 30, reasoning="y" * 20, calls=[call("look", {"a": "x" * 17}), call("look", {"a": "x" * 17})])
    client = connect(serve(turn, "fine"), protocol=protocol, limits=LIMITS, tools=[LOOK], auto_execute_tools=True)
    assert client.ask("q") == "fine"
    assert [call.input for call in client.history[1].calls] == [{"a": "x" * 17}] * 2


def test_arguments_that_are_too_deep_are_told_to_the_model(serve, connect):
    """Promise 7: they are text within the event, so only the call is spoilt."""
    client = connect(
        serve(answer(calls=[call("look", DEEP)]), "sorry"), limits=Limits(json_depth=15), auto_execute_tools=True
    )
    client.tools["look"] = LOOK
    assert client.ask("q") == "sorry"
    assert "nested too deeply" in client.history[2].results[0].content["error"]


def test_of_an_error_no_more_is_read_than_its_limit(serve, connect, eventually):
    server = serve(failure(500, body=b"x" * 10_000_000))
    client = connect(server, limits=Limits(error_body_bytes=1000))
    with pytest.raises(APIError, match="API error 500") as caught:
        client.ask("q")
    assert len(caught.value.body) <= 2000
    assert eventually(lambda: server.open_connections == 0)
