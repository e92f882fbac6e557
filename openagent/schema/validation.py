"""A schema applied to a value: the complaint, if there is one.

Owns: validation, by ``jsonschema``. Does not know: where schemas come from. Never asks the
network: a schema that refers to something outside of itself is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from ..errors import ConfigError
from .leaves import Schema, joined, shown
from .patterns import check_patterns, has_patterns, with_patterns_in_time


def check(schema: Schema, value: Any) -> str | None:
    """What is wrong with a value, in one short text of at most three complaints; None if nothing."""
    try:
        told = dict.fromkeys(map(_complaint, itertools.islice(_validator(schema).iter_errors(value), 100)))
    except RecursionError:
        return "the value is nested too deeply"
    except TimeoutError:
        return "a regular expression of the schema takes too long on this value"
    except Exception as exc:  # of jsonschema, referencing, re: the schema is at fault, and was not checked
        return f"the schema cannot be applied ({type(exc).__name__})"
    return "; ".join(list(told)[:3]) or None


def _validator(schema: Schema) -> Any:
    import jsonschema
    from jsonschema_specifications import REGISTRY

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    if has_patterns(schema):
        kind = with_patterns_in_time(kind)
    # A registry, or jsonschema fetches what it does not know; this one, as any other is merged with it, in Rust that
    # swallows a Ctrl-C (rpds: the update of a HashTrieMap asks isinstance() and takes an exception for a no).
    return kind(schema, registry=REGISTRY)


def _complaint(error: Any) -> str:
    error = _deepest(error)
    path = ""
    for step in reversed(error.absolute_path):
        path = joined(step, path)
    return f"{path}: {_expected(error)}" if path else _expected(error)


def _deepest(error: Any) -> Any:
    """Of a union that does not fit, the complaint of the branch that came closest, if one did."""
    while error.validator in _UNIONS:
        near = [inner for inner in error.context if inner.relative_path or inner.validator not in _PLAIN]
        if not near:
            break
        error = max(near, key=lambda inner: len(inner.relative_path))
    return error


_UNIONS = ("anyOf", "oneOf")
_PLAIN = ("type", "enum", "const")


def _expected(error: Any) -> str:
    """What a rule of the schema asked for, and what came instead."""
    rule, limit, value = error.validator, error.validator_value, error.instance
    if rule == "required":
        return f"missing {_listed(name for name in limit if name not in value)}"
    if rule == "additionalProperties" and limit is False:
        known = error.schema.get("properties", {})
        return f"unknown {_listed(name for name in value if name not in known)}, known are {_listed(known) or 'none'}"
    wanted = dict.fromkeys(map(_wanted, error.context if rule in _UNIONS and error.context else [error]))
    return f"expected {' or '.join(wanted)}, got {shown(value)}"


def _wanted(error: Any) -> str:
    rule, limit = error.validator, error.validator_value
    if rule == "type":
        return " or ".join([limit] if isinstance(limit, str) else limit)
    if rule == "enum":
        return f"one of {_listed(limit)}"
    return "nothing here" if rule is None else f"{rule} {shown(limit)}"


def _listed(values: Iterable[Any]) -> str:
    text = ", ".join(map(shown, values))
    return text if len(text) <= 300 else text[:297] + "..."


def check_schema(schema: Schema, tool: str) -> Schema:
    """The schema itself; ``ConfigError`` naming the tool if it could not be applied to a call."""
    import jsonschema

    try:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        _check_references(schema)
        check_patterns(schema)
    except jsonschema.SchemaError as exc:
        place = "".join(f"[{step!r}]" for step in exc.absolute_path) or "its root"
        raise ConfigError(f"the input schema of tool {tool!r} is invalid at {place}: {exc.message:.200}") from exc
    except Exception as exc:  # of jsonschema, referencing, or endless recursion: no such schema can be used
        raise ConfigError(f"the input schema of tool {tool!r} cannot be used: {exc!s:.200}") from exc
    return schema


def _check_references(schema: Schema) -> None:
    """``ValueError`` if a ``$ref`` leads out of the schema, nowhere, or around without end."""
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    root = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry().with_resources([("", root), (root.id() or "", root)]).resolver()
    done: set[int] = set()
    waiting = [root]
    while waiting:
        resource = waiting.pop()
        waiting.extend(resource.subresources())
        _follow(resource.contents, resolver, done, ())


def _follow(schema: Any, resolver: Any, done: set[int], path: tuple[int, ...]) -> None:
    """Follows what is applied to the same value: in a circle, it would never come to an end."""
    if not isinstance(schema, dict) or id(schema) in done:
        return
    if id(schema) in path:
        raise ValueError("its $ref lead in a circle")
    beside = [schema[key] for key in ("not", "if", "then", "else") if key in schema]
    beside += [branch for key in ("allOf", "anyOf", "oneOf") for branch in schema.get(key, ())]
    if isinstance(reference := schema.get("$ref"), str):
        beside.append(_target(reference, resolver))
    for other in beside:
        _follow(other, resolver, done, (*path, id(schema)))
    done.add(id(schema))


def _target(reference: str, resolver: Any) -> Any:
    from referencing.exceptions import Unresolvable

    try:
        return resolver.lookup(reference).contents
    except Unresolvable as exc:
        raise ValueError(f"$ref {reference!r} is not in the schema, and nothing is fetched") from exc


def without_nulls(schema: Schema, value: Any) -> Any:
    """The value without the nulls of optional properties that take none: they mean "not given" (arg-12)."""
    try:
        return _without_nulls(schema, value, schema)
    except RecursionError:
        return value  # check() will say so


def _without_nulls(schema: Any, value: Any, root: Schema) -> Any:
    schema = _meant(schema, root)
    if isinstance(value, list) and "items" in schema:
        return [_without_nulls(schema["items"], item, root) for item in value]
    properties = schema.get("properties")
    if not isinstance(value, dict) or not properties:
        return value
    required = schema.get("required", ())
    return {
        name: _without_nulls(properties.get(name), item, root)
        for name, item in value.items()
        if item is not None or name in required or name not in properties or _takes_null(properties[name], root)
    }


def _meant(schema: Any, root: Schema) -> Any:
    """The schema behind a reference, or behind "this or null"."""
    for _ in range(10):
        if not isinstance(schema, dict):
            return {}
        others = [branch for branch in schema.get("anyOf", ()) if branch != {"type": "null"}]
        reference = schema.get("$ref", "")
        if len(others) == 1:
            schema = others[0]
        elif reference.startswith("#/"):
            schema = _pointed(reference, root)
        else:
            break
    return schema


def _pointed(reference: str, root: Any) -> Any:
    for step in reference[2:].split("/"):
        root = root.get(step) if isinstance(root, dict) else None
    return root


def _takes_null(schema: Any, root: Schema) -> bool:
    validator = _validator(root)
    return bool(validator.evolve(schema=schema).is_valid(None))
