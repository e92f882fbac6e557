import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openagent.assembly import CUT_BY_LIMIT, Answer, Pieces, read_arguments
from openagent.errors import InvalidResponseError
from openagent.events import CallAnnounced, ReasoningDelta, TextBurst, TextDelta, spread
from openagent.limits import Limits
from openagent.messages import FinishReason, Message, TextBlock, ToolUseBlock


def heard(*pieces):
    answer = Answer()
    for piece in pieces:
        answer.text(piece)
    return answer


def test_pieces_of_text_are_told_one_by_one_and_kept_as_one():
    """R-20, B-72: joined with nothing between."""
    answer = heard("Hel", "lo", "\n", " you")
    assert answer.events == [TextDelta("Hel"), TextDelta("lo"), TextDelta("\n"), TextDelta(" you")]
    assert answer.message() == Message.assistant("Hello\n you")


def all_heard(pieces, *, burst, half, limit):
    """What is told and kept of pieces that came one by one or together, after half a character or none."""
    answer = Answer()
    answer.bound(Limits(answer_chars=limit))
    error = ""
    try:
        answer.text("\ud83d" if half else "")
        if burst:
            answer.burst += pieces
            answer.add_burst()
        else:
            for piece in pieces:
                answer.text(piece)
                answer.ended = False
    except InvalidResponseError as exc:
        error = str(exc)
    return list(spread(answer.events)), answer.heard(), answer.message(), answer.ended, error


@example(["\ude00", "a"], True, 9)
@given(st.lists(st.text(min_size=1, max_size=3), max_size=6), st.booleans(), st.integers(1, 9))
def test_pieces_that_came_together_are_the_same_as_pieces_one_by_one(pieces, half, limit):
    """Also with a limit among them: those that fitted are told."""
    assert all_heard(pieces, burst=True, half=half, limit=limit) == all_heard(
        pieces, burst=False, half=half, limit=limit
    )


def test_pieces_that_came_together_are_one_event_and_stand_before_what_came_next():
    for hear, event in [
        (lambda answer: answer.text("!"), TextDelta("!")),
        (lambda answer: answer.reasoning("hm"), ReasoningDelta("hm")),
        (lambda answer: answer.call((1,), id="c", name="n"), CallAnnounced("c", "n")),
    ]:
        answer = Answer()
        answer.burst += ["Hel", "lo"]
        hear(answer)
        assert answer.events == [TextBurst(["Hel", "lo"]), event]
        assert answer.burst == []


def test_an_empty_piece_says_nothing():
    """R-174, B-71."""
    answer = heard("", "")
    answer.reasoning("")
    assert (answer.events, answer.is_empty(), answer.heard(), answer.message()) == ([], True, [], Message.assistant())


def test_reasoning_is_told_and_never_kept():
    """R-93, R-94."""
    answer = Answer()
    answer.reasoning("hm")
    answer.reasoning("m")
    assert answer.events == [ReasoningDelta("hm"), ReasoningDelta("m")]
    assert (answer.is_empty(), answer.message(), answer.heard()) == (False, Message.assistant(), [])


def test_calls_stand_in_the_order_of_their_places():
    """R-185, B-58, S-6: not in the order in which they came."""
    answer = Answer()
    answer.call((1, 1), id="b", name="second", arguments='{"n":')
    answer.call((1, 0), id="a", name="first")
    answer.call((1, 1), arguments="2}")
    answer.text("text", at=(0,))
    assert answer.message() == Message.assistant(
        "text", ToolUseBlock("a", "first", {}), ToolUseBlock("b", "second", {"n": 2})
    )


def test_text_on_both_sides_of_a_call_stays_apart():
    """R-230."""
    answer = Answer()
    answer.text("a", at=(0,))
    answer.text("b", at=(1,))
    answer.call((2,), id="c", name="n")
    answer.text("d", at=(3,))
    assert answer.message() == Message.assistant("ab", ToolUseBlock("c", "n", {}), "d")


def test_blank_text_beside_calls_is_left_out():
    """ant-14; alone it is the answer."""
    answer = heard("\n ")
    assert (answer.has_text(), answer.message()) == (False, Message.assistant("\n "))
    answer.call((1,), id="c", name="n")
    assert answer.message() == Message.assistant(ToolUseBlock("c", "n", {}))


def test_a_call_is_announced_once_as_soon_as_its_id_and_name_are_known():
    """tc-11: what was shown does not change later."""
    answer = Answer()
    told = []
    for piece in ({}, {"name": " add "}, {"id": "c1"}, {"id": "other", "name": "sub"}, {"arguments": "{}"}):
        answer.call((1,), **piece)
        told.append(answer.events[:])
    assert told == [[], [], *[[CallAnnounced("c1", "add")]] * 3]
    assert answer.message() == Message.assistant(ToolUseBlock("c1", "add", {}))


def test_a_call_without_an_id_gets_one_that_is_used_everywhere():
    """R-183, tc-12."""
    answer = Answer()
    answer.call((1,), name="add")
    answer.call((2,), name="add")
    first, second = answer.message().calls
    assert first.id != second.id
    assert answer.events == [CallAnnounced(first.id, "add"), CallAnnounced(second.id, "add")]
    assert answer.message().calls == [first, second]


def test_the_second_call_of_an_id_gets_another():
    """tc-14: the first keeps it."""
    answer = Answer()
    answer.call((1,), id="same", name="add", arguments='{"a":1}')
    answer.call((2,), id="same", name="add", arguments='{"a":2}')
    first, second = answer.message().calls
    assert (first.id, first.input, second.input) == ("same", {"a": 1}, {"a": 2})
    assert second.id not in ("", "same")


