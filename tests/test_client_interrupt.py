"""interrupt() from another thread, in every phase: it acts at once, and the client is usable right after."""

import threading
import time
from types import SimpleNamespace

import pytest

from openagent import (
    HookDecision,
    Hooks,
    Message,
    RetryConfig,
    RoundFinished,
    RunFinished,
    TextBlock,
    TextDelta,
    Tool,
    ToolUseBlock,
    codec,
)
from openagent.testing import answer, call, failure

Q = Message.user("q")
CANCELLED = {"error": "Tool execution cancelled"}
ENDLESS = answer(chunk_text=["Hel", "lo"], finish="unspecified", done=False, hold=30)
TWO_CALLS = answer(calls=[call("look", id="c1"), call("look", id="c2")])
TURN = Message.assistant(ToolUseBlock("c1", "look", {}), ToolUseBlock("c2", "look", {}))
CEILING = 3  # seconds; whatever would have been waited for takes ten or more


def gave(id, content="seen"):
    return Message.tool_result(id, content, is_error=content == CANCELLED)


@pytest.fixture
def interrupt_when():
    """Interrupts a client from another thread as soon as ``wait`` returns."""
    threads = []

    def start(client, wait):
        def run():
            wait()
            time.sleep(0.02)  # so that the reader is surely blocked
            client.interrupt()

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


@pytest.fixture
def late():
    """A script item that keeps the caller waiting for the response headers."""
    released = threading.Event()
    yield lambda request: (released.wait(30), "too late")[1]
    released.set()


def heard(client):
    return [block.text if isinstance(block, TextBlock) else block for block in client.receive()]


# While sending


def test_a_blocked_connect_ends_at_once(serve, connect, interrupt_when):
    """Promise 4: send returns with nothing to receive."""
    client = connect(serve(accept=False))
    started = time.monotonic()
    interrupt_when(client, lambda: None)
    client.send("q")
    assert time.monotonic() - started < CEILING
    assert (heard(client), client.history, client.finish_reason) == ([], [Q], None)


def test_waiting_for_the_headers_ends_at_once(serve, connect, interrupt_when, late):
    """Promise 4; the same prompt again is not asked twice (life-06)."""
    server = serve(late, "Hello")
    client = connect(server)
    started = time.monotonic()
    interrupt_when(client, lambda: server.wait_for_requests(1))
    client.send("q")
    assert time.monotonic() - started < CEILING
    assert list(client.events()) == [RunFinished("interrupted", None, None)]
    assert (client.ask("q"), client.history) == ("Hello", [Q, Message.assistant("Hello")])


def test_waiting_for_another_try_ends_at_once(serve, connect, interrupt_when):
    """Promise 4: within a pause between retries."""
    server = serve(failure(429, headers={"Retry-After": "60"}), "Hello")
    client = connect(server, retry=RetryConfig())
    started = time.monotonic()
    interrupt_when(client, lambda: server.wait_for_requests(1))
    assert client.ask("q") == ""
    assert time.monotonic() - started < CEILING
    assert client.ask("r") == "Hello"


def test_an_interrupt_in_a_prompt_hook_stops_the_send(serve, connect):
    """R-70: the flag is cleared when the send begins, not later."""
    server = serve("Hello")
    client = connect(server, hooks=Hooks().add_user_prompt_submit(lambda event: client.interrupt()))
    client.send("q")
    assert (heard(client), server.requests, client.history) == ([], [], [Q])
    client.options = client.options.replace(hooks=None)
    assert client.ask("q") == "Hello"


# While reading


