"""The adapter of Chat Completions, both ways, without network: messages to bytes, bytes to messages."""

import dataclasses
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from openagent import (
    AgentError,
    AgentOptions,
    ConfigError,
    FinishReason,
    ImageBlock,
    Message,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    codec,
)
from openagent.adapters.openai_chat import OpenAIChat
from openagent.adapters.openai_chat_turn import ChatTurn, ThinkTag, merged_details
from openagent.decoding import BodyDecoder
from openagent.events import CallAnnounced, ReasoningDelta, TextDelta, TurnFinished, spread
from openagent.history import sendable

LOCAL = "http://localhost:1234/v1"
HI = [Message.user("hi")]
ADD = Tool("add", "Add numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
C1, C2 = ToolUseBlock("c1", "add", {"a": 1}), ToolUseBlock("c2", "add", {"a": 2})


def adapter(messages=HI, **settings):
    options = AgentOptions(**{"model": "m", "base_url": LOCAL} | settings)
    OpenAIChat.check(options)
    return OpenAIChat(options, messages, list(options.registry.values()), lambda request, make_decoder: iter(()))


def encoded(messages=HI, instruction=None, include_tools=True, **settings):
    chat = adapter(messages, **settings)
    return chat.encode(instruction, include_tools and bool(chat.tools))


def body(*args, **settings):
    return json.loads(encoded(*args, **settings).body)


def wire(*messages, **settings):
    return body(list(messages), **settings)["messages"]


def wire_call(call, **extra):
    function = {"name": call.name, "arguments": json.dumps(call.input, separators=(",", ":"))}
    return {"id": call.id, "type": "function", "function": function} | extra


# Requests


def test_a_request_says_no_more_than_was_set():
    """R-110, B-43, B-60: no max_tokens and no temperature of ours."""
    request = encoded()
    assert json.loads(request.body) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert request.url == "http://localhost:1234/v1/chat/completions"
    assert request.headers == {"Content-Type": "application/json", "Accept": "text/event-stream"}


def test_every_setting_has_its_place():
    """design.md 3."""
    settings = {"temperature": 0, "top_p": 0.5, "max_tokens": 9, "seed": 7, "reasoning_effort": "low"}
    sent = body(
        stop=["a", "b"],
        response_format="json",
        tools=[ADD],
        tool_choice="required",
        parallel_tool_calls=False,
        system_prompt="S",
        extra_body={"top_k": 3, "stream_options": None},
        **settings,
    )
    assert sent == settings | {
        "model": "m",
        "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": None,
        "stop": ["a", "b"],
        "response_format": {"type": "json_object"},
        "tools": [
            {
                "type": "function",
                "function": {"name": "add", "description": "Add numbers.", "parameters": ADD.input_schema},
            }
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "top_k": 3,
    }


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://me.openai.azure.com/openai/deployments/d?api-version=1", "max_completion_tokens"),
        ("https://me.services.ai.azure.com/openai/v1", "max_completion_tokens"),
        (LOCAL, "max_tokens"),
        ("https://openrouter.ai/api/v1", "max_tokens"),
        ("https://api.openai.com.example.org/v1", "max_tokens"),
        ("http://localhost:1234/api.openai.com", "max_tokens"),
    ],
)
def test_the_output_limit_has_the_name_that_the_host_knows(url, name):
    """design.md 3."""
    sent = body(base_url=url, max_tokens=9)
    assert {key: value for key, value in sent.items() if key.startswith("max_")} == {name: 9}


def test_the_query_of_the_address_is_kept():
    """http-04."""
    request = encoded(base_url="https://me.openai.azure.com/openai/deployments/d?api-version=1")
    assert request.url == "https://me.openai.azure.com/openai/deployments/d/chat/completions?api-version=1"


def test_usage_need_not_be_asked_for():
    assert "stream_options" not in body(include_usage=False)
    assert "stream_options" not in body(base_url="https://api.mistral.ai/v1")


