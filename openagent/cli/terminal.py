"""The terminal itself: whether it shows what is typed, and a question that reaches whoever sits there.

Owns: echo, asking before a call. Does not know: prompts, answers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from ..approval import Approval, described
from ..errors import ConfigError
from ..messages import ToolUseBlock
from ..waiting import hidden

_QUESTION = "Run it? [y]es, [n]o, [a]lways, or a reason why not: "


@contextmanager
def echo(is_on: bool) -> Iterator[None]:
    """Within this context the terminal shows what is typed, or leaves no trace of a key, as Ctrl-C."""
    try:
        import termios
    except ImportError:  # Windows
        yield
        return
    try:
        before = termios.tcgetattr(sys.stdin)
    except (AttributeError, OSError, ValueError, termios.error):
        yield
        return
    changed = [*before]
    changed[3] = changed[3] | termios.ECHO if is_on else changed[3] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def asker() -> Callable[[ToolUseBlock], Approval]:
    """A function that asks before a call, also if stdin is a pipe; ``ConfigError`` if there is no terminal."""
    is_typed = sys.stdin is not None and sys.stdin.isatty()
    asked: TextIO = sys.stdin if is_typed else _opened()

    def ask(call: ToolUseBlock) -> Approval:
        with hidden(), echo(True):
            return _answer(call, asked)

    return ask


def _opened() -> TextIO:
    """The terminal of this process, though stdin is another."""
    try:
        return open("CONIN$" if os.name == "nt" else "/dev/tty", encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError("--approve has nobody to ask: there is no terminal; leave it or the tools out") from error


def _answer(call: ToolUseBlock, asked: TextIO) -> Approval:
    print(f"The model wants to call {described(call)}", file=sys.stderr)
    while True:
        print(_QUESTION, end="", file=sys.stderr, flush=True)
        try:
            line = asked.readline()
        except KeyboardInterrupt:
            print(file=sys.stderr)
            raise
        if not line:
            print(file=sys.stderr)
            return Approval("no", "nobody was there to be asked")
        said = line.strip()
        word = said.lower()
        if word in ("y", "yes", "a", "always"):
            return Approval("yes" if word[0] == "y" else "always")
        if said:
            return Approval("no", "" if word in ("n", "no") else said)
