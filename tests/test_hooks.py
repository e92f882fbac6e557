"""The chains: who is asked, what each sees, what becomes of a decision."""

import dataclasses

import pytest

from openagent import (
    HOOK_POST_TOOL_USE,
    HOOK_PRE_TOOL_USE,
    HOOK_USER_PROMPT_SUBMIT,
    ConfigError,
    HookDecision,
    Hooks,
    Message,
    PostToolUseEvent,
    PreToolUseEvent,
    PromptBlockedError,
    Tool,
    ToolUseBlock,
    UserPromptSubmitEvent,
    query,
)
from openagent.hooks import ask
from openagent.testing import answer, call

Q = Message.user("q")
PROMPT = UserPromptSubmitEvent("q", ())
VALUE = {"type": "object", "properties": {"value": {"type": "number"}}}


def asked(*hooks, event=PROMPT):
    return ask(list(hooks), event, action="modify_prompt", changes="prompt")


def says(decision):
    return lambda event: decision


# The chain alone


def test_hooks_run_in_order_and_each_sees_what_the_ones_before_changed():
    """design.md 3 (replaces R-60): a modification goes on, "continue" ends nothing."""
    seen = []

    def decorate(event):
        seen.append(event.prompt)
        return HookDecision.modify_prompt(event.prompt + "!")

    chain = (decorate, says(HookDecision.continue_()), says(None), decorate)
    assert asked(*chain) == (UserPromptSubmitEvent("q!!", ()), None)
    assert seen == ["q", "q!"]


def test_the_first_block_ends_the_chain():
    """design.md 3."""
    seen = []
    block = HookDecision.block("no")
    event, decision = asked(says(HookDecision.modify_prompt("r")), says(block), seen.append)
    assert (event.prompt, decision, seen) == ("r", block, [])


def test_a_logger_that_says_continue_does_not_switch_a_guard_off():
    """design.md 3: in the seed it does."""
    assert asked(says(HookDecision.continue_()), says(HookDecision.block("no")))[1] == HookDecision.block("no")


WRONG = [
    ("yes", "must return None or a HookDecision"),
    (True, "must return None or a HookDecision"),
    (HookDecision.modify_input({}), "modify_input, which has no meaning here; modify_prompt has"),
    (HookDecision.modify_result(1), "modify_result, which has no meaning here"),
    (HookDecision.modify_prompt(5), "changed the prompt to 5; it must be a str"),
]


@pytest.mark.parametrize(("decision", "complaint"), WRONG)
def test_a_decision_that_makes_no_sense_names_the_hook(decision, complaint):
    """Promise 7: the seed ignores such fields (R-61)."""

    def my_hook(event):
        return decision

    with pytest.raises(ConfigError, match="hook my_hook ") as caught:
        asked(my_hook)
    assert complaint in str(caught.value)


