"""How fast a process asks: limits of requests and tokens, and a common brake.

All threads that share a ``Pace`` wait their turn in it. When a server says "too many" all of them stop for as
long as it asks, and go on no faster than answers have come in of late, which is what the server has shown it can
do; each answer after that lets them ask a little faster. ``tests/soak/pace.py`` has it play against limiters.

Owns: the waiting times of many askers. Does not know: what is asked, sleeping.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from math import inf
from typing import Any

from ..errors import ConfigError

FIRST_GAP = 0.005  # seconds between two answers, as long as nobody knows
LONGEST_GAP = 10.0
MEMORY = 20  # about so many answers count for how fast they come
SPEED_UP = 0.95  # what each good answer leaves of the gap between requests
UNKNOWN_SIZE = 500  # tokens that a prompt is taken for, before the first answer told


class Pace:
    """At most so many requests per second or minute and tokens per minute, for all who share it.

    Requests are spread evenly. Tokens are set aside by the mean of the answers so far, and made up for when the
    true number is known. What travels to another process are the limits alone.
    """

    def __init__(
        self,
        *,
        requests_per_second: float | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = {
            "requests_per_second": requests_per_second,
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
        }
        for name, value in self._limits.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if value is not None and not (is_number and value > 0):
                raise ConfigError(f"{name} {value!r} must be a number above 0")
        gaps = [0.0]
        if requests_per_second:
            gaps.append(1 / requests_per_second)
        if requests_per_minute:
            gaps.append(60 / requests_per_minute)
        self._gap = max(gaps)
        self._seconds_per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._brake = 0.0  # seconds between two requests that "too many" has brought about
        self._braked_at = -inf
        self._usual_gap = FIRST_GAP  # seconds between two answers
        self._answered_at = clock()
        self._free_at = 0.0
        self._tokens_free_at = 0.0
        self._held_until = 0.0
        self._mean = float(UNKNOWN_SIZE)

    def shared(self, processes: int) -> Pace:
        """The share of each of so many processes."""
        share = Pace()
        share.__setstate__({name: value and value / processes for name, value in self._limits.items()})
        return share

    def turn(self) -> float:
        """Take the next turn; the seconds until it comes."""
        with self._lock:
            now = self._clock()
            at = max(now, self._free_at, self._tokens_free_at, self._held_until)
            self._free_at = at + max(self._gap, self._brake)
            self._tokens_free_at = at + self._mean * self._seconds_per_token
            return at - now

    @property
    def hold(self) -> float:
        """The seconds for which nobody is to ask."""
        return max(0.0, self._held_until - self._clock())

    def answered(self, tokens: int | None) -> None:
        """A request was answered, with so many tokens in all; None if the server did not say."""
        with self._lock:
            now = self._clock()
            gap, self._answered_at = now - self._answered_at, now
            self._usual_gap += (min(gap, MEMORY * self._usual_gap) - self._usual_gap) / MEMORY
            self._brake *= SPEED_UP
            if self._brake < self._usual_gap / 4:
                self._brake = 0.0
            if tokens is not None:
                self._tokens_free_at += (tokens - self._mean) * self._seconds_per_token
                self._mean += (tokens - self._mean) / 10

    def too_many(self, seconds: float | None, age: float) -> None:
        """A server refused a request that was sent ``age`` seconds ago; it asks to wait so long, or does not say.

        Of many that are refused at once one slows down: the others were sent before that could show.
        """
        with self._lock:
            now = self._clock()
            if now - age >= self._braked_at:
                self._brake = min(max(self._brake, self._usual_gap), LONGEST_GAP)
                self._braked_at = now
            if seconds is not None:
                self._held_until = max(self._held_until, now + seconds)

    def __getstate__(self) -> dict[str, Any]:
        return self._limits

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Pace({', '.join(f'{name}={value!r}' for name, value in self._limits.items() if value)})"
