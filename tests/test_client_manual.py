"""A client that leaves the calls to the caller: send, receive, answer, go on."""

import pytest

from openagent import (
    AgentError,
    APIError,
    ConfigError,
    HookDecision,
    Hooks,
    ImageBlock,
    Message,
    PromptBlockedError,
    StreamInterruptedError,
    TextBlock,
    ToolUseBlock,
)
from openagent.client import ADAPTERS
from openagent.history import NOT_ANSWERED
from openagent.testing import answer, call, failure, raw

LOOK = {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
Q = Message.user("q")
C1, C2 = (ToolUseBlock(id, "look", {"at": id}) for id in ("c1", "c2"))
TWO_CALLS = answer(calls=[call("look", {"at": "c1"}, id="c1"), call("look", {"at": "c2"}, id="c2")])
HELLO = answer(chunk_text=["Hel", "lo"])


def heard(client):
    return [block.text if isinstance(block, TextBlock) else block for block in client.receive()]


def gave(id, content="ok"):
    return Message.tool_result(id, content)


def unanswered(id):
    return Message.tool_result(id, NOT_ANSWERED, is_error=True)


def messages_of(request):
    return request.body["messages"]


def test_text_comes_in_pieces_and_is_kept_as_one_message(serve, connect):
    """T-1; R-20, R-22, R-23, R-26, R-87, B-19: the model sees its own answers."""
    client = connect(serve(HELLO, "fine"))
    assert (heard(client), client.finish_reason) == ([], None)
    client.send("q")
    assert client.finish_reason is None
    assert heard(client) == ["Hel", "lo"]
    assert heard(client) == []
    assert (client.finish_reason, client.finish_reason.raw) == ("stop", "stop")
    assert client.history == [Q, Message.assistant("Hello")]
    client.send("r")
    assert client.finish_reason is None


def test_the_model_sees_the_whole_conversation(serve, connect):
    """B-19, R-17, B-72: with the system prompt, which is not in the history."""
    server = serve(HELLO, "fine")
    client = connect(server, system_prompt="S")
    client.ask("q")
    client.ask("r")
    assert messages_of(server.requests[1]) == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "r"},
    ]
    assert [message.role for message in client.history] == ["user", "assistant", "user", "assistant"]


def edited(history):
    history[1].content[0] = TextBlock("A2")


def exchanged(history):
    history[0] = Message.user("Q2")


def shortened(history):
    del history[:2]


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("change", [edited, exchanged, shortened, list.clear, lambda history: None])
def test_what_was_changed_between_two_turns_is_what_the_model_sees(serve, connect, protocol, change):
    """The history is the caller's, though most of a request is remembered from the one before."""
    server = serve(*"abcd")
    client = connect(server, protocol=protocol)
    for prompt in "pqr":
        client.ask(prompt)
    change(client.history)
    fresh = serve("d")
    other = connect(fresh, protocol=protocol)
    other.history = [Message(message.role, message.content) for message in client.history]
    assert (client.ask("s"), other.ask("s")) == ("d", "d")
    assert server.requests[-1].body == fresh.requests[-1].body
    assert client.history == other.history


def test_next_with_a_default_is_the_receive_of_the_seed(serve, connect):
    """design.md 3."""
    client = connect(serve(HELLO))
    client.send("q")
    blocks = [next(client.receive(), None) for _ in range(4)]
    assert blocks == [TextBlock("Hel"), TextBlock("lo"), None, None]


def test_a_receive_that_was_dropped_goes_on_where_it_stopped(serve, connect):
    """design.md 3: receive() has no state of its own; life-03."""
    client = connect(serve(answer(chunk_text=["a", "b", "c"])))
    client.send("q")
    first, second = client.receive(), client.receive()
    assert [next(first), next(second), next(first)] == [TextBlock("a"), TextBlock("b"), TextBlock("c")]
    assert list(second) == []
    assert client.history == [Q, Message.assistant("abc")]


def test_a_send_inside_the_loop_continues_in_the_same_loop(serve, connect):
    """design.md 3."""
    client = connect(serve(TWO_CALLS, "They are fine."))
    client.send("q")
    seen = []
    for block in client.receive():
        seen.append(block)
        if block == C2:
            client.add_tool_result("c1", "ok")
            client.add_tool_result("c2", "ok")
            client.send("")
    assert seen == [C1, C2, *map(TextBlock, ("They ", "are ", "fine."))]


