"""Every setting, right and wrong; addresses and keys."""

import pickle

import pytest

from openagent import AgentOptions, Client, ConfigError, Hooks, RetryConfig, Tool, tool


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def options(**settings):
    return AgentOptions(**{"model": "m"} | settings)


WRONG = [
    *(("model", value) for value in ("  ", "\t", 5, None)),
    *(
        ("base_url", value)
        for value in ("  ", "localhost:1234", "ftp://h/v1", "http://", "http://h:99999", "http://a b")
    ),
    *(("base_url", value) for value in (5, None)),
    *(("provider", value) for value in ("nope", 5, None)),
    *(("protocol", value) for value in ("soap", 5)),
    *(("system_prompt", value) for value in (None, 5, ["You"])),
    *(("temperature", value) for value in (-0.1, 2.1, float("nan"), "hot", True)),
    *(("top_p", value) for value in (-0.1, 1.1, float("nan"), "0.5", False)),
    *(("max_tokens", value) for value in (0, -1, 1.5, "5", True)),
    *(("stop", value) for value in (5, [""], [1], ["a", None])),
    *(("seed", value) for value in (1.5, "1", True)),
    *(("tools", value) for value in ("add", 5, None, {"name": "add"})),
    *(("tool_choice", value) for value in ("any", "required", 5, {"type": "function"})),
    *(("parallel_tool_calls", value) for value in ("yes", 1)),
    *((name, -1) for name in ("max_tool_iterations", "max_tool_calls", "max_tool_result_chars")),
    *((name, 1.5) for name in ("max_tool_iterations", "max_tool_calls", "max_tool_result_chars")),
    *((name, True) for name in ("max_tool_iterations", "max_tool_calls", "max_tool_result_chars")),
    *((name, "false") for name in ("auto_execute_tools", "final_response", "include_reasoning", "replay_reasoning")),
    *((name, None) for name in ("think_tags", "cache_prompt", "include_usage", "accept_unfinished")),
    *(("reasoning_effort", value) for value in ("", 0, -1, True, 1.5)),
    *(("response_format", value) for value in ("xml", 5, ["json"])),
    *(("empty_content", value) for value in ("x", 0, False)),
    *(("extra_body", value) for value in (5, ["top_k"], "top_k")),
    *(("hooks", value) for value in (5, [print], print)),
    *(("timeout", value) for value in (0, -1, "5", None, True, float("nan"), float("inf"))),
    *(("timeout", value) for value in ((), (1,), (1, 0), (1, 2, 3), (1, None))),
    *(("deadline", value) for value in (0, -1, "5", True, float("nan"))),
    *(("retry", value) for value in (5, True, {"max_attempts": 2})),
    *(("verify", value) for value in (5, 1.5)),
    *(("cert", value) for value in (5, ("a", "b", "c"), ("a", 5))),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=[f"{name}={value!r}" for name, value in WRONG])
def test_a_wrong_setting_is_named_with_its_value(name, value):
    """design.md 3; client.md 1.2, B-7: a ConfigError, which is a ValueError too."""
    with pytest.raises(ConfigError) as caught:
        options(**{name: value})
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)
    assert isinstance(caught.value, ValueError)


RIGHT = [
    *(("temperature", value, value) for value in (None, 0, 2, 0.7)),
    *(("top_p", value, value) for value in (0, 1)),
    ("max_tokens", 1, 1),
    *(("stop", value, ("END",)) for value in ("END", ["END"], ("END",))),
    *(("stop", value, ()) for value in ("", None, [])),
    ("seed", -5, -5),
    ("model", " m ", " m "),
    *(("protocol", value, "openai-chat") for value in ("openai", "openai_chat", "OpenAI-Chat", "")),
    *(("protocol", value, "anthropic") for value in ("anthropic", "ANTHROPIC")),
    ("protocol", "openai_responses", "openai-responses"),
    *(("tool_choice", value, value) for value in ("auto", "none", None)),
    ("max_tool_iterations", 0, 0),
    ("reasoning_effort", "low", "low"),
    ("reasoning_effort", 1024, 1024),
    ("response_format", "json", "json"),
    ("response_format", {"type": "object"}, {"type": "object"}),
    ("hooks", None, Hooks()),
    ("extra_body", None, {}),
    ("timeout", 5, 5),
    ("timeout", [1, 2.5], (1, 2.5)),
    ("retry", None, None),
    ("proxies", "http://proxy:3128", "http://proxy:3128"),
    ("verify", False, False),
    ("verify", "ca.pem", "ca.pem"),
    ("cert", ("a.pem", "a.key"), ("a.pem", "a.key")),
    ("headers", {"X-Route": "1", "x-route": "2"}, {"x-route": "2"}),
]


