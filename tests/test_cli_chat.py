"""``openagent chat`` at a real terminal, and its commands through a pipe."""

import io
import os
import re
import select
import struct
import subprocess
import sys
import time

import pytest

from openagent.cli import main
from openagent.testing import answer, call, failure

pty = pytest.importorskip("pty", reason="no pseudo-terminals on this platform")
fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")

# The child takes the terminal as its own, so that Ctrl-C is the terminal's doing.
CHILD = (
    "import fcntl, sys, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0);"
    "[sys.modules.update({name: None}) for name in sys.argv[1].split(',') if name];"
    "from openagent.cli import main; sys.exit(main(sys.argv[2:]))"
)
PLAIN = "prompt_toolkit,rich"
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-_=>])|\r")


class Terminal:
    """A terminal with a chat in it; ``without`` names libraries that are not there."""

    def __init__(self, server, *arguments, without="", command="chat", stdin=None, **variables):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        command = [sys.executable, "-c", CHILD, without, command, "--base-url", server.url, "-m", "demo", *arguments]
        environment = os.environ | {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"} | variables
        self.process = subprocess.Popen(
            command,
            stdin=slave if stdin is None else stdin,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = self.raw = ""

    def wait_for(self, text):
        """Reads until the text has been seen, after what was waited for before."""
        until = time.monotonic() + 20
        while text not in self.seen:
            assert time.monotonic() < until, self.seen
            if select.select([self.master], [], [], 0.1)[0]:
                read = os.read(self.master, 65536).decode(errors="replace")
                self.raw += read
                self.seen += _ESCAPE.sub("", read)
        self.seen = self.seen.partition(text)[2]

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """The exit code, once the chat has ended."""
        try:
            return self.process.wait(timeout=10)
        finally:
            self.process.kill()
            os.close(self.master)


@pytest.fixture
def terminal():
    terminals = []

    def start(server, *arguments, **how):
        terminals.append(Terminal(server, *arguments, **how))
        return terminals[-1]

    yield start
    for started in terminals:
        started.process.kill()
        started.process.wait()


@pytest.mark.parametrize("without", ["", PLAIN])
def test_ctrl_c_stops_the_answer_and_ctrl_d_the_chat(serve, terminal, without):
    server = serve(answer("Once upon a time", hold=30, done=False, finish="unspecified"), "Fine, **thanks**.")
    screen = terminal(server, without=without)
    screen.wait_for("Ctrl-D leaves")
    screen.wait_for(">")
    screen.type("Tell me a story.\r")
    screen.wait_for("Once upon")
    screen.type("\x03")
    screen.wait_for("(stopped)")
    screen.wait_for(">")
    screen.type("\x03")
    screen.wait_for("(Ctrl-D or /exit leaves)")
    screen.wait_for(">")
    screen.type("How are you?\r")
    screen.wait_for("Fine, **thanks**." if without else "Fine, thanks.")
    screen.wait_for(">")
    screen.type("\x04")
    assert screen.end() == 0
    assert [message["content"] for message in server.requests[1].body["messages"]] == [
        "Tell me a story.",
        "How are you?",
    ]


def test_several_lines_are_one_prompt_at_a_terminal(serve, terminal):
    server = serve("a")
    screen = terminal(server)
    screen.wait_for(">")
    screen.type('"""one\r')
    screen.wait_for(".")
    screen.type('two"""\r')
    screen.wait_for(">")
    screen.type("/exit\r")
    assert screen.end() == 0
    assert server.requests[0].body["messages"][0]["content"] == "one\ntwo"


SILENT = answer(chunk_text=[], hold=30, done=False, finish="unspecified")
GONE = " " * 79  # what the line of waiting leaves on the screen


@pytest.mark.parametrize("without", ["", PLAIN])
def test_the_line_of_waiting_has_seconds_and_ctrl_c_takes_it_away(serve, terminal, without):
    screen = terminal(serve(SILENT, "Here I am."), without=without)
    screen.wait_for(">")
    screen.type("q\r")
    screen.wait_for("waiting for demo ... 0 s")
    screen.type("\x03")
    screen.wait_for(GONE + "(stopped)")
    screen.wait_for(">")
    screen.type("r\r")
    screen.wait_for("Here I am.")
    screen.wait_for(">")
    screen.type("\x04")
    assert screen.end() == 0


def test_the_line_of_waiting_goes_when_the_answer_comes(serve, terminal):
    screen = terminal(serve(answer(chunk_text=["Slowly."], delay=0.4)), "q", command="ask")
    screen.wait_for("waiting for demo ... 0 s")
    screen.wait_for(GONE + "Slowly.")
    assert screen.end() == 0


ASKED = answer("Let me see.", calls=[call("calculator", {"a": 6, "operator": "*", "b": 7})])


def test_a_call_is_run_when_the_user_says_yes(serve, terminal):
    server = serve(ASKED, "It is 42.")
    screen = terminal(server, "-T", "calculator", "--approve")
    screen.wait_for(">")
    screen.type("What is 6 * 7?\r")
    screen.wait_for("Let me see.")
    screen.wait_for("The model wants to call calculator(a=6, operator='*', b=7)")
    screen.wait_for("a reason why not: ")
    screen.type("y\r")
    screen.wait_for("-> 42")
    screen.wait_for("It is 42.")
    screen.wait_for(">")
    screen.type("\x04")
    assert screen.end() == 0
    assert server.requests[1].body["messages"][-1]["content"] == "42"


def test_the_question_comes_to_the_terminal_though_stdin_is_a_pipe(serve, terminal):
    server = serve(ASKED, "Then not.")
    screen = terminal(
        server, "What is 6 * 7?", "-T", "calculator", "--approve", command="ask", stdin=subprocess.DEVNULL
    )
    screen.wait_for("a reason why not: ")
    screen.type("do it in your head\r")
    screen.wait_for("Then not.")
    assert screen.end() == 0
    assert "do it in your head" in server.requests[1].body["messages"][-1]["content"]


def test_lines_that_were_typed_can_be_had_again(serve, terminal, tmp_path):
    server = serve("a", "b")
    for keys in ("Who are you?\r", "\x1b[A\r"):
        screen = terminal(server, XDG_DATA_HOME=str(tmp_path))
        screen.wait_for(">")
        screen.type(keys)
        screen.wait_for("a" if keys[0] == "W" else "b")
        screen.wait_for(">")
        screen.type("\x04")
        assert screen.end() == 0
    assert [asked(server, at) for at in (0, 1)] == [["Who are you?"]] * 2


def test_no_color_is_obeyed_and_windows_has_no_termios(serve, terminal):
    coloured = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7])(?:;[0-9;]*)?m")
    script = "```python\nfor x in range(3): print(x)\n```\n"
    seen = []
    for variables in ({"NO_COLOR": "1"}, {}):
        screen = terminal(serve(script), without="prompt_toolkit,termios", **variables)
        screen.wait_for(">")
        screen.type("q\r")
        screen.wait_for("print(x)")
        screen.wait_for(">")
        screen.type("/exit\r")
        assert screen.end() == 0
        seen.append(bool(coloured.search(screen.raw)))
    assert seen == [False, True]


