"""What a server is, which models it has, and how much they can read.

Owns: the documents by which servers tell themselves apart. Does not know: turns, network.
Source: https://docs.ollama.com/api (/api/version, /api/ps, /api/show),
https://lmstudio.ai/docs/developer/rest (/api/v0/models),
https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md (/props),
https://huggingface.github.io/text-generation-inference/ (/info), https://docs.vllm.ai (``owned_by``, /version),
https://lite.koboldai.net/koboldcpp_api (/api/extra/version), https://docs.sglang.ai (/get_model_info)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ..errors import AgentError, Timeout
from ..presets import PRESETS
from .bench import Bench, Page

_OWNERS = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llamacpp": "llama.cpp",
    "llama.cpp": "llama.cpp",
    "koboldcpp": "KoboldCpp",
    "library": "Ollama",
    "organization_owner": "LM Studio",
    "gpt4all": "GPT4All",
    "humanity": "GPT4All",
    "cortex": "Jan",
    "jan": "Jan",
    "lmdeploy": "LMDeploy",
    "mlx": "MLX",
    "tabbyapi": "TabbyAPI",
    "xinference": "Xinference",
}
_NO_CHAT = ("embed", "rerank", "whisper", "tts", "bge-", "moderation", "dall-e", "clip")
_CONTEXT = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx", "max_total_tokens")


@dataclass(frozen=True)
class Identity:
    """What a server said of itself; ``error`` is why it could not be reached at all."""

    title: str = ""
    version: str = ""
    models: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    rows: tuple[Mapping[str, Any], ...] = ()
    pages: Mapping[str, Any] | None = None
    has_list: bool = False
    error: AgentError | None = None

    @property
    def likely_model(self) -> str:
        """The model to try: one that is loaded, else the first that can chat."""
        names = [name for name in (*self.loaded, *self.models) if not any(word in name.lower() for word in _NO_CHAT)]
        return next(iter(names), "")


def identify(bench: Bench) -> Identity:
    """What the server is, by its list of models and by the documents that only some have."""
    first = bench.page("/models", at_root=False, patience=20.0)
    if isinstance(first, AgentError) and first.status is None:
        return Identity(error=first)
    said = first.value if isinstance(first, Page) else None
    rows = _rows(said)
    headers = first.headers if isinstance(first, Page) else {}
    title = _cloud(bench.options.base_url) or _owner(rows, said)
    pages: dict[str, Any] = {}
    if not _cloud(bench.options.base_url):
        title = _told(bench, pages, title, headers)
    names = tuple(str(row.get("id") or row.get("name") or row.get("model")) for row in rows)
    native = _rows(pages.get("/api/v0/models"))
    return Identity(
        title=title or str(headers.get("Server", "")),
        version=_version(pages),
        models=names or tuple(str(row.get("id")) for row in native),
        loaded=_loaded(pages),
        rows=(*rows, *native),
        pages=pages,
        has_list=isinstance(said, (dict, list)) and _list(said) is not None,
        error=first if isinstance(first, AgentError) and first.status in (401, 403) else None,
    )


def _told(bench: Bench, pages: dict[str, Any], title: str, headers: Mapping[str, str]) -> str:
    """The title by documents; those that were read are kept in ``pages``."""
    if "llama.cpp" in headers.get("Server", ""):
        title = "llama.cpp"
    for path, name, mark in _MARKS:
        if (title or name in _COMMON) and name != title:
            continue
        page = bench.page(path)
        if isinstance(page, Timeout):  # it leaves unknown paths unanswered: the others are not worth the time
            return title
        value = page.value if isinstance(page, Page) else None
        if isinstance(value, dict) and (not mark or any(word in value for word in mark)):
            pages[path] = value
            title = name
    return title or _by_description(bench)


def _by_description(bench: Bench) -> str:
    """What a server built with FastAPI calls itself (LiteLLM, llama-cpp-python)."""
    page = bench.page("/openapi.json")
    value = page.value if isinstance(page, Page) else None
    about = value.get("info") if isinstance(value, dict) else None
    title = about.get("title") if isinstance(about, dict) else None
    return title if isinstance(title, str) and title != "FastAPI" else ""


_COMMON = ("vLLM",)  # its document says too little to know it by
# Path, whose it is, and a member that only this server has there.
_MARKS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("/api/v0/models", "LM Studio", ("data",)),
    ("/props", "llama.cpp", ("default_generation_settings",)),
    ("/api/extra/version", "KoboldCpp", ("result",)),
    ("/get_model_info", "SGLang", ("model_path",)),
    ("/info", "TGI", ("model_id", "max_total_tokens")),
    ("/v1/internal/model/info", "text-generation-webui", ("model_name",)),
    ("/api/ps", "Ollama", ("models",)),
    ("/api/version", "Ollama", ("version",)),
    ("/version", "vLLM", ("version",)),
)


def context_length(bench: Bench, identity: Identity, model: str) -> tuple[int, str] | None:
    """How many tokens the model's context has, and who said so."""
    pages = identity.pages or {}
    props = pages.get("/props", {})
    settings = props.get("default_generation_settings")
    n_ctx = settings.get("n_ctx") if isinstance(settings, dict) else None
    if type(n_ctx) is int:
        return n_ctx, "/props"
    for row in sorted(identity.rows, key=lambda row: "loaded_context_length" not in row):
        if model in (row.get("id"), row.get("name"), row.get("model")):
            meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
            found = _number({**(meta or {}), **row}, ("loaded_context_length", *_CONTEXT))
            if found:
                return found, "the list of models"
    if identity.title == "Ollama":
        return _ollama_context(bench, pages, model)
    found = _number(pages.get("/info", {}), _CONTEXT)
    return (found, "/info") if found else None


