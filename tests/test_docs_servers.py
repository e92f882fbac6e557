"""Every client of ``docs/servers.md`` is made as it stands there, and its first request goes where it should."""

import re
from pathlib import Path

import pytest

from openagent import Client
from openagent.client import ADAPTERS
from openagent.messages import Message
from openagent.presets import PRESETS

PAGE = (Path(__file__).parent.parent / "docs" / "servers.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]}
CLIENTS = [(title, code) for title, part in SECTIONS.items() for code in re.findall(r"```python\n(.*?)```", part, re.S)]
AZURE = "https://my-resource.openai.azure.com/openai"
WHERE = [
    ("LM Studio", "http://localhost:1234/v1/chat/completions", {}),
    ("Ollama", "http://localhost:11434/v1/chat/completions", {}),
    ("llama.cpp", "http://localhost:8080/v1/chat/completions", {}),
    ("vLLM", "http://localhost:8000/v1/chat/completions", {}),
    ("SGLang", "http://localhost:30000/v1/chat/completions", {}),
    ("The embedded model", "/chat/completions", {}),
    ("OpenAI", "https://api.openai.com/v1/responses", {"Authorization": "Bearer key"}),
    ("Anthropic", "https://api.anthropic.com/v1/messages", {"x-api-key": "key"}),
    ("Azure OpenAI", f"{AZURE}/v1/chat/completions", {"Authorization": "Bearer key"}),
    (
        "Azure OpenAI",
        f"{AZURE}/deployments/my-deployment/chat/completions?api-version=2024-10-21",
        {"api-key": "key"},
    ),
    ("OpenRouter", "https://openrouter.ai/api/v1/chat/completions", {"Authorization": "Bearer key"}),
    ("Groq", "https://api.groq.com/openai/v1/chat/completions", {"Authorization": "Bearer key"}),
    ("Mistral", "https://api.mistral.ai/v1/chat/completions", {"Authorization": "Bearer key"}),
    ("DeepSeek", "https://api.deepseek.com/v1/chat/completions", {"Authorization": "Bearer key"}),
    (
        "Gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        {"Authorization": "Bearer key"},
    ),
]
USUAL = {"accept", "content-type", "anthropic-version"}


@pytest.fixture
def _keys(monkeypatch):
    for variable in [*(known.key_variable for known in PRESETS.values()), "AZURE_OPENAI_API_KEY"]:
        if variable:
            monkeypatch.setenv(variable, "key")


def asked(code):
    """Where the first request of this client goes, and with which headers of its own."""
    names = {"Client": Client}
    exec(code, names)
    with names["client"] as client:
        adapter = ADAPTERS[client.options.protocol](client.options, [Message.user("Hi")], [], None)
        request = adapter.encode(None, False)
    return request.url, {name: value for name, value in request.headers.items() if name.lower() not in USUAL}


@pytest.mark.usefixtures("_keys")
def test_each_client_asks_the_server_it_is_for():
    assert [(title, *asked(code)) for title, code in CLIENTS] == WHERE


def test_every_preset_has_a_section_that_uses_it():
    assert {name for name in PRESETS if f'provider="{name}"' not in PAGE} == set()


def test_every_variable_is_named_where_its_vendor_is():
    assert {known.key_variable for known in PRESETS.values() if known.key_variable not in PAGE} == set()
