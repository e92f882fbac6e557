import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openagent import AgentOptions, Client, ConfigError, ImageBlock, Message, TextBlock, Tool, ToolUseBlock, codec
from openagent.adapters.anthropic import DEFAULT_MAX_TOKENS, Anthropic
from openagent.adapters.anthropic_conversation import CUT_OFF
from openagent.adapters.anthropic_turn import AnthropicTurn
from openagent.decoding import BodyDecoder
from openagent.errors import APIError, StreamInterruptedError
from openagent.events import CallAnnounced, ReasoningDelta, TextDelta, TurnFinished, spread
from openagent.messages import Usage
from openagent.testing import ScriptedServer, answer, call, raw

URL = "http://127.0.0.1:9/v1"
HERE, ELSEWHERE = "anthropic 127.0.0.1:9", "anthropic 127.0.0.1:8"
PNG = "iVBORw0KGgo="
HI = Message.user("Hi")
ADD = Tool("add", "Adds.", {"type": "object", "properties": {"a": {"type": "number"}}}, lambda arguments: 42)
ADD_ON_THE_WIRE = {"name": "add", "description": "Adds.", "input_schema": ADD.input_schema}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
MARK = {"cache_control": {"type": "ephemeral"}}
CALLED = Message("assistant", [ToolUseBlock("a", "add", {"a": 1})])
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "42"}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
HIDDEN = {"type": "redacted_thinking", "data": "UkVE"}
SEARCHING = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "oslo"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"url": "https://x.y"}]}


def options(**settings):
    return AgentOptions(**{"model": "m", "base_url": URL, "protocol": "anthropic", "api_key": "k"} | settings)


def adapter(*messages, tools=(), **settings):
    return Anthropic(options(tools=tools, **settings), messages, tools, None)


def body(*messages, instruction=None, include_tools=True, **settings):
    return json.loads(adapter(*messages, **settings).encode(instruction, include_tools and "tools" in settings).body)


def members(*messages, **settings):
    """What a request holds beside what all of them hold."""
    common = ("model", "max_tokens", "messages", "stream")
    return {name: value for name, value in body(*messages, **settings).items() if name not in common}


def turns(*messages, **settings):
    return body(*messages, **settings)["messages"]


def user(*content):
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def spoken(*content):
    return user(*content) | {"role": "assistant"}


def text(words):
    return {"type": "text", "text": words}


def made(id="a", **more):
    return {"type": "tool_use", "id": id, "name": "add", "input": {"a": 1}} | more


def heard(*events, end=True, provider=HERE):
    """The events and the decoder after these events of the wire."""
    decoder = BodyDecoder(AnthropicTurn({}, provider=provider))
    told = decoder.feed(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))
    return (told + decoder.end() if end else told), decoder


def turn(*events):
    """The turn that these events of the wire tell, with an end if they have none."""
    told, decoder = heard(*events)
    assert decoder.failure is None
    assert isinstance(told[-1], TurnFinished)
    return told[-1]


def began(**message):
    return {"type": "message_start", "message": {"id": "msg_1", "model": "c", "content": []} | message}


def opened(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index, kind, **members):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind} | members}


def said(index, words):
    return delta(index, "text_delta", text=words)


def argued(index, piece):
    return delta(index, "input_json_delta", partial_json=piece)


