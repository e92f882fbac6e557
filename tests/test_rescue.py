"""Calls that a server left in the text."""

import json

import pytest
from test_linear_cost import ratio

from openagent import Message, TextDelta, tool
from openagent.rescue import found_calls
from openagent.testing import answer


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def note(text: str, urgent: bool = False) -> str:
    """Keep a note."""
    return text


CALL = json.dumps({"name": "add", "arguments": {"a": 1, "b": 2}})
HERMES = f"<tool_call>\n{CALL}\n</tool_call>"
LLAMA = json.dumps({"name": "add", "parameters": {"a": 1, "b": 2}})
CODER = "<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>"
DEEPSEEK = '<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{"a": 1, "b": 2}\n```<｜tool▁call▁end｜>'
LEFT = {
    "bare": CALL,
    "bare, indented": "\n" + json.dumps(json.loads(CALL), indent=2) + " ",
    "Hermes, Qwen": HERMES,
    "Qwen3-Coder": f"<tool_call>\n{CODER}\n</tool_call>",
    "Qwen3-Coder alone": CODER,
    "Llama": LLAMA,
    "Llama 3.1": '{"type": "function", "name": "add", "parameters": {"a": 1, "b": 2}}',
    "Llama with a tag": f"<|python_tag|>{LLAMA}<|eom_id|>",
    "Llama with another": '<function=add>{"a": 1, "b": 2}</function>',
    "OpenAI": json.dumps({"type": "function", "function": json.loads(CALL)}),
    "Mistral": f"[TOOL_CALLS] [{CALL}]",
    "Mistral v11": '[TOOL_CALLS]add[ARGS]{"a": 1, "b": 2}',
    "Mistral with an id": '[TOOL_CALLS]add[CALL_ID]abc123def[ARGS]{"a": 1, "b": 2}',
    "Phi": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "DeepSeek": f"<｜tool▁calls▁begin｜>{DEEPSEEK}<｜tool▁calls▁end｜>",
    "DeepSeek V3.1": '<｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 1, "b": 2}<｜tool▁call▁end｜>',
}
EXAMPLE = {"name": "add", "arguments": {"a": "<first number>", "b": "<second number>"}}
TALK = {
    "an introduction": f"You could use {CALL}",
    "an explanation after it": f"{CALL}\n\nThis call adds 1 and 2.",
    "an explanation of the tags": f"{HERMES} is how it is written.",
    "an introduction to the tags": f"A call looks like this:\n\n{HERMES}",
    "a code fence": f"```json\n{CALL}\n```",
    "a code fence around tags": f"```xml\n{HERMES}\n```",
    "a code fence of the tilde kind": f"~~~\n{CALL}\n~~~",
    "an indented block": f"Like so:\n\n    {CALL}\n",
    "inline code": f"`{CALL}`",
    "a quotation": f"> {CALL}",
    "a quoted text": json.dumps(CALL),
    "an item of a list": f"- {CALL}",
    "an example with blanks": json.dumps(EXAMPLE),
    "the definition of the tool": json.dumps({"name": "add", "parameters": add.input_schema}),
    "its definition as it was sent": json.dumps(add.to_openai_format()),
    "another tool": json.dumps({"name": "sub", "arguments": {}}),
    "another tool in tags": '<tool_call>{"name": "sub", "arguments": {}}</tool_call>',
    "a further key": json.dumps({"name": "add", "arguments": {"a": 1, "b": 2}, "why": "an example"}),
    "arguments that are a text": json.dumps({"name": "add", "arguments": "1, 2"}),
    "a name alone": json.dumps({"name": "Ann"}),
    "a person": json.dumps({"name": "add", "type": "function"}),
    "braces": "{ braces }",
    "no JSON in the tags": "<tool_call>add</tool_call>",
    "tags that are not closed": f"<tool_call>{CALL}",
    "half a call": CALL[:-1],
    "one call and half a second": f"{HERMES}\n<tool_call>{CALL}",
    "a call and what is none": f'{HERMES}<tool_call>{{"name": "sub", "arguments": {{}}}}</tool_call>',
    "an answer and a call": f"3\n{CALL}",
    "the tag of Mistral explained": f"[TOOL_CALLS] [{CALL}] is Mistral's way.",
    "the tags of DeepSeek explained": f"DeepSeek writes {DEEPSEEK}",
    "the tags of Llama explained": f"{CODER}\nis for Qwen3-Coder.",
    "an empty list": "[]",
    "a number": "3",
    "nothing": "",
}


def cut(text, size):
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]


