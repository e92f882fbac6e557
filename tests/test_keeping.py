"""Conversations in files: what comes back, what is refused, and what a saved client can still do."""

import copy
import json
import os
import stat
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openagent import (
    Client,
    ConfigError,
    FinishReason,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from openagent.conversation import Conversation
from openagent.keeping import load, save
from openagent.testing import answer

SCHEMA = json.loads(files("openagent").joinpath("conversation.schema.json").read_text(encoding="utf-8"))
PIXEL = "data:image/png;base64," + (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SEEN = {"type": "image", "url": PIXEL, "detail": "low"}
MESSAGES = [
    Message.user("Grüße \U0001f600", ImageBlock(PIXEL), ImageBlock("https://example.com/a.png", "high")),
    Message("assistant", [TextBlock("a"), ToolUseBlock("c", "f", {"x": 1}, provider_state={"p": 1})], {"s": [1]}),
    Message.tool_result("c", ["seen", SEEN], is_error=True),
]
WHOLE = Conversation(
    MESSAGES, "Be brief.", FinishReason("stop", "end_turn"), Usage(7, 5, raw={"input": 7}), "some-model"
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
BLOCKS = st.one_of(
    st.builds(TextBlock, TEXTS),
    st.just(ImageBlock(PIXEL)),
    st.builds(ToolUseBlock, TEXTS, TEXTS, OBJECTS, st.none() | TEXTS.filter(bool), st.none() | TEXTS.filter(bool)),
    st.builds(ToolResultBlock, TEXTS, VALUES | st.just(SEEN) | st.just([SEEN, "x"]), st.booleans()),
)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
CONVERSATIONS = st.builds(
    Conversation,
    st.lists(st.builds(Message, ROLES, st.lists(BLOCKS, max_size=3), st.none() | OBJECTS.filter(bool)), max_size=3),
    TEXTS,
    st.none() | st.builds(FinishReason, TEXTS.filter(bool), st.none() | TEXTS),
    st.none() | st.builds(Usage, st.none() | st.integers(0), st.none() | st.integers(0)),
    TEXTS,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "talk.json"


@pytest.mark.parametrize("images", ["inline", "beside"])
@settings(deadline=None)
@given(conversation=CONVERSATIONS)
def test_what_was_saved_comes_back_and_fits_the_schema(path, images, conversation):
    save(path, conversation, images=images)
    jsonschema.validate(json.loads(path.read_text(encoding="utf-8")), SCHEMA)
    assert load(path) == conversation


def test_a_finish_reason_comes_back_with_all_that_it_says(path):
    save(path, Conversation(finish_reason=FinishReason("max_tool_iterations", "length", is_truncated=True)))
    found = load(path).finish_reason
    assert (found, found.raw, found.is_truncated) == ("max_tool_iterations", "length", True)


def test_arguments_as_deep_as_a_server_may_send_them_come_back(path):
    deep = {}
    for _ in range(198):
        deep = {"a": deep}
    kept = Conversation([Message.assistant(ToolUseBlock("c", "f", deep))])
    save(path, kept)
    assert load(path) == kept


def test_images_beside_are_files_named_by_their_hash(tmp_path):
    path = tmp_path / "talk.json"
    save(path, WHOLE, images="beside")
    assert load(path) == WHOLE
    assert PIXEL[30:60] not in path.read_text(encoding="utf-8")
    (image,) = (tmp_path / "talk.images").iterdir()
    assert json.loads(path.read_text(encoding="utf-8"))["images"] == [f"talk.images/{image.name}"]
    modes = [stat.S_IMODE(item.stat().st_mode) for item in (path, image, image.parent)]
    assert modes == [0o600, 0o600, 0o700]


@pytest.mark.parametrize("harm", ["missing", "changed"])
def test_an_image_that_is_missing_or_changed_is_named(tmp_path, harm):
    path = tmp_path / "talk.json"
    save(path, WHOLE, images="beside")
    (image,) = (tmp_path / "talk.images").iterdir()
    image.unlink() if harm == "missing" else image.write_bytes(image.read_bytes() + b"x")
    with pytest.raises(ConfigError, match=rf"{image.name}.*talk\.json"):
        load(path)


@pytest.mark.parametrize(
    "name", ["../a/%s.png", "/%s.png", "a/../%s.png", "../%s.png", "a\\%s.png", "a/b/%s.png", "a/x.png"]
)
def test_a_file_cannot_name_an_image_elsewhere(tmp_path, name):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"openagent": 2, "messages": [], "images": [name.replace("%s", "0" * 64)]}))
    with pytest.raises(ConfigError, match="that is none beside it"):
        load(path)


WRONG = {
    "": "no JSON",
    "{": "no JSON",
    "[" * 9999: "no JSON",
    "[]": "no conversation of openagent",
    '{"messages": []}': "no conversation of openagent",
    '{"openagent": true, "messages": []}': "no conversation of openagent",
    '{"openagent": 3, "messages": []}': "version 3 is newer than the 2 .*upgrade",
    '{"openagent": 1}': "messages must be a list",
    '{"openagent": 2, "messages": [], "images": 5}': "images must be a list",
    '{"openagent": 2, "messages": [5]}': "needs 'role' and 'content'",
    '{"openagent": 2, "messages": [{"role": "user", "content": [{"type": "x"}]}]}': "no known type",
    '{"openagent": 2, "messages": [{"role": "user", "content": [], "provider_state": 5}]}': "must be a dict",
    '{"openagent": 2, "messages": [], "finish_reason": 5}': "finish_reason 5",
    '{"openagent": 2, "messages": [], "usage": {"input_tokens": "7"}}': "usage",
}


@pytest.mark.parametrize("text", WRONG)
def test_another_file_is_told_from_a_conversation(path, text):
    path.write_text(text)
    with pytest.raises(ConfigError, match=WRONG[text]) as caught:
        load(path)
    assert "talk.json" in str(caught.value)


def test_what_cannot_be_read_is_told(tmp_path):
    (tmp_path / "latin").write_bytes('{"openagent": 2, "messages": [], "model": "é"}'.encode("latin-1"))
    for name, told in (("nothing.json", "No such file"), (".", "directory"), ("latin", "no JSON")):
        with pytest.raises(ConfigError, match=told):
            load(tmp_path / name)
    with pytest.raises(ConfigError, match="path None"):
        load(None)


def test_a_file_of_version_1_still_loads(path):
    plain = {"openagent": 1, "system_prompt": "s", "messages": [{"role": "user", "content": "q"}]}
    path.write_text(json.dumps(plain))
    jsonschema.validate(plain | {"messages": [Message.user("q").to_dict()]}, SCHEMA)
    assert load(path) == Conversation([Message.user("q")], "s")


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "talk.json"
    save(path, WHOLE)
    deep = []
    for _ in range(300):
        deep = [deep]
    for content in (object(), deep):
        with pytest.raises(ConfigError, match=r"cannot write conversation .*talk\.json"):
            save(path, Conversation([Message.tool_result("c", content)]))
    with pytest.raises(ConfigError, match="No such file"):
        save(tmp_path / "no" / "talk.json", WHOLE)
    with pytest.raises(ConfigError, match="images 'no'"):
        save(path, WHOLE, images="no")
    assert load(path) == WHOLE
    assert os.listdir(tmp_path) == ["talk.json"]


# The client


def test_a_saved_client_is_loaded_without_its_key(serve, connect, path):
    server = serve("one", "two")
    client = connect(server, system_prompt="Be brief.", api_key="sk-s3cr3t-123456", headers={"X-T": "s3cr3t-4567"})
    client.ask("1")
    client.save(path)
    assert [secret for secret in ("s3cr3t", server.url, str(server.port)) if secret in path.read_text()] == []
    with Client.load(path, model="other", base_url=server.url, retry=None) as loaded:
        assert (loaded.finish_reason, loaded.usage, loaded.options.api_key) == ("stop", client.usage, None)
        assert loaded.ask("2") == "two"
        assert loaded.options.model == "other"
    assert [message["content"] for message in server.requests[1].body["messages"]] == ["Be brief.", "1", "one", "2"]


def test_a_system_prompt_in_the_options_replaces_the_saved_one(serve, connect, path):
    connect(serve(), system_prompt="old").save(path)
    options = connect(serve(), system_prompt="new").options
    assert Client.load(path, options).options.system_prompt == "new"
    assert Client.load(path, options, system_prompt="").options.system_prompt == "old"


GOING_ON = {
    "save and load": lambda client, path: (client.save(path), Client.load(path, client.options))[1],
    "copy": lambda client, path: copy.copy(client),
    "fork": lambda client, path: client.fork(),
}


@pytest.mark.parametrize("how", GOING_ON)
def test_a_paused_turn_goes_on_in_another_client(serve, connect, path, how):
    """design.md 7.15: a pause is no end, wherever the conversation went in between."""
    server = serve(answer("Searching. ", finish="pause_turn"), "Found.")
    client = connect(server, protocol="anthropic")
    client.ask("q")
    with GOING_ON[how](client, path) as other:
        assert other.finish_reason == "pause_turn"
        assert other.ask("") == "Found."
    turns = [(turn["role"], turn["content"]) for turn in server.requests[1].body["messages"]]
    assert [role for role, _ in turns] == ["user", "assistant"]


def test_a_fork_goes_its_own_way(serve, connect):
    """Not even what is inside the messages is shared."""
    server = serve("a", "b", "c")
    client = connect(server)
    client.ask("q")
    with client.fork() as other:
        other.history[0].content.append(TextBlock("more"))
        assert (client.ask("r"), other.ask("s"), server.connections) == ("b", "c", 2)
        assert [message.text for message in client.history] == ["q", "a", "r", "b"]
        assert [message.text for message in other.history] == ["qmore", "a", "s", "c"]


def test_undo_takes_the_last_prompt_back_with_all_that_followed(serve, connect):
    client = connect(serve("a", "b", answer("hm", finish="pause_turn")), protocol="anthropic")
    client.ask("q")
    client.ask("r")
    assert client.undo() == [Message.user("r"), Message.assistant("b")]
    client.ask("s")
    assert [message.text for message in client.undo()] == ["s", "hm"]
    assert ([message.text for message in client.history], client.finish_reason, client.usage) == (
        ["q", "a"],
        None,
        None,
    )
    with pytest.raises(ConfigError, match="nothing to go on with"):  # what was paused is gone
        client.send("")
    client.undo()
    with pytest.raises(ConfigError, match="nothing to undo"):
        client.undo()


def test_undo_drops_what_is_still_coming(serve, connect):
    client = connect(serve("one two three", "new"))
    client.send("q")
    next(client.receive())
    assert client.undo() == [Message.user("q")]
    assert list(client.receive()) == []
    assert (client.ask("r"), client.history) == ("new", [Message.user("r"), Message.assistant("new")])
