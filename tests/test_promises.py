"""The seven promises of the design, each kept on a real loopback server that is strict."""

import dataclasses
import threading
import time

import pytest

from openagent import (
    AgentError,
    APIError,
    Client,
    ConfigError,
    HookDecision,
    Hooks,
    Message,
    StreamInterruptedError,
    TextBlock,
    Tool,
    query,
)
from openagent.client import ADAPTERS
from openagent.testing import answer, call, failure, raw

Q = Message.user("q")
LOOK = Tool("look", "", {"type": "object", "properties": {"at": {"type": "string"}}}, lambda arguments: "seen")
CALLS = answer("hm", calls=[call("look", id="c1"), call("look", id="c2")])
CEILING = 3  # seconds; whatever would have been waited for takes ten or more


class Bug(Exception):
    """The user's own."""


def raising(error):
    def run(_):
        raise error

    return run


# 1. The history is whole


def crash(client):
    client.tools["look"] = Tool("look", "", {}, raising(Bug()))
    client.ask("q")


def ctrl_c(client):
    client.tools["look"] = Tool("look", "", {}, raising(KeyboardInterrupt))
    client.ask("q")


def interrupt(client):
    client.tools["look"] = Tool("look", "", {}, lambda _: client.interrupt())
    client.ask("q")


def leave(client):
    client.send("q")
    for event in client.events():
        if type(event).__name__ == "CallFinished":
            return


def crash_in_a_hook(client):
    client.ask("q", hooks=Hooks(post_tool_use=[raising(Bug())]))


def leave_calls_open(client):
    client.send("q", auto_execute_tools=False)
    next(block for block in client.receive() if not isinstance(block, TextBlock))


ENDS = {
    crash: ["sorry"],
    ctrl_c: [],
    interrupt: [],
    leave: [],
    crash_in_a_hook: [],
    leave_calls_open: [],
    lambda client: client.ask("q"): [failure(500)],
    lambda client: list(client.stream("q")): [answer("half", cut=300)],
}


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("end", ENDS, ids=[*(end.__name__ for end in ENDS if "<" not in end.__name__), "no", "cut"])
def test_1_whatever_happens_the_next_request_is_accepted(serve, connect, end, protocol):
    """Promise 1: on every wire; each call has its result, right behind its turn."""
    server = serve(CALLS, *ENDS[end], "fine")
    client = connect(server, protocol=protocol, tools=[LOOK], auto_execute_tools=True)
    try:
        end(client)
    except (AgentError, Bug, KeyboardInterrupt):
        pass
    assert client.ask("go on") == "fine"
    turn = client.history.index(next(message for message in client.history if message.calls))
    ids = [call.id for call in client.history[turn].calls]
    answers = [result.tool_use_id for message in client.history[turn + 1 : turn + 3] for result in message.results]
    assert (len(ids), answers, server.complaints) == (2, ids, [])


def test_1_a_turn_with_calls_enters_the_history_in_one_step(serve, connect):
    """Promise 1: hooks see the open turn in ``event.history`` only."""
    seen = []
    hooks = Hooks([lambda event: seen.append((list(client.history), len(event.history)))])
    client = connect(serve(CALLS, "done"), tools=[LOOK], hooks=hooks, auto_execute_tools=True)
    client.ask("q")
    assert seen == [([Q], 2), ([Q], 3)]


# 2. Nothing half-heard is executed or stored


@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
def test_2_a_turn_is_run_and_kept_whole_or_not_at_all(serve, connect, framing):
    """Promise 2, design.md 7.1: a body cut after every so many bytes."""
    whole = 0
    for cut in range(100, 1500, 100):
        ran = []
        turn = answer("hm ", calls=[call("look", {"at": "here"}, id="c1")], cut=cut, framing=framing)
        client = connect(serve(turn, "done"), auto_execute_tools=True)
        client.tools["look"] = Tool("look", "", {}, lambda arguments, ran=ran: ran.append(arguments))
        try:
            assert client.ask("q") == "done"
            assert (ran, len(client.history)) == ([{"at": "here"}], 4)
            whole += 1
        except StreamInterruptedError:
            assert (ran, client.history) == ([], [Q])
    assert 0 < whole < 10


# 3. Text and reasoning arrive as their bytes arrive


class Held:
    """The chunks of a body, each sent once the client has what was in the one before."""

    def __init__(self, *chunks):
        self._chunks = chunks
        self.heard = threading.Semaphore(0)
        self.was_live = True

    def __iter__(self):
        yield self._chunks[0]
        for chunk in self._chunks[1:]:
            self.was_live &= self.heard.acquire(timeout=5)
            yield chunk


def delta(**members):
    return raw(f'data: {{"choices": [{{"index": 0, "delta": {members}}}]}}\n\n'.replace("'", '"')).chunks[0]


