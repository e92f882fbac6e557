"""When to ask again, and after how long.

Pure: numbers in, numbers out. Sleeping is the transport's.

Owns: which errors are worth another try, and the delays. Does not know: network, providers.
Source: design of full jitter after https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from .errors import AgentError, ConfigError

RETRYABLE_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
LONGEST_RETRY_AFTER = 120.0


@dataclass(frozen=True)
class RetryConfig:
    """How often and how patiently: ``max_attempts`` counts all tries, delays are seconds.

    The delay before try k+1 is random between 0 and ``initial_delay * multiplier**k``, never more
    than ``max_delay``.
    """

    max_attempts: int = 6
    initial_delay: float = 0.5
    max_delay: float = 30.0
    multiplier: float = 2.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ConfigError(f"max_attempts {self.max_attempts!r} must be 1 or more")
        for name in ("initial_delay", "max_delay"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} {getattr(self, name)!r} must be 0 seconds or more")
        if not self.multiplier >= 1:
            raise ConfigError(f"multiplier {self.multiplier!r} must be 1 or more")

    def delay(self, failures: int, *, chance: Callable[[], float] = random.random) -> float:
        """Seconds to wait after so many failures."""
        longest = min(self.initial_delay * self.multiplier ** min(failures - 1, 64), self.max_delay)
        return chance() * longest


def is_retryable_error(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, AgentError) and error.retryable


def pause(config: RetryConfig | None, error: AgentError, failures: int) -> float | None:
    """Seconds to wait before the next try, or None if there is to be none.

    What the server asks for is honoured up to two minutes; if it asks for more, the error is raised.
    """
    if config is None or not error.retryable or failures >= config.max_attempts:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_RETRY_AFTER else None
    return config.delay(failures)
