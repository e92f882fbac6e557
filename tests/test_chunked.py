"""The chunked transfer coding, fed as the network cuts it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openagent.chunked import MAX_LINE_BYTES, Dechunker

PARTS = st.lists(st.binary(min_size=1, max_size=12) | st.sampled_from([b"\r\n", b"0\r\n\r\n", b"5\r\n"]), max_size=6)


def encoded(parts, extension=b"", trailer=b""):
    chunks = b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts)
    return chunks + b"0\r\n" + trailer + b"\r\n"


@given(PARTS, st.sampled_from([b"", b";name=value", b" "]), st.sampled_from([b"", b"X: y\r\n", b"X: y\r\nZ: 0\r\n"]))
def test_a_body_cut_at_any_place_gives_the_same_payload(parts, extension, trailer):
    body = encoded(parts, extension, trailer)
    for cut in range(len(body) + 1):
        dechunker = Dechunker()
        assert dechunker.feed(body[:cut]) + dechunker.feed(body[cut:]) == b"".join(parts)
        assert dechunker.is_over


@given(PARTS)
def test_a_body_that_comes_byte_by_byte_gives_the_same_payload(parts):
    body, dechunker = encoded(parts), Dechunker()
    assert b"".join(dechunker.feed(body[at : at + 1]) for at in range(len(body))) == b"".join(parts)
    assert dechunker.is_over


def test_the_payload_of_a_chunk_is_given_before_the_chunk_has_ended():
    dechunker = Dechunker()
    assert (dechunker.feed(b"5\r\nhel"), dechunker.feed(b"lo"), dechunker.is_over) == (b"hel", b"lo", False)


@pytest.mark.parametrize("line", [b"", b"-5", b"+5", b"1_0", b"xyz", b"data: {}", b"<html>"])
def test_what_is_no_size_is_an_error(line):
    with pytest.raises(ValueError):
        Dechunker().feed(line + b"\r\nhello\r\n")


def test_a_line_without_an_end_is_an_error_and_not_kept_for_ever():
    dechunker = Dechunker()
    with pytest.raises(ValueError, match=f"more than {MAX_LINE_BYTES} bytes"):
        for _ in range(MAX_LINE_BYTES):
            dechunker.feed(b"000")


def test_what_came_before_a_size_that_is_none_is_told_first():
    """Text, and a turn's end, must not be lost because what follows is broken."""
    dechunker = Dechunker()
    assert dechunker.feed(b"5\r\nhello\r\nzz\r\n") == b"hello"
    with pytest.raises(ValueError, match="zz"):
        dechunker.feed(b"")
