"""Servers by name, and addresses as people write them.

Owns: the presets, the spelling of base URLs, which variable holds whose key. Does not know: options.
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from .errors import ConfigError
from .values import dataclass

_ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/messages")


@dataclass(frozen=True)
class Preset:
    """What is known of a server: its address, its protocol, the variables that hold its key and another address."""

    base_url: str
    protocol: str = "openai-chat"
    key_variable: str = ""
    title: str = ""
    address_variable: str = ""


PRESETS: dict[str, Preset] = {
    "lmstudio": Preset("http://localhost:1234/v1", title="LM Studio"),
    "ollama": Preset("http://localhost:11434/v1", title="Ollama", address_variable="OLLAMA_HOST"),
    "llamacpp": Preset("http://localhost:8080/v1", title="llama.cpp"),
    "vllm": Preset("http://localhost:8000/v1", title="vLLM"),
    "sglang": Preset("http://localhost:30000/v1", title="SGLang"),
    "local": Preset("", title="the embedded model"),
    "openai": Preset("https://api.openai.com/v1", key_variable="OPENAI_API_KEY", address_variable="OPENAI_BASE_URL"),
    "anthropic": Preset(
        "https://api.anthropic.com/v1",
        "anthropic",
        key_variable="ANTHROPIC_API_KEY",
        address_variable="ANTHROPIC_BASE_URL",
    ),
    "openrouter": Preset("https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"),
    "groq": Preset("https://api.groq.com/openai/v1", key_variable="GROQ_API_KEY"),
    "mistral": Preset("https://api.mistral.ai/v1", key_variable="MISTRAL_API_KEY"),
    "deepseek": Preset("https://api.deepseek.com/v1", key_variable="DEEPSEEK_API_KEY"),
    "gemini": Preset("https://generativelanguage.googleapis.com/v1beta/openai", key_variable="GEMINI_API_KEY"),
}


def preset(name: str) -> Preset:
    """The preset of this name; case, dashes, underscores and dots do not count."""
    found = PRESETS.get(name.lower().translate({ord(character): None for character in "-_. "}))
    if found is None:
        raise ConfigError(f"provider {name!r} is not known; known are {', '.join(PRESETS)} (or set base_url)")
    return found


def vendor(base_url: str) -> str:
    """The preset of the vendor whose own host this is; empty for any other host."""
    parts = urlsplit(base_url)
    if parts.scheme != "https":
        return ""
    for name, known in PRESETS.items():
        if known.key_variable and urlsplit(known.base_url).hostname == parts.hostname:
            return name
    return ""


def key_variable(base_url: str) -> str:
    """The variable that holds the key of this vendor's own host; empty for any other host."""
    name = vendor(base_url)
    return PRESETS[name].key_variable if name else ""


def server_title(base_url: str) -> str:
    """The server that usually listens at this local address; empty if none does."""
    return next((known.title for known in PRESETS.values() if base_url and known.base_url == base_url), "")


def canonical_base_url(text: str) -> str:
    """The base URL in one spelling: no trailing slash, no endpoint path, ``/v1`` if the path is empty.

    A query is kept. ``ConfigError`` for what is no http(s) address.

    >>> canonical_base_url("http://localhost:1234/v1/chat/completions")
    'http://localhost:1234/v1'
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as exc:
        raise ConfigError(f"base_url {text!r} is not a URL: {exc}") from exc
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"base_url {text!r} must start with http:// or https://")
    if not parts.hostname or (port is not None and not 0 < port < 65536) or any(c <= " " for c in parts.netloc):
        raise ConfigError(f"base_url {text!r} has no valid host")
    if parts.username or parts.password:
        raise ConfigError("base_url holds a user name or password; pass headers={'Authorization': ...} instead")
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    return urlunsplit((parts.scheme, parts.netloc, path.rstrip("/") or "/v1", parts.query, ""))


def ollama_address(text: str) -> str:
    """The base URL that a value of ``OLLAMA_HOST`` means, which may be a host or a port alone.

    Source: https://github.com/ollama/ollama/blob/main/envconfig/config.go

    >>> ollama_address("0.0.0.0")
    'http://127.0.0.1:11434/v1'
    """
    scheme, _, rest = text.strip().strip("\"'").rpartition("://")
    host, slash, path = rest.partition("/")
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    name, port = (name, port) if colon else (host, {"http": "80", "https": "443"}.get(scheme, "11434"))
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    return canonical_base_url(f"{scheme or 'http'}://{name}:{port}{slash}{path}")


def is_loopback(url: str) -> bool:
    """Whether the URL names this machine."""
    from ipaddress import ip_address

    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_private(url: str) -> bool:
    """Whether nobody on the way can read what is sent there."""
    return url.startswith("https://") or is_loopback(url)


def origin(base_url: str) -> tuple[str, str]:
    """Scheme and host with port: the place that a key may go to."""
    parts = urlsplit(base_url)
    return parts.scheme, parts.netloc.lower()
