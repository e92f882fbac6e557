"""``openagent ask --tool``: the call on stderr, the answer on stdout."""

import io
import subprocess
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


FILE = """
from dataclasses import dataclass
from openagent import Tool, tool
import beside

@dataclass
class Counter:
    value: int = 0

    def count(self) -> int:
        "Count up."
        self.value += 1
        return self.value

class Needy:
    def __init__(self, what): ...
    def work(self) -> str: "Work."

counter = Counter()

def double(a: int) -> int:
    "Double a number."
    return beside.twice(a)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    (tmp_path / "beside.py").write_text("def twice(a): return 2 * a")
    return path


@pytest.fixture
def offered(serve, monkeypatch, capsys):
    """The names of the tools that are sent; or (exit code, stderr)."""

    def run(*arguments):
        server = serve("a")
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        code = main(["ask", "--base-url", server.url, "-m", "m", "q", *map(str, arguments)])
        err = capsys.readouterr().err
        return (code, err) if code else [tool["function"]["name"] for tool in server.requests[0].body["tools"]]

    return run


@pytest.mark.parametrize(("member", "names"), [("double", ["double"]), ("counter", ["count"]), ("Counter", ["count"])])
def test_a_tool_is_a_function_or_an_object_of_a_file(offered, file, member, names):
    assert offered("-T", f"{file}:{member}") == names
    assert offered("-T", f"{file}:{member}", "-T", "clock") == [*names, "clock"]


def test_all_functions_of_a_file_are_tools_unless_some_are_marked(offered, file):
    assert offered("--tools", file) == ["double"]
    file.rename(file.with_name("other.py"))
    other = file.with_name("other.py")
    other.write_text(FILE + "\n@tool\ndef half(a: float) -> float:\n    'Halve.'\n    return a / 2\n")
    assert offered("--tools", other) == ["half"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-T", "hammer"], "there is no tool 'hammer': take one of calculator, clock, or FILE.py:FUNCTION"),
        (["-T", "{}"], "or {}:FUNCTION, or --tools {}"),
        (["-T", "{}:duoble"], "there is no 'duoble' in {}: did you mean 'double'?"),
        (["-T", "{}:x"], "there is no 'x' in {}: there are: double"),
        (["-T", "{}:Needy"], "make an object of it in the file, and name that"),
        (["-T", "no.py:x"], "cannot read tools from 'no.py': there is no such file of Python"),
        (["--tools", "no.txt"], "cannot read tools from 'no.txt': there is no such file of Python"),
        (["--tools", "{}", "-T", "{}:double", "-T", "calculator"], "two tools are named 'double'"),
    ],
)
def test_a_wrong_file_or_name_is_one_line_with_the_next_step(offered, file, arguments, told):
    code, err = offered(*(argument.replace("{}", str(file)) for argument in arguments))
    assert (code, err.count("\n"), told.replace("{}", str(file)) in err) == (2, 1, True), err


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\nraise KeyError('a')", "cannot be run (line 2): KeyError: 'a'"),
        ("def f(:", "cannot be run (line 1)"),
        ("x = 1", "there are no tools in"),
    ],
)
def test_a_file_that_cannot_be_run_is_told_with_the_line(offered, tmp_path, source, told):
    path = tmp_path / f"bad{abs(hash(source))}.py"
    path.write_text(source)
    code, err = offered("--tools", path)
    assert (code, err.count("\n"), told in err) == (2, 1, True), err


def test_approval_without_a_terminal_is_refused_before_anything_is_sent(serve):
    server = serve()
    command = [sys.executable, "-m", "openagent", "ask", "--base-url", server.url, "-m", "m", "q", "-T", "clock"]
    done = subprocess.run([*command, "--approve"], input="", capture_output=True, text=True, start_new_session=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "openagent: error: --approve has nobody to ask: there is no terminal; leave it or the tools out\n"
    )


@pytest.fixture(autouse=True)
def _a_folder_of_its_own(monkeypatch, tmp_path):
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
