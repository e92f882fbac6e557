"""Running one call: timeouts, images and huge values in results, masking."""

import threading

import pytest

from openagent import CallFinished, CallStarted, ConfigError, ImageBlock, RoundFinished, TextBlock, ToolUseBlock, tool
from openagent.running import masked, run
from openagent.testing import answer, call

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = ImageBlock.from_base64(PIXEL)
AS_DICT = {"type": "image", "url": IMAGE.url, "detail": "auto"}


def result_of(made, **input):
    return run(made, ToolUseBlock("c1", made.name, input))


def returning(value, **manner):
    @tool(**manner)
    def fetch():
        return value

    return fetch


# Timeout


def test_a_call_that_takes_too_long_is_answered_and_its_thread_lives_on():
    go = threading.Event()
    ended = threading.Event()

    @tool(timeout=0.02)
    def wait():
        go.wait(5)
        ended.set()

    result = result_of(wait)
    told = "timed out after 0.02 s; it cannot be stopped and may still be running, so it may yet have effects"
    assert (result.is_error, result.content["error"], ended.is_set()) == (True, told, False)
    go.set()
    assert ended.wait(5)


def test_a_call_that_ends_in_time_is_as_without_a_timeout():
    @tool(timeout=30)
    def half(of: int) -> float:
        if of == 0:
            raise ZeroDivisionError("of what?")
        return of / 2

    assert result_of(half, of=3).content == 1.5
    assert result_of(half, of=0).content["error"] == "ZeroDivisionError: of what?"


def test_what_a_tool_with_a_timeout_means_to_pass_passes():
    @tool(timeout=30)
    def leave():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        result_of(leave)


# Huge values


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("abcdefghij", "abcdefghij"),
        ("abcdefghijk", "abcdefghij\n[cut: these are the first 10 of 11 characters]"),
        ([1, 2, 3, 4], "[1,2,3,4]\n".strip()),
        ([10, 20, 30, 40], "[10,20,30,\n[cut: these are the first 10 of 13 characters]"),
        (12345678901234, 12345678901234),
    ],
)
def test_a_result_is_cut_where_the_tool_says(value, content):
    expected = [1, 2, 3, 4] if content == "[1,2,3,4]" else content
    assert result_of(returning(value, max_result_chars=10)).content == expected


def test_a_result_is_cut_after_a_hundred_thousand_characters_by_default():
    content = result_of(returning("x" * 100_001)).content
    assert content == "x" * 100_000 + "\n[cut: these are the first 100000 of 100001 characters]"


def test_the_text_of_an_exception_is_cut_too():
    @tool(max_result_chars=10)
    def fail():
        raise ValueError("x" * 50)

    told = f"ValueError: {'x' * 10}\n[cut: these are the first 10 of 50 characters]"
    assert result_of(fail).content["error"] == told


# Images


@pytest.mark.parametrize(
    ("value", "content"),
    [(IMAGE, [AS_DICT]), (["A dot:", IMAGE, TextBlock("!"), 5], ["A dot:", AS_DICT, "!", 5])],
)
def test_an_image_in_a_result_is_kept_as_json(value, content):
    assert result_of(returning(value)).content == content


SOURCE = {"type": "base64", "media_type": "image/png", "data": PIXEL}
NOTE = "A dot:\n[an image (image/png), which cannot be shown here]"
ON_THE_WIRE = {
    "openai-chat": lambda body: body["messages"][2]["content"],
    "openai-responses": lambda body: body["input"][2]["output"],
    "anthropic": lambda body: body["messages"][2]["content"][0]["content"],
}
SHOWN = {
    "openai-chat": NOTE,
    "openai-responses": [
        {"type": "input_text", "text": "A dot:"},
        {"type": "input_image", "image_url": IMAGE.url, "detail": "auto"},
    ],
    "anthropic": [{"type": "text", "text": "A dot:"}, {"type": "image", "source": SOURCE}],
}


@pytest.mark.parametrize("protocol", SHOWN)
def test_an_image_goes_to_the_wires_that_take_it_and_a_note_to_the_others(serve, connect, protocol):
    server = serve(answer(calls=[call("fetch", {}, id="c1")]), "A dot.")
    tools = [returning(["A dot:", IMAGE])]
    client = connect(server, protocol=protocol, tools=tools, auto_execute_tools=True)
    assert client.ask("What is it?") == "A dot."
    assert ON_THE_WIRE[protocol](server.requests[1].body) == SHOWN[protocol]


