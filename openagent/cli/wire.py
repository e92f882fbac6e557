"""The request and the reply on stderr, with nothing secret in them.

Owns: what ``--verbose`` shows. Does not know: how they are sent and read; it listens to an adapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .. import codec
from ..adapters import Request, masked
from ..events import RoundEvent
from ..messages import Message
from ..options import AgentOptions
from ..protocols import ADAPTERS
from ..tools import Tool

PLAIN_HEADERS = ("accept", "anthropic-version", "content-length", "content-type", "date", "retry-after", "server")
_IMAGE = re.compile(r"(data:[\w/+.-]+;base64,|\"data\": ?\")[A-Za-z0-9+/=]{64,}")


def shown(options: AgentOptions, tell: Callable[[str], None]) -> AgentOptions:
    """The options with an adapter that tells each request and each reply in lines of text."""
    name = options.protocol
    if not isinstance(name, str):
        return options
    made: Any = ADAPTERS[name]

    class Shown(made):  # type: ignore[misc]
        def __init__(
            self, options: AgentOptions, messages: Sequence[Message], tools: Sequence[Tool], transport: Any
        ) -> None:
            # Under its own name: what a provider wants back with a turn is bound to it.
            super().__init__(options.replace(protocol=name), messages, tools, transport)

        def encode(self, instruction: str | None, include_tools: bool) -> Request:
            request: Request = super().encode(instruction, include_tools)
            tell(_request(request, self.options))
            return request

        def decoder(self, headers: Mapping[str, str]) -> Any:
            tell(_headers("< ", headers))
            return super().decoder(headers)

        def execute_round(self, instruction: str | None = None, include_tools: bool = True) -> Iterator[RoundEvent]:
            yield from super().execute_round(instruction, include_tools)
            if self.turn is not None:
                tell(_indented("< ", json.dumps(self.turn.message.to_dict(), indent=2, ensure_ascii=False), options))

    return options.replace(protocol=Shown)


def _request(request: Request, options: AgentOptions) -> str:
    head = f"> POST {request.url.partition('?')[0]}"  # a query may hold a key
    body = json.dumps(codec.parse(request.body), indent=2, ensure_ascii=False)
    return "\n".join([head, _headers("> ", request.headers), _indented("> ", body, options)])


def _headers(mark: str, headers: Mapping[str, str]) -> str:
    return "\n".join(
        f"{mark}{name}: {value if name.lower() in PLAIN_HEADERS else '***'}" for name, value in headers.items()
    )


def _indented(mark: str, text: str, options: AgentOptions) -> str:
    return "\n".join(mark + line for line in _IMAGE.sub(r"\1...", masked(options, text)).splitlines())
