"""A client over time: whose it is, when its connections close, how it is copied, what may be changed."""

import copy
import gc
import os
import pickle
import threading

import pytest

from openagent import AgentError, AgentOptions, Client, ConfigError, Message, TextBlock, Tool, ToolUseBlock, tool
from openagent.testing import answer, call, failure

Q = Message.user("q")
ENDLESS = answer(chunk_text=["Hel", "lo"], finish="unspecified", done=False, hold=30)
USES = answer(calls=[call("use", id="c1")])


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


# Whose it is

VERBS = {
    "send": lambda client: client.send("r"),
    "send_message": lambda client: client.send_message(Message.user("r")),
    "retry": lambda client: client.retry(),
    "ask": lambda client: client.ask("r"),
    "stream": lambda client: client.stream("r"),
    "receive": lambda client: next(client.receive()),
    "events": lambda client: next(client.events()),
    "add_tool_result": lambda client: client.add_tool_result("c1", "ok"),
    "clear_history": lambda client: client.clear_history(),
    "close": lambda client: client.close(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_second_thread_is_turned_away(serve, connect, verb):
    """design.md 3: one client in two threads at once; what the first one does goes on."""
    released = threading.Event()
    server = serve(lambda request: (released.wait(10), "Hello")[1])
    client = connect(server)
    reader = threading.Thread(target=client.ask, args=("q",), name="reader")
    reader.start()
    server.wait_for_requests(1)
    with pytest.raises(AgentError, match="client is in use by thread"):
        VERBS[verb](client)
    released.set()
    reader.join(5)
    assert client.history == [Q, Message.assistant("Hello")]


@pytest.mark.parametrize("verb", VERBS)
def test_a_tool_that_uses_its_own_client_fails_and_the_run_goes_on(serve, connect, verb):
    """design.md 3: the model is told; the history stays whole."""
    client = connect(serve(USES, "sorry"), auto_execute_tools=True)
    client.tools["use"] = Tool("use", "", {}, lambda _: VERBS[verb](client))
    assert client.ask("q") == "sorry"
    assert "client is in use by this very thread" in client.history[2].results[0].content["error"]
    assert [message.role for message in client.history] == ["user", "assistant", "tool", "assistant"]


# When its connections close


def test_leaving_with_closes_what_is_open_and_the_client_can_be_used_again(serve, eventually):
    """design.md 3, life-03."""
    server = serve(ENDLESS, "Hello")
    with Client(model="m", base_url=server.url) as client:
        client.send("q")
        assert next(client.receive()) == TextBlock("Hel")
    assert eventually(lambda: server.open_connections == 0)
    assert (list(client.receive()), client.ask("q")) == ([], "Hello")
    client.close()
    client.close()
    assert eventually(lambda: server.open_connections == 0)


@pytest.mark.parametrize("action", ["send", "clear_history", "close", "drop"])
def test_an_answer_that_is_left_is_closed_at_the_next_chance(serve, connect, eventually, action):
    """life-03, http-09, R-1."""
    server = serve(ENDLESS, "Hello")
    client = connect(server) if action != "drop" else Client(model="m", base_url=server.url)
    client.send("q")
    for _ in client.receive():
        break
    if action == "drop":
        del client, _
        gc.collect()
        assert eventually(lambda: server.open_connections == 0)
        return
    assert (action == "send" and client.ask("q")) or not getattr(client, action)()
    assert eventually(lambda: server.open_connections == (1 if action == "send" else 0))


def test_one_connection_serves_a_whole_conversation(serve, connect):
    """design.md 7.3: kept alive over turns, refusals and tool rounds."""
    rounds = [answer(calls=[call("add", {"a": 1, "b": 2})]), "3"]
    server = serve("a", failure(429), *rounds, "b")
    client = connect(server, tools=[add], auto_execute_tools=True)
    client.ask("q")
    with pytest.raises(AgentError):
        client.ask("r")
    assert (client.ask("r"), client.ask("s"), server.connections) == ("3", "b", 1)


def sockets():
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass
    return sum(link.startswith("socket:") for link in links)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
@pytest.mark.parametrize("item", [failure(429), answer(chunk_text=["a", "b"], hold=30)], ids=["refused", "left"])
def test_no_socket_is_left_behind(serve, connect, eventually, item):
    """http-09: fifty refusals, fifty answers that are left after the first word."""
    server = serve(*[item] * 51, "fine")
    client = connect(server)

    def one():
        try:
            client.send("q")
            next(client.receive())
        except AgentError:
            pass

    one()
    before = sockets()
    for _ in range(50):
        one()
    assert client.ask("q") == "fine"
    assert eventually(lambda: sockets() <= before + 2)  # both ends of one connection


def test_close_closes_the_connection_also_while_an_error_of_it_is_kept(serve, connect, eventually):
    """A notebook keeps the last exception, and that its traceback, and that the pool."""
    server = serve(failure(500), "Hello")
    client = connect(server)
    with pytest.raises(AgentError) as kept:
        client.ask("q")
    assert (client.ask("q"), server.open_connections) == ("Hello", 1)
    client.close()
    assert eventually(lambda: server.open_connections == 0)
    assert kept.value.status == 500


def test_clear_history_forgets_what_was_still_coming(serve, connect):
    """R-2, B-22, B-84: options and the finish reason stay."""
    for is_auto in (False, True):
        client = connect(serve(answer(chunk_text=["a", "b"]), "c"), auto_execute_tools=is_auto)
        history = client.history
        client.send("q")
        next(client.receive())
        client.clear_history()
        assert (list(client.receive()), client.history, client.history is history) == ([], [], True)
        client.ask("r")
        client.clear_history()
        assert (client.history, client.finish_reason) == ([], "stop")


# Copies


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda client: pickle.loads(pickle.dumps(client))])
def test_a_copy_has_its_own_history_and_connections(serve, connect, copied):
    """life-05: also of a client in mid-stream; tools by reference."""
    server = serve("Hello", ENDLESS, "one", "two")
    client = connect(server, tools=[add], api_key="secret")
    client.ask("q")
    client.send("r")
    next(client.receive())
    other = copied(client)
    assert (other.history, other.tools, other.options) == (client.history, client.tools, client.options)
    assert other.tools["add"] is add
    assert (client.ask("s"), other.ask("t")) == ("one", "two")
    assert [message.text for message in client.history] == ["q", "Hello", "r", "s", "one"]
    assert [message.text for message in other.history] == ["q", "Hello", "r", "t", "two"]
    other.close()
    assert "secret" not in repr(client)


