"""Ten thousand exchanges in one process, with faults mixed in: memory, connections and descriptors stay flat.

It prints its figures; ``tests/test_long_run.py`` plays a short version::

    python tests/soak/long_run.py          # 10,000 exchanges
    python tests/soak/long_run.py 2000
"""

from __future__ import annotations

import gc
import os
import random
import resource
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass

from openagent import AgentError, Client, RetryConfig, Tool
from openagent.client import ADAPTERS
from openagent.testing import ScriptedServer, answer, call, failure, raw

CALLS = answer("hm ", calls=[call("look", {"at": "here"}), call("look", {"at": "there"})])
FAULTS = [
    failure(400),
    failure(429, headers={"Retry-After": "0"}),
    failure(500),
    answer("one two three", cut=400),
    answer("one two three", cut=400, reset=True),
    answer("one two three", framing="close"),
    raw("data: {garbage\n\n"),
    raw("<html>", framing="length"),
    raw(b""),
]
HISTORY = 12  # messages that are kept, as a program would


@dataclass(frozen=True)
class Figures:
    """What a run left behind, and how it went."""

    exchanges: int
    outcomes: Counter[str]
    seconds: float
    connections: int
    memory_before: int
    memory_after: int
    descriptors: tuple[int, int]
    threads: tuple[int, int]


def memory() -> int:
    """The bytes that this process has in memory now."""
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) * resource.getpagesize()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def exchange(client: Client, number: int) -> str:
    """One exchange in one of the ways there are; how it ended in a word."""
    client.history[:] = client.history[-HISTORY:]
    prompt, way = f"prompt {number}", number % 5
    try:
        if way == 0:
            client.ask(prompt)
        elif way == 1:
            list(client.stream(prompt))
        elif way == 2:
            client.send(prompt)
            next(client.events(), None)  # and left there
            return "left"
        elif way == 3:
            client.send(prompt, auto_execute_tools=False)
            list(client.receive())
        else:
            client.send(prompt)
            client.interrupt()
            list(client.events())
            return "interrupted"
    except AgentError as error:
        return type(error).__name__
    return "ended"


def run(exchanges: int, *, warm_up: int, share_of_faults: float = 0.2, report=lambda *_: None) -> Figures:
    """The figures of so many exchanges, in turn on each wire, the first ``warm_up`` of them not counted."""
    chance = random.Random(7)
    look = Tool("look", "", {"type": "object", "properties": {"at": {"type": "string"}}}, lambda given: given["at"])

    def script(request):
        server.requests.clear()
        if chance.random() < share_of_faults:
            return chance.choice(FAULTS)
        return CALLS if chance.random() < 0.3 else "All is well."

    settings = {"model": "m", "tools": [look], "auto_execute_tools": True, "api_key": "k"}
    retry = RetryConfig(max_attempts=3, initial_delay=0.0001, max_delay=0.0001)
    with ScriptedServer(script, repeat=True, strict=False) as server:
        clients = [Client(base_url=server.url, protocol=protocol, retry=retry, **settings) for protocol in ADAPTERS]
        outcomes: Counter[str] = Counter()
        before = None
        for number in range(warm_up + exchanges):
            if number == warm_up:
                gc.collect()
                before = memory(), descriptors(), threading.active_count(), server.connections
                outcomes.clear()
                started = time.monotonic()
            outcomes[exchange(clients[number % len(clients)], number)] += 1
            if number % 1000 == 0:
                report(number, memory(), descriptors(), threading.active_count())
        seconds = time.monotonic() - started
        for client in clients:
            client.close()
        until = time.monotonic() + 5
        while server.open_connections and time.monotonic() < until:
            time.sleep(0.005)
        gc.collect()
        after = memory(), descriptors(), threading.active_count()
        connections = server.connections - before[3]
    return Figures(
        exchanges, outcomes, seconds, connections, before[0], after[0], (before[1], after[1]), (before[2], after[2])
    )


def main(exchanges: int) -> None:
    def report(number: int, size: int, open_now: int, threads: int) -> None:
        print(f"{number:6} exchanges: {size / 2**20:.1f} MB, {open_now} descriptors, {threads} threads", flush=True)

    figures = run(exchanges, warm_up=500, report=report)
    print(f"{figures.exchanges} exchanges in {figures.seconds:.0f} s: {dict(figures.outcomes)}")
    print(f"connections opened: {figures.connections}")
    grown = (figures.memory_after - figures.memory_before) / 2**10
    print(f"memory: {figures.memory_before / 2**20:.1f} MB, grown by {grown:.0f} KB")
    print(f"descriptors before and after: {figures.descriptors}, threads: {figures.threads}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
