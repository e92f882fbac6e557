"""Text that comes in bytes of any encoding: UTF-8, else what the locale says, else Latin-1, which never fails.

Owns: which encoding a text is in. Does not know: what it is for.
"""

from __future__ import annotations

import codecs
import locale
import os
import sys

from ..errors import ConfigError


def decoded(content: bytes) -> str:
    """The text of the bytes.

    >>> decoded("Grüße".encode("latin-1")), decoded("Grüße".encode())
    ('Grüße', 'Grüße')
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # PowerShell
        return content.decode("utf-16", "replace")
    for encoding in ("utf-8-sig", locale.getpreferredencoding(False)):
        try:
            return content.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return content.decode("latin-1")


def clean(text: str) -> str:
    """A text of the command line in which no byte is left over that was no UTF-8."""
    return decoded(os.fsencode(text)) if any("\udc80" <= character <= "\udcff" for character in text) else text


def read_stdin() -> str:
    """All of stdin; ``ConfigError`` if it is no text."""
    binary = getattr(sys.stdin, "buffer", None)
    if binary is None:
        return sys.stdin.read()
    text = decoded(binary.read())
    if "\0" in text:
        raise ConfigError("stdin is no text: give an image with -a -")
    return text.replace("\r\n", "\n")


def read_line() -> str:
    """The next line of stdin with its end; empty at the end of all."""
    binary = getattr(sys.stdin, "buffer", None)
    if binary is None or sys.stdin.isatty():
        return sys.stdin.readline()
    return decoded(binary.readline()).replace("\r\n", "\n")
