"""The embedded model through the client: a conversation with a finished tool round, over each protocol."""

import pytest

from openagent import Client, Message, RoundFinished, TextDelta, ToolUseBlock, tool
from openagent.client import ADAPTERS


@tool
def opening_hours(place: str) -> str:
    """Say when a place is open."""
    return "10 to 18"


CONVERSATION = [
    Message.user("Hello, I am Ada."),
    Message.assistant("Hello Ada! How can I help?"),
    Message.user("When is the museum open?"),
    Message.assistant("One moment.", ToolUseBlock("call_1", "opening_hours", {"place": "museum"})),
    Message.tool_result("call_1", "10 to 18"),
    Message.assistant("It is open from 10 to 18 o'clock."),
]


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_conversation_with_a_finished_tool_round_is_answered_on_every_wire(protocol):
    with Client(
        provider="local",
        protocol=protocol,
        system_prompt="You are a helpful guide.",
        tools=[opening_hours],
        tool_choice="none",
        temperature=0,
        max_tokens=20,
        auto_execute_tools=True,
    ) as client:
        client.history = list(CONVERSATION)
        client.send("Thank you. Tell me about the museum.")
        events = list(client.events())
        texts = [event.text for event in events if isinstance(event, TextDelta)]
        answer = client.history[-1]
        assert (client.history[:6], answer.role, answer.text) == (CONVERSATION, "assistant", "".join(texts))
        assert len(texts) > 1  # streamed
        assert answer.text.strip()
        assert client.finish_reason in ("stop", "length")
        assert client.usage.input_tokens > 50
        assert 0 < client.usage.output_tokens <= 20
        assert [event.response.model for event in events if isinstance(event, RoundFinished)] == [
            "smollm2-135m-instruct"
        ]
