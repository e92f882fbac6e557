"""What a run says while it goes on: the values that ``Client.events()`` yields.

Owns: the events. Does not know: who makes them, who reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, Union

from .messages import FinishReason, Message, ToolResultBlock, ToolUseBlock, Usage
from .values import dataclass, field

Cause = Literal["completed", "limit", "truncated", "refused", "interrupted"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text, as it arrived."""

    text: str


class TextBurst(tuple[str, ...]):
    """From an adapter to the loop: pieces of text that came together. The caller gets a ``TextDelta`` of each."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning, as it arrived."""

    text: str


@dataclass(frozen=True, slots=True)
class CallAnnounced:
    """The model has begun to write a call; it will be run, if at all, after its turn has ended."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A tool is about to run, with the input it will really get."""

    call: ToolUseBlock


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call has its result, be it the tool's or an error; ``seconds`` is the time the tool took."""

    call: ToolUseBlock
    result: ToolResultBlock
    seconds: float


@dataclass(frozen=True, slots=True)
class Response:
    """What the server says about its response: ids, the model that served it, its rate limits."""

    id: str | None = None
    model: str | None = None
    request_id: str | None = None
    rate_limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """A turn of the model is over and in the history, with the results of its calls in auto mode."""

    number: int
    finish_reason: FinishReason
    usage: Usage | None
    message: Message
    response: Response


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The exchange is over; always the last event, unless an error was raised."""

    cause: Cause
    finish_reason: FinishReason | None
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class ResponseStarted:
    """From an adapter to the loop: the response headers of a round are in."""

    response: Response


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """From an adapter to the loop: the turn has ended well, and this is what it was."""

    message: Message
    finish_reason: FinishReason
    usage: Usage | None
    response: Response


# What a caller gets, and what an adapter makes of a round.
Event = Union[TextDelta, ReasoningDelta, CallAnnounced, CallStarted, CallFinished, RoundFinished, RunFinished]
RoundEvent = Union[Event, TextBurst, ResponseStarted, TurnFinished]


def spread(events: Iterable[RoundEvent]) -> Iterator[RoundEvent]:
    """The events, a ``TextDelta`` for each piece of a burst."""
    for event in events:
        if type(event) is TextBurst:
            yield from map(TextDelta, event)
        else:
            yield event
