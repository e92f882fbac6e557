"""A few harmless tools for the command line: ``openagent ask --tool calculator``.

Owns: the tools. Does not know: the commands.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from ..errors import ToolError
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
