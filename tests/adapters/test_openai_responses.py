"""OpenAI Responses: requests as values, turns from bytes, and whole exchanges with a strict server."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openagent import (
    AgentOptions,
    APIError,
    Client,
    ConfigError,
    ContextOverflowError,
    FinishReason,
    ImageBlock,
    InvalidResponseError,
    Message,
    StreamInterruptedError,
    TextBlock,
    Tool,
    ToolUseBlock,
    Usage,
    codec,
)
from openagent.adapters import sealed
from openagent.adapters.openai_responses import OpenAIResponses
from openagent.adapters.openai_responses_turn import ResponsesTurn
from openagent.decoding import BodyDecoder
from openagent.events import CallAnnounced, ReasoningDelta, Response, TextDelta, TurnFinished, spread
from openagent.testing import ScriptedServer, answer, call, raw

BASE = "https://api.example.com/v1"
PROVIDER = "openai-responses api.example.com"
LOOK_UP = Tool("look_up", "Looks up a place.", {"place": "string"})
SEARCH = Tool.hosted({"type": "web_search", "search_context_size": "low"})
Q = Message.user("q")


def adapter(*messages, **settings):
    options = AgentOptions(**{"model": "m", "base_url": BASE, "protocol": "openai-responses"} | settings)
    OpenAIResponses.check(options)
    return OpenAIResponses(options, messages or [Q], list(options.registry.values()), lambda *_: iter(()))


def body(*messages, instruction=None, include_tools=True, **settings):
    made = adapter(*messages, **settings)
    return json.loads(made.encode(instruction, include_tools and bool(made.tools)).body)


def items(*messages, **settings):
    return body(*messages, **settings)["input"]


# Requests


def test_a_plain_request_stores_nothing_and_asks_for_encrypted_reasoning():
    request = adapter(api_key="k").encode(None, False)
    assert request.url == "https://api.example.com/v1/responses"
    assert request.headers == {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Authorization": "Bearer k",
    }
    assert json.loads(request.body) == {
        "model": "m",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_every_setting_has_its_place():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    sent = body(
        system_prompt="Be brief.",
        max_tokens=99,
        temperature=0.5,
        top_p=0.9,
        reasoning_effort="low",
        include_reasoning=True,
        response_format=schema,
        tools=[LOOK_UP, SEARCH],
        tool_choice="required",
        parallel_tool_calls=False,
        extra_body={"store": True, "metadata": {"a": "b"}},
    )
    del sent["input"]
    assert sent == {
        "model": "m",
        "stream": True,
        "store": True,
        "instructions": "Be brief.",
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 99,
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema}},
        "tools": [
            {
                "type": "function",
                "name": "look_up",
                "description": "Looks up a place.",
                "parameters": LOOK_UP.input_schema,
                "strict": False,
            },
            {"type": "web_search", "search_context_size": "low"},
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "metadata": {"a": "b"},
    }


def test_reasoning_is_only_spoken_of_if_an_effort_is_set():
    assert "reasoning" not in body(include_reasoning=True)
    assert body(reasoning_effort="low")["reasoning"] == {"effort": "low"}


def test_json_without_a_schema_is_a_json_object():
    assert body(response_format="json")["text"] == {"format": {"type": "json_object"}}


def test_the_last_round_has_its_instruction_behind_the_system_prompt_and_no_tools():
    sent = body(instruction="Answer now.", include_tools=False, system_prompt="Be brief.", tools=[LOOK_UP])
    assert sent["instructions"] == "Be brief.\n\nAnswer now."
    assert sent.keys() == {"model", "input", "stream", "store", "instructions", "include"}


@pytest.mark.parametrize(
    ("choice", "first", "later"),
    [
        ("look_up", {"type": "function", "name": "look_up"}, None),
        ("web_search", {"type": "web_search"}, None),
        ("required", "required", None),
        ("auto", "auto", "auto"),
        ("none", "none", "none"),
    ],
)
def test_a_call_is_forced_in_the_first_round_only(choice, first, later):
    made = adapter(tools=[LOOK_UP, SEARCH], tool_choice=choice)
    assert json.loads(made.encode(None, True).body).get("tool_choice") == first
    made.has_recorded = True
    assert json.loads(made.encode(None, True).body).get("tool_choice") == later


def test_the_conversation_is_a_list_of_items():
    image = ImageBlock("https://h/i.png", "low")
    assert items(
        Message.system("Note this."),
        Message.user("look", image),
        Message.assistant("One moment.", ToolUseBlock("c1", "f", {"ä": 1}), ToolUseBlock("c2", "g", {})),
        Message.tool_result("c1", "ok"),
        Message.tool_result("c2", "no such file", is_error=True),
        Message.assistant("Done."),
        Message.user("thanks"),
    ) == [
        {"role": "system", "content": "Note this."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "https://h/i.png", "detail": "low"},
            ],
        },
        {"type": "message", "role": "assistant", "content": "One moment."},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"ä":1}'},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "function_call_output", "call_id": "c2", "output": "Error: no such file"},
        {"type": "message", "role": "assistant", "content": "Done."},
        {"role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
    ]


def test_empty_texts_are_never_sent():
    assert items(
        Message.system(""),
        Message.user("", "q"),
        Message.user(""),
        Message.assistant("", ToolUseBlock("c1", "f", {})),
    ) == [
        {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    ]


def test_call_ids_that_come_back_in_a_later_turn_are_made_distinct():
    """Bedrock counts the calls of each turn from 1."""
    turn = [Message.assistant(ToolUseBlock("call_1", "f", {})), Message.tool_result("call_1", "ok")]
    sent = items(*turn, *turn, *turn)
    assert [item["call_id"] for item in sent] == ["call_1", "call_1", "call_1_2", "call_1_2", "call_1_3", "call_1_3"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"stop": "END"}, r"stop \('END',\)"),
        ({"seed": 0}, "seed 0"),
        ({"reasoning_effort": 1024}, "reasoning_effort 1024"),
        ({"extra_body": {"input": []}}, "'input'"),
    ],
)
def test_what_this_protocol_cannot_say_is_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        adapter(**settings)


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "openai/gpt-4o", "ft:gpt-4o:org::1", "gpt-5-chat-latest"])
def test_a_model_that_never_reasons_is_not_asked_for_reasoning(model):
    """OpenAI answers 400 'Encrypted content is not supported with this model'."""
    assert "include" not in body(model=model)


@pytest.mark.parametrize("model", ["gpt-5", "o3", "openai/gpt-oss-20b", "my-gpt-4"])
def test_any_other_model_is(model):
    assert body(model=model)["include"] == ["reasoning.encrypted_content"]


# Turns, from bytes


def event(kind, **members):
    return {"type": f"response.{kind}"} | members


def delta(text, index=0, item="msg_1", **more):
    return event("output_text.delta", item_id=item, output_index=index, content_index=0, delta=text) | more


def added(item, index=0):
    return event("output_item.added", output_index=index, item=item)


def done(item, index=0):
    return event("output_item.done", output_index=index, item=item)


def arguments(piece, index=0, item="fc_1"):
    return event("function_call_arguments.delta", item_id=item, output_index=index, delta=piece)


def thought(piece, index=0, part=0, item="rs_1"):
    return event("reasoning_summary_text.delta", item_id=item, output_index=index, summary_index=part, delta=piece)


def ended(*output, status="completed", **members):
    response = {"id": "resp_1", "model": "m-1", "status": status, "error": None, "output": list(output)} | members
    return event(status, response=response)


def message(text, **more):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content} | more


def function_call(id="call_1", text='{"place": "museum"}', item="fc_1", **more):
    known = {"type": "function_call", "id": item, "status": "completed", "call_id": id, "name": "look_up"}
    return known | {"arguments": text} | more


def reasoning(*summary, sealed="SEAL", item="rs_1"):
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": item, "summary": texts, "encrypted_content": sealed}


def stream(*events):
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def told(data, *cuts, **how):
    """The events of a body that comes in pieces; the last one may be an error."""
    decoder = BodyDecoder(ResponsesTurn({}, provider=PROVIDER), **how)
    events = []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        events += decoder.feed(data[start:end])
    events += decoder.end()
    return [*events, decoder.failure] if decoder.failure else events


def turn(*events):
    """The last event of a stream: its ``TurnFinished``."""
    last = told(stream(*events))[-1]
    assert isinstance(last, TurnFinished), last
    return last


def heard(*events):
    """The text and reasoning of a stream, as it was told."""
    out = told(stream(*events))
    assert isinstance(out[-1], TurnFinished), out[-1]
    return (
        [one.text for one in out if isinstance(one, TextDelta)],
        "".join(one.text for one in out if isinstance(one, ReasoningDelta)),
    )


WEATHER = {"place": "museum"}
FULL = stream(
    event("created", response={"id": "resp_1", "model": "m-1", "status": "in_progress", "error": None, "output": []}),
    added(reasoning(sealed="half")),
    thought("Need "),
    thought("hours 😀."),
    event("reasoning_summary_text.done", item_id="rs_1", output_index=0, summary_index=0, text="Need hours 😀."),
    done(reasoning("Need hours 😀.")),
    added(message("", status="in_progress", content=[], phase="commentary"), 1),
    delta("One ", 1),
    {"type": "keepalive"},
    delta("möment.", 1),
    event("output_text.done", item_id="msg_1", output_index=1, content_index=0, text="One möment."),
    done(message("One möment.", phase="commentary"), 1),
    added(function_call(text="", status="in_progress"), 2),
    arguments('{"place": ', 2),
    arguments('"museum"}', 2),
    event("function_call_arguments.done", item_id="fc_1", output_index=2, arguments='{"place": "museum"}'),
    done(function_call(namespace="n"), 2),
    ended(
        reasoning("Need hours 😀."),
        message("One möment.", phase="commentary"),
        function_call(namespace="n"),
        usage={
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 8},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 29,
        },
    ),
)
FULL_CONTENT = [TextBlock("One möment."), ToolUseBlock("call_1", "look_up", WEATHER)]
FULL_ITEMS = [
    reasoning("Need hours 😀."),
    message("One möment.", phase="commentary"),
    function_call(namespace="n"),
]
FULL_EVENTS = [
    ReasoningDelta("Need "),
    ReasoningDelta("hours 😀."),
    TextDelta("One "),
    TextDelta("möment."),
    CallAnnounced("call_1", "look_up"),
    TurnFinished(
        Message("assistant", FULL_CONTENT, sealed(PROVIDER, {"items": FULL_ITEMS}, FULL_CONTENT)),
        FinishReason("tool_calls", "completed"),
        Usage(20, 9, 8, None, 4),
        Response("resp_1", "m-1"),
    ),
]


def with_raw_usage(events):
    """Usage compares without its raw numbers; here they are known."""
    assert events[-1].usage.raw["total_tokens"] == 29
    last = events[-1]
    usage = Usage(20, 9, 8, None, 4) if last.usage == Usage(20, 9, 8, None, 4, last.usage.raw) else last.usage
    return [*events[:-1], TurnFinished(last.message, last.finish_reason, usage, last.response)]


def test_a_whole_stream_says_everything_once():
    events = with_raw_usage(told(FULL))
    assert events == FULL_EVENTS
    assert events[-1].finish_reason.raw == "completed"


def test_it_says_the_same_byte_by_byte():
    assert with_raw_usage(told(FULL, *range(1, len(FULL)))) == FULL_EVENTS


def test_it_says_the_same_wherever_it_is_cut():
    short = stream(delta("möment 😀."), done(function_call(), 1), ended())
    whole = told(short)
    assert [type(one) for one in whole] == [TextDelta, CallAnnounced, TurnFinished]
    assert all(told(short, place) == whole for place in range(1, len(short)))


def test_a_document_is_heard_like_a_stream():
    output = [*FULL_ITEMS]
    data = json.dumps({"id": "resp_1", "object": "response", "status": "completed", "error": None, "output": output})
    assert told(data.encode()) == [
        ReasoningDelta("Need hours 😀."),
        TextDelta("One möment."),
        CallAnnounced("call_1", "look_up"),
        TurnFinished(FULL_EVENTS[-1].message, FinishReason("tool_calls"), None, Response("resp_1")),
    ]


def test_a_document_without_output_is_no_answer():
    (error,) = told(b'{"id": "resp_1"}')
    assert type(error) is InvalidResponseError


def test_text_that_no_delta_said_is_told_when_its_item_is_done():
    assert heard(done(message("Hello")), ended()) == (["Hello"], "")
    assert heard(ended(message("Hello"))) == (["Hello"], "")
    assert heard(delta("Hel"), done(message("Hello")), ended(message("Hello"))) == (["Hel", "lo"], "")
    whole = event("output_text.done", output_index=0, content_index=0, text="Hello")
    assert heard(whole, done(message("Hello")), ended()) == (["Hello"], "")


def test_text_that_was_told_is_not_told_again_if_the_whole_differs():
    assert heard(delta(" Hello "), done(message("Hello")), ended(message("Hello"))) == ([" Hello "], "")


def test_halves_of_a_character_in_two_deltas_are_one():
    data = stream(delta("a\ud83d"), delta("\ude00b"), ended(message("a😀b")))
    assert [one for one in told(data) if isinstance(one, TextDelta)] == [TextDelta("a"), TextDelta("😀b")]


def test_texts_stand_in_the_order_of_their_items():
    """Indices may have gaps that the whole output has not."""
    first, second = message("one"), message("two", id="msg_2")
    answer = turn(delta("two", 3, "msg_2"), delta("one", 1), ended(first, second))
    assert answer.message == Message.assistant("onetwo")


def test_a_message_that_only_the_end_knows_stands_in_its_place():
    output = [message("one"), message("two", id="msg_2"), message("three", id="msg_3")]
    assert turn(delta("one"), delta("three", 1, "msg_3"), ended(*output)).message == Message.assistant("onetwothree")


def test_item_ids_that_change_with_every_event_do_no_harm():
    """Copilot makes a new id for each."""
    events = [
        added(function_call(text="", item="x1", status="in_progress"), 0),
        added(function_call("call_2", text="", item="x2", status="in_progress"), 1),
        arguments('{"place":', 0, "x3"),
        arguments("{}", 1, "x4"),
        arguments(' "museum"}', 0, "x5"),
        done(function_call(item="x6"), 0),
        done(function_call("call_2", "{}", item="x7"), 1),
        ended(function_call(item="x8"), function_call("call_2", "{}", item="x9")),
    ]
    assert turn(*events).message.calls == [
        ToolUseBlock("call_1", "look_up", WEATHER),
        ToolUseBlock("call_2", "look_up", {}),
    ]


def without_indices(events):
    return [{name: value for name, value in one.items() if name != "output_index"} for one in events]


TWO_CALLS = [
    added(function_call("call_a", text="", item="fc_a"), 0),
    added(function_call("call_b", text="", item="fc_b"), 1),
    arguments('{"place":', 0, "fc_a"),
    arguments("{}", 1, "fc_b"),
    arguments(' "museum"}', 0, "fc_a"),
    done(function_call("call_a", item="fc_a"), 0),
    done(function_call("call_b", "{}", item="fc_b"), 1),
    ended(),
]
TWO_BLOCKS = [ToolUseBlock("call_a", "look_up", WEATHER), ToolUseBlock("call_b", "look_up", {})]


@pytest.mark.parametrize("spoil", [list, without_indices, lambda events: [one | {"output_index": 0} for one in events]])
def test_interleaved_calls_are_kept_apart_by_index_or_by_id(spoil):
    assert turn(*spoil(TWO_CALLS)).message.calls == TWO_BLOCKS


def test_pieces_that_name_no_item_belong_to_the_last_one():
    events = [
        event("output_text.delta", delta="Hel"),
        event("output_text.delta", delta="lo"),
        event("output_item.added", item=function_call(text="", item="")),
        event("function_call_arguments.delta", delta='{"place": "museum"}'),
        event("output_item.done", item=function_call(item="")),
        ended(),
    ]
    assert turn(*events).message == Message(
        "assistant",
        [TextBlock("Hello"), ToolUseBlock("call_1", "look_up", WEATHER)],
        turn(*events).message.provider_state,
    )


def test_the_whole_arguments_stand_for_their_pieces():
    """LM Studio sends them only in the end; others send ``{}`` first."""
    whole = event("function_call_arguments.done", output_index=0, arguments='{"place": "museum"}')
    opened = added(function_call(text="{}"))
    assert turn(opened, whole, ended()).message.calls == [ToolUseBlock("call_1", "look_up", WEATHER)]
    assert turn(opened, arguments('{"place": "museum"}'), done(function_call(text="")), ended()).message.calls == [
        ToolUseBlock("call_1", "look_up", WEATHER)
    ]


def test_a_call_that_the_server_calls_incomplete_is_not_to_be_run():
    (block,) = turn(ended(function_call(status="incomplete"))).message.calls
    assert block == ToolUseBlock(
        "call_1", "look_up", WEATHER, error="the call is incomplete: the answer ended inside it"
    )


def test_a_call_that_is_still_in_progress_when_the_response_is_complete_may_be_run():
    """Calls of OpenAI's programs are."""
    assert turn(ended(function_call(status="in_progress"))).message.calls[0].error is None


