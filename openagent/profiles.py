"""Settings by name, out of ``config.toml`` in the user's config folder.

The command line reads them by itself. A program has to ask, ``Client(**profile("work"))``, so that what it
does never depends on a file that nobody sees.

Owns: the file of profiles, which one is meant, which settings go together. Does not know: the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import ConfigError
from .keys import config_folder, key_of, keys, keys_file, read_toml
from .options import AgentOptions, check_names, environment
from .presets import vendor

SERVER = ("base_url", "provider", "protocol", "api_key", "headers", "cert")
"""The settings that say who is asked; with another server none of them holds any more, nor does the model."""


def config_file() -> Path:
    """The file of profiles; it need not exist yet."""
    return config_folder() / "config.toml"


def profiles() -> dict[str, dict[str, Any]]:
    """The profiles by name, as they stand in the file; ``ConfigError`` for what is none."""
    return _read()[0]


def profile(name: str = "") -> dict[str, Any]:
    """The settings of a profile, with its key, as in ``Client(**profile("work"))``.

    Without a name: the profile that ``OPENAGENT_PROFILE`` names, else the file's default, which yields to
    ``OPENAGENT_BASE_URL`` and ``OPENAGENT_MODEL``, else no settings. ``ConfigError`` if there is none of this name.
    """
    found, default = _read()
    named = name or environment("OPENAGENT_PROFILE") or ""
    if not (named or default):
        return {}
    if (named or default) not in found:
        known = ", ".join(found) or "none yet"
        raise ConfigError(f"there is no profile {named or default!r} in {config_file()}; there are: {known}")
    settings = dict(found[named or default])
    if not named:
        settings = _behind_environment(settings)
    if "key" in settings:
        settings["api_key"] = key_of(settings.pop("key"))
    return with_key(settings)


def default_profile() -> str:
    """The name of the profile that is used where none is named; empty if there is none."""
    return environment("OPENAGENT_PROFILE") or _read()[1]


def elsewhere(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that hold for another server too."""
    return {name: value for name, value in settings.items() if name not in (*SERVER, "key", "model")}


def with_key(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with the vendor's key out of the file of keys if they go to its host and no other key is there."""
    plain = dict(settings)
    if plain.get("api_key") is not None or plain.get("provider") == "local" or not keys_file().exists():
        return plain
    options = AgentOptions(model="any", **{name: plain[name] for name in ("base_url", "provider") if name in plain})
    kept = keys().get(vendor(options.base_url)) if options.api_key is None else None
    return plain | ({"api_key": kept} if kept else {})


def _behind_environment(settings: dict[str, Any]) -> dict[str, Any]:
    if environment("OPENAGENT_BASE_URL", "OPEN_AGENT_BASE_URL"):
        return elsewhere(settings)
    if environment("OPENAGENT_MODEL", "OPEN_AGENT_MODEL"):
        settings.pop("model", None)
    return settings


def _read() -> tuple[dict[str, dict[str, Any]], str]:
    """The profiles, and the name of the default."""
    path = config_file()
    whole = read_toml(path)
    found, default = whole.pop("profiles", {}), whole.pop("default", "")
    if whole or not isinstance(found, dict) or not isinstance(default, str):
        wrong = next(iter(whole), "default" if isinstance(found, dict) else "profiles")
        raise ConfigError(f'{wrong!r} in {path} means nothing: write default = "NAME" and tables [profiles.NAME]')
    for name, settings in found.items():
        _check(path, name, settings)
    return found, default


def _check(path: Path, name: str, settings: Any) -> None:
    if not isinstance(settings, dict):
        raise ConfigError(f"profile {name!r} in {path} must be a table [profiles.{name}]")
    if "api_key" in settings:
        raise ConfigError(
            f"profile {name!r} in {path} holds a key: put it away by `openagent key set {name}` "
            f'and write key = "{name}" instead of api_key'
        )
    if not isinstance(settings.get("key", ""), str):
        raise ConfigError(f"key of profile {name!r} in {path} must be the name of a key")
    try:
        check_names(setting for setting in settings if setting != "key")
    except ConfigError as error:
        raise ConfigError(f"profile {name!r} in {path}: {error}") from error