def test_a_json_schema_is_a_response_format():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert body(response_format=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema},
    }


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("add", {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_a_choice_of_tool_is_sent_with_the_tools_only(choice, sent):
    settings = {"tools": [ADD], "tool_choice": choice}
    assert body(**settings)["tool_choice"] == sent
    assert {"tools", "tool_choice", "parallel_tool_calls"} & body(HI, None, False, **settings).keys() == set()


@pytest.mark.parametrize(("choice", "sent"), [("auto", "auto"), ("none", "none"), ("required", None), ("add", None)])
def test_a_forced_call_is_forced_once(choice, sent):
    """After it the model must be free to answer, else the loop never ends."""
    chat = adapter(tools=[ADD], tool_choice=choice)
    chat.turn = TurnFinished(Message.assistant(C1), FinishReason("tool_calls"), None, None)
    chat.record_assistant_turn()
    chat.record_tool_result("c1", "ok")
    assert json.loads(chat.encode(None, True).body).get("tool_choice") == sent


def test_a_vendors_own_tool_goes_out_as_it_is():
    """design.md 3."""
    hosted = {"type": "web_search", "max": 3}
    assert body(tools=[Tool.hosted(hosted)])["tools"] == [hosted]


@pytest.mark.parametrize("name", ["model", "messages", "stream"])
def test_the_extra_body_must_not_hold_what_has_a_setting(name):
    with pytest.raises(ConfigError, match=name):
        adapter(extra_body={name: 1})


def test_a_number_as_effort_cannot_be_said_here():
    """design.md 3: nothing is dropped in silence."""
    with pytest.raises(ConfigError, match="reasoning_effort 1024"):
        adapter(reasoning_effort=1024)


def test_an_extra_body_that_is_no_json_is_a_clear_error():
    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        encoded(extra_body={"a": object()})


def test_the_key_goes_into_a_header_and_is_not_shown():
    """R-101, promise 5."""
    request = encoded(api_key="k-secret")
    assert request.headers["Authorization"] == "Bearer k-secret"
    assert "secret" not in repr(request)


def test_the_users_headers_replace_ours_whatever_their_case():
    """R-103, H-2, B-80."""
    headers = encoded(api_key="k", headers={"authorization": "Key x", "ACCEPT": "a/b", "X-Title": "t"}).headers
    assert headers == {"Content-Type": "application/json", "authorization": "Key x", "ACCEPT": "a/b", "X-Title": "t"}


# Messages


def test_texts_are_joined_by_newlines():
    """R-111.4, R-112: what a model said is one text, so nothing is ever put between its pieces."""
    assert wire(
        Message.system("s"),
        Message.user("a", "b"),
        Message.assistant("c"),
        Message.assistant("d", "e"),
        Message.user("f"),
    ) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a\nb"},
        {"role": "assistant", "content": "c"},
        {"role": "assistant", "content": "d\ne"},
        {"role": "user", "content": "f"},
    ]


def test_text_in_a_tool_message_is_said_by_the_user():
    """As in a list of messages by hand; a message of role "tool" needs the id of a call."""
    assert wire(*HI, Message("tool", [TextBlock("a")]), Message("tool", ["a", "b"]))[1:] == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "a\nb"},
    ]


def test_the_system_prompt_and_the_instruction_stand_first():
    """R-17; harness.md 1.4: the instruction concerns one request."""
    assert body(system_prompt="S")["messages"][0] == {"role": "system", "content": "S"}
    assert body(HI, "I", False, system_prompt="S")["messages"][0] == {"role": "system", "content": "S\n\nI"}
    assert body(HI, "I", False)["messages"][0] == {"role": "system", "content": "I"}


def test_calls_go_out_with_arguments_as_text_and_content_that_is_never_missing():
    """R-111.2, B-9, B-10, B-11."""
    assert wire(*HI, Message.assistant("I see.", C1, C2))[1] == {
        "role": "assistant",
        "content": "I see.",
        "tool_calls": [wire_call(C1), wire_call(C2)],
    }
    assert wire(*HI, Message.assistant("a", C1, "b"))[1]["content"] == "a\nb"
    assert wire(*HI, Message.assistant(C1))[1] == {"role": "assistant", "content": "", "tool_calls": [wire_call(C1)]}


@pytest.mark.parametrize(("setting", "shown"), [("", {"content": ""}), (None, {"content": None}), ("omit", {})])
def test_a_server_may_want_no_content_beside_calls(setting, shown):
    """design.md 7.8."""
    turn = {"role": "assistant"} | shown | {"tool_calls": [wire_call(C1)]}
    assert wire(*HI, Message.assistant(C1), empty_content=setting)[1] == turn
    assert wire(*HI, Message.assistant("x", C1), empty_content=setting)[1]["content"] == "x"


@pytest.mark.parametrize(
    ("content", "is_error", "text"),
    [
        ("ok", False, "ok"),
        ("", False, ""),
        ({"sum": 3, "é": [None, True]}, False, '{"sum":3,"é":[null,true]}'),
        (5, False, "5"),
        (None, False, "null"),
        ("no such file", True, "Error: no such file"),
        ("Error: no such file", True, "Error: no such file"),
        ({"error": "no"}, True, '{"error":"no"}'),
    ],
)
def test_a_result_is_a_message_of_its_own(content, is_error, text):
    """R-111.1, design.md 7.8: a text as it is, other values as JSON, an error legible."""
    result = {"role": "tool", "tool_call_id": "c1", "content": text}
    assert wire(*HI, Message.assistant(C1), Message.tool_result("c1", content, is_error=is_error))[2] == result


