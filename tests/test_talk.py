"""What is remembered of a conversation is what a fresh look says, whatever was done to it between two requests."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openagent import ImageBlock, Message, TextBlock, ToolUseBlock
from openagent.talk import Talk

TEXTS = st.sampled_from(["", " ", "Hi", "é\ud83d", '"']).map(TextBlock)
OTHERS = st.sampled_from([ImageBlock("https://a.example/a.png"), ToolUseBlock("a", "look", {})])
TALK = st.builds(Message, st.sampled_from(["user", "assistant"]), st.tuples(TEXTS))
MIXED = st.builds(Message, st.sampled_from(["user", "system", "tool"]), st.lists(TEXTS | OTHERS, max_size=2))
STATED = st.builds(Message, st.just("assistant"), st.tuples(TEXTS), st.sampled_from([{}, {"provider": "p"}]))
MESSAGES = TALK | TALK | MIXED | STATED


def spoken(role, text):
    """A wire that has nothing to say of the system, and of blanks."""
    return None if role == "system" or text.isspace() else {"role": role, "content": text}


def loud(role, text):
    return {"role": role.upper(), "text": text}


def changed(draw, messages):
    """One change of a list of messages as a caller may make it, in the list or inside of a message."""
    place = draw(st.integers(0, max(0, len(messages) - 1)))
    kind = draw(st.sampled_from(["add", "add", "add", "cut", "drop", "swap", "copy", "block", "more"]))
    if kind == "add" or not messages:
        messages += draw(st.lists(MESSAGES, min_size=1, max_size=4))
    elif kind == "cut":
        del messages[place:]
    elif kind == "drop":
        del messages[place]
    elif kind == "swap":
        messages[place] = draw(MESSAGES)
    elif kind == "copy":
        messages[place] = Message(messages[place].role, messages[place].content)
    elif kind == "block" and messages[place].content:
        messages[place].content[-1] = draw(TEXTS)
    else:
        messages[place].content.append(draw(TEXTS | OTHERS))


@settings(max_examples=500)
@given(data=st.data())
def test_what_is_remembered_is_what_a_fresh_look_says(data):
    remembered, messages = Talk(), []
    for _ in range(data.draw(st.integers(1, 8))):
        changed(data.draw, messages)
        bare = data.draw(st.sampled_from([spoken, spoken, spoken, loud]))
        text, count = remembered.written(messages, bare)
        assert (bytes(text), count) == Talk().written(messages, bare)
        assert remembered.length(messages) == Talk().length(messages)
        rows = [bare(message.role, message.text) for message in messages[:count]]
        assert json.loads(b"[%s]" % text) == json.loads(json.dumps(rows).replace("\\ud83d", "\ufffd"))


def test_the_beginning_ends_before_the_last_prompt():
    """There a wire may mark the prompt, or cut blanks from the end."""
    said = [Message.user("a"), Message.assistant("b"), Message.user("c"), Message.assistant("d"), Message.user("e")]
    assert [Talk().written(said[:end], spoken)[1] for end in range(6)] == [0, 0, 0, 2, 2, 4]


def test_only_what_is_new_is_encoded():
    """The reason of it all: a turn costs what was said since the last one."""
    asked = []

    def counting(role, text):
        asked.append(text)
        return spoken(role, text)

    talk, messages = Talk(), []
    for number in range(50):
        messages.append(Message.user(f"q{number}"))
        talk.written(messages, counting)
        messages.append(Message.assistant(f"a{number}"))
    assert len(asked) == 3 * 49  # an answer once, a prompt twice: as the last one, and when another follows
    assert talk.length(messages) == 100


@pytest.mark.parametrize("at", range(1, 5))
def test_ctrl_c_while_a_beginning_is_written_leaves_nothing_half_made(at):
    """Promise 4."""
    asked = []

    def stopped(role, text):
        asked.append(text)
        if len(asked) == at:
            raise KeyboardInterrupt
        return spoken(role, text)

    talk, messages = Talk(), [Message.user(text) for text in "abcd"]
    with pytest.raises(KeyboardInterrupt):
        talk.written(messages, stopped)
    assert talk.written(messages, stopped) == Talk().written(messages, spoken)
