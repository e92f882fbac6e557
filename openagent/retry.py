"""When to ask again, and after how long.

Pure: numbers in, numbers out. Sleeping is the transport's.

Owns: which errors are worth another try, and the delays. Does not know: network, providers.
Source: design of full jitter after https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .errors import AgentError, ConfigError
from .values import dataclass

RETRYABLE_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
LONGEST_RETRY_AFTER = 120.0
ONE_DAY = 86_400


@dataclass(frozen=True)
class RetryConfig:
    """How often and how patiently: ``max_attempts`` counts all tries, delays are seconds.

    The delay after failure k is random between 0 and ``initial_delay * multiplier**(k - 1)``, never
    more than ``max_delay``.
    """

    max_attempts: int = 6
    initial_delay: float = 0.5
    max_delay: float = 30.0
    multiplier: float = 2.0

    def __post_init__(self) -> None:
        if type(self.max_attempts) is not int or self.max_attempts < 1:
            raise ConfigError(f"max_attempts {self.max_attempts!r} must be a whole number, 1 or more")
        for name, least, most in (("initial_delay", 0, ONE_DAY), ("max_delay", 0, ONE_DAY), ("multiplier", 1, 1000)):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not least <= value <= most:
                raise ConfigError(f"{name} {value!r} must be a number from {least} to {most}")

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
