"""Every exception that openagent raises.

One base, ``AgentError``, and a class for each party that can be at fault: you (``ConfigError``),
the network (``TransportError``), the server (``APIError``, ``InvalidResponseError``), a stream
that broke off (``StreamInterruptedError``). Each carries the facts a program can act on.

Owns: the exceptions. Does not know: anything else of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .messages import ContentBlock


class AgentError(Exception):
    """The base of every error of this library.

    ``retryable`` says whether the same request may succeed later; ``status`` is the HTTP status
    (also of an error inside a stream, where the server gave one); ``body`` what the server said,
    cut to a readable size; ``request_id`` the server's name for the request; ``retry_after`` the
    seconds it asked to wait; ``blocks`` what was heard of the answer before it failed.
    """

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        retryable: bool | None = None,
        status: int | None = None,
        body: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        blocks: Sequence[ContentBlock] = (),
    ) -> None:
        super().__init__(message)
        if retryable is not None:
            self.retryable = retryable
        self.status = status
        self.body = body
        self.request_id = request_id
        self.retry_after = retry_after
        self.blocks = list(blocks)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows for it: the lines that led to it, none of them ours or IPython's, and what it says."""
        import os
        import traceback

        foreign = (os.path.dirname(__file__), os.sep + "IPython" + os.sep)
        frames = [
            frame
            for frame in traceback.extract_tb(self.__traceback__)
            if not frame.filename.startswith(foreign[0]) and foreign[1] not in frame.filename
        ]
        return [*"".join(traceback.format_list(frames)).splitlines(), f"{type(self).__name__}: {self}"]


class ConfigError(AgentError, ValueError):
    """You asked for what cannot be done; nothing was sent."""


class PromptBlockedError(AgentError):
    """A ``user_prompt_submit`` hook blocked the prompt; nothing was sent or kept."""


class ToolError(AgentError):
    """Raised by a tool: its text is what the model reads as the result of the call."""


class TransportError(AgentError):
    """The network failed: no connection, no name, no TLS, no bytes."""


class Timeout(TransportError):
    """Nothing came for too long, or the deadline passed."""


class APIError(AgentError):
    """The server said no, by its status or inside the stream."""


class ContextOverflowError(APIError):
    """The conversation is longer than the model's context."""


class InvalidResponseError(AgentError):
    """What the server sent makes no sense as an answer of this protocol."""


class StreamInterruptedError(AgentError):
    """The answer broke off before its end; ``retryable`` if nothing of it had been delivered."""