def test_a_place_where_nothing_was_said_is_no_call():
    answer = Answer()
    answer.call((1,))
    assert answer.message() == Message.assistant()


@pytest.mark.parametrize("name", ["", "two words", "naïve", "x" * 65, "a.b", "a/b\n"])
def test_a_name_that_no_server_would_take_back_is_replaced_and_told(name):
    """harness.md 2.4: the replayed call must be acceptable."""
    answer = Answer()
    answer.call((1,), id="c", name=name, arguments="{}")
    (call,) = answer.message().calls
    assert (call.name, call.input) == ("invalid_tool_call", {})
    assert call.error.endswith("is not the name of a tool")


def test_the_calls_of_a_truncated_turn_must_not_be_run():
    """design.md, promise 2; arg-05: also one whose arguments happen to be whole."""
    answer = Answer()
    answer.call((1,), id="c", name="n", arguments='{"a":1}')
    answer.finish = FinishReason("length", "length")
    assert answer.message().calls == [ToolUseBlock("c", "n", {"a": 1}, None, CUT_BY_LIMIT)]


def test_half_a_call_is_never_part_of_what_was_heard():
    """design.md, promise 2."""
    answer = heard("Let me ", "see")
    answer.call((1,), id="c", name="n", arguments="{")
    assert answer.heard() == [TextBlock("Let me see")]


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        (["\ud83d", "\ude00"], ["😀"]),
        (["a\ud83d", "\ude00b"], ["a", "😀b"]),
        (["\ud83d", "x"], ["\ufffdx"]),
        (["\ude00", "x"], ["\ufffd", "x"]),
        (["\ud83d", "\ud83d", "\ude00"], ["\ufffd", "😀"]),
        (["x\ud83d"], ["x", "\ufffd"]),
        (["😀"], ["😀"]),
    ],
)
def test_halves_of_a_character_are_joined_across_pieces(pieces, told):
    """design.md 7.5: a half alone becomes U+FFFD."""
    answer = heard(*pieces)
    assert answer.message() == Message.assistant("".join(told))
    assert answer.events == [TextDelta(text) for text in told]
    thought = Answer()
    for piece in pieces:
        thought.reasoning(piece)
    thought.message()
    assert thought.events == [ReasoningDelta(text) for text in told]


@pytest.mark.parametrize(
    ("text", "input"),
    [
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ("{}", {}),
        ('{"a":1}', {"a": 1}),
        (' {"a": [1, {"b": null}]}\n', {"a": [1, {"b": None}]}),
        ('"{\\"a\\":1}"', {"a": 1}),
        ('"\\"{\\\\\\"a\\\\\\":1}\\""', {"a": 1}),
        ('"null"', {}),
        ('{"a":"line\nbreak\ttab"}', {"a": "line\nbreak\ttab"}),
        ('{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a":"\\ud83d","\\uDE00":1}', {"a": "\ufffd", "\ufffd": 1}),
        ('{"a":"\ud83d"}', {"a": "\ufffd"}),
        ('{"a":12345678901234567890123}', {"a": 12345678901234567890123}),
    ],
)
def test_arguments_that_are_an_object_are_its_input(text, input):
    """R-184, S-14, arg-01, arg-02, arg-03, arg-07; a lone half is no character (design.md 7.5)."""
    assert read_arguments(text) == (input, None, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{bad", "not valid JSON"),
        ('{"commands":["make","make install"', "not valid JSON"),
        ("{'city': 'Oslo', 'days': 3}", "not valid JSON"),
        ('{"a":1}{"a":2}', "not valid JSON"),
        ('{"city":"Oslo"}\n</tool_call>', "not valid JSON"),
        ('["Oslo"]', "not a JSON object but list"),
        ("5", "not a JSON object but int"),
        ('"Oslo"', "not valid JSON"),
        ('"[1]"', "not a JSON object but list"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "not valid JSON"),
        ('{"a":"\\ud83d"' + ',"a":[' * 700 + "]" * 700 + "}", "not valid JSON"),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_they_came_with_the_reason(text, reason):
    """design.md 7.5; S-15, B-65, arg-06, arg-08, arg-10, arg-14: nothing is repaired, nothing raised."""
    input, raw, error = read_arguments(text)
    assert (input, raw) == ({}, text)
    assert reason in error


def test_there_is_a_limit_to_the_calls_of_one_turn():
    """R-169."""
    answer = Answer()
    with pytest.raises(InvalidResponseError, match="more than 1000 calls"):
        for place in range(1001):
            answer.call((1, place), name="n")


def seconds(pieces):
    tries = []
    for _ in range(3):
        answer, start = Answer(), time.process_time()
        answer.call((1,), id="c", name="n", arguments='{"a":"')
        for _ in range(pieces):
            answer.text("piece ")
            answer.reasoning("é")
            answer.call((1,), arguments="12345678")
        answer.call((1,), arguments='"}')
        answer.message()
        tries.append(time.process_time() - start)
    return min(tries)


def test_the_cost_is_linear_in_the_number_of_pieces():
    """design.md, promise 6: four times the pieces cost less than eight times as much, not sixteen."""
    assert seconds(40_000) / seconds(10_000) < 8


def test_pieces_are_joined_whatever_their_number():
    for count in (0, 1, 999, 1000, 1001, 2500):
        pieces = Pieces()
        for number in range(count):
            pieces.add(f"{number} ")
        assert (pieces.joined(), bool(pieces)) == ("".join(f"{number} " for number in range(count)), count > 0)