def test_all_results_of_a_message_go_out_and_what_stands_beside_them_follows():
    """R-111.1: the seed drops it."""
    answers = Message("user", [ToolResultBlock("c1", "1"), ToolResultBlock("c2", "2"), TextBlock("go on")])
    assert wire(*HI, Message.assistant(C1, C2), answers)[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
        {"role": "user", "content": "go on"},
    ]


def test_an_image_goes_out_as_a_part_with_its_detail():
    """R-111.3; B-17 as design.md reads it: an empty text is no part."""
    image = ImageBlock("http://x/y", "low")
    assert wire(Message.user("a", image, "", "b", image.with_detail("auto")))[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "http://x/y", "detail": "low"}},
        {"type": "text", "text": "b"},
        {"type": "image_url", "image_url": {"url": "http://x/y", "detail": "auto"}},
    ]


def test_the_wire_of_a_manual_round():
    """T-7: the empty user message that stands for "go on" stays at home."""
    history = [
        Message.user("q"),
        Message.assistant(C1, C2),
        Message.tool_result("c1", "one"),
        Message.tool_result("c2", {"two": 2}),
        Message.user(""),
    ]
    assert body(sendable(history), system_prompt="S", tools=[ADD])["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [wire_call(C1), wire_call(C2)]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": '{"two":2}'},
    ]


def test_a_turn_without_calls_has_no_tool_calls():
    """hist-05: nor any other empty member."""
    message = decoded(chunk({"content": "x", "tool_calls": [], "refusal": None, "audio": None}, "stop")).message
    assert wire(*HI, message)[1] == {"role": "assistant", "content": "x"}


def test_bad_arguments_go_back_as_an_empty_object():
    """hist-06, design.md 7.5: the session goes on."""
    message = decoded(chunk({"tool_calls": [fragment(0, "c1", "add", '{"a":[1')]}, "tool_calls")).message
    assert message.calls[0].raw_arguments == '{"a":[1'
    assert wire(*HI, message)[1]["tool_calls"] == [wire_call(ToolUseBlock("c1", "add", {}))]


def test_lone_surrogates_do_not_leave():
    """tool-07."""
    sent = wire(
        Message.user("a \ud83d b"),
        Message.assistant(ToolUseBlock("c1", "add", {"\udcb0": "\udcb0"})),
        Message.tool_result("c1", "\udcb0 x"),
        system_prompt="\ud800",
    )
    assert [message["content"] for message in sent] == ["\ufffd", "a \ufffd b", "", "\ufffd x"]
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == '{"\ufffd":"\ufffd"}'


def test_a_value_that_is_no_json_is_a_clear_error():
    """design.md 6: whatever part of the history holds it."""
    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        encoded([*HI, Message.assistant(ToolUseBlock("c1", "add", {"a": {1}})), Message.tool_result("c1", 1)])
    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        encoded([*HI, Message.assistant(C1), Message.tool_result("c1", object())])


# Turns


def chunk(delta=None, finish=None, **more):
    return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}]} | more


def fragment(index=..., id=..., name=..., arguments=..., **more):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not ...}
    members = {key: value for key, value in (("index", index), ("id", id)) if value is not ...}
    return members | ({"function": function} if function else {}) | more


@dataclasses.dataclass
class Turn:
    events: list
    message: Message
    finish: FinishReason
    usage: object

    @property
    def reasoning(self):
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))


def decoded(*payloads, provider=f"openai-chat {LOCAL[7:-3]}", **how):
    """The turn of these chunks; the provider is that of ``adapter()``."""
    turn = ChatTurn(CaseInsensitiveDict(), provider=provider, **how)
    decoder = BodyDecoder(turn)
    sent = "".join(f"data: {json.dumps(payload)}\n\n" for payload in payloads) + "data: [DONE]\n\n"
    *events, end = decoder.feed(sent.encode())
    assert decoder.failure is None, decoder.failure
    return Turn(events, end.message, end.finish_reason, end.usage)


def text_of(*deltas, **how):
    turn = decoded(*[chunk(delta) for delta in deltas], **how)
    return turn.reasoning, turn.message.text