def test_a_send_drops_what_was_still_coming(serve, connect):
    """T-2; R-15, B-21, B-24: the earlier prompt stays, its answer does not."""
    client = connect(serve(answer(chunk_text=["Hel", "lo"], delay=0.05), "x"))
    client.send("q")
    assert next(client.receive()) == TextBlock("Hel")
    client.send("r")
    assert heard(client) == ["x"]
    assert client.history == [Q, Message.user("r"), Message.assistant("x")]


def test_a_call_is_handed_out_once_its_turn_is_in_the_history(serve, connect):
    """Promise 2; R-20, B-58: in order, the reason known."""
    spoken = answer("I look. ", calls=[call("look", {"at": "c1"}, id="c1"), call("look", {"at": "c2"}, id="c2")])
    client = connect(serve(spoken), tools=[LOOK])
    client.send("q")
    for block in client.receive():
        if isinstance(block, ToolUseBlock):
            assert client.history == [Q, Message.assistant("I look. ", C1, C2)]
            assert client.finish_reason == "tool_calls"


def test_answered_calls_go_back_and_the_model_goes_on(serve, connect):
    """T-7 and the wire of its last request; R-16, R-33, R-34, B-9 to B-11, B-20, B-88."""
    server = serve(TWO_CALLS, "ok")
    client = connect(server, system_prompt="S", tools=[LOOK])
    client.send("q")
    assert heard(client) == [C1, C2]
    client.add_tool_result("c1", "ok")
    client.add_tool_result("c2", {"é": [1]})
    client.send("")
    assert heard(client) == ["ok"]
    turn = Message.assistant(C1, C2)
    assert client.history == [Q, turn, gave("c1"), gave("c2", {"é": [1]}), Message.user(""), Message.assistant("ok")]
    calls = [
        {"id": id, "type": "function", "function": {"name": "look", "arguments": f'{{"at":"{id}"}}'}}
        for id in ("c1", "c2")
    ]
    assert messages_of(server.requests[1]) == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "tool", "tool_call_id": "c2", "content": '{"é":[1]}'},
    ]


def test_calls_may_be_answered_while_they_are_handed_out(serve, connect):
    """T-8 as design.md has it: one turn with both calls."""
    client = connect(serve(TWO_CALLS, "ok"))
    client.send("q")
    for block in client.receive():
        client.add_tool_result(block.id, "ok")
    assert client.history == [Q, Message.assistant(C1, C2), gave("c1"), gave("c2")]
    assert client.ask("") == "ok"


def test_results_stand_in_the_order_of_their_calls(serve, connect):
    """design.md 3."""
    client = connect(serve(TWO_CALLS, "ok"))
    client.send("q")
    heard(client)
    client.add_tool_result("c2", "ok")
    client.add_tool_result("c1", "no", is_error=True)
    results = [Message.tool_result("c1", "no", is_error=True), gave("c2")]
    assert client.history == [Q, Message.assistant(C1, C2), *results]
    assert client.ask("") == "ok"


def test_an_unanswered_call_gets_an_error_when_the_next_request_is_built(serve, connect):
    """T-9 [Q], R-32 [Q], hist-03, promise 1."""
    client = connect(serve(TWO_CALLS, "ok", TWO_CALLS, "never mind"))
    client.send("q")
    assert next(client.receive()) == C1
    client.add_tool_result("c1", "ok")
    assert client.ask("") == "ok"
    first = [Q, Message.assistant(C1, C2), gave("c1"), unanswered("c2"), Message.user(""), Message.assistant("ok")]
    assert client.history == first
    client.send("again")
    heard(client)
    assert client.ask("stop") == "never mind"
    again = [Message.user("again"), Message.assistant(C1, C2), unanswered("c1"), unanswered("c2")]
    assert client.history == [*first, *again, Message.user("stop"), Message.assistant("never mind")]


SPOKEN = answer("I look.", calls=[call("look", id="c1"), call("look", id="c2")], chunk_text=["I ", "look."])


@pytest.mark.parametrize("taken", range(6))
@pytest.mark.parametrize("prompt", ["r", ""])
def test_the_loop_may_be_left_after_any_number_of_blocks(serve, connect, taken, prompt):
    """Promise 1, life-03: the strict server accepts the next request."""
    client = connect(serve(SPOKEN, "ok"))
    client.send("q")
    for _ in range(taken):
        next(client.receive(), None)
    assert client.ask(prompt) == "ok"
    assert client.history[-1] == Message.assistant("ok")


