"""The tools that a command line names: built-in ones, and those in a file of Python.

Owns: the options ``--tool``, ``--tools``, ``--approve``, and reading such files. Does not know: how a tool is run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from types import FunctionType, ModuleType
from typing import Any

from ..approval import described
from ..errors import ConfigError
from ..hooks import Hooks, PostToolUseEvent
from ..messages import ToolUseBlock
from ..tools import Tool, as_tool, by_name, tools_of
from .demo_tools import DEMO_TOOLS
from .terminal import asker


def add_tools(parser: argparse.ArgumentParser) -> None:
    """The options that name tools."""
    group = parser.add_argument_group("tools that the model may call")
    group.add_argument(
        "-T",
        "--tool",
        action="append",
        default=[],
        metavar="NAME",
        help=f"{', '.join(DEMO_TOOLS)}, or FILE.py:NAME, a function, tool, object or class; may be repeated",
    )
    group.add_argument(
        "--tools", action="append", default=[], metavar="FILE.py", help="all tools of a file, or else its functions"
    )
    group.add_argument("--approve", action="store_true", help="ask before each call")


def tooling(chosen: argparse.Namespace, tell: Callable[[str], None]) -> dict[str, Any]:
    """The settings of a client with the chosen tools; each call is told, with its result."""
    named = [tool for name in dict.fromkeys(chosen.tool) for tool in _named(name)]
    found = [*named, *(tool for path in dict.fromkeys(chosen.tools) for tool in _all(path))]
    if not found:
        return {}

    def told(event: PostToolUseEvent) -> None:
        call = ToolUseBlock(event.tool_use_id, event.tool_name, event.tool_input)
        result = event.tool_result["error"] if event.is_error else event.tool_result
        tell(f"{described(call)} -> {result}")

    settings: dict[str, Any] = {
        "tools": list(by_name(found).values()),
        "auto_execute_tools": True,
        "hooks": Hooks().add_post_tool_use(told),
    }
    if chosen.approve:
        settings["approve"] = asker()
    # A small model picks tools badly at any other temperature.
    return settings | ({"temperature": 0} if chosen.local else {})


def _named(name: str) -> list[Tool]:
    """The tools that ``--tool`` names."""
    if name in DEMO_TOOLS:
        return [DEMO_TOOLS[name]]
    path, _, member = name.rpartition(":")
    if not path.endswith(".py"):
        hint = f"{name}:FUNCTION, or --tools {name}" if name.endswith(".py") else "FILE.py:FUNCTION"
        raise ConfigError(f"there is no tool {name!r}: take one of {', '.join(DEMO_TOOLS)}, or {hint}")
    module = _module(path)
    if member not in vars(module):
        known = [tool.name for tool in _tools_in(module)]
        close = get_close_matches(member, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known) or 'no tools at all'}"
        raise ConfigError(f"there is no {member!r} in {path}: {hint}")
    return _made(vars(module)[member], name)


def _made(value: Any, name: str) -> list[Tool]:
    if isinstance(value, type):
        try:
            return tools_of(value())
        except TypeError as error:
            raise ConfigError(f"tool {name!r}: {error}; make an object of it in the file, and name that") from error
    if isinstance(value, (Tool, FunctionType, dict)):
        return [as_tool(value)]
    return [as_tool(one) for one in value] if isinstance(value, (list, tuple)) else tools_of(value)


def _all(path: str) -> list[Tool]:
    found = _tools_in(_module(path))
    if not found:
        raise ConfigError(f"there are no tools in {path}: put @tool on a function")
    return found


def _tools_in(module: ModuleType) -> list[Tool]:
    """The tools of a file; if it has none, its public functions."""
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    tools = [value for value in public.values() if isinstance(value, Tool)]
    own = [v for v in public.values() if isinstance(v, FunctionType) and v.__module__ == module.__name__]
    return list(dict.fromkeys(tools)) or [as_tool(function) for function in own]


def _module(path: str) -> ModuleType:
    """The file, run as a module; what it imports from beside itself is found. Read once."""
    name = f"tools_of_{abs(hash(os.path.abspath(path)))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path) if path.endswith(".py") else None
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise ConfigError(f"cannot read tools from {path!r}: there is no such file of Python")
    module = module_from_spec(spec)
    sys.modules[name] = module  # where types in annotations are looked up
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{path} cannot be run{_line(error, path)}: {type(error).__name__}: {error}") from error
    return module


def _line(error: Exception, path: str) -> str:
    """Where in the file it failed."""
    number, trace = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None, error.__traceback__
    while trace is not None:
        if os.path.abspath(trace.tb_frame.f_code.co_filename) == os.path.abspath(path):
            number = trace.tb_lineno
        trace = trace.tb_next
    return f" (line {number})" if number else ""