def ended(reason, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": reason}} | ({"usage": usage} if usage else {})


STOP = {"type": "message_stop"}


def whole(*blocks, stop="end_turn"):
    """The turn whose blocks come whole."""
    return turn(began(content=list(blocks)), ended(stop), STOP)


def saved(history):
    return [Message.from_dict(item) for item in json.loads(json.dumps([message.to_dict() for message in history]))]


# Encoding


def test_a_request_holds_all_that_was_set():
    request = adapter(
        HI, system_prompt="Be brief.", max_tokens=9, temperature=0.5, top_p=0.9, stop=["END"], extra_body={"top_k": 3}
    ).encode(None, False)
    assert request.url == URL + "/messages"
    assert json.loads(request.body) == {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "system": "Be brief.",
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "top_k": 3,
    }


def test_a_bare_request_holds_what_the_wire_wants_and_nothing_else():
    assert body(HI) == {"model": "m", "max_tokens": DEFAULT_MAX_TOKENS, "messages": [user("Hi")], "stream": True}


@pytest.mark.parametrize(
    ("settings", "auth"),
    [
        ({}, {"x-api-key": "k"}),
        ({"api_key": ""}, {}),
        ({"headers": {"authorization": "Bearer t"}}, {"authorization": "Bearer t"}),
    ],
)
def test_the_version_is_always_sent_and_the_key_only_if_there_is_one(settings, auth):
    headers = dict(adapter(HI, **settings).encode(None, False).headers)
    json_stream = {"Content-Type": "application/json", "Accept": "text/event-stream"}
    assert headers == json_stream | {"anthropic-version": "2023-06-01"} | auth


def test_all_that_the_system_says_stands_before_the_conversation():
    messages = [Message.system("One."), HI, Message.assistant("Yes?"), Message.system(" "), Message.system("Two."), HI]
    request = body(*messages, system_prompt="Zero.", instruction="Last round.")
    assert request["system"] == "Zero.\n\nLast round.\n\nOne.\n\nTwo."
    assert request["messages"] == [user("Hi"), spoken("Yes?"), user("Hi")]


def test_images_go_by_url_or_as_base64_with_their_type():
    message = Message.user("See", ImageBlock("https://x.y/z.png"), ImageBlock.from_base64(PNG))
    sources = [{"type": "url", "url": "https://x.y/z.png"}]
    sources.append({"type": "base64", "media_type": "image/png", "data": PNG})
    assert turns(message) == [user(text("See"), *({"type": "image", "source": source} for source in sources))]


def test_results_of_a_turn_stand_in_one_user_message_and_the_next_prompt_in_its_own():
    asked = Message.assistant("Adding.", ToolUseBlock("a", "add", {"a": 1}), ToolUseBlock("b", "add", {}))
    failed = Message.tool_result("b", {"error": "ä"}, is_error=True)
    assert turns(HI, asked, Message.tool_result("a", "42"), failed, Message.user("And?")) == [
        user("Hi"),
        spoken(text("Adding."), made(), made("b", input={})),
        user(RESULT, {"type": "tool_result", "tool_use_id": "b", "content": '{"error":"ä"}', "is_error": True}),
        user("And?"),
    ]


def test_blank_texts_are_not_sent_and_turns_left_with_nothing_are_omitted():
    history = [HI, Message.assistant(" \n", *CALLED.content), Message.tool_result("a", "42"), Message.assistant("\n")]
    assert turns(*history, Message.user(" "), Message.user("Well?", "")) == [
        user("Hi"),
        spoken(made()),
        user(RESULT),
        user("Well?"),
    ]


def test_a_conversation_of_nothing_is_refused_before_any_request():
    with pytest.raises(ConfigError, match="nothing to send"):
        body(Message.user(" "), Message.system("Be brief."))


def test_only_a_final_assistant_message_loses_its_last_blanks():
    done = Message.assistant("Done. \n")
    assert turns(HI, done, HI, done) == [user("Hi"), spoken("Done. \n"), user("Hi"), spoken("Done.")]
    assert done.text == "Done. \n"


def test_a_conversation_that_begins_with_the_assistant_is_told_to_be_cut_off():
    assert turns(Message.assistant("Hello."), HI) == [CUT_OFF, spoken("Hello."), user("Hi")]


def test_tools_go_out_in_the_vendors_form_and_hosted_tools_as_they_are():
    bare = Tool("now", handler=lambda arguments: "noon")
    assert members(HI, tools=[ADD, bare, Tool.hosted(SEARCH)]) == {
        "tools": [ADD_ON_THE_WIRE, {"name": "now", "input_schema": bare.input_schema}, SEARCH]
    }


@pytest.mark.parametrize(
    ("settings", "choice"),
    [
        ({}, None),
        ({"parallel_tool_calls": True}, None),
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "add"}, {"type": "tool", "name": "add"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"tool_choice": "add", "parallel_tool_calls": False},
            {"type": "tool", "name": "add", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_a_tool_choice_is_an_object(settings, choice):
    assert body(HI, tools=[ADD], **settings).get("tool_choice") == choice


def test_a_forced_call_is_forced_once():
    exchange = adapter(HI, tools=[ADD], tool_choice="required", parallel_tool_calls=False)
    exchange.turn = whole(made(), stop="tool_use")
    exchange.record_assistant_turn()
    exchange.record_tool_result("a", "42")
    second = json.loads(exchange.encode(None, True).body)
    assert second["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert second["messages"] == [user("Hi"), spoken(made()), user(RESULT)]


def test_a_round_without_tools_still_declares_them_if_there_were_calls():
    asked = [HI, CALLED, Message.tool_result("a", "42")]
    closed = {"tools": [ADD_ON_THE_WIRE], "tool_choice": {"type": "none"}}
    assert members(*asked, tools=[ADD], tool_choice="required", include_tools=False) == closed
    assert members(HI, tools=[ADD], include_tools=False) == {}
    assert members(*asked) == {}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"reasoning_effort": "high"}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        (
            {"reasoning_effort": "low", "include_reasoning": True},
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
        ),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ({"reasoning_effort": 2048}, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        (
            {"response_format": {"type": "object"}, "reasoning_effort": "max"},
            {
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "max", "format": {"type": "json_schema", "schema": {"type": "object"}}},
            },
        ),
        (
            {"response_format": {"type": "object"}},
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        ),
    ],
)
def test_effort_and_form_of_the_answer_are_said_in_the_vendors_words(settings, expected):
    assert members(HI, **settings) == expected


def test_the_limit_includes_the_tokens_to_think_with():
    assert body(HI, reasoning_effort=2048)["max_tokens"] == 2048 + DEFAULT_MAX_TOKENS
    assert body(HI, reasoning_effort=2048, max_tokens=3000)["max_tokens"] == 3000


def test_a_turn_that_began_without_thinking_goes_on_without():
    asked = [CALLED, Message.tool_result("a", "42")]
    assert members(HI, *asked, reasoning_effort=2048) == {}
    assert members(HI, *asked, HI, reasoning_effort=2048) == {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    thinking = whole(THOUGHT, made(), stop="tool_use").message
    more = [thinking, Message.tool_result("a", "42"), *asked]  # one turn to the vendor, which thinks at its start only
    assert members(HI, *more, reasoning_effort=2048) == {"thinking": {"type": "enabled", "budget_tokens": 2048}}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"seed": 1}, "seed 1"),
        ({"response_format": "json"}, "response_format 'json'"),
        ({"temperature": 1.5}, "temperature 1.5"),
        ({"reasoning_effort": 1000}, "reasoning_effort 1000"),
        ({"reasoning_effort": 2048, "max_tokens": 2048}, "max_tokens 2048"),
        ({"reasoning_effort": 2048, "temperature": 0.5}, "temperature 0.5"),
        ({"reasoning_effort": 2048, "top_p": 0.5}, "top_p 0.5"),
        ({"reasoning_effort": 2048, "tools": [ADD], "tool_choice": "required"}, "tool_choice 'required'"),
        ({"extra_body": {"messages": []}}, "'messages'"),
    ],
)
def test_what_the_wire_cannot_say_is_refused_before_any_request(settings, named):
    with pytest.raises(ConfigError, match=named):
        Client(options(**settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 1, "reasoning_effort": 1024, "max_tokens": 1025, "top_p": 0.95},
        {"tools": [ADD], "tool_choice": "auto", "reasoning_effort": 1024},
        {"include_usage": False, "empty_content": None, "think_tags": False},
    ],
)
def test_what_the_wire_can_say_is_not_refused(settings):
    Anthropic.check(options(**settings))


