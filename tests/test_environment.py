"""What the environment says, and what it does not get to say."""

import pytest

from openagent import AgentOptions, ConfigError, get_base_url, get_model


def options(**settings):
    return AgentOptions(**{"model": "m"} | settings)


def test_our_variables_name_address_model_and_key(monkeypatch):
    """design.md 3."""
    monkeypatch.setenv("OPENAGENT_BASE_URL", "http://box:8000")
    monkeypatch.setenv("OPENAGENT_MODEL", "from-env")
    monkeypatch.setenv("OPENAGENT_API_KEY", "key")
    found = AgentOptions()
    assert (found.base_url, found.model, found.api_key) == ("http://box:8000/v1", "from-env", "key")
    given = AgentOptions(model="m", base_url="http://box:8000/v1", api_key="k")
    assert (given.model, given.api_key) == ("m", "k")


def test_the_variables_of_the_seed_are_read_where_ours_are_not_set(monkeypatch):
    """design.md 3; R-220, R-221."""
    monkeypatch.setenv("OPEN_AGENT_BASE_URL", "http://old:1/v1")
    monkeypatch.setenv("OPEN_AGENT_MODEL", "old")
    assert (AgentOptions().base_url, AgentOptions().model) == ("http://old:1/v1", "old")
    monkeypatch.setenv("OPENAGENT_BASE_URL", "http://new:1/v1")
    monkeypatch.setenv("OPENAGENT_MODEL", "new")
    assert (AgentOptions().base_url, AgentOptions().model) == ("http://new:1/v1", "new")


def test_an_empty_variable_is_unset(monkeypatch):
    """design.md 3 (R-220)."""
    for name in ("BASE_URL", "MODEL", "API_KEY"):
        monkeypatch.setenv(f"OPENAGENT_{name}", "")
    monkeypatch.setenv("OPEN_AGENT_MODEL", "")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert (options().base_url, options().api_key) == ("http://localhost:1234/v1", None)
    assert options(provider="openai").api_key is None
    with pytest.raises(ConfigError, match="model is required"):
        AgentOptions()


def test_our_key_stays_with_our_address(monkeypatch):
    """Promise 5: a host that the program chose against the environment does not get its key."""
    monkeypatch.setenv("OPENAGENT_BASE_URL", "http://box:8000/v1")
    monkeypatch.setenv("OPENAGENT_API_KEY", "key")
    assert options().api_key == "key"
    assert options(base_url="http://elsewhere/v1").api_key is None
    assert options(provider="ollama").api_key is None


def test_a_vendors_key_is_read_for_the_vendors_own_host_only(monkeypatch):
    """design.md 3, promise 5."""
    monkeypatch.setenv("OPENAI_API_KEY", "oa")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "an")
    assert options(provider="openai").api_key == "oa"
    assert options(base_url="https://api.openai.com").api_key == "oa"
    assert options(provider="anthropic").api_key == "an"
    assert options(provider="openai", api_key="mine").api_key == "mine"
    assert options(provider="openai", api_key="").api_key is None
    others = ("http://api.openai.com", "https://api.openai.com.evil.org", "https://evil.org/api.openai.com", "http://h")
    assert [options(base_url=address).api_key for address in others] == [None] * 4


def test_the_address_helper_asks_environment_then_provider_then_fallback(monkeypatch):
    """R-220."""
    assert get_base_url() == "http://localhost:1234/v1"
    assert get_base_url("ollama", "http://f/v1") == "http://localhost:11434/v1"
    assert get_base_url(fallback="http://f/v1") == "http://f/v1"
    monkeypatch.setenv("OPENAGENT_BASE_URL", "http://e/v1")
    assert get_base_url("ollama") == "http://e/v1"


def test_the_model_helper_asks_environment_then_fallback(monkeypatch):
    """R-221."""
    assert (get_model(), get_model("f")) == (None, "f")
    monkeypatch.setenv("OPENAGENT_MODEL", "e")
    assert (get_model("f"), get_model("f", prefer_env=False), get_model(prefer_env=False)) == ("e", "f", None)


def test_replace_keeps_what_the_environment_said(monkeypatch):
    """A setting for one request must not bring another address, model or key."""
    monkeypatch.setenv("OPENAGENT_BASE_URL", "http://box:8000/v1")
    monkeypatch.setenv("OPENAGENT_MODEL", "m")
    monkeypatch.setenv("OPENAGENT_API_KEY", "key")
    before = AgentOptions()
    for name in ("BASE_URL", "MODEL", "API_KEY"):
        monkeypatch.setenv(f"OPENAGENT_{name}", "http://other/v1")
    after = before.replace(temperature=0)
    assert (after.base_url, after.model, after.api_key) == ("http://box:8000/v1", "m", "key")
    assert after.replace(base_url="http://third/v1").api_key is None


def test_the_variable_of_openais_address_names_a_server_where_nobody_else_does(monkeypatch):
    """Issue 7: as OpenAI's own library reads it; our variable and what the program says win."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://box:8000/v1")
    assert (options().base_url, options(provider="openai").base_url) == ("http://box:8000/v1",) * 2
    assert get_base_url() == get_base_url("openai") == "http://box:8000/v1"
    assert options(provider="lmstudio").base_url == "http://localhost:1234/v1"
    monkeypatch.setenv("OPENAGENT_BASE_URL", "http://ours:1/v1")
    assert (options().base_url, options(base_url="http://given:1/v1").base_url) == (
        "http://ours:1/v1",
        "http://given:1/v1",
    )


@pytest.mark.parametrize(
    ("named", "address", "key"),
    [
        ("https://gateway.example/v1", "https://gateway.example/v1", "oa"),
        ("https://gateway.example/v1", "https://elsewhere.example/v1", None),
        ("http://localhost:8000/v1", "http://localhost:8000/v1", "oa"),
        ("http://localhost:8000/v1", "http://localhost:8001/v1", None),
        ("http://box:8000/v1", "http://box:8000/v1", None),
    ],
)
def test_openais_key_follows_openais_address_unless_others_could_read_it(monkeypatch, named, address, key):
    """Promise 5: who names another address for OpenAI's client names the host of its key."""
    monkeypatch.setenv("OPENAI_BASE_URL", named)
    monkeypatch.setenv("OPENAI_API_KEY", "oa")
    assert options(base_url=address).api_key == key


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("box", "http://box:11434/v1"),
        ("box:80", "http://box:80/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434/v1"),
        ("https://ollama.example", "https://ollama.example:443/v1"),
        ("http://box:11434/", "http://box:11434/v1"),
        ("[::]:11434", "http://[::1]:11434/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
    ],
)
def test_ollamas_variable_says_where_ollama_is(monkeypatch, value, address):
    monkeypatch.setenv("OLLAMA_HOST", value)
    assert options(provider="ollama").base_url == address
    assert options().base_url == "http://localhost:1234/v1"
