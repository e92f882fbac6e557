"""The vendors' own clients read what the scripted server writes, and it accepts what they send."""

import anthropic
import openai
import pytest

from openagent.testing import ScriptedServer, answer, call, failure

SPOKEN = answer("One moment, please.", reasoning="Look it up.", calls=[call("look_up", {"place": "museum"})])
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}
ARGUMENTS = '{"place":"museum"}'


@pytest.fixture
def server():
    with ScriptedServer(SPOKEN, "It is open.") as server:
        yield server
        assert server.complaints == []
        assert len(server.requests) == 2


@pytest.fixture
def openai_client(server):
    with openai.OpenAI(base_url=server.url, api_key="key", max_retries=0) as client:
        yield client


@pytest.fixture
def anthropic_client(server):
    with anthropic.Anthropic(base_url=server.url.removesuffix("/v1"), api_key="key", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_completions_are_read_by_openai(openai_client, streamed):
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": "Is the museum open?"}]

    def ask():
        asked = {"model": "m", "messages": messages, "tools": tools}
        if not streamed:
            return openai_client.chat.completions.create(**asked)
        with openai_client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            return stream.get_final_completion()

    first = ask()
    message = first.choices[0].message
    (made,) = message.tool_calls
    assert (message.content, message.reasoning_content) == ("One moment, please.", "Look it up.")
    assert (made.id, made.function.name, made.function.arguments) == ("call_1", "look_up", ARGUMENTS)
    assert (first.choices[0].finish_reason, first.usage.prompt_tokens, first.usage.total_tokens) == (
        "tool_calls",
        7,
        12,
    )
    function = {"name": "look_up", "arguments": ARGUMENTS}
    turn = {"role": "assistant", "content": message.content}
    messages.append(turn | {"tool_calls": [{"id": made.id, "type": "function", "function": function}]})
    messages.append({"role": "tool", "tool_call_id": made.id, "content": "10-18"})
    second = ask()
    assert (second.choices[0].message.content, second.choices[0].finish_reason) == ("It is open.", "stop")


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_are_read_by_openai(openai_client, streamed):
    tools = [{"type": "function", "name": "look_up", "parameters": SCHEMA, "strict": False}]
    items = [{"role": "user", "content": "Is the museum open?"}]

    def ask():
        asked = {"model": "m", "input": items, "tools": tools, "store": False}
        if not streamed:
            return openai_client.responses.create(**asked)
        with openai_client.responses.stream(**asked) as stream:
            return stream.get_final_response()

    first = ask()
    thought, message, made = first.output
    assert (thought.summary[0].text, message.content[0].text) == ("Look it up.", "One moment, please.")
    assert (made.call_id, made.name, made.arguments) == ("call_1", "look_up", ARGUMENTS)
    assert (first.status, first.usage.input_tokens, first.usage.output_tokens) == ("completed", 7, 5)
    fresh = {"parsed_arguments", "parsed"}
    for item in first.output:
        plain = item.model_dump(mode="json", exclude=fresh, exclude_none=True)
        for part in plain.get("content", []):
            part.pop("parsed", None)
        items.append(plain)
    items.append({"type": "function_call_output", "call_id": made.call_id, "output": "10-18"})
    assert ask().output_text == "It is open."


@pytest.mark.parametrize("streamed", [False, True])
def test_messages_are_read_by_anthropic(anthropic_client, streamed):
    tools = [{"name": "look_up", "input_schema": SCHEMA}]
    messages = [{"role": "user", "content": "Is the museum open?"}]

    def ask():
        asked = {"model": "m", "max_tokens": 100, "messages": messages, "tools": tools}
        if not streamed:
            return anthropic_client.messages.create(**asked)
        with anthropic_client.messages.stream(**asked) as stream:
            return stream.get_final_message()

    first = ask()
    thought, text, made = first.content
    assert (thought.thinking, text.text) == ("Look it up.", "One moment, please.")
    assert (made.id, made.name, made.input) == ("call_1", "look_up", {"place": "museum"})
    assert (first.stop_reason, first.usage.input_tokens, first.usage.output_tokens) == ("tool_use", 7, 5)
    messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]})
    messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "10-18"}]})
    second = ask()
    assert (second.content[0].text, second.stop_reason) == ("It is open.", "end_turn")


def test_a_failure_is_the_vendors_error_to_its_client():
    with ScriptedServer(failure(429, "slow down"), failure(529, "busy")) as server:
        with openai.OpenAI(base_url=server.url, api_key="key", max_retries=0) as client:
            with pytest.raises(openai.RateLimitError, match="slow down"):
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
        base = server.url.removesuffix("/v1")
        with anthropic.Anthropic(base_url=base, api_key="key", max_retries=0) as client:
            with pytest.raises(anthropic.APIStatusError, match="busy") as caught:
                client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
    assert caught.value.status_code == 529
