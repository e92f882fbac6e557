"""The calls of a turn: threads, approval, the guard against loops."""

import threading
import time

import pytest

from openagent import (
    AgentOptions,
    Approval,
    CallFinished,
    CallStarted,
    ConfigError,
    HookDecision,
    Hooks,
    Message,
    Tool,
    ToolUseBlock,
    tool,
    tools_of,
)
from openagent.testing import answer, call


@pytest.fixture
def auto(serve, connect):
    def start(*script, **settings):
        server = serve(*script)
        return connect(server, auto_execute_tools=True, **settings), server

    return start


def asks(*names):
    return answer(calls=[call(name, {}, id=f"c{place}") for place, name in enumerate(names)])


def results(client):
    return [result.content for message in client.history for result in message.results]


def made(name, function, **manner):
    return Tool(name, name, {}, lambda _: function(), **manner)


def seen(events):
    kinds = {CallStarted: "started", CallFinished: "finished"}
    return [f"{kinds[type(event)]} {event.call.name}" for event in events if type(event) in kinds]


# Threads


def test_two_calls_meet_when_there_are_two_workers(auto):
    """Each waits for the other: one after another they could not end."""
    meeting = threading.Barrier(2, timeout=5)
    tools = [made("a", lambda: meeting.wait() * 0 + 1), made("b", lambda: meeting.wait() * 0 + 2)]
    client, _ = auto(asks("a", "b"), "done", tools=tools, tool_workers=2)
    assert client.ask("q") == "done"
    assert results(client) == [1, 2]


def test_two_slow_calls_take_the_time_of_one(auto):
    def nap():
        time.sleep(0.1)

    tools = [made("a", nap), made("b", nap)]
    took = {}
    for workers in (1, 2):
        client, _ = auto(asks("a", "b"), "done", tools=tools, tool_workers=workers)
        client.send("q")
        begun = time.monotonic()
        list(client.events())
        took[workers] = time.monotonic() - begun
    assert took[2] < 0.8 * took[1]


def test_events_come_as_it_happens_and_results_stand_in_the_order_of_the_calls(auto):
    """The first call waits until the second is told."""
    told = threading.Event()
    tools = [made("slow", lambda: told.wait(5)), made("quick", lambda: "quick")]
    client, server = auto(asks("slow", "quick"), "done", tools=tools, tool_workers=2)
    client.send("q")
    events = []
    for event in client.events():
        events.append(event)
        if isinstance(event, CallFinished):
            told.set()
    assert seen(events) == ["started slow", "started quick", "finished quick", "finished slow"]
    assert results(client) == [True, "quick"]
    assert [message["tool_call_id"] for message in server.requests[1].body["messages"][2:]] == ["c0", "c1"]


def test_a_sequential_tool_never_runs_beside_another(auto):
    running, most = [], []

    def work(name):
        def body():
            running.append(name)
            time.sleep(0.01)
            most.append(sorted(running))
            running.remove(name)

        return body

    tools = [made(name, work(name), sequential=name == "alone") for name in ("a", "alone", "b")]
    client, _ = auto(asks("a", "alone", "b"), "done", tools=tools, tool_workers=3)
    assert client.ask("q") == "done"
    assert most == [["a"], ["alone"], ["b"]]


def test_no_more_threads_run_than_there_are_workers(auto):
    running, counts = [], []
    lock = threading.Lock()

    def body():
        with lock:
            running.append(1)
            counts.append(len(running))
        time.sleep(0.01)
        running.pop()

    tools = [made(f"t{place}", body) for place in range(7)]
    client, _ = auto(asks(*(one.name for one in tools)), "done", tools=tools, tool_workers=3)
    assert client.ask("q") == "done"
    assert (max(counts) <= 3, len(results(client))) == (True, 7)


def test_hooks_see_calls_and_results_in_the_callers_thread(auto):
    threads = set()

    def note(event):
        threads.add(threading.current_thread())

    def shout(event):
        note(event)
        return HookDecision.modify_result(event.tool_result.upper())

    hooks = Hooks().add_pre_tool_use(note).add_post_tool_use(shout)
    tools = [made(name, lambda name=name: name) for name in "ab"]
    client, _ = auto(asks("a", "b"), "done", tools=tools, tool_workers=2, hooks=hooks)
    assert client.ask("q") == "done"
    assert (threads, results(client)) == ({threading.current_thread()}, ["A", "B"])


