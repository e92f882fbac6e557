"""Everything that happens, as it happens: events(), stream(), ask() and query() over one cursor."""

import dataclasses
import gc

import pytest

from openagent import (
    APIError,
    CallAnnounced,
    CallFinished,
    CallStarted,
    ConfigError,
    HookDecision,
    Hooks,
    Message,
    ReasoningDelta,
    Response,
    RoundFinished,
    RunFinished,
    StreamInterruptedError,
    TextBlock,
    TextDelta,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    query,
)
from openagent.testing import answer, call, failure

LOOK = Tool("look", "", {}, lambda arguments: "seen")
C1 = ToolUseBlock("c1", "look", {})
LOOKS = answer("hm", calls=[call("look", id="c1")])


def usage(input_tokens=7, output_tokens=5):
    return Usage(input_tokens, output_tokens)


def plain(events):
    """The events without seconds and without the server's own numbers, which are tested by themselves."""
    for event in events:
        if isinstance(event, CallFinished):
            event = dataclasses.replace(event, seconds=0)
        if isinstance(event, (RoundFinished, RunFinished)) and event.usage:
            event = dataclasses.replace(event, usage=dataclasses.replace(event.usage, raw=None))
        yield event


def response(number):
    return Response(f"chatcmpl_{number}", "m", f"req_{number}", {})


def round_finished(number, reason, *content):
    return RoundFinished(number, reason, usage(), Message.assistant(*content), response(number))


def test_events_in_manual_mode(serve, connect):
    """design.md 3: the calls are in the round's message."""
    client = connect(serve(LOOKS, "done"))
    client.send("q")
    assert list(plain(client.events())) == [
        TextDelta("hm"),
        CallAnnounced("c1", "look"),
        round_finished(1, "tool_calls", "hm", C1),
        RunFinished("completed", "tool_calls", usage()),
    ]
    assert list(client.events()) == []
    assert client.history == [Message.user("q"), Message.assistant("hm", C1)]


def test_events_in_auto_mode(serve, connect):
    """design.md 3; 4.2 item 9: the text of every round, the calls as they run, each round's end."""
    client = connect(serve(LOOKS, answer(chunk_text=["4", "2"])), tools=[LOOK], auto_execute_tools=True)
    client.send("q")
    assert list(plain(client.events())) == [
        TextDelta("hm"),
        CallAnnounced("c1", "look"),
        CallStarted(C1),
        CallFinished(C1, ToolResultBlock("c1", "seen"), 0),
        round_finished(1, "tool_calls", "hm", C1),
        TextDelta("4"),
        TextDelta("2"),
        round_finished(2, "stop", "42"),
        RunFinished("completed", "stop", usage(14, 10)),
    ]


def test_a_call_that_does_not_run_has_no_start(serve, connect):
    """design.md 3: CallStarted holds the input that the tool really gets."""
    hooks = Hooks().add_pre_tool_use(
        lambda event: HookDecision.block("no") if event.tool_use_id == "c1" else HookDecision.modify_input({"at": 1})
    )
    script = answer(calls=[call("look", id="c1"), call("look", id="c2"), call("loook", id="c3")]), "done"
    client = connect(serve(*script), tools=[LOOK], auto_execute_tools=True, hooks=hooks)
    client.send("q")
    calls = [event for event in client.events() if isinstance(event, (CallStarted, CallFinished))]
    changed = ToolUseBlock("c2", "look", {"at": 1})
    assert [(type(event), event.call) for event in calls] == [
        (CallFinished, C1),
        (CallStarted, changed),
        (CallFinished, changed),
        (CallFinished, ToolUseBlock("c3", "loook", {})),
    ]
    assert [event.result.is_error for event in calls if isinstance(event, CallFinished)] == [True, False, True]


CAUSES = [
    ("completed", "stop", {}, ["a"]),
    ("truncated", "length", {}, [answer("a", finish="length")]),
    ("refused", "content_filter", {}, [answer("a", finish="content_filter")]),
    ("limit", "max_tool_iterations", {}, [LOOKS, "a"]),
    ("limit", "max_tool_iterations", {"final_response": False}, [LOOKS]),
    ("limit", "max_tool_iterations", {}, [LOOKS, answer("a", finish="length")]),
]


@pytest.mark.parametrize(("cause", "reason", "settings", "script"), CAUSES)
def test_the_last_event_says_why_the_run_ended(serve, connect, cause, reason, settings, script):
    """design.md 3 and 4; harness.md 1.10.2."""
    client = connect(serve(*script), tools=[LOOK], auto_execute_tools=True, max_tool_iterations=1, **settings)
    client.send("q")
    last = list(client.events())[-1]
    assert (last.cause, last.finish_reason, client.finish_reason) == (cause, reason, reason)


def test_all_readers_share_one_cursor(serve, connect):
    """design.md 3."""
    client = connect(serve(answer(chunk_text=list("abcdef"))))
    texts = client.stream("q")
    assert [next(texts), next(texts)] == ["a", "b"]
    assert next(client.events()) == TextDelta("c")
    assert next(client.receive()) == TextBlock("d")
    assert next(texts) == "e"
    assert [type(event) for event in client.events()] == [TextDelta, RoundFinished, RunFinished]
    assert list(texts) == list(client.receive()) == []
    assert client.history == [Message.user("q"), Message.assistant("abcdef")]


