"""Any conversation on any wire: what has a short way through an adapter is sent as on the long one."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openagent import AgentOptions, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock, history
from openagent.client import ADAPTERS
from openagent.errors import ConfigError

TEXTS = st.sampled_from(["", " ", "Hi", "Hi \n", "é\ud83d", '"']).map(TextBlock)
CALLS = st.sampled_from(["a", "b", "ä b"]).map(lambda id: ToolUseBlock(id, "look", {"at": float("nan")}))
RESULTS = st.sampled_from(["a", "b", "ä b"]).map(lambda id: ToolResultBlock(id, "seen"))
IMAGES = st.just(ImageBlock("https://a.example/a.png"))
TALK = st.builds(
    Message, st.sampled_from(["user", "assistant", "user", "assistant", "system", "tool"]), st.tuples(TEXTS)
)
TURNS = st.builds(Message, st.just("assistant"), st.lists(TEXTS | CALLS, max_size=3, unique_by=id))
GIVEN = st.builds(Message, st.sampled_from(["user", "tool"]), st.lists(TEXTS | RESULTS | IMAGES, max_size=3))


class LongWay(TextBlock):
    """A text that nobody takes the short way for."""

    __slots__ = ()


def on_the_long_way(messages):
    """Copies of these messages; the content of one is not checked once it is made."""
    copies = [Message(message.role, message.content) for message in messages]
    for copy in copies:
        if copy.only_text:
            copy.content[0] = LongWay(copy.only_text)
    return copies


def sent(protocol, messages, **options):
    """The body of the request, or what is wrong with it."""
    settings = AgentOptions(model="m", base_url="http://a.example/v1", protocol=protocol, **options)
    adapter = ADAPTERS[protocol](settings, history.settled(messages)[1], [], None)
    try:
        return json.loads(adapter.encode(None, False).body)
    except ConfigError as exc:
        return str(exc)


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("others", [[], [TURNS, GIVEN]], ids=["talk", "calls too"])
@settings(max_examples=300)
@given(data=st.data())
def test_a_message_of_one_text_is_sent_as_on_the_long_way(protocol, others, data):
    messages = data.draw(st.lists(st.one_of(TALK, *others), max_size=7))
    options = {"cache_prompt": data.draw(st.booleans())} if protocol == "anthropic" else {}
    assert sent(protocol, messages, **options) == sent(protocol, on_the_long_way(messages), **options)