def test_a_cached_prompt_is_marked_at_the_end_of_tools_system_and_conversation():
    asked = [HI, CALLED, Message.tool_result("a", "42")]
    request = body(*asked, tools=[Tool.hosted(SEARCH), ADD], system_prompt="Be brief.", cache_prompt=True)
    assert request["tools"] == [SEARCH, ADD_ON_THE_WIRE | MARK]
    assert request["system"] == [text("Be brief.") | MARK]
    assert request["messages"] == [user("Hi"), spoken(made()), user(RESULT | MARK)]
    assert turns(HI, Message.assistant("Yes?"), cache_prompt=True) == [user(text("Hi") | MARK), spoken("Yes?")]
    assert "cache_control" not in json.dumps(body(*asked, tools=[ADD], system_prompt="Be brief."))


def test_ids_that_this_wire_refuses_get_names_that_it_takes():
    def round_of(id):
        return [Message("assistant", [ToolUseBlock(id, "add", {"a": 1})]), Message.tool_result(id, "42")]

    history = [HI, *round_of("f.add:0"), *round_of("f.add:0"), *round_of("call_0"), *round_of("call_0")]
    names = ["f_add_0", "f_add_0_2", "call_0", "call_0_2"]
    rounds = [(spoken(made(name)), user(RESULT | {"tool_use_id": name})) for name in names]
    assert turns(*history) == [user("Hi"), *(one for pair in rounds for one in pair)]


# What goes back


def test_a_turn_goes_back_with_all_its_blocks_in_order():
    cited = text("It rains.") | {"citations": [{"url": "https://x.y"}]}
    blocks = [THOUGHT, HIDDEN, text("Hm. "), SEARCHING, FOUND, cited, made(caller={"type": "direct"})]
    message = whole(*blocks, stop="tool_use").message
    assert message.content == [TextBlock("Hm. It rains."), ToolUseBlock("a", "add", {"a": 1})]
    answered = Message.tool_result("a", "42")
    assert turns(HI, *saved([message]), answered) == [user("Hi"), spoken(*blocks), user(RESULT)]


def test_a_turn_that_our_blocks_can_say_has_no_state():
    message = whole(text("Adding. "), text("") | {"citations": None}, text("Now."), made(), stop="tool_use").message
    assert message == Message.assistant("Adding. Now.", ToolUseBlock("a", "add", {"a": 1}))


@pytest.mark.parametrize("replay", [True, False])
def test_thinking_goes_back_unless_the_user_says_no(replay):
    message = whole(THOUGHT, HIDDEN, text("Yes?")).message
    expected = spoken(THOUGHT, HIDDEN, text("Yes?")) if replay else spoken("Yes?")
    assert turns(HI, message, HI, replay_reasoning=replay)[1] == expected


def test_no_other_provider_and_no_edited_turn_gets_the_state():
    message = whole(THOUGHT, text("Yes?")).message
    edited = Message("assistant", [TextBlock("No.")], message.provider_state)
    other = turn(began(content=[THOUGHT, text("Yes?")]), STOP)
    assert turns(HI, message, HI, base_url="http://127.0.0.1:8/v1")[1] == spoken("Yes?")
    assert turns(HI, edited, HI)[1] == spoken("No.")
    assert turns(HI, other.message, HI)[1] == spoken(THOUGHT, text("Yes?"))


