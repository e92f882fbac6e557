"""``openagent models``: the models that a server offers.

Owns: the question and the reading of its answer. Does not know: network.
Source: https://platform.openai.com/docs/api-reference/models/list (all servers follow it),
https://docs.anthropic.com/en/api/models-list (the same members in ``data``)
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from .. import codec, local
from ..adapters import WireAdapter, endpoint, masked
from ..connection import Connections
from ..errors import ConfigError, InvalidResponseError
from ..interrupt import Interrupt
from ..messages import Message
from ..options import AgentOptions
from ..protocols import ADAPTERS
from ..transport import Line
from .arguments import add_server, settings
from .output import write_text


def add_models(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("--json", action="store_true", help="as a JSON list")
    add_server(parser)
    parser.set_defaults(run=run_models)


def run_models(chosen: argparse.Namespace) -> int:
    """Runs the command and returns its exit code."""
    names = offered(AgentOptions(**settings(chosen) | {"model": "any"}))
    write_text([codec.dump(names)] if chosen.json else [f"{name}\n" for name in names])
    return 0


def offered(options: AgentOptions) -> list[str]:
    """The names of the models, in the server's order; the key goes to that host alone, as with any request.

    Raises what a request raises, and ``InvalidResponseError`` if the answer is no list of models.
    """
    if options.provider == "local":
        return [local.SMOLLM2.title]
    made = ADAPTERS[options.protocol] if isinstance(options.protocol, str) else None
    if made is None or not issubclass(made, WireAdapter):
        raise ConfigError(f"protocol {options.protocol!r} has no list of models")
    connections = Connections()
    line = Line(options, connections, Interrupt())
    # A request for a turn has the headers that this server wants.
    usual = made(options, [Message.user("?")], [], line).encode(None, False)
    wanted = {"accept", "content-type"}
    headers = {name: value for name, value in usual.headers.items() if name.lower() not in wanted}
    try:
        body = line.document(replace(usual, url=_url(options), headers=headers, body=b"", method="GET"))
    finally:
        connections.close()
    return _names(body, options)


def _url(options: AgentOptions) -> str:
    return endpoint(options.base_url, "/models")


def _names(body: bytes, options: AgentOptions) -> list[str]:
    try:
        said: Any = codec.parse(body)
    except ValueError:
        said = None
    rows = said.get("data", said.get("models")) if isinstance(said, dict) else said
    if not isinstance(rows, list):
        text = masked(options, body.decode("utf-8", "replace"))
        raise InvalidResponseError(f"the server sent no list of models: {text[:200]!r}")
    names = [row.get("id") or row.get("name") for row in rows if isinstance(row, dict)]
    return [name for name in names if isinstance(name, str)]