# What may be changed


def test_options_may_be_replaced_between_requests(serve, connect):
    """design.md 3: also by another server's, who sees the conversation and not the key."""
    first, second = serve("a"), serve("b")
    client = connect(first, api_key="key", tools=[add])
    client.ask("q")
    client.options = client.options.replace(base_url=second.url, model="n", temperature=0)
    assert client.ask("r") == "b"
    asked = second.requests[0]
    assert (asked.body["model"], asked.body["temperature"], len(asked.body["messages"])) == ("n", 0, 3)
    assert ("authorization" in first.requests[0].headers, "authorization" in asked.headers) == (True, False)
    for wrong in (None, {"model": "m"}, "m"):
        with pytest.raises(ConfigError, match="must be AgentOptions"):
            client.options = wrong
        if wrong is not None:
            with pytest.raises(ConfigError, match="must be AgentOptions"):
                Client(wrong)


def test_settings_of_one_request_are_gone_with_it(serve, connect):
    """design.md 3: every sending verb takes them."""
    server = serve(*["a"] * 6)
    client = connect(server, temperature=1)
    client.ask("q", temperature=0)
    list(client.stream("r", temperature=0))
    client.send("s", temperature=0)
    client.send_message(Q, temperature=0)
    client.retry(temperature=0)
    client.ask("t")
    assert [request.body["temperature"] for request in server.requests] == [0, 0, 0, 0, 0, 1]
    for wrong in ({"temprature": 0}, {"temperature": 5}, {"reasoning_effort": 5}, {"extra_body": {"model": "x"}}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            client.ask("u", **wrong)
    assert (len(server.requests), client.history[-1]) == (6, Message.assistant("a"))


def test_the_registry_is_a_dict_that_may_be_edited(serve, connect):
    """design.md 3, life-06: tools put in, replaced and taken out count from the next request on."""
    server = serve(answer(calls=[call("add", {"a": 1, "b": 2})]), "done", "b", "c")
    client = connect(server, tools=[add], auto_execute_tools=True)

    @tool(name="add")
    def edited(a: float, b: float) -> str:
        """Edited."""
        return "edited"

    client.tools["add"] = edited
    client.tools["look"] = Tool("look", "", {}, print)
    assert (client.ask("q", tool_choice="look"), client.get_tool("add")) == ("done", edited)
    assert client.history[2] == Message.tool_result(client.history[1].calls[0].id, "edited")
    del client.tools["look"]
    client.ask("r")
    client.options = client.options.replace(tools=[])
    client.ask("s")
    names = [[made["function"]["name"] for made in request.body.get("tools", [])] for request in server.requests]
    assert names == [["add", "look"], ["add", "look"], ["add"], []]
    assert (client.tools, client.get_tool("add")) == ({}, None)


def test_a_registry_that_makes_no_sense_is_refused_before_any_request(serve, connect):
    """Promise 7."""
    client = connect(serve())
    for key, wrong, told in (("plus", add, "must be the tool.s name"), ("add", "add", "is no tool")):
        client.tools = {key: wrong}
        with pytest.raises(ConfigError, match=told):
            client.ask("q")
    assert client.history == []


def test_the_history_may_be_edited_and_assigned(serve, connect):
    """design.md 3, promise 7."""
    server = serve("a", "b")
    client = connect(server)
    client.history = (Message(role, text) for role, text in (("system", "S"), ("user", "q"), ("assistant", "x")))
    client.history.append(Message.assistant(ToolUseBlock("c1", "add", {})))
    assert client.ask("r") == "a"
    assert [message["role"] for message in server.requests[0].body["messages"]][-2:] == ["tool", "user"]
    for wrong in (None, Q, [{"role": "user", "content": "q"}]):
        with pytest.raises(ConfigError, match="history"):
            client.history = wrong
    client.history.append({"role": "user", "content": "q"})
    with pytest.raises(ConfigError, match="must be a Message"):
        client.ask("s")
    assert len(server.requests) == 1


def test_options_and_settings_may_be_given_together():
    """design.md 3."""
    options = AgentOptions(model="m", temperature=1)
    assert (Client(options).options is options, Client(options, temperature=0).options.temperature) == (True, 0)