def test_events_are_frozen_and_hooks_are_three_lists():
    """design.md 3; client.md 1.11."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        PROMPT.prompt = "r"
    hooks = Hooks().add_pre_tool_use(print).add_post_tool_use(repr).add_user_prompt_submit(str)
    assert hooks == Hooks([print], [repr], [str])
    names = (HOOK_PRE_TOOL_USE, HOOK_POST_TOOL_USE, HOOK_USER_PROMPT_SUBMIT)
    assert names == ("pre_tool_use", "post_tool_use", "user_prompt_submit")


# In a run


def test_three_calls_pass_through_both_chains(serve, connect):
    """client.md 5.3 as design.md replaces it: a changed input goes on, a block ends the chain, results go on."""
    ran, third, posts = [], [], []

    def calculate(arguments):
        ran.append(arguments)
        return {"result": arguments["value"] * 2}

    def failing(arguments):
        raise ValueError("out of order")

    tools = [
        Tool("blocked", "", {}, ran.append),
        Tool("calculate", "", VALUE, calculate),
        Tool("failing", "", {}, failing),
    ]
    hooks = (
        Hooks()
        .add_pre_tool_use(lambda event: HookDecision.block("denied") if event.tool_name == "blocked" else None)
        .add_pre_tool_use(lambda event: HookDecision.modify_input({"value": 100}) if event.tool_input else None)
        .add_pre_tool_use(lambda event: third.append((event.tool_name, event.tool_input)))
        .add_post_tool_use(lambda event: HookDecision.modify_result(event.tool_result | {"handled": True}))
        .add_post_tool_use(posts.append)
    )
    calls = [call("blocked", id="c1"), call("calculate", {"value": 500}, id="c2"), call("failing", id="c3")]
    server = serve(answer(calls=calls), "done")
    client = connect(server, tools=tools, hooks=hooks, auto_execute_tools=True)
    client.send("q")
    assert [block.text for block in client.receive()] == ["done"]
    assert ran == [{"value": 100}]
    assert third == [("calculate", {"value": 100}), ("failing", {})]
    results = [
        {
            "error": "Tool execution blocked by hook",
            "reason": "denied",
            "tool": "blocked",
            "id": "c1",
            "handled": True,
        },
        {"result": 200, "handled": True},
        {"error": "ValueError: out of order", "tool": "failing", "id": "c3", "handled": True},
    ]
    assert [(event.tool_input, event.tool_result, event.is_error) for event in posts] == [
        ({}, results[0], True),
        ({"value": 100}, results[1], False),
        ({}, results[2], True),
    ]
    turn = Message.assistant(
        ToolUseBlock("c1", "blocked", {}),
        ToolUseBlock("c2", "calculate", {"value": 500}),
        ToolUseBlock("c3", "failing", {}),
    )
    kept = [
        Message.tool_result(id, result, is_error=id != "c2")
        for id, result in zip(("c1", "c2", "c3"), results, strict=True)
    ]
    assert client.history == [Q, turn, *kept, Message.assistant("done")]
    sent = [message["tool_call_id"] for message in server.requests[1].body["messages"] if message["role"] == "tool"]
    assert sent == ["c1", "c2", "c3"]


def test_hooks_see_the_conversation_up_to_them(serve, connect):
    """B-30, B-31, R-62, R-50: messages, with the open turn, the results before, the unmodified result."""
    seen = []

    def see(event):
        seen.append(event)
        return HookDecision.modify_result("changed") if isinstance(event, PostToolUseEvent) else None

    hooks = Hooks([see], [see], [see])
    calls = [call("look", id="c1"), call("look", id="c2")]
    look = Tool("look", "", {}, lambda arguments: "seen")
    client = connect(serve(answer(calls=calls), "done"), tools=[look], hooks=hooks, auto_execute_tools=True)
    client.ask("q")
    turn = Message.assistant(ToolUseBlock("c1", "look", {}), ToolUseBlock("c2", "look", {}))
    first, second = (Message.tool_result(id, "seen") for id in ("c1", "c2"))
    kept = Message.tool_result("c1", "changed")
    assert seen == [
        UserPromptSubmitEvent("q", ()),
        PreToolUseEvent("look", {}, "c1", (Q, turn)),
        PostToolUseEvent("look", {}, "c1", "seen", False, (Q, turn, first)),
        PreToolUseEvent("look", {}, "c2", (Q, turn, kept)),
        PostToolUseEvent("look", {}, "c2", "seen", False, (Q, turn, kept, second)),
    ]


def test_a_block_after_the_tool_replaces_the_result_by_an_error(serve, connect):
    """design.md 3: in the seed it has no effect (R-50.7 [Q])."""
    look = Tool("look", "", {}, lambda arguments: "the password is swordfish")
    hooks = Hooks().add_post_tool_use(says(HookDecision.block("secret")))
    server = serve(answer(calls=[call("look", id="c1")]), "done")
    client = connect(server, tools=[look], hooks=hooks, auto_execute_tools=True)
    client.ask("q")
    blocked = {"error": "Tool execution blocked by hook", "reason": "secret", "tool": "look", "id": "c1"}
    assert client.history[2] == Message.tool_result("c1", blocked, is_error=True)
    assert "swordfish" not in str(server.requests[1].body)


def test_a_changed_input_is_validated_too(serve, connect):
    """design.md 3: arguments are validated before the handler sees them; R-147 [Q]."""
    ran = []
    hooks = Hooks().add_pre_tool_use(says(HookDecision.modify_input({"value": "much"})))
    calculate = Tool("calculate", "", VALUE, ran.append)
    script = answer(calls=[call("calculate", {"value": 1}, id="c1")]), "done"
    client = connect(serve(*script), tools=[calculate], hooks=hooks, auto_execute_tools=True)
    assert (client.ask("q"), ran) == ("done", [])
    assert client.history[2].results[0].is_error


def test_a_hook_or_a_tool_that_edits_its_input_does_not_edit_the_history(serve, connect):
    """R-50.3, R-60: the history keeps what the model said."""
    hooks = Hooks().add_pre_tool_use(lambda event: event.tool_input["values"].append(2))
    total = Tool("total", "", {}, lambda arguments: arguments["values"].append(3) or sum(arguments["values"]))
    script = answer(calls=[call("total", {"values": [1]}, id="c1")]), "done"
    client = connect(serve(*script), tools=[total], hooks=hooks, auto_execute_tools=True)
    client.ask("q")
    assert client.history[1:3] == [
        Message.assistant(ToolUseBlock("c1", "total", {"values": [1]})),
        Message.tool_result("c1", 6),
    ]


def test_prompt_hooks_run_for_the_callers_prompts_only(serve, connect):
    """R-63, R-46 [Q], design.md 7.7: not between rounds, not for "", not for query()."""
    seen = []
    hooks = Hooks().add_user_prompt_submit(lambda event: seen.append(event.prompt))
    look = Tool("look", "", {}, lambda arguments: "seen")
    round_trip = answer(calls=[call("look")])
    client = connect(serve(round_trip, "a", "b"), tools=[look], hooks=hooks, auto_execute_tools=True)
    client.ask("q")
    client.send_message(Message.user("r"))
    assert seen == ["q"]
    manual = connect(serve(round_trip, "done"), tools=[look], hooks=hooks)
    manual.send("s")
    for block in manual.receive():
        manual.add_tool_result(block.id, "seen")
    assert (manual.ask(""), seen) == ("done", ["q", "s"])
    list(query("t", manual.options.replace(base_url=serve("x").url)))
    assert seen == ["q", "s"]


def test_a_prompt_hook_changes_what_is_sent_and_kept(serve, connect):
    """R-10, R-61."""
    server = serve("Hello")
    client = connect(server, hooks=Hooks().add_user_prompt_submit(says(HookDecision.modify_prompt("Q?"))))
    client.ask("q")
    assert client.history == [Message.user("Q?"), Message.assistant("Hello")]
    assert server.requests[0].body["messages"] == [{"role": "user", "content": "Q?"}]


class Bug(Exception):
    """The user's own."""


