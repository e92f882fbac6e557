"""``openagent ask``: what goes where, and how it ends."""

import io
import os
import signal
import subprocess
import sys

import pytest

from openagent.cli import main
from openagent.testing import answer, failure

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def ask(monkeypatch, capsys):
    """Runs ``openagent ask`` in this process: (exit code, stdout, stderr)."""

    def run(server, *arguments, stdin=None):
        monkeypatch.setattr(sys, "stdin", Terminal() if stdin is None else io.StringIO(stdin))
        address = ["--base-url", server.url, "--model", "m"] if server else []
        code = main(["ask", *address, *arguments])
        return (code, *capsys.readouterr())

    return run


def child(server, *arguments, **more):
    """The same in a process of its own."""
    command = [sys.executable, "-m", "openagent", "ask", "--base-url", server.url, "-m", "m", *arguments]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **(streams | more))


def test_the_answer_goes_to_stdout_and_ends_with_a_line_end(ask, serve):
    server = serve("The capital of France is Paris.")
    assert ask(server, "What is the capital of France?") == (0, "The capital of France is Paris.\n", "")
    assert server.requests[0].body["messages"] == [{"role": "user", "content": "What is the capital of France?"}]


def test_an_answer_that_ends_with_a_line_end_gets_no_second_one(ask, serve):
    assert ask(serve("Two\nlines.\n"), "q") == (0, "Two\nlines.\n", "")


def test_what_is_piped_in_goes_before_the_question(ask, serve):
    server = serve("Short.", "Shorter.")
    assert ask(server, "Summarise.", stdin="A long text.\n")[0] == 0
    assert ask(server, stdin="What is it?\n")[0] == 0
    assert [request.body["messages"][0]["content"] for request in server.requests] == [
        "A long text.\n\nSummarise.",
        "What is it?",
    ]


def test_system_prompt_and_images_are_sent(ask, serve, tmp_path):
    server = serve("Red.")
    url = f"data:image/png;base64,{PIXEL}"
    assert ask(server, "Which colour?", "--system", "Be brief.", "--image", url) == (0, "Red.\n", "")
    assert server.requests[0].body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Which colour?"},
                {"type": "image_url", "image_url": {"url": url, "detail": "auto"}},
            ],
        },
    ]


def test_the_protocol_can_be_chosen(ask, serve):
    server = serve("Hello.")
    assert ask(server, "Hi", "--protocol", "anthropic") == (0, "Hello.\n", "")
    assert server.requests[0].path == "/v1/messages"


def test_an_answer_that_was_cut_is_told_on_stderr_and_by_an_exit_code_of_its_own(ask, serve):
    server = serve(answer("The capital of", finish="length"))
    assert ask(server, "q") == (3, "The capital of\n", "openagent: the answer was cut by the output limit\n")


def test_what_the_server_refuses_is_one_line_on_stderr_and_exit_code_1(ask, serve):
    code, out, err = ask(serve(failure(401, "bad key")), "q")
    assert (code, out, err) == (1, "", "openagent: error: API error 401: bad key (check api_key)\n")


def test_a_missing_server_is_told_with_the_next_step(ask):
    code, out, err = ask(None, "--base-url", "http://127.0.0.1:9/v1", "-m", "m", "q")
    assert (code, out) == (1, "")
    assert err == ("openagent: error: no server at http://127.0.0.1:9/v1: is it running, and is the port right?\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["q", "--provider", "nobody"], "provider 'nobody' is not known"),
        (["q", "-m", "m", "--base-url", "ftp://x"], "base_url 'ftp://x' must start with http://"),
        (["q", "-m", "m", "--protocol", "smtp"], "protocol 'smtp' must be one of"),
        (["q", "-m", "m", "--image", "no-such-file.png"], "cannot read image file 'no-such-file.png'"),
        (["-m", "m"], "there is no question"),
    ],
)
def test_a_wrong_setting_is_exit_code_2(ask, arguments, told):
    code, out, err = ask(None, *arguments)
    assert (code, out) == (2, "")
    assert told in err


def test_wrong_usage_is_exit_code_2(ask):
    with pytest.raises(SystemExit) as caught:
        ask(None, "q", "--local", "--provider", "ollama")
    assert caught.value.code == 2


def test_ctrl_c_ends_with_130_and_without_a_traceback(serve):
    server = serve(answer("Once upon a time", hold=30, done=False, finish="unspecified"))
    with child(server, "Tell me a story.") as process:
        assert process.stdout.read(4) == "Once"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert (process.returncode, err) == (130, "\n")


def test_a_closed_pipe_is_quiet(serve):
    server = serve(answer("word " * 20_000))
    with child(server, "Talk.") as process:
        assert process.stdout.read(5) == "word "
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=10)) == ("", 0)


def test_a_terminal_without_unicode_gets_the_answer_all_the_same(serve):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    with child(serve("Grüße \N{GRINNING FACE}"), "q", env=environment) as process:
        assert process.communicate(timeout=20) == ("Gr??e ?\n", "")
        assert process.returncode == 0
