"""One contract, three adapters: whole conversations, with tools, across providers and through a file."""

import itertools
import json

import pytest

from openagent import CallFinished, Message, TextBlock, Tool, ToolResultBlock, ToolUseBlock
from openagent.client import ADAPTERS
from openagent.messages import block_from_dict, block_to_dict
from openagent.testing import answer, call

PAIRS = list(itertools.product(ADAPTERS, ADAPTERS))
COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
DOUBLE = Tool("double", "Doubles.", COUNT, lambda arguments: 2 * arguments["n"])
SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}  # a member of a call, on the Chat wire only
# What only the provider that thought it may see: the thought, and the seals of the scripted server.
STATE = ("First think", "thought_signature", "c2lnbmF0dXJl", "ZW5jcnlwdGVk")


def turn(*numbers, text=""):
    calls = [call("double", {"n": n}, id=f"c{n}", extra=SIGNED) for n in numbers]
    return answer(text, calls=calls, reasoning=f"First think of {numbers}")


def rounds():
    return (
        turn(1, 2, text="Two first."),
        turn(3),
        turn(4, 5, 6, text="The rest."),
        answer("All done.", reasoning="First think"),
    )


def spoken(text, *numbers):
    calls = [ToolUseBlock(f"c{n}", "double", {"n": n}) for n in numbers]
    results = [Message("tool", [ToolResultBlock(f"c{n}", 2 * n)]) for n in numbers]
    return [Message("assistant", [*([TextBlock(text)] if text else []), *calls]), *results]


CONVERSATION = [Message.user("Double!"), *spoken("Two first.", 1, 2), *spoken("", 3), *spoken("The rest.", 4, 5, 6)]
CONVERSATION += spoken("All done.")


def without_state(history):
    bare = [[block_to_dict(block) | {"provider_state": None} for block in message.content] for message in history]
    return [
        Message(message.role, list(map(block_from_dict, content)))
        for message, content in zip(history, bare, strict=True)
    ]


