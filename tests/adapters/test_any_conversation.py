"""Any conversation on any wire: what has a short way through an adapter is sent as on the long one."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openagent import AgentOptions, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock, history
from openagent.client import ADAPTERS
from openagent.errors import ConfigError
from openagent.talk import Talk

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


def sent(protocol, messages, talk=None, **options):
    """The body of the request, or what is wrong with it."""
    settings = AgentOptions(model="m", base_url="http://a.example/v1", protocol=protocol, **options)
    known = talk.length(messages) if talk else 0
    adapter = ADAPTERS[protocol](settings, history.settled(messages, known)[1], [], None)
    adapter.talk = talk or adapter.talk
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


@pytest.mark.parametrize("protocol", ADAPTERS)
@settings(max_examples=120)
@given(data=st.data())
def test_a_conversation_that_grows_and_is_changed_is_sent_as_if_nothing_were_remembered(protocol, data):
    talk, messages = Talk(), []
    for _ in range(data.draw(st.integers(2, 5))):
        messages += data.draw(st.lists(TALK | TALK | TURNS | GIVEN, min_size=1, max_size=4))
        place = data.draw(st.integers(0, len(messages) - 1))
        if data.draw(st.booleans()) and messages[place].content:
            messages[place].content[0] = data.draw(TEXTS)
        elif data.draw(st.booleans()):
            del messages[place]
        options = {"cache_prompt": data.draw(st.booleans())} if protocol == "anthropic" else {}
        assert sent(protocol, messages, talk, **options) == sent(protocol, on_the_long_way(messages), **options)