def _ollama_context(bench: Bench, pages: Mapping[str, Any], model: str) -> tuple[int, str] | None:
    """What the loaded model has now; else what the model could have, which is more than Ollama gives by default."""
    for row in _rows(pages.get("/api/ps")):
        if model in (row.get("name"), row.get("model")) and (found := _number(row, ("context_length",))):
            return found, "/api/ps, as loaded now"
    page = bench.page("/api/show", body={"model": model})
    value = page.value if isinstance(page, Page) else None
    facts = value.get("model_info") if isinstance(value, dict) else None
    for name, number in facts.items() if isinstance(facts, dict) else ():
        if name.endswith(".context_length") and type(number) is int:
            return number, "/api/show, at most; OLLAMA_CONTEXT_LENGTH sets what is used"
    return None


def _number(row: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((row[name] for name in names if type(row.get(name)) is int and row[name] > 0), None)


def _list(said: Any) -> list[Any] | None:
    rows = said.get("data", said.get("models")) if isinstance(said, dict) else said
    return rows if isinstance(rows, list) else None


def _rows(said: Any) -> tuple[Mapping[str, Any], ...]:
    rows = [row for row in _list(said) or [] if isinstance(row, dict)]
    return tuple(row for row in rows if row.get("id") or row.get("name") or row.get("model"))


def _owner(rows: tuple[Mapping[str, Any], ...], said: Any) -> str:
    owners = [str(row.get("owned_by", "")).lower() for row in rows]
    return next((_OWNERS[owner] for owner in owners if owner in _OWNERS), "")


def _cloud(base_url: str) -> str:
    host = urlsplit(base_url).hostname or ""
    for name, known in PRESETS.items():
        if known.key_variable and urlsplit(known.base_url).hostname == host:
            return known.title or name
    return "Azure" if host.endswith(".azure.com") else ""


def _version(pages: Mapping[str, Any]) -> str:
    named = (("/api/version", "version"), ("/version", "version"), ("/info", "version"), ("/props", "build_info"))
    for path, name in (*named, ("/api/extra/version", "version")):
        value = pages.get(path, {}).get(name)
        if isinstance(value, str) and "unknown" not in value:  # llama.cpp inside another program has no version
            return value
    return ""


def _loaded(pages: Mapping[str, Any]) -> tuple[str, ...]:
    running = [str(row.get("name") or row.get("model")) for row in _rows(pages.get("/api/ps"))]
    studio = _rows(pages.get("/api/v0/models"))
    return (*running, *(str(row["id"]) for row in studio if row.get("state") == "loaded"))