@pytest.mark.parametrize(
    "payload",
    [
        {"choices": [{"delta": {"content": "x"}}]},
        {"choices": [{"message": {"role": "assistant", "content": "x"}}]},
        {"id": None, "object": 5, "created": "no", "choices": [{"index": None, "delta": {"content": "x"}}]},
        {"choices": [{"delta": {"content": [{"type": "text", "text": "x"}]}}]},
        {"choices": [{"delta": {"content": ["x"]}}]},
        {"choices": [{"delta": {"content": {"type": "text", "text": "x"}}}]},
        {"choices": [{"delta": {"refusal": "x"}}]},
        {"choices": [{"delta": None, "message": {"content": "x"}}]},
    ],
)
def test_little_is_needed_for_a_piece_of_text(payload):
    """R-170, R-171, chat-02, chat-04."""
    assert decoded(payload).message == Message.assistant("x")


@pytest.mark.parametrize("choices", [[], None, [None], [{}], [{"delta": None}], {}, "x", [[]], [{"delta": "x"}]])
def test_a_chunk_without_a_choice_says_nothing(choices):
    """R-170, chat-01, chat-06."""
    turn = decoded({"choices": choices}, chunk({"content": "x"}, "stop"), {"choices": choices}, {})
    assert (turn.events, turn.finish, turn.finish.raw) == ([TextDelta("x")], "stop", "stop")


def test_only_the_first_choice_is_the_answer():
    """R-172, B-59, design.md 7.2."""
    other = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]}
    turn = decoded(other, chunk({"content": "x"}), other, chunk({}, "stop"), other)
    assert (turn.message, turn.finish) == (Message.assistant("x"), "stop")


def test_reasoning_comes_before_text_and_text_before_calls():
    """R-93, R-173."""
    delta = {"tool_calls": [fragment(0, "c1", "add", "{}")], "content": "x", "reasoning": "hm"}
    assert decoded(chunk(delta)).events == [ReasoningDelta("hm"), TextDelta("x"), CallAnnounced("c1", "add")]


@pytest.mark.parametrize(
    ("delta", "reasoning"),
    [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm"}, "hm"),
        ({"reasoning_content": "hm", "reasoning": "hm"}, "hm"),
        ({"reasoning_content": "", "reasoning": "hm"}, "hm"),
        ({"reasoning_content": None, "reasoning": "hm"}, "hm"),
        ({"reasoning": {"effort": "low"}}, ""),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}, None, "x"]}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "abc"}]}, ""),
        ({"reasoning_details": "no"}, ""),
        ({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, "hm"),
    ],
)
def test_reasoning_is_heard_under_each_of_its_names_and_once(delta, reasoning):
    """R-90, R-93, B-55, B-56, rsn-01, rsn-03."""
    turn = decoded(chunk(delta), chunk({"content": "x"}, "stop"))
    assert (turn.reasoning, turn.message.content) == (reasoning, [TextBlock("x")])


def test_reasoning_alone_is_no_message():
    """R-94."""
    turn = decoded(chunk({"reasoning_content": "hm"}, "length"))
    assert (turn.message, turn.finish.is_truncated) == (Message.assistant(), True)


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        ([[fragment(0, "a", "f", '{"x":1}')]], [("a", "f", {"x": 1})]),
        ([[fragment(id="a", name="f", arguments='{"x"')], [fragment(arguments=":1}")]], [("a", "f", {"x": 1})]),
        ([[fragment(None, "a", "f", "{}")], [fragment(None, "b", "g", "{}")]], [("a", "f", {}), ("b", "g", {})]),
        (
            [
                [fragment(0, "a", "f")],
                [fragment(0, "", None, '{"x":1}')],
                [fragment(0, "b", "g")],
                [fragment(0, "", None, "{}")],
            ],
            [("a", "f", {"x": 1}), ("b", "g", {})],
        ),
        (
            [[fragment(0, "0", "f")], [fragment(0, "0", arguments="{}")], [fragment(0, "1", "g", "{}")]],
            [("0", "f", {}), ("1", "g", {})],
        ),
        ([[fragment(0, "a", "f", '{"x')], [fragment(0, "a", "f", '":1}')]], [("a", "f", {"x": 1})]),
        ([[fragment(0, "a", "f", "{")], [fragment(0, "", "", "}")]], [("a", "f", {})]),
        ([[fragment(0)], [fragment(0, name="f")], [fragment(0, "a")], [fragment(0, arguments="{}")]], [("a", "f", {})]),
        ([[fragment(0, "a", "f", "{")], [fragment(0, "other", arguments="}")]], [("a", "f", {})]),
        ([[fragment(1, "b", "g", "{}"), fragment(0, "a", "f", "{}")]], [("a", "f", {}), ("b", "g", {})]),
        ([[fragment(0, "a", "f", "{}"), fragment(5, "b", "g", "{}")]], [("a", "f", {}), ("b", "g", {})]),
        ([[fragment("0", "a", "f", "{}")]], [("a", "f", {})]),
        ([[fragment(0, 7, "f", {"x": 1})]], [("7", "f", {"x": 1})]),
        ([[fragment(0, "a", "f", None)]], [("a", "f", {})]),
        ([[fragment(0, "a", "f", "{}"), None, "x", 5]], [("a", "f", {})]),
        ([fragment(0, "a", "f", "{}")], [("a", "f", {})]),
        (
            [
                [fragment(id="a", name="f", arguments='{"x"'), fragment(id="b", name="g")],
                [fragment(id="a", name="f", arguments=":1}")],
            ],
            [("a", "f", {"x": 1}), ("b", "g", {})],
        ),
    ],
    ids=lambda value: "" if isinstance(value, list) else None,
)
def test_fragments_find_their_call(deltas, calls):
    """design.md 7.4; R-180, R-181, R-183, R-185; tc-01 to tc-11, tc-18."""
    message = decoded(*[chunk({"tool_calls": fragments}) for fragments in deltas], chunk({}, "tool_calls")).message
    assert [(call.id, call.name, call.input) for call in message.calls] == calls
    assert [call.error for call in message.calls] == [None] * len(calls)


