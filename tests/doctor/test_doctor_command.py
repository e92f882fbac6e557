"""``openagent doctor``: the table, the JSON, the exit codes."""

import json
import signal
import subprocess
import sys

import pytest
from patients import EMULATED

from openagent import AgentOptions
from openagent.cli import main
from openagent.doctor import Examination
from openagent.testing import failure, raw


def test_the_table_ends_with_the_line_to_copy(patient, capsys):
    server = patient()
    assert main(["doctor", server.url]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"✓ reachable           {server.url}"
    assert f"  Client(model='tiny', base_url='{server.url}')" in lines
    assert f"{len(server.requests)} requests in " in lines[-1]


def test_json_is_one_object_on_stdout_and_the_table_on_stderr(patient, capsys):
    server = patient(answers={"tool": failure(400, "tools are not supported"), "emulated": EMULATED})
    assert main(["doctor", server.url, "-m", "tiny", "--json"]) == 0
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    names = "answers base_url ending findings line model needs_key quirks requests seconds server settings"
    assert sorted(told) == names.split()
    assert {tuple(sorted(finding)) for finding in told["findings"]} == {
        ("details", "name", "settings", "text", "verdict")
    }
    assert (told["server"], told["settings"]["tool_mode"]) == ("vLLM 0.9.1", "emulated")
    assert "✓ reachable" in shown.err


def test_a_server_of_this_machine_needs_no_scheme(patient, capsys):
    server = patient()
    assert main(["doctor", f"127.0.0.1:{server.port}"]) == 0
    assert server.url in capsys.readouterr().out


def test_a_server_without_a_model_that_answers_is_exit_code_1(patient, capsys):
    broken = dict.fromkeys(("chat", "/responses", "/messages"), failure(404, "no"))
    assert main(["doctor", patient(answers=broken).url]) == 1
    assert "✗ chat                Chat Completions: not there (404)" in capsys.readouterr().out


def test_what_a_server_says_cannot_move_the_cursor(patient, capsys):
    main(["doctor", patient(answers={"image": failure(400, "a\x1b[2Jb")}).url])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["http://x", "--local"], ["--timeout", "0"], ["--all", "-o", "api_key=sk-1"], ["ftp://x"], ["box:80"]]
)
def test_wrong_usage_is_exit_code_2(arguments, capsys):
    assert main(["doctor", *arguments]) == 2
    assert capsys.readouterr().err.startswith("openagent: error: ")


def test_ctrl_c_ends_it_with_what_was_found(patient):
    server = patient(answers={"system": raw("", hold=30)})
    command = [sys.executable, "-m", "openagent", "doctor", server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8") as run:
        for line in run.stdout:
            if "anthropic" in line:
                break
        run.send_signal(signal.SIGINT)
        rest, err = run.communicate(timeout=10)
    assert (run.returncode, err) == (130, "")
    assert f"Client(model='tiny', base_url='{server.url}')" in rest
    assert rest.splitlines()[-1].endswith("stopped by Ctrl-C")


def test_a_long_line_is_broken_so_that_it_can_be_copied(patient, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    server = patient(answers={"tool": failure(400, "tools are not supported"), "emulated": EMULATED})
    main(["doctor", server.url])
    shown = capsys.readouterr().out
    code = shown[shown.index("Client(") : shown.index(")\n\n") + 1]
    assert eval(code, {"Client": dict}) == {"model": "tiny", "base_url": server.url, "tool_mode": "emulated"}


def test_the_embedded_model_is_examined():
    """Real llama.cpp, a real model of 98 MB; ``tests/soak/doctor.py`` asks it everything."""
    examination = Examination(AgentOptions(provider="local"))
    for finding in examination:
        if finding.name == "system":
            break
    report = examination.report()
    found = {finding.name: finding.verdict for finding in report.findings}
    working = ("reachable", "context", "chat", "streaming", "usage", "responses", "anthropic", "system")
    assert [found[name] for name in working] == ["yes"] * len(working)
    assert report.line == "Client(provider='local')"
    assert report.server.startswith("llama.cpp")
