"""``openagent ask --tool``: the call on stderr, the answer on stdout."""

import io
import sys

import pytest

from openagent import ToolError
from openagent.cli import main
from openagent.cli.demo_tools import DEMO_TOOLS
from openagent.testing import answer, call


@pytest.mark.parametrize(
    ("a", "operator", "b", "value"),
    [(1723, "+", 2581, 4304), (1.0, "/", 4.0, 0.25), (12, "*", 12, 144), (1, "-", 3, -2)],
)
def test_the_calculator_calculates(a, operator, b, value):
    assert DEMO_TOOLS["calculator"].execute({"a": a, "operator": operator, "b": b}) == value


def test_what_cannot_be_calculated_is_told():
    for a, operator, b in ((1, "/", 0), (1e308, "*", 1e308)):
        with pytest.raises(ToolError):
            DEMO_TOOLS["calculator"].execute({"a": a, "operator": operator, "b": b})


def test_the_clock_tells_the_time_of_a_zone():
    assert len(DEMO_TOOLS["clock"].execute({}).split()) == 5
    with pytest.raises(ToolError, match="no time zone 'Mars'"):
        DEMO_TOOLS["clock"].execute({"timezone": "Mars"})


def test_the_call_is_told_on_stderr(serve, monkeypatch, capsys):
    asked = answer(calls=[call("calculator", {"a": 1723, "operator": "+", "b": 2581})])
    server = serve(asked, "It is 4304.")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    code = main(["ask", "--base-url", server.url, "-m", "m", "--tool", "calculator", "What is 1723 plus 2581?"])
    shown = capsys.readouterr()
    told = "calculator(a=1723, operator='+', b=2581) -> 4304\n"
    assert (code, shown.out) == (0, "It is 4304.\n")
    assert told in shown.err


def test_an_unknown_tool_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["ask", "--tool", "hammer", "q"])
    assert (caught.value.code, "invalid choice: 'hammer'" in capsys.readouterr().err) == (2, True)


@pytest.fixture(autouse=True)
def _a_folder_of_its_own(monkeypatch, tmp_path):
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