def test_calls_that_lack_index_and_id_are_told_apart_by_their_names():
    """tc-01: a name of its own is a new call; tc-12."""
    first, second = decoded(
        chunk({"tool_calls": [fragment(name="f", arguments='{"x":')]}),
        chunk({"tool_calls": [fragment(name="f", arguments="1}")]}),
        chunk({"tool_calls": [fragment(name="g", arguments="{}")]}),
    ).message.calls
    assert (first.name, first.input, second.name, second.input) == ("f", {"x": 1}, "g", {})
    assert first.id != second.id


@pytest.mark.parametrize("ids", [("a", "b"), ("a", "a"), (..., ...), (None, None), ("", "")])
@pytest.mark.parametrize("index", [..., None, 0])
def test_the_calls_of_a_whole_message_are_as_many_as_it_lists(ids, index):
    """sse-26, chat-04, tc-12, tc-14: a document has no index, and may lack or repeat ids."""
    calls = [fragment(index, id, "f", f'{{"x":{place}}}') for place, id in enumerate(ids)]
    whole = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}
    first, second = decoded(whole).message.calls
    assert (first.name, first.input, second.name, second.input) == ("f", {"x": 0}, "f", {"x": 1})
    assert "" != first.id != second.id != ""


def test_the_form_before_tool_calls_is_a_call():
    """tc-15."""
    turn = decoded(
        chunk({"function_call": {"name": "add"}}),
        chunk({"function_call": {"arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ":1}"}}, "function_call"),
    )
    (call,) = turn.message.calls
    assert (call.name, call.input, turn.finish, turn.finish.raw) == ("add", {"a": 1}, "tool_calls", "function_call")


def test_a_refusal_is_text_and_its_reason_is_told():
    """R-171, chat-09: distinct from stop."""
    turn = decoded(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk({}, "stop"))
    assert (turn.message.text, turn.finish, turn.finish.raw) == ("I cannot.", "content_filter", "stop")


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, Usage(9, 2)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, None, 4)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(9, None, 4)),
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4}}, Usage(None, 9, None, None, 4)),
        ({"prompt_tokens_details": {"cache_write_tokens": 3, "cached_tokens": 0}}, Usage(None, None, 0, 3)),
        ({"prompt_tokens": "9", "completion_tokens": True, "prompt_tokens_details": None}, Usage()),
    ],
)
def test_usage_counts_what_came(usage, counts):
    """design.md 3: a number that was not sent is None."""
    expected = dataclasses.replace(counts, raw=usage)
    assert decoded(chunk({"content": "x"}), {"choices": [], "usage": usage}).usage == expected
    assert decoded({"choices": [{"delta": {"content": "x"}, "usage": usage}]}).usage == expected


def test_the_last_usage_wins():
    """use-01, chat-02."""
    payloads = [chunk({"content": "x"}, usage={"prompt_tokens": 9, "completion_tokens": n}) for n in (1, 2)]
    last = {"prompt_tokens": 9, "completion_tokens": 2}
    assert decoded(*payloads, chunk({}, "stop", usage=None)).usage == Usage(9, 2, raw=last)
    assert decoded(chunk({"content": "x"}, usage=None)).usage is None
    assert decoded(chunk({"content": "x"}, usage="no")).usage is None


