"""What may be sent: prompts and attachments, asking again, going on, answering calls."""

import base64

import pytest

from openagent import APIError, ConfigError, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock
from openagent.testing import answer, call, failure

Q = Message.user("q")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
CALLS = answer(calls=[call("look", id="c1"), call("look", id="c2")])


def heard(client):
    return [block.text if isinstance(block, TextBlock) else block.id for block in client.receive()]


def test_attachments_follow_the_prompt(serve, connect, tmp_path):
    """design.md 3; 4.1 #2."""
    path = tmp_path / "cat.png"
    path.write_bytes(PNG)
    server = serve("Cats.", "A cat.")
    client = connect(server)
    blocks = ImageBlock("https://h/cat.png", "low"), TextBlock("and this")
    client.ask("What are they?", *blocks, "https://h/dog.png", path)
    picture = ImageBlock(f"data:image/png;base64,{base64.b64encode(PNG).decode()}")
    message = Message.user("What are they?", *blocks, ImageBlock("https://h/dog.png"), picture)
    assert client.history == [message, Message.assistant("Cats.")]
    client.ask("", picture)
    assert client.history[2] == Message("user", [picture])
    assert [part["type"] for part in server.requests[0].body["messages"][0]["content"]] == [
        "text",
        "image_url",
        "text",
        "image_url",
        "image_url",
    ]


@pytest.mark.parametrize("wrong", [5, None, "nothing.png", b"bytes"])
def test_a_wrong_attachment_is_refused_before_any_request(serve, connect, wrong):
    """Promise 7."""
    client = connect(serve())
    with pytest.raises(ConfigError):
        client.send("q", wrong)
    with pytest.raises(ConfigError, match="prompt"):
        client.send(wrong if wrong != "nothing.png" else ["q"])
    assert client.history == []


# Asking again


def test_an_equal_prompt_that_was_not_answered_is_not_appended_twice(serve, connect):
    """design.md 3 (R-10, R-14 [Q]); hist-08, life-06: a cell is run again after a failure."""
    client = connect(serve(failure(500), failure(500), "a", "b", "c"))
    for _ in range(2):
        with pytest.raises(APIError):
            client.ask("q")
        assert client.history == [Q]
    assert (client.ask("q"), client.history) == ("a", [Q, Message.assistant("a")])
    assert client.ask("q") == "b"
    client.send_message(Q)
    assert heard(client) == ["c"]
    assert client.history == [Q, Message.assistant("a"), Q, Message.assistant("b"), Q, Message.assistant("c")]


def test_another_prompt_after_a_failure_is_appended(serve, connect):
    """R-15."""
    client = connect(serve(failure(500), "a"))
    with pytest.raises(APIError):
        client.ask("q")
    client.ask("q", "https://h/cat.png")
    assert client.history[:2] == [Q, Message.user("q", ImageBlock("https://h/cat.png"))]


def test_retry_asks_the_last_question_again(serve, connect):
    """design.md 3: the answer with all its rounds goes, an unanswered prompt is simply sent."""
    server = serve("a", CALLS, "b", "c", failure(500), "d")
    client = connect(server)
    client.ask("q")
    client.send("r")
    for id in heard(client):
        client.add_tool_result(id, "ok")
    client.ask("")
    assert len(client.history) == 8
    client.retry()
    assert heard(client) == ["c"]
    assert client.history == [Q, Message.assistant("a"), Message.user("r"), Message.assistant("c")]
    with pytest.raises(APIError):
        client.retry()
    client.retry()
    assert heard(client) == ["d"]
    assert client.history == [Q, Message.assistant("a"), Message.user("r"), Message.assistant("d")]
    assert server.requests[3].body["messages"] == server.requests[5].body["messages"]


def test_results_in_a_user_message_are_no_question(serve, connect):
    """design.md 3, R-42: as a history of the seed has them."""
    client = connect(serve("b"))
    turn = Message.assistant(ToolUseBlock("c1", "look", {}))
    client.history = [Q, turn, Message("user", [ToolResultBlock("c1", "ok")]), Message.user(""), Message.assistant("a")]
    client.retry()
    assert (heard(client), client.history) == (["b"], [Q, Message.assistant("b")])


def test_there_must_be_something_to_retry(serve, connect):
    """Promise 7."""
    client = connect(serve())
    for history in ([], [Message.system("S")], [Message.user("")]):
        client.history = history
        with pytest.raises(ConfigError, match="nothing to retry"):
            client.retry()


# Going on


def test_an_empty_prompt_goes_on_only_where_there_is_something_to_go_on_with(serve, connect):
    """design.md 3 (R-16 [Q])."""
    client = connect(serve("Hello"))
    for _ in range(2):
        with pytest.raises(ConfigError, match="nothing to go on with"):
            client.send("")
        if not client.history:
            client.ask("q")
    assert client.history == [Q, Message.assistant("Hello")]


def test_an_empty_prompt_goes_on_after_results_failures_and_pauses(serve, connect):
    """design.md 3, 7.15: the empty message is kept in the history and never reaches the wire."""
    server = serve(CALLS, failure(500), answer("hm", finish="pause_turn"), "done")
    client = connect(server)
    client.send("q")
    for id in heard(client):
        client.add_tool_result(id, "ok")
    with pytest.raises(APIError):
        client.ask("")
    assert [client.ask(""), client.ask("")] == ["hm", "done"]
    assert [message.text for message in client.history if message.role == "user"] == ["q", "", ""]
    assert all(
        message.get("content") != "" or message.get("tool_calls") for message in server.requests[3].body["messages"]
    )


@pytest.mark.parametrize("message", [Message.user(""), Message("user", []), Message.tool_result("c1", "ok")])
def test_an_empty_conversation_is_not_sent(serve, connect, message):
    """Promise 7."""
    client = connect(serve())
    with pytest.raises(ConfigError, match="nothing to send"):
        client.send_message(message)
    assert client.history == []


# Answering calls


def test_a_result_needs_an_open_call(serve, connect):
    """design.md 3 (R-30 [Q])."""
    client = connect(serve(CALLS, "a"))
    for id in ("c1", None):
        with pytest.raises(ConfigError, match=f"no open call with the id {id!r}"):
            client.add_tool_result(id, "ok")
    client.send("q")
    heard(client)
    client.add_tool_result("c1", "ok")
    for id in ("c1", "c3", "look"):
        with pytest.raises(ConfigError, match=f"no open call with the id {id!r}"):
            client.add_tool_result(id, "ok")
    client.ask("")
    with pytest.raises(ConfigError, match="'c2'"):
        client.add_tool_result("c2", "ok")


def test_results_may_be_sent_as_a_message(serve, connect):
    """R-11, hist-03: a message of one's own that answers the open calls."""
    client = connect(serve(CALLS, "a"))
    client.send("q")
    heard(client)
    results = Message("tool", [ToolResultBlock("c2", 2), ToolResultBlock("c1", 1)])
    client.send_message(results)
    assert heard(client) == ["a"]
    assert client.history[2:] == [results, Message.assistant("a")]


ODD = [{1, 2}, b"\xff", float("nan"), None, object(), "", "\ud83d"]


@pytest.mark.parametrize("content", ODD, ids=repr)
def test_whatever_a_result_is_it_can_be_sent(serve, connect, content):
    """tool-01, B-4."""
    client = connect(serve(CALLS, "a"))
    client.send("q")
    for id in heard(client):
        client.add_tool_result(id, content)
    assert client.ask("") == "a"
