"""Any Python value as JSON that a model can read.

Owns: the reading of results. Does not know: tools. Never raises: what cannot be read is described.
Values of NumPy and pandas are known by what they can do; neither library is imported.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import date, time
from enum import Enum
from itertools import islice
from typing import Any

from .codec import mend

LIMIT = 1000
"""How many items of an iterator are read."""
DEPTH = 50
"""How deep containers are read; what lies below is told by its text."""
_BYTES_SHOWN = 3000
_INT_BITS = 10_000  # Python writes no more than some 14,000 bits as decimal digits


def readable(value: Any) -> Any:
    """The value as JSON: None, bool, int, float, text, list, or dict with text keys.

    A set becomes a list, sorted if it can be; an iterator a list of at most ``LIMIT`` items;
    a dataclass or a NamedTuple a dict; NaN and infinities, bytes, dates and other objects a text.

    >>> readable({"when": date(2025, 1, 31), "of": {2, 1}, "nan": float("nan")})
    {'when': '2025-01-31', 'of': [1, 2], 'nan': 'NaN'}
    """
    return _read(value, ())


def _read(value: Any, around: tuple[int, ...]) -> Any:
    """The value as JSON, ``around`` being the ids of the containers it is in."""
    try:
        if value is None or isinstance(value, (bool, Enum)):
            return _read(value.value, around) if isinstance(value, Enum) else value
        if isinstance(value, str):
            return mend(str.__str__(value))
        if isinstance(value, int):
            return int(value) if value.bit_length() < _INT_BITS else hex(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value)).replace("nan", "NaN")
        if id(value) in around or len(around) > DEPTH:
            return f"<the same {type(value).__name__} again>" if id(value) in around else text_of(value)
        return _compound(value, (*around, id(value)))
    except Exception:  # the value is the user's, and may refuse with anything
        return text_of(value)


def _compound(value: Any, around: tuple[int, ...]) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes(bytes(value))
    if isinstance(value, (date, time)):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dict(((field.name, getattr(value, field.name)) for field in dataclasses.fields(value)), around)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _dict(zip(value._fields, value, strict=False), around)
    if isinstance(value, Mapping):
        return _dict(value.items(), around)
    if isinstance(value, (list, tuple)):
        return [_read(item, around) for item in value]
    if isinstance(value, Set):
        return [_read(item, around) for item in _in_order(value)]
    if isinstance(value, Iterator):
        return [_read(item, around) for item in first_items(value)]
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        return _read(dump(), around)
    if getattr(value, "shape", None) == () and callable(item := getattr(value, "item", None)):
        return _read(item(), around)  # a scalar of NumPy, or of another library of arrays
    return text_of(value)


def _dict(items: Iterable[tuple[Any, Any]], around: tuple[int, ...]) -> dict[str, Any]:
    return {_key(key): _read(item, around) for key, item in items}


def _key(key: Any) -> str:
    plain = _read(key, ())
    return plain if isinstance(plain, str) else text_of(key)


def _in_order(values: Set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def _bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        mark = "..." if len(value) > _BYTES_SHOWN else ""
        return f"<{len(value)} bytes: {base64.b64encode(value[:_BYTES_SHOWN]).decode()}{mark}>"


def first_items(values: Iterator[Any]) -> list[Any]:
    """The first ``LIMIT`` items, and a mark if there may be more; what the iterator raises comes out."""
    found = list(islice(values, LIMIT + 1))
    return found if len(found) <= LIMIT else [*found[:LIMIT], f"(cut after {LIMIT} items)"]


def text_of(value: Any) -> str:
    """The value's own text; a description of its type if it fails to give one."""
    try:
        return mend(str.__str__(str(value)))
    except Exception:  # a __str__ of the user's may refuse with anything
        return f"<a {type(value).__name__} without a text>"
