"""Conversations in the user's data folder, one file each.

Owns: where conversations are kept, and under which names. Does not know: their files' insides.
Source: https://specifications.freedesktop.org/basedir-spec/latest/
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ..client import Client
from ..errors import ConfigError
from ..folders import user_folder
from ..options import environment

LAST = "last"
"""The name of a conversation that was given none; the next such takes its place."""
_NAME = re.compile(r"\w[\w .-]{0,99}")


def data_folder(platform: str = sys.platform) -> Path:
    """Where this user's data of openagent is on this platform; it need not exist yet."""
    found = {"XDG": environment("XDG_DATA_HOME"), "WINDOWS": environment("LOCALAPPDATA")}
    mac, other = "Library/Application Support", ".local/share"
    return user_folder(platform, found, windows="AppData/Local", mac=mac, other=other, on_windows="Data")


def path_of(name: str) -> Path:
    """The file of a conversation; ``ConfigError`` for a name that could leave the folder."""
    if not _NAME.fullmatch(name) or name.endswith((" ", ".")):
        raise ConfigError(f"conversation name {name!r} may hold letters, digits, blanks and . _ - only")
    return data_folder() / "conversations" / f"{name}.json"


def latest() -> str:
    """The name of the conversation used last; ``ConfigError`` if there is none."""
    files = list((data_folder() / "conversations").glob("*.json"))
    if not files:
        raise ConfigError("there is no conversation to continue")
    return max(files, key=lambda path: path.stat().st_mtime_ns).stem


def save(client: Client, name: str) -> None:
    """Keep the client's conversation under a name; ``ConfigError`` if it cannot be written."""
    path = path_of(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(f"cannot write conversation {str(path)!r}: {error.strerror or error}") from error
    client.save(path)
