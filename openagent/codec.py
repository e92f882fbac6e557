"""JSON as servers write it and as we send it.

Reads with msgspec, two to three times as fast as the standard library, and falls back on the
standard library for what msgspec refuses and servers send all the same: raw control characters,
NaN, halves of surrogate pairs, bytes that are not UTF-8.

Owns: JSON text in both directions. Does not know: what the values mean.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any


@cache
def _decode() -> Any:
    import msgspec

    return msgspec.json.Decoder().decode


def parse(text: bytes | str) -> Any:
    """The value of a JSON text; ``ValueError`` if it is none."""
    try:
        return _decode()(text)
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return _parse_leniently(text)


def _parse_leniently(text: bytes | str) -> Any:
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None


def dump(value: Any) -> str:
    """Compact JSON text: non-ASCII kept, NaN and infinities as null, no lone surrogates.

    ``TypeError`` or ``ValueError`` for what JSON cannot say.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # NaN somewhere (or a circle, which fails again below)
        text = json.dumps(
            json.loads(json.dumps(value), parse_constant=_null), ensure_ascii=False, separators=(",", ":")
        )
    except RecursionError:
        raise ValueError("the value is nested too deeply for JSON") from None
    return mend(text)


def _null(_: str) -> None:
    return None


def mend(text: str) -> str:
    """The text with halves of surrogate pairs joined, and halves alone as U+FFFD.

    >>> mend("\\ud83d\\ude00 \\ud83d") == "\\U0001f600 \\ufffd"
    True
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