def test_what_the_vendor_refuses_does_not_go_back():
    unsigned = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    message = whole(HIDDEN, unsigned, text(""), text("\n"), text("Yes?"), THOUGHT).message
    assert turns(HI, message, HI)[1] == spoken(HIDDEN, text("Yes?"))
    assert whole(unsigned, text("Yes?")).message == Message.assistant("Yes?")
    assert whole(THOUGHT).message == Message.assistant()  # a turn must not end with thinking


def test_thinking_that_is_hidden_goes_back_by_its_signature():
    hidden = THOUGHT | {"thinking": ""}
    assert turns(HI, whole(hidden, text("Yes?")).message, HI)[1] == spoken(hidden, text("Yes?"))


def test_calls_go_back_under_the_ids_and_with_the_input_of_our_blocks():
    events = [began(), opened(0, **THOUGHT), opened(1, **made(input={})), argued(1, '{"a": 1}')]
    events += [opened(2, **made(input={})), argued(2, '{"a": '), ended("tool_use"), STOP]
    message = turn(*events).message
    first, second = message.calls
    assert (first.id, second.input, second.raw_arguments) == ("a", {}, '{"a": ')
    assert second.id != "a"
    answered = [Message.tool_result(one.id, "42") for one in (first, second)]
    assert turns(HI, message, *answered) == [
        user("Hi"),
        spoken(THOUGHT, made(), made(second.id, input={})),
        user(RESULT, RESULT | {"tool_use_id": second.id}),
    ]


def test_a_call_of_the_servers_own_tool_that_was_passed_over_does_not_go_back():
    paused = whole(text("Searching."), SEARCHING, stop="pause_turn").message
    found = whole(FOUND, text("Rain.")).message
    assert turns(HI, paused) == [user("Hi"), spoken(text("Searching."), SEARCHING)]
    assert turns(HI, paused, HI) == [user("Hi"), spoken("Searching."), user("Hi")]
    complete = [user("Hi"), spoken(text("Searching."), SEARCHING), spoken(FOUND, text("Rain.")), user("Hi")]
    assert turns(HI, paused, found, HI) == complete


def test_the_container_is_named_while_its_code_waits_for_a_result():
    inside = made(caller={"type": "code_execution_20260120", "tool_id": "srv_1"})
    events = [began(content=[inside], container={"id": "box_1"}, stop_reason="tool_use"), STOP]
    asked = [HI, turn(*events).message, Message.tool_result("a", "42")]
    assert body(*asked)["container"] == "box_1"
    assert "container" not in body(*asked, HI)
    assert "container" not in body(*asked, base_url="http://127.0.0.1:8/v1")


# Decoding


