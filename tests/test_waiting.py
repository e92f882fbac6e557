"""The line that is shown while people wait."""

import io
import sys
import threading

import pytest

from openagent.waiting import Line, hidden, shown, until_first, waiting


class Thing:
    def __init__(self):
        self.heard = []

    def pause(self):
        self.heard.append("pause")

    def resume(self):
        self.heard.append("resume")


@pytest.fixture
def drawn():
    """What a line has drawn; ``drawn.event`` when there is something."""

    class Drawn(list):
        event = threading.Event()

        def __call__(self, text):
            self.append(text)
            self.event.set()

    return Drawn()


def test_the_line_tells_what_is_waited_for_and_leaves_nothing(drawn):
    line = Line("waiting for m", drawn)
    assert drawn.event.wait(5)
    line.stop()
    line.stop()
    assert (drawn[0].endswith(" waiting for m ... 0 s"), drawn[-1], drawn.count("")) == (True, "", 1)


def test_what_is_over_at_once_shows_nothing(drawn):
    Line("x", drawn).stop()
    assert drawn == []


def test_the_line_makes_room_and_comes_back(drawn):
    line = Line("x", drawn, every=0.01)
    assert drawn.event.wait(5)
    with shown(line), hidden():
        assert drawn[-1] == ""
        count = len(drawn)
        drawn.event.clear()
        assert not drawn.event.wait(0.05)
        assert len(drawn) == count
    assert drawn.event.wait(5)
    line.stop()
    assert drawn[-1] == ""


def test_what_is_shown_makes_room_for_another_line():
    thing = Thing()
    with shown(thing):
        with waiting("x"):
            assert thing.heard == ["pause"]
        assert thing.heard == ["pause", "resume"]
        with pytest.raises(KeyboardInterrupt), waiting("x"):
            raise KeyboardInterrupt
    with hidden():
        pass
    assert thing.heard == ["pause", "resume"] * 2


def test_the_line_goes_with_the_first_item(drawn):
    line = Line("x", drawn)
    assert drawn.event.wait(5)
    items = until_first("ab", line)
    assert (next(items), drawn[-1]) == ("a", "")
    assert list(items) == ["b"]


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nothing_is_shown_where_nobody_sees_it(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    threads = threading.active_count()
    with waiting("x"):
        assert threading.active_count() == threads
    assert stream is None or stream.getvalue() == ""
