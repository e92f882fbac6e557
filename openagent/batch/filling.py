"""A run from file to file that can be started again.

Each row has a key, and a fingerprint of what is asked for it. What stands in the output under a key is done; if
its fingerprint is another one now, the input or the settings are not those of the run that is to go on.

Owns: which rows are still to be asked. Does not know: the files' formats, the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import codec
from ..errors import ConfigError
from ..options import AgentOptions
from .ledger import Ledger
from .mapping import map_prompts
from .prompts import conversation
from .results import Result, Tally, kind_of
from .table import can_be_read_twice, read_rows


class Counted:
    """Rows whose number is known beforehand."""

    def __init__(self, rows: Iterator[Any], count: int) -> None:
        self._rows, self._count = rows, count

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def __len__(self) -> int:
        return self._count


def fill(
    options: AgentOptions,
    source: str,
    ledger: Ledger,
    tally: Tally,
    *,
    form: str = "",
    key: str | None = None,
    template: str | None = None,
    schema: Mapping[str, Any] | None = None,
    **how: Any,
) -> None:
    """Ask for the rows of a file that the ledger lacks, and append each result; counts in ``tally``.

    ``key`` is the column that tells rows apart, by default their number; ``schema`` a JSON Schema. ``how`` are
    further settings of ``map_prompts``.
    ``ConfigError`` if a row cannot be asked, or the input is not that of the ledger; for a file before anything is
    sent.
    """
    names: dict[int, tuple[str, str]] = {}
    open_rows = _missing(options, read_rows(source, form), ledger, key, template, schema)
    count: int | None = None
    if can_be_read_twice(source):
        count = sum(1 for _ in open_rows)
        open_rows = _missing(options, read_rows(source, form), ledger, key, template, schema)

    def rows() -> Iterator[Any]:
        for index, (name, fingerprint, row) in enumerate(open_rows):
            names[index] = (name, fingerprint)
            yield row

    prompts: Any = rows() if count is None else Counted(rows(), count)
    with map_prompts(options, prompts, template=template, schema=schema, ordered=False, **how) as run:
        for result in run:
            ledger.append(record(*names.pop(result.index), result))
            tally.add(result)
        tally.ended_by = run.tally.ended_by


def _missing(
    options: AgentOptions,
    rows: Iterator[tuple[int, Any]],
    ledger: Ledger,
    key: str | None,
    template: str | None,
    schema: Any,
) -> Iterator[tuple[str, str, Any]]:
    """Key, fingerprint and row of what the ledger lacks."""
    done = dict(ledger.known)
    seen: set[str] = set()
    for number, row in rows:
        name = str(number) if key is None else _named(row, key, number)
        if name in seen:
            raise ConfigError(f"row {number}: there was a row with the key {name!r} before")
        seen.add(name)
        try:
            mark = fingerprint(options, conversation(row, template), schema)
        except ConfigError as exc:
            raise ConfigError(f"row {number}: {exc}") from exc
        if name not in done:
            yield name, mark, row
        elif done.pop(name) != mark:
            raise ConfigError(
                f"row {number} (key {name!r}) has changed since it was answered, or the model, system prompt "
                "or schema has: choose another output file"
            )
    if done:
        raise ConfigError(f"the output has {len(done)} keys that the input lacks, such as {next(iter(done))!r}")


def _named(row: Any, key: str, number: int) -> str:
    if not isinstance(row, Mapping) or key not in row:
        raise ConfigError(f"row {number} has no column {key!r}")
    return str(row[key])


def fingerprint(options: AgentOptions, prompt: Any, schema: Any = None) -> str:
    """A short text that is another one if something else is asked."""
    from hashlib import sha256

    said = prompt if isinstance(prompt, str) else [message.to_dict() for message in prompt]
    asked = [options.model, options.system_prompt, said, *([] if schema is None else [schema])]
    return sha256(codec.dump(asked).encode()).hexdigest()[:16]


def record(key: str, mark: str, result: Result) -> dict[str, Any]:
    """The line of a result."""
    error, usage, reason = result.error, result.usage, result.finish_reason
    return {
        "key": key,
        "fingerprint": mark,
        "answer": result.answer,
        "finish_reason": None if reason is None else str(reason),
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "seconds": round(result.seconds, 3),
        "error": None if error is None else {"kind": kind_of(error), "message": str(error)},
    }
