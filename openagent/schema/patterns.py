"""Regular expressions of a schema, which may come from anywhere, within a time.

``re`` cannot be stopped: ``^(a+)+$`` on forty letters takes longer than anybody lives. ``regex`` takes a timeout.

Owns: the rules of JSON Schema that match texts. Does not know: the other rules (``jsonschema``'s).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

SECONDS = 1.0
"""How long all the expressions of a schema may take on one value."""


def with_patterns_in_time(kind: Any) -> Any:
    """The validator class with a deadline for its patterns, from now on; beyond it is ``TimeoutError``."""
    from jsonschema import ValidationError
    from jsonschema.validators import extend

    matches = _matcher(time.monotonic() + SECONDS)

    def pattern(validator: Any, wanted: str, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, str) and not matches(wanted, value):
            yield ValidationError(f"does not match {wanted!r}")

    def pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, schema: Any) -> Iterator[Any]:
        for wanted, part in patterns.items() if isinstance(value, dict) else ():
            for name in value:
                if matches(wanted, name):
                    yield from validator.descend(value[name], part, path=name, schema_path=wanted)

    def additional_properties(validator: Any, part: Any, value: Any, schema: Any) -> Iterator[Any]:
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        rest = [name for name in value if name not in known] if isinstance(value, dict) else []
        rest = [name for name in rest if not any(matches(wanted, name) for wanted in patterns)]
        if part is False and rest:
            yield ValidationError(f"unknown {rest}")
        elif isinstance(part, dict):
            for name in rest:
                yield from validator.descend(value[name], part, path=name)

    rules = {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional_properties,
    }
    return extend(kind, rules)  # type: ignore[no-untyped-call]


def _matcher(until: float) -> Callable[[str, str], bool]:
    def matches(wanted: str, text: str) -> bool:
        import regex  # 10 ms, and most schemas have no pattern

        return regex.search(wanted, text, timeout=max(0.001, until - time.monotonic())) is not None

    return matches


def has_patterns(schema: Any) -> bool:
    """Whether there is an expression anywhere in the schema."""
    return mentions(schema, "pattern") or mentions(schema, "patternProperties")


def check_patterns(schema: Any) -> None:
    """``ValueError`` if the schema has an expression that only ``re`` would match, in jsonschema's own code."""
    if mentions(schema, "patternProperties") and mentions(schema, "unevaluatedProperties"):
        raise ValueError("unevaluatedProperties beside patternProperties: use additionalProperties")


def mentions(schema: Any, name: str) -> bool:
    """Whether a member of this name is anywhere in the schema."""
    if isinstance(schema, dict):
        return name in schema or any(mentions(part, name) for part in schema.values())
    return isinstance(schema, list) and any(mentions(part, name) for part in schema)