@pytest.fixture
def chat(monkeypatch, capsys, tmp_path):
    """Runs a chat whose lines come out of a pipe: (exit code, stdout, stderr)."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(server, *lines, arguments=()):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        code = main(["chat", "--base-url", server.url, "-m", "m", "-o", "retry=null", *arguments])
        return (code, *capsys.readouterr())

    return run


def asked(server, at=-1):
    return [message["content"] for message in server.requests[at].body["messages"]]


def test_a_chat_remembers(chat, serve):
    server = serve("one", "two")
    assert chat(server, "1", "", "2") == (0, "one\ntwo\n", "")
    assert asked(server) == ["1", "one", "2"]


def test_lines_are_joined_by_a_backslash_or_quotes(chat, serve):
    server = serve("a", "b")
    chat(server, "one\\", "two", '"""', "three", "", "four", '"""')
    assert [asked(server, 0), asked(server)[-1]] == [["one\ntwo"], "three\n\nfour"]


def test_an_error_ends_the_answer_and_not_the_chat(chat, serve):
    server = serve(failure(401, "no"), "fine")
    assert chat(server, "q", "q") == (0, "fine\n", "error: API error 401: no (check api_key)\n")
    assert asked(server) == ["q"]


def test_model_and_system_prompt_can_be_changed(chat, serve):
    server = serve("a")
    code, _, err = chat(server, "/model n", "/model", "/system", "/system Be brief.", "q")
    assert (code, server.requests[0].body["model"], asked(server)) == (0, "n", ["Be brief.", "q"])
    assert err == "model: n\nmodel: n\nsystem prompt: none\nsystem prompt: Be brief.\n"


def test_the_last_prompt_can_be_asked_again_and_forgotten(chat, serve):
    server = serve("one", "uno", "two", "due")
    code, out, err = chat(server, "1", "/retry", "2", "/undo", "3")
    assert (code, out, err) == (0, "one\nuno\ntwo\ndue\n", "2 messages are left\n")
    assert asked(server) == ["1", "uno", "3"]


def test_a_conversation_is_kept_and_loaded(chat, serve):
    server = serve("one", "two", "three")
    _, _, err = chat(server, "1", "/save trip", "2", "/clear", "/load trip", "3", arguments=["-s", "Be brief."])
    assert err == "kept as trip\nthe conversation is empty\n4 messages\n"
    assert asked(server) == ["Be brief.", "1", "one", "2", "two", "3"]
    server.add("four")
    assert chat(server, "4", arguments=["--conversation", "trip"])[0] == 0
    assert asked(server) == ["Be brief.", "1", "one", "2", "two", "3", "three", "4"]


def test_a_file_goes_along_with_the_next_prompt(chat, serve, tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("hello")
    server = serve("a", "b")
    chat(server, f"/image {note}", "q", "r")
    assert asked(server, 0) == ["q\nnote.txt:\n\nhello"]
    assert asked(server)[-1] == "r"


def test_usage_and_tools_are_told(chat, serve):
    assert chat(serve("a"), "/usage", "q", "/usage", "/tools")[2] == (
        "no usage was told\n7 input tokens, 5 output tokens\nthere are no tools\n"
    )


def test_the_model_may_call_tools(chat, serve):
    server = serve(answer(calls=[call("calculator", {"a": 6, "operator": "*", "b": 7})]), "It is 42.")
    code, out, err = chat(server, "/tools", "What is 6 * 7?", arguments=["--tool", "calculator"])
    assert (code, out) == (0, "It is 42.\n")
    assert err.startswith("calculator: ")
    assert err.endswith("calculator(a=6, operator='*', b=7) -> 42\n")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/dance", "error: there is no command /dance: /help lists them\n"),
        ("/save", "error: /save needs a name\n"),
        ("/load", "error: /load needs a name\n"),
        ("/load nobody", "cannot read conversation"),
        ("/image", "error: /image needs a file or a URL\n"),
        ("/undo", "error: there is nothing to undo: the history has no user message\n"),
        ("/retry", "error: there is nothing to retry"),
        ("/help", "/undo    forget the last prompt and its answer\n"),
    ],
)
def test_a_command_tells_what_is_wrong(chat, serve, line, told):
    code, out, err = chat(serve(), line)
    assert (code, out) == (0, "")
    assert told in err


def test_an_answer_that_was_cut_is_told(chat, serve):
    assert chat(serve(answer("The", finish="length")), "q") == (
        0,
        "The\n",
        "(the answer was cut by the output limit)\n",
    )