@pytest.mark.parametrize("point", [HOOK_PRE_TOOL_USE, HOOK_POST_TOOL_USE])
def test_an_exception_in_a_tool_hook_surfaces_unchanged_and_the_history_is_whole(serve, connect, point):
    """life-08, R-64 [Q], promise 1: not wrapped, not retried."""

    def broken(event):
        raise Bug("in the hook")

    calls = [call("look", id="c1"), call("look", id="c2")]
    server = serve(answer(calls=calls), "fine")
    look = Tool("look", "", {}, lambda arguments: "seen")
    client = connect(server, tools=[look], hooks=Hooks(**{point: [broken]}), auto_execute_tools=True)
    client.send("q")
    with pytest.raises(Bug, match="in the hook"):
        list(client.receive())
    assert (list(client.receive()), len(server.requests)) == ([], 1)
    assert [result.tool_use_id for message in client.history for result in message.results] == ["c1", "c2"]
    assert client.ask("r") == "fine"


def test_an_exception_in_a_prompt_hook_leaves_everything_as_it_was(serve, connect):
    """life-08."""

    def broken(event):
        raise Bug("in the hook")

    server = serve("Hello")
    client = connect(server, hooks=Hooks().add_user_prompt_submit(broken))
    with pytest.raises(Bug):
        client.send("q")
    assert (client.history, server.requests) == ([], [])
    client.options = client.options.replace(hooks=None)
    assert client.ask("q") == "Hello"


def test_a_blocked_prompt_says_why(serve, connect):
    """T-20, R-10."""
    for reason in ("no", ""):
        client = connect(serve(), hooks=Hooks().add_user_prompt_submit(says(HookDecision.block(reason))))
        with pytest.raises(PromptBlockedError) as caught:
            client.stream("q")
        assert (str(caught.value), client.history) == (f"Prompt blocked by hook: {reason}", [])
