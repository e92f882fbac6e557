"""Functions: the schema of their parameters, and the arguments for a call.

Owns: what a signature and a docstring say. Does not know: tools.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import ConfigError
from .docs import documented
from .leaves import Schema
from .objects import MISSING, Field, Read, object_of, resolved
from .types import RULES
from .walk import Walk

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Signature(NamedTuple):
    """A function as a schema: its description, its parameters, and what turns JSON into its arguments."""

    description: str
    schema: Schema
    bind: Callable[[Mapping[str, Any]], Arguments]


def function_schema(function: Callable[..., Any]) -> Signature:
    """The signature of a function, method, class, partial or callable object.

    ``ConfigError`` names the function and the parameter for which JSON has no form.
    """
    name = getattr(function, "__name__", None) or type(function).__name__
    body = _body(function)
    if inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body):
        raise ConfigError(f"function {name} is async: openagent is synchronous, give it a plain function")
    parameters = _parameters(function, name)
    doc = documented(function if inspect.isroutine(function) or isinstance(function, type) else body)
    walk = Walk(RULES)
    walk.names = {**getattr(body, "__globals__", {}), **_enclosed(body)}
    fields = [_field(parameter, walk.names, name, doc.params.get(parameter.name, "")) for parameter in parameters]
    schema, read = object_of(fields, functools.partial(_shape, walk, name, fields))
    return Signature(doc.text, walk.rooted(schema), functools.partial(_bound, read, parameters))


def _shape(walk: Walk, function: str, fields: list[Field], kind: Any) -> Any:
    try:
        return walk.shape(kind)
    except ConfigError as exc:
        place = next(field.name for field in fields if field.type is kind)
        raise ConfigError(f"parameter {place!r} of {function}: {exc}") from exc


def _body(function: Any) -> Any:
    """The function in which the annotations were written."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, type):
            return vars(function).get("__init__", function)
        elif inspect.isroutine(function):
            return function
        else:
            function = type(function).__call__


def _parameters(function: Any, name: str) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError, NameError) as exc:
        raise ConfigError(f"the signature of {name} cannot be read: {exc}") from exc
    if takes_self(function):
        parameters = parameters[1:]
    if isinstance(function, functools.partial):  # what is set is no business of the model's, and may be a secret
        parameters = [parameter for parameter in parameters if parameter.name not in function.keywords]
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigError(
                f"parameter {str(parameter).partition(':')[0]!r} of {name}: "
                "a model must be told each argument by name; use a list or a dict instead"
            )
    return parameters


def takes_self(function: Any) -> bool:
    """Whether this is a method as its class holds it, not bound to an object yet."""
    if not inspect.isfunction(function) or "." not in function.__qualname__.rpartition("<locals>.")[2]:
        return False
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.name in ("self", "cls") and first.annotation is MISSING


def _field(parameter: inspect.Parameter, names: dict[str, Any], function: str, text: str) -> Field:
    kind = parameter.annotation
    if kind is not MISSING:
        kind = resolved(kind, names, {}, f"parameter {parameter.name!r} of {function}")
    return Field(parameter.name, kind, parameter.default, text=text)


def _enclosed(body: Any) -> dict[str, Any]:
    """The names that a nested function sees of the functions around it."""
    found: dict[str, Any] = {}
    if not inspect.isfunction(body):
        return found
    for name, cell in zip(body.__code__.co_freevars, body.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _bound(read: Read, parameters: list[inspect.Parameter], arguments: Mapping[str, Any]) -> Arguments:
    found = read(arguments)
    positional = [
        found.pop(parameter.name, parameter.default)
        for parameter in parameters
        if parameter.kind is parameter.POSITIONAL_ONLY
    ]
    return tuple(positional), found