def long_stream():
    return [
        began(usage={"input_tokens": 25, "cache_read_input_tokens": 100, "output_tokens": 1}),
        {"type": "ping"},
        opened(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Hm \U0001f600"),
        delta(0, "signature_delta", signature="sig"),
        {"type": "content_block_stop", "index": 0},
        opened(1, type="text", text=""),
        said(1, "Zwölf\u2028 "),
        said(1, "\ud83d"),
        said(1, "\ude00"),
        opened(2, **made(input={})),
        argued(2, ""),
        argued(2, '{"a"'),
        argued(2, ": 1}"),
        ended("tool_use", output_tokens=89),
        STOP,
    ]


def stream(events, newline=b"\n"):
    frames = [b"event: %s" % event["type"].encode() + newline + b"data: " + dumped(event) for event in events]
    return b"".join(frame + newline * 2 for frame in frames)


def dumped(event):
    try:
        return json.dumps(event, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(event).encode()


def told(chunks):
    decoder = BodyDecoder(AnthropicTurn({}, provider=HERE))
    events = [event for chunk in chunks if not decoder.done for event in decoder.feed(chunk)] + decoder.end()
    assert decoder.failure is None
    return events


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_the_events_of_a_stream_do_not_depend_on_its_chunks(newline):
    data = stream(long_stream(), newline)
    expected = told([data])
    assert told([data[place : place + 1] for place in range(len(data))]) == expected
    assert all(told([data[:place], data[place:]]) == expected for place in range(len(data)))
    content = [TextBlock("Zwölf\u2028 \U0001f600"), ToolUseBlock("a", "add", {"a": 1})]
    assert expected[:-1] == [
        ReasoningDelta("Hm \U0001f600"),
        TextDelta("Zwölf\u2028 "),
        TextDelta("\U0001f600"),
        CallAnnounced("a", "add"),
    ]
    end = expected[-1]
    assert (end.message.content, end.finish_reason, end.finish_reason.raw) == (content, "tool_calls", "tool_use")
    assert end.message.provider_state["content"] == [
        THOUGHT | {"thinking": "Hm \U0001f600"},
        text(content[0].text),
        made(),
    ]
    assert (end.response.id, end.response.model) == ("msg_1", "c")


@pytest.mark.parametrize(
    ("raw_reason", "reason", "is_truncated"),
    [
        ("end_turn", "stop", False),
        ("stop_sequence", "stop", False),
        ("tool_use", "tool_calls", False),
        ("max_tokens", "length", True),
        ("model_context_window_exceeded", "length", True),
        ("refusal", "content_filter", False),
        ("pause_turn", "pause_turn", False),
        ("something_new", "something_new", False),
    ],
)
def test_each_stop_reason_has_its_neutral_word(raw_reason, reason, is_truncated):
    finish = turn(began(), said(0, "Hi"), ended(raw_reason), STOP).finish_reason
    assert (finish, finish.raw, finish.is_truncated) == (reason, raw_reason, is_truncated)


def test_a_stop_event_without_a_reason_ends_the_turn_unspecified():
    finish = turn(began(), said(0, "Hi"), ended(None), STOP).finish_reason
    assert (finish, finish.raw) == ("unspecified", None)


def test_a_stop_reason_without_a_stop_event_ends_the_turn_too():
    assert turn(began(), said(0, "Hi"), ended("end_turn")).message == Message.assistant("Hi")


def test_a_later_stop_reason_counts_only_if_content_came_in_between():
    assert turn(began(), said(0, "Hi"), ended("max_tokens"), ended("end_turn"), STOP).finish_reason == "length"
    later = [said(0, "Hi"), ended("max_tokens"), said(0, "!"), ended("end_turn"), STOP]
    assert turn(began(), *later).finish_reason == "stop"


@pytest.mark.parametrize("more", [said(0, "!"), opened(1, **made()), opened(1, **SEARCHING)])
def test_content_after_a_stop_reason_reopens_the_turn(more):
    _, decoder = heard(began(), said(0, "Hi"), ended("end_turn"), more)
    assert isinstance(decoder.failure, StreamInterruptedError)


def test_nothing_is_read_after_the_stop_event():
    _, decoder = heard(began(), said(0, "Hi"), ended("end_turn"), STOP, said(0, "!"), end=False)
    assert (decoder.done, decoder.heard) == (True, [TextBlock("Hi")])


def test_a_stream_that_breaks_off_is_no_answer():
    events, decoder = heard(began(), said(0, "half an ans"), opened(1, **made()))
    assert events == [TextDelta("half an ans"), CallAnnounced("a", "add")]
    assert isinstance(decoder.failure, StreamInterruptedError)
    assert decoder.failure.blocks == [TextBlock("half an ans")]


@pytest.mark.parametrize(
    ("kind", "status", "retryable"),
    [
        ("overloaded_error", 529, True),
        ("rate_limit_error", 429, True),
        ("api_error", 500, True),
        ("invalid_request_error", 400, False),
        ("some_error", None, False),
    ],
)
def test_an_error_event_is_the_error_of_its_type(kind, status, retryable):
    _, decoder = heard(began(), {"type": "error", "error": {"type": kind, "message": "no"}})
    failure = decoder.failure
    assert isinstance(failure, APIError)
    assert (failure.status, failure.retryable, f"{kind}: no" in str(failure)) == (status, retryable, True)


def test_an_error_after_the_stop_reason_wins():
    _, decoder = heard(began(), said(0, "Hi"), ended("end_turn"), {"type": "error", "error": {"message": "late"}})
    assert isinstance(decoder.failure, APIError)


def test_text_and_thinking_in_the_start_of_a_block_count():
    events, _ = heard(opened(0, **THOUGHT), opened(1, **text("He")), said(1, "llo"), STOP)
    assert events[:-1] == [ReasoningDelta("Hm."), TextDelta("He"), TextDelta("llo")]
    assert events[-1].message.provider_state["content"] == [THOUGHT, text("Hello")]


def test_deltas_of_text_and_thinking_need_no_open_block_and_no_index():
    events = [delta(0, "thinking_delta", thinking="Hm."), said(0, "Hi"), {"type": "content_block_start", "index": 7}]
    events.append({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "!"}})
    told, _ = heard(*events, STOP)
    assert told[:-1] == [ReasoningDelta("Hm."), TextDelta("Hi"), TextDelta("!")]
    assert told[-1].message == Message.assistant("Hi!")


def test_what_is_unknown_is_ignored():
    events = [
        {"type": "ping"},
        {"type": "x_future", "index": 9},
        {},
        {"type": "message_start"},
        opened(5, words="?"),
        delta(0, "x_delta", text="?"),
        opened(0, **text("Hi")),
    ]
    events += [delta(0, "x_delta", text="?"), delta(0, "signature_delta", signature="?"), argued(0, "{}")]
    events += [{"type": "content_block_delta", "index": 0, "delta": None}, {"type": "message_delta", "delta": None}]
    assert turn(*events, STOP).message == Message.assistant("Hi")


def test_arguments_of_a_block_that_was_never_opened_make_no_call():
    assert turn(began(), argued(3, '{"a": 1}'), ended("tool_use"), STOP).message == Message.assistant()


def test_fragments_of_open_blocks_are_sorted_by_index():
    events = [
        opened(1, **made("b")),
        opened(0, **made("a")),
        argued(1, '{"a"'),
        argued(0, '{"a": 1'),
        argued(1, ": 2}"),
    ]
    message = turn(*events, argued(0, "}"), ended("tool_use"), STOP).message
    assert message.calls == [ToolUseBlock("a", "add", {"a": 1}), ToolUseBlock("b", "add", {"a": 2})]


def test_an_index_used_twice_stands_for_two_blocks():
    events = [opened(0, **text("")), said(0, "Hi"), opened(0, **made(input={})), argued(0, '{"a": 1}')]
    assert turn(*events, STOP).message == Message.assistant("Hi", ToolUseBlock("a", "add", {"a": 1}))


@pytest.mark.parametrize(
    ("start", "pieces", "expected"),
    [
        ({"a": 1}, [], {"a": 1}),
        ({"a": 1}, [""], {"a": 1}),
        ('{"a": 1}', [], {"a": 1}),
        ({"a": 1}, ['{"a": 2}'], {"a": 2}),
        ({}, [{"a": 3}], {"a": 3}),
        ({}, [], {}),
        (None, [""], {}),
    ],
)
def test_the_input_of_a_call_may_come_whole_in_its_start(start, pieces, expected):
    events = [opened(0, **made(input=start)), *(argued(0, piece) for piece in pieces), STOP]
    assert turn(*events).message.calls == [ToolUseBlock("a", "add", expected)]


def test_a_call_without_an_id_gets_one():
    (made_call,) = turn(opened(0, type="tool_use", name="add"), STOP).message.calls
    assert made_call.id
    assert made_call == ToolUseBlock(made_call.id, "add", {})


def test_a_call_cut_by_the_limit_is_told_to_be_cut():
    events = [opened(0, **made(input={})), argued(0, '{"a": 1'), ended("max_tokens"), STOP]
    (cut,) = turn(*events).message.calls
    assert (cut.input, cut.raw_arguments) == ({}, '{"a": 1')
    assert cut.error.startswith("the arguments are not valid JSON")


@pytest.mark.parametrize(
    ("pieces", "signature"),
    [(["EqQB", "Cg=="], "EqQBCg=="), (["EqQB", "EqQBCg=="], "EqQBCg=="), (["", "EqQB"], "EqQB"), (["EqQB"], "EqQB")],
)
def test_a_signature_may_come_in_pieces_or_grow(pieces, signature):
    events = [opened(0, type="thinking", thinking=""), *(delta(0, "signature_delta", signature=one) for one in pieces)]
    state = turn(*events, said(1, "Hi"), STOP).message.provider_state
    assert state["content"] == [{"type": "thinking", "thinking": "", "signature": signature}, text("Hi")]


def test_input_citations_and_compactions_of_a_stream_go_back_whole():
    events = [opened(0, **SEARCHING | {"input": {}}), argued(0, '{"query": '), argued(0, '"oslo"}'), opened(1, **FOUND)]
    events += [opened(2, type="text", text="", citations=None), delta(2, "citations_delta", citation={"url": "a"})]
    events += [said(2, "Rain."), delta(2, "citations_delta", citation={"url": "b"})]
    events += [opened(3, type="compaction", content=None), delta(3, "compaction_delta", content="All so far.")]
    message = turn(*events, opened(4, type="fallback", to={"model": "c"}), ended("end_turn"), STOP).message
    assert message.content == [TextBlock("Rain.")]
    assert message.provider_state["content"] == [
        SEARCHING,
        FOUND,
        text("Rain.") | {"citations": [{"url": "a"}, {"url": "b"}]},
        {"type": "compaction", "content": "All so far."},
        {"type": "fallback", "to": {"model": "c"}},
    ]


def test_counts_are_totals_and_the_prompt_includes_what_was_cached():
    start = {"input_tokens": 25, "output_tokens": 1, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7}
    details = {"output_tokens": 89, "input_tokens": None, "output_tokens_details": {"thinking_tokens": 40}}
    merged = start | {"output_tokens": 89, "output_tokens_details": {"thinking_tokens": 40}}
    events = [began(usage=start), said(0, "Hi"), ended("end_turn", output_tokens=80), ended(None, **details), STOP]
    assert turn(*events).usage == Usage(132, 89, 100, 7, 40, merged)
    assert turn(began(usage={"output_tokens": 1}), STOP).usage == Usage(output_tokens=1, raw={"output_tokens": 1})
    assert turn(began(), STOP).usage is None


DOCUMENT = {
    "type": "message",
    "id": "msg_1",
    "model": "c",
    "role": "assistant",
    "content": [THOUGHT, text("Adding."), made()],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 7, "output_tokens": 5},
}


