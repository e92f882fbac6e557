"""The peers beside us: CPU for each event of a burst, each peer in a process and an environment of its own.

They take turns with us and with the yardstick in one run; the first round of each, which imports, is not counted.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from . import bodies, environments
from .contestants import ours, with_requests
from .measures import Row, cost, ratio, work

EVENTS = 2_000
DRIVER = Path(__file__).with_name("peer_driver.py")


def peers(port: int, rounds: int = 5) -> Iterator[Row]:
    """CPU of the peers for each event, ours against theirs."""
    started = {name: _started(name) for name in environments.PEERS if (environments.folder() / name / "made").exists()}
    try:
        for protocol in ("chat", "anthropic"):
            crew = {name: it for name, it in started.items() if (name == "anthropic") == (protocol == "anthropic")}
            yield from _burst(port, protocol, crew, rounds)
    finally:
        for process in started.values():
            process.kill()
            process.wait()


def _burst(port: int, protocol: str, crew: dict[str, subprocess.Popen[str]], rounds: int) -> Iterator[Row]:
    plan, size = f"burst.{protocol}.eight.{EVENTS}", EVENTS * len(bodies.WORD)
    runs: dict[str, Callable[[], float]] = {
        "ours": partial(cost, work(ours, port, plan, size=size)),
        "requests": partial(cost, work(with_requests, port, plan, size=size)),
    }
    for name, process in crew.items():
        runs[name] = partial(_of_peer, process, f"http://127.0.0.1:{port}/{plan}", size)
    costs: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in list(runs.items()):
            try:
                seconds = run()
            except (AssertionError, ValueError, OSError) as exc:
                print(f"{name} is left out: {exc}", file=sys.stderr)
                del runs[name], costs[name]
                continue
            if number:
                costs[name].append(seconds)
    each = {name: f"{statistics.median(values) / EVENTS * 1e6:.1f} µs" for name, values in costs.items()}
    for name in costs:
        if name != "ours":
            title = f"a burst of {EVENTS} on {protocol}, eight per HTTP chunk: ÷ {name}"
            yield Row(title, each["ours"], each[name], ratio(costs["ours"], costs[name]))


def _started(name: str) -> subprocess.Popen[str]:
    command = [str(environments.python(name)), str(DRIVER), name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _of_peer(process: subprocess.Popen[str], url: str, size: int) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{url}\n")
    process.stdin.flush()
    answer = process.stdout.readline().split()
    if len(answer) != 2:
        raise ValueError("it ended")
    assert int(answer[1]) == size, f"{answer[1]} characters arrived, not {size}"
    return float(answer[0])
