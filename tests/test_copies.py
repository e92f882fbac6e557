"""Many clients, copies of one, and a client after a fork: what is whose."""

import copy
import os
import pickle
import threading
from dataclasses import replace

import pytest

from openagent import Client, Message, TextBlock, Tool
from openagent.client import ADAPTERS
from openagent.testing import ScriptedServer, answer, call, raw

Q = Message.user("q")


def test_many_clients_in_many_threads_share_nothing():
    """Issue 4.7: each conversation, and each result, is its own; on all wires at once, one connection each."""
    count, rounds = 24, 5

    def script(request):
        name = request.headers["x-name"]
        if name.encode() + b" has seen" in request.raw.rpartition(b"prompt")[2]:
            return f"done {name}"
        return answer("hm ", calls=[call("look", {"at": name})])

    said = {}

    def talk(number):
        name = f"n{number}n"
        ran = []
        look = Tool("look", "", {}, lambda given: (ran.append(given["at"]), f"{name} has seen")[1])
        settings = {"protocol": list(ADAPTERS)[number % 3], "headers": {"X-Name": name}, "retry": None}
        with Client(
            model="m", base_url=server.url, tools=[look], auto_execute_tools=True, api_key="k", **settings
        ) as client:
            answers = [client.ask(f"prompt {turn}") for turn in range(rounds)]
            said[name] = (answers, ran, len(client.history))

    with ScriptedServer(script, repeat=True) as server:
        threads = [threading.Thread(target=talk, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        names = [f"n{number}n" for number in range(count)]
        assert said == {name: ([f"done {name}"] * rounds, [name] * rounds, 4 * rounds) for name in names}
        assert (server.connections, server.complaints) == (count, [])


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda client: pickle.loads(pickle.dumps(client)),
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_goes_its_own_way(serve, connect, how):
    """life-05: the history, the registry and the connection are its own, also of a shallow copy."""
    server = serve("a", "b", "c")
    client = connect(server)
    client.ask("q")
    other = COPIES[how](client)
    other.tools["look"] = Tool("look", "", {}, None)
    assert (client.ask("r"), other.ask("s")) == ("b", "c")
    assert [message.text for message in client.history] == ["q", "a", "r", "b"]
    assert [message.text for message in other.history] == ["q", "a", "s", "c"]
    assert (list(client.tools), server.connections) == ([], 2)
    other.close()


def in_child(work):
    """What the function returns in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, repr(work()).encode())
        except BaseException as exc:
            os.write(writer, repr(exc).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


# Newer Pythons warn of forks beside threads: here those of the server, which the child does not need.
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_client_after_a_fork_does_not_use_the_parents_connection(serve, connect):
    """Issue 4.7: else the answers of two processes would be mixed."""
    server = serve("a", "child", "parent")
    client = connect(server)
    client.ask("q")
    assert in_child(lambda: client.ask("r")) == "'child'"
    assert (client.ask("s"), server.connections) == ("parent", 2)
    assert [message.text for message in client.history] == ["q", "a", "s", "parent"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("action", ["close", "ask", "interrupt"])
def test_what_a_child_does_in_the_midst_of_an_answer_leaves_the_parents_whole(serve, connect, action):
    """Issue 4.7: the child may close, ask or stop; the parent hears its answer to the end."""
    child_is_done = threading.Event()

    def chunks():
        yield b'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'
        child_is_done.wait(10)
        yield b'data: {"choices": [{"index": 0, "delta": {"content": "lo"}}]}\n\ndata: [DONE]\n\n'

    server = serve(replace(raw(), chunks=chunks()), "child")
    client = connect(server)
    client.send("q")
    assert next(client.receive()) == TextBlock("Hel")
    in_child(lambda: client.ask("r") if action == "ask" else getattr(client, action)())
    child_is_done.set()
    assert list(client.receive()) == [TextBlock("lo")]
    assert client.history == [Q, Message.assistant("Hello")]