@pytest.fixture
def ask(serve, connect):
    def run(text, size=3, **settings):
        server = serve(answer(chunk_text=cut(text, size)), "It is 3.")
        client = connect(server, tools=[add, note], auto_execute_tools=True, **settings)
        return client.ask("q"), client, server

    return run


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_a_call_in_the_text_is_run_if_that_is_asked_for(ask, text, size):
    said, client, server = ask(text, size, rescue_tool_calls=True)
    assert said == "It is 3."
    (block,) = client.history[1].calls
    assert (block.name, block.input) == ("add", {"a": 1, "b": 2})
    assert client.history[1:3] == [Message.assistant(block), Message.tool_result(block.id, 3)]
    assert server.requests[1].body["messages"][1]["tool_calls"][0]["id"] == block.id


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_it_is_never_run_by_default(ask, text):
    said, client, _ = ask(text)
    assert (said, client.history[1].calls) == (text, [])


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("text", [text for text in TALK.values() if text], ids=[name for name in TALK if TALK[name]])
def test_a_text_that_talks_about_a_call_stays_text(ask, text, size):
    said, client, _ = ask(text, size, rescue_tool_calls=True)
    assert (said, client.history) == (text, [Message.user("q"), Message.assistant(text)])


TWO = {
    "Hermes, Qwen": f"{HERMES}\n{HERMES}",
    "lines": f"{CALL}\n{CALL}\n",
    "a list": f"[{CALL}, {CALL}]",
    "Mistral": f"[TOOL_CALLS] [{CALL}, {CALL}]",
    "Mistral v11": '[TOOL_CALLS]add[ARGS]{"a": 1, "b": 2}[TOOL_CALLS]add[ARGS]{"a": 3, "b": 4}',
    "Qwen3-Coder": f"<tool_call>\n{CODER}\n</tool_call>\n<tool_call>\n{CODER}\n</tool_call>",
    "DeepSeek": f"<｜tool▁calls▁begin｜>{DEEPSEEK}\n{DEEPSEEK}<｜tool▁calls▁end｜>",
}


@pytest.mark.parametrize("text", TWO.values(), ids=TWO)
def test_two_calls_in_the_text_are_two_calls(ask, text):
    said, client, _ = ask(text, rescue_tool_calls=True)
    assert (said, len(client.history[1].calls)) == ("It is 3.", 2)


def test_a_text_among_the_arguments_is_taken_as_it_is(ask):
    text = "<function=note>\n<parameter=text>\n42\n</parameter>\n<parameter=urgent>\ntrue\n</parameter>\n</function>"
    _, client, _ = ask(text, rescue_tool_calls=True)
    assert client.history[1].calls[0].input == {"text": "42", "urgent": True}


def test_wrong_arguments_in_tags_are_told_to_the_model(ask):
    _, _, server = ask('<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', rescue_tool_calls=True)
    assert "missing" in server.requests[1].body["messages"][2]["content"]


def test_it_works_beside_the_automatic_mode(ask):
    said, client, _ = ask(HERMES, rescue_tool_calls=True, tool_mode="auto")
    assert (said, len(client.history[1].calls)) == ("It is 3.", 1)


def blanks_after_a_tag(count):
    assert found_calls("[TOOL_CALLS]" + " " * count + "x", [add]) == []


def tags_that_are_not_closed(count):
    assert found_calls("<tool_call>{" * count, [add]) == []


def braces(count):
    assert found_calls('[TOOL_CALLS]add{"a": ' + "} " * count, [add]) == []


@pytest.mark.parametrize(
    ("work", "size"), [(blanks_after_a_tag, 20_000), (tags_that_are_not_closed, 5000), (braces, 9000)]
)
def test_looking_for_calls_costs_no_more_than_its_share(work, size):
    assert ratio(work, size) < 32


def test_an_answer_in_json_is_live(serve, connect):
    pieces = ['{"an', "swer", '": 1}']
    client = connect(serve(answer(chunk_text=pieces)), tools=[add], rescue_tool_calls=True)
    client.send("q")
    assert [event.text for event in client.events() if isinstance(event, TextDelta)] == pieces


def test_a_text_that_can_be_no_call_is_live(serve, connect):
    client = connect(serve(answer(chunk_text=["It", " is", " 3."])), tools=[add], rescue_tool_calls=True)
    client.send("q")
    assert [event.text for event in client.events() if isinstance(event, TextDelta)] == ["It", " is", " 3."]


def test_a_call_that_was_cut_is_not_run(serve, connect):
    client = connect(serve(answer(CALL, finish="length")), tools=[add], rescue_tool_calls=True)
    assert client.ask("q") == CALL