# <think>

THINKING = [
    ("<think>plan</think>answer", "plan", "answer"),
    ("\n <think>\nplan\n</think>\n\nanswer\n", "\nplan\n", "answer\n"),
    ("<think></think>answer", "", "answer"),
    ("<think>plan", "plan", ""),
    ("<think>plan</thin", "plan</thin", ""),
    ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
    ("<think>a < b </ c</think>x", "a < b </ c", "x"),
    ("<think>plan</think>", "plan", ""),
    ("answer <think>no</think>", "", "answer <think>no</think>"),
    ("<thinking>no", "", "<thinking>no"),
    ("<thi", "", "<thi"),
    ("<", "", "<"),
    ("  \n", "", "  \n"),
    ("<b>bold</b>", "", "<b>bold</b>"),
]


@pytest.mark.parametrize(("sent", "reasoning", "text"), THINKING)
def test_a_think_block_at_the_very_start_is_reasoning_wherever_it_is_cut(sent, reasoning, text):
    """design.md 7.14, rsn-04: later tags are text, no piece of a tag is shown."""
    assert text_of({"content": sent}) == (reasoning, text)
    assert text_of(*[{"content": character} for character in sent]) == (reasoning, text)
    for first in range(len(sent) + 1):
        assert text_of({"content": sent[:first]}, {"content": sent[first:]}) == (reasoning, text)
    for size in (2, 3, 5):
        pieces = [sent[place : place + size] for place in range(0, len(sent), size)]
        assert text_of(*[{"content": piece} for piece in pieces]) == (reasoning, text)


@pytest.mark.parametrize(("sent", "reasoning", "text"), THINKING)
def test_think_tags_can_be_left_alone(sent, reasoning, text):
    """design.md 7.14."""
    assert text_of(*[{"content": character} for character in sent], think_tags=False) == ("", sent)


def test_text_is_told_as_soon_as_it_is_certain():
    """design.md, promise 3: at most a possible tag is held back."""
    tag = ThinkTag()
    pieces = ["<think>", "pla", "n</", "x</think", ">\n", "\na", "b"]
    assert [tag.feed(piece) for piece in pieces] == [
        ("", ""),
        ("pla", ""),
        ("n", ""),
        ("</x", ""),
        ("", ""),
        ("", "a"),
        ("", "b"),
    ]
    assert ThinkTag().feed("Hello") == ("", "Hello")


# What a provider wants back


def replayed(message, **settings):
    return wire(*HI, message, *[Message.tool_result(call.id, "ok") for call in message.calls], **settings)[1]


CALL = {"tool_calls": [fragment(0, "c1", "add", '{"a":1}')]}
DETAILS = [
    {"type": "reasoning.text", "text": "h", "index": 0, "format": None},
    {"type": "reasoning.text", "text": "m", "index": 0, "signature": "s"},
    {"type": "reasoning.encrypted", "data": "abc", "id": "r1", "index": 1},
]
MERGED = [
    {"type": "reasoning.text", "text": "hm", "index": 0, "format": None, "signature": "s"},
    {"type": "reasoning.encrypted", "data": "abc", "id": "r1", "index": 1},
]


@pytest.mark.parametrize(
    ("deltas", "state"),
    [
        ([{"reasoning_content": "h"}, {"reasoning_content": "m"}], {"reasoning_content": "hm"}),
        ([{"reasoning": "h"}, {"reasoning": "m"}], {"reasoning": "hm"}),
        (
            [{"reasoning_content": "hm", "reasoning": "hm", "reasoning_details": DETAILS}],
            {"reasoning_content": "hm", "reasoning": "hm", "reasoning_details": MERGED},
        ),
        ([{"reasoning_details": [detail]} for detail in DETAILS], {"reasoning_details": MERGED}),
        ([{"content": "<think>hm</think>"}], {}),
    ],
)
@pytest.mark.parametrize("answer", [CALL, {"content": "x"}])
def test_reasoning_goes_back_under_the_name_it_came_under(deltas, state, answer):
    """rsn-06, rsn-03; what came as a tag in the text does not."""
    message = decoded(*[chunk(delta) for delta in deltas], chunk(answer)).message
    plain = {"role": "assistant", "content": "", "tool_calls": [wire_call(C1)]}
    plain = plain if answer is CALL else {"role": "assistant", "content": "x"}
    assert replayed(message) == plain | state
    assert replayed(message, replay_reasoning=False) == plain


