"""Promise 1 against any use: whatever was done, in whatever order, a strict server accepts the next request."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openagent import AgentError, Client, Message, TextBlock, Tool, ToolResultBlock, ToolUseBlock, truncate_messages
from openagent.client import ADAPTERS
from openagent.testing import ScriptedServer, answer, call, failure

CALL = call("look", {"at": "here"})
ITEMS = [
    "hello there",
    answer(""),
    answer("hm", calls=[CALL, CALL], reasoning="well"),
    answer(calls=[CALL, call("lok"), call("look", '{"at":')]),
    answer("hm", calls=[CALL, CALL], finish="length"),
    answer(calls=[CALL], finish="content_filter"),
    answer("one two three", reasoning="well", cut=700),
    answer("hm", calls=[CALL], cut=1000),
    answer("one two three four", frames_per_chunk=99),
    failure(500),
    failure(400),
]
MESSAGES = [
    Message.user("x"),
    Message.user(""),
    Message.system("s"),
    Message.assistant("y"),
    Message.assistant(""),
    Message.assistant("z", ToolUseBlock("x1", "look", {}), ToolUseBlock("x2", "look", {}, "{", "broken")),
    Message.tool_result("x1", "ok"),
    Message.tool_result("x2", None, is_error=True),
    Message("user", [ToolResultBlock("x1", ["ok"]), TextBlock("and?")]),
]
PLACES = st.integers(0, 6)
STEPS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(["q", "r", ""]), st.booleans(), st.sampled_from(ITEMS)),
    st.tuples(st.just("retry"), st.sampled_from(ITEMS)),
    st.tuples(st.just("read"), st.sampled_from(["receive", "events"]), PLACES),
    st.tuples(st.just("read to the end"), st.sampled_from(["receive", "events"])),
    st.tuples(st.just("interrupt")),
    st.tuples(st.just("answer"), PLACES),
    st.tuples(st.just("insert"), PLACES, st.sampled_from(MESSAGES)),
    st.tuples(st.just("delete"), PLACES),
    st.tuples(st.just("truncate"), PLACES),
    st.tuples(st.just("tool"), st.sampled_from([None, "stop", ValueError, KeyboardInterrupt])),
    st.tuples(st.just("clear")),
    st.tuples(st.just("close")),
)


class Use:
    """A client, the server's next answer, and what the tool will do."""

    def __init__(self, server, protocol):
        self.tool = None
        self.client = Client(
            model="m",
            base_url=server.url,
            protocol=protocol,
            retry=None,
            max_tool_iterations=2,
            max_tool_calls=5,
            tools=[Tool("look", "", {"type": "object", "properties": {"at": {"type": "string"}}}, self.look)],
        )

    def look(self, _):
        if self.tool == "stop":
            self.client.interrupt()
        elif self.tool:
            raise self.tool
        return "seen"

    def step(self, script, name, *details):
        client, history = self.client, self.client.history
        if name in ("send", "retry"):
            script.append(details[-1])
        if name == "send":
            client.send(details[0], auto_execute_tools=details[1])
        elif name == "retry":
            client.retry(auto_execute_tools=True)
        elif name == "read":
            for _ in range(details[1]):
                next(getattr(client, details[0])(), None)
        elif name == "read to the end":
            list(getattr(client, details[0])())
        elif name == "answer":
            ids = [block.id for message in history for block in message.calls]
            client.add_tool_result(ids[-1 - details[0]] if details[0] < len(ids) else "none", {"n": details[0]})
        elif name == "insert":
            history.insert(max(0, len(history) - details[0]), details[1])
        elif name == "delete":
            history[:] = [message for place, message in enumerate(history) if place != len(history) - 1 - details[0]]
        elif name == "truncate":
            client.history = truncate_messages(history, details[0])
        elif name == "tool":
            self.tool = details[0]
        else:
            {"interrupt": client.interrupt, "clear": client.clear_history, "close": client.close}[name]()


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_whatever_was_done_the_next_request_is_accepted(protocol):
    """Promise 1; harness.md 7.13, hist-03, hist-06."""
    script = []
    with ScriptedServer(lambda request: script.pop() if script else "more", repeat=True) as server:

        @settings(max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(STEPS, max_size=14))
        def check(steps):
            use = Use(server, protocol)
            for step in steps:
                try:
                    use.step(script, *step)
                except (AgentError, KeyboardInterrupt):
                    pass
            script.clear()
            assert use.client.ask("the end") == "more"
            assert use.client.history[-2:] == [Message.user("the end"), Message.assistant("more")]
            assert server.complaints == []
            use.client.close()

        check()