@pytest.mark.parametrize("is_auto", [False, True])
def test_a_blocked_read_ends_at_once_and_the_partial_turn_is_not_kept(serve, connect, interrupt_when, is_auto):
    """Promise 4, T-3, R-72, hist-09: ``partial`` has what was heard."""
    client = connect(serve(ENDLESS, "fine"), auto_execute_tools=is_auto)
    reading = threading.Event()
    started = time.monotonic()
    interrupt_when(client, reading.wait)
    pieces = []
    for text in client.stream("q"):
        pieces.append(text)
        if pieces == ["Hel", "lo"]:
            reading.set()
    assert time.monotonic() - started < CEILING
    assert (pieces, client.partial) == (["Hel", "lo"], [TextBlock("Hello")])
    assert (client.finish_reason, client.history, heard(client)) == (None, [Q], [])
    assert (client.ask("r"), client.partial) == ("fine", [])
    assert client.history == [Q, Message.user("r"), Message.assistant("fine")]


def test_what_was_read_with_the_interrupt_is_not_told(serve, connect):
    """T-3; R-73, B-87."""
    client = connect(serve(ENDLESS, "fine"))
    client.send("q")
    events = client.events()
    assert next(events) == TextDelta("Hel")
    client.interrupt()
    assert list(events) == [RunFinished("interrupted", None, None)]
    assert (client.partial[0].text[:3], client.history) == ("Hel", [Q])
    assert client.ask("q") == "fine"


def test_an_answer_that_had_been_read_to_its_end_is_kept(serve, connect):
    """T-5 as design.md 7.6 has it: in one read came text and end."""
    client = connect(serve(answer(chunk_text=["Hel", "lo"], frames_per_chunk=99), "fine"))
    client.send("q")
    assert [next(client.receive()), next(client.receive())] == [TextBlock("Hel"), TextBlock("lo")]
    client.interrupt()
    assert (heard(client), client.history) == ([], [Q, Message.assistant("Hello")])
    assert client.ask("r") == "fine"


BURST = answer(chunk_text=["a ", "b ", "c ", "d"], frames_per_chunk=99)


@pytest.fixture
def _together():
    """From now on pieces of text that come in one read are one event within."""
    codec.quicken()


@pytest.mark.usefixtures("_together")
@pytest.mark.parametrize("read", ["events", "receive", "stream"])
def test_an_interrupt_among_pieces_that_came_together_tells_no_more_of_them(serve, connect, read):
    client = connect(serve(BURST, "fine"))
    if read == "stream":
        pieces = client.stream("q")
    else:
        client.send("q")
        pieces = getattr(client, read)()
    first = [next(pieces), next(pieces)]
    client.interrupt()
    rest = [piece for piece in pieces if not isinstance(piece, (RoundFinished, RunFinished))]
    assert (["".join(getattr(piece, "text", piece) for piece in first), rest]) == ["a b ", []]
    assert client.ask("q") == "fine"


@pytest.mark.usefixtures("_together")
def test_pieces_that_came_together_are_told_once_whoever_reads_on(serve, connect):
    client = connect(serve(BURST))
    client.send("q")
    blocks = client.receive()
    assert next(blocks) == TextBlock("a ")
    assert next(client.events()) == TextDelta("b ")
    assert next(blocks) == TextBlock("c ")
    assert [event for event in client.events() if isinstance(event, TextDelta)] == [TextDelta("d")]
    assert list(blocks) == []
    assert client.history == [Q, Message.assistant("a b c d")]


@pytest.mark.usefixtures("_together")
def test_a_reader_of_an_earlier_answer_tells_nothing_more_of_it(serve, connect):
    client = connect(serve(BURST, "fine"))
    client.send("q")
    earlier = client.receive()
    assert [next(earlier), next(earlier)] == [TextBlock("a "), TextBlock("b ")]
    client.clear_history()
    client.send("r")
    assert [block.text for block in earlier] == ["fine"]


def test_an_interrupt_after_the_end_changes_nothing(serve, connect):
    """T-4; B-23, R-70: nor does one before the next send, nor a second."""
    client = connect(serve("Hello", "fine"))
    client.interrupt()
    assert client.ask("q") == "Hello"
    client.interrupt()
    client.interrupt()
    assert (heard(client), client.finish_reason) == ([], "stop")
    assert client.history == [Q, Message.assistant("Hello")]
    assert client.ask("r") == "fine"


