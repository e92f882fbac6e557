"""Conversations in the user's data folder."""

import stat
from pathlib import Path

import pytest

from openagent import Client, ConfigError, Message, ToolUseBlock
from openagent.cli.conversations import data_folder, latest, path_of, save

MESSAGES = [Message.user("Grüße \U0001f600"), Message.assistant("a", ToolUseBlock("c", "f", {"x": 1}))]


@pytest.fixture(autouse=True)
def _data(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.fixture
def client():
    made = Client(model="m", base_url="http://127.0.0.1:9/v1")
    made.history = list(MESSAGES)
    return made


def test_what_was_saved_last_is_found_under_its_name(client):
    save(client, "a trip")
    assert Client.load(path_of("a trip"), client.options).history == MESSAGES
    assert latest() == "a trip"


def test_only_the_user_can_look_into_the_folder(client):
    save(client, "x")
    assert stat.S_IMODE(path_of("x").parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", ".hidden", "x.", "a" * 101, "a\nb"])
def test_a_name_cannot_leave_the_folder(name):
    with pytest.raises(ConfigError, match="conversation name"):
        path_of(name)


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