def test_a_plain_document_is_read_like_a_stream():
    events = told([json.dumps(DOCUMENT).encode()])
    assert events[:-1] == [ReasoningDelta("Hm."), TextDelta("Adding."), CallAnnounced("a", "add")]
    end = events[-1]
    assert end.message.content == [TextBlock("Adding."), ToolUseBlock("a", "add", {"a": 1})]
    assert end.message.provider_state["content"] == DOCUMENT["content"]
    assert (end.finish_reason.raw, end.usage.input_tokens, end.response.id) == ("tool_use", 7, "msg_1")
    assert turn(DOCUMENT) == end  # as the one event of a stream
    assert turn({"type": "message_start", "message": DOCUMENT}) == end


def test_a_document_may_hold_bare_text():
    assert told([b'{"role": "assistant", "content": "Hi"}'])[-1].message == Message.assistant("Hi")


def test_another_document_is_no_answer():
    decoder = BodyDecoder(AnthropicTurn({}, provider=HERE))
    decoder.feed(b'{"type": "message_batch", "content": []}')
    decoder.end()
    assert "no answer of this protocol" in str(decoder.failure)


# Conversations


def client(server, **settings):
    settings = {"model": "m", "base_url": server.url, "protocol": "anthropic", "retry": None} | settings
    return Client(**settings)


