"""What a person types: lines with editing and a memory if ``prompt_toolkit`` is there, plain ones if not.

Owns: reading prompts, of one line or several. Does not know: what they mean.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import ConfigError
from .decoded import read_line

QUOTES = '"""'
Reader = Callable[[str], str]


def reader(memory: Path, words: Sequence[str] = ()) -> Reader:
    """A function that asks for a line and returns it; ``EOFError`` for Ctrl-D, ``KeyboardInterrupt`` for Ctrl-C.

    ``memory`` is the file of the lines typed before, ``words`` what Tab completes.
    """
    if sys.stdin is None:
        raise ConfigError("there is nothing to read from: stdin is closed")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _plain
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory, History, InMemoryHistory
        from prompt_toolkit.key_binding import KeyBindings
    except ImportError:
        return _plain
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: object) -> None:
        event.current_buffer.insert_text("\n")  # type: ignore[attr-defined]

    kept: History
    try:
        memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        memory.touch(mode=0o600)
        kept = FileHistory(str(memory))
    except OSError:
        kept = InMemoryHistory()
    session: PromptSession[str] = PromptSession(
        history=kept,
        key_bindings=keys,
        completer=WordCompleter(list(words), sentence=True),
        complete_while_typing=False,
    )
    return session.prompt


def _plain(prompt: str) -> str:
    sys.stderr.write(prompt if sys.stdin.isatty() else "")
    sys.stderr.flush()
    line = read_line()
    if not line:
        raise EOFError
    return line.removesuffix("\n")


def read_prompt(read: Reader, prompt: str = "> ") -> str:
    '''What was typed: a line, or the lines between two ``"""``, or lines that end in a backslash.'''
    line = read(prompt)
    if line.lstrip().startswith(QUOTES):
        return _quoted(line.lstrip()[len(QUOTES) :], read)
    lines = [line]
    while lines[-1].endswith("\\"):
        lines[-1] = lines[-1][:-1]
        lines.append(read(". "))
    return "\n".join(lines).strip()


def _quoted(line: str, read: Reader) -> str:
    lines = []
    while QUOTES not in line:
        lines.append(line)
        line = read(". ")
    return "\n".join([*lines, line.partition(QUOTES)[0]]).strip("\n")