def test_the_handle_does_what_interrupt_does(serve, connect, interrupt_when):
    """design.md 3; B-8, B-27, R-74: to be given to another thread."""
    client = connect(serve(ENDLESS, "fine"))
    handle = client.interrupt_handle
    assert not handle.is_set()
    reading = threading.Event()
    interrupt_when(SimpleNamespace(interrupt=handle.set), reading.wait)
    client.send("q")
    assert [reading.set() for _ in client.receive()]
    assert (handle.is_set(), client.history) == (True, [Q])
    assert (client.ask("r"), handle.is_set()) == ("fine", False)


def test_calls_that_wait_to_be_handed_out_stay_in_the_history(serve, connect):
    """B-83 in manual mode, promise 1."""
    client = connect(serve(TWO_CALLS, "fine"))
    client.send("q")
    next(client.receive())
    client.interrupt()
    assert (heard(client), client.history) == ([], [Q, TURN])
    assert client.ask("r") == "fine"


# While tools run

POINTS = [
    ("pre_tool_use", 1, [CANCELLED, CANCELLED], 0),
    ("tool", 1, ["seen", CANCELLED], 0),
    ("post_tool_use", 1, ["seen", CANCELLED], 1),
    ("pre_tool_use", 2, ["seen", CANCELLED], 1),
    ("tool", 2, ["seen", "seen"], 1),
    ("post_tool_use", 2, ["seen", "seen"], 2),
]


@pytest.mark.parametrize(("point", "number", "contents", "reviews"), POINTS)
def test_an_interrupt_in_a_round_answers_every_call(serve, connect, point, number, contents, reviews):
    """R-50 to R-52, T-16, B-86, promise 1: one request, then the next send goes out."""
    seen = []

    def at(name):
        def see(_):
            seen.append(name)
            if (name, seen.count(name)) == (point, number):
                client.interrupt()
            return "seen" if name == "tool" else HookDecision.continue_()

        return see

    server = serve(TWO_CALLS, "fine")
    client = connect(
        server,
        tools=[Tool("look", "", {}, at("tool"))],
        hooks=Hooks([at("pre_tool_use")], [at("post_tool_use")]),
        auto_execute_tools=True,
    )
    client.send("q")
    assert (heard(client), client.finish_reason, len(server.requests)) == ([], None, 1)
    assert client.history == [Q, TURN, gave("c1", contents[0]), gave("c2", contents[1])]
    assert (seen.count("tool"), seen.count("post_tool_use")) == (contents.count("seen"), reviews)
    assert client.ask("r") == "fine"


def test_an_interrupt_between_rounds_ends_the_run(serve, connect, interrupt_when, late):
    """R-46 [Q], R-51: while the second round waits for its headers."""
    server = serve(TWO_CALLS, late, "fine")
    client = connect(server, tools=[Tool("look", "", {}, lambda _: "seen")], auto_execute_tools=True)
    client.send("q")
    started = time.monotonic()
    interrupt_when(client, lambda: server.wait_for_requests(2))
    assert (heard(client), client.finish_reason) == ([], None)
    assert time.monotonic() - started < CEILING
    assert client.history == [Q, TURN, gave("c1"), gave("c2")]
    assert client.ask("") == "fine"


def test_an_interrupt_stops_the_handing_out_of_the_final_text(serve, connect):
    """T-17; R-41, B-83: the answer is complete in the history already."""
    client = connect(serve(answer(chunk_text=["a", "b"]), "fine"), auto_execute_tools=True)
    client.send("q")
    assert next(client.receive()) == TextBlock("a")
    client.interrupt()
    assert (heard(client), client.history) == ([], [Q, Message.assistant("ab")])
    assert client.ask("r") == "fine"
