import copy
import dataclasses
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openagent import (
    ConfigError,
    FinishReason,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from openagent.messages import block_from_dict, block_to_dict

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
STATE = st.none() | st.dictionaries(TEXTS, JSON, min_size=1, max_size=2)
BLOCKS = (
    st.builds(TextBlock, TEXTS)
    | st.builds(ImageBlock, st.just("https://x/y.png"), st.sampled_from(["auto", "low", "high"]))
    | st.builds(
        ToolUseBlock,
        TEXTS,
        TEXTS,
        OBJECTS,
        raw_arguments=st.none() | st.text("ab", min_size=1),
        error=st.none() | st.just("no"),
        provider_state=STATE,
    )
    | st.builds(ToolResultBlock, TEXTS, JSON, st.booleans())
)
MESSAGES = st.builds(
    Message, st.sampled_from(["system", "user", "assistant", "tool"]), st.lists(BLOCKS, max_size=4), STATE
)


@given(MESSAGES)
def test_a_message_goes_to_json_and_back_unchanged(message):
    """1.5: round trips."""
    assert Message.from_dict(json.loads(json.dumps(message.to_dict()))) == message


@given(MESSAGES)
def test_a_message_can_be_pickled_and_copied(message):
    assert pickle.loads(pickle.dumps(message)) == copy.deepcopy(message) == message


def test_the_json_of_a_message_is_that_of_the_seed():
    """1.5: blocks tagged by ``type``; our own keys only where there is something in them."""
    message = Message(
        "assistant",
        [
            TextBlock("hi"),
            ImageBlock("http://x/y", "low"),
            ToolUseBlock("c1", "add", {"a": 1}),
            ToolResultBlock("c1", {"sum": 3}),
        ],
    )
    assert message.to_dict() == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "hi"},
            {"type": "image", "url": "http://x/y", "detail": "low"},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
            {"type": "tool_result", "tool_use_id": "c1", "content": {"sum": 3}},
        ],
    }


def test_the_optional_keys_are_written_when_they_say_something():
    """design.md 3."""
    call = ToolUseBlock("c1", "add", {}, "{bad", "not JSON", {"signature": "s"})
    message = Message("assistant", [call, ToolResultBlock("c1", "no", True)], {"provider": "p"})
    assert message.to_dict() == {
        "role": "assistant",
        "content": [
            {
                "type": "tool_use",
                "id": "c1",
                "name": "add",
                "input": {},
                "raw_arguments": "{bad",
                "error": "not JSON",
                "provider_state": {"signature": "s"},
            },
            {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True},
        ],
        "provider_state": {"provider": "p"},
    }


def test_a_loaded_image_has_the_detail_auto_and_unknown_keys_do_not_matter():
    """1.5."""
    plain = {"role": "user", "content": [{"type": "image", "url": "http://x/y", "later": 1}], "id": "m1"}
    assert Message.from_dict(plain) == Message("user", [ImageBlock("http://x/y", "auto")])


def test_content_may_be_a_plain_text():
    assert Message.from_dict({"role": "user", "content": "hi"}) == Message("user", "hi") == Message.user("hi")


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [],
        "hi",
        {},
        {"role": "user"},
        {"content": []},
        {"role": "boss", "content": []},
        {"role": None, "content": []},
        {"role": ["user"], "content": []},
        {"role": "user", "content": None},
        {"role": "user", "content": {}},
        {"role": "user", "content": [None]},
        {"role": "user", "content": ["hi"]},
        {"role": "user", "content": [{}]},
        {"role": "user", "content": [{"type": "audio"}]},
        {"role": "user", "content": [{"type": ["text"]}]},
        {"role": "user", "content": [{"type": {}, "text": "x"}]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "text", "text": None}]},
        {"role": "user", "content": [{"type": "text", "text": 5}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": "{}"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": None, "name": "b", "input": {}}]},
        {"role": "tool", "content": [{"type": "tool_result", "content": 1}]},
        {"role": "user", "content": [{"type": "image"}]},
        {"role": "user", "content": [{"type": "image", "url": "http://x/y", "detail": "sharp"}]},
        {"role": "user", "content": [{"type": "image", "url": "http://x/y", "detail": []}]},
    ],
)
def test_what_is_no_message_is_refused(plain):
    """design.md, promise 7: what the user gets wrong is a clear exception."""
    with pytest.raises(ConfigError):
        Message.from_dict(plain)


