"""Questions about messages, and changed copies of them: all pure."""

import copy

import pytest

from openagent import (
    ConfigError,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    coalesce_text_blocks,
    estimate_tokens,
    is_approaching_limit,
    truncate_messages,
)
from openagent.history import NOT_ANSWERED, answered, open_calls, sendable, with_result

Q = Message.user("q")
EMPTY = Message.user("")


def use(*ids):
    return Message.assistant(*(ToolUseBlock(id, "f", {}) for id in ids))


def gave(id, content="ok"):
    return Message.tool_result(id, content)


def unanswered(id):
    return Message.tool_result(id, NOT_ANSWERED, is_error=True)


# Counting

ESTIMATES = [
    ([], 0),
    ([Message.user("Hello world")], 9),
    ([Message.assistant(ToolUseBlock("call_12", "search", {"q": "rust"}))], 13),
    ([Message.tool_result("call_12", {"hits": 3})], 11),
    ([Message("user", [ImageBlock("https://h/i.png", "low")])], 91),
    ([Message("user", [ImageBlock("https://h/i.png", "high")])], 306),
    ([Message("user", [ImageBlock("https://h/i.png")])], 206),
    ([Message.user("x" * 2376)], 600),
    ([Message.user("é" * 10)], 11),
    ([Message.user("\ud83d")], 7),
    ([Message.tool_result("c", {"é": "ö"})], 9),
]


@pytest.mark.parametrize(("messages", "tokens"), ESTIMATES)
def test_the_estimate_is_a_quarter_of_the_bytes(messages, tokens):
    """R-130: its examples, and non-ASCII text counted in bytes, unescaped."""
    assert estimate_tokens(messages) == tokens


def test_the_limit_is_approached_when_the_estimate_is_above_its_share():
    """R-132: strictly above the floor of limit * margin."""
    messages = [Message.user("x" * 2376)]
    assert not is_approaching_limit(messages, 1000, 0.6)
    assert is_approaching_limit(messages, 999, 0.6)
    assert is_approaching_limit(messages, 600)
    for margin in (-0.1, 1.1, float("nan")):
        with pytest.raises(ConfigError, match=f"margin {margin}"):
            is_approaching_limit(messages, 1000, margin)


# Truncating

SYSTEM = Message.system("s")
TALK = [SYSTEM, Q, Message.assistant("a"), Message.user("r"), Message.assistant("b")]


def test_truncating_keeps_the_last_messages_and_the_system_message():
    """R-133."""
    assert truncate_messages(TALK, 9) == TALK
    assert truncate_messages(TALK, 5) == TALK
    assert truncate_messages(TALK, 2) == [SYSTEM, *TALK[-2:]]
    assert truncate_messages(TALK, 2, preserve_system=False) == TALK[-2:]
    assert truncate_messages(TALK, 0) == [SYSTEM]
    assert truncate_messages(TALK, 0, preserve_system=False) == []
    assert truncate_messages(TALK[1:], 1) == TALK[-1:]
    with pytest.raises(ConfigError, match="keep -1"):
        truncate_messages(TALK, -1)


def test_truncating_returns_a_copy():
    """R-133."""
    before = copy.deepcopy(TALK)
    for keep in range(7):
        truncate_messages(TALK, keep).append(Q)
    assert before == TALK


def test_truncating_never_keeps_a_result_without_its_call():
    """R-133 [Q]: results at the cut go with their turn."""
    talk = [Q, use("c1", "c2"), gave("c1"), gave("c2"), Message.assistant("done")]
    assert truncate_messages(talk, 1) == talk[4:]
    assert truncate_messages(talk, 2) == talk[4:]
    assert truncate_messages(talk, 3) == talk[4:]
    assert truncate_messages(talk, 4) == talk[1:]
    assert truncate_messages([SYSTEM, *talk], 3) == [SYSTEM, talk[4]]
    for keep in range(7):
        kept = truncate_messages([SYSTEM, *talk], keep)
        assert sendable(kept) == kept


# Open calls and their results


def test_the_open_calls_are_those_of_the_last_turn_without_a_result():
    """R-30 [Q], hist-03."""
    c1, c2 = use("c1", "c2").calls
    assert open_calls([]) == []
    assert open_calls([Q, Message.assistant("a")]) == []
    assert open_calls([Q, use("c1", "c2")]) == [c1, c2]
    assert open_calls([Q, use("c1", "c2"), gave("c1")]) == [c2]
    assert open_calls([Q, use("c1", "c2"), gave("c2"), gave("c1")]) == []
    assert open_calls([Q, use("c1"), Message.user("r")]) == []