def by_hand(client, prompt, step=lambda client: client):
    """The conversation as a caller leads it in manual mode; ``step`` may go on with another client."""
    client.send(prompt)
    while calls := [block for block in client.receive() if isinstance(block, ToolUseBlock)]:
        client = step(client)
        for made in calls:
            client.add_tool_result(made.id, client.tools[made.name].execute(made.input))
            client = step(client)
        client.send("")
    return step(client)


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("is_auto", [True, False])
def test_three_rounds_of_tools_are_the_same_on_every_wire(serve, connect, protocol, is_auto):
    server = serve(*rounds())
    client = connect(server, protocol=protocol, tools=[DOUBLE], auto_execute_tools=is_auto)
    if is_auto:
        assert "".join(client.stream("Double!")) == "Two first.\n\nThe rest.\n\nAll done."
        assert (client.usage.input_tokens, client.usage.output_tokens) == (28, 20)
    else:
        client = by_hand(client, "Double!")
        assert (client.usage.input_tokens, client.usage.output_tokens) == (7, 5)
    assert [message for message in without_state(client.history) if message != Message.user("")] == CONVERSATION
    assert (client.finish_reason, len(server.requests)) == ("stop", 4)
    sent = server.requests[-1].raw.decode()
    assert sent.count("First think") == 3  # what it thought in each round is sent back
    assert sent.count("thought_signature") == (6 if protocol == "openai-chat" else 0)


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_the_events_of_the_rounds_are_the_same_on_every_wire(serve, connect, protocol):
    client = connect(serve(*rounds()), protocol=protocol, tools=[DOUBLE], auto_execute_tools=True)
    client.send("Double!")
    told = list(client.events())
    assert [type(event).__name__ for event in told if type(event).__name__ != "TextDelta"] == [
        *["CallAnnounced"] * 2,
        *["CallStarted", "CallFinished"] * 2,
        "RoundFinished",
        *["CallAnnounced", "CallStarted", "CallFinished"],
        "RoundFinished",
        *["CallAnnounced"] * 3,
        *["CallStarted", "CallFinished"] * 3,
        "RoundFinished",
        "RoundFinished",
        "RunFinished",
    ]
    assert [event.result.content for event in told if isinstance(event, CallFinished)] == [2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_the_last_round_offers_no_tools_on_any_wire(serve, connect, protocol):
    server = serve(turn(1), turn(2), "That is all.")
    client = connect(server, protocol=protocol, tools=[DOUBLE], auto_execute_tools=True, max_tool_iterations=2)
    assert client.ask("Double!", system_prompt="Be brief.") == "That is all."
    assert client.finish_reason == "max_tool_iterations"
    told = [b"Answer as well as you can" in request.raw for request in server.requests]
    offered = [
        request.body.get("tool_choice") != {"type": "none"} and "tools" in request.body for request in server.requests
    ]
    assert (told, offered) == ([False, False, True], [True, True, False])


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_conversation_goes_on_with_any_other_provider_and_no_state_crosses(serve, connect, one, other):
    here, there = serve(turn(1), "One.", turn(3), "Three."), serve(turn(2), "Two.")
    client = connect(here, protocol=one, tools=[DOUBLE], auto_execute_tools=True, api_key="the-one-key")
    home = client.options
    assert client.ask("Double 1") == "One."
    client.options = client.options.replace(protocol=other, base_url=there.url)
    assert client.ask("Double 2") == "Two."
    first, second = [request.raw.decode() for request in there.requests]
    assert [state for state in (*STATE, "the-one-key") if state in first] == []
    assert "(1,)" not in second
    assert "First think of (2,)" in second
    client.options = home
    assert client.ask("Double 3") == "Three."
    sent = here.requests[2].raw.decode()
    assert ("First think of (1,)" in sent, "(2,)" in sent) == (True, False)
    expected = []
    for n, word in enumerate(("One.", "Two.", "Three."), 1):
        expected += [Message.user(f"Double {n}"), *spoken("", n), *spoken(word)]
    assert without_state(client.history) == expected


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_provider_may_change_while_calls_are_open(serve, connect, one, other):
    client = connect(serve(turn(1, 2, text="Now:")), protocol=one, tools=[DOUBLE])
    client.send("Double!")
    assert [block.id for block in client.receive() if isinstance(block, ToolUseBlock)] == ["c1", "c2"]
    there = serve("Done.")
    client.options = client.options.replace(protocol=other, base_url=there.url, reasoning_effort="low")
    client.add_tool_result("c2", 4)
    client.add_tool_result("c1", 2)
    assert client.ask("") == "Done."
    assert [state for state in STATE if state in there.requests[0].raw.decode()] == []
    assert without_state(client.history)[:4] == [Message.user("Double!"), *spoken("Now:", 1, 2)]


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_one_host_with_two_wires_gets_the_state_of_each_on_its_own(serve, connect, protocol):
    server = serve(turn(1), "One.", *["Yes."] * 3)
    client = connect(server, protocol=protocol, tools=[DOUBLE], auto_execute_tools=True)
    client.ask("Double 1")
    knew = {}
    for wire in ADAPTERS:
        client.ask("Sure?", protocol=wire)
        knew[wire] = "First think" in server.requests[-1].raw.decode()
    assert knew == {wire: wire == protocol for wire in ADAPTERS}


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_history_saved_after_every_step_goes_on_with_the_very_same_requests(serve, connect, protocol):
    kept, saved = serve(*rounds(), "Bye."), serve(*rounds(), "Bye.")

    def reloaded(client):
        text = json.dumps([message.to_dict() for message in client.history])
        other = connect(saved, protocol=protocol, tools=[DOUBLE])
        other.history = [Message.from_dict(item) for item in json.loads(text)]
        assert other.history == client.history
        return other

    client = by_hand(connect(kept, protocol=protocol, tools=[DOUBLE]), "Double!")
    other = by_hand(connect(saved, protocol=protocol, tools=[DOUBLE]), "Double!", reloaded)
    assert (client.ask("And?"), other.ask("And?")) == ("Bye.", "Bye.")
    # The provider of the state is known by its address, and these are two.
    assert [request.body for request in saved.requests] == [request.body for request in kept.requests]
    assert saved.requests[-1].raw.decode().count("First think") == 4
