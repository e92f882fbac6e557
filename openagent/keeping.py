"""Conversations in files: written whole or not at all, for nobody but the user, images inline or beside.

Images beside a file ``talk.json`` are in a folder ``talk.images``, each named by the hash of its bytes.

Owns: files of conversations. Does not know: what is in a conversation, where the command line keeps its own.
"""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any, Literal, Union

from . import codec
from .conversation import Conversation, from_plain, to_plain
from .errors import ConfigError
from .folders import write_whole
from .images import checked_url, data_uri, file_content, split_data_uri

Place = Union[str, "os.PathLike[str]"]
Images = Literal["inline", "beside"]

DEPTH = codec.MAX_DEPTH + 20
"""How deep a file may be nested: arguments as deep as a server may send them, and what is around them."""
# One folder, one file in it: a file that somebody sent must not name others of the reader's.
_REFERENCE = re.compile(r"(?!\.\.?/)[^/\\:]+/(?P<hash>[0-9a-f]{64})\.(png|jpeg|gif|webp)")


def load(path: Place) -> Conversation:
    """The conversation in a file; ``ConfigError`` if there is none, or one of its images is missing."""
    file = _path(path)
    try:
        plain = codec.parse(file.read_bytes().decode("utf-8-sig"), depth=DEPTH)
    except OSError as error:
        raise ConfigError(f"cannot read conversation {str(file)!r}: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(
            f"file {str(file)!r}: this is no conversation of openagent, since no JSON ({error})"
        ) from error
    urls = _beside(file, plain.get("images") if isinstance(plain, dict) else None)
    try:
        return from_plain(plain, lambda url: urls.get(url, url))
    except ConfigError as error:
        raise ConfigError(f"file {str(file)!r}: {error}") from error


def save(path: Place, conversation: Conversation, *, images: Images = "inline") -> None:
    """Write the conversation; whatever happens, the file is the old one or the new one.

    ``ConfigError`` if it cannot be written. Images that were beside an older version stay there.
    """
    file = _path(path)
    if images not in ("inline", "beside"):
        raise ConfigError(f"images {images!r:.100} must be 'inline' or 'beside'")
    file = Path(os.path.realpath(file))  # a link stays a link
    folder, found = file.parent / f"{file.stem}.images", dict[str, bytes]()

    def moved(url: str) -> str:
        content = _content(url)
        if content is None:
            return url
        name = _name(url, content)
        found[name] = content
        return f"{folder.name}/{name}"

    plain = to_plain(conversation, moved if images == "beside" else str)
    if found:
        plain["images"] = [f"{folder.name}/{name}" for name in found]
    try:
        text = codec.dump(plain)
        if not codec.is_shallow(plain, DEPTH):
            raise ValueError("it is nested too deeply")
        for name, content in found.items():
            folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(folder / name, content)
        write_whole(file, f"{text}\n".encode())
    except (OSError, TypeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot write conversation {str(file)!r}: {why or error}") from error


def _path(path: Place) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise ConfigError(f"path {path!r:.100} must be the path of a file")
    return Path(path)


def _content(url: str) -> bytes | None:
    """The bytes of an image; None of one that is elsewhere, or would come back otherwise than it was."""
    try:
        if not url.startswith("data:") or checked_url(url) != url:
            return None
    except ConfigError:  # a tool's result only looks like an image
        return None
    return base64.b64decode(split_data_uri(url)[1])


def _name(url: str, content: bytes) -> str:
    return f"{_hash(content)}.{split_data_uri(url)[0].removeprefix('image/')}"


def _hash(content: bytes) -> str:
    from hashlib import sha256

    return sha256(content).hexdigest()


def _beside(file: Path, references: Any) -> dict[str, str]:
    """The data URIs of the images beside a file, by what stands for them in it."""
    if references is None:
        return {}
    if not isinstance(references, list) or not all(isinstance(item, str) for item in references):
        raise ConfigError(f"file {str(file)!r}: this is no conversation of openagent: images must be a list of texts")
    return {reference: _image(file, reference) for reference in references}


def _image(file: Path, reference: str) -> str:
    named = _REFERENCE.fullmatch(reference)
    if named is None:
        raise ConfigError(f"file {str(file)!r} names an image {reference!r:.100} that is none beside it")
    path = file.parent / reference
    try:
        content = file_content(path)
    except ConfigError as error:
        raise ConfigError(f"{error}; conversation {str(file)!r} needs its folder of images beside it") from error
    if _hash(content) != named["hash"]:
        raise ConfigError(f"image file {str(path)!r} is not the one that conversation {str(file)!r} was saved with")
    return data_uri(content)