def thinking_rounds():
    return [answer(reasoning=f"Step {n}.", calls=[call("add", {"a": n})]) for n in (1, 2, 3)]


def test_thinking_survives_saving_after_every_step_of_three_rounds():
    history, steps = [], []
    with ScriptedServer(*thinking_rounds(), answer("Done.", reasoning="So.")) as server:
        for step in range(4):
            with client(server, tools=[ADD], reasoning_effort=2048) as one:
                one.history = saved(history)
                one.send("" if step else "Add.")
                steps.append(list(one.receive()))
                for block in saved(one.history)[-1].calls:
                    one.history = saved(one.history)
                    one.add_tool_result(block.id, step)
                history = saved(one.history)
        assert server.complaints == []
        replayed = server.requests[3].body["messages"]
    assert steps[3] == [TextBlock("Done.")]
    assert [block["type"] for block in replayed[1]["content"]] == ["thinking", "tool_use"]
    assert [message["role"] for message in replayed] == ["user", *["assistant", "user"] * 3]


def test_thinking_goes_through_the_rounds_of_auto_mode_and_into_the_next_prompt():
    with ScriptedServer(*thinking_rounds(), answer("Done.", reasoning="So."), "Fine.") as server:
        with client(server, tools=[ADD], reasoning_effort=2048, auto_execute_tools=True, include_reasoning=True) as one:
            assert one.ask("Add.") == "Done."
            assert one.reasoning == "Step 1.Step 2.Step 3.So."
            one.history = saved(one.history)
            assert one.ask("And?") == "Fine."
        assert server.complaints == []
        assert json.dumps(server.requests[4].body).count('"type": "thinking"') == 4


def test_the_last_round_declares_the_tools_and_forbids_them():
    with ScriptedServer(*thinking_rounds(), "Enough.") as server:
        with client(server, tools=[ADD], auto_execute_tools=True, max_tool_iterations=3) as one:
            assert one.ask("Add.") == "Enough."
            assert one.finish_reason == "max_tool_iterations"
        last = server.requests[-1].body
        assert server.complaints == []
    assert (last["tools"], last["tool_choice"]) == ([ADD_ON_THE_WIRE], {"type": "none"})
    assert last["system"].startswith("You have used all the rounds")


def paused(*blocks):
    return raw(stream([began(content=list(blocks)), ended("pause_turn"), STOP]))


def test_a_paused_turn_goes_on_by_itself_in_auto_mode():
    settings = {"tools": [Tool.hosted(SEARCH)], "auto_execute_tools": True}
    with ScriptedServer(paused(text("Searching."), SEARCHING), paused(SEARCHING | {"id": "srv_2"}), "Rain.") as server:
        with client(server, **settings) as one:
            assert one.ask("Weather?") == "Rain."
            assert [message.role for message in one.history] == ["user", "assistant", "assistant", "assistant"]
        assert server.complaints == []
        assert server.requests[2].body["messages"] == [
            user("Weather?"),
            spoken(text("Searching."), SEARCHING),
            spoken(SEARCHING | {"id": "srv_2"}),
        ]


def test_a_turn_that_keeps_pausing_is_sent_back_five_times():
    with ScriptedServer(paused(text("Hm."), SEARCHING), repeat=True) as server:
        with client(server, auto_execute_tools=True) as one:
            one.ask("Weather?")
            assert one.finish_reason == "pause_turn"
        assert len(server.requests) == 6


@pytest.mark.parametrize("blocks", [(text("Searching."), SEARCHING), (SEARCHING,)])
def test_a_paused_turn_goes_on_by_an_empty_prompt_in_manual_mode(blocks):
    with ScriptedServer(paused(*blocks), "Rain.", "Bye.") as server:
        with client(server, tools=[Tool.hosted(SEARCH)]) as one:
            one.ask("Weather?")
            assert one.finish_reason == "pause_turn"
            one.history = saved(one.history)
            assert one.ask("") == "Rain."
            assert one.ask("Thanks.") == "Bye."
        assert server.complaints == []
        assert server.requests[1].body["messages"] == [user("Weather?"), spoken(*blocks)]


