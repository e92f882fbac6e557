import json
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openagent import codec

PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PLAIN
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(PLAIN, inner), max_leaves=20)
ANY_TEXT = st.text(st.characters(), max_size=20) | st.text("\ud83d\ude00\udc00\ud800a", max_size=8)


@pytest.fixture(scope="module", params=["with msgspec", "before it is loaded"], autouse=True)
def _way(request):
    """All that is said here is true of both ways."""
    codec.quicken()
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "with msgspec":
            patch.delitem(sys.modules, "msgspec")
        yield


def nested(depth, leaf=1):
    value = leaf
    for _ in range(depth):
        value = [value]
    return value


@given(VALUES)
def test_what_is_dumped_is_parsed_to_the_same(value):
    text = codec.dump(value)
    assert codec.parse(text) == codec.parse(text.encode()) == value


@given(VALUES)
def test_the_text_is_compact_and_keeps_what_is_not_ascii(value):
    """design.md 7.8."""
    assert codec.dump(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "line\nnext\ttab"}', {"a": "line\nnext\ttab"}),
        ('{"a": "\x01"}', {"a": "\x01"}),
        ('{"a": -Infinity}', {"a": -math.inf}),
        ('"\\ud83d"', "\ud83d"),
        ("1e999", math.inf),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
    ],
)
def test_what_msgspec_refuses_and_servers_send_is_read(text, value):
    """design.md 7.5, arg-07. (R-162, S-27 lose to the cases, which count U+FFFD as text.)"""
    assert codec.parse(text) == value


def test_not_a_number_is_read():
    """design.md 7.5."""
    assert math.isnan(codec.parse("NaN"))


@pytest.mark.parametrize("text", ["", " ", "{", '{"a":1', "{'a': 1}", '{"a":1}}', '{"a":1} x', "tru", b"\xff", b""])
def test_what_is_no_json_is_a_value_error(text):
    """No closing bracket by guess (arg-06)."""
    with pytest.raises(ValueError):
        codec.parse(text)


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_parsing_raises_nothing_but_value_errors(text):
    try:
        codec.parse(text)
    except ValueError:
        pass


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000])
def test_json_nested_too_deeply_is_a_value_error(text):
    """design.md 6: a raw RecursionError never reaches the caller."""
    with pytest.raises(ValueError):
        codec.parse(text)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_there_is_one_limit_to_the_depth_of_json(opening):
    """design.md 6: what could be read can also be written, from deeper in the stack."""
    closing = "]" if opening == "[" else "}"

    def text(depth):
        return opening * depth + '"{[{["' + closing * depth

    for depth in (1, 10, codec.MAX_DEPTH - 1):
        assert codec.dump(codec.parse(text(depth).encode())) == text(depth)
    for depth in (codec.MAX_DEPTH, 500, *range(900, 1000), 5000):
        with pytest.raises(ValueError, match="nested too deeply"):
            codec.parse(text(depth))
    flat = codec.parse("[" + "[]," * 1000 + "{}]")
    assert flat == [*[[]] * 1000, {}]


@pytest.mark.parametrize("value", [nested(100_000), nested(100_000, math.nan), [math.nan, nested(100_000)]])
def test_a_value_nested_too_deeply_is_a_value_error(value):
    """design.md 6."""
    with pytest.raises(ValueError, match="nested too deeply"):
        codec.dump(value)


@pytest.mark.parametrize("value", [object(), {"a": {1}}, b"x", {(1, 2): 3}])
def test_what_json_cannot_say_is_a_type_error(value):
    with pytest.raises(TypeError):
        codec.dump(value)


def test_a_circle_is_a_value_error():
    circle = {}
    circle["self"] = circle
    with pytest.raises(ValueError):
        codec.dump(circle)
    with pytest.raises(ValueError):
        codec.dump([math.nan, circle])


def test_numbers_that_json_has_not_go_out_as_null():
    assert codec.dump({"a": [math.nan, math.inf, -math.inf, 1.5]}) == '{"a":[null,null,null,1.5]}'


def test_lone_halves_never_leave():
    """tool-07: the body can be encoded, and says U+FFFD."""
    assert codec.dump({"\udcb0": "\ud83d x \ud83d\ude00"}) == '{"\ufffd":"\ufffd x \U0001f600"}'


@given(ANY_TEXT)
def test_a_mended_text_can_be_encoded_and_is_changed_only_where_it_must(text):
    mended = codec.mend(text)
    mended.encode()
    assert codec.mend(mended) == mended
    try:
        text.encode()
    except UnicodeEncodeError:
        assert "\ufffd" in mended or len(mended) < len(text)
    else:
        assert mended == text


@given(ANY_TEXT)
def test_anything_dumped_can_be_encoded(text):
    codec.dump({text: [text]}).encode()


@given(st.recursive(LEAVES | ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=20))
def test_the_fast_way_to_dump_says_the_same(value):
    rows = [value, "and more"]
    assert codec.parse(b"[%s]" % codec.dump_rows(rows)) == codec.parse(codec.dump(rows))