@pytest.mark.parametrize(("name", "value", "kept"), RIGHT, ids=[f"{name}={value!r}" for name, value, _ in RIGHT])
def test_a_right_setting_is_kept_in_one_shape(name, value, kept):
    """client.md 1.2 to 1.4 (the model is kept untrimmed), H-5 (of two spellings of a header the last counts)."""
    assert getattr(options(**{name: value}), name) == kept


def test_the_defaults_are_those_of_the_design():
    """design.md 3; B-43, B-60: what is not set is not sent."""
    plain = options()
    expected = {
        "base_url": "http://localhost:1234/v1",
        "protocol": "openai-chat",
        "api_key": None,
        "headers": {},
        "system_prompt": "",
        "temperature": None,
        "max_tokens": None,
        "tools": (),
        "auto_execute_tools": False,
        "max_tool_iterations": 5,
        "max_tool_calls": 15,
        "max_tool_result_chars": 300_000,
        "final_response": True,
        "include_reasoning": False,
        "think_tags": True,
        "timeout": (10, 600),
        "deadline": None,
        "retry": RetryConfig(max_attempts=6, initial_delay=0.5, max_delay=30, multiplier=2),
        "accept_unfinished": False,
    }
    assert {name: getattr(plain, name) for name in expected} == expected
    assert (options(timeout=7).connect_timeout, options(timeout=7).read_timeout) == (7, 7)


def test_a_model_is_required():
    """client.md 1.2: missing → "model is required"."""
    with pytest.raises(ConfigError, match="model is required"):
        AgentOptions()


@pytest.mark.parametrize("name", ["Bad Header", "", "a:b", "a\n", "é", 5])
def test_a_header_with_an_invalid_name_is_refused_and_named(name):
    """client.md 1.2, H-7."""
    with pytest.raises(ConfigError) as caught:
        options(headers={name: "x"})
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("value", ["secret\n1", "secret\r", "secret\x00", " secret", "secret☃", 5])
def test_a_header_or_a_key_with_an_invalid_value_is_refused_and_the_value_is_not_told(value):
    """H-7, R-102; promise 5: it may be a secret."""
    with pytest.raises(ConfigError, match="X-Token") as of_header:
        options(headers={"X-Token": value})
    with pytest.raises(ConfigError, match="api_key") as of_key:
        options(api_key=value)
    assert "secret" not in f"{of_header.value}{of_key.value}"


SPELLINGS = [
    ("http://localhost:1234", "http://localhost:1234/v1"),
    ("http://localhost:1234/", "http://localhost:1234/v1"),
    ("http://localhost:1234/v1", "http://localhost:1234/v1"),
    ("http://localhost:1234/v1//", "http://localhost:1234/v1"),
    (" http://localhost:1234/v1 ", "http://localhost:1234/v1"),
    ("http://localhost:1234/v1/chat/completions", "http://localhost:1234/v1"),
    ("http://localhost:1234/v1/chat/completions/", "http://localhost:1234/v1"),
    ("http://localhost:1234/v1/completions", "http://localhost:1234/v1"),
    ("https://api.openai.com/v1/responses", "https://api.openai.com/v1"),
    ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"),
    ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
    ("https://h/openai/deployments/d/chat/completions?api-version=1", "https://h/openai/deployments/d?api-version=1"),
    ("https://h?tenant=1", "https://h/v1?tenant=1"),
    ("https://h/api#part", "https://h/api"),
    ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
]


@pytest.mark.parametrize(("given", "kept"), SPELLINGS)
def test_an_address_is_understood_in_every_spelling(given, kept):
    """design.md 3 (R-100): trailing slash, pasted endpoint, query, empty path."""
    assert options(base_url=given).base_url == kept


@pytest.mark.parametrize("wrong", [{"base_url": "http://me:secret@h/v1"}, {"proxies": ["http://me:secret@p"]}])
def test_a_password_is_not_told(wrong):
    """Promise 5."""
    with pytest.raises(ConfigError, match=next(iter(wrong))) as caught:
        options(**wrong)
    assert "secret" not in str(caught.value)