def test_a_broken_stream_is_raised_once_and_nothing_of_it_is_kept(serve, connect):
    """T-6; R-25, B-21, B-85, hist-09, promise 2: what was heard is on the error."""
    client = connect(serve(answer(chunk_text=["Hel", "lo"], cut=500), "fine"))
    client.send("q")
    with pytest.raises(StreamInterruptedError) as caught:
        heard(client)
    assert caught.value.blocks[0].text.startswith("Hel")
    assert (heard(client), client.finish_reason, client.history) == ([], None, [Q])
    assert client.ask("q") == "fine"
    assert client.history == [Q, Message.assistant("fine")]


def test_a_server_that_says_no_is_raised_by_send(serve, connect):
    """T-10; R-14: the prompt stays in the history, there is nothing to receive."""
    client = connect(serve(failure(500), failure(401)))
    for status in (500, 401):
        with pytest.raises(APIError) as caught:
            client.send("q")
        assert (caught.value.status, heard(client), client.history) == (status, [], [Q])


def test_an_empty_answer_is_no_message(serve, connect):
    """T-11, T-22; R-22, R-86, B-51."""
    client = connect(serve(answer(finish="unspecified", usage=None), "x"))
    client.send("q")
    assert heard(client) == []
    assert (client.finish_reason, client.finish_reason.raw, client.history) == ("unspecified", None, [Q])
    assert client.ask("r") == "x"
    assert client.history == [Q, Message.user("r"), Message.assistant("x")]


def test_only_done_is_an_answer_without_words(serve, connect):
    """T-11; design.md 7.1."""
    client = connect(serve(raw("data: [DONE]\n\n")))
    assert (client.ask("q"), client.finish_reason, client.history) == ("", "unspecified", [Q])


def test_a_blocked_prompt_is_neither_sent_nor_kept(serve, connect):
    """T-20; R-10, R-13: what the former turn left is still to be seen."""
    server = serve("Hello")
    client = connect(server)
    client.ask("q")
    client.options = client.options.replace(hooks=Hooks([], [], [lambda event: HookDecision.block("not now")]))
    with pytest.raises(PromptBlockedError, match="Prompt blocked by hook: not now"):
        client.send("r")
    assert client.history == [Q, Message.assistant("Hello")]
    assert (len(server.requests), client.finish_reason, heard(client)) == (1, "stop", [])


def test_a_message_of_ones_own_is_sent_without_prompt_hooks(serve, connect):
    """T-21; R-11, R-63, B-18."""
    server = serve("A cat.")
    client = connect(server, hooks=Hooks([], [], [lambda event: HookDecision.block()]))
    message = Message("user", [TextBlock("What is it?"), ImageBlock("https://h/cat.png")])
    client.send_message(message)
    assert heard(client) == ["A ", "cat."]
    assert client.history == [message, Message.assistant("A cat.")]
    for wrong in ("q", {"role": "user", "content": "q"}):
        with pytest.raises(ConfigError, match="must be a Message"):
            client.send_message(wrong)


def test_tools_and_tool_hooks_are_not_run(serve, connect):
    """R-27, R-63."""
    ran = []
    hooks = Hooks([ran.append], [ran.append])
    client = connect(serve(TWO_CALLS), tools=[LOOK | {"handler": ran.append}], hooks=hooks)
    client.send("q")
    assert heard(client) == [C1, C2]
    assert ran == []


def test_ask_names_the_calls_that_nobody_answered(serve, connect):
    """design.md 3."""
    client = connect(serve(TWO_CALLS, "ok"))
    with pytest.raises(AgentError, match="look, look"):
        client.ask("q")
    client.add_tool_result("c1", "ok")
    client.add_tool_result("c2", "ok")
    assert client.ask("") == "ok"


def test_a_truncated_call_is_shown_as_broken_and_the_model_is_told(serve, connect):
    """arg-05, design.md 7.2, promise 2."""
    cut = answer(
        "So ", calls=[call("look", '{"at":"c1', id="c1"), call("look", {"at": "c2"}, id="c2")], finish="length"
    )
    client = connect(serve(cut, cut, "ok"))
    client.send("q")
    assert [(block.text if isinstance(block, TextBlock) else bool(block.error)) for block in client.receive()] == [
        "So ",
        True,
        True,
    ]
    assert client.ask("r") == "So "
    assert (client.finish_reason.is_truncated, client.ask("s")) == (True, "ok")
    results = [block for message in client.history for block in message.results]
    assert [result.is_error for result in results] == [True] * 4
    assert results[1].content == {"error": "not run: the answer was cut by the output limit"}
