"""What a tool is, and running one call of it.

A tool is a name, a description, a JSON Schema and a handler that takes one dict. ``@tool`` makes
one of a typed function, ``tool("name", "description")`` starts a builder, and ``as_tool`` takes
whatever a user may write into ``tools=``. Whatever goes wrong in a call is an error result that
the model reads; only ``KeyboardInterrupt`` and its like come out.

Owns: tools, and the way from a call to its result. Does not know: hooks, providers, the client,
which call comes next. Source: the Agent SDK's tools (R-140 to R-148), JSON Schema 2020-12.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import logging
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, overload

from .codec import mend
from .errors import ConfigError, ToolError
from .messages import ToolResultBlock, ToolUseBlock
from .readable import first_items, readable, text_of
from .schema import (
    Mismatch,
    check,
    check_schema,
    expand,
    expand_property,
    function_schema,
    takes_self,
    without_nulls,
)

log = logging.getLogger("openagent.tools")

Handler = Callable[[dict[str, Any]], Any]
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Tool:
    """Something that the model may call; checked when made (``ConfigError``).

    ``handler`` gets one dict; None leaves the calls to the caller. ``function`` is what ``@tool``
    was put on, ``vendor`` the tool of a vendor that goes to the wire as it is (``Tool.hosted``).
    """

    name: str
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
    handler: Handler | None = field(default=None, repr=False)
    function: Callable[..., Any] | None = field(default=None, repr=False, kw_only=True)
    vendor: dict[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.vendor is not None:
            return
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigError(f"tool name {self.name!r} must be 1 to 64 of the characters A-Z a-z 0-9 _ -")
        if not isinstance(self.description, str):
            raise ConfigError(f"the description of tool {self.name!r} must be a text, not {self.description!r:.100}")
        if self.handler is not None and not callable(self.handler):
            raise ConfigError(f"the handler of tool {self.name!r} cannot be called: {self.handler!r:.100}")
        if self.function is None:
            object.__setattr__(self, "input_schema", check_schema(expand(self.input_schema, self.name), self.name))
        else:
            vars(self).update(_face(self.function))

    @classmethod
    def hosted(cls, vendor: Mapping[str, Any]) -> Tool:
        """A vendor's own tool, run by its server; the dict goes to the wire as it is."""
        name = vendor.get("name") or vendor.get("type") if isinstance(vendor, Mapping) else None
        if not isinstance(name, str):
            raise ConfigError(f"hosted tool {vendor!r:.100} must be a dict with a 'type'")
        return cls(name, vendor=deepcopy(dict(vendor)))

    def execute(self, arguments: Mapping[str, Any]) -> Any:
        """What the handler makes of the arguments; its exceptions are yours."""
        if self.handler is None:
            raise ToolError(f"tool {self.name!r} has no handler here: its calls are answered by add_tool_result()")
        return self.handler(dict(arguments))

    def to_openai_format(self) -> dict[str, Any]:
        """The tool as OpenAI's Chat Completions writes it (R-146)."""
        if self.vendor is not None:
            return deepcopy(self.vendor)
        function = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {"type": "function", "function": function}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function under ``@tool`` as if it were bare, any other handler with one dict."""
        return self.function(*args, **kwargs) if self.function else self.execute(dict(*args, **kwargs))

    def __get__(self, instance: object, owner: type | None = None) -> Tool:
        """The tool of one object, where ``@tool`` was put on a method in a class."""
        if instance is None or self.function is None or not takes_self(self.function):
            return self
        return _from_function(self.function.__get__(instance), self.name, self.description)

    def __hash__(self) -> int:
        return hash((self.name, self.description))

    def __deepcopy__(self, memo: Any) -> Tool:
        return self

    def __reduce__(self) -> Any:
        if self.function is None:
            return partial(Tool, vendor=self.vendor), (self.name, self.description, self.input_schema, self.handler)
        path = (getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", ""))
        if _found(*path) is self:
            return _unpickled, path
        return _from_function, (self.function, self.name, self.description)


def _face(function: Callable[..., Any]) -> dict[str, Any]:
    kept = ("__module__", "__name__", "__qualname__", "__doc__")
    return {name: getattr(function, name) for name in kept if hasattr(function, name)} | {"__wrapped__": function}


def _found(module: str, path: str) -> Any:
    """What an importable module calls by this path; None if it has nothing there."""
    try:
        return attrgetter(path)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError):
        return None


def _unpickled(module: str, path: str) -> Tool:
    """The tool of that name in that module, made of the function if a bare one stands there."""
    return as_tool(attrgetter(path)(importlib.import_module(module)))


@dataclass(frozen=True)
class ToolBuilder:
    """A tool in the making: ``tool("name", "description").param("city", "string").build(handler)``."""

    name: str
    description: str
    input_schema: dict[str, Any] = field(default_factory=dict)

    def param(self, name: str, kind: str | Mapping[str, Any]) -> ToolBuilder:
        """With one more required parameter, its type a name such as ``"string"`` (R-143) or a schema."""
        schema = expand(self.input_schema, self.name)
        properties = schema["properties"] | {name: expand_property(kind)[0]}
        required = [*(other for other in schema.get("required", ()) if other != name), name]
        return replace(self, input_schema=schema | {"properties": properties, "required": required})

    def schema(self, schema: Mapping[str, Any]) -> ToolBuilder:
        """With these parameters instead: a JSON Schema, or a dict from name to type (R-140, R-141)."""
        return replace(self, input_schema=expand(schema, self.name))

    def build(self, handler: Handler | None = None) -> Tool:
        """The tool; its handler gets the arguments as one dict."""
        return Tool(self.name, self.description, self.input_schema, handler)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(*, name: str | None = None, description: str | None = None) -> Callable[[Callable[..., Any]], Tool]: ...
@overload
def tool(name: str, description: str, /) -> ToolBuilder: ...
def tool(
    subject: Any = None, text: str | None = None, /, *, name: str | None = None, description: str | None = None
) -> Any:
    """A tool made of a typed function, be it by ``@tool``, ``@tool(name=...)`` or ``tool(function)``.

    Parameters, types, defaults and docstring become its schema; the function gets its arguments by
    name, converted to their types. With two texts instead of a function: a ``ToolBuilder``.
    """
    if isinstance(subject, str):
        return ToolBuilder(subject, text or "")
    if subject is None:
        return partial(_from_function, name=name, description=description)
    return _from_function(subject, name, description)


def _from_function(function: Any, name: str | None = None, description: str | None = None) -> Tool:
    if isinstance(function, Tool):
        function = function.function or function.handler
    if not callable(function):
        raise ConfigError(f"{function!r:.100} is no function and cannot become a tool")
    found, schema, bind = function_schema(function)
    own_name = name or getattr(function, "__name__", None)
    if not own_name or own_name == "<lambda>":
        raise ConfigError(f"{function!r:.100} has no name of its own: give the tool one with name=")
    handler = partial(_call, function, bind)
    return Tool(own_name, found if description is None else description, schema, handler, function=function)


def _call(function: Callable[..., Any], bind: Callable[[dict[str, Any]], Any], arguments: dict[str, Any]) -> Any:
    try:
        args, kwargs = bind(arguments)
    except Mismatch as exc:
        raise ToolError(f"invalid arguments: {exc}") from exc
    return function(*args, **kwargs)


_DICT_KEYS = {"type", "name", "description", "input_schema", "parameters", "handler", "strict"}


def as_tool(value: Any) -> Tool:
    """The tool of what may stand in ``tools=``: a ``Tool``, a function, or a dict.

    A dict is ``{"name", "description", "input_schema" or "parameters", "handler"?}`` or OpenAI's
    form of a function (``strict`` has no meaning here: arguments are always validated).
    """
    if isinstance(value, Tool):
        return value
    if isinstance(value, Mapping):
        return _from_dict(value)
    if isinstance(value, ToolBuilder):
        raise ConfigError(f"tool {value.name!r} is not finished: call .build(handler)")
    if callable(value):
        return _from_function(value)
    raise ConfigError(f"{value!r:.100} is no tool: give a function, a Tool or a dict")


def _from_dict(value: Mapping[str, Any]) -> Tool:
    plain = dict(value)
    if isinstance(nested := plain.get("function"), Mapping):
        plain = {**plain, **nested}
        del plain["function"]
    if plain.get("type", "function") != "function":
        raise ConfigError(f"tool {value!r:.100} looks like a vendor's own: wrap it in Tool.hosted({{...}})")
    if "name" not in plain or (unknown := plain.keys() - _DICT_KEYS):
        wrong = "has no 'name'" if "name" not in plain else f"has unknown keys: {', '.join(sorted(map(str, unknown)))}"
        raise ConfigError(f"tool {value!r:.100} {wrong}")
    schema = plain.get("input_schema", plain.get("parameters"))
    return Tool(plain["name"], plain.get("description") or "", schema or {}, plain.get("handler"))


def by_name(tools: Iterable[Any]) -> dict[str, Tool]:
    """The tools by their names, in order; ``ConfigError`` if two have the same."""
    named: dict[str, Tool] = {}
    for one in map(as_tool, tools):
        if one.name in named:
            raise ConfigError(f"two tools are named {one.name!r}: names must differ")
        named[one.name] = one
    return named


def registered(tools: Mapping[str, Tool]) -> tuple[Tool, ...]:
    """The tools of the registry, each under its own name."""
    named = by_name(tools.values())
    for key, name in zip(tools, named, strict=True):
        if key != name:
            raise ConfigError(f"tools[{key!r}] holds the tool {name!r}: the key must be the tool's name")
    return tuple(named.values())


def problem(tool: Tool | None, call: ToolUseBlock, known: Iterable[str] = ()) -> str | None:
    """What is wrong with a call before it is run, told for the model; None if nothing.

    ``tool`` is None if none has the call's name; ``known`` are the names there are.
    """
    if tool is None:
        return f"Tool {call.name!r} not found. {_available(call.name, list(known))}"
    if call.error is not None:
        raw = f" They were: {call.raw_arguments[:200]}" if call.raw_arguments else ""
        return f"the arguments of tool {call.name!r} cannot be used: {call.error}.{raw}"
    if tool.handler is None:
        return f"tool {tool.name!r} cannot be run here: it has no handler"
    complaint = check(tool.input_schema, without_nulls(tool.input_schema, call.input))
    return complaint and f"invalid arguments: {complaint}"


def _available(name: str, known: list[str]) -> str:
    if not known:
        return "There are no tools."
    close = difflib.get_close_matches(name, known, n=3)
    rest = [other for other in known if other not in close]
    return f"Available tools: {', '.join([*close, *rest][:50])}"


def run(tool: Tool | None, call: ToolUseBlock, known: Iterable[str] = ()) -> ToolResultBlock:
    """The result of one call: what the tool returned, as JSON, or an error that the model can read."""
    text = problem(tool, call, known)
    if tool is None or text is not None:
        return failure(call, text or "")
    try:
        result = tool.execute(without_nulls(tool.input_schema, call.input))
        if inspect.iscoroutine(result):
            result.close()
            raise ToolError("the tool returned a coroutine, and openagent awaits nothing")
        content = readable(first_items(result) if isinstance(result, Iterator) else result)
    except ToolError as exc:
        return failure(call, text_of(exc))
    except Exception as exc:
        # The frames only: the exception's text may quote the arguments, which no log may hold.
        frames = "".join(traceback.format_tb(exc.__traceback__))
        log.debug("tool %s raised %s\n%s", call.name, type(exc).__name__, frames)
        return failure(call, f"{type(exc).__name__}: {text_of(exc)}")
    return ToolResultBlock(call.id, content)


def failure(call: ToolUseBlock, text: str) -> ToolResultBlock:
    """The error result of a call (R-50.5)."""
    return ToolResultBlock(call.id, {"error": mend(text), "tool": call.name, "id": call.id}, is_error=True)
