"""Ctrl-C: it comes out as KeyboardInterrupt, the history is whole, and the client can be used again."""

import json
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from openagent import HookDecision, Hooks, Message, Tool, ToolUseBlock, showing
from openagent.adapters.openai_chat import OpenAIChat
from openagent.cli.chat import Chat
from openagent.cursor import Cursor
from openagent.testing import answer, call

Q = Message.user("q")
MAYBE = {"error": "interrupted while it ran: it may have had effects"}
NOT_RUN = {"error": "not run: the exchange was interrupted before it"}
CALLS = answer(calls=[call("look", id=id) for id in ("c1", "c2", "c3")])
TURN = Message.assistant(*(ToolUseBlock(id, "look", {}) for id in ("c1", "c2", "c3")))


def results(*contents):
    ids = ("c1", "c2", "c3")
    return [
        Message.tool_result(id, content, is_error=content != "seen") for id, content in zip(ids, contents, strict=True)
    ]


def raising(error, at):
    """A tool, or a hook, that raises when it is called for the so-manieth time."""
    count = []

    def run(_):
        count.append(1)
        if len(count) == at:
            raise error
        return "seen"

    return run


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_in_a_tool_comes_out_after_every_call_was_answered(serve, connect, error):
    """hist-01, life-01, promise 1: never told to the model as an ordinary error."""
    server = serve(CALLS, "fine")
    client = connect(server, tools=[Tool("look", "", {}, raising(error, 2))], auto_execute_tools=True)
    client.send("q")
    with pytest.raises(error):
        list(client.receive())
    assert (list(client.receive()), len(server.requests)) == ([], 1)
    assert client.history == [Q, TURN, *results("seen", MAYBE, NOT_RUN)]
    assert client.ask("go on") == "fine"


def allowing(hook):
    return lambda event: hook(event) and HookDecision.continue_()


@pytest.mark.parametrize(
    ("point", "contents"),
    [("pre_tool_use", ["seen", NOT_RUN, NOT_RUN]), ("post_tool_use", ["seen", "seen", NOT_RUN])],
)
def test_ctrl_c_in_a_hook_comes_out_after_every_call_was_answered(serve, connect, point, contents):
    """hist-01, life-08: a tool that has run keeps its result."""
    hooks = Hooks(**{point: [allowing(raising(KeyboardInterrupt, 2))]})
    look = Tool("look", "", {}, lambda _: "seen")
    client = connect(serve(CALLS, "fine"), tools=[look], hooks=hooks, auto_execute_tools=True)
    client.send("q")
    with pytest.raises(KeyboardInterrupt):
        list(client.receive())
    assert client.history == [Q, TURN, *results(*contents)]
    assert client.ask("go on") == "fine"


def test_leaving_the_loop_between_two_calls_answers_the_rest(serve, connect):
    """Promise 1, life-03: the caller walks away from events() and sends anew."""
    client = connect(serve(CALLS, "fine"), tools=[Tool("look", "", {}, lambda _: "seen")], auto_execute_tools=True)
    client.send("q")
    names = [type(next(client.events())).__name__ for _ in range(5)]
    assert names == ["CallAnnounced"] * 3 + ["CallStarted", "CallFinished"]
    assert client.history == [Q]
    assert client.ask("r") == "fine"
    assert client.history[:5] == [Q, TURN, *results("seen", NOT_RUN, NOT_RUN)]


class Hit(list):
    """A history that Ctrl-C hits just before, or just after, a turn enters it."""

    def __init__(self, when):
        self.when = when

    def extend(self, messages):
        when, self.when = self.when, None
        if when == "before":
            raise KeyboardInterrupt
        super().extend(messages)
        if when == "after":
            raise KeyboardInterrupt


@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_while_a_turn_is_being_kept_keeps_it_once(serve, connect, when):
    """Promise 1, issue 4.3: its calls have been run, and must not be run again."""
    client = connect(serve(CALLS, "fine"), tools=[Tool("look", "", {}, lambda _: "seen")], auto_execute_tools=True)
    client.history = Hit(when)
    with pytest.raises(KeyboardInterrupt):
        client.ask("q")
    assert client.history == [Q, TURN, *results("seen", "seen", "seen")]
    assert client.ask("go on") == "fine"


class Stopped(OpenAIChat):
    """An adapter that Ctrl-C hits while it lets go of the connection, the turn already heard."""

    def execute_round(self, final_response_instruction=None, include_tools=True):
        yield from super().execute_round(final_response_instruction, include_tools)
        raise KeyboardInterrupt


@pytest.mark.parametrize("is_auto", [False, True])
def test_ctrl_c_after_the_end_of_a_turn_keeps_it(serve, connect, is_auto):
    """design.md 7.6, promise 1: in manual mode its calls can still be answered."""
    client = connect(serve(CALLS, "fine"), protocol=Stopped, auto_execute_tools=is_auto)
    client.send("q")
    with pytest.raises(KeyboardInterrupt):
        list(client.receive())
    kept = results(NOT_RUN, NOT_RUN, NOT_RUN) if is_auto else []
    assert (client.history, client.finish_reason) == ([Q, TURN, *kept], "tool_calls")
    client.options = client.options.replace(protocol="openai-chat")
    assert client.ask("go on") == "fine"


class Tripwire:
    """Raises ``KeyboardInterrupt`` in a function, in this thread: when it is called, or after a call of its own."""

    def __init__(self, function, event="call", condition=lambda: True):
        self._code, self._event, self._condition = function.__code__, event, condition

    def __call__(self, frame, event, _):
        if event == self._event and frame.f_code is self._code and self._condition():
            raise KeyboardInterrupt  # which also takes the profiler away

    def __enter__(self):
        sys.setprofile(self)

    def __exit__(self, *_):
        sys.setprofile(None)


