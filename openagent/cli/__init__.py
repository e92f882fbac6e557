"""The command line: ``openagent ask "question"``.

The answer goes to stdout as it comes, everything else to stderr. Exit codes: 0 answered, 1 an error,
2 wrong usage or settings, 130 Ctrl-C.

Owns: arguments, streams, exit codes. Does not know: how an answer comes about.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from ..client import Client
from ..errors import AgentError, ConfigError
from ..options import PROTOCOLS
from ..presets import PRESETS

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        return _ask(chosen)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="openagent", description="Talk to a language model.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    ask = commands.add_parser("ask", help="ask a question and print the answer as it comes")
    ask.add_argument("question", nargs="?", default="", help="what to ask; text on stdin goes before it")
    ask.add_argument("-m", "--model", default="", help="the model (with --local: the path of a GGUF file)")
    ask.add_argument("-s", "--system", default="", metavar="TEXT", help="the system prompt")
    ask.add_argument("--image", action="append", default=[], metavar="FILE", help="a file or URL; may be repeated")
    server = ask.add_mutually_exclusive_group()
    server.add_argument("--local", action="store_true", help='the embedded model (needs "openagent[local]")')
    server.add_argument("--base-url", default="", metavar="URL", help="the address of a server")
    server.add_argument("--provider", default="", metavar="NAME", help=f"one of {', '.join(PRESETS)}")
    ask.add_argument("--protocol", default="", metavar="NAME", help=f"one of {', '.join(PROTOCOLS)}")
    return parser


def _ask(chosen: argparse.Namespace) -> int:
    question = _question(chosen.question)
    if not question and not chosen.image:
        raise ConfigError("there is no question: give one, or pipe a text into stdin")
    settings: dict[str, Any] = {
        "model": chosen.model,
        "system_prompt": chosen.system,
        "base_url": chosen.base_url,
        "provider": "local" if chosen.local else chosen.provider,
        "protocol": chosen.protocol,
    }
    with Client(**settings) as client:
        _print_all(client, question, chosen.image)
        if client.finish_reason is not None and client.finish_reason.is_truncated:
            print("openagent: the answer was cut by the output limit", file=sys.stderr)
    return 0


def _question(words: str) -> str:
    """The question after what was piped in."""
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
    return "\n\n".join(text for text in (piped.strip(), words) if text)


def _print_all(client: Client, question: str, images: Sequence[str]) -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # an old terminal must not stop an answer at an emoji
    last = "\n"
    for text in client.stream(question, *images):
        last = text or last
        sys.stdout.write(text)
        sys.stdout.flush()
    if not last.endswith("\n"):
        sys.stdout.write("\n")
    sys.stdout.flush()
