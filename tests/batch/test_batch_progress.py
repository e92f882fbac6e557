"""What is shown of a run: a bar or lines in a terminal, nothing elsewhere."""

import io
import sys

import pytest

from openagent import AgentOptions, map_prompts
from openagent.batch import Tally
from openagent.batch.progress import Progress, line


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(("is_terminal", "in_pipes"), [(True, False), (False, False), (False, True)])
def test_without_a_bar_there_is_a_line_every_ten_seconds_if_somebody_reads_it(monkeypatch, is_terminal, in_pipes):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    out, clock, tally = Terminal() if is_terminal else io.StringIO(), Clock(), Tally()
    progress = Progress(100, to=out, clock=clock, in_pipes=in_pipes)
    for _ in range(50):
        clock.now += 0.5
        tally.answered += 1
        progress.show(tally)
    progress.close()
    lines = [
        "openagent: 20 of 100, 0 failed, 2.0/s, about 40 s left",
        "openagent: 40 of 100, 0 failed, 2.0/s, about 30 s left",
    ]
    assert out.getvalue().splitlines() == (lines if is_terminal or in_pipes else [])


def test_a_number_that_nobody_knows_is_left_out():
    tally = Tally(answered=3)
    tally.failures["Timeout"] += 1
    assert line(tally, None, 2.0) == "4, 1 failed, 2.0/s"
    assert line(Tally(), 7, 0.0) == "0 of 7, 0 failed, 0.0/s"


def test_a_terminal_gets_a_bar_with_the_errors():
    out, tally = Terminal(), Tally()
    progress = Progress(2, to=out)
    tally.failures["Timeout"] += 1
    progress.show(tally)
    tally.answered += 1
    progress.show(tally)
    progress.close()
    assert "2/2" in out.getvalue()
    assert "errors=1" in out.getvalue()


def test_a_short_run_elsewhere_than_in_a_terminal_is_quiet(serve, capsys):
    options = AgentOptions(model="m", base_url=serve("yes").url)
    assert [result.answer for result in map_prompts(options, ["p"])] == ["yes"]
    assert capsys.readouterr() == ("", "")
