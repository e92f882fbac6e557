"""The client and the command, as a user has them, with the embedded model."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from openagent import Client, Message, TextBlock, Timeout

STORY = "Tell me a long story about a dragon."


@pytest.fixture
def client():
    with Client(provider="local") as client:
        yield client


def test_the_first_command_of_the_readme_answers_rightly():
    command = [sys.executable, "-m", "openagent", "ask", "--local", "What is the capital of France?"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "The capital of France is Paris.\n")


def test_a_chat_of_several_turns_keeps_its_history(client):
    first = client.ask("What is the capital of France?", max_tokens=20)
    before = client.usage.input_tokens
    second = client.ask("And what is it known for?", max_tokens=20)
    assert client.history == [
        Message.user("What is the capital of France?"),
        Message.assistant(first),
        Message.user("And what is it known for?"),
        Message.assistant(second),
    ]
    assert first == "The capital of France is Paris."
    assert client.usage.input_tokens > before + client.usage.output_tokens // 2


def test_a_limit_of_tokens_is_told(client):
    text = client.ask(STORY, max_tokens=5)
    assert (client.finish_reason, client.finish_reason.is_truncated, client.usage.output_tokens) == ("length", True, 5)
    assert client.history[-1] == Message.assistant(text)


def test_an_interrupt_from_a_thread_ends_a_blocked_read_at_once(client):
    stopped = []

    def stop():
        stopped.append(time.monotonic())
        client.interrupt()

    heard = ""
    for text in client.stream(STORY):
        if not heard:
            threading.Timer(0.1, stop).start()
        heard += text
    assert time.monotonic() - stopped[0] < 1  # whatever else this machine does; the answer would take many seconds
    assert (client.finish_reason, client.partial) == (None, [TextBlock(heard)])
    assert client.history == [Message.user(STORY)]
    assert client.ask("What is the capital of France?", max_tokens=20)


def test_ctrl_c_in_the_midst_of_an_answer_leaves_a_client_whose_next_send_works():
    program = f"""if True:
        from openagent import Client
        client = Client(provider="local")
        try:
            for text in client.stream({STORY!r}):
                print(text, flush=True)
        except KeyboardInterrupt:
            print("stopped", len(client.history), bool(client.partial), flush=True)
        client.clear_history()
        print(client.ask("What is the capital of France?"))
    """
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert out.splitlines()[-2:] == ["stopped 1 True", "The capital of France is Paris."]
    assert process.returncode == 0


def test_a_deadline_ends_an_answer_with_what_was_heard(client):
    client.ask("Hi.", max_tokens=1)  # the server is up
    with pytest.raises(Timeout, match="the deadline of 1 s has passed"):
        client.ask(STORY, deadline=1)
    assert client.history[-1] == Message.user(STORY)
