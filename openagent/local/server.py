"""A server for a model, in a process that ends with ours; one for each model.

Owns: starting, finding and ending these processes, also across threads and forks. Does not know:
llama.cpp's parameters, what is asked of the server.
Source: https://docs.python.org/3/library/subprocess.html
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..waiting import waiting
from .model import SMOLLM2, fetch_model

if TYPE_CHECKING:
    import subprocess

BUILT_IN = SMOLLM2.title.lower()
COMMAND = (sys.executable, str(Path(__file__).with_name("process.py")))

# The template in the model's file puts a system prompt of its own before the user's words, and
# then the model answers "What is the capital of France?" with nonsense.
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# So small a model does not always find an end, and filling its context takes minutes.
MAX_TOKENS = 1024
UNLIMITED = -1

# Ctrl-C in a terminal goes to all processes of its session: the server is to survive it, like the client.
_APART: dict[str, Any] = (
    {"start_new_session": True} if os.name == "posix" else {"creationflags": 0x0800_0200}  # no window, own group
)


@dataclass(frozen=True)
class Endpoint:
    """Where a server listens (``http://127.0.0.1:.../v1``), and the model's name there."""

    base_url: str
    model: str


@dataclass(frozen=True)
class Plan:
    """Which file is to be served how; ``path`` gives the file, fetching it if need be."""

    key: str
    name: str
    path: Callable[[], Path]
    template: str = ""
    max_tokens: int = UNLIMITED


class Server:
    """A running server; the constructor returns when it answers.

    Raises ``ConfigError`` with llama.cpp's reason if the model does not load.
    """

    def __init__(self, path: Path, plan: Plan, *, command: Sequence[str] = COMMAND) -> None:
        import subprocess
        import tempfile

        settings = {
            "path": str(path),
            "name": plan.name,
            "template": plan.template,
            "threads": usable_cores(at_most=4),
            "max_tokens": plan.max_tokens,
        }
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process, see let_go)
        try:
            self._process: subprocess.Popen[str] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, **_APART
            )
        except OSError as error:
            self._log.close()
            raise ConfigError(f"the embedded server cannot be started: {error}") from error
        try:
            address = self._told(settings)
            if not address:
                raise ConfigError(f"the embedded server did not start with {path}: {self._reason()}")
        except BaseException:  # also Ctrl-C, while a large file is being loaded
            self.stop()
            raise
        self.endpoint = Endpoint(f"{address}/v1", plan.name)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """End it now; it has nothing to save."""
        self._process.kill()
        self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Close our ends of the pipes, and leave the process to whoever holds the other copies."""
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # unsent bytes for a process that is gone
                    pass

    def _told(self, settings: dict[str, Any]) -> str:
        """Send the settings; what the process answers: its address, or nothing if it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(settings) + "\n")
            self._process.stdin.flush()
        except OSError:
            return ""
        if os.name == "posix":
            # Some libraries (polars) have signals restart what they interrupt: a read would not feel Ctrl-C then.
            select.select([self._process.stdout], [], [])
        return self._process.stdout.readline().strip()

    def _reason(self) -> str:
        self._process.wait()
        self._log.seek(0)
        said = self._log.read().decode("utf-8", "replace").strip()
        found = re.search(r"error loading model: (.+)", said)
        return found[1] if found else said[-300:].strip() or f"exit code {self._process.returncode}"


def _found(name: str) -> object:
    from importlib.util import find_spec

    return find_spec(name)


class Servers:
    """The servers of this process, at most one for each model."""

    def __init__(
        self,
        *,
        fetch: Callable[[], Path] = fetch_model,
        command: Sequence[str] = COMMAND,
        installed: Callable[[str], object] = _found,
    ) -> None:
        self._fetch, self._command, self._installed = fetch, command, installed
        self._lock = threading.Lock()
        self._running: dict[str, Server] = {}

    def endpoint(self, model: str) -> Endpoint:
        """The address of the model's server, which is started if it is not running."""
        plan = self._plan(model)
        with self._lock:
            server = self._running.get(plan.key)
            if server is None or not server.is_alive():
                if server is not None:
                    server.let_go()
                server = self._running[plan.key] = self._started(plan)
        return server.endpoint

    def stop(self) -> None:
        """End all of them."""
        with self._lock:
            while self._running:
                self._running.popitem()[1].stop()

    def forget(self) -> None:
        """Start afresh in a forked child: these servers, and the lock as it was, are its parent's."""
        self._lock = threading.Lock()
        for server in self._running.values():
            server.is_alive()  # asked here it is no: Popen notes that the process is not ours to wait for
            server.let_go()
        self._running = {}

    def _started(self, plan: Plan) -> Server:
        if not self._installed("xllamacpp"):
            raise ConfigError('the embedded model needs an extra: python -m pip install "openagent[local]"')
        path = plan.path()
        with waiting(f"loading {plan.name}"):
            return Server(path, plan, command=self._command)

    def _plan(self, model: str) -> Plan:
        if model.lower() in ("", "smollm2", BUILT_IN):
            return Plan("", BUILT_IN, self._fetch, TEMPLATE, MAX_TOKENS)
        path = Path(model).expanduser().resolve()
        if not path.is_file():
            raise ConfigError(f"model={model!r}: no such file; give the path of a GGUF file, or nothing for {BUILT_IN}")
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ConfigError(f"model={model!r}: this is no GGUF file")
        return Plan(str(path), path.stem, lambda: path)


def usable_cores(*, at_most: int) -> int:
    """How many cores this process may use, up to a limit."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(cores, at_most)
