"""One contract, three adapters: what a provider says is the same, whatever its wire format."""

import json
from dataclasses import replace

import pytest

from openagent import (
    AgentError,
    AgentOptions,
    APIError,
    CallAnnounced,
    ContextOverflowError,
    FinishReason,
    Message,
    ReasoningDelta,
    RoundFinished,
    RunFinished,
    StreamInterruptedError,
    TextBlock,
    TextDelta,
    Tool,
    ToolUseBlock,
)
from openagent.client import ADAPTERS
from openagent.testing import answer, call, failure, raw

LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
HERE, THERE = call("look", {"at": "home"}, id="c1"), call("look", {"at": "Zürich"}, id="c2")


def made(id, input, **more):
    return ToolUseBlock(id, "look", input, **more)


def assistant(*content):
    return Message.assistant(*content)


# For each answer: the deltas that are told, the message, the finish reason, why the run ended.
SAID = {
    "text": (
        answer("Hello my friend"),
        [TextDelta("Hello "), TextDelta("my "), TextDelta("friend")],
        assistant("Hello my friend"),
        ("stop", "completed"),
    ),
    "any characters": (
        answer(chunk_text=['{"é": "\u2028\r\n', "\ud83d", "\ude00"]),  # a character cut in two
        [TextDelta('{"é": "\u2028\r\n'), TextDelta("\N{GRINNING FACE}")],
        assistant('{"é": "\u2028\r\n\N{GRINNING FACE}'),
        ("stop", "completed"),
    ),
    "thoughts": (
        answer("Yes.", reasoning="Is it so?"),
        [ReasoningDelta("Is "), ReasoningDelta("it "), ReasoningDelta("so?"), TextDelta("Yes.")],
        assistant("Yes."),
        ("stop", "completed"),
    ),
    "a call": (
        answer(calls=[HERE]),
        [CallAnnounced("c1", "look")],
        assistant(made("c1", {"at": "home"})),
        ("tool_calls", "completed"),
    ),
    "all at once": (
        answer("Look:", reasoning="Where?", calls=[HERE, THERE, call("look", id="c3")]),
        [ReasoningDelta("Where?"), TextDelta("Look:"), *(CallAnnounced(f"c{n}", "look") for n in (1, 2, 3))],
        assistant("Look:", made("c1", {"at": "home"}), made("c2", {"at": "Zürich"}), made("c3", {})),
        ("tool_calls", "completed"),
    ),
    "arguments that are no object": (
        answer(calls=[call("look", "[1]", id="c1")]),
        [CallAnnounced("c1", "look")],
        assistant(made("c1", {}, raw_arguments="[1]", error="the arguments are not a JSON object but list")),
        ("tool_calls", "completed"),
    ),
    "a text cut by the limit": (
        answer("Once upon", finish="length"),
        [TextDelta("Once "), TextDelta("upon")],
        assistant("Once upon"),
        ("length", "truncated"),
    ),
    "an answer that is withheld": (
        answer("I will", finish="content_filter"),
        [TextDelta("I "), TextDelta("will")],
        assistant("I will"),
        ("content_filter", "refused"),
    ),
}


def bare(value):
    """The message, or the event with its message, without what differs by wire: state and raw counts."""
    if isinstance(value, Message):
        content = [replace(b, provider_state=None) if isinstance(b, ToolUseBlock) else b for b in value.content]
        return Message(value.role, content)
    if isinstance(value, RoundFinished):
        counts = value.usage and (value.usage.input_tokens, value.usage.output_tokens)
        return RoundFinished(value.number, str(value.finish_reason), counts, bare(value.message), value.response.model)
    if isinstance(value, RunFinished):
        counts = value.usage and (value.usage.input_tokens, value.usage.output_tokens)
        return RunFinished(value.cause, str(value.finish_reason), counts)
    return value


def events(client, prompt="q"):
    client.send(prompt)
    return [bare(event) for event in client.events()]