def test_an_interrupt_cancels_what_has_not_begun_and_keeps_what_was_done(auto):
    begun = threading.Barrier(3, timeout=5)

    def body():
        begun.wait()
        return "seen"

    tools = [made(name, body) for name in "abcd"]
    client, _ = auto(asks(*"abcd"), "again", tools=tools, tool_workers=2)
    client.send("q")
    stopper = threading.Thread(target=lambda: (client.interrupt(), begun.wait()))
    for event in client.events():
        if seen([event]) == ["started b"]:
            stopper.start()
    stopper.join()
    cancelled = {"error": "Tool execution cancelled"}
    assert results(client) == ["seen", "seen", cancelled, cancelled]
    assert client.finish_reason is None
    assert client.ask("r") == "again"


def test_a_tool_that_raises_keyboard_interrupt_in_a_thread_leaves_a_whole_history(auto):
    go = threading.Event()

    def leave():
        raise KeyboardInterrupt

    tools = [made("slow", lambda: go.wait(5)), made("leave", leave), made("later", leave)]
    client, _ = auto(asks("slow", "leave", "later"), "fine", tools=tools, tool_workers=2)
    client.send("q")
    with pytest.raises(KeyboardInterrupt):
        list(client.events())
    go.set()
    maybe = {"error": "interrupted while it ran: it may have had effects"}
    assert results(client) == [maybe, maybe, {"error": "not run: the exchange was interrupted before it"}]
    assert client.ask("r") == "fine"


def test_a_caller_who_leaves_finds_the_results_of_the_threads_that_had_ended(auto):
    go = threading.Event()
    tools = [made("quick", lambda: "quick"), made("slow", lambda: go.wait(5))]
    client, _ = auto(asks("quick", "slow"), "fine", tools=tools, tool_workers=2)
    client.send("q")
    for event in client.events():
        if isinstance(event, CallFinished):
            break
    client.close()
    go.set()
    assert results(client) == ["quick", {"error": "interrupted while it ran: it may have had effects"}]
    assert client.ask("r") == "fine"


def test_a_tool_in_a_thread_sees_the_context_of_the_caller(auto):
    from contextvars import ContextVar

    who = ContextVar("who", default="nobody")
    who.set("ann")
    client, _ = auto(asks("a", "b"), "done", tools=[made(name, who.get) for name in "ab"], tool_workers=2)
    client.ask("q")
    assert results(client) == ["ann", "ann"]


# Approval


def refusal(id, name, reason):
    content = {"error": "not run: the user refused this call", "reason": reason, "tool": name, "id": id}
    return Message.tool_result(id, content, is_error=True)


@pytest.mark.parametrize(
    ("said", "reason"),
    [(False, "No reason given"), ("too dear", "too dear"), (Approval("no", "not today"), "not today")],
)
def test_a_refusal_is_a_result_that_the_model_reads(auto, said, reason):
    ran = []
    client, _ = auto(asks("buy"), "Then not.", tools=[made("buy", lambda: ran.append(1))], approve=lambda call: said)
    assert client.ask("q") == "Then not."
    assert (client.history[2], ran) == (refusal("c0", "buy", reason), [])


def test_what_is_approved_is_run_and_always_is_asked_once(auto):
    asked = []

    def approve(call):
        asked.append(call.name)
        return Approval("always") if call.name == "b" else True

    tools = [made(name, lambda name=name: name) for name in "ab"]
    client, _ = auto(asks(*"abab"), "done", asks("b"), "done", tools=tools, approve=approve)
    client.ask("q")
    client.ask("r")
    assert (asked, results(client)) == (["a", "b", "a"], ["a", "b", "a", "b", "b"])


def test_a_tools_own_approval_goes_before_the_general_one_and_sees_no_secret(auto):
    asked = []

    @tool(approve=lambda call: asked.append(call) or True, sensitive=["key"])
    def unlock(key: str) -> str:
        return key[::-1]

    def general(call):
        raise AssertionError

    client, _ = auto(answer(calls=[call("unlock", {"key": "abc"}, id="c1")]), "open", tools=[unlock], approve=general)
    client.ask("q")
    assert (asked, results(client)) == ([ToolUseBlock("c1", "unlock", {"key": "***"})], ["cba"])


def test_a_hook_has_spoken_before_the_user_is_asked(auto):
    asked = []
    hooks = Hooks().add_pre_tool_use(
        lambda event: HookDecision.block("no") if event.tool_name == "a" else HookDecision.modify_input({"x": 1})
    )
    client, _ = auto(
        asks("a", "b"),
        "done",
        tools=[made(name, lambda: 1) for name in "ab"],
        hooks=hooks,
        approve=lambda call: asked.append((call.name, call.input)) or True,
    )
    client.ask("q")
    assert asked == [("b", {"x": 1})]