def test_a_result_takes_the_place_of_its_call_whatever_the_order_of_answering():
    """design.md 3: results of one turn are kept in the order of its calls."""
    talk = [Q, use("c1", "c2", "c3")]
    for order in (("c1", "c2", "c3"), ("c3", "c2", "c1"), ("c2", "c3", "c1"), ("c3", "c1", "c2")):
        copied = talk
        for id in order:
            copied = with_result(copied, ToolResultBlock(id, "ok"))
        assert copied == [*talk, gave("c1"), gave("c2"), gave("c3")]
    assert talk == [Q, use("c1", "c2", "c3")]


ANSWERED = [
    ([], []),
    ([Q, Message.assistant("a")], [Q, Message.assistant("a")]),
    ([Q, use("c1", "c2")], [Q, use("c1", "c2"), unanswered("c1"), unanswered("c2")]),
    ([Q, use("c1", "c2"), gave("c1")], [Q, use("c1", "c2"), gave("c1"), unanswered("c2")]),
    ([Q, use("c1", "c2"), gave("c2")], [Q, use("c1", "c2"), unanswered("c1"), gave("c2")]),
    ([Q, use("c1"), Message.user("r")], [Q, use("c1"), unanswered("c1"), Message.user("r")]),
    ([use("c1"), use("c1"), gave("c1")], [use("c1"), unanswered("c1"), use("c1"), gave("c1")]),
]


@pytest.mark.parametrize(("messages", "whole"), ANSWERED)
def test_what_has_no_result_gets_an_error_right_after_its_turn(messages, whole):
    """Promise 1, hist-03; R-32 [Q]."""
    before = copy.deepcopy(messages)
    assert answered(messages) == whole
    assert answered(whole) == whole
    assert messages == before


def test_a_broken_call_that_nobody_answered_is_told_what_was_wrong_with_it():
    """Promise 7, design.md 7.2, hist-06."""
    turn = Message.assistant(ToolUseBlock("c1", "f", {}, '{"a', "the arguments are not valid JSON"))
    result = Message.tool_result("c1", {"error": "not run: the arguments are not valid JSON"}, is_error=True)
    assert answered([Q, turn]) == [Q, turn, result]


BOTH = Message("user", [ToolResultBlock("c1", "ok"), TextBlock("and?")])
SENDABLE = [
    ("empty messages are left out (R-16)", [Q, EMPTY, Message("assistant", [])], [Q]),
    ("an empty text beside an image stays", [m := Message.user_with_image("", "https://h/i.png")], [m]),
    ("blanks are text", [Message.user(" ")], [Message.user(" ")]),
    (
        "results get the order of their calls",
        [use("a", "b"), gave("b"), gave("a")],
        [use("a", "b"), gave("a"), gave("b")],
    ),
    ("of two results the first counts", [use("a"), gave("a", 1), gave("a", 2)], [use("a"), gave("a", 1)]),
    ("a result of no call is left out", [gave("a"), Q, gave("b")], [Q]),
    ("a result of another call is left out", [use("a"), gave("b")], [use("a"), unanswered("a")]),
    ("a result that comes too late is replaced", [use("a"), Q, gave("a")], [use("a"), unanswered("a"), Q]),
    ("text beside a result follows it", [use("c1"), BOTH], [use("c1"), gave("c1"), Message.user("and?")]),
    (
        "several results in one message are pulled apart",
        [use("a", "b"), Message("tool", [ToolResultBlock("b", 2), ToolResultBlock("a", 1)])],
        [use("a", "b"), gave("a", 1), gave("b", 2)],
    ),
]


@pytest.mark.parametrize(("messages", "sent"), [row[1:] for row in SENDABLE], ids=[row[0] for row in SENDABLE])
def test_what_is_sent_is_what_a_strict_server_accepts(messages, sent):
    """Promise 1: whatever the user made of the history."""
    before = copy.deepcopy(messages)
    assert sendable(messages) == sent
    assert sendable(sent) == sent
    assert messages == before


# Joining


def test_neighbouring_texts_are_joined_and_nothing_else():
    """R-230, R-112, B-72: no separator; text on both sides of a call stays apart; the input is untouched."""
    call = ToolUseBlock("c", "f", {})
    blocks = [TextBlock("a"), TextBlock("b\n"), call, TextBlock("c"), TextBlock(""), TextBlock("d")]
    before = list(blocks)
    assert coalesce_text_blocks(blocks) == [TextBlock("ab\n"), call, TextBlock("cd")]
    assert coalesce_text_blocks([call, call]) == [call, call]
    assert coalesce_text_blocks([]) == []
    assert blocks == before


def test_an_image_in_a_result_counts_as_an_image():
    image = {"type": "image", "url": "data:image/png;base64," + "A" * 400_000, "detail": "low"}
    alone = estimate_tokens([Message("tool", [ToolResultBlock("c", [image])])])
    beside = estimate_tokens([Message("tool", [ToolResultBlock("c", ["a text", image])])])
    assert (80 < alone < 100, 0 < beside - alone < 10) == (True, True)
