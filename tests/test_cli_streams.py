"""The command line among pipes, in odd locales, without a library or a terminal; and its completion."""

import json
import os
import subprocess
import sys

import pytest

from openagent.cli import COMMANDS, main
from openagent.testing import answer

SAID = "Grüße, 日本語 \N{GRINNING FACE}"


def ask(server, *arguments, stdin=b"", **environment):
    command = [sys.executable, "-m", "openagent", "ask", "--base-url", server.url, "-m", "m", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, env=os.environ | environment, timeout=20)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_an_old_console_gets_what_it_can_show(serve, encoding):
    code, out, err = ask(serve(SAID), "q", PYTHONIOENCODING=encoding)
    assert (code, out, err) == (0, "Grüße, ??? ?\n".encode(encoding), b"")


@pytest.mark.parametrize(("form", "read"), [("--json", lambda lines: lines[0]["text"]), ("--events", None)])
def test_json_says_everything_in_any_encoding(serve, form, read):
    code, out, err = ask(serve(answer(SAID, chunk_text=[SAID])), "q", form, PYTHONIOENCODING="cp1252")
    lines = [json.loads(line) for line in out.decode("ascii").splitlines()]
    assert (code, err, read(lines) if read else lines[0]["text"]) == (0, b"", SAID)


def test_the_locale_of_1970_works(serve):
    server = serve(SAID)
    code, out, err = ask(server, "q", stdin="café 日本".encode(), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (code, err) == (0, b"")
    assert out.endswith(b"\n")
    assert server.requests[0].body["messages"][0]["content"] == "café 日本\n\nq"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "utf-8-sig", "utf-16"])
def test_what_is_piped_in_may_be_of_any_encoding(serve, encoding):
    server = serve("a")
    assert ask(server, b"na\xefve", stdin="Grüße\r\nund so".encode(encoding)) == (0, b"a\n", b"")
    assert server.requests[0].body["messages"][0]["content"] == "Grüße\nund so\n\nnaïve"


def test_what_is_no_text_is_refused_with_the_way_out(serve):
    code, out, err = ask(serve(), "q", stdin=b"\0\1\2")
    assert (code, out, err) == (2, b"", b"openagent: error: stdin is no text: give an image with -a -\n")


def test_a_chat_reads_lines_of_any_encoding(serve):
    server = serve("a")
    command = [sys.executable, "-m", "openagent", "chat", "--base-url", server.url, "-m", "m"]
    done = subprocess.run(command, input="Grüße\r\n".encode("latin-1"), capture_output=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"a\n", b"")
    assert server.requests[0].body["messages"][0]["content"] == "Grüße"


def test_version_and_missing_command(capsys):
    assert (main(["--version"]), capsys.readouterr().out.startswith("openagent ")) == (0, True)
    with pytest.raises(SystemExit) as caught:
        main([])
    assert (caught.value.code, "openagent --help lists them" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help(capsys, name):
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert (caught.value.code, f"usage: openagent {name}" in capsys.readouterr().out) == (0, True)


@pytest.fixture(scope="module")
def bash():
    script = subprocess.run([sys.executable, "-m", "openagent", "completion", "bash"], capture_output=True, text=True)

    def complete(*words):
        """What Tab offers for the last of these words."""
        asked = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _openagent; printf "%s\n" "${COMPREPLY[@]}"'
        code = f"{script.stdout}\n{asked}"
        done = subprocess.run(["bash", "-c", code, "_", *words], capture_output=True, text=True)
        assert done.stderr == ""
        return done.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["openagent", "ch"], ["chat"]),
        (["openagent", "ask", "--to"], ["--tool", "--tools"]),
        (["openagent", "ask", "--provider", "ol"], ["ollama"]),
        (["openagent", "ask", "-m", ""], []),
        (["openagent", "batch", "--format", ""], ["jsonl", "csv", "txt"]),
        (["openagent", "key", "r"], ["remove"]),
        (["openagent", "completion", "z"], ["zsh"]),
    ],
)
def test_bash_completes_commands_options_and_values(bash, words, offered):
    assert bash(*words) == offered


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("zsh", "'chat:talk in the terminal; Ctrl-C stops an answer, Ctrl-D leaves'"),
        ("fish", "complete -c openagent -n '__fish_seen_subcommand_from batch' -l format -r -f -a 'jsonl csv txt'"),
    ],
)
def test_other_shells_get_a_script_of_their_own(capsys, shell, line):
    assert main(["completion", shell]) == 0
    assert line in capsys.readouterr().out
