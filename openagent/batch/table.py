"""The rows of an input file: lines of JSON, CSV, or lines of text.

Owns: reading rows. Does not know: what they are for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from .. import codec
from ..errors import ConfigError

STDIN = "-"
FORMATS = ("jsonl", "csv", "txt")


def read_rows(source: str, form: str = "") -> Iterator[tuple[int, Any]]:
    """The rows of a file with their numbers, from 1; ``-`` is stdin.

    ``form`` is one of ``FORMATS``, by default what the name ends with, else ``jsonl``.
    """
    form = form or next((known for known in FORMATS if source.lower().endswith(f".{known}")), "jsonl")
    with _opened(source) as file:
        try:
            yield from enumerate(_csv(file, source) if form == "csv" else _lines(file, source, form), 1)
        except UnicodeDecodeError as exc:
            raise ConfigError(f"{source!r} is no UTF-8 text: {exc}") from exc


def can_be_read_twice(source: str) -> bool:
    """Whether this is a file; what comes through a pipe comes once."""
    return source != STDIN and os.path.isfile(source)


@contextmanager
def _opened(source: str) -> Iterator[TextIO]:
    if source == STDIN:
        yield sys.stdin
        return
    try:
        file = open(source, encoding="utf-8-sig", newline="")  # noqa: SIM115
    except OSError as exc:
        raise ConfigError(f"cannot read {source!r}: {exc.strerror or exc}") from exc
    with file:
        yield file


def _lines(file: Iterable[str], source: str, form: str) -> Iterator[Any]:
    for number, text in enumerate(file, 1):
        if not text.strip():
            continue
        if form == "txt":
            yield text.rstrip("\r\n")
            continue
        try:
            yield codec.parse(text)
        except ValueError as exc:
            raise ConfigError(f"{source!r}, line {number} is no JSON: {text.strip()!r:.80}") from exc


def _csv(file: Iterable[str], source: str) -> Iterator[dict[str, str]]:
    import csv

    reader = csv.DictReader(file)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise ConfigError(f"{source!r}, line {reader.line_num} has not as many cells as there are columns")
            yield row
    except csv.Error as exc:
        raise ConfigError(f"{source!r}, line {reader.line_num} is no CSV: {exc}") from exc