def test_a_call_that_was_not_heard_to_its_end_is_not_to_be_run():
    data = stream(added(function_call(text="")), arguments("{}")) + b"data: [DONE]\n\n"
    assert [block.error for block in told(data)[-1].message.calls] == [
        "the call is incomplete: the answer ended inside it"
    ]


def test_summaries_are_separated_by_a_blank_line_and_told_once():
    events = [
        thought("One"),
        thought(" thought.", part=0),
        thought("Another.", part=1),
        done(reasoning("One thought.", "Another.")),
        thought("Later.", index=2, item="rs_2"),
        done(reasoning("Later.", item="rs_2"), 2),
        ended(reasoning("One thought.", "Another."), reasoning("Later.", item="rs_2")),
    ]
    assert heard(*events) == ([], "One thought.\n\nAnother.\n\nLater.")
    assert heard(events[-1]) == ([], "One thought.\n\nAnother.\n\nLater.")


@pytest.mark.parametrize("kind", ["reasoning_text.delta", "reasoning.delta"])
def test_thoughts_in_plain_text_are_reasoning_but_not_beside_their_summary(kind):
    item = reasoning("Short.", sealed=None) | {"content": [{"type": "reasoning_text", "text": "Long and long."}]}
    pieces = [event(kind, output_index=0, content_index=n, delta=text) for n, text in enumerate(["Long ", "and long."])]
    assert heard(*pieces, thought("Short."), done(item), ended(item)) == ([], "Long and long.")