def ended(message, finish, cause, counts=(7, 5)):
    return [RoundFinished(1, finish, counts, message, "m"), RunFinished(cause, finish, counts)]


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("name", SAID)
def test_an_answer_is_the_same_on_every_wire(serve, connect, protocol, name):
    item, deltas, message, (finish, cause) = SAID[name]
    client = connect(serve(item), protocol=protocol, tools=[LOOK], include_reasoning=True)
    assert events(client) == [*deltas, *ended(message, finish, cause)]
    assert [bare(entry) for entry in client.history] == [Message.user("q"), message]
    assert (type(client.finish_reason), client.finish_reason) == (FinishReason, finish)


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize(
    "how", [{"stream": False}, {"framing": "close"}, {"newline": "\r\n"}, {"frames_per_chunk": 99}]
)
def test_an_answer_is_the_same_however_it_comes(serve, connect, protocol, how):
    item, _, message, (finish, cause) = SAID["all at once"]
    client = connect(serve(replace(item, **how)), protocol=protocol, tools=[LOOK], include_reasoning=True)
    assert events(client)[-2:] == ended(message, finish, cause)
    assert client.reasoning == "Where?"


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_call_cut_by_the_limit_is_kept_and_marked(serve, connect, protocol):
    client = connect(serve(answer(calls=[call("look", '{"at": "ho', id="c1")], finish="length")), protocol=protocol)
    *_, finished, run = events(client)
    (block,) = finished.message.calls
    assert (block.id, block.input, block.raw_arguments, block.error is None) == ("c1", {}, '{"at": "ho', False)
    assert run == RunFinished("truncated", "length", (7, 5))


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_usage_that_is_not_sent_is_none(serve, connect, protocol):
    client = connect(serve(answer("Hi", usage=None)), protocol=protocol)
    assert events(client)[-2:] == ended(assistant("Hi"), "stop", "completed", None)
    assert client.usage is None


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("first", [name for name in SAID if name != "text"])
def test_nothing_of_an_answer_is_left_in_the_next(serve, connect, protocol, first):
    item, deltas, message, (finish, cause) = SAID["text"]
    client = connect(serve(SAID[first][0], item), protocol=protocol, tools=[LOOK], include_reasoning=True)
    events(client)
    assert events(client, "r") == [*deltas, *ended(message, finish, cause)]
    assert (client.reasoning, client.partial, bare(client.history[-1])) == (None, [], message)


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_nothing_of_a_broken_answer_is_left_in_the_next(serve, connect, protocol):
    item, deltas, message, (finish, cause) = SAID["text"]
    broken = answer("Half", reasoning="Hm.", calls=[HERE], done=False, finish="unspecified")
    client = connect(serve(broken, item), protocol=protocol, include_reasoning=True)
    with pytest.raises(StreamInterruptedError):
        events(client)
    assert events(client) == [*deltas, *ended(message, finish, cause)]
    assert client.reasoning is None


KEY = "sk-very-secret"
KEY_HEADERS = {
    "openai-chat": {"authorization": f"Bearer {KEY}"},
    "openai-responses": {"authorization": f"Bearer {KEY}"},
    "anthropic": {"x-api-key": KEY},
}


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_the_key_is_in_its_header_and_nowhere_else(serve, connect, protocol):
    server = serve(answer(calls=[HERE]), "done", "again")
    client = connect(server, protocol=protocol, api_key=KEY, tools=[LOOK], auto_execute_tools=True)
    client.ask("q")
    for request in server.requests:
        assert {name: value for name, value in request.headers.items() if KEY in value} == KEY_HEADERS[protocol]
        assert KEY not in request.path
        assert KEY.encode() not in request.raw
    assert KEY not in json.dumps([message.to_dict() for message in client.history])
    client.options = client.options.replace(api_key="")
    client.ask("r")
    assert not {"authorization", "x-api-key"} & server.requests[-1].headers.keys()


def said_half(protocol):
    """The first frames of an answer that says 'Half'."""
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return {
        "openai-chat": [{"choices": [{"index": 0, "delta": {"content": "Half"}}]}],
        "openai-responses": [{"type": "response.output_text.delta", "output_index": 0, "delta": "Half"}],
        "anthropic": [
            block,
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}},
        ],
    }[protocol]


