"""The cursor: whoever reads on, and however the text came, each piece is told once and in order."""

from types import SimpleNamespace

from hypothesis import example, given
from hypothesis import strategies as st

from openagent.cursor import Cursor
from openagent.events import TextBurst, TextDelta
from openagent.interrupt import Interrupt


def cursor_over(bursts):
    """A cursor at the start of an exchange in manual mode whose text comes in these bursts."""
    cursor = Cursor(Interrupt())
    told = [TextDelta(*burst) if len(burst) == 1 else TextBurst(burst) for burst in bursts]
    cursor.start(SimpleNamespace(run=lambda: (event for event in told), is_auto=False))
    return cursor


@example([["a", "b"], ["c", "d", "e"]], [0, 0, 1, 0])
@given(st.lists(st.lists(st.sampled_from("xyz"), min_size=1, max_size=4), max_size=5), st.lists(st.integers(0, 2)))
def test_readers_that_take_turns_tell_each_piece_once_and_in_order(bursts, turns):
    cursor = cursor_over(bursts)
    readers = [cursor.texts(), (delta.text for delta in cursor.events()), (block.text for block in cursor.blocks())]
    told = [next(readers[turn], "") for turn in turns]
    assert "".join(told) + "".join(readers[0]) + "".join(cursor.texts()) == "".join(map("".join, bursts))
