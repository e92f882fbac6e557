"""How a run's pace does against limiters, in virtual time: ``python tests/soak/pace.py``.

Workers with the real ``Pace`` ask servers that refuse: by chance (5 %), or what goes over a rate (a bucket of tokens).
A refusal takes 5 ms; it names a time to wait, or none: then who was refused waits by ``RetryConfig``. Prints answers
per second, the most there could be, and the share of requests that were refused.
"""

import heapq
import random
from dataclasses import dataclass, field
from itertools import count

from openagent import Pace, RetryConfig

SECONDS = 300
REFUSED_AFTER = 0.005


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self):
        return self.now


@dataclass
class Chance:
    """Refuses a share of the requests."""

    share: float
    rate = None

    def accepts(self, _, dice):
        return dice.random() >= self.share


@dataclass
class Bucket:
    """Accepts so many requests a second, and a burst of some."""

    rate: float
    burst: float
    level: float = 0.0
    at: float = 0.0

    def accepts(self, now, _):
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1:
            return False
        self.level -= 1
        return True


@dataclass
class Play:
    """Workers against one limiter; ``after`` is the time that a refusal names."""

    limiter: Chance | Bucket
    after: float | None
    workers: int
    latency: float
    clock: Clock = field(default_factory=Clock)
    dice: random.Random = field(default_factory=lambda: random.Random(1))

    def run(self):
        """Answers per second, share of refusals."""
        self.pace, self.agenda, self.order = Pace(clock=self.clock), [], count()
        self.answers = self.refusals = 0
        for _ in range(self.workers):
            self.at(0, self.turn, 0)
        while True:
            self.clock.now, _, step, facts = heapq.heappop(self.agenda)
            if self.clock.now > SECONDS:
                return self.answers / SECONDS, self.refusals / (self.answers + self.refusals)
            step(*facts)

    def at(self, seconds, step, *facts):
        heapq.heappush(self.agenda, (self.clock.now + seconds, next(self.order), step, facts))

    def turn(self, failures):
        self.wait(self.pace.turn(), failures)

    def wait(self, seconds, failures):
        if seconds > 0:
            self.at(seconds, lambda: self.wait(self.pace.hold, failures))
        elif self.limiter.accepts(self.clock.now, self.dice):
            self.at(self.latency * self.dice.uniform(0.8, 1.2), self.answered)
        else:
            self.at(REFUSED_AFTER, self.refused, failures + 1)

    def answered(self):
        self.answers += 1
        self.pace.answered(None)
        self.turn(0)

    def refused(self, failures):
        self.refusals += 1
        self.pace.too_many(self.after, REFUSED_AFTER)
        own = RetryConfig().delay(failures, chance=self.dice.random)
        self.at(own if self.after is None else 0, self.turn, failures)


def main():
    print("limiter                       Retry-After  workers  latency   answers/s  at most  refused")
    for limiter, after, workers, latency in (
        (Chance(0.05), 0.05, 8, 0.05),
        (Chance(0.05), None, 8, 0.05),
        (Chance(0.05), 1, 8, 0.05),
        (Chance(0.05), None, 32, 2),
        (Chance(0.05), 1, 32, 2),
        (Bucket(80, 10), 0.1, 8, 0.05),
        (Bucket(80, 10), None, 8, 0.05),
        (Bucket(20, 20), 1, 8, 0.05),
        (Bucket(20, 5), None, 8, 0.05),
        (Bucket(5, 5), 1, 32, 2),
        (Bucket(5, 5), None, 32, 2),
    ):
        most = min(workers / latency, limiter.rate or workers / latency)
        name = f"{limiter.rate:.0f}/s, burst {limiter.burst:.0f}" if limiter.rate else f"{limiter.share:.0%} by chance"
        rate, refused = Play(limiter, after, workers, latency).run()
        asks = "none" if after is None else f"{after} s"
        print(f"{name:30}{asks:>11}{workers:>9}{latency:>7} s{rate:>12.1f}{most:>9.0f}{refused:>9.1%}")


if __name__ == "__main__":
    main()
