import json

import pytest
import requests

from openagent.testing import ScriptedServer, answer, call, failure

HI = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
SCHEMA = {"type": "object", "properties": {}}
THOUGHT = {"type": "reasoning", "id": "rs_7", "summary": [], "encrypted_content": "abc"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}


def made(id_="call_1", /, **more):
    return {"type": "function_call", "call_id": id_, "name": "add", "arguments": "{}"} | more


def result(name="call_1", output="42"):
    return {"type": "function_call_output", "call_id": name, "output": output}


def tool(name="add", **more):
    return {"type": "function", "name": name, "parameters": SCHEMA} | more


def user(**part):
    return {"role": "user", "content": [part]}


def says(*items, **more):
    return {"input": list(items), "store": False, **more}


def ask(server, body):
    return requests.post(server.url + "/responses", json={"model": "m"} | body, timeout=5)


def events(response):
    heard = []
    for lines in response.text.split("\n\n")[:-1]:
        event, data = lines.split("\n")
        heard.append(json.loads(data.removeprefix("data: ")))
        assert event == f"event: {heard[-1]['type']}"
    assert [event.pop("sequence_number") for event in heard] == list(range(len(heard)))
    return heard


def test_a_stream_says_everything_in_its_order():
    script = answer("Two words", reasoning="Hm.", calls=[call("add", {"a": 1})])
    with ScriptedServer(script) as server:
        heard = events(ask(server, says(HI, stream=True)))
    summary = {"type": "summary_text", "text": "Hm."}
    seal = heard[-1]["response"]["output"][0]["encrypted_content"]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [summary], "encrypted_content": seal}
    part = {"type": "output_text", "text": "Two words", "annotations": [], "logprobs": []}
    said = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}
    asked = made(arguments='{"a":1}') | {"id": "fc_1", "status": "completed"}
    started = {"status": "in_progress"}
    opened, final = heard[0]["response"], heard[-1]["response"]
    at = [{"item_id": name, "output_index": index} for index, name in enumerate(["rs_1", "msg_1", "fc_1"])]
    summed, spoken = at[0] | {"summary_index": 0}, at[1] | {"content_index": 0}
    expected = [
        ("created", {"response": opened}),
        ("in_progress", {"response": opened}),
        ("output_item.added", {"output_index": 0, "item": thought | {"summary": [], "encrypted_content": ""}}),
        ("reasoning_summary_part.added", summed | {"part": summary | {"text": ""}}),
        ("reasoning_summary_text.delta", summed | {"delta": "Hm."}),
        ("reasoning_summary_text.done", summed | {"text": "Hm."}),
        ("reasoning_summary_part.done", summed | {"part": summary}),
        ("output_item.done", {"output_index": 0, "item": thought}),
        ("output_item.added", {"output_index": 1, "item": said | started | {"content": []}}),
        ("content_part.added", spoken | {"part": part | {"text": ""}}),
        ("output_text.delta", spoken | {"delta": "Two ", "logprobs": []}),
        ("output_text.delta", spoken | {"delta": "words", "logprobs": []}),
        ("output_text.done", spoken | {"text": "Two words", "logprobs": []}),
        ("content_part.done", spoken | {"part": part}),
        ("output_item.done", {"output_index": 1, "item": said}),
        ("output_item.added", {"output_index": 2, "item": asked | started | {"arguments": ""}}),
        ("function_call_arguments.delta", at[2] | {"delta": '{"a":1}'}),
        ("function_call_arguments.done", at[2] | {"name": "add", "arguments": '{"a":1}'}),
        ("output_item.done", {"output_index": 2, "item": asked}),
        ("completed", {"response": final}),
    ]
    assert heard == [{"type": f"response.{kind}"} | members for kind, members in expected]
    assert (opened["status"], opened["output"], opened["usage"]) == ("in_progress", [], None)
    usage = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    assert final == opened | {"status": "completed", "output": [thought, said, asked], "usage": usage | details}


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_a_truncated_answer_is_incomplete(finish, reason):
    script = answer("Hi", calls=[call("add")], finish=finish)
    with ScriptedServer(script, script) as server:
        whole = ask(server, says(HI)).json()
        last = events(ask(server, says(HI, stream=True)))[-1]
    assert (whole["status"], whole["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert [item["status"] for item in whole["output"]] == ["completed", "incomplete"]
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", "incomplete")


def test_a_refusal_is_a_part_of_its_own():
    with ScriptedServer(answer(refusal="No way")) as server:
        heard = events(ask(server, says(HI, stream=True)))
    assert [event.get("delta") for event in heard if event["type"] == "response.refusal.delta"] == ["No ", "way"]
    assert heard[-1]["response"]["output"][0]["content"] == [{"type": "refusal", "refusal": "No way"}]


def test_usage_and_the_last_event_can_be_left_out():
    with ScriptedServer(
        answer("Hi", usage=None), answer("Hi", done=False), answer(usage={"input_tokens": 1})
    ) as server:
        assert events(ask(server, says(HI, stream=True)))[-1]["response"]["usage"] is None
        assert events(ask(server, says(HI, stream=True)))[-1]["type"] == "response.output_item.done"
        assert ask(server, says(HI)).json()["usage"] == {"input_tokens": 1}


def test_empty_reasoning_is_an_item_without_summary():
    with ScriptedServer(answer("Hi", reasoning="")) as server:
        heard = events(ask(server, says(HI, stream=True)))
    assert heard[-1]["response"]["output"][0]["summary"] == []
    assert [event["type"] for event in heard if "summary" in event["type"]] == []


def test_an_error_has_the_shape_of_this_wire():
    with ScriptedServer(failure(401, "who?", code="invalid_api_key")) as server:
        error = {"message": "who?", "type": "authentication_error", "param": None, "code": "invalid_api_key"}
        assert ask(server, says(HI)).json() == {"error": error}


def test_reasoning_that_was_changed_is_refused():
    with ScriptedServer(answer("Hi", reasoning="Hm."), "Hello") as server:
        thought, said = ask(server, says(HI)).json()["output"]
        changed = thought | {"summary": [{"type": "summary_text", "text": "Other."}]}
        refused = ask(server, says(HI, changed, said, HI))
        assert "could not be verified" in refused.json()["error"]["message"]
        assert ask(server, says(HI, thought, said, HI)).status_code == 200


def test_an_item_without_its_reasoning_is_refused():
    with ScriptedServer(answer(calls=[call("add")], reasoning="Hm."), "Hello") as server:
        thought, asked = ask(server, says(HI)).json()["output"]
        refused = ask(server, says(HI, asked, result()))
        message = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."
        assert refused.json()["error"]["message"] == message
        assert ask(server, says(HI, thought, asked, result())).status_code == 200


CHOSEN = {"tool_choice": {"type": "function", "name": "add"}}
RULES = {
    "input may be text": ({"input": "Hi"}, {"input": ""}, "empty string"),
    "input is there": (says(HI), {}, "'input'"),
    "input is not empty": (says(HI), says(), "empty array"),
    "an item is an object": (says(HI), says("Hi"), "'input[0]'"),
    "an item's type is a word": (says(HI | {"type": "message"}), says(HI | {"type": None}), "'input[0].type'"),
    "a role is known": (says({"role": "system", "content": "x"}, HI), says({"role": "tool", "content": "x"}), "role"),
    "a text is not empty": (
        says({"role": "user", "content": "x"}),
        says({"role": "user", "content": ""}),
        "empty string",
    ),
    "parts are not empty": (says(HI), says({"role": "user", "content": []}), "empty array"),
    "a part's text is not empty": (says(HI), says(user(type="input_text", text="")), "empty string"),
    "a user's part is input": (says(HI), says(user(type="output_text", text="x")), "Supported values are: input_text"),
    "an assistant's part is output": (
        says(HI, SAID),
        says(HI, SAID | {"content": HI["content"]}),
        "Supported values are: output_text, refusal",
    ),
    "a refusal is not empty": (
        says(HI, SAID | {"content": [{"type": "refusal", "refusal": "No."}]}),
        says(HI, SAID | {"content": [{"type": "refusal", "refusal": ""}]}),
        "empty string",
    ),
    "an image has a URL": (
        says(user(type="input_image", image_url="https://x.org/a.png")),
        says(user(type="input_image", image_url={"url": "https://x.org/a.png"})),
        "image_url",
    ),
    "a call has its call_id": (says(made(), result()), says(made(call_id=""), result("")), "call_id"),
    "a call's name is a name": (says(made(), result()), says(made(name="a b"), result()), ".name"),
    "arguments are a string": (says(made(), result()), says(made(arguments={}), result()), "expected a string"),
    "arguments are an object": (says(made(), result()), says(made(arguments=""), result()), "JSON text of an object"),
    "an id has its prefix": (says(made(id="fc_9"), result()), says(made(id="call_9"), result()), "begins with 'fc'"),
    "a result has an output": (says(made(), result(output="")), says(made(), result(output=None)), "output"),
    "a result's parts are input": (
        says(made(), result(output=[{"type": "input_text", "text": "x"}])),
        says(made(), result(output=[{"type": "text", "text": "x"}])),
        "Supported values",
    ),
    "a call is answered before the user speaks": (
        says(HI, made(), result(), HI),
        says(HI, made(), HI, result()),
        "No tool output found for function call call_1",
    ),
    "a call is answered at the end": (says(HI, made(), result()), says(HI, made()), "No tool output found"),
    "a call_id is used once": (
        says(made("a"), made("b"), result("b"), result("a")),
        says(made("a"), made("a"), result("a")),
        "Duplicate",
    ),
    "a result has its call": (says(HI, made(), result()), says(HI, result()), "No tool call found"),
    "a result comes after its call": (says(made(), result()), says(result(), made()), "No tool call found"),
    "reasoning is followed by its item": (says(HI, THOUGHT, SAID), says(HI, THOUGHT), "required following item"),
    "reasoning is not followed by the user": (
        says(HI, THOUGHT, THOUGHT, made(), result()),
        says(HI, THOUGHT, HI),
        "required following item",
    ),
    "reasoning is not followed by a result": (
        says(HI, THOUGHT, made(), result()),
        says(HI, made(), THOUGHT, result()),
        "required following item",
    ),
    "reasoning has a summary": (
        says(HI, THOUGHT, SAID),
        says(HI, {name: THOUGHT[name] for name in ("type", "id", "encrypted_content")}, SAID),
        "summary",
    ),
    "unstored reasoning is encrypted": (
        says(HI, THOUGHT | {"encrypted_content": None}, SAID, store=True),
        says(HI, THOUGHT | {"encrypted_content": None}, SAID),
        "not persisted",
    ),
    "an unstored item is no reference": (
        says(HI, {"type": "item_reference", "id": "msg_1"}, store=True),
        says(HI, {"type": "item_reference", "id": "msg_1"}),
        "not persisted",
    ),
    "a tool is flat": (
        says(HI, tools=[tool()]),
        says(HI, tools=[{"type": "function", "function": {"name": "add", "parameters": SCHEMA}}]),
        "tools[0].name",
    ),
    "a tool has a type": (says(HI, tools=[{"type": "web_search"}]), says(HI, tools=[{"name": "add"}]), "tools[0].type"),
    "parameters are an object": (says(HI, tools=[]), says(HI, tools=[tool(parameters={})]), "tools[0].parameters"),
    "tools have names of their own": (
        says(HI, tools=[tool("a"), tool("b")]),
        says(HI, tools=[tool(), tool()]),
        "unique",
    ),
    "tools are a list": (says(HI, tools=[tool()]), says(HI, tools={}), "expected an array"),
    "tool_choice names a tool": (says(HI, tools=[tool()], **CHOSEN), says(HI, **CHOSEN), "'add'"),
    "tool_choice is a known word": (says(HI, tool_choice="none"), says(HI, tool_choice="any"), "'tool_choice'"),
    "a required call needs tools": (
        says(HI, tool_choice="required", tools=[tool()]),
        says(HI, tool_choice="required"),
        "must be specified with 'tools'",
    ),
    "the limit has its own name": (says(HI, max_output_tokens=9), says(HI, max_tokens=9), "'max_output_tokens'"),
    "the limit is positive": (says(HI, max_output_tokens=9), says(HI, max_output_tokens=-1), "at least 1"),
    "the format has its own name": (says(HI), says(HI, response_format={"type": "json_object"}), "'text.format'"),
}


@pytest.mark.parametrize(("accepted", "refused", "reason"), RULES.values(), ids=RULES)
def test_a_strict_server_keeps_the_rule(accepted, refused, reason):
    with ScriptedServer("Hello") as server:
        response = ask(server, refused)
        message = response.json()["error"]["message"]
        assert (response.status_code, server.complaints) == (400, [message])
        assert reason in message
        assert (ask(server, accepted).status_code, len(server.complaints)) == (200, 1)