def test_thoughts_that_only_the_item_holds_are_told():
    content = {"content": [{"type": "reasoning_text", "text": "Hm."}]}
    assert heard(ended(reasoning(sealed=None) | content)) == ([], "Hm.")


def test_a_refusal_is_visible_text_and_says_so_in_the_end():
    refusal = {"type": "refusal", "refusal": "I will not."}
    pieces = [event("refusal.delta", output_index=0, content_index=0, delta=text) for text in ("I will ", "not.")]
    whole = event("refusal.done", output_index=0, content_index=0, refusal="I will not.")
    for events in ([*pieces, whole, ended()], [whole, ended()], [ended(message("", content=[refusal]))]):
        last = turn(*events)
        assert last.message.content == [TextBlock("I will not.")]
        assert (last.finish_reason, last.finish_reason.raw) == ("content_filter", "completed")


@pytest.mark.parametrize(
    ("details", "finish", "is_truncated"),
    [
        ({"reason": "max_output_tokens"}, "length", True),
        ({"reason": "content_filter"}, "content_filter", False),
        ({"reason": "steered"}, "steered", True),
        (None, "length", True),
    ],
)
def test_an_incomplete_response_says_why(details, finish, is_truncated):
    usage = {"input_tokens": 5, "output_tokens": 16}
    last = turn(
        delta("Once"), ended(message("Once upon"), status="incomplete", incomplete_details=details, usage=usage)
    )
    assert last.message == Message.assistant("Once upon")
    assert (last.finish_reason, last.finish_reason.raw) == (finish, "incomplete")
    assert last.finish_reason.is_truncated is is_truncated
    assert last.usage == Usage(5, 16, raw=usage)


