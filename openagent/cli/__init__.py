"""The command line: ``openagent ask "question"``, ``openagent chat``, ``openagent batch in.csv -o out.jsonl``.

The answer goes to stdout as it comes, everything else to stderr. Exit codes: 0 answered, 1 an error,
2 wrong usage or settings, 130 Ctrl-C.

Owns: which commands there are, and their exit codes. Does not know: what a command does; its room
is imported when it is called, so that ``--help`` costs next to nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from ..errors import AgentError, ConfigError

INTERRUPTED = 130
# By the name of the room, which has an add_NAME(parser) that sets the parser's default for ``run``.
COMMANDS = {
    "ask": "ask a question and print the answer as it comes",
    "chat": "talk in the terminal; Ctrl-C stops an answer, Ctrl-D leaves",
    "batch": "ask for each row of a file; goes on where it was stopped",
    "models": "list the models that a server offers",
    "profiles": "list your profiles: settings by name",
    "key": "keep a key in a file that only you can read",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        chosen = _parser(given[:1]).parse_args(given)
        code: int = chosen.run(chosen)
        return code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has what it wanted. What Python still holds back must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except AgentError as error:
        print(f"openagent: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1


def _parser(named: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of the commands that are named."""
    parser = argparse.ArgumentParser(prog="openagent", description="Talk to a language model.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about, conflict_handler="resolve")
        if name in named:
            import_module(f".{name}", __name__).__dict__[f"add_{name}"](command)
    return parser