def told_error(protocol, word, message):
    """A frame that says that something went wrong, in the words of the wire."""
    return {
        "openai-chat": {"error": {"message": message, "type": word, "code": word}},
        "openai-responses": {"type": "error", "code": word, "message": message, "param": None},
        "anthropic": {"type": "error", "error": {"type": word, "message": message}},
    }[protocol]


def frames(*payloads):
    return raw(*(f"data: {json.dumps(payload)}\n\n" for payload in payloads))


TOLD = {
    ("overloaded_error", "we are overloaded"): (APIError, True),
    ("rate_limit_error", "too many tokens per minute"): (APIError, True),
    ("invalid_request_error", "no such thing"): (APIError, False),
    ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"): (ContextOverflowError, False),
}


def failed(client):
    with pytest.raises(AgentError) as caught:
        list(client.stream("q"))
    assert client.history == [Message.user("q")]
    return caught.value


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize(("word", "message"), TOLD)
def test_an_error_within_the_stream_is_the_same_on_every_wire(serve, connect, protocol, word, message):
    told = told_error(protocol, word, message)
    client = connect(serve(frames(*said_half(protocol), told), frames(told)), protocol=protocol)
    error = failed(client)
    assert (type(error), error.retryable) == TOLD[word, message]
    assert (message in str(error), error.blocks) == (True, [TextBlock("Half")])
    error = failed(client)
    assert (type(error), error.retryable, error.blocks) == (*TOLD[word, message], [])


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize(
    "how", [{"end": "normal"}, {"end": "abrupt"}, {"end": "reset"}, {"end": "abrupt", "framing": "close"}]
)
def test_an_answer_that_breaks_off_is_the_same_on_every_wire(serve, connect, protocol, how):
    client = connect(serve(replace(frames(*said_half(protocol)), **how)), protocol=protocol)
    error = failed(client)
    assert (type(error), error.retryable, error.blocks) == (StreamInterruptedError, False, [TextBlock("Half")])


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_call_that_breaks_off_is_not_handed_out(serve, connect, protocol):
    item = answer("So:", calls=[HERE, THERE], done=False, finish="unspecified")
    client = connect(serve(item), protocol=protocol, tools=[LOOK])
    error = failed(client)
    assert (type(error), error.retryable, error.blocks) == (StreamInterruptedError, False, [TextBlock("So:")])


REFUSED = {
    400: (APIError, False),
    401: (APIError, False),
    404: (APIError, False),
    429: (APIError, True),
    500: (APIError, True),
    529: (APIError, True),
}


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("status", REFUSED)
def test_a_refused_request_is_the_same_error_on_every_wire(serve, connect, protocol, status):
    error = failed(connect(serve(failure(status, "we say no")), protocol=protocol))
    assert (type(error), error.retryable) == REFUSED[status]
    assert (error.status, "we say no" in str(error), error.blocks) == (status, True, [])


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_prompt_that_is_too_long_is_the_same_error_on_every_wire(serve, connect, protocol):
    error = failed(connect(serve(failure(400, "prompt is too long: 9 tokens > 8 maximum")), protocol=protocol))
    assert (type(error), error.status, error.retryable) == (ContextOverflowError, 400, False)


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_round_sends_what_an_adapter_made_anew_would_send(protocol):
    """Rows are kept from round to round, unless the conversation was changed in between."""
    options = AgentOptions(model="m", base_url="http://localhost/v1", protocol=protocol)
    call = ToolUseBlock("c", "add", {"a": 1})
    asked, said = [Message.user("q")], [Message.assistant("I add.", call), Message.tool_result("c", 2)]
    kept = ADAPTERS[protocol](options, asked, [], None)
    for messages in (asked, asked + said, [Message.user("else"), *said], [Message.user("short")]):
        kept.messages[:] = messages
        anew = ADAPTERS[protocol](options, messages, [], None)
        assert kept.encode(None, False) == anew.encode(None, False)
