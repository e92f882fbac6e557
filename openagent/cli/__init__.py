"""The command line: ``openagent ask "question"``, ``openagent chat``, ``openagent batch in.csv -o out.jsonl``.

The answer goes to stdout as it comes, everything else to stderr. Exit codes: 0 answered, 1 an error,
2 wrong usage or settings, 3 the answer was cut by the output limit, 130 Ctrl-C.

Owns: which commands there are, and their exit codes. Does not know: what a command does; its room
is imported when it is called, so that ``--help`` costs next to nothing.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Collection, Sequence
from importlib import import_module

from .. import __version__
from ..errors import AgentError, ConfigError

INTERRUPTED = 130
EXAMPLES = """examples:
  openagent ask "Why is the sky blue?" --local
  openagent chat -m ollama:qwen3:8b
  git diff | openagent ask "Write a commit message."
  openagent COMMAND --help

exit codes: 0 answered, 1 an error, 2 wrong usage or settings, 3 the answer was cut, 130 Ctrl-C
"""
# By the name of the room, which has an add_NAME(parser) that sets the parser's default for ``run``.
COMMANDS = {
    "ask": "ask a question and print the answer as it comes",
    "chat": "talk in the terminal; Ctrl-C stops an answer, Ctrl-D leaves",
    "batch": "ask for each row of a file; goes on where it was stopped",
    "doctor": "find out what a server and its model can do",
    "models": "list the models that a server offers",
    "profiles": "list your profiles: settings by name",
    "key": "keep a key in a file that only you can read",
    "completion": "print a script by which your shell completes our words",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        parser, _ = _parser(given[:1])
        chosen = parser.parse_args(given)
        if chosen.version:
            print(f"openagent {__version__}")
            return 0
        if chosen.command is None:
            parser.error("which command? openagent --help lists them")
        code: int = chosen.run(chosen)
        return code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        if not (isinstance(error, BrokenPipeError) or error.errno == errno.EINVAL):  # as Windows calls it
            raise
        # The reader has what it wanted. What Python still holds back must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except AgentError as error:
        print(f"openagent: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1


def _parser(named: Collection[str]) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser of the command line and those of its commands, with the arguments of the commands that are named."""
    parser = argparse.ArgumentParser(
        prog="openagent",
        description="Talk to a language model.",
        epilog=EXAMPLES,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=28),
    )
    parser.add_argument("--version", action="store_true", help="show the version and leave")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", dest="command")
    added = {}
    for name, about in COMMANDS.items():
        added[name] = commands.add_parser(name, help=about, conflict_handler="resolve")
        if name == "completion":
            added[name].add_argument("shell", choices=("bash", "zsh", "fish"))
            added[name].set_defaults(run=_complete)
        elif name in named:
            import_module(f".{name}", __name__).__dict__[f"add_{name}"](added[name])
    return parser, added


def _complete(chosen: argparse.Namespace) -> int:
    parsers = _parser(COMMANDS)[1]
    room = import_module(".completion", __name__)
    found = {name: (COMMANDS[name], room.options_of(parser)) for name, parser in parsers.items()}
    sys.stdout.write(room.script(chosen.shell, found))
    return 0
