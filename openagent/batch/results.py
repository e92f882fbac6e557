"""What comes back for a prompt.

Owns: the values of a run. Does not know: how an answer comes about, files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..errors import ConfigError
from ..messages import FinishReason, Usage


@dataclass(frozen=True)
class Result:
    """What became of one prompt: ``answer`` (a text; with a schema the value), or ``error`` if there is none.

    ``index`` is its place among the prompts, ``input`` what stood there. ``requests`` are the requests it took;
    0 if the cache knew the answer. ``seconds`` count the waiting, too.
    """

    index: int
    input: Any
    answer: Any = None
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    seconds: float = 0.0
    requests: int = 0
    error: Exception | None = None

    @property
    def tokens(self) -> int:
        """The tokens read and written for it, as far as the server told."""
        return tokens_of(self.usage) if self.requests else 0


def tokens_of(usage: Usage | None) -> int:
    """The tokens read and written, as far as the server told."""
    return (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage else 0


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much a run may spend: so many ``requests``, so many ``tokens`` (read and written).

    Prompts that are on their way when it is spent are answered, so tokens may go over it by that much.
    """

    requests: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("requests", "tokens"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 0):
                raise ConfigError(f"budget {name} {value!r} must be a whole number, 0 or more")


@dataclass
class Tally:
    """What a run has come to so far: prompts answered and failed (by kind of error), tokens, requests.

    ``ended_by`` is ``"budget"`` if that ended the run before its last prompt.
    """

    answered: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    requests: int = 0
    ended_by: str | None = None

    @property
    def failed(self) -> int:
        """How many prompts have no answer."""
        return sum(self.failures.values())

    @property
    def done(self) -> int:
        """How many prompts are through, with an answer or without."""
        return self.answered + self.failed

    def add(self, result: Result) -> None:
        """Count a result."""
        self.tokens += result.tokens
        self.requests += result.requests
        if result.error is None:
            self.answered += 1
        else:
            self.failures[kind_of(result.error)] += 1

    def allows(self, budget: Budget, waiting: int) -> bool:
        """Whether one more prompt may be sent beside those that wait for an answer."""
        each = self.tokens / self.done if self.done else 0
        requests_left = budget.requests is None or self.requests + waiting < budget.requests
        tokens_left = budget.tokens is None or self.tokens + waiting * each < budget.tokens
        return requests_left and tokens_left


def kind_of(error: Exception) -> str:
    """An error in a word or two: its class and, if there is one, its HTTP status.

    >>> kind_of(ValueError("no"))
    'ValueError'
    """
    status = getattr(error, "status", None)
    return type(error).__name__ + (f" {status}" if status else "")
