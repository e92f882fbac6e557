"""``openagent profiles``: the profiles in the user's file.

Owns: the list. Does not know: the file.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..profiles import config_file, default_profile, profiles
from .output import tell, write_text

EXAMPLE = """default = "home"

[profiles.home]
provider = "ollama"
model = "qwen3:8b"
"""


def add_profiles(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.set_defaults(run=run_profiles)
    parser.description = "The profiles in your file, the usual one with a star. --profile NAME takes one."


def run_profiles(chosen: argparse.Namespace) -> int:
    """Runs the command and returns its exit code."""
    found, usual = profiles(), default_profile()
    if not found:
        tell(f"There are no profiles. Write some into {config_file()}, as\n\n{EXAMPLE}")
        return 0
    width = max(map(len, found))
    write_text(f"{'*' if name == usual else ' '} {name:{width}}  {_told(found[name])}\n" for name in found)
    return 0


def _told(settings: dict[str, Any]) -> str:
    server = settings.get("base_url") or settings.get("provider") or "the usual server"
    return f"{settings.get('model') or 'any model'} at {server}"
