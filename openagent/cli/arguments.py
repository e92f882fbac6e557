"""What the words of a command line mean: settings of a client, attachments, the question.

Owns: the arguments that the commands share, and their reading. Does not know: output, what is done with them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import ConfigError
from ..images import data_uri
from ..messages import Attachment, ImageBlock, TextBlock
from ..options import PROTOCOLS
from ..presets import PRESETS
from ..profiles import elsewhere, profile, with_key
from .decoded import clean, read_stdin

MAX_TEXT_BYTES = 2_000_000
STDIN = "-"


def add_server(parser: argparse.ArgumentParser) -> None:
    """The arguments that say which server is meant."""
    group = parser.add_argument_group("the server")
    server = group.add_mutually_exclusive_group()
    server.add_argument("--local", action="store_true", help='the embedded model (needs "openagent[local]")')
    server.add_argument("--base-url", default="", metavar="URL", help="the address of a server")
    server.add_argument("--provider", default="", metavar="NAME", help=f"one of {', '.join(PRESETS)}")
    group.add_argument("--profile", default="", metavar="NAME", help="settings by name; see openagent profiles")
    group.add_argument("--protocol", default="", metavar="NAME", help=f"one of {', '.join(PROTOCOLS)}")
    group.add_argument("--timeout", type=float, metavar="SECONDS", help="the longest silence of the server")
    group.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other setting, as temperature=0; may be repeated",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """The arguments that say who answers, and as what."""
    parser.add_argument(
        "-m", "--model", default="", help="the model, also PROVIDER:MODEL (with --local: the path of a GGUF file)"
    )
    parser.add_argument("-s", "--system", default="", metavar="TEXT", help="the system prompt")


def add_conversation(parser: argparse.ArgumentParser) -> None:
    """The arguments that say which conversation goes on."""
    kept = parser.add_argument_group("the conversation").add_mutually_exclusive_group()
    kept.add_argument("-c", "--continue", dest="goes_on", action="store_true", help="go on with the last conversation")
    kept.add_argument("--conversation", default="", metavar="NAME", help="go on with this conversation, or begin it")


def settings(chosen: argparse.Namespace) -> dict[str, Any]:
    """The settings of a client: what the command line says, then the profile; ``ConfigError`` for one that is none."""
    provider, model = _named_model(chosen)
    said = {
        "model": model,
        "system_prompt": clean(getattr(chosen, "system", "")),
        "base_url": chosen.base_url,
        "provider": provider,
        "protocol": chosen.protocol,
        "timeout": chosen.timeout,
    }
    given = {name: value for name, value in said.items() if value not in ("", None)}
    given |= dict(_option(text) for text in chosen.option)
    usual = profile(chosen.profile)
    return with_key((elsewhere(usual) if {"base_url", "provider"} & given.keys() else usual) | given)


def _named_model(chosen: argparse.Namespace) -> tuple[str, str]:
    """Provider and model: ``ollama:qwen3:8b`` names both, ``qwen3:8b`` a model alone."""
    provider, model = "local" if chosen.local else chosen.provider, getattr(chosen, "model", "")
    head, mark, rest = model.partition(":")
    if mark and rest and head in PRESETS and not provider and not chosen.base_url:
        return head, rest
    return provider, model


def _option(text: str) -> tuple[str, Any]:
    """Name and value of ``temperature=0.5``; a value that is no JSON is a text."""
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise ConfigError(f"option {text!r} must be KEY=VALUE, as temperature=0")
    try:
        return name.strip().replace("-", "_"), json.loads(value)
    except ValueError:
        return name.strip().replace("-", "_"), value


def question(words: str, attachments: Sequence[str] = ()) -> str:
    """The question after what was piped in, unless that is an attachment."""
    is_typed = sys.stdin is None or sys.stdin.isatty()
    piped = "" if STDIN in attachments or is_typed else read_stdin()
    return "\n\n".join(text for text in (piped.strip(), clean(words)) if text)


def attachment(name: str) -> Attachment:
    """What stands under this name: an image by its URL, an image or a text from a file or, as ``-``, from stdin."""
    if name.startswith(("http://", "https://", "data:")):
        return ImageBlock(name)
    if name == STDIN and sys.stdin is None:
        raise ConfigError("attachment '-' is stdin, and there is none")
    content = sys.stdin.buffer.read() if name == STDIN else _content(name)
    title = "stdin" if name == STDIN else os.path.basename(name)
    if b"\0" in content[:4096] or content[:4] == b"\xff\xd8\xff\xe0":
        return ImageBlock(data_uri(content, origin=f"attachment {name!r}"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ImageBlock(data_uri(content, origin=f"attachment {name!r} is no UTF-8 text, and"))
    if len(content) > MAX_TEXT_BYTES:
        raise ConfigError(f"attachment {name!r} has {len(content)} bytes; the limit is {MAX_TEXT_BYTES}")
    return TextBlock(f"{title}:\n\n{text}")


def _content(name: str) -> bytes:
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"cannot read attachment {name!r}: {error.strerror or error}") from error
