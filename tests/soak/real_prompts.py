"""200 prompts with a schema on the embedded model, four at a time and one at a time.

``python tests/soak/real_prompts.py [PROMPTS [WORKERS]]`` asks in five parts; beside each part a quarter as many other
prompts are asked one after the other. All answers must fit the schema. Prints the figures and some answers.
"""

import statistics
import sys
import time
from dataclasses import dataclass
from itertools import product
from typing import Literal

from openagent import AgentOptions, map_prompts

PARTS = 5
KINDS = ("fruit", "tool", "animal")
NAMES = ("Anna", "Boris", "Chen", "Dora", "Emil", "Fatma", "Goran", "Hana", "Igor", "Jana", "Kofi", "Lena", "Maya")
CITIES = ("Oslo", "Lima", "Cairo", "Paris", "Tokyo")
THINGS = ("an apple", "a hammer", "a horse", "a pear", "a saw")


@dataclass
class Purchase:
    name: str
    city: str
    pieces: int
    kind: Literal["fruit", "tool", "animal"]


def texts():
    """325 sentences, each another one."""
    for number, (name, city, thing) in enumerate(product(NAMES, CITIES, THINGS)):
        yield f"Who bought what? {name} from {city} bought {thing}, {number % 7 + 2} pieces."


def asked(prompts, workers):
    """Results, seconds."""
    options = AgentOptions(provider="local", temperature=0, max_tokens=60)
    started = time.monotonic()
    results = list(map_prompts(options, prompts, schema=Purchase, workers=workers, progress=False))
    return results, time.monotonic() - started


def main(number, workers):
    list(map_prompts(AgentOptions(provider="local"), ["Hello!"], progress=False))
    prompts, results, ratios = list(texts()), [], []
    each = number // PARTS
    for part in range(PARTS):
        some, seconds = asked(prompts[part * each : (part + 1) * each], workers)
        ones = prompts[-(part + 1) * each // 4 : -part * each // 4 or None]
        single, single_seconds = asked(ones, 1)
        results += some
        per_prompt, per_single = seconds / each, single_seconds / len(ones)
        ratios.append(per_single / per_prompt)
        print(f"{workers} at a time {per_prompt:.2f} s each, one at a time {per_single:.2f} s each", flush=True)
        assert [result.error for result in single] == [None] * len(ones)
    valid = [result for result in results if isinstance(result.answer, Purchase)]
    retried = sum(result.requests > 1 for result in results)
    right = sum(result.answer.name in result.input and result.answer.city in result.input for result in valid)
    tokens = sum(result.usage.output_tokens for result in valid)
    print(f"{len(valid)} of {len(results)} valid, {retried} after a second try, {tokens} tokens written")
    print(f"{right} name the person and the city")
    print(f"{workers} at a time is {statistics.median(ratios):.2f} times as fast as one at a time (median of {PARTS})")
    print(*(result.answer for result in valid[:3]), *(result.error for result in results if result.error), sep="\n")
    assert len(valid) == number


if __name__ == "__main__":
    main(*(int(text) for text in sys.argv[1:3]), *(200, 4)[len(sys.argv[1:3]) :])
