"""Answers kept in a folder, under everything that was sent for them.

What is kept is the body of the reply as it came, so that what is read from the folder goes through the same
decoder as what comes from the server. Several processes may use one folder.

Owns: the folder. Does not know: what the bytes say, when to ask.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .. import codec
from ..adapters import Request
from ..errors import ConfigError

_SECRET = ("authorization", "x-api-key", "api-key")


class Cache:
    """Bodies of replies by request; a body that cannot be read is one that is not there."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._guard = threading.Lock()
        self._asking: dict[str, tuple[threading.Lock, int]] = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"cache {str(folder)!r} cannot be a folder: {exc.strerror or exc}") from exc

    def read(self, key: str) -> tuple[dict[str, str], bytes] | None:
        """Headers and body of the reply kept under this key."""
        try:
            head, mark, body = self._path(key).read_bytes().partition(b"\n")
            headers = codec.parse(head)
        except (OSError, ValueError):
            return None
        is_whole = bool(mark) and isinstance(headers, dict) and headers.pop("length", None) == len(body)
        return (headers, body) if is_whole else None

    def write(self, key: str, headers: Mapping[str, str], body: bytes) -> None:
        """Keep a reply; a reader sees all of it or nothing."""
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        mine = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        kept = {"content-type": headers.get("content-type", ""), "length": len(body)}
        mine.write_bytes(codec.dump(kept).encode() + b"\n" + body)
        os.replace(mine, path)

    @contextmanager
    def alone(self, key: str) -> Iterator[None]:
        """Within this context no other thread of this process asks for the same."""
        with self._guard:
            lock, users = self._asking.get(key, (threading.Lock(), 0))
            self._asking[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._asking.pop(key)
                if users > 1:
                    self._asking[key] = (lock, users - 1)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.reply"


def key_of(request: Request) -> str:
    """The key of a request: everything that is sent, the API key excepted."""
    from hashlib import sha256

    headers = sorted((name.lower(), value) for name, value in request.headers.items() if name.lower() not in _SECRET)
    text = codec.dump([request.url, headers]).encode()
    return sha256(text + b"\n" + request.body).hexdigest()
