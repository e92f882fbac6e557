"""Ctrl-C and ``interrupt()`` at any moment of a conversation with tools: how soon it ends, and whether all stays whole.

A real signal at a random moment, again and again: in a connect, a handshake, a wait, a read, a hook, a tool, between
rounds, in the last one. After each the next prompt must be answered, by a strict server::

    python tests/soak/interrupts.py            # 1,000 of each kind on each wire
    python tests/soak/interrupts.py 50
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import statistics
import sys
import threading
import time

from openagent import Client, Hooks, Tool
from openagent.client import ADAPTERS
from openagent.testing import ScriptedServer, answer, call

ROUNDS = 3


class Alarm:
    """A signal at a chosen moment, which counts only while it is armed."""

    def __init__(self, act) -> None:
        self._act = act
        self._is_armed = False
        self.since: float | None = None
        signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, *_) -> None:
        if self._is_armed:
            self._is_armed = False
            self.since = time.monotonic()
            self._act()

    @contextlib.contextmanager
    def within(self, seconds: float):
        self.since, self._is_armed = None, True
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        try:
            yield
        finally:
            self._is_armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)


def scripted(request):
    """Three rounds of calls, then text; each slowly enough to be hit."""
    text = request.raw.decode()
    if "and now?" in text.rpartition("prompt")[2]:
        return "fine"
    done = sum(f"done {n}" in text.rpartition("prompt")[2] for n in range(1, ROUNDS + 1))
    if done == ROUNDS:
        return answer("all is done", delay=0.0005)
    return answer("hm ", calls=[call("step", {"n": done + 1})], delay=0.0005)


def tries(protocol: str, kind: str, count: int) -> list[float]:
    """The seconds that each interrupt took; an ``AssertionError`` if anything was not whole after one."""
    chance = random.Random(f"{protocol} {kind}")
    ran: list[str] = []

    def step(given):
        ran.append(given["n"])
        time.sleep(0.001)
        return f"done {given['n']}"

    hooks = Hooks([lambda event: time.sleep(0.0005)], [lambda event: time.sleep(0.0005)])
    tool = Tool("step", "", {"type": "object", "properties": {"n": {"type": "integer"}}}, step)
    took = []
    with ScriptedServer(scripted, repeat=True) as server:
        client = Client(
            model="m",
            base_url=server.url,
            protocol=protocol,
            tools=[tool],
            hooks=hooks,
            auto_execute_tools=True,
            retry=None,
        )
        alarm = Alarm(client.interrupt if kind == "interrupt" else ctrl_c)
        started = time.monotonic()
        client.ask("prompt")
        usual = time.monotonic() - started
        for number in range(count):
            if number % 10 == 0:
                client.close()  # so that connects are hit, too
            client.clear_history()
            ran.clear()
            try:
                with alarm.within(chance.random() * usual * 1.2):
                    client.ask("prompt")
            except KeyboardInterrupt:
                pass
            if alarm.since is not None:
                took.append(time.monotonic() - alarm.since)
            check(client, ran)
            if client.ask("and now?") != "fine":
                raise AssertionError(f"{protocol}, {kind}, try {number}: the next prompt got no answer")
            if server.complaints:
                raise AssertionError(f"{protocol}, {kind}, try {number}: {server.complaints}")
        client.close()
    return took


def ctrl_c() -> None:
    raise KeyboardInterrupt


def check(client: Client, ran: list[str]) -> None:
    """What was run is in the history, once, with a result; each call there has one."""
    calls = [made for message in client.history for made in message.calls]
    results = [result for message in client.history for result in message.results]
    assert [made.id for made in calls] == [result.tool_use_id for result in results], client.history
    assert len(ran) == len(set(ran)), ran
    assert set(ran) <= {made.input["n"] for made in calls}, (ran, client.history)


def main(count: int) -> None:
    took: dict[str, list[float]] = {}
    before = None
    for kind in ("ctrl-c", "interrupt"):
        for protocol in ADAPTERS:
            tries(protocol, kind, 1) if before is None else None
            before = before or len(os.listdir("/proc/self/fd"))
            took.setdefault(kind, []).extend(tries(protocol, kind, count))
    figures = {
        kind: {"count": len(times), "median": round(statistics.median(times), 5), "max": round(max(times), 5)}
        for kind, times in took.items()
    }
    left = {"descriptors": len(os.listdir("/proc/self/fd")) - (before or 0), "threads": threading.active_count() - 1}
    print(json.dumps({**figures, "left open": left}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
