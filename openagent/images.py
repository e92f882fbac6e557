"""What makes an image sendable: its URL checked, its bytes recognised.

The type of image bytes is read from their first bytes and overrides any label, since servers
refuse an image whose declared type is wrong and the refusal would stay in the conversation.

Owns: data URIs and image types. Does not know: messages, network.
Source: RFC 2397 (data URIs); the formats that all vendors take: PNG, JPEG, GIF, WebP.
"""

from __future__ import annotations

import base64
import binascii
import os
import re

from .errors import ConfigError

MAX_IMAGE_BYTES = 20_000_000

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def checked_url(url: object) -> str:
    """The URL if an image may be sent by it: ``http(s)://`` as it is, ``data:`` with its true type."""
    if not isinstance(url, str) or not url:
        raise ConfigError(f"an image needs a URL, not {_shown(url)}")
    if _CONTROL.search(url):
        raise ConfigError(f"image URL {_shown(url)} holds a control character")
    if url.startswith("data:"):
        return _checked_data_uri(url)
    if url.startswith(("http://", "https://")):
        return url
    raise ConfigError(
        f"image URL {_shown(url)} must start with http://, https:// or data: (for a file: ImageBlock.from_file_path)"
    )


def data_uri(content: bytes, *, origin: str = "image") -> str:
    """The ``data:`` URI of image bytes; ``ConfigError`` if they are no PNG, JPEG, GIF or WebP."""
    kind = _kind(content)
    if kind is None:
        raise ConfigError(f"{origin} is no PNG, JPEG, GIF or WebP image (it starts with {content[:12]!r})")
    if len(content) > MAX_IMAGE_BYTES:
        raise ConfigError(f"{origin} has {len(content)} bytes; the limit is {MAX_IMAGE_BYTES}")
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def decoded(payload: str, *, origin: str = "image") -> bytes:
    """The bytes of strict base64 (standard alphabet, padded, no blanks)."""
    try:
        content = base64.b64decode(payload.encode("ascii"), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ConfigError(f"{origin} is not valid base64: {exc}") from exc
    if not content:
        raise ConfigError(f"{origin} is empty")
    return content


def check_mime(mime: str) -> None:
    """``ConfigError`` unless it is a plain ``image/...`` type."""
    if not mime.startswith("image/") or any(character in mime for character in ";,\r\n"):
        raise ConfigError(f"MIME type {_shown(mime)} is not an image type such as 'image/png'")


def file_content(path: str | os.PathLike[str]) -> bytes:
    """The bytes of an image file; ``ConfigError`` if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(MAX_IMAGE_BYTES + 1)
    except OSError as exc:
        raise ConfigError(f"cannot read image file {os.fspath(path)!r}: {exc.strerror or exc}") from exc


def split_data_uri(url: str) -> tuple[str, str]:
    """MIME type and base64 payload of a checked ``data:`` URI."""
    head, _, payload = url.partition(",")
    return head.removeprefix("data:").partition(";")[0], payload


def _checked_data_uri(url: str) -> str:
    head, marker, payload = url.partition(";base64,")
    if not marker:
        raise ConfigError(f"image data URI {_shown(url)} has no ';base64,'")
    check_mime(head.removeprefix("data:").partition(";")[0])
    return data_uri(decoded(payload, origin="image data URI"), origin="image data URI")


def _kind(content: bytes) -> str | None:
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
