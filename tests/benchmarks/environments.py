"""``python -m tests.benchmarks.environments``: makes the peers' virtual environments, each of its own.

They lie outside of the repository, below ``$OPENAGENT_PEERS`` or ``~/.cache/openagent-peers``; what is there stays.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

PEERS = ("openai", "anthropic", "chatlas", "llm", "litellm")
_BESIDES = {"chatlas": ("openai",)}


def folder() -> Path:
    """Where the environments are."""
    return Path(os.environ.get("OPENAGENT_PEERS") or Path.home() / ".cache" / "openagent-peers")


def python(peer: str) -> Path:
    """The interpreter of a peer's environment."""
    return folder() / peer / "bin" / "python"


def make(peers: Iterable[str] = PEERS) -> None:
    """Makes the environments that are missing; says which could not be made."""
    for peer in peers:
        if (folder() / peer / "made").exists():
            continue
        commands = (
            [sys.executable, "-m", "venv", str(folder() / peer)],
            [str(python(peer)), "-m", "pip", "install", "-q", peer, *_BESIDES.get(peer, ())],
        )
        if all(subprocess.run(command).returncode == 0 for command in commands):
            (folder() / peer / "made").touch()
        else:
            print(f"{peer}: its environment could not be made", file=sys.stderr)


if __name__ == "__main__":
    make(sys.argv[1:] or PEERS)
