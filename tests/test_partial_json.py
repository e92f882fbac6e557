"""A JSON value that grows: whatever pieces it comes in, never more than was said, never a letter read twice."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_linear_cost import ratio

from openagent.partial_json import ABSENT, PartialJSON, PartialText

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def grown(pieces):
    growing = PartialJSON()
    for piece in pieces:
        growing.feed(piece)
    growing.finish()
    return growing


def is_prefix(part, whole):
    """Whether the part is what may be known of the whole while it is being written."""
    if isinstance(part, str):
        return isinstance(whole, str) and whole.startswith(part)
    if isinstance(part, dict):
        keys = list(part)
        return keys == list(whole)[: len(keys)] and all(
            is_prefix(part[key], whole[key]) if key == keys[-1] else part[key] == whole[key] for key in keys
        )
    if isinstance(part, list):
        return not part or (part[:-1] == whole[: len(part) - 1] and is_prefix(part[-1], whole[len(part) - 1]))
    return part == whole


@given(VALUES, st.booleans(), st.sampled_from([None, 1]), st.lists(st.integers(1, 7), max_size=60))
def test_whatever_pieces_it_comes_in_the_value_is_the_same(value, ascii_only, indent, sizes):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    pieces, place = [], 0
    for size in [*sizes, len(text)]:
        pieces.append(text[place : place + size])
        place += size
    growing = grown(pieces)
    assert (growing.value, growing.is_done, growing.is_broken) == (json.loads(text), True, False)


@given(VALUES, st.booleans())
def test_at_each_letter_it_is_a_part_of_what_it_becomes(value, ascii_only):
    growing = PartialJSON()
    for letter in json.dumps(value, ensure_ascii=ascii_only):
        before = json.dumps(growing.value) if growing.value is not ABSENT else None
        has_changed = growing.feed(letter)
        assert growing.value is ABSENT or is_prefix(growing.value, value)
        after = json.dumps(growing.value) if growing.value is not ABSENT else None
        assert has_changed is (before != after)


@given(
    st.lists(
        st.sampled_from(
            ["{", "}", "[", "]", ",", ":", " ", '"a"', '"\\', "u", "1", "-", ".5", "e9", "true", "nul", "\n", '"']
        )
    )
)
def test_of_any_text_it_makes_what_the_standard_library_makes_or_it_is_not_done(pieces):
    growing = grown(pieces)
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode("".join(pieces).lstrip())
    except ValueError:
        assert not growing.is_done
    else:
        assert growing.is_broken or growing.value == value


def test_it_grows_in_place_and_numbers_appear_when_they_are_whole():
    growing, seen = PartialJSON(), []
    for piece in ('{"title": "Em', 'ma", "pages": 47', '4, "au', 'thors": ["Aus', 'ten"]', "}"):
        seen.append((growing.feed(piece), json.dumps(growing.value)))
    assert seen == [
        (True, '{"title": "Em"}'),
        (True, '{"title": "Emma"}'),
        (True, '{"title": "Emma", "pages": 474}'),
        (True, '{"title": "Emma", "pages": 474, "authors": ["Aus"]}'),
        (True, '{"title": "Emma", "pages": 474, "authors": ["Austen"]}'),
        (False, '{"title": "Emma", "pages": 474, "authors": ["Austen"]}'),
    ]


BROKEN = [
    *("{'a'", "{a", '{"a" 1', '{"a": 1 2', "[1,, 2]", "[1, ]", '{"a": 1,}', "[}", "{]", "nul]", "[01]", "[1.]", "[+1]"),
    *('["\\x"]', '["\\u12g4"]', "[NaN]", "[" + "1" * 2000, "[" * 300, "]", ",", '{"a":}', "{1: 2}", '[tru"e"]'),
]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_json_ends_the_growth_and_nothing_else(text):
    growing = grown(text)
    assert (growing.is_broken, growing.is_done, growing.feed(" 1]")) == (True, False, False)


@pytest.mark.parametrize("text", ["{", '{"a', '{"a": [1', '"abc', "[", '{"a": "b\\'])
def test_what_is_cut_is_neither_broken_nor_done(text):
    growing = grown(text)
    assert (growing.is_broken, growing.is_done) == (False, False)


HALVES = [
    ('"\\ud83d\\ude00"', "\U0001f600"),
    ('"\\ud83dx"', "\ufffdx"),
    ('"\\ud83d\\n"', "\ufffd\n"),
    ('"\\ud83d\\u0041"', "\ufffdA"),
    ('"\\ud83d\\ud83d\\ude00"', "\ufffd\U0001f600"),
    ('"\\ud83d"', "\ufffd"),
    ('"\\ude00"', "\ufffd"),
]


@pytest.mark.parametrize(("text", "said"), HALVES)
@pytest.mark.parametrize("size", range(1, 8))
def test_halves_of_characters_are_joined_and_halves_alone_replaced(text, said, size):
    assert grown(text[start : start + size] for start in range(0, len(text), size)).value == said


def test_what_follows_the_value_is_ignored():
    growing = grown(['{"a": 1}', " and so on {"])
    assert (growing.value, growing.is_done, growing.is_broken) == ({"a": 1}, True, False)


def test_a_long_text_lags_behind_by_no_more_than_a_small_part_of_itself():
    growing = PartialJSON()
    growing.feed('["')
    for count in range(1, 5000):
        growing.feed("wxyz")
        assert 4 * count * (1 - 1 / 200) <= len(growing.value[0]) <= 4 * count


def one_long_text(count):
    growing = PartialJSON()
    growing.feed('{"text": "')
    for _ in range(count):
        growing.feed("word ")
    growing.feed('"}')
    assert growing.value == {"text": "word " * count}


def many_records(count):
    growing = PartialJSON()
    growing.feed("[")
    for number in range(count):
        for piece in ('{"na', f'me": "n{number}", "pag', 'es": 1', "2},"):
            growing.feed(piece)
    growing.feed("{}]")
    assert (growing.is_done, len(growing.value)) == (True, count + 1)


def a_number_in_digits(count):
    growing = PartialJSON()
    for _ in range(count):
        growing.feed("1")
    assert growing.is_broken


@pytest.mark.parametrize(("work", "size"), [(one_long_text, 8000), (many_records, 1500), (a_number_in_digits, 20_000)])
def test_sixteen_times_as_much_costs_at_most_twice_sixteen_times_as_much(work, size):
    assert ratio(work, size) < 32


@pytest.mark.parametrize("size", range(1, 9))
def test_a_text_is_heard_piece_by_piece(size):
    text = 'a "b" \\u \\ \t\u00e9\U0001f600\u2028 {"c": 1}'
    written = json.dumps(text) + ", more"
    heard, said, place = PartialText(), "", 1
    while not heard.is_closed:
        piece, end = heard.feed(written[: place + size], place)
        said, place = said + piece, end if heard.is_closed else place + size
    assert (said, heard.text(), written[place:]) == (text, text, ", more")
