"""Lists of Chat Completions messages, as other programs keep them, and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openagent import Client, ConfigError, ImageBlock, Message, TextBlock, ToolUseBlock, from_openai, to_openai

PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACw="
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
WORDS = TEXTS.filter(bool)
INPUTS = st.dictionaries(TEXTS, TEXTS | st.integers(-9, 9) | st.none() | st.lists(st.booleans()), max_size=3)
CALLS = st.builds(ToolUseBlock, WORDS, WORDS, INPUTS)
IMAGES = st.builds(ImageBlock, st.sampled_from([PIXEL, "https://a.b/c.png"]), st.sampled_from(["auto", "low", "high"]))
PARTS = st.lists(st.builds(TextBlock, WORDS) | IMAGES, min_size=1, max_size=3).filter(
    lambda parts: any(isinstance(part, ImageBlock) for part in parts)
)
MESSAGES = st.one_of(
    st.builds(Message.system, TEXTS),
    st.builds(Message.user, TEXTS),
    st.builds(lambda parts: Message("user", parts), PARTS),
    st.builds(Message.assistant, TEXTS),
    st.builds(lambda text, calls: Message.assistant(*[text] * bool(text), *calls), TEXTS, st.lists(CALLS, min_size=1)),
    st.builds(Message.tool_result, WORDS, TEXTS),
)


@settings(deadline=None)
@given(st.lists(MESSAGES, max_size=4))
def test_what_the_format_can_say_comes_back(messages):
    assert from_openai(to_openai(messages)) == messages


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}


def test_a_client_gives_its_conversation_with_the_system_prompt_first():
    client = Client(model="m", base_url="http://localhost:9/v1", system_prompt="Be brief.")
    client.history = [
        Message.user_with_image("q", PIXEL),
        Message.assistant(ToolUseBlock("c", "f", {"x": 1})),
        Message.tool_result("c", {"y": 2}),
        Message.assistant("a"),
    ]
    image = {"type": "image_url", "image_url": {"url": PIXEL, "detail": "auto"}}
    assert client.to_openai() == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "q"}, image]},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": '{"y":2}'},
        {"role": "assistant", "content": "a"},
    ]


def test_what_people_have_is_taken():
    found = from_openai(
        [
            {"role": "developer", "content": "d"},
            {"role": "user", "name": "Ann", "content": [{"type": "text", "text": "a"}, "b"]},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "r"},
            {"role": "assistant", "content": None, "refusal": "no"},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"x": 1}}}]},
        ]
    )
    assert found == [
        Message.system("d"),
        Message.user("a", "b"),
        Message.assistant(ToolUseBlock("call_2", "f", {})),
        Message.tool_result("call_2", "r"),
        Message.assistant("no"),
        Message.assistant(ToolUseBlock("c", "f", {"x": 1})),
    ]


def test_arguments_that_are_no_json_stay_as_they_are():
    broken = [
        {"role": "assistant", "content": "", "tool_calls": [CALL | {"function": {"name": "f", "arguments": "{x"}}]}
    ]
    (call,) = from_openai(broken)[0].calls
    assert (call.input, call.raw_arguments, bool(call.error)) == ({}, "{x", True)
    assert to_openai(from_openai(broken)) == broken


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ("hi", r"messages\[1\] 'hi'"),
        ({"content": "a"}, r"messages\[1\]\.role None"),
        ({"role": ["user"]}, r"messages\[1\]\.role"),
        ({"role": "user", "content": 5}, r"messages\[1\]\.content 5"),
        ({"role": "user", "content": [{"type": "input_audio"}]}, r"messages\[1\]\.content\[0\]\.type 'input_audio'"),
        ({"role": "user", "content": [{"type": ["text"]}]}, r"messages\[1\]\.content\[0\]\.type"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, r"content\[0\]\.image_url: "),
        ({"role": "assistant", "tool_calls": 5}, r"messages\[1\]\.tool_calls 5"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, r"messages\[1\]\.tool_calls\[0\]\.function None"),
        ({"role": "assistant", "function_call": {"arguments": ""}}, r"messages\[1\]\.function_call\.name None"),
        ({"role": "tool", "content": "r"}, r"messages\[1\]\.tool_call_id None"),
        ({"role": "function", "name": "g", "content": "r"}, r"messages\[1\]\.name 'g'"),
    ],
)
def test_what_cannot_be_taken_is_named_by_its_place(entry, place):
    with pytest.raises(ConfigError, match=place):
        from_openai([{"role": "user", "content": "a"}, entry])


@pytest.mark.parametrize("messages", ["hi", 5, {"role": "user"}])
def test_what_is_no_list_is_refused(messages):
    with pytest.raises(ConfigError, match="must be a list of dicts"):
        from_openai(messages)
