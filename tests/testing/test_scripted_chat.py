import json

import pytest
import requests

from openagent.testing import ScriptedServer, answer, call, failure

HI = {"role": "user", "content": "Hi"}
TURN = {"role": "assistant", "content": "Hello"}
SCHEMA = {"type": "object", "properties": {}}


def made(id_="call_1", /, **function):
    return {"id": id_, "type": "function", "function": {"name": "add", "arguments": "{}"} | function}


def calling(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(name="call_1", content="42"):
    return {"role": "tool", "tool_call_id": name, "content": content}


def tool(name="add", **function):
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA} | function}


def image(url):
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


def says(*messages, **more):
    return {"messages": list(messages), **more}


def ask(server, body):
    return requests.post(server.url + "/chat/completions", json={"model": "m"} | body, timeout=5)


def events(response):
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def chunk(number, delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": f"chatcmpl_{number}", "object": "chat.completion.chunk", "created": 1_750_000_000, "model": "m"}
    return head | {"choices": [choice]}


def test_a_stream_says_everything_in_its_order():
    script = answer("Two words", reasoning="Hm.", refusal="No.", calls=[call("add", {"a": 1, "bbbbbbb": 2})])
    with ScriptedServer(script) as server:
        heard = events(ask(server, says(HI, stream=True)))
    assert heard == [
        chunk(1, {"role": "assistant", "content": ""}),
        chunk(1, {"reasoning_content": "Hm."}),
        chunk(1, {"content": "Two "}),
        chunk(1, {"content": "words"}),
        chunk(1, {"refusal": "No."}),
        chunk(1, {"tool_calls": [{"index": 0} | made(arguments="")]}),
        chunk(1, {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1,"bbbbbbb"'}}]}),
        chunk(1, {"tool_calls": [{"index": 0, "function": {"arguments": ":2}"}}]}),
        chunk(1, {}, "tool_calls"),
        "[DONE]",
    ]


def test_usage_comes_last_and_only_if_it_is_asked_for():
    options = {"stream_options": {"include_usage": True}}
    with ScriptedServer("Hi", answer("Hi", usage={"prompt_tokens": 3}), answer("Hi", usage=None)) as server:
        first, second, third = (events(ask(server, says(HI, stream=True, **options))) for _ in range(3))
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    assert first[-2] == chunk(1, {}) | {"choices": [], "usage": usage}
    assert first[0] == chunk(1, {"role": "assistant", "content": ""}) | {"usage": None}
    assert second[-2]["usage"] == {"prompt_tokens": 3}
    assert third[-2] == chunk(3, {}, "stop")


def test_an_unstreamed_answer_is_one_document():
    script = answer("Hi", reasoning="Hm.", calls=[call("add", "{broken", id="c9", extra={"x": 1})], finish="length")
    with ScriptedServer(script, answer(usage=None, model="served", finish="unspecified")) as server:
        first, second = ask(server, says(HI)).json(), ask(server, says(HI)).json()
    message = {"role": "assistant", "content": "Hi", "refusal": None, "reasoning_content": "Hm."}
    message["tool_calls"] = [made("c9", arguments="{broken") | {"x": 1}]
    head = {"id": "chatcmpl_1", "object": "chat.completion", "created": 1_750_000_000, "model": "m"}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "length"}
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    assert first == head | {"choices": [choice], "usage": usage}
    nothing = {"role": "assistant", "content": None, "refusal": None}
    choice = {"index": 0, "message": nothing, "logprobs": None, "finish_reason": None}
    assert second == head | {"id": "chatcmpl_2", "model": "served", "choices": [choice]}


def test_an_answer_can_be_streamed_or_not_whatever_was_asked():
    with ScriptedServer(answer("Hi", stream=False), answer("Hi", stream=True)) as server:
        assert ask(server, says(HI, stream=True)).json()["object"] == "chat.completion"
        assert events(ask(server, says(HI)))[-1] == "[DONE]"


def test_the_end_of_a_stream_can_be_left_out():
    with ScriptedServer(answer("Hi", done=False, finish="unspecified")) as server:
        heard = events(ask(server, says(HI, stream=True)))
    assert heard == [chunk(1, {"role": "assistant", "content": ""}), chunk(1, {"content": "Hi"})]


def test_lines_can_end_with_another_newline():
    with ScriptedServer(answer("Hi", newline="\r\n")) as server:
        heard = ask(server, says(HI, stream=True)).content
    assert heard.endswith(b"}\r\n\r\ndata: [DONE]\r\n\r\n")
    assert heard.count(b"\r\n\r\n") == 4


def test_halves_of_a_surrogate_pair_go_out_escaped():
    with ScriptedServer(answer(chunk_text=["\ud83d", "\ude00", "é"])) as server:
        heard = ask(server, says(HI, stream=True)).content
    assert b'"content":"\\ud83d"' in heard
    assert b'"content":"\xc3\xa9"' in heard


def test_an_error_has_the_type_of_its_status():
    script = [failure(status) for status in (400, 401, 404, 418, 429, 500, 503)]
    with ScriptedServer(*script) as server:
        words = [ask(server, says(HI)).json()["error"]["type"] for _ in script]
    assert words == [
        "invalid_request_error",
        "authentication_error",
        "not_found_error",
        "invalid_request_error",
        "rate_limit_error",
        "server_error",
        "server_error",
    ]


PNG = "data:image/png;base64,iVBORw0KGgo="
TOOLS = {"tools": [tool()]}
RULES = {
    "messages are a list": (says(HI), {"messages": "Hi"}, "'messages'"),
    "messages are not empty": (says(HI), says(), "empty array"),
    "a message is an object": (says(HI), says("Hi"), "'messages[0]'"),
    "a role is known": (
        says({"role": "developer", "content": "x"}, HI),
        says({"role": "robot", "content": "x"}),
        "role",
    ),
    "a system text is not empty": (
        says({"role": "system", "content": "x"}),
        says({"role": "system", "content": ""}),
        "empty",
    ),
    "a user text is not empty": (says(HI), says(HI | {"content": ""}), "empty string"),
    "user parts are not empty": (
        says(HI | {"content": [{"type": "text", "text": "x"}]}),
        says(HI | {"content": []}),
        "empty array",
    ),
    "a text part is not empty": (says(HI), says(HI | {"content": [{"type": "text", "text": ""}]}), "empty string"),
    "a part is known": (says(HI), says(HI | {"content": [{"type": "image", "text": ""}]}), "Supported: text"),
    "an image has a URL": (says(image("https://x.org/a.png")), says(image("file:///a.png")), "image_url.url"),
    "an image's data is base64": (says(image(PNG)), says(image("data:image/png;base64,@")), "image_url.url"),
    "an assistant without calls speaks": (says(HI, TURN), says(HI, TURN | {"content": None}), "content"),
    "an assistant's text is not empty": (
        says(HI, {"role": "assistant", "refusal": "No."}, HI),
        says(HI, TURN | {"content": ""}),
        "empty string",
    ),
    "content is null only beside calls": (
        says(HI, calling(made()), result()),
        says(HI, {"role": "assistant"}),
        "content",
    ),
    "content may be empty beside calls": (
        says(HI, calling(made(), content=""), result()),
        says(HI, calling(made(), content=[]), result()),
        "empty array",
    ),
    "calls are not an empty list": (says(HI, calling(made()), result()), says(HI, calling(content="x")), "tool_calls"),
    "calls are not null": (says(HI, TURN), says(HI, TURN | {"tool_calls": None}), "tool_calls"),
    "a call has an id": (says(HI, calling(made("a")), result("a")), says(HI, calling(made("")), result("")), "].id"),
    "ids are unique in a turn": (
        says(HI, calling(made("a"), made("b")), result("b"), result("a")),
        says(HI, calling(made("a"), made("a")), result("a")),
        "Duplicate",
    ),
    "a call is a function": (
        says(HI, calling(made()), result()),
        says(HI, calling(made() | {"type": "x"}), result()),
        "type",
    ),
    "a call has a function": (
        says(HI, calling(made()), result()),
        says(HI, calling(made() | {"function": None}), result()),
        "function",
    ),
    "a call's name is a name": (
        says(HI, calling(made(name="a-B_9")), result()),
        says(HI, calling(made(name="a b")), result()),
        "function.name",
    ),
    "a call's name is short": (
        says(HI, calling(made(name="a" * 64)), result()),
        says(HI, calling(made(name="a" * 65)), result()),
        "function.name",
    ),
    "arguments are a string": (
        says(HI, calling(made(arguments='{"a": 1}')), result()),
        says(HI, calling(made(arguments={"a": 1})), result()),
        "expected a string",
    ),
    "arguments are JSON": (
        says(HI, calling(made()), result()),
        says(HI, calling(made(arguments='{"a": ')), result()),
        "JSON text of an object",
    ),
    "arguments are an object": (
        says(HI, calling(made()), result()),
        says(HI, calling(made(arguments="[1]")), result()),
        "JSON text of an object",
    ),
    "every call is answered before the next message": (
        says(HI, calling(made("a"), made("b")), result("a"), result("b"), HI),
        says(HI, calling(made("a"), made("b")), result("a"), HI, result("b")),
        "did not have response messages: b",
    ),
    "every call is answered at the end": (
        says(HI, calling(made("a")), result("a")),
        says(HI, calling(made("a"))),
        "did not have response messages: a",
    ),
    "a result has its call": (says(HI, calling(made()), result()), says(HI, result()), "must be a response"),
    "a result comes once": (
        says(HI, calling(made()), result()),
        says(HI, calling(made()), result(), result()),
        "must be a response",
    ),
    "a result names its call": (
        says(HI, calling(made()), result()),
        says(HI, calling(made()), {"role": "tool", "content": "x"}),
        "tool_call_id",
    ),
    "a result is text": (
        says(HI, calling(made()), result(content="")),
        says(HI, calling(made()), result(content={"a": 1})),
        "messages[2].content",
    ),
    "a result's parts are text": (
        says(HI, calling(made()), result(content=[{"type": "text", "text": "x"}])),
        says(HI, calling(made()), result(content=[{"type": "image_url"}])),
        "Supported: text",
    ),
    "tools are not empty": (says(HI, **TOOLS), says(HI, tools=[]), "empty array"),
    "a tool has a type": (says(HI, tools=[{"type": "web_search"}]), says(HI, tools=[{"name": "x"}]), "tools[0].type"),
    "a tool has a function": (
        says(HI, **TOOLS),
        says(HI, tools=[{"type": "function", "name": "x"}]),
        "tools[0].function",
    ),
    "a tool's name is a name": (says(HI, tools=[tool("a-b")]), says(HI, tools=[tool("a.b")]), "function.name"),
    "tools have names of their own": (
        says(HI, tools=[tool("a"), tool("b")]),
        says(HI, tools=[tool(), tool()]),
        "unique",
    ),
    "parameters are an object": (
        says(HI, **TOOLS),
        says(HI, tools=[tool(parameters={"type": "string"})]),
        "function.parameters",
    ),
    "tool_choice needs tools": (says(HI, tool_choice="auto", **TOOLS), says(HI, tool_choice="auto"), "'tool_choice'"),
    "tool_choice is a known word": (
        says(HI, tool_choice="none", **TOOLS),
        says(HI, tool_choice="any", **TOOLS),
        "required",
    ),
    "tool_choice names a tool": (
        says(HI, tool_choice={"type": "function", "function": {"name": "add"}}, **TOOLS),
        says(HI, tool_choice={"type": "function", "function": {"name": "sub"}}, **TOOLS),
        "'sub' not found",
    ),
    "parallel_tool_calls needs tools": (
        says(HI, parallel_tool_calls=False, **TOOLS),
        says(HI, parallel_tool_calls=False),
        "'parallel_tool_calls'",
    ),
    "max_tokens is positive": (says(HI, max_tokens=1), says(HI, max_tokens=0), "'max_tokens'"),
    "max_completion_tokens is an integer": (
        says(HI, max_completion_tokens=1),
        says(HI, max_completion_tokens=1.5),
        "integer",
    ),
    "one limit is enough": (says(HI, max_tokens=1), says(HI, max_tokens=1, max_completion_tokens=1), "same time"),
    "stream_options needs a stream": (
        says(HI, stream=True, stream_options={"include_usage": True}),
        says(HI, stream_options={"include_usage": True}),
        "only allowed when 'stream'",
    ),
}


@pytest.mark.parametrize(("accepted", "refused", "reason"), RULES.values(), ids=RULES)
def test_a_strict_server_keeps_the_rule(accepted, refused, reason):
    with ScriptedServer("Hello") as server:
        response = ask(server, refused)
        message = response.json()["error"]["message"]
        assert (response.status_code, server.complaints) == (400, [message])
        assert reason in message
        assert (ask(server, accepted).status_code, len(server.complaints)) == (200, 1)


def test_a_lenient_server_keeps_no_rule():
    with ScriptedServer("Hello", repeat=True, strict=False) as server:
        assert {ask(server, refused).status_code for _, refused, _ in RULES.values()} == {200}
        assert server.complaints == []
