"""Keys in a file of their own in the user's config folder, which only the user can read.

The file is ``keys.toml``, a line ``name = "key"`` each. A key goes where a profile takes it by its name, and
one that has a vendor's name (``openai``) to that vendor's own host.

Owns: the folder, the file of keys. Does not know: profiles, options, whose turn it is to use a key.
Source: https://specifications.freedesktop.org/basedir-spec/latest/
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import ConfigError
from .folders import user_folder, write_whole
from .options import environment, is_header_value

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def config_folder(platform: str = sys.platform) -> Path:
    """Where this user's settings of openagent are on this platform; it need not exist yet."""
    found = {"XDG": environment("XDG_CONFIG_HOME"), "WINDOWS": environment("APPDATA")}
    return user_folder(platform, found, windows="AppData/Roaming", mac="Library/Application Support", other=".config")


def keys_file() -> Path:
    """The file of keys; it need not exist yet."""
    return config_folder() / "keys.toml"


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds, ``{}`` if there is none; ``ConfigError`` if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    try:
        if sys.version_info >= (3, 11):
            import tomllib
        else:
            import tomli as tomllib
    except ImportError as error:
        raise ConfigError(f'{path} cannot be read before Python 3.11: pip install "openagent[cli]"') from error
    try:
        return dict(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is no TOML: {error}") from error


def keys() -> dict[str, str]:
    """The keys by name; ``ConfigError`` if others can read the file too."""
    path = keys_file()
    if os.name == "posix" and path.exists() and path.stat().st_mode & 0o077:
        raise ConfigError(f"others can read the keys in {path}: chmod 600 {path}")
    found = read_toml(path)
    for name, key in found.items():
        if not is_header_value(key):
            raise ConfigError(f"key {name!r} in {path} must be a text without blanks at its ends: openagent key set")
    return found


def key_of(name: str) -> str:
    """The key of this name; ``ConfigError`` if there is none."""
    found = keys().get(name)
    if found is None:
        raise ConfigError(f"there is no key {name!r} in {keys_file()}: openagent key set {name}")
    return found


def keep_key(name: str, key: str) -> None:
    """Put a key into the file, which nobody else can read; ``ConfigError`` if it is none, or cannot be written."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"key name {name!r} must be 1 to 64 of the characters A-Z a-z 0-9 _ -")
    if not key or not is_header_value(key):
        raise ConfigError(f"this is no key for {name!r}: it is empty, or holds line ends or odd characters")
    _write(keys() | {name: key})


def drop_key(name: str) -> None:
    """Take a key out of the file; ``ConfigError`` if there is none of this name."""
    key_of(name)
    _write({other: key for other, key in keys().items() if other != name})


def _write(kept: Mapping[str, str]) -> None:
    path = keys_file()
    lines = [f"{name} = {json.dumps(key)}\n" for name, key in sorted(kept.items())]  # which is TOML as well
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, "".join(lines).encode())
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error}") from error