@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize("verb", ["receive", "stream", "events", "stream in auto mode"])
def test_3_each_delta_is_told_before_the_next_one_is_sent(serve, connect, framing, verb):
    """Promise 3, B-70."""
    end = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    body = Held(delta(content="a"), delta(reasoning_content="b"), delta(content="c"), end)
    item = dataclasses.replace(raw(framing=framing), chunks=body)
    client = connect(serve(item), include_reasoning=True, auto_execute_tools=verb == "stream in auto mode")
    client.send("q")
    told = []
    for event in client.events() if verb != "receive" else client.receive():
        told.append(getattr(event, "text", None))
        body.heard.release()
        if verb == "receive" and told == ["a"]:
            body.heard.release()  # for the reasoning, which receive() does not hand out
    assert body.was_live
    assert told[: 2 if verb == "receive" else 3] == (["a", "c"] if verb == "receive" else ["a", "b", "c"])


# 4. interrupt() ends whatever blocks


@pytest.mark.parametrize("phase", ["connect", "headers", "read"])
def test_4_interrupt_ends_what_blocks_and_the_client_is_usable_right_after(serve, connect, phase):
    """Promise 4; Ctrl-C is in test_ctrl_c.py."""
    held = threading.Event()
    script = {
        "connect": [],
        "headers": [lambda _: (held.wait(10), "late")[1]],
        "read": [answer("a ", hold=30, done=False)],
    }
    server = serve(*script[phase], "fine", accept=phase != "connect")
    client = connect(server)

    def stop():
        if phase != "connect":
            server.wait_for_requests(1)
        time.sleep(0.05)
        client.interrupt()

    threading.Thread(target=stop).start()
    started = time.monotonic()
    client.ask("q")
    assert time.monotonic() - started < CEILING
    if phase == "connect":
        client.options = client.options.replace(base_url=serve("fine").url)
    assert client.ask("r") == "fine"
    held.set()


# 5. The key goes to one host, in a header, and nowhere else


def test_5_the_key_is_in_one_header_of_one_host_and_nowhere_else(serve, connect, monkeypatch, tmp_path, caplog):
    """Promise 5; R-104, R-109, B-81, H-8: not to a redirect's target, not in an error, a log or a repr."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other-secret\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    caplog.set_level("DEBUG")
    key = "sk-very-secret"
    other = serve()
    told = failure(401, f"Incorrect API key provided: {key}", headers={"X-Key": key})
    moved = raw("moved", status=307, headers={"Location": f"{other.url}/chat/completions?key={key}"}, framing="length")
    server = serve("Hello", told, moved, "Hello")
    client = connect(server, api_key=key, headers={"X-Token": "token-secret"})
    assert client.ask("q") == "Hello"
    for _ in range(2):
        with pytest.raises(APIError) as caught:
            client.ask("r")
        assert "secret" not in f"{caught.value!r}{caught.value}{vars(caught.value)}{caught.value.__cause__}"
    client.options = client.options.replace(api_key="")
    client.ask("s")
    sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == [f"Bearer {key}"] * 3 + [None]
    assert (other.requests, other.connections) == ([], 0)
    assert key not in repr([request.body for request in server.requests])
    assert "secret" not in f"{client!r}{client.options!r}{caplog.text}"


# 6. Cost grows linearly: see test_linear_cost.py

# 7. Mistakes of the model are told to it, those of the user are errors


def test_7_what_the_model_gets_wrong_is_told_to_the_model(serve, connect):
    """Promise 7."""
    hooks = Hooks([lambda event: HookDecision.block("no") if event.tool_input.get("at") == "home" else None])
    arguments = ({"at": 5}, '{"at": ', {"at": "home"}, {"at": "here"})
    calls = [call("lok"), *(call("look", given) for given in arguments), call("crash")]
    server = serve(answer(calls=calls), "sorry")
    tools = [LOOK, Tool("crash", "", {}, raising(Bug("out of order")))]
    client = connect(server, tools=tools, hooks=hooks, auto_execute_tools=True)
    assert client.ask("q") == "sorry"
    told = [message["content"] for message in server.requests[1].body["messages"] if message["role"] == "tool"]
    words = ["not found", "invalid arguments", "not valid JSON", "blocked by hook", "seen", "out of order"]
    assert [word for word, text in zip(words, told, strict=True) if word in text] == words


def test_7_what_the_user_gets_wrong_is_an_error_before_any_request(serve, connect):
    """Promise 7."""
    server = serve()
    client = connect(server)
    options = client.options
    wrongs = [
        lambda: Client(model=""),
        lambda: Client(options, temperature=3),
        lambda: Client(options, reasoning_effort=5),
        lambda: client.retry(),
        lambda: client.send(5),
        lambda: client.send(""),
        lambda: client.send("q", 5),
        lambda: client.send("q", tool_choice="look"),
        lambda: client.send("q", extra_body={"x": object()}),
        lambda: client.send_message("q"),
        lambda: client.add_tool_result("c1", "ok"),
        lambda: query(5, options),
        lambda: Message("robot", []),
        lambda: Tool("two words"),
    ]
    for wrong in wrongs:
        with pytest.raises(ConfigError):
            wrong()
    assert server.requests == []
