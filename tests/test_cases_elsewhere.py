"""The cases without a fixture: where each is tested, and here what the tests of no room prove over a socket."""

import ast
import json
from collections import Counter
from pathlib import Path

import pytest

from openagent import APIError, ConfigError, ImageBlock, Message, TextBlock, Tool, tool
from openagent.client import ADAPTERS
from openagent.testing import answer, call, failure, raw

HERE = Path(__file__).parent
ELSEWHERE = json.loads((HERE / "cases" / "elsewhere.json").read_text(encoding="utf-8"))
AREAS = {
    "sse": 21,
    "chat": 8,
    "tc": 14,
    "arg": 10,
    "rsn": 4,
    "use": 1,
    "ant": 11,
    "rsp": 10,
    "err": 7,
    "http": 6,
    "hist": 6,
    "life": 5,
    "tool": 4,
    "img": 2,
}


def test_every_case_has_a_fixture_or_a_place_in_the_list():
    """Issue 4.1: 109 cases, 80 of them with a fixture."""
    fixtures = [path.stem for path in (HERE / "cases").glob("*-*.json")]
    assert Counter(id.partition("-")[0] for id in [*fixtures, *ELSEWHERE]) == AREAS
    assert (len(fixtures), len(ELSEWHERE), len({*fixtures, *ELSEWHERE})) == (80, 29, 109)


@pytest.mark.parametrize("id", ELSEWHERE)
def test_every_test_that_the_list_names_exists(id):
    assert ELSEWHERE[id]
    for node in ELSEWHERE[id]:
        path, _, name = node.partition("::")
        module = ast.parse((HERE.parent / path).read_text(encoding="utf-8"))
        assert name in [part.name for part in module.body if isinstance(part, ast.FunctionDef)]


def sent(request):
    """What a request says of the conversation."""
    return request.body.get("messages") or request.body["input"]


def order(request):
    """Who says what in a request, one word for an entry, whatever the wire."""
    words = []
    for entry in sent(request):
        kinds = [part["type"] for part in entry["content"]] if isinstance(entry.get("content"), list) else []
        asked = (
            "calls" if entry.get("tool_calls") or "tool_use" in kinds or entry.get("type") == "function_call" else ""
        )
        answered = entry.get("role") == "tool" or "tool_result" in kinds or entry.get("type") == "function_call_output"
        words.append(asked or ("results" if answered else entry["role"]))
    return [word for place, word in enumerate(words) if place == 0 or word != words[place - 1]]


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_open_calls_are_answered_before_what_the_user_says_next(serve, connect, protocol):
    """hist-03, rsp-15: what nobody answered gets an error, and the strict server accepts it."""
    server = serve(answer(calls=[call("look", id="c1"), call("look", id="c2")]), "fine")
    client = connect(server, protocol=protocol, tools=[Tool("look", "", {}, len)])
    client.send("q")
    list(client.receive())
    client.history.append(Message.user("and you?"))
    assert client.ask("go on") == "fine"
    results = [block for message in client.history for block in message.results]
    assert [(block.tool_use_id, block.is_error) for block in results] == [("c1", True), ("c2", True)]
    assert order(server.requests[1]) == ["user", "calls", "results", "user"]


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_ctrl_c_in_a_tool_leaves_a_history_that_every_wire_accepts(serve, connect, protocol):
    """hist-01, life-01."""

    def stopped(arguments):
        raise KeyboardInterrupt

    server = serve(answer(calls=[call("look", id="c1"), call("look", id="c2")]), "fine")
    client = connect(server, protocol=protocol, tools=[Tool("look", "", {}, stopped)], auto_execute_tools=True)
    with pytest.raises(KeyboardInterrupt):
        client.ask("q")
    told = [block.content["error"] for message in client.history for block in message.results]
    assert ["may have had effects" in told[0], "not run" in told[1], len(told)] == [True, True, 2]
    assert client.ask("go on") == "fine"
    assert order(server.requests[1]) == ["user", "calls", "results", "user"]


def test_a_null_is_no_argument_where_there_is_a_default_and_wrong_where_one_is_required(serve, connect):
    """arg-12."""
    given = []

    @tool
    def search(q: str, max: int = 10) -> str:
        """Search."""
        given.append((q, max))
        return "found"

    calls = [call("search", {"q": "x", "max": None}, id="c1"), call("search", {"q": None}, id="c2")]
    client = connect(serve(answer(calls=calls), "fine"), tools=[search], auto_execute_tools=True)
    assert (client.ask("q"), given) == ("fine", [("x", 10)])
    assert [block.is_error for message in client.history for block in message.results] == [False, True]