def test_state_survives_being_saved():
    message = decoded(chunk({"reasoning_content": "hm"}), chunk(CALL)).message
    loaded = Message.from_dict(json.loads(json.dumps(message.to_dict())))
    assert replayed(loaded) == replayed(message)
    assert replayed(loaded)["reasoning_content"] == "hm"


def test_state_stays_with_the_provider_and_the_blocks_it_came_with():
    """design.md 4: another provider never sees it; changed blocks go without."""
    message = decoded(chunk({"reasoning_content": "hm"}), chunk({"content": "x"})).message
    assert "reasoning_content" in replayed(message)
    assert "reasoning_content" not in replayed(message, base_url="http://other/v1")
    edited = dataclasses.replace(message, content=[TextBlock("y")])
    assert replayed(edited) == {"role": "assistant", "content": "y"}
    assert "provider" not in replayed(message)


def test_unknown_members_of_a_call_go_back_with_it():
    """tc-19: Gemini refuses a call without its signature; design.md 4."""
    extra = {"extra_content": {"google": {"thought_signature": "s"}}, "custom": None, "flag": False}
    function = {"name": "add", "arguments": '{"a":1}', "signature": "t"}
    message = decoded(
        chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function} | extra]})
    )
    message = message.message
    kept = {"extra_content": extra["extra_content"], "flag": False}
    expected = wire_call(C1, **kept)
    expected["function"]["signature"] = "t"
    assert replayed(message)["tool_calls"] == [expected]
    assert replayed(message, base_url="http://other/v1")["tool_calls"] == [wire_call(C1)]
    assert replayed(message, protocol="openai-chat")["tool_calls"] == [expected]


@pytest.mark.parametrize(
    "thinking", ["hm", [{"type": "text", "text": "hm"}], [{"type": "text", "text": "h"}, "m", None, {}]]
)
def test_mistral_thinks_in_parts_and_gets_them_back(thinking):
    turn = decoded(
        chunk({"content": [{"type": "thinking", "thinking": thinking}]}),
        chunk({"content": [{"type": "text", "text": "x"}]}),
        chunk({"content": "y"}, "stop"),
    )
    assert (turn.reasoning, turn.message.content) == ("hm", [TextBlock("xy")])
    assert replayed(turn.message) == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": "xy"},
        ],
    }
    assert replayed(turn.message, replay_reasoning=False)["content"] == "xy"


def test_merged_details_keep_the_order_of_items_and_members():
    assert json.dumps(merged_details(DETAILS)) == json.dumps(MERGED)
    assert merged_details([]) == []


def test_a_turn_is_replayed_byte_for_byte():
    """B-72."""
    pieces = ["He", "llo\n", "\n you ", "é"]
    message = decoded(*[chunk({"content": piece}) for piece in pieces]).message
    assert wire(*HI, message)[1] == {"role": "assistant", "content": "Hello\n\n you é"}


# Anything at all

KEYS = st.sampled_from(
    [
        *(
            "choices",
            "delta",
            "message",
            "content",
            "tool_calls",
            "function_call",
            "function",
            "name",
            "arguments",
            "id",
        ),
        *(
            "index",
            "type",
            "text",
            "thinking",
            "refusal",
            "reasoning",
            "reasoning_content",
            "reasoning_details",
            "error",
        ),
        *("finish_reason", "usage", "prompt_tokens_details", "model", "summary", "extra"),
    ]
)
SCALARS = st.sampled_from([None, True, False, 0, 1, -1, 1.5, "", "x", "thinking", "text", "{}", "<think>", "stop"])
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": ANYTHING,
        "refusal": ANYTHING,
        "reasoning": ANYTHING,
        "reasoning_details": ANYTHING | st.lists(st.dictionaries(KEYS, ANYTHING, max_size=4), max_size=3),
        "function_call": ANYTHING | st.dictionaries(KEYS, ANYTHING, max_size=4),
        "tool_calls": st.lists(
            ANYTHING
            | st.fixed_dictionaries(
                {},
                optional={"index": ANYTHING, "id": ANYTHING, "function": st.dictionaries(KEYS, ANYTHING, max_size=4)},
            ),
            max_size=3,
        ),
    },
)
CHUNKS = st.dictionaries(KEYS, ANYTHING, max_size=4) | st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries(
                {"delta": DELTAS}, optional={"finish_reason": ANYTHING, "usage": ANYTHING, "error": ANYTHING}
            ),
            min_size=1,
            max_size=2,
        )
    },
    optional={"id": ANYTHING, "model": ANYTHING, "usage": ANYTHING, "error": ANYTHING},
)


