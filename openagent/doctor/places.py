"""Where local servers usually listen, and which of them answer.

Owns: the usual ports, ``OLLAMA_HOST``, asking all of them at once. Does not know: what a server can do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ConfigError
from ..options import AgentOptions, environment
from ..presets import canonical_base_url
from .bench import Bench
from .identity import Identity, identify

PORTS = {
    1234: "LM Studio",
    11434: "Ollama",
    8080: "llama.cpp, LocalAI, MLX, TGI",
    8000: "vLLM",
    30000: "SGLang",
    3000: "TGI",
    5001: "KoboldCpp",
    5000: "text-generation-webui, TabbyAPI",
    4891: "GPT4All",
    1337: "Jan",
    8001: "vLLM, a second one",
    8081: "llama.cpp, a second one",
    23333: "LMDeploy",
    9997: "Xinference",
    4000: "LiteLLM",
}


@dataclass(frozen=True)
class Place:
    """A local server that answers."""

    base_url: str
    identity: Identity


def usual_places() -> list[str]:
    """The base URLs where a local server may be, ``OLLAMA_HOST`` first if it is set."""
    named = environment("OLLAMA_HOST")
    urls = [ollama_url(named)] if named else []
    return list(dict.fromkeys([*urls, *(f"http://localhost:{port}/v1" for port in PORTS)]))


def ollama_url(text: str) -> str:
    """The base URL that ``OLLAMA_HOST`` stands for; an address to listen at everywhere means this machine.

    >>> [ollama_url(text) for text in ("0.0.0.0", ":11500", "https://box", "box:80")]
    ['http://localhost:11434/v1', 'http://localhost:11500/v1', 'https://box:443/v1', 'http://box:80/v1']
    """
    scheme, mark, rest = text.strip().rpartition("://")
    scheme = scheme if mark else "http"
    host, slash, path = rest.partition("/")
    name, _, port = host.rpartition(":") if host.rpartition(":")[2].isdigit() else (host, "", "")
    usual = {"http": "80", "https": "443"}.get(scheme, "") if mark else "11434"
    name = "localhost" if name in ("", "0.0.0.0", "[::]", "::") else name
    return canonical_base_url(f"{scheme}://{name}:{port or usual}{slash}{path}")


def find(urls: Sequence[str] | None = None, *, timeout: float = 3.0) -> list[Place]:
    """The servers that answer at these addresses (by default the usual ones), asked all at once, without a key."""
    from concurrent.futures import ThreadPoolExecutor

    chosen = usual_places() if urls is None else list(urls)
    if not chosen:
        return []
    with ThreadPoolExecutor(len(chosen)) as threads:
        found = threads.map(lambda url: _asked(url, timeout), chosen)
        return [place for place in found if place is not None]


def _asked(url: str, timeout: float) -> Place | None:
    try:
        options = AgentOptions(model="any", base_url=url, api_key="", timeout=(min(0.5, timeout), timeout))
    except ConfigError:
        return None
    bench = Bench(options, time.monotonic() + timeout)
    try:
        identity = identify(bench)
    finally:
        bench.connections.close()
    is_model_server = identity.has_list or (identity.pages or {}) or identity.error is not None
    is_there = identity.error is None or identity.error.status is not None
    return Place(url, identity) if is_there and is_model_server else None
