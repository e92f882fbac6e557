"""``openagent key``: keys in a file that only the user can read.

Owns: asking for a key without showing it. Does not know: where keys are kept, who is sent them.
"""

from __future__ import annotations

import argparse
import sys

from ..errors import ConfigError
from ..keys import drop_key, keep_key, keys, keys_file
from ..presets import PRESETS
from .output import tell

VENDORS = tuple(name for name, known in PRESETS.items() if known.key_variable)


def add_key(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.description = (
        'Keys are kept in a file that only you can read. A profile takes one by its name (key = "NAME"); '
        f"one that is named {', '.join(VENDORS)} goes to that vendor's own host, where no variable holds another."
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for name, about in {
        "set": "keep a key, typed or from stdin",
        "list": "the names",
        "remove": "forget a key",
    }.items():
        action = actions.add_parser(name, help=about)
        action.set_defaults(run={"set": _set, "list": _list, "remove": _remove}[name])
        if name != "list":
            action.add_argument("name", metavar="NAME")


def _set(chosen: argparse.Namespace) -> int:
    keys()  # what is wrong with the file is told before anything is typed
    keep_key(chosen.name, _typed(f"Key {chosen.name} (it is not shown): "))
    use = "goes to its own host" if chosen.name in VENDORS else f'a profile takes it by key = "{chosen.name}"'
    tell(f"openagent: kept in {keys_file()}; {use}")
    return 0


def _typed(question: str) -> str:
    from getpass import getpass

    if sys.stdin is None:
        raise ConfigError("there is no key: pipe it into stdin")
    try:
        return (getpass(question) if sys.stdin.isatty() else sys.stdin.readline()).strip()
    except EOFError:
        return ""


def _list(chosen: argparse.Namespace) -> int:
    for name in keys():
        print(name)
    return 0


def _remove(chosen: argparse.Namespace) -> int:
    drop_key(chosen.name)
    tell(f"openagent: {chosen.name} is forgotten")
    return 0
