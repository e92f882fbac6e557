"""The output file of a run: a line of JSON for each key, durable once it is written.

The file is the one truth about a run: what stands in it is done. It is locked while it is open, and the lock
ends with its process, however that ends.

Owns: the file, its lock, its repair. Does not know: prompts, requests.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import codec
from ..errors import AgentError, ConfigError

_START = b'{"key":'


class Ledger:
    """An output file, opened for one run alone. ``known`` is the fingerprint of the input for each key in it.

    ``ConfigError`` if another run has the file open, or it is no output of a run. A last line that broke off is
    cut away; with ``drop_errors`` the lines of failures are, too, so that their keys are missing.
    """

    def __init__(self, path: str | os.PathLike[str], *, drop_errors: bool = False) -> None:
        self._path = Path(path)
        self.known: dict[str, str] = {}
        self.failed = 0
        self._file = self._opened(self._path)
        try:
            self._repair()
            if self._read() and drop_errors:
                self._drop_errors()
        except BaseException:
            self.close()
            raise

    def append(self, record: Mapping[str, Any]) -> None:
        """Add the line of a key; it is on the disk when this returns."""
        text = codec.dump(record).encode() + b"\n"
        if not text.startswith(_START):
            raise ValueError("a record starts with its key")
        try:
            while text:
                text = text[os.write(self._file, text) :]
            os.fsync(self._file)
        except OSError as exc:
            raise AgentError(f"cannot write to {str(self._path)!r}: {exc.strerror or exc}") from exc

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, path: Path) -> int:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as exc:
            raise ConfigError(f"cannot write to {str(path)!r}: {exc.strerror or exc}") from exc
        # While we waited for the lock another run may have put a new file in the place of this one.
        if not (_lock(file) and os.path.samestat(os.fstat(file), os.stat(path))):
            os.close(file)
            raise ConfigError(f"{str(self._path)!r} is in use by another run: wait for it, or choose another file")
        _sync_folder(path.parent)
        return file

    def _repair(self) -> None:
        """Cut a last line away that broke off; one that lacks its line end alone gets it."""
        size = os.fstat(self._file).st_size
        tail = self._tail(size)
        if not tail:
            return
        if isinstance(_parsed(tail), dict) and tail.startswith(_START):
            os.write(self._file, b"\n")
        elif tail.startswith(_START) or _START.startswith(tail) or not tail.strip(b"\0"):
            os.ftruncate(self._file, size - len(tail))
        else:
            raise ConfigError(f"{str(self._path)!r} is no output of a run: it ends with {tail[:80]!r}")
        os.fsync(self._file)

    def _tail(self, size: int) -> bytes:
        """What follows the last line end."""
        tail, place = b"", size
        with open(self._path, "rb") as file:
            while place > 0 and b"\n" not in tail:
                step = min(65536, place)
                place -= step
                file.seek(place)
                tail = file.read(step) + tail
        return tail.rpartition(b"\n")[2]

    def _read(self) -> bool:
        """Learns what is done; whether some of it failed."""
        with open(self._path, "rb") as file:
            for number, text in enumerate(file, 1):
                record = _parsed(text)
                if not (isinstance(record, dict) and isinstance(record.get("key"), str)):
                    raise ConfigError(f"{str(self._path)!r} is no output of a run: line {number} is {text[:80]!r}")
                self.known[record["key"]] = str(record.get("fingerprint"))
                self.failed += record.get("error") is not None
        return self.failed > 0

    def _drop_errors(self) -> None:
        """Put a file without the failures in the place of this one, in one step and without losing the lock."""
        other = self._path.with_name(self._path.name + ".new")
        file = os.open(other, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _lock(file)
            with open(self._path, "rb") as old, open(file, "wb", closefd=False) as new:
                for text in old:
                    record = _parsed(text)
                    if record.get("error") is None:
                        new.write(text)
                    else:
                        self.known.pop(record["key"], None)
            os.fsync(file)
            os.replace(other, self._path)
        except BaseException:
            os.close(file)
            raise
        self.close()
        self._file, self.failed = file, 0
        _sync_folder(self._path.parent)


def _parsed(text: bytes) -> Any:
    try:
        return codec.parse(text)
    except ValueError:
        return None


def _lock(file: int) -> bool:
    """Lock the file for as long as it is open; False if another process has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, 1 << 40, os.SEEK_SET)  # far behind its end, so that it can be read
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable, where folders can be synced."""
    if sys.platform != "win32":
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        except OSError:
            pass
        finally:
            os.close(place)