def test_an_answer_that_is_none_is_the_users_error_and_the_history_is_whole(auto):
    client, _ = auto(asks("a"), "fine", tools=[made("a", lambda: 1)], approve=lambda call: None)
    with pytest.raises(ConfigError, match="returned None; it must return True, False, the reason for a no"):
        client.ask("q")
    assert results(client) == [{"error": "not run: the exchange was interrupted before it"}]
    assert client.ask("r") == "fine"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"approve": True}, "approve True must be a function of a call, such as ask_user"),
        ({"tool_workers": 0}, "tool_workers 0 must be a whole number, 1 or more"),
        ({"max_repeated_calls": 0}, "max_repeated_calls 0 must be a whole number, 1 or more"),
        ({"tool_mode": "magic"}, "tool_mode 'magic' must be one of native, emulated, auto"),
    ],
)
def test_wrong_settings_are_refused(settings, told):
    with pytest.raises(ConfigError) as caught:
        AgentOptions(model="m", **settings)
    assert str(caught.value) == told


# The guard against loops


def test_a_call_that_is_made_again_and_again_is_told_and_leads_to_the_last_round(auto):
    ran = []
    script = [answer(calls=[call("look", {"at": 1}, id=f"c{number}")]) for number in range(3)]
    look = Tool("look", "", {"at": int}, lambda arguments: ran.append(arguments) or "seen")
    client, server = auto(*script, "Enough.", tools=[look], max_repeated_calls=2, max_tool_iterations=9)
    assert client.ask("q") == "Enough."
    told = "not run: you have made this very call 2 times; its result is above"
    assert results(client) == ["seen", "seen", {"error": told, "tool": "look", "id": "c2"}]
    assert [("tools" in request.body) for request in server.requests] == [True, True, True, False]
    assert "same tool call with the same arguments" in server.requests[3].body["messages"][0]["content"]
    assert (client.finish_reason, len(ran)) == ("max_tool_iterations", 2)


def test_calls_with_other_arguments_are_no_repetition(auto):
    script = [answer(calls=[call("look", {"at": number}, id=f"c{number}")]) for number in range(3)]
    client, _ = auto(*script, "Fine.", tools=[Tool("look", "", {"at": int}, len)], max_repeated_calls=1)
    assert (client.ask("q"), client.finish_reason) == ("Fine.", "stop")


# Methods of an object


class Basket:
    """A basket."""

    size = 3

    def __init__(self):
        self.items = []

    def put(self, item: str) -> int:
        """Put something in."""
        self.items.append(item)
        return len(self.items)

    @tool(name="empty_it", sequential=True)
    def empty(self) -> None:
        """Take all out."""
        self.items.clear()

    @staticmethod
    def price(of: str) -> int:
        """What it costs."""
        return len(of)

    @property
    def weight(self):
        raise AssertionError("a property is not looked at")

    def _shake(self):
        pass


def test_the_methods_of_an_object_become_tools_and_it_keeps_their_state(auto):
    basket = Basket()
    tools = tools_of(basket)
    assert [(one.name, one.description, one.sequential) for one in tools] == [
        ("empty_it", "Take all out.", True),
        ("price", "What it costs.", False),
        ("put", "Put something in.", False),
    ]
    asked = answer(calls=[call("put", {"item": "egg"}), call("put", {"item": "ham"})])
    client, _ = auto(asked, "done", tools=tools)
    client.ask("q")
    assert (basket.items, results(client)) == (["egg", "ham"], [1, 2])


def test_a_class_and_an_object_without_methods_have_no_tools():
    with pytest.raises(ConfigError, match=r"tools_of\(Basket\) must be given an object: Basket\(...\)"):
        tools_of(Basket)
    with pytest.raises(ConfigError, match="has no public methods"):
        tools_of(object())


# Checks


def test_a_call_that_a_listener_edits_is_checked_again(auto):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    ran = []
    count = Tool("count", "Count.", schema, ran.append)
    client, _ = auto(answer(calls=[call("count", {"n": 1}, id="c0")]), "done", tools=[count])
    client.send("q")
    for event in client.events():
        if isinstance(event, CallStarted):
            event.call.input["n"] = "many"
    error = {"error": 'invalid arguments: n: expected integer, got "many"', "tool": "count", "id": "c0"}
    assert (ran, results(client)) == ([], [error])


def test_the_seconds_of_a_call_are_those_of_the_tool(serve, connect):
    """Not those in which somebody was asked whether it may run."""

    def slowly(call):
        time.sleep(0.1)
        return True

    quick = Tool("quick", "", {}, lambda arguments: "done")
    server = serve(answer(calls=[call("quick")]), "Good.")
    client = connect(server, tools=[quick], auto_execute_tools=True, approve=slowly)
    client.send("q")
    [finished] = [event for event in client.events() if isinstance(event, CallFinished)]
    assert finished.seconds < 0.1