def test_a_provider_brings_address_and_protocol():
    """client.md 1.14: case, dashes, underscores and dots do not count."""
    for name in ("lmstudio", "LM-Studio", "lm_studio"):
        assert options(provider=name).base_url == "http://localhost:1234/v1"
    for name in ("llamacpp", "llama.cpp", "llama-cpp", "LLAMA_CPP"):
        assert options(provider=name).base_url == "http://localhost:8080/v1"
    claude = options(provider="anthropic")
    assert (claude.base_url, claude.protocol) == ("https://api.anthropic.com/v1", "anthropic")
    assert options(provider="ollama", base_url="http://box:11434").base_url == "http://box:11434/v1"


def test_tools_are_functions_tools_and_dicts_and_no_two_have_one_name():
    """design.md 3; 4.2 item 22, life-06."""
    plain = {"name": "look", "parameters": {"type": "object", "properties": {}}}

    def greet(name: str) -> str:
        return f"Hello {name}"

    made = options(tools=[add, greet, plain, Tool.hosted({"type": "web_search"})])
    assert list(made.registry) == ["add", "greet", "look", "web_search"]
    assert options(tools=[add], tool_choice="add").tool_choice == "add"
    with pytest.raises(ConfigError, match="'add'"):
        options(tools=[add, add])


# replace()


def test_replace_gives_a_changed_copy():
    """design.md 3."""
    before = options(temperature=0.5, api_key="k")
    after = before.replace(model="n", temperature=None)
    assert (after.model, after.temperature, after.api_key, before.model) == ("n", None, "k", "m")
    assert before.replace() == before
    with pytest.raises(ConfigError, match="'temprature'"):
        before.replace(temprature=1)
    with pytest.raises(AttributeError):
        before.model = "n"


def test_key_headers_and_certificate_never_follow_to_another_host():
    """Promise 5."""
    before = options(base_url="https://a/v1", api_key="k", headers={"X-Token": "t"}, cert="c.pem", verify="ca.pem")
    same = before.replace(base_url="https://a/v2")
    assert (same.api_key, same.headers, same.cert) == ("k", {"X-Token": "t"}, "c.pem")
    for address in ("https://b/v1", "http://a/v1", "https://a:8443/v1"):
        other = before.replace(base_url=address)
        assert (other.api_key, other.headers, other.cert, other.verify) == (None, {}, None, "ca.pem")
    assert before.replace(provider="ollama").api_key is None
    assert before.replace(base_url="https://b", api_key="l").api_key == "l"


def test_another_provider_brings_its_own_address_and_protocol():
    """design.md 3: options may be replaced by another provider's."""
    moved = options(base_url="https://a/v1", api_key="k").replace(provider="anthropic", model="claude")
    assert (moved.base_url, moved.protocol, moved.api_key) == ("https://api.anthropic.com/v1", "anthropic", None)
    back = moved.replace(provider="ollama", model="qwen")
    assert (back.base_url, back.protocol) == ("http://localhost:11434/v1", "openai-chat")


def test_the_repr_shows_what_was_set_and_no_secret():
    """design.md 3; client.md 1.2; promise 5."""
    shown = options(
        base_url="https://h/v1?key=secret",
        api_key="secret",
        headers={"X-Token": "secret"},
        proxies="http://me:secret@p",
        cert="secret.pem",
        extra_body={"token": "secret"},
        tools=[add],
        temperature=0,
    )
    assert "secret" not in repr(shown)
    assert "model='m'" in repr(shown)
    assert "temperature=0" in repr(shown)
    assert "tools=['add']" in repr(shown)


def test_options_can_be_pickled():
    """life-05: tools by reference, the key included."""
    before = options(api_key="k", tools=[add], temperature=1)
    after = pickle.loads(pickle.dumps(before))
    assert after == before
    assert after.replace(model="n").api_key == "k"


@pytest.mark.parametrize(
    ("wrong", "hint"), [("temprature", "did you mean 'temperature'?"), ("q", "see help(openagent.AgentOptions)")]
)
def test_a_setting_that_does_not_exist_is_named_with_the_one_that_was_meant(wrong, hint):
    for attempt in (lambda **more: Client(model="m", **more), AgentOptions(model="m").replace):
        with pytest.raises(ConfigError) as caught:
            attempt(**{wrong: 1})
        assert str(caught.value) == f"there is no setting {wrong!r}: {hint}"
