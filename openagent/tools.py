"""What a tool is.

A tool is a name, a description, a JSON Schema and a handler that takes one dict. ``@tool`` makes
one of a typed function, ``tools_of`` some of an object's methods, ``tool("name", "description")``
starts a builder, and ``as_tool`` takes whatever a user may write into ``tools=``.

Owns: tools, and how each wants to be run. Does not know: running them, hooks, providers, the client.
Source: the Agent SDK's tools (R-140 to R-148), JSON Schema 2020-12.
"""

from __future__ import annotations

import importlib
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, overload

from .answer_schema import OPENAI, Dialect, adapted, unsayable
from .errors import ConfigError, ToolError
from .schema import Mismatch, check_schema, expand, expand_property, function_schema, takes_self

MAX_RESULT_CHARS = 100_000
"""How much of one result the model reads, unless the tool says otherwise."""

Handler = Callable[[dict[str, Any]], Any]
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Tool:
    """Something that the model may call; checked when made (``ConfigError``).

    ``handler`` gets one dict; None leaves the calls to the caller. ``function`` is what ``@tool``
    was put on, ``vendor`` the tool of a vendor that goes to the wire as it is (``Tool.hosted``).

    ``timeout`` is the seconds after which a call is answered "timed out"; its thread cannot be stopped
    and lives on. ``max_result_chars`` is where a result is cut, with a mark. The values of ``sensitive``
    parameters are masked in events. A ``sequential`` tool never runs beside another. ``approve`` is
    asked before each call (see ``AgentOptions``). A ``strict`` tool tells its schema so that a server that
    enforces schemas holds the model to it: all is required, what may be left out may be null, constraints
    stand in descriptions. ``ConfigError`` if a schema cannot be told so.
    """

    name: str
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
    handler: Handler | None = field(default=None, repr=False)
    function: Callable[..., Any] | None = field(default=None, repr=False, kw_only=True)
    vendor: dict[str, Any] | None = field(default=None, kw_only=True)
    timeout: float | None = field(default=None, repr=False, kw_only=True)
    max_result_chars: int = field(default=MAX_RESULT_CHARS, repr=False, kw_only=True)
    sensitive: tuple[str, ...] = field(default=(), repr=False, kw_only=True)
    sequential: bool = field(default=False, repr=False, kw_only=True)
    approve: Callable[..., Any] | None = field(default=None, repr=False, kw_only=True)
    strict: bool = field(default=False, repr=False, kw_only=True)

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
        _check_manner(self)

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

    def told_schema(self, dialect: Dialect = OPENAI) -> dict[str, Any]:
        """The schema as it goes to a server."""
        if not self.strict:
            return self.input_schema
        told = adapted(self.input_schema, dialect)
        if told is None:
            raise ConfigError(f"tool {self.name!r} cannot be strict here: {unsayable(self.input_schema, dialect)}")
        return told

    def to_openai_format(self) -> dict[str, Any]:
        """The tool as OpenAI's Chat Completions writes it (R-146)."""
        if self.vendor is not None:
            return deepcopy(self.vendor)
        function = {"name": self.name, "description": self.description, "parameters": self.told_schema()}
        return {"type": "function", "function": function | ({"strict": True} if self.strict else {})}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function under ``@tool`` as if it were bare, any other handler with one dict."""
        return self.function(*args, **kwargs) if self.function else self.execute(dict(*args, **kwargs))

    def __get__(self, instance: object, owner: type | None = None) -> Tool:
        """The tool of one object, where ``@tool`` was put on a method in a class."""
        if instance is None or self.function is None or not takes_self(self.function):
            return self
        return _from_function(self.function.__get__(instance), self.name, self.description, **self._manner)

    @property
    def _manner(self) -> dict[str, Any]:
        """How the tool wants to be run, where it says so."""
        return {name: getattr(self, name) for name, usual in _MANNER.items() if getattr(self, name) != usual}

    def __hash__(self) -> int:
        return hash((self.name, self.description))

    def __deepcopy__(self, memo: Any) -> Tool:
        return self

    def __reduce__(self) -> Any:
        if self.function is None:
            made = partial(Tool, vendor=self.vendor, **self._manner)
            return made, (self.name, self.description, self.input_schema, self.handler)
        path = (getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", ""))
        if _found(*path) is self:
            return _unpickled, path
        return partial(_from_function, **self._manner), (self.function, self.name, self.description)


_MANNER: dict[str, Any] = {
    "timeout": None,
    "max_result_chars": MAX_RESULT_CHARS,
    "sensitive": (),
    "sequential": False,
    "approve": None,
    "strict": False,
}


def _check_manner(tool: Tool) -> None:
    if not isinstance(tool.strict, bool):
        raise ConfigError(f"strict {tool.strict!r:.100} of tool {tool.name!r} must be True or False")
    tool.told_schema()
    timeout, chars, sensitive = tool.timeout, tool.max_result_chars, tool.sensitive
    if isinstance(sensitive, str) or not isinstance(sensitive, Iterable):
        raise ConfigError(f"sensitive {sensitive!r:.100} of tool {tool.name!r} must be names of parameters")
    object.__setattr__(tool, "sensitive", tuple(sensitive))
    known = tool.input_schema.get("properties", {})
    if strangers := [name for name in tool.sensitive if name not in known]:
        raise ConfigError(f"sensitive {strangers[0]!r} is no parameter of tool {tool.name!r}")
    if timeout is not None and not (isinstance(timeout, (int, float)) and 0 < timeout <= threading.TIMEOUT_MAX):
        raise ConfigError(f"timeout {timeout!r:.100} of tool {tool.name!r} must be seconds above 0")
    if type(chars) is not int or chars < 1:
        raise ConfigError(f"max_result_chars {chars!r:.100} of tool {tool.name!r} must be a whole number above 0")
    if not isinstance(tool.sequential, bool):
        raise ConfigError(f"sequential {tool.sequential!r:.100} of tool {tool.name!r} must be True or False")
    if tool.approve is not None and not callable(tool.approve):
        raise ConfigError(f"approve {tool.approve!r:.100} of tool {tool.name!r} cannot be called")


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

    def build(self, handler: Handler | None = None, **manner: Any) -> Tool:
        """The tool; its handler gets the arguments as one dict. ``manner`` is ``timeout`` and the like."""
        return Tool(self.name, self.description, self.input_schema, handler, **manner)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    timeout: float | None = ...,
    max_result_chars: int = ...,
    sensitive: Iterable[str] = ...,
    sequential: bool = ...,
    approve: Callable[..., Any] | None = ...,
    strict: bool = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...
@overload
def tool(name: str, description: str, /) -> ToolBuilder: ...
def tool(
    subject: Any = None,
    text: str | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **manner: Any,
) -> Any:
    """A tool made of a typed function, be it by ``@tool``, ``@tool(name=...)`` or ``tool(function)``.

    Parameters, types, defaults and docstring become its schema; the function gets its arguments by
    name, converted to their types. With two texts instead of a function: a ``ToolBuilder``.
    ``manner`` says how it is run: ``timeout``, ``max_result_chars``, ``sensitive``, ``sequential``, ``approve``,
    ``strict``.
    """
    if unknown := manner.keys() - _MANNER.keys():
        raise ConfigError(f"tool() takes no {sorted(unknown)[0]!r}; it takes {', '.join(_MANNER)}")
    if isinstance(subject, str):
        if manner:
            raise ConfigError(f"give {sorted(manner)[0]!r} of tool {subject!r} to its build()")
        return ToolBuilder(subject, text or "")
    if subject is None:
        return partial(_from_function, name=name, description=description, **manner)
    return _from_function(subject, name, description, **manner)


def tools_of(owner: object) -> list[Tool]:
    """The public methods of an object as tools, in the order of their names; what they change stays in it.

    What a method under ``@tool(...)`` in the class says of itself is kept.
    """
    if isinstance(owner, type):
        raise ConfigError(f"tools_of({owner.__name__}) must be given an object: {owner.__name__}(...)")
    members = {name: inspect.getattr_static(owner, name) for name in dir(type(owner)) if not name.startswith("_")}
    methods = (Tool, staticmethod, classmethod)
    found = [
        as_tool(getattr(owner, name))
        for name, member in members.items()
        if isinstance(member, methods) or inspect.isroutine(member)
    ]
    if not found:
        raise ConfigError(f"{owner!r:.100} has no public methods that could become tools")
    return found


def _from_function(function: Any, name: str | None = None, description: str | None = None, **manner: Any) -> Tool:
    if isinstance(function, Tool):
        manner = function._manner | manner
        function = function.function or function.handler
    if not callable(function):
        raise ConfigError(f"{function!r:.100} is no function and cannot become a tool")
    found, schema, bind = function_schema(function)
    own_name = name or getattr(function, "__name__", None)
    if not own_name or own_name == "<lambda>":
        raise ConfigError(f"{function!r:.100} has no name of its own: give the tool one with name=")
    handler = partial(_call, function, bind)
    return Tool(own_name, found if description is None else description, schema, handler, function=function, **manner)


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
    form of a function.
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
    strict = plain.get("strict") or False
    return Tool(plain["name"], plain.get("description") or "", schema or {}, plain.get("handler"), strict=strict)


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
