"""What is told to ``logging``, under the logger ``openagent``, and the variable that has it written to stderr.

INFO has a line for each request, response, new attempt and call of a tool; DEBUG the bodies too. Secrets are masked,
and so are the sensitive arguments of tools.

Owns: what is told, at which level. Does not know: when.
"""

from __future__ import annotations

import logging

from . import codec
from .errors import ConfigError
from .options import environment
from .record import Record

VARIABLE = "OPENAGENT_LOG"
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

ours = logging.getLogger("openagent")
wire = logging.getLogger("openagent.wire")
calls = logging.getLogger("openagent.tools")


def switch_on() -> None:
    """Has what ``OPENAGENT_LOG`` asks for written to stderr; ``ConfigError`` for a word that is no level."""
    word = environment(VARIABLE)
    if word is None or any(handler.get_name() == VARIABLE for handler in ours.handlers):
        return
    if word.lower() not in LEVELS:
        raise ConfigError(f"{VARIABLE} {word!r} must be one of {', '.join(LEVELS)}")
    handler = logging.StreamHandler()
    handler.set_name(VARIABLE)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S"))
    ours.addHandler(handler)
    ours.setLevel(LEVELS[word.lower()])


def request(record: Record) -> None:
    """A request goes out."""
    if wire.isEnabledFor(logging.INFO) and (sent := record.request) is not None:
        wire.info("%s %s", sent.method, sent.url)
        if sent.body is not None:
            wire.debug("> %s", sent.body if isinstance(sent.body, str) else codec.dump(sent.body))


def response(record: Record) -> None:
    """The headers of a response are in."""
    if wire.isEnabledFor(logging.INFO) and (heard := record.response) is not None:
        named = f", request {heard.request_id}" if heard.request_id else ""
        wire.info("%d after %.3f s%s", heard.status, heard.seconds, named)
        wire.debug("< %s", dict(heard.headers))


def another_attempt(error: Exception, wait: float) -> None:
    """A request failed, and goes out again."""
    wire.info("%s: %s; once more in %.1f s", type(error).__name__, error, wait)


def call(name: str, *, is_error: bool, seconds: float) -> None:
    """A call of a tool has its result."""
    calls.info("%s %s after %.3f s", name, "failed" if is_error else "done", seconds)
