"""Markdown that is still being written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openagent.cli.markdown import Blocks

TEXT = "# Head\n\nOne\ntwo\n\n```py\nx\n\ny\n```\nafter\n"
BLOCKS = ["# Head", "One\ntwo", "```py\nx\n\ny\n```"]


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_blocks_end_at_blank_lines_and_with_their_fence(size):
    blocks = Blocks()
    finished = [block for at in range(0, len(TEXT), size) for block in blocks.feed(TEXT[at : at + size])]
    assert (finished, blocks.rest) == (BLOCKS, "after\n")


def test_a_fence_ends_with_its_own_kind_only():
    blocks = Blocks()
    assert blocks.feed("````\n```\n\n~~~~\n````x\n") == []
    assert blocks.feed("`````\n") == ["````\n```\n\n~~~~\n````x\n`````"]


def test_the_tail_of_a_long_fence_keeps_its_head():
    blocks = Blocks()
    blocks.feed("```py\n1\n2\n3\n4")
    assert blocks.tail(2) == "```py\n3\n4"


@given(st.lists(st.text("`~ \nab"), max_size=20))
def test_no_line_is_lost(pieces):
    blocks = Blocks()
    finished = [block for piece in pieces for block in blocks.feed(piece)]
    lines = "\n".join([*finished, blocks.rest]).split("\n")
    assert [line for line in lines if line.strip()] == [line for line in "".join(pieces).split("\n") if line.strip()]
