"""The process that runs llama.cpp's HTTP server; started by path, with nothing of ours imported.

It reads its settings (a line of JSON) from stdin, writes the address it listens at to stdout, and
ends when stdin does, which also happens when the parent is killed.
Owns: llama.cpp's parameters. Does not know: where a model comes from, who talks to the server.
Source: https://github.com/xorbitsai/xllamacpp, https://github.com/ggml-org/llama.cpp/tree/master/tools/server

A process of its own, because inside the user's (measured with xllamacpp 2026.10.11549) the
interpreter crashes at exit while an answer is being generated, and so does every forked child;
loading holds the GIL; and an abort in C++ would take a notebook's kernel with it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def parameters(settings: dict[str, Any]) -> Any:
    """llama.cpp's parameters for these settings: ``path name template threads max_tokens``."""
    from xllamacpp import CommonParams

    params = CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["name"]}
    params.use_jinja = True
    if settings["template"]:  # the built-in model
        params.chat_template = settings["template"]
        # So small a model answers best when it takes the likeliest word and is kept from repeating itself:
        # at the usual 0.8 it does not know the capital of France, at 0 alone it runs in circles.
        params.sampling.temp, params.sampling.penalty_repeat = 0.0, 1.1
    params.n_predict = settings["max_tokens"]
    params.cpuparams.n_threads = settings["threads"]
    params.port = 0
    # Four requests at once share one context, so that each alone may have all of it.
    params.n_ctx, params.n_parallel, params.kv_unified = 8192, 4, True
    # An abandoned request ends between two batches of its prompt: 2048 tokens, the default, are long on a CPU.
    params.n_batch = params.n_ubatch = 256
    # Errors only: the parent reads them if the model does not load.
    params.verbosity = 1
    # No page of a browser, no UI, nobody's prompts.
    params.cors_origins, params.ui, params.endpoint_slots = "localhost", False, False
    return params


def main() -> None:
    """Serve until stdin ends."""
    settings = json.loads(sys.stdin.readline())
    # Read by OpenMP when it is loaded: threads that spin while they wait make generation three times
    # slower on a machine that does something else as well, and no faster on an idle one (measured).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # What the C++ code prints must not be taken for the address.
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)
        try:
            from xllamacpp import Server

            server = Server(parameters(settings))
        except Exception as error:
            sys.exit(str(error))
        answer.write(server.listening_address + "\n")
    sys.stdin.read()
    # Without the destructor, which crashes while an answer is being generated.
    os._exit(0)


if __name__ == "__main__":
    main()