@given(st.lists(CHUNKS, max_size=4))
def test_no_json_can_make_decoding_fail_otherwise_than_by_an_error_of_ours(payloads):
    """design.md 6: and what was decoded can be sent back."""
    decoder = BodyDecoder(ChatTurn(CaseInsensitiveDict(), provider="p"))
    sent = "".join(f"data: {json.dumps(payload)}\n\n" for payload in payloads) + "data: [DONE]\n\n"
    events = decoder.feed(sent.encode())
    if decoder.failure is not None:
        assert isinstance(decoder.failure, AgentError)
        return
    message = events[-1].message
    assert all(isinstance(call.input, dict) and call.id and call.name for call in message.calls)
    assert json.dumps(message.to_dict()).encode()
    response = events[-1].response
    assert isinstance(response.id, (str, type(None)))
    assert isinstance(response.model, (str, type(None)))
    assert encoded([*HI, *sendable([message])])


VALUES = st.sampled_from([None, "", "x", "é😀", " ", "\ud83d", 0, 1, True, [], ["x"], {}, {"x": 1}])
DELTAS = st.dictionaries(
    st.sampled_from(
        ["content", "role", "tool_calls", "refusal", "reasoning", "reasoning_content", "function_call", "x"]
    ),
    VALUES,
    max_size=3,
)
CHOICES = st.fixed_dictionaries(
    {},
    optional={"index": VALUES, "delta": DELTAS | VALUES, "finish_reason": VALUES, "logprobs": VALUES, "error": VALUES},
)
CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(CHOICES | VALUES, max_size=2) | VALUES,
        "usage": VALUES | st.just({"prompt_tokens": 1}),
        "error": VALUES,
        "x": VALUES,
    },
)
TEXTS = st.text(max_size=5) | st.sampled_from(["<think>", "<thi", "nk>", "</think>", "</", " "])
PLAIN = st.builds(lambda text: {"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}, TEXTS)
FUNCTIONS = st.fixed_dictionaries({"arguments": st.text(max_size=5) | VALUES}, optional={"name": VALUES, "x": VALUES})
FRAGMENTS = st.fixed_dictionaries(
    {"function": FUNCTIONS}, optional={"index": st.sampled_from([0, 1, 1.0]) | VALUES, "id": VALUES, "type": VALUES}
)
PIECES = st.builds(
    lambda fragments: {"choices": [{"delta": {"tool_calls": fragments}}]}, st.lists(FRAGMENTS, min_size=1, max_size=2)
)


def heard_of(chunks, *, quickly, think_tags):
    """What a turn has heard of some chunks, or the error, the quick way tried first or not at all."""
    turn = ChatTurn({}, provider="p", think_tags=think_tags)
    try:
        turn.payload({"id": "c", "choices": []})
        for chunk in chunks:
            text = json.dumps(chunk).encode()
            if not (quickly and turn.quick(text)):
                turn.answer.add_burst()
                turn.payload(codec.parse(text))
        turn.answer.add_burst()
    except AgentError as error:
        return str(error)
    answer = turn.answer
    said = nameless(spread(answer.events)), nameless(answer.message().content)
    return answer.ended, answer.finish, answer.usage, *said


def nameless(said):
    """Events or blocks without the ids of calls that were made up, which differ each time."""
    return [
        dataclasses.replace(one, id="") if re.fullmatch("call_[0-9a-f]{32}", getattr(one, "id", "")) else one
        for one in said
    ]


TWO_CALLS_OF_ONE_ID = [
    {
        "choices": [
            {"delta": {"tool_calls": [{"index": at, "id": "x", "function": {"arguments": ""}} for at in (0, 1)]}}
        ]
    },
    {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "", "name": "x"}}]}}]},
]


@example(TWO_CALLS_OF_ONE_ID, False)
@given(st.lists(CHUNKS | PLAIN | PIECES, max_size=5), st.booleans())
def test_the_quick_way_comes_to_the_same_as_the_general_one(chunks, think_tags):
    assert heard_of(chunks, quickly=True, think_tags=think_tags) == heard_of(
        chunks, quickly=False, think_tags=think_tags
    )


@pytest.mark.parametrize(
    "delta", [{"content": "x"}, {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}, {"role": "assistant"}]
)
def test_the_quick_way_is_taken_by_the_chunks_that_servers_send(delta):
    turn = ChatTurn({}, provider="p")
    turn.payload({"id": "c", "choices": []})
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    assert turn.quick(json.dumps(chunk).encode())
