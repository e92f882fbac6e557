"""Profiles and keys in the user's config folder, and whom a key is sent."""

import io
import os
import stat
import sys

import pytest

from openagent import AgentOptions, ConfigError, profile
from openagent.cli import main
from openagent.keys import config_folder, keep_key, keys_file
from openagent.profiles import config_file, with_key

FILE = """
default = "home"
[profiles.home]
provider = "ollama"
model = "qwen3:8b"
temperature = 0.5
[profiles.work]
base_url = "https://gateway.example/v1"
model = "gpt"
key = "work"
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "openagent"


@pytest.fixture
def write(folder):
    def write(text):
        folder.mkdir(exist_ok=True)
        config_file().write_text(text, encoding="utf-8")

    return write


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs a command with this on stdin: (exit code, stdout, stderr)."""

    def run(*arguments, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        return (main(arguments), *capsys.readouterr())

    return run


HOME = {"provider": "ollama", "model": "qwen3:8b", "temperature": 0.5}


def test_without_a_file_there_are_no_settings():
    assert profile() == {}


def test_a_profile_is_named_or_the_default(write, monkeypatch):
    write(FILE)
    keep_key("work", "sk-1")
    work = {"base_url": "https://gateway.example/v1", "model": "gpt", "api_key": "sk-1"}
    assert [profile(), profile("work")] == [HOME, work]
    monkeypatch.setenv("OPENAGENT_PROFILE", "work")
    assert [profile(), profile("home")] == [work, HOME]
    assert AgentOptions(**profile()).api_key == "sk-1"


def test_the_default_yields_to_the_environment_and_a_named_one_does_not(write, monkeypatch):
    write(FILE)
    monkeypatch.setenv("OPENAGENT_MODEL", "m")
    assert [profile(), profile("home")] == [{"provider": "ollama", "temperature": 0.5}, HOME]
    monkeypatch.setenv("OPENAGENT_BASE_URL", "http://box/v1")
    assert [profile(), profile("home")] == [{"temperature": 0.5}, HOME]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = [", "is no TOML"),
        ("model = 'm'", "'model' in .* means nothing: write default = "),
        ("[profiles]\nwork = 3", "profile 'work' in .* must be a table"),
        ("[profiles.work]\nmodle = 'm'", "profile 'work' in .*: there is no setting 'modle': did you mean 'model'"),
        ("[profiles.work]\napi_key = 'sk-1'", "profile 'work' in .* holds a key: put it away by `openagent key set"),
        ("[profiles.work]\nkey = 3", "key of profile 'work' in .* must be the name of a key"),
        ("[profiles.work]\nkey = 'w'", "there is no key 'w' in .*: openagent key set w"),
        ("[profiles.home]", "there is no profile 'work' in .*; there are: home"),
    ],
)
def test_what_is_wrong_in_the_file_is_told(write, text, told):
    write(text)
    with pytest.raises(ConfigError, match=told):
        profile("work")


def test_a_key_is_kept_in_a_file_that_nobody_else_can_read(command):
    assert command("key", "set", "work", stdin="sk-1\n")[:2] == (0, "")
    assert command("key", "set", "openai", stdin='sk-"2\n')[:2] == (0, "")
    assert stat.S_IMODE(keys_file().stat().st_mode) == 0o600
    assert keys_file().read_text() == 'openai = "sk-\\"2"\nwork = "sk-1"\n'
    assert command("key", "list") == (0, "openai\nwork\n", "")
    assert command("key", "remove", "work") == (0, "", "openagent: work is forgotten\n")
    assert command("key", "list") == (0, "openai\n", "")
    assert [name for name in os.listdir(config_folder()) if name != "keys.toml"] == []


@pytest.mark.parametrize(
    ("arguments", "stdin", "told"),
    [
        (["set", "work"], "\n", "this is no key for 'work'"),
        (["set", "a b"], "sk-1\n", "key name 'a b' must be"),
        (["remove", "work"], "", "there is no key 'work'"),
    ],
)
def test_what_is_no_key_is_told_and_never_shown(command, arguments, stdin, told):
    code, out, err = command("key", *arguments, stdin=stdin)
    assert (code, out, told in err, "sk-1" in err) == (2, "", True, False)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_file_of_keys_that_others_can_read_is_refused(write):
    keep_key("work", "sk-1")
    keys_file().chmod(0o640)
    write(FILE)
    with pytest.raises(ConfigError, match=r"others can read the keys in .*: chmod 600"):
        profile("work")


def test_a_vendors_key_goes_to_the_vendors_own_host_only():
    keep_key("openai", "sk-1")
    assert with_key({"provider": "openai"}) == {"provider": "openai", "api_key": "sk-1"}
    for settings in (
        {"provider": "groq"},
        {"base_url": "http://localhost:1/v1"},
        {"base_url": "http://api.openai.com/v1"},
        {},
        {"provider": "local"},
        {"provider": "openai", "api_key": "mine"},
    ):
        assert with_key(settings) == settings


def test_the_command_line_asks_as_the_profile_says(write, serve, command):
    server = serve("a", "b", "c")
    write(f"[profiles.p]\nbase_url = '{server.url}'\nmodel = 'mine'\nkey = 'k'\nsystem_prompt = 'Be brief.'")
    keep_key("k", "sk-1")
    assert command("ask", "--profile", "p", "q") == (0, "a\n", "")
    assert command("ask", "--profile", "p", "-m", "other", "-o", "temperature=0", "q") == (0, "b\n", "")
    elsewhere = server.url.replace("127.0.0.1", "localhost")
    assert command("ask", "--profile", "p", "--base-url", elsewhere, "-m", "m", "q") == (0, "c\n", "")
    asked = [(request.body["model"], request.headers.get("authorization")) for request in server.requests]
    assert asked == [("mine", "Bearer sk-1"), ("other", "Bearer sk-1"), ("m", None)]
    assert {request.body["messages"][0]["content"] for request in server.requests} == {"Be brief."}


def test_profiles_are_listed(write, command):
    code, out, err = command("profiles")
    assert (code, out, str(config_file()) in err) == (0, "", True)
    write(FILE)
    assert command("profiles") == (
        0,
        "* home  qwen3:8b at ollama\n  work  gpt at https://gateway.example/v1\n",
        "",
    )
    code, _, err = command("ask", "--profile", "nobody", "q")
    assert (code, "there is no profile 'nobody'" in err) == (2, True)


@pytest.mark.parametrize(
    ("platform", "below_home"),
    [("linux", ".config/openagent"), ("darwin", "Library/Application Support/openagent"), ("win32", "roam/openagent")],
)
def test_settings_are_where_the_platform_keeps_settings(monkeypatch, tmp_path, platform, below_home):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path / "roam"))
    assert config_folder(platform) == tmp_path / below_home
