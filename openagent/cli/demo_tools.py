"""A few harmless tools for the command line: ``openagent ask --tool calculator``.

Owns: the tools, and the option that names them. Does not know: the commands.
"""

from __future__ import annotations

import argparse
import math
import operator
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from ..approval import described
from ..errors import ToolError
from ..hooks import Hooks, PostToolUseEvent
from ..messages import ToolUseBlock
from ..tools import Tool, tool

_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@tool
def calculator(a: float, operator: Literal["+", "-", "*", "/"], b: float) -> float:
    """Add, subtract, multiply or divide two numbers."""
    try:
        value = _OPERATIONS[operator](a, b)
    except ArithmeticError as exc:
        raise ToolError(str(exc)) from exc
    if not math.isfinite(value):
        raise ToolError("the result is too large")
    return int(value) if float(value).is_integer() else value


@tool
def clock(timezone: str = "UTC") -> str:
    """Tell the date and time in a time zone such as Europe/Oslo."""
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError) as exc:  # unknown, or no name at all
        raise ToolError(f"there is no time zone {timezone!r}") from exc
    return datetime.now(zone).strftime("%A, %d %B %Y, %H:%M")


DEMO_TOOLS: dict[str, Tool] = {one.name: one for one in (calculator, clock)}


def add_tools(parser: argparse.ArgumentParser) -> None:
    """The option ``--tool NAME``."""
    parser.add_argument(
        "--tool",
        action="append",
        default=[],
        choices=DEMO_TOOLS,
        metavar="NAME",
        help=f"a tool that the model may use: {', '.join(DEMO_TOOLS)}; may be repeated",
    )


def tooling(chosen: argparse.Namespace, tell: Callable[[str], None]) -> dict[str, Any]:
    """The settings of a client with the chosen tools; each call is told, with its result."""
    if not chosen.tool:
        return {}

    def told(event: PostToolUseEvent) -> None:
        call = ToolUseBlock(event.tool_use_id, event.tool_name, event.tool_input)
        result = event.tool_result["error"] if event.is_error else event.tool_result
        tell(f"{described(call)} -> {result}")

    settings: dict[str, Any] = {
        "tools": [DEMO_TOOLS[name] for name in dict.fromkeys(chosen.tool)],
        "auto_execute_tools": True,
        "hooks": Hooks().add_post_tool_use(told),
    }
    # A small model picks tools badly at any other temperature.
    return settings | ({"temperature": 0} if chosen.local else {})