def test_finish_is_stop_without_calls():
    last = turn(ended(message("Hi")))
    assert (last.finish_reason, last.finish_reason.raw) == ("stop", "completed")


def test_nothing_is_read_after_the_response_has_ended():
    decoder = BodyDecoder(ResponsesTurn({}, provider=PROVIDER))
    decoder.feed(stream(delta("Hi"), ended(message("Hi"))) + b"data: rubbish\n\n")
    assert (decoder.done, decoder.failure) == (True, None)


FAILURES = [
    (event("failed", response={"status": "failed", "error": {"code": "server_error", "message": "It crashed"}}), 500),
    (event("failed", response={"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Slow"}}), 429),
    (event("failed", response={"status": "failed"}), None),
    (event("completed", response={"status": "cancelled", "output": []}), None),
    (event("created", response={"error": {"code": "invalid_prompt", "message": "No"}}), None),
    ({"type": "error", "code": "server_error", "message": "It crashed", "param": None}, 500),
    ({"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "Pay"}}, None),
    ({"type": "x", "error": {"code": 503, "message": "Overloaded"}}, 503),
]
WORDS = [
    "API error 500: server_error: It crashed",
    "API error 429: rate_limit_exceeded: Slow",
    "API error: the response ended as 'failed'",
    "API error: the response ended as 'cancelled'",
    "API error: invalid_prompt: No",
    "API error 500: It crashed",
    "API error: insufficient_quota: Pay",
    "API error 503: Overloaded",
]


@pytest.mark.parametrize(
    ("failure", "status", "words"), [(*row, words) for row, words in zip(FAILURES, WORDS, strict=True)]
)
def test_a_failure_in_the_stream_is_an_error_with_the_text_so_far(failure, status, words):
    text, error = told(stream(delta("Par"), failure))
    assert (text, type(error)) == (TextDelta("Par"), APIError)
    assert (str(error), error.status, error.retryable, error.blocks) == (
        words,
        status,
        status is not None,
        [TextBlock("Par")],
    )


def test_a_failure_without_an_event_line_is_an_error_as_well():
    (error,) = told(b'data: {"type":"error","code":"context_length_exceeded","message":"prompt is too long"}\n\n')
    assert type(error) is ContextOverflowError


def test_a_body_that_ends_without_a_terminal_event_is_broken():
    for data in (stream(delta("Wai")), stream(done(function_call()))):
        *_, error = told(data)
        assert type(error) is StreamInterruptedError


def test_what_is_no_json_of_this_protocol_is_heard_without_a_crash():
    odd = [
        {"type": ["x"]},
        {"type": "response.output_text.delta", "delta": 5, "content_index": [], "output_index": "0"},
        {"type": "response.output_item.done", "item": None},
        {"type": "response.output_item.added", "item": {"type": None, "id": 5}},
        {"type": "response.completed", "response": "x"},
        ended("x", None, {"type": "message", "content": [None, "x", {"type": "output_text", "text": 5}]}, usage=[]),
    ]
    assert turn(*odd).message == Message("assistant", [])


# What goes back


def replay(*events, **settings):
    """What the next request says of the turn."""
    return items(turn(*events).message, **settings)


def test_all_items_of_a_turn_go_back_in_order_as_they_came():
    program = {"type": "program", "id": "cm_1", "call_id": "p_1", "code": "x"}
    output = [reasoning("Hm."), program, function_call(caller={"type": "program"}), {"type": "new_kind", "x": [1]}]
    assert replay(ended(*output)) == output


def test_items_survive_a_file():
    answer = turn(ended(reasoning("Hm."), message("Hi", phase="final_answer"))).message
    loaded = Message.from_dict(json.loads(json.dumps(answer.to_dict())))
    assert loaded == answer
    assert items(loaded) == [reasoning("Hm."), message("Hi", phase="final_answer")]


def test_the_reasoning_of_the_done_event_goes_back():
    """In the added event its encrypted content may be half of it, and in the whole output its id another."""
    opened, whole = reasoning(sealed="AAA"), reasoning("Hm.", sealed="BBB")
    events = [added(opened), done(whole), done(function_call(), 1)]
    expected = [whole, function_call()]
    assert replay(*events, ended(reasoning("Hm.", sealed="BBB", item="rs_9"), function_call())) == expected
    assert replay(*events, ended()) == expected
    assert replay(added(opened), done(function_call(), 1), ended()) == [without_id(function_call())]
    assert replay(done(reasoning("Hm.", sealed=None)), done(function_call(), 1), ended(whole)) == expected


def without_id(item):
    return {name: value for name, value in item.items() if name != "id"}


def test_reasoning_without_encrypted_content_stays_away_and_so_do_ids():
    """Nothing is stored: the server would look for the ids and find nothing."""
    spoken = message("Hi", phase="commentary")
    assert replay(ended(reasoning("Hm.", sealed=None), spoken, function_call())) == [
        without_id(spoken),
        without_id(function_call()),
    ]
    assert replay(ended(spoken, function_call())) == [without_id(spoken), without_id(function_call())]


@pytest.mark.parametrize("settings", [{"replay_reasoning": False}, {"model": "gpt-4o"}])
def test_reasoning_stays_away_if_it_is_not_wanted_and_what_hangs_on_it_too(settings):
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    spoken = message("Hi", phase="commentary")
    assert replay(ended(reasoning("Hm."), search, spoken, function_call()), **settings) == [
        without_id(spoken),
        without_id(function_call()),
    ]
    assert replay(ended(search, spoken), **settings) == [search, without_id(spoken)]


def test_reasoning_that_led_to_nothing_stays_away():
    assert replay(ended(message("Hi", phase="x"), reasoning("Hm."), status="incomplete")) == [
        without_id(message("Hi", phase="x"))
    ]
    assert turn(ended(reasoning("Hm."), status="incomplete")).message == Message("assistant", [])


def test_plain_thoughts_beside_encrypted_ones_stay_away_and_a_summary_is_there():
    odd = without_id(reasoning()) | {"content": [{"type": "reasoning_text", "text": "Hm."}]}
    del odd["summary"]
    assert replay(ended(odd, function_call())) == [
        {"summary": [], "type": "reasoning", "encrypted_content": "SEAL"},
        function_call(),
    ]


def test_a_turn_that_is_nothing_but_text_keeps_no_state():
    assert turn(delta("Hi"), done(message("Hi")), ended(message("Hi"))).message == Message.assistant("Hi")
    assert items(Message.assistant("Hi")) == [{"type": "message", "role": "assistant", "content": "Hi"}]


def test_a_turn_of_a_vendors_tool_alone_keeps_its_items():
    picture = {"type": "image_generation_call", "id": "ig_1", "result": "aGk="}
    assert replay(ended(reasoning("Hm."), picture, message(""))) == [reasoning("Hm."), picture]


def test_a_call_of_a_vendors_tool_that_nobody_answered_stays_away():
    shell = {"type": "shell_call", "id": "sh_1", "call_id": "s_1", "action": {}}
    output = {"type": "shell_call_output", "id": "so_1", "call_id": "s_1", "output": []}
    spoken = message("Hi", phase="x")
    assert replay(ended(shell, spoken)) == [without_id(spoken)]
    assert replay(ended(shell, output, spoken)) == [shell, output, without_id(spoken)]


def test_text_that_only_deltas_said_goes_back_with_what_was_announced():
    opened = message("", content=[], phase="commentary", status="in_progress")
    expected = without_id(opened) | {"content": [{"type": "output_text", "text": "Hi"}]}
    del expected["status"]
    assert replay(added(opened), delta("Hi"), ended()) == [expected]


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ('{"place": "museum"}', '{"place": "museum"}'),
        ('{"place": ', "{}"),
        ('["museum"]', "{}"),
        ("", "{}"),
        ('"{\\"place\\":\\"museum\\"}"', '{"place":"museum"}'),
        ('{"n": NaN}', '{"n":null}'),
        ('{"t": "\\ud83d"}', '{"t":"\ufffd"}'),
    ],
)
def test_arguments_go_back_as_they_came_if_they_are_an_object(said, sent):
    assert [item["arguments"] for item in replay(ended(reasoning(), function_call(text=said)))[1:]] == [sent]