def test_a_dict_that_only_looks_like_an_image_stays_json(serve, connect):
    value = {"type": "image", "url": "somewhere", "detail": "auto"}
    server = serve(answer(calls=[call("fetch", {}, id="c1")]), "Fine.")
    client = connect(server, protocol="anthropic", tools=[returning(value)], auto_execute_tools=True)
    assert client.ask("q") == "Fine."
    told = server.requests[1].body["messages"][2]["content"][0]["content"]
    assert told == '{"type":"image","url":"somewhere","detail":"auto"}'


# Masking


@tool(sensitive=("password",))
def login(user: str, password: str) -> str:
    """Log in."""
    return f"{user}: {len(password)}"


def test_sensitive_arguments_are_masked_in_events_and_reach_the_tool(serve, connect):
    server = serve(answer(calls=[call("login", {"user": "ann", "password": "hush"}, id="c1")]), "Done.")
    client = connect(server, tools=[login], auto_execute_tools=True)
    client.send("q")
    events = list(client.events())
    shown = ToolUseBlock("c1", "login", {"user": "ann", "password": "***"})
    assert [event.call for event in events if isinstance(event, (CallStarted, CallFinished))] == [shown, shown]
    assert [event.message.calls for event in events if isinstance(event, RoundFinished)] == [[shown], []]
    assert "hush" not in repr(events)
    assert client.history[1].calls == [ToolUseBlock("c1", "login", {"user": "ann", "password": "hush"})]
    assert client.history[2].results[0].content == "ann: 4"


def test_an_error_that_quotes_a_sensitive_argument_is_masked_in_events_only(serve, connect):
    @tool(sensitive=["pin"])
    def pay(pin: int) -> None:
        """Pay."""
        raise ValueError(f"bad pin {pin}")

    calls = [call("pay", {"pin": "hunter2"}, id="c1"), call("pay", {"pin": 4711}, id="c2")]
    client = connect(serve(answer(calls=calls), "Done."), tools=[pay], auto_execute_tools=True)
    client.send("q")
    results = [event.result.content["error"] for event in client.events() if isinstance(event, CallFinished)]
    assert results == ['invalid arguments: pin: expected integer, got "***"', "ValueError: bad pin ***"]
    assert ["hunter2" in str(client.history[2]), "4711" in str(client.history[3])] == [True, True]


def test_raw_arguments_of_a_sensitive_tool_are_masked_whole():
    block = ToolUseBlock("c1", "login", {}, '{"password": "hush', "no JSON")
    assert masked(login, block) == ToolUseBlock("c1", "login", {}, "***", "no JSON")
    assert masked(None, block) == block


WRONG = [
    ({"timeout": 0}, "timeout 0 of tool 'fetch' must be seconds above 0"),
    ({"timeout": "5"}, "timeout '5' of tool 'fetch' must be seconds above 0"),
    ({"max_result_chars": 0}, "max_result_chars 0 of tool 'fetch' must be a whole number above 0"),
    ({"sensitive": "key"}, "sensitive 'key' of tool 'fetch' must be names of parameters"),
    ({"sensitive": ["key"]}, "sensitive 'key' is no parameter of tool 'fetch'"),
    ({"sequential": 1}, "sequential 1 of tool 'fetch' must be True or False"),
    ({"approve": True}, "approve True of tool 'fetch' cannot be called"),
    (
        {"retries": 3},
        "tool() takes no 'retries'; it takes timeout, max_result_chars, sensitive, sequential, approve, strict",
    ),
]


@pytest.mark.parametrize(("manner", "told"), WRONG)
def test_a_wrong_manner_is_refused(manner, told):
    with pytest.raises(ConfigError) as caught:
        returning(1, **manner)
    assert str(caught.value) == told


def test_a_builder_takes_the_manner_when_it_builds():
    assert tool("a", "b").build(print, timeout=3).timeout == 3
    with pytest.raises(ConfigError, match=r"give 'timeout' of tool 'a' to its build\(\)"):
        tool("a", "b", timeout=3)
