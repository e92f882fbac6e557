"""Conversations in the user's data folder, one JSON file each.

A file holds ``{"openagent": 1, "system_prompt": "...", "messages": [...]}``, the messages as ``Message.to_dict``
gives them, and no key. It appears whole or not at all, and nobody but the user can read it.

Owns: where conversations are kept, and their files. Does not know: what is said in them.
Source: https://specifications.freedesktop.org/basedir-spec/latest/
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .. import codec
from ..errors import ConfigError
from ..messages import Message
from ..options import environment

LAST = "last"
"""The name of a conversation that was given none; the next such takes its place."""
VERSION = 1
_NAME = re.compile(r"\w[\w .-]{0,99}")


@dataclass(frozen=True)
class Conversation:
    """What a file holds."""

    messages: Sequence[Message] = field(default_factory=list)
    system_prompt: str = ""


def data_folder(platform: str = sys.platform) -> Path:
    """Where this user's data of openagent is on this platform; it need not exist yet."""
    chosen = environment("XDG_DATA_HOME")
    if chosen and os.path.isabs(chosen):
        return Path(chosen, "openagent")
    if platform == "win32":
        return Path(environment("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local"), "openagent", "Data")
    if platform == "darwin":
        return Path(os.path.expanduser("~/Library/Application Support/openagent"))
    return Path(os.path.expanduser("~/.local/share/openagent"))


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


def load(path: Path) -> Conversation:
    """The conversation in a file; ``ConfigError`` if there is none."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read conversation {str(path)!r}: {error}") from error
    if not isinstance(plain, dict) or plain.get("openagent") != VERSION or not isinstance(plain.get("messages"), list):
        raise ConfigError(f"file {str(path)!r} is no conversation of openagent (version {VERSION})")
    messages = [Message.from_dict(message) for message in plain["messages"]]
    return Conversation(messages, str(plain.get("system_prompt", "")))


def save(path: Path, conversation: Conversation) -> None:
    """Write the conversation; whatever happens, the file is the old one or the new one.

    ``ConfigError`` if it cannot be written.
    """
    plain = {
        "openagent": VERSION,
        "system_prompt": conversation.system_prompt,
        "messages": [message.to_dict() for message in conversation.messages],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(path, codec.dump(plain) + "\n")
    except (OSError, TypeError, ValueError) as error:
        raise ConfigError(f"cannot write conversation {str(path)!r}: {error}") from error


def _write(path: Path, text: str) -> None:
    descriptor, fresh = tempfile.mkstemp(prefix=".saving-", dir=path.parent)  # made with mode 0600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