@pytest.mark.parametrize("replays", [True, False])
def test_reasoning_goes_back_with_its_call_unless_that_is_switched_off(serve, connect, replays):
    """rsn-06."""
    server = serve(answer(calls=[call("look", id="c1")], reasoning="hm"), "fine")
    look = Tool("look", "", {}, lambda _: "seen")
    client = connect(server, tools=[look], auto_execute_tools=True, replay_reasoning=replays)
    assert client.ask("q") == "fine"
    (turn,) = [entry for entry in sent(server.requests[1]) if entry["role"] == "assistant"]
    assert ("hm" in turn.values()) is replays


def test_a_final_assistant_message_is_sent_without_its_last_blanks_and_kept_with_them(serve, connect):
    """ant-16."""
    server = serve("fine")
    client = connect(server, protocol="anthropic")
    client.history = [Message.user("q")]
    client.send_message(Message.assistant("Done. \n"))
    list(client.receive())
    assert json.dumps(sent(server.requests[0])[-1]["content"]).count("Done.") == 1
    assert "Done. " not in json.dumps(sent(server.requests[0]))
    assert client.history[1].text == "Done. \n"


def test_empty_members_of_an_answer_do_not_go_back(serve, connect):
    """hist-05."""
    delta = {"content": "x", "tool_calls": [], "refusal": None, "audio": None, "function_call": None, "name": None}
    chunk = json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]})
    server = serve(raw(f"data: {chunk}\n\ndata: [DONE]\n\n"), "fine")
    client = connect(server)
    assert [client.ask("q"), client.ask("r")] == ["x", "fine"]
    assert sent(server.requests[1])[1] == {"role": "assistant", "content": "x"}


@pytest.mark.parametrize("code", [400, 503])
def test_what_was_heard_before_an_error_is_on_the_error_and_not_in_the_history(serve, connect, code):
    """hist-09: an error event after three deltas."""
    deltas = [json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) for text in ("a", "b", "c")]
    error = json.dumps({"error": {"message": "broken", "code": code}})
    client = connect(serve(raw("".join(f"data: {data}\n\n" for data in [*deltas, error])), "fine"))
    with pytest.raises(APIError, match="broken") as caught:
        client.ask("q")
    assert (caught.value.blocks, client.history) == ([TextBlock("abc")], [Message.user("q")])
    assert client.ask("q") == "fine"


def test_an_exception_of_the_caller_in_the_midst_of_an_answer_is_the_callers(serve, connect):
    """life-08: not wrapped, not retried; the history is as before the answer."""
    server = serve(answer(chunk_text=["a", "b", "c"]), "fine")
    client = connect(server)
    with pytest.raises(ValueError, match="mine") as caught:
        for number, _ in enumerate(client.stream("q"), 1):
            if number == 2:
                raise ValueError("mine")
    assert (type(caught.value), caught.value.__cause__, len(server.requests)) == (ValueError, None, 1)
    assert client.history == [Message.user("q")]
    assert client.ask("r") == "fine"


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_half_a_character_leaves_as_a_replacement_character(serve, connect, protocol):
    """tool-07: in a prompt and in a result."""
    server = serve(answer(calls=[call("look", id="c1")]), "fine")
    look = Tool("look", "", {}, lambda _: "\udcb0 x")
    client = connect(server, protocol=protocol, tools=[look], auto_execute_tools=True)
    assert client.ask("a \ud83d b") == "fine"
    said = json.dumps(sent(server.requests[1]), ensure_ascii=False)
    assert ["\ufffd x" in said, "a \ufffd b" in said] == [True, True]
    assert repr(client.history).encode()


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_an_image_goes_out_under_the_type_of_its_bytes_or_not_at_all(serve, connect, protocol, tmp_path):
    """img-01."""
    wrong, none = tmp_path / "x.png", tmp_path / "y.png"
    wrong.write_bytes(b"\xff\xd8\xff\xe0" + b"\0" * 8)
    none.write_text("<svg/>")
    server = serve("fine")
    client = connect(server, protocol=protocol)
    with pytest.raises(ConfigError):
        client.ask("what is it?", ImageBlock.from_file_path(none))
    assert client.ask("what is it?", ImageBlock.from_file_path(wrong)) == "fine"
    said = json.dumps(sent(server.requests[0]))
    assert ["image/jpeg" in said, "image/png" in said, len(server.requests)] == [True, False, 1]


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_refused_image_can_be_taken_back(serve, connect, protocol):
    """img-03: the words are the provider's; the session goes on without the turn."""
    words = "messages.1.content.0: Could not process image"
    server = serve("hello", failure(400, words), "fine")
    client = connect(server, protocol=protocol)
    client.ask("q")
    image = ImageBlock.from_base64("iVBORw0KGgoAAAAAAAAAAA==")
    with pytest.raises(APIError) as caught:
        client.ask("what is it?", image)
    assert words in str(caught.value)
    assert [len(client.undo()), len(client.history)] == [1, 2]
    assert client.ask("r") == "fine"
    assert "image" not in json.dumps(sent(server.requests[2]))