def test_ids_and_names_that_were_replaced_are_replaced_in_what_goes_back():
    output = [
        reasoning(),
        function_call(),
        function_call(item="fc_2"),
        function_call("", item="fc_3"),
        function_call("call_4", item="fc_4", name="a b"),
    ]
    answer = turn(ended(*output)).message
    ids = [block.id for block in answer.calls]
    assert (ids[0], ids[3], len(set(ids))) == ("call_1", "call_4", 4)
    sent = items(answer)[1:]
    assert [item["call_id"] for item in sent] == ids
    assert [item["name"] for item in sent] == ["look_up", "look_up", "look_up", "invalid_tool_call"]


def test_items_do_not_go_back_once_the_blocks_were_changed():
    answer = turn(ended(reasoning("Hm."), message("Hi"))).message
    changed = Message("assistant", [TextBlock("Ho")], answer.provider_state)
    assert items(changed) == [{"type": "message", "role": "assistant", "content": "Ho"}]


def test_items_do_not_go_to_another_host():
    answer = turn(ended(reasoning("Hm."), message("Hi"), function_call())).message
    assert items(answer, base_url="https://other.example.com/v1") == [
        {"type": "message", "role": "assistant", "content": "Hi"},
        {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": '{"place":"museum"}'},
    ]


# Exchanges

ROUNDS = [
    answer("One moment.", reasoning="Look it up.", calls=[call("look_up", {"place": "museum"})]),
    answer(reasoning="", calls=[call("look_up", {"place": "zoo"}), call("look_up", '{"place":')]),
    answer("Both are open.", reasoning="Enough."),
]
ASK = {"model": "m", "protocol": "openai-responses", "tools": [LOOK_UP], "retry": None}


def loaded(history):
    """The history after a file."""
    return [Message.from_dict(plain) for plain in json.loads(json.dumps([one.to_dict() for one in history]))]


def run_to_end(server, **settings):
    """The history of a conversation by hand, in which each step has a client of its own."""
    history = []
    prompt = "Are they open?"
    while True:
        with Client(base_url=server.url, **ASK | settings) as client:
            client.history = loaded(history)
            client.send(prompt)
            blocks = list(client.receive())
            for block in blocks:
                if isinstance(block, ToolUseBlock):
                    client.add_tool_result(block.id, block.error or "10-18", is_error=bool(block.error))
            history = client.history
            if not client.history[-1].results:
                return history
            prompt = ""


def test_a_conversation_that_is_saved_after_every_step_is_accepted_to_its_end():
    with ScriptedServer(*ROUNDS, "You are welcome.") as server:
        history = run_to_end(server)
        with Client(base_url=server.url, **ASK) as client:
            client.history = loaded(history)
            assert client.ask("Thanks.") == "You are welcome."
        assert server.complaints == []
        kinds = [item.get("type", item.get("role")) for item in server.requests[-1].body["input"]]
    assert kinds == [
        "user",
        *("reasoning", "message", "function_call", "function_call_output"),
        *("reasoning", "function_call", "function_call", "function_call_output", "function_call_output"),
        *("reasoning", "message"),
        "user",
    ]


@pytest.mark.parametrize("stream_it", [True, False])
def test_tools_are_run_in_rounds(stream_it):
    tool = Tool("look_up", "", {"place": "string"}, lambda arguments: f"{arguments['place']}: 10-18")
    rounds = [one.__class__(**{**vars(one), "stream": stream_it}) for one in ROUNDS]
    with ScriptedServer(*rounds) as server:
        with Client(base_url=server.url, auto_execute_tools=True, **ASK | {"tools": [tool]}) as client:
            assert client.ask("Are they open?") == "Both are open."
        assert server.complaints == []
    results = [block for one in client.history for block in one.results]
    assert [(block.content, block.is_error) for block in results[:2]] == [
        ("museum: 10-18", False),
        ("zoo: 10-18", False),
    ]
    assert results[2].is_error


def replayed_reasoning(history):
    kept = [item for one in history if one.provider_state for item in one.provider_state["items"]]
    return [item for item in kept if item["type"] == "reasoning"]


@pytest.mark.parametrize("protocol", ["openai-responses", "openai-chat", "anthropic"])
def test_the_state_never_goes_to_another_provider(protocol):
    with ScriptedServer(*ROUNDS) as server:
        history = run_to_end(server)
    with ScriptedServer("fine") as other:
        with Client(base_url=other.url, **ASK | {"protocol": protocol}) as client:
            client.history = loaded(history)
            assert client.ask("And now?") == "fine"
        sent = other.requests[0].raw.decode()
        assert other.complaints == []
    seals = [item["encrypted_content"] for item in replayed_reasoning(history)]
    assert len(seals) == 3
    assert [word for word in (*seals, "rs_", "fc_", "msg_", "Look it up.") if word in sent] == []


def test_history_of_other_providers_is_accepted():
    with ScriptedServer(*ROUNDS) as server:
        history = run_to_end(server, protocol="openai-chat")
    with ScriptedServer("fine") as other:
        with Client(base_url=other.url, **ASK) as client:
            client.history = loaded(history)
            assert client.ask("And now?") == "fine"
        assert other.complaints == []


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_calls_of_a_turn_that_was_cut_are_answered_and_not_run(finish):
    ran = []
    tool = Tool("look_up", "", {"place": "string"}, ran.append)
    cut = answer("One", reasoning="Hm.", calls=[call("look_up", {"place": "zoo"})], finish=finish)
    with ScriptedServer(cut, "fine") as server:
        with Client(base_url=server.url, auto_execute_tools=True, **ASK | {"tools": [tool]}) as client:
            assert client.ask("Open?") == "One"
            assert client.finish_reason == finish
            assert client.ask("And now?") == "fine"
        assert server.complaints == []
    assert ran == []


def test_a_turn_that_breaks_off_leaves_no_trace():
    with ScriptedServer(answer("One moment, please.", reasoning="Hm.", cut=900), "fine") as server:
        with Client(base_url=server.url, **ASK) as client:
            with pytest.raises(StreamInterruptedError):
                client.ask("Open?")
            assert client.history == [Message.user("Open?")]
            assert client.ask("Open?") == "fine"
        assert server.complaints == []


def test_text_is_told_before_the_response_has_ended():
    with ScriptedServer(raw(stream(delta("Hello")), hold=5)) as server:
        with Client(base_url=server.url, **ASK) as client:
            client.send("Hi")
            assert next(client.receive()) == TextBlock("Hello")


VALUES = st.sampled_from([None, "", "x", "é😀", "\ud83d", 0, 1, 1.0, True, [], {}, {"x": 1}])
WHERE = {
    "output_index": st.sampled_from([0, 0, 0, 1]) | VALUES,
    "item_id": st.sampled_from(["m", "m", "m", "n"]) | VALUES,
    "content_index": st.sampled_from([0, 0, 0, 1]) | VALUES,
}
TEXTS = st.fixed_dictionaries(
    {"type": st.just("response.output_text.delta"), **WHERE, "delta": st.just("x") | VALUES},
    optional={"error": VALUES, "x": VALUES},
)
DONES = st.fixed_dictionaries({"type": st.just("response.output_text.done"), **WHERE, "text": st.just("xx")})
REFUSALS = st.fixed_dictionaries({"type": st.just("response.refusal.delta"), **WHERE, "delta": st.just("no")})
ITEMS = st.builds(
    lambda kind, index, id, of: {
        "type": f"response.output_item.{kind}",
        "output_index": index,
        "item": {"id": id} | of,
    },
    st.sampled_from(["added", "done"]),
    WHERE["output_index"],
    WHERE["item_id"],
    st.sampled_from([{"type": "message", "content": []}, {"type": "function_call", "name": "f", "call_id": "c"}]),
)


def heard_of(events, *, quickly):
    """What a turn has heard of some events, or the error, the quick way tried first or not at all."""
    turn = ResponsesTurn({}, provider="p")
    try:
        for event in events:
            text = json.dumps(event).encode()
            if not (quickly and turn.quick(text)):
                turn.answer.add_burst()
                turn.payload(codec.parse(text))
        turn.answer.add_burst()
    except APIError as error:
        return str(error)
    items = [(heard.place, heard.id, heard.text(), heard.parts) for heard in turn._places.in_order()]
    told = [event for event in spread(turn.answer.events) if not isinstance(event, CallAnnounced)]  # ids are made up
    return told, turn.answer.ended, turn.answer.heard(), items


@given(st.lists(TEXTS | TEXTS | DONES | REFUSALS | ITEMS, max_size=8))
def test_the_quick_way_comes_to_the_same_as_the_general_one(events):
    assert heard_of(events, quickly=True) == heard_of(events, quickly=False)


def test_the_quick_way_is_taken_by_the_events_that_the_vendor_sends():
    turn = ResponsesTurn({}, provider="p")
    event = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "x"}
    turn.payload(event)
    assert turn.quick(json.dumps(event | {"logprobs": [], "sequence_number": 4}).encode())