def test_the_constructors_make_what_their_names_say():
    """1.5."""
    image = ImageBlock("http://x/y")
    assert Message.user("a", image, "b") == Message("user", [TextBlock("a"), image, TextBlock("b")])
    assert Message.user() == Message("user", [])
    assert Message.assistant("a", ToolUseBlock("c", "n", {})) == Message(
        "assistant", [TextBlock("a"), ToolUseBlock("c", "n", {})]
    )
    assert Message.system("s") == Message("system", [TextBlock("s")])
    assert Message.tool_result("c", {"a": 1}, is_error=True) == Message("tool", [ToolResultBlock("c", {"a": 1}, True)])


@pytest.mark.parametrize("item", [None, 5, {"type": "text", "text": "x"}, Message.user("x")])
def test_content_that_is_no_block_is_refused(item):
    with pytest.raises(ConfigError, match="is no text and no block"):
        Message.user(item)
    with pytest.raises(ConfigError, match="is no text and no block"):
        Message("user", [item])


@pytest.mark.parametrize("text", [5, None, b"bytes"])
def test_a_text_block_whose_text_is_no_text_is_refused(text):
    with pytest.raises(ConfigError, match=f"the text of TextBlock.text={text!r}. must be a str"):
        Message.user("a", TextBlock(text))


def test_an_unknown_role_is_refused():
    with pytest.raises(ConfigError, match="'robot'"):
        Message("robot", [])


def test_a_message_does_not_share_the_list_it_was_made_of():
    blocks = [TextBlock("a")]
    message = Message("user", blocks)
    blocks.append(TextBlock("b"))
    assert message == Message.user("a")


def test_a_message_shows_its_text_calls_and_results():
    call, result = ToolUseBlock("c", "n", {}), ToolResultBlock("c", 1)
    message = Message("assistant", [TextBlock("a"), call, TextBlock("b"), result])
    assert (message.text, message.calls, message.results) == ("ab", [call], [result])


@pytest.mark.parametrize("block", [TextBlock("a"), ToolUseBlock("c", "n", {}), ToolResultBlock("c", 1)])
def test_a_block_is_frozen_and_keeps_its_kind(block):
    with pytest.raises(AttributeError):
        setattr(block, dataclasses.fields(block)[0].name, "b")
    assert block_from_dict(block_to_dict(block)) == block


def test_opaque_state_is_not_shown():
    """Signatures are long and nobody reads them."""
    assert "secret" not in repr(
        Message("assistant", [ToolUseBlock("c", "n", {}, None, None, {"secret": 1})], {"secret": 1})
    )


REASONS = [
    FinishReason("stop", "end_turn"),
    FinishReason("length", "max_tokens"),
    FinishReason("insufficient_system_resource", "insufficient_system_resource"),
    FinishReason("unspecified"),
    FinishReason("max_tool_iterations", "length", is_truncated=True),
]


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("copied", [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy])
def test_a_finish_reason_survives_being_copied_and_pickled(reason, copied):
    twin = copied(reason)
    assert (type(twin), twin, twin.raw, twin.is_truncated) == (FinishReason, reason, reason.raw, reason.is_truncated)


def test_a_finish_reason_is_a_str_with_what_the_wire_said():
    """1.7, B-52: an unknown word is kept as it is; only length is truncated."""
    assert [(str(reason), reason.raw, reason.is_truncated) for reason in REASONS] == [
        ("stop", "end_turn", False),
        ("length", "max_tokens", True),
        ("insufficient_system_resource", "insufficient_system_resource", False),
        ("unspecified", None, False),
        ("max_tool_iterations", "length", True),
    ]
    assert FinishReason("stop") == "stop"
    assert {FinishReason("stop", "x"): 1}["stop"] == 1
    assert json.dumps(FinishReason("stop", "end_turn")) == '"stop"'


def test_usage_sums_the_numbers_that_came():
    """design.md 3: a number that nobody sent stays None."""
    first = Usage(10, 2, cache_read_tokens=4, raw={"a": 1})
    second = Usage(5, None, reasoning_tokens=3)
    assert first + second == Usage(15, 2, 4, None, 3, {"a": 1})
    assert second + first == Usage(15, 2, 4, None, 3, {"a": 1})
    assert first + Usage(raw={"b": 2}) == Usage(10, 2, 4, None, None, {"b": 2})
    assert Usage() + Usage() == Usage()
