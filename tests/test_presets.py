import pytest
from hypothesis import given
from hypothesis import strategies as st

from openagent import ConfigError
from openagent.presets import PRESETS, canonical_base_url, key_variable, origin, preset, server_title


@pytest.mark.parametrize(
    ("names", "url"),
    [
        (["lmstudio", "lm-studio", "lm_studio", "LM Studio", "LMSTUDIO"], "http://localhost:1234/v1"),
        (["ollama", "Ollama"], "http://localhost:11434/v1"),
        (["llamacpp", "llama-cpp", "llama_cpp", "llama.cpp"], "http://localhost:8080/v1"),
        (["vllm", "vLLM"], "http://localhost:8000/v1"),
    ],
)
def test_a_preset_is_found_however_its_name_is_written(names, url):
    """1.14."""
    assert [preset(name).base_url for name in names] == [url] * len(names)


def test_an_unknown_name_is_told_with_the_known_ones():
    """1.14."""
    with pytest.raises(ConfigError, match=r"'gpt4all' is not known; known are lmstudio, ollama.* \(or set base_url\)"):
        preset("gpt4all")


def test_every_address_of_a_preset_is_in_canonical_form():
    urls = [known.base_url for known in PRESETS.values() if known.base_url]
    assert [canonical_base_url(url) for url in urls] == urls
    assert {known.protocol for known in PRESETS.values()} <= {"openai-chat", "openai-responses", "anthropic"}


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://h:1234", "http://h:1234/v1"),
        ("http://h:1234/", "http://h:1234/v1"),
        ("http://h:1234//", "http://h:1234/v1"),
        ("http://h:1234/v1", "http://h:1234/v1"),
        ("http://h:1234/v1/", "http://h:1234/v1"),
        ("http://h:1234/v1/chat/completions", "http://h:1234/v1"),
        ("http://h:1234/v1//chat/completions/", "http://h:1234/v1"),
        ("http://h:1234/chat/completions", "http://h:1234/v1"),
        ("http://h:1234/v1/completions", "http://h:1234/v1"),
        ("http://h:1234/v1/responses", "http://h:1234/v1"),
        ("http://h:1234/v1/messages", "http://h:1234/v1"),
        ("https://h/api/v1?x=1", "https://h/api/v1?x=1"),
        ("https://h?x=1", "https://h/v1?x=1"),
        ("https://h/v1#part", "https://h/v1"),
        ("https://x/openai/deployments/d?api-version=1", "https://x/openai/deployments/d?api-version=1"),
        (
            "https://x/openai/deployments/d/chat/completions?api-version=1",
            "https://x/openai/deployments/d?api-version=1",
        ),
        ("HTTPS://h/v1", "https://h/v1"),
        (" https://h/v1\n", "https://h/v1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
        ("https://h/v1/mymessages", "https://h/v1/mymessages"),
    ],
)
def test_an_address_has_one_spelling(text, url):
    """R-100, http-04, design.md 3: no double slash, no endpoint, the query kept, ``/v1`` if there is no path."""
    assert canonical_base_url(text) == canonical_base_url(url) == url


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost:1234", "ftp://h", "h", "/v1", "//h/v1", "file:///x", "http://", "http:///v1", "http://:80"),
        *("http://h:0", "http://h:99999", "http://h:x", "http://[::1", "http://a b/v1"),
    ],
)
def test_what_is_no_address_is_named(text):
    """B-7."""
    with pytest.raises(ConfigError, match="base_url"):
        canonical_base_url(text)


def test_a_password_in_an_address_is_refused_and_not_shown():
    """design.md, promise 5."""
    for text in ("https://me:s3cret@h/v1", "https://s3cret@h/v1"):
        with pytest.raises(ConfigError, match="user name or password") as caught:
            canonical_base_url(text)
        assert "s3cret" not in str(caught.value)


@given(st.text(max_size=30) | st.text(max_size=20).map("http://".__add__))
def test_any_text_is_an_address_or_a_clear_error(text):
    try:
        url = canonical_base_url(text)
    except ConfigError:
        return
    assert canonical_base_url(url) == url


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("https://API.OpenAI.com/v1", "OPENAI_API_KEY"),
        ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
        ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("http://api.openai.com/v1", ""),
        ("https://api.openai.com.evil.example/v1", ""),
        ("https://evil.example/api.openai.com/v1", ""),
        ("https://evil.example/v1?x=api.openai.com", ""),
        ("http://localhost:1234/v1", ""),
        ("", ""),
    ],
)
def test_a_vendors_key_is_looked_up_for_the_vendors_own_host_only(url, variable):
    """design.md 3, promise 5: never in clear."""
    assert key_variable(url) == variable


def test_a_local_address_tells_which_server_usually_listens_there():
    """design.md 6."""
    assert [server_title(url) for url in ("http://localhost:1234/v1", "http://localhost:11434/v1")] == [
        "LM Studio",
        "Ollama",
    ]
    assert [server_title(url) for url in ("http://localhost:1/v1", "https://api.openai.com/v1", "")] == ["", "", ""]


def test_the_place_a_key_may_go_to_is_scheme_host_and_port():
    assert origin("https://Host:8443/v1?x=1") == ("https", "host:8443")
    assert origin("https://h/v1") != origin("http://h/v1")
    assert origin("https://h/v1") == origin("https://h/v2")
