import json

import pytest
import requests

from openagent.testing import ScriptedServer, answer, call, failure

HI = {"role": "user", "content": "Hi"}
SAID = {"role": "assistant", "content": "Hello"}
SCHEMA = {"type": "object", "properties": {}}
VERSION = {"anthropic-version": "2023-06-01"}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "abc"}
TEXT = {"type": "text", "text": "Hello"}


def turn(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def made(id_="a", /, **more):
    return {"type": "tool_use", "id": id_, "name": "add", "input": {}} | more


def result(name="a", **more):
    return {"type": "tool_result", "tool_use_id": name, "content": "42"} | more


def image(**source):
    return user({"type": "image", "source": source})


def tool(name="add", **more):
    return {"name": name, "input_schema": SCHEMA} | more


def says(*messages, **more):
    return {"max_tokens": 2000, "messages": list(messages), **more}


def ask(server, body, headers=VERSION):
    return requests.post(server.url + "/messages", json={"model": "m"} | body, headers=headers, timeout=5)


def events(response):
    heard = []
    for lines in response.text.split("\n\n")[:-1]:
        event, data = lines.split("\n")
        heard.append(json.loads(data.removeprefix("data: ")))
        assert event == f"event: {heard[-1]['type']}"
    return heard


def test_a_stream_says_everything_in_its_order():
    script = answer("Two words", reasoning="Hm.", calls=[call("add", {"a": 1}), call("sub", "{broken")])
    with ScriptedServer(script) as server:
        heard = events(ask(server, says(HI, stream=True)))
    usage = {"input_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage | {"output_tokens": 1}}
    seal = heard[4]["delta"]["signature"]
    empty = {"type": "input_json_delta", "partial_json": ""}
    expected = [
        ("message_start", {"message": message}),
        ("content_block_start", {"index": 0, "content_block": THOUGHT | {"thinking": "", "signature": ""}}),
        ("ping", {}),
        ("content_block_delta", {"index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "signature_delta", "signature": seal}}),
        ("content_block_stop", {"index": 0}),
        ("content_block_start", {"index": 1, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 1, "delta": {"type": "text_delta", "text": "Two "}}),
        ("content_block_delta", {"index": 1, "delta": {"type": "text_delta", "text": "words"}}),
        ("content_block_stop", {"index": 1}),
        ("content_block_start", {"index": 2, "content_block": made("call_1")}),
        ("content_block_delta", {"index": 2, "delta": empty}),
        ("content_block_delta", {"index": 2, "delta": empty | {"partial_json": '{"a":1}'}}),
        ("content_block_stop", {"index": 2}),
        ("content_block_start", {"index": 3, "content_block": made("call_2", name="sub")}),
        ("content_block_delta", {"index": 3, "delta": empty}),
        ("content_block_delta", {"index": 3, "delta": empty | {"partial_json": "{broken"}}),
        ("content_block_stop", {"index": 3}),
        ("message_delta", {"delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage}),
        ("message_stop", {}),
    ]
    assert heard == [{"type": kind} | members for kind, members in expected]


def test_an_unstreamed_answer_is_one_document():
    calls = [call("add", {"a": 1}), call("add", '{"b": 2}', id="x"), call("add", "{broken"), call("add", "[1]")]
    with ScriptedServer(answer("Hi", calls=calls)) as server:
        heard = ask(server, says(HI)).json()
    inputs = [made("call_1", input={"a": 1}), made("x", input={"b": 2}), made("call_2"), made("call_3")]
    usage = {"input_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}
    known = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    content = [{"type": "text", "text": "Hi"}, *inputs]
    assert heard == known | {"content": content, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}


def test_the_finish_is_said_in_the_words_of_this_wire():
    words = {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
        "pause_turn": "pause_turn",
        "unspecified": None,
    }
    with ScriptedServer(*[answer("Hi", finish=word) for word in words]) as server:
        assert [ask(server, says(HI)).json()["stop_reason"] for _ in words] == list(words.values())


def test_a_refusal_is_explained():
    with ScriptedServer(answer(refusal="No.")) as server:
        heard = events(ask(server, says(HI, stream=True)))
    details = {"type": "refusal", "category": None, "explanation": "No."}
    end = {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    assert (heard[-2]["delta"], "stop_details" in heard[0]["message"]) == (end, False)


def test_usage_and_the_last_events_can_be_left_out():
    script = [answer("Hi", usage=None), answer("Hi", done=False), answer("Hi", done=False, finish="unspecified")]
    with ScriptedServer(*script, answer(usage={"input_tokens": 1})) as server:
        first, second, third = (events(ask(server, says(HI, stream=True))) for _ in range(3))
        assert ask(server, says(HI)).json()["usage"] == {"input_tokens": 1}
    assert [event for event in first if "usage" in event or "usage" in event.get("message", {})] == []
    assert [second[-1]["type"], third[-1]["type"]] == ["message_delta", "content_block_stop"]


def test_an_error_has_the_shape_of_this_wire():
    with ScriptedServer(failure(529, "busy"), failure(418, "tea"), failure(503, "down")) as server:
        heard = [ask(server, says(HI)).json() for _ in range(3)]
    words = {"overloaded_error": "busy", "invalid_request_error": "tea", "api_error": "down"}
    errors = [{"type": word, "message": message} for word, message in words.items()]
    names = ["req_1", "req_2", "req_3"]
    assert heard == [{"type": "error", "error": e, "request_id": n} for e, n in zip(errors, names, strict=True)]


def test_thinking_that_was_changed_is_refused():
    with ScriptedServer(answer("Hi", reasoning="Hm."), "Hello") as server:
        content = ask(server, says(HI)).json()["content"]
        changed = content[0] | {"thinking": "Other."}
        refused = ask(server, says(HI, turn(changed, *content[1:]), HI))
        assert "cannot be modified" in refused.json()["error"]["message"]
        assert ask(server, says(HI, turn(*content), HI)).status_code == 200


def test_the_version_is_required():
    with ScriptedServer("Hello") as server:
        assert ask(server, says(HI), {}).status_code == 400
        assert server.complaints == ["anthropic-version: header is required"]
        assert ask(server, says(HI), VERSION | {"x-api-key": "key"}).status_code == 200


def test_two_keys_are_refused():
    with ScriptedServer("Hello") as server:
        both = VERSION | {"x-api-key": "key", "Authorization": "Bearer key"}
        assert (ask(server, says(HI), both).status_code, len(server.complaints)) == (400, 1)
        assert ask(server, says(HI), VERSION | {"Authorization": "Bearer key"}).status_code == 200


ON = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
TOOLS = {"tools": [tool()]}
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
RULES = {
    "max_tokens is required": (says(HI), {"messages": [HI]}, "max_tokens: Field required"),
    "max_tokens is positive": (says(HI, max_tokens=1), says(HI, max_tokens=0), "at least 1"),
    "messages are not empty": (says(HI), says(), "empty array"),
    "the user comes first": (says(HI, SAID), says(SAID, HI), "first message"),
    "a role is user or assistant": (says(HI, HI), says({"role": "system", "content": "x"}, HI), "role"),
    "a text is not empty": (says(HI), says(HI | {"content": ""}), "must be non-empty"),
    "a text is not blank": (says(HI), says(HI | {"content": " \n"}), "non-whitespace"),
    "content is not null": (says(HI), says(HI | {"content": None}), "content"),
    "content is not empty": (says(user(TEXT)), says(user()), "empty array"),
    "a text block is not empty": (says(user(TEXT)), says(user(TEXT | {"text": ""})), "must be non-empty"),
    "a text block is not blank": (says(user(TEXT)), says(user(TEXT | {"text": " "})), "non-whitespace"),
    "a block is known": (says(user(TEXT)), says(user({"type": "image_url"})), "Input tag 'image_url'"),
    "a user does not think": (says(HI, turn(THOUGHT, TEXT), HI), says(user(THOUGHT, TEXT)), "Input tag 'thinking'"),
    "the last text ends without a blank": (
        says(HI, SAID | {"content": "Hello "}, HI),
        says(HI, SAID | {"content": "Hello "}),
        "trailing whitespace",
    ),
    "the last block ends without a blank": (
        says(HI, turn(TEXT)),
        says(HI, turn(TEXT | {"text": "x\n"})),
        "trailing whitespace",
    ),
    "thinking is signed": (
        says(HI, turn(THOUGHT, TEXT), HI),
        says(HI, turn({"type": "thinking", "thinking": "Hm."}, TEXT), HI),
        "signature: Field required",
    ),
    "thinking is text": (
        says(HI, turn(THOUGHT | {"thinking": ""}, TEXT), HI),
        says(HI, turn(THOUGHT | {"thinking": None}, TEXT), HI),
        "thinking: Field required",
    ),
    "thinking comes first": (says(HI, turn(THOUGHT, TEXT), HI), says(HI, turn(TEXT, THOUGHT), HI), "first"),
    "redacted thinking has its data": (
        says(HI, turn({"type": "redacted_thinking", "data": "x"}, TEXT), HI),
        says(HI, turn({"type": "redacted_thinking"}, TEXT), HI),
        "data",
    ),
    "the budget is below the limit": (says(HI, **ON), says(HI, max_tokens=1024, **ON), "budget_tokens"),
    "a thoughtful turn keeps its thinking": (
        says(HI, turn(THOUGHT, made()), user(result()), **ON),
        says(HI, turn(made()), user(result()), **ON),
        "must start with a thinking block",
    ),
    "a call has an id": (
        says(HI, turn(made()), user(result())),
        says(HI, turn(made("a b")), user(result("a b"))),
        ".id",
    ),
    "ids are unique": (
        says(HI, turn(made("a"), made("b")), user(result("a"), result("b"))),
        says(HI, turn(made(), made()), user(result())),
        "must be unique",
    ),
    "a call has a name": (
        says(HI, turn(made()), user(result())),
        says(HI, turn(made(name="")), user(result())),
        ".name",
    ),
    "input is an object": (
        says(HI, turn(made(input={"a": [1]})), user(result())),
        says(HI, turn(made(input="{}")), user(result())),
        "valid dictionary",
    ),
    "every call is answered": (
        says(HI, turn(made("a"), made("b")), user(result("b"), result("a"))),
        says(HI, turn(made("a"), made("b")), user(result("a"))),
        "without `tool_result` blocks immediately after: b",
    ),
    "every call is answered at the end": (says(HI, turn(made()), user(result())), says(HI, turn(made())), "after: a"),
    "calls are answered before the user speaks": (
        says(HI, turn(made()), user(result()), HI),
        says(HI, turn(made()), HI, user(result())),
        "after: a",
    ),
    "all results are in one message": (
        says(HI, turn(made("a")), turn(made("b")), user(result("a"), result("b"))),
        says(HI, turn(made("a"), made("b")), user(result("a")), user(result("b"))),
        "after: b",
    ),
    "results come first": (
        says(HI, turn(made()), user(result(), TEXT)),
        says(HI, turn(made()), user(TEXT, result())),
        "must come first",
    ),
    "a result has its call": (says(HI, turn(made()), user(result())), says(user(result())), "unexpected `tool_use_id`"),
    "a result is not given later": (
        says(HI, turn(made()), user(result())),
        says(HI, turn(made()), user(result()), SAID, user(result())),
        "unexpected `tool_use_id`",
    ),
    "a result comes once": (
        says(HI, turn(made()), user(result())),
        says(HI, turn(made()), user(result(), result())),
        "single result",
    ),
    "a result is text or blocks": (
        says(HI, turn(made()), user(result(content=[TEXT]))),
        says(HI, turn(made()), user(result(content={"a": 1}))),
        "expected an array",
    ),
    "a result's text is not empty": (
        says(HI, turn(made()), user(result(content=""))),
        says(HI, turn(made()), user(result(content=[TEXT | {"text": ""}]))),
        "must be non-empty",
    ),
    "a result's block is known": (
        says(HI, turn(made()), user(result(content=[{"type": "image", "source": PNG}]))),
        says(HI, turn(made()), user(result(content=[made()]))),
        "unexpected type",
    ),
    "is_error is a boolean": (
        says(HI, turn(made()), user(result(is_error=True))),
        says(HI, turn(made()), user(result(is_error="yes"))),
        "valid boolean",
    ),
    "system is not empty": (says(HI, system="x"), says(HI, system=""), "system"),
    "system is no null": (says(HI, system=[TEXT]), says(HI, system=None), "'system'"),
    "system blocks are text": (says(HI, system=[TEXT]), says(HI, system=[{"type": "image"}]), "system.0.type"),
    "an image's type is known": (
        image_ok := says(image(**PNG)),
        says(image(**PNG | {"media_type": "image/bmp"})),
        "media_type",
    ),
    "an image's data is base64": (image_ok, says(image(**PNG | {"data": "data:@"})), "valid base64"),
    "an image's URL is a URL": (
        says(image(type="url", url="https://x.org/a.png")),
        says(image(type="url", url="data:image/png;base64,iVBORw0KGgo=")),
        "base64 or url source",
    ),
    "a tool has a name": (says(HI, **TOOLS), says(HI, tools=[tool("a b")]), "tools.0.name"),
    "a tool has a schema": (says(HI, **TOOLS), says(HI, tools=[{"name": "add", "parameters": SCHEMA}]), "input_schema"),
    "a vendor's tool has none": (
        says(HI, tools=[{"type": "web_search_20250305", "name": "web_search"}]),
        says(HI, tools=[{"type": "custom", "name": "add"}]),
        "input_schema",
    ),
    "tools have names of their own": (
        says(HI, tools=[tool("a"), tool("b")]),
        says(HI, tools=[tool(), tool()]),
        "unique",
    ),
    "tool_choice needs tools": (
        says(HI, tool_choice={"type": "none"}, **TOOLS),
        says(HI, tool_choice={"type": "none"}),
        "while providing tools",
    ),
    "tool_choice is an object": (
        says(HI, tool_choice={"type": "any"}, **TOOLS),
        says(HI, tool_choice="any", **TOOLS),
        "tool_choice",
    ),
    "tool_choice names a tool": (
        says(HI, tool_choice={"type": "tool", "name": "add"}, **TOOLS),
        says(HI, tool_choice={"type": "tool", "name": "sub"}, **TOOLS),
        "'sub' not found",
    ),
    "another wire's member is no member": (says(HI, stop_sequences=["x"]), says(HI, stop=["x"]), "stop: Extra inputs"),
}


@pytest.mark.parametrize(("accepted", "refused", "reason"), RULES.values(), ids=RULES)
def test_a_strict_server_keeps_the_rule(accepted, refused, reason):
    with ScriptedServer("Hello") as server:
        response = ask(server, refused)
        error = response.json()["error"]
        assert (response.status_code, server.complaints) == (400, [error["message"]])
        assert error["type"] == "invalid_request_error"
        assert reason in error["message"]
        assert (ask(server, accepted).status_code, server.complaints) == (200, [error["message"]])