def chat(client):
    lengths = []

    def read(*_):
        lengths.append(len(client.history))
        if len(lengths) > 1:
            raise EOFError
        return "q"

    Chat(client, read).run()
    assert lengths == [0, 5]
    raise KeyboardInterrupt  # which the chat had


@pytest.mark.parametrize(
    ("use", "function"),
    [
        (lambda client: client.ask("q"), Cursor.last_text),
        (lambda client: client.show("q"), showing.show),
        (chat, Cursor.texts),
    ],
)
def test_ctrl_c_between_two_events_keeps_what_was_run(serve, connect, use, function):
    """Promise 1: nobody can read on, so the turn enters the history at once, with what there is of its results."""
    ran = []
    look = Tool("look", "", {}, lambda _: ran.append(1) or "seen")
    client = connect(serve(CALLS, "fine"), tools=[look], auto_execute_tools=True)
    with pytest.raises(KeyboardInterrupt), Tripwire(function, "c_return", lambda: len(ran) == 2):
        use(client)
    assert client.history == [Q, TURN, *results("seen", "seen", NOT_RUN)]
    assert client.ask("go on") == "fine"


def test_a_deadline_that_ctrl_c_keeps_from_being_called_off_cuts_no_later_request(serve, connect):
    """Promise 4: the thread that was to be cancelled may live on, but must not cut what is under way by then."""
    slow = answer(chunk_text=["a", "b", "c", "d", "e"], delay=0.2)
    client = connect(serve("fine", slow))
    with pytest.raises(KeyboardInterrupt), Tripwire(threading.Timer.cancel):
        client.ask("q", deadline=0.5)
    assert client.ask("r") == "abcde"


def test_a_request_takes_no_lock_that_ctrl_c_can_leave_taken(serve, connect):
    """Promise 4: a lock taken in Python code stays so if Ctrl-C comes before the ``with``; the next request hangs."""
    client = connect(serve("one", "two", "three"))
    client.ask("q")  # imports
    entered = []
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_name) if event == "call" else None)
    try:
        client.ask("q")
        client.close()
        client.ask("q")
    finally:
        sys.setprofile(None)
    assert "send" in entered
    assert "__enter__" in entered  # of our own, which take no lock
    assert {"acquire", "notify", "notify_all"}.isdisjoint(entered)


# A real signal to a real process

CHILD = """
import json, signal, sys, threading, time
from openagent import Client, Tool
from openagent.testing import ScriptedServer, answer, call, failure

def ready():
    print("ready", flush=True)

def slow(arguments):
    ready()
    time.sleep(30)

SCRIPTS = {
    "stream": [answer(chunk_text=["Hel", "lo"], finish="unspecified", done=False, hold=30)],
    "headers": [lambda request: (ready(), time.sleep(30))],
    "tool": [answer(calls=[call("slow", id="c1"), call("slow", id="c2")])],
    "pause": [lambda request: (ready(), failure(503, headers={"Retry-After": "60"}))[1]],
}
where = sys.argv[1]
signal.siginterrupt(signal.SIGINT, sys.argv[2] == "interrupts")
server = ScriptedServer(*SCRIPTS[where], "fine")
client = Client(model="m", base_url=server.url, tools=[Tool("slow", "", {}, slow)], auto_execute_tools=True)
caught = False
try:
    for count, text in enumerate(client.stream("q")):
        if count == 1:
            threading.Timer(0.05, ready).start()  # by then the next read is blocked
except KeyboardInterrupt:
    caught = True
said = {
    "caught": caught,
    "partial": [block.text for block in client.partial],
    "history": [message.to_dict() for message in client.history],
    "next": client.ask("go on"),
    "complaints": server.complaints,
}
print(json.dumps(said), flush=True)
"""

SLOW = Message.assistant(ToolUseBlock("c1", "slow", {}), ToolUseBlock("c2", "slow", {}))
KEPT = {
    "stream": [Q],
    "headers": [Q],
    "tool": [Q, SLOW, *results(MAYBE, NOT_RUN, "")[:2]],
    "pause": [Q],
}


@pytest.mark.parametrize("system_calls", ["interrupts", "restarts"])
@pytest.mark.parametrize("where", KEPT)
def test_a_real_ctrl_c_ends_what_is_going_on_at_once(where, system_calls):
    """Promises 1 and 4, hist-01, hist-09: a signal in mid-stream, before the headers, in a tool, before a retry.

    Also where a library such as polars has signals restart the system calls that they interrupt.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), where, system_calls], stdout=subprocess.PIPE, text=True
    )
    with child:
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGINT)
            said, _ = child.communicate(timeout=15)  # the thirty seconds were not waited for
        finally:
            child.kill()
    assert json.loads(said) == {
        "caught": True,
        "partial": ["Hello"] if where == "stream" else [],
        "history": [message.to_dict() for message in KEPT[where]],
        "next": "fine",
        "complaints": [],
    }


def test_ctrl_c_in_the_callers_own_loop_body_is_no_different(serve, connect):
    """hist-09: what was heard is in ``partial``, and nothing of it in the history."""
    client = connect(serve(answer(chunk_text=["Hel", "lo"], hold=30), "fine"))
    client.send("q")
    with pytest.raises(KeyboardInterrupt):
        for _ in client.receive():
            raise KeyboardInterrupt
    assert (client.partial[0].text[:3], client.history) == ("Hel", [Q])
    assert client.ask("r") == "fine"
    assert (client.partial, client.history) == ([], [Q, Message.user("r"), Message.assistant("fine")])