def test_stream_sends_at_once(serve, connect):
    """design.md 3: what the server refuses is raised by the call itself."""
    server = serve(failure(401), "Hello")
    client = connect(server)
    with pytest.raises(APIError):
        client.stream("q")
    assert list(client.stream("q")) == ["Hello"]
    assert len(server.requests) == 2


def test_numbers_are_summed_over_the_rounds_of_the_latest_request(serve, connect):
    """design.md 3; harness.md 7.5: over the numbers that came; None if none came."""
    cached = {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    rounds = [answer(calls=[call("look")], usage=(10, 1)), answer(calls=[call("look")], usage=None)]
    client = connect(
        serve(*rounds, answer("done", usage=cached), answer("x", usage=None)), tools=[LOOK], auto_execute_tools=True
    )
    assert client.usage is None
    client.send("q")
    told = [event.usage for event in client.events() if isinstance(event, (RoundFinished, RunFinished))]
    assert [number and (number.input_tokens, number.output_tokens, number.cache_read_tokens) for number in told] == [
        (10, 1, None),
        None,
        (3, None, 2),
        (13, 1, 2),
    ]
    assert (client.usage, client.usage.raw) == (told[-1], cached)
    client.ask("r")
    assert client.usage is None


def test_a_round_tells_what_the_server_said_about_it(serve, connect):
    """design.md 3; 4.2 item 12."""
    headers = {"x-ratelimit-remaining-requests": "9", "X-RateLimit-Reset": "1s", "X-Request-Id": "r-1", "Other": "x"}
    client = connect(serve(answer("a", headers=headers, model="m-2025")))
    client.send("q")
    told = next(event.response for event in client.events() if isinstance(event, RoundFinished))
    limits = {"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset": "1s"}
    assert told == Response("chatcmpl_1", "m-2025", "r-1", limits)


# Reasoning


def test_reasoning_has_a_channel_of_its_own(serve, connect):
    """R-90, R-92, R-93, B-55: never text, never a block of the history."""
    client = connect(serve(answer("42", reasoning="let me think")), include_reasoning=True)
    client.send("q")
    assert [event for event in client.events() if not isinstance(event, (RoundFinished, RunFinished))] == [
        *map(ReasoningDelta, ("let ", "me ", "think")),
        TextDelta("42"),
    ]
    assert client.reasoning == "let me think"
    assert client.history[1].content == [TextBlock("42")]


def test_reasoning_is_off_by_default(serve, connect):
    """R-92, B-55."""
    client = connect(serve(answer("42", reasoning="let me think")))
    client.send("q")
    assert [type(event) for event in client.events()] == [TextDelta, RoundFinished, RunFinished]
    assert client.reasoning is None


def test_reasoning_adds_up_over_rounds_and_starts_anew_with_each_request(serve, connect):
    """R-47, R-95, B-57."""
    first = answer(calls=[call("look")], reasoning="look ")
    client = connect(
        serve(first, answer("a", reasoning="tell"), "b"), tools=[LOOK], auto_execute_tools=True, include_reasoning=True
    )
    assert (client.ask("q"), client.reasoning) == ("a", "look tell")
    assert (client.ask("r"), client.reasoning) == ("b", None)


def test_an_answer_of_reasoning_alone_is_no_message(serve, connect):
    """R-94, S-11."""
    client = connect(serve(answer(reasoning="endless", finish="length")))
    assert (client.ask("q"), client.finish_reason, client.history) == ("", "length", [Message.user("q")])


# query()


def test_a_query_yields_the_events_of_one_request(serve, connect):
    """R-80, R-81: tools are offered, never run; no hooks, no history."""
    asked = []
    hooks = Hooks([asked.append], [asked.append], [asked.append])
    server = serve(LOOKS)
    options = connect(server, tools=[LOOK], hooks=hooks, auto_execute_tools=True, system_prompt="S").options
    assert list(plain(query("q", options))) == [
        TextDelta("hm"),
        CallAnnounced("c1", "look"),
        round_finished(1, "tool_calls", "hm", C1),
        RunFinished("completed", "tool_calls", usage()),
    ]
    assert (asked, len(server.requests)) == ([], 1)
    assert server.requests[0].body["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "q"},
    ]
    assert [tool["function"]["name"] for tool in server.requests[0].body["tools"]] == ["look"]


def test_a_query_that_the_server_refuses_is_raised_before_there_is_an_iterator(serve, connect):
    """R-83."""
    options = connect(serve(failure(401))).options
    with pytest.raises(APIError):
        query("q", options)
    for wrong in ("", 5):
        with pytest.raises(ConfigError):
            query(wrong, options)


def test_a_query_whose_stream_breaks_raises_and_stops(serve, connect):
    """R-82."""
    events = query("q", connect(serve(answer(chunk_text=["Hel", "lo"], cut=600))).options)
    with pytest.raises(StreamInterruptedError):
        list(events)
    assert list(events) == []


@pytest.mark.parametrize("heard", [0, 1])
def test_a_query_that_is_left_closes_its_connection(serve, connect, eventually, heard):
    """http-09: also one that was never read."""
    server = serve(answer(chunk_text=["a", "b"], hold=30))
    events = query("q", connect(server).options)
    assert [next(events) for _ in range(heard)] == [TextDelta("a")][:heard]
    del events
    gc.collect()
    assert eventually(lambda: server.open_connections == 0)
