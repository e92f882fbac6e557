"""``openagent batch``: what is written, going on after a stop, what is refused."""

import io
import json
import re
import signal
import subprocess
import sys
import time

import pytest

from openagent.cli import main
from openagent.cli.shapes import shape
from openagent.testing import failure


def asked(request):
    return request.body["messages"][-1]["content"]


def echo(request):
    return f"re: {asked(request)}"


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answers(path):
    return {record["key"]: record["answer"] for record in records(path)}


@pytest.fixture
def batch(tmp_path, monkeypatch, capsys):
    """Runs ``openagent batch`` in this process and folder: (exit code, stderr with its times masked)."""
    monkeypatch.chdir(tmp_path)

    def run(server, *arguments):
        address = ["--base-url", server.url, "-m", "m", "--option", "retry=null"] if server else ["-m", "m"]
        code = main(["batch", *arguments, *address])
        out, err = capsys.readouterr()
        assert out == ""
        return code, re.sub(r"[0-9.]+ s, [0-9.]+/s", "TIME", err)

    return run


@pytest.fixture
def put(tmp_path):
    def write(name, *lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


def test_each_row_of_a_table_gets_its_line(batch, put, serve, tmp_path):
    put("in.csv", "id,text", "a,Grüße", 'b,"two\nlines"')
    code, err = batch(serve(echo, repeat=True), "in.csv", "-o", "out.jsonl", "-t", "Say {text}", "--key", "id")
    assert (code, err) == (0, "openagent: 2 answered; 0 failed; 24 tokens in 2 requests; TIME\n")
    lines = {record["key"]: record for record in records(tmp_path / "out.jsonl")}
    assert lines["a"] | {"fingerprint": "", "seconds": 0} == {
        "key": "a",
        "fingerprint": "",
        "answer": "re: Say Grüße",
        "finish_reason": "stop",
        "input_tokens": 7,
        "output_tokens": 5,
        "seconds": 0,
        "error": None,
    }
    assert lines["b"]["answer"] == "re: Say two\nlines"


def test_lines_of_json_and_lines_of_text_are_read(batch, put, serve, tmp_path, monkeypatch):
    server = serve(echo, repeat=True)
    put("in.jsonl", '"one"', "", '{"prompt": "two"}', '{"messages": [{"role": "user", "content": "three"}]}')
    put("in.txt", "four", "five")
    monkeypatch.setattr(sys, "stdin", io.StringIO('"six"\n"seven"\n'))
    for source in ("in.jsonl", "in.txt", "-"):
        assert batch(server, source, "-o", f"out{source}", "-q") == (0, "")
    assert answers(tmp_path / "outin.jsonl") == {"1": "re: one", "2": "re: two", "3": "re: three"}
    assert answers(tmp_path / "outin.txt") == {"1": "re: four", "2": "re: five"}
    assert answers(tmp_path / "out-") == {"1": "re: six", "2": "re: seven"}


def test_started_again_it_asks_only_for_what_is_missing_or_with_retry_errors_failed(batch, put, serve, tmp_path):
    moods = {"bad": [failure(400, "no")] * 1}

    def moody(request):
        return moods.get(asked(request), []).pop() if moods.get(asked(request)) else echo(request)

    server = serve(moody, repeat=True)
    put("in.txt", "good", "bad", "new")
    command = ("in.txt", "-o", "out.jsonl", "-w", "1")
    assert batch(server, *command, "--budget-requests", "2") == (
        1,
        "openagent: 1 answered; 1 failed (APIError 400 1x); 12 tokens in 2 requests; TIME; "
        "the budget is spent: the rest was not sent\n",
    )
    assert batch(server, *command) == (
        1,
        "openagent: 1 answered; 0 failed; 12 tokens in 1 requests; TIME; 2 were there before, of which 1 failed "
        "(--retry-errors)\n",
    )
    assert answers(tmp_path / "out.jsonl") == {"1": "re: good", "2": None, "3": "re: new"}
    assert batch(server, *command, "--retry-errors") == (
        0,
        "openagent: 1 answered; 0 failed; 12 tokens in 1 requests; TIME; 2 were there before\n",
    )
    assert [record["key"] for record in records(tmp_path / "out.jsonl")] == ["1", "3", "2"]
    assert [asked(request) for request in server.requests] == ["good", "bad", "new", "bad"]


@pytest.mark.parametrize(
    ("lines", "arguments", "told"),
    [
        (["one", "other"], [], "row 2 (key '2') has changed since it was answered"),
        (["one"], [], "the output has 1 keys that the input lacks, such as '2'"),
        (["one", "two", "three"], ["-s", "Be brief."], "row 1 (key '1') has changed since it was answered, or"),
        (["one", "two", "three"], ["--schema", "name"], "or the model, system prompt or schema has"),
    ],
)
def test_input_that_changed_under_a_run_is_noticed_before_anything_is_sent(batch, put, serve, lines, arguments, told):
    server = serve("1", "2")
    put("in.txt", "one", "two")
    assert batch(server, "in.txt", "-o", "out.jsonl")[0] == 0
    put("in.txt", *lines)
    code, err = batch(server, "in.txt", "-o", "out.jsonl", *arguments)
    assert code == 2
    assert told in err


def test_with_a_schema_each_answer_is_an_object_that_fits_or_a_failure(batch, put, serve, tmp_path):
    said = {"owl": ['{"name": "owl", "legs": "two"}', '{"name": "owl", "legs": 2}'], "fog": ["It has none."] * 3}
    server = serve(lambda request: said["owl" if "owl" in asked(request) else "fog"].pop(0), repeat=True)
    put("in.txt", "owl", "fog")
    code, err = batch(server, "in.txt", "-o", "out.jsonl", "--schema", "name, legs int")
    assert (code, "1 answered; 1 failed (InvalidResponseError 1x)" in err) == (1, True)
    assert answers(tmp_path / "out.jsonl") == {"1": {"name": "owl", "legs": 2}, "2": None}
    assert server.requests[0].body["response_format"]["json_schema"]["schema"] == shape("name, legs int")


@pytest.mark.parametrize(
    ("name", "lines", "arguments", "told"),
    [
        ("in.csv", ["a,b", "1,2"], [], "row 1: prompt {'a': '1', 'b': '2'} is a row: say how to ask"),
        ("in.csv", ["a,b", "1"], ["-t", "{a}"], "'in.csv', line 2 has not as many cells as there are columns"),
        ("in.csv", ["a", "1"], ["-t", "{b}"], "row 1: template: there is no 'b' among a"),
        ("in.csv", ["a", "1"], ["-t", "{a}", "--key", "id"], "row 1 has no column 'id'"),
        ("in.csv", ["a", "1", "1"], ["-t", "{a}", "--key", "a"], "row 2: there was a row with the key '1' before"),
        ("in.jsonl", ['"a"', "{"], [], "'in.jsonl', line 2 is no JSON: '{'"),
        ("in.jsonl", ["7"], [], "row 1: prompt 7 must be a text, messages, or a dict"),
        ("other", [], [], "cannot read 'in.txt': No such file"),
        ("in.txt", ["a"], ["--rps", "0"], "requests_per_second 0.0 must be a number above 0"),
        ("in.txt", ["a"], ["-w", "0"], "workers 0 must be a whole number"),
        ("in.txt", ["a"], ["--schema", "age year"], "field 'age' has the type 'year'"),
    ],
)
def test_what_cannot_be_asked_is_exit_code_2_and_nothing_is_sent(batch, put, serve, name, lines, arguments, told):
    put(name, *lines)
    source = name if name.startswith("in.") else "in.txt"
    code, err = batch(serve(), source, "-o", "out.jsonl", "-q", *arguments)
    assert code == 2
    assert told in err


def test_the_output_is_never_the_input_and_never_another_file(batch, put, serve, tmp_path):
    put("in.txt", "my novel")
    assert batch(serve(), "in.txt", "-o", "in.txt")[0] == 2
    put("other.txt", "my novel")
    assert batch(serve(), "in.txt", "-o", "other.txt")[0] == 2
    assert (tmp_path / "other.txt").read_text() == "my novel\n"


def child(server, folder, *arguments):
    command = [sys.executable, "-m", "openagent", "batch", "in.txt", "-o", "out.jsonl", "-w", "4"]
    where = ["--base-url", server.url, "-m", "m", *arguments]
    return subprocess.Popen([*command, *where], cwd=folder, stderr=subprocess.PIPE, text=True)


def slow(request):
    time.sleep(0.01)
    return echo(request)


def test_after_kill_9_the_union_is_complete_and_no_line_stands_twice(put, serve, tmp_path):
    server = serve(slow, repeat=True)
    put("in.txt", *(f"p{number}" for number in range(200)))
    for heard in (40, 90):
        with child(server, tmp_path) as process:
            server.wait_for_requests(heard, timeout=20)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=10)
            assert process.returncode == -signal.SIGKILL
    with child(server, tmp_path) as process:
        _, err = process.communicate(timeout=30)
    assert (process.returncode, "were there before" in err) == (0, True)
    keys = [record["key"] for record in records(tmp_path / "out.jsonl")]
    assert sorted(keys, key=int) == [str(number) for number in range(1, 201)]
    assert answers(tmp_path / "out.jsonl") == {str(n + 1): f"re: p{n}" for n in range(200)}
    assert len(server.requests) <= 200 + 2 * 40  # what was on its way, and a window of results


def test_two_runs_on_one_file_refuse(put, serve, tmp_path):
    server = serve(slow, repeat=True)
    put("in.txt", *(f"p{number}" for number in range(300)))
    with child(server, tmp_path) as first:
        server.wait_for_requests(10, timeout=20)
        with child(server, tmp_path) as second:
            _, err = second.communicate(timeout=20)
        first.send_signal(signal.SIGINT)
        _, told = first.communicate(timeout=20)
    assert (second.returncode, err) == (
        2,
        "openagent: error: 'out.jsonl' is in use by another run: wait for it, or choose another file\n",
    )
    assert first.returncode == 130
    assert re.match(r"openagent: \d+ answered; 0 failed; ", told)
