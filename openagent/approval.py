"""Asking before a call is run.

An ``approve`` function gets the call, its sensitive arguments masked, and returns ``True``, ``False``, a
text (no, for this reason) or an ``Approval``. ``ask_user`` is one that asks whoever sits at the
terminal or the notebook.

Owns: the answers, and that question. Does not know: tools, who asks when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Union

from .errors import ConfigError
from .messages import ToolUseBlock

_SHOWN = 2000


@dataclass(frozen=True)
class Approval:
    """Whether a call may run: ``yes``, ``no`` with a reason, or ``always``: this tool is not asked about again."""

    answer: Literal["yes", "no", "always"]
    reason: str = ""

    def __post_init__(self) -> None:
        if self.answer not in ("yes", "no", "always"):
            raise ConfigError(f"approval {self.answer!r:.100} must be 'yes', 'no' or 'always'")


Approve = Callable[[ToolUseBlock], Union[bool, str, Approval]]


def verdict(approve: Approve, call: ToolUseBlock) -> Approval:
    """What the function says about a call; its exceptions are the user's and pass."""
    said = approve(call)
    if isinstance(said, Approval):
        return said
    if isinstance(said, bool):
        return Approval("yes" if said else "no")
    if isinstance(said, str):
        return Approval("no", said)
    name = getattr(approve, "__name__", repr(approve))
    raise ConfigError(
        f"approve function {name} returned {said!r:.100}; it must return True, False, the reason for a no, "
        "or an Approval"
    )


def ask_user(call: ToolUseBlock) -> Approval:
    """Shows the call and asks: yes, no, always (for this tool), or anything else: a no for this reason."""
    print(f"\nThe model wants to call {described(call)}")
    while True:
        try:
            said = input("Run it? [y]es, [n]o, [a]lways, or a reason why not: ").strip()
        except (EOFError, OSError, NotImplementedError):  # no terminal; a notebook without a person
            return Approval("no", "nobody was there to be asked")
        word = said.lower()
        if word in ("y", "yes"):
            return Approval("yes")
        if word in ("a", "always"):
            return Approval("always")
        if word in ("n", "no"):
            return Approval("no")
        if said:
            return Approval("no", said)


def described(call: ToolUseBlock) -> str:
    """The call as Python would write it; nothing in it can move the cursor of a terminal.

    >>> described(ToolUseBlock("c1", "add", {"a": 1, "b": "two"}))
    "add(a=1, b='two')"
    """
    return f"{_plain(call.name)}({', '.join(f'{_plain(name)}={_value(value)}' for name, value in call.input.items())})"


def _plain(name: str) -> str:
    return name if name.isidentifier() else repr(name)


def _value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text) - _SHOWN} more characters)"
