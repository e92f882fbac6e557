"""Conversations in the user's data folder."""

import json
import os
import stat
from pathlib import Path

import pytest

from openagent import ConfigError, Message, ToolUseBlock
from openagent.cli.conversations import Conversation, data_folder, latest, load, path_of, save

MESSAGES = [Message.user("Grüße \U0001f600"), Message.assistant("a", ToolUseBlock("c", "f", {"x": 1}))]


@pytest.fixture(autouse=True)
def _data(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_what_was_saved_is_loaded():
    save(path_of("a trip"), Conversation(MESSAGES, "Be brief."))
    assert load(path_of("a trip")) == Conversation(MESSAGES, "Be brief.")
    assert latest() == "a trip"


def test_only_the_user_can_read_it():
    save(path_of("x"), Conversation(MESSAGES))
    assert stat.S_IMODE(path_of("x").stat().st_mode) == 0o600
    assert stat.S_IMODE(path_of("x").parent.stat().st_mode) == 0o700


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else():
    save(path_of("x"), Conversation(MESSAGES))
    with pytest.raises(ConfigError, match="cannot write conversation"):
        save(path_of("x"), Conversation([Message.tool_result("c", object())]))
    assert load(path_of("x")).messages == MESSAGES
    assert os.listdir(path_of("x").parent) == ["x.json"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", ".hidden", "x.", "a" * 101, "a\nb"])
def test_a_name_cannot_leave_the_folder(name):
    with pytest.raises(ConfigError, match="conversation name"):
        path_of(name)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"openagent": 2, "messages": []}', '{"openagent": 1}', "[" * 9999])
def test_another_file_is_told_from_a_conversation(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"x\.json"):
        load(path)


def test_the_file_is_documented():
    save(path_of("x"), Conversation([Message.user("q")], "s"))
    assert json.loads(path_of("x").read_text(encoding="utf-8")) == {
        "openagent": 1,
        "system_prompt": "s",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}],
    }


@pytest.mark.parametrize(
    ("platform", "tail"),
    [
        ("linux", ".local/share/openagent"),
        ("darwin", "Library/Application Support/openagent"),
        ("win32", "AppData/Local/openagent/Data"),
    ],
)
def test_each_platform_has_its_folder(monkeypatch, platform, tail):
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert data_folder(platform) == Path.home() / tail