def test_the_state_of_a_turn_is_sent_to_no_other_provider():
    with ScriptedServer(*thinking_rounds()[:1], "Done.", paused(SEARCHING)) as server:
        with client(server, tools=[ADD], auto_execute_tools=True) as one:
            one.ask("Add.")
            one.options = one.options.replace(auto_execute_tools=False)
            one.ask("Weather?")
            history = saved(one.history)
    assert "Step 1." in json.dumps([message.to_dict() for message in history])
    for protocol in ("anthropic", "openai-chat", "openai-responses"):
        with ScriptedServer("Bye.") as other:
            with client(other, tools=[ADD], protocol=protocol) as one:
                one.history = list(history)
                assert one.ask("Bye.") == "Bye."
            assert other.complaints == []
            sent = json.dumps(other.requests[0].body)
        assert not [word for word in ("Step 1.", "signature", "srv_1", "provider_state", "thinking") if word in sent]


def test_an_answer_of_another_provider_is_taken_up_in_the_midst_of_its_calls():
    with ScriptedServer(answer("Adding.", calls=[call("add", {"a": 1}, id="f.add:0")])) as server:
        with client(server, tools=[ADD], protocol="openai-chat") as one:
            one.send("Add.")
            list(one.receive())
            history = saved(one.history)
    with ScriptedServer("Done.") as server:
        with client(server, tools=[ADD], reasoning_effort=2048) as one:
            one.history = history
            one.add_tool_result("f.add:0", 42)
            assert one.ask("") == "Done."
        assert server.complaints == []


def test_an_interrupted_turn_leaves_a_history_that_is_accepted():
    with ScriptedServer(*thinking_rounds()[:1], "Fine.") as server:
        with client(server, tools=[ADD]) as one:
            one.send("Add.")
            list(one.receive())
            assert one.ask("Never mind.") == "Fine."
        assert server.complaints == []
        sent = server.requests[1].body["messages"]
    assert [block["type"] for block in sent[1]["content"]] == ["thinking", "tool_use"]
    assert sent[2]["content"][0]["is_error"] is True
    assert sent[3] == user("Never mind.")


def test_an_empty_answer_is_not_kept_but_one_with_state_is():
    with ScriptedServer("", paused(SEARCHING), repeat=True) as server:
        with client(server) as one:
            one.ask("Hi")
            assert one.history == [HI]
            one.ask("Weather?")
            assert one.history[-1].content == []
            assert one.history[-1].provider_state["content"] == [SEARCHING]


def test_with_a_budget_to_think_a_later_round_may_go_without_thoughts(serve, connect):
    """The vendor counts all since the last prompt as one turn, which began with its thinking."""
    first = answer(reasoning="Hm.", calls=[call("look", id="c1")])
    server = serve(first, answer(calls=[call("look", id="c2")]), "Done.")
    look = Tool("look", "", {}, lambda arguments: "seen")
    client = connect(
        server, protocol="anthropic", tools=[look], auto_execute_tools=True, reasoning_effort=1024, max_tokens=4096
    )
    assert client.ask("q") == "Done."


VALUES = st.sampled_from([None, "", "x", "é😀", "\ud83d", 1, True, [], {}, {"x": 1}])
KINDS = st.sampled_from(["text_delta", "thinking_delta", "input_json_delta", "signature_delta", "x"]) | VALUES
PIECES = st.fixed_dictionaries(
    {"type": KINDS},
    optional={name: st.sampled_from(["x", "é", "{"]) | VALUES for name in ("text", "thinking", "partial_json", "x")},
)
PLAIN = st.sampled_from([{"type": "text_delta", "text": "x"}, {"type": "input_json_delta", "partial_json": "{"}])
INDEXES = st.sampled_from([0, 1, 2, 3, 4, -1, 1.0]) | VALUES
DELTAS = st.fixed_dictionaries(
    {"type": st.just("content_block_delta"), "index": INDEXES, "delta": PIECES | PLAIN | VALUES},
    optional={"error": VALUES, "usage": VALUES},
)
STARTS = st.builds(
    lambda index, kind: {"type": "content_block_start", "index": index, "content_block": {"type": kind, "id": "a"}},
    INDEXES,
    st.sampled_from(["text", "thinking", "tool_use", "server_tool_use"]) | VALUES,
)
STOPS = st.just({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})


def heard_of(events, *, quickly):
    """What a turn has heard of some events, the quick way tried first or not at all."""
    turn = AnthropicTurn({}, provider="p")
    for event in events:
        text = json.dumps(event).encode()
        if not (quickly and turn.quick(text)):
            turn.answer.add_burst()
            turn.payload(codec.parse(text))
    turn.answer.add_burst()
    told = [event for event in spread(turn.answer.events) if not isinstance(event, CallAnnounced)]  # ids are made up
    pieces = [(block.kind, block.pieces.joined(), block.signature) for block in turn._blocks]
    calls = ["".join(call.arguments) for call in turn.answer._calls.values()]
    return told, turn.answer.ended, turn.answer.finish, turn.answer.heard(), pieces, calls


@given(st.lists(STARTS, max_size=3), st.lists(DELTAS | STARTS | STOPS, max_size=6))
def test_the_quick_way_comes_to_the_same_as_the_general_one(starts, events):
    assert heard_of(starts + events, quickly=True) == heard_of(starts + events, quickly=False)


def test_the_quick_way_is_taken_by_the_events_that_the_vendor_sends():
    turn = AnthropicTurn({}, provider="p")
    turn.payload({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    assert turn.quick(b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}')
