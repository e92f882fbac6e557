"""What is measured. Contestants take turns inside one run, so that what else the machine does hits all alike."""

from __future__ import annotations

import gc
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from openagent import Client, Tool

from . import bodies, contestants
from .contestants import QUESTION, YARDSTICKS, Contestant, client, ours

EVENTS = 10_000
DELTAS = 100
MIB = 1 << 20


@dataclass(frozen=True)
class Row:
    """One line of the table: ``ratio`` is to be at most ``goal``; without a goal it is there to be looked at."""

    title: str
    ours: str
    other: str
    ratio: float
    goal: float | None = None


def cpu() -> float:
    """Seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cost(work: Callable[[], object]) -> float:
    """Seconds of CPU that a piece of work takes."""
    started = cpu()
    work()
    return cpu() - started


def paired(works: dict[str, Callable[[], object]], *, rounds: int, collect: bool = True) -> dict[str, list[float]]:
    """The costs of some pieces of work, which take turns; a first round of each is not counted."""
    costs: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            if collect:  # of a piece that lasts; after it the caches are cold, as they are not between two turns
                gc.collect()
            seconds = cost(work)
            if number:
                costs[name].append(seconds)
    return costs


def ratio(ours: Iterable[float], theirs: Iterable[float]) -> float:
    """The median of the ratios of each round."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def heard(contestant: Contestant, port: int, plan: str, *, size: int) -> None:
    """Runs a contestant and checks that all the text arrived."""
    pieces: list[str] = []
    contestant(port, plan, pieces.append)
    arrived = len("".join(pieces))
    assert arrived == size, f"{plan}: {arrived} characters arrived, not {size}"


def work(contestant: Contestant, port: int, plan: str, *, size: int) -> Callable[[], None]:
    return lambda: heard(contestant, port, plan, size=size)


def bursts(port: int, rounds: int = 5) -> Iterator[Row]:
    """CPU for each event of a burst, against each yardstick."""
    for protocol in bodies.PROTOCOLS:
        for framing in bodies.FRAMINGS:
            plan = f"burst.{protocol}.{framing}.{EVENTS}"
            size = EVENTS * len(bodies.WORD)
            everyone = {"ours": ours} | YARDSTICKS
            costs = paired(
                {name: work(contestant, port, plan, size=size) for name, contestant in everyone.items()}, rounds=rounds
            )
            how = {"one": "an event per HTTP chunk", "eight": "eight per HTTP chunk", "close": "up to the close"}
            for name in YARDSTICKS:
                yield Row(
                    f"burst, {protocol}, {how[framing]}: ÷ {name}",
                    _each(costs["ours"], EVENTS),
                    _each(costs[name], EVENTS),
                    ratio(costs["ours"], costs[name]),
                    0.6 if name == "requests" else None,
                )


def delays(port: int, rounds: int = 9) -> Iterator[Row]:
    """How late a delta that comes alone is heard, against the hand-written socket, in short rounds that take turns.

    It depends on the core that a process happens to be on, by a factor of two for as long as it stays there.
    """
    for protocol in bodies.PROTOCOLS:
        for framing in ("one", "close"):
            plan = f"trickle.{protocol}.{framing}.{DELTAS}"
            medians: dict[str, list[float]] = {"ours": [], "socket": []}
            lates: dict[str, list[float]] = {"ours": [], "socket": []}
            for _ in range(rounds):
                for name, contestant in (("ours", ours), ("socket", contestants.with_socket)):
                    waits: list[float] = []

                    def note(text: str, waits: list[float] = waits) -> None:
                        waits.append(time.perf_counter() - float(text))

                    gc.collect()
                    contestant(port, plan, note)
                    assert len(waits) == DELTAS
                    medians[name].append(statistics.median(waits))
                    lates[name].append(statistics.quantiles(waits, n=20)[-1])
            where = f"{protocol}, {'up to the close' if framing == 'close' else 'chunked'}"
            for title, values, goal in (("median", medians, 1.3), ("p95", lates, 2.0)):
                mine, other = (statistics.median(values[name]) for name in ("ours", "socket"))
                row = f"delay of a lone delta, {where}: {title}"
                yield Row(row, _us(mine), _us(other), ratio(values["ours"], values["socket"]), goal)


def growth(port: int) -> Iterator[Row]:
    """Large arguments, one large event, many data lines."""
    sizes = {"large": 5_000_000, "small": 500_000}
    text = {name: len("lorem ipsum ") * (size // 12) for name, size in sizes.items()}
    plans = {name: f"arguments.chat.one.{size}" for name, size in sizes.items()}
    works = {name: work(ours, port, plans[name], size=text[name]) for name in sizes}
    works["requests"] = work(contestants.with_requests, port, plans["large"], size=text["large"])
    costs = paired(works, rounds=3)
    title = "5 MB of arguments in fragments of 4 to 40 bytes"
    yield Row(f"{title}: ÷ 0.5 MB", *_both(costs, "large", "small"), 10.5)
    yield Row(f"{title}: ÷ requests", *_both(costs, "large", "requests"), 0.7)
    for framing, how in (("one", "one HTTP chunk"), ("large", "HTTP chunks of 16 kB"), ("close", "up to the close")):
        plan = f"large.chat.{framing}.5000000"
        everyone = {"ours": ours, "socket": contestants.with_socket}
        costs = paired({name: work(each, port, plan, size=5_000_000) for name, each in everyone.items()}, rounds=5)
        yield Row(f"an event of 5 MB, {how}: ÷ socket", *_both(costs, "ours", "socket"), 1.5)
    works = {str(count): work(ours, port, f"lines.chat.close.{count}", size=6) for count in (40_000, 80_000)}
    costs = paired(works, rounds=5)
    yield Row("80,000 data lines in one event: ÷ 40,000", *_both(costs, "80000", "40000"), 2.2)


def conversation(port: int) -> Iterator[Row]:
    """What a turn costs as the conversation grows, on each wire."""
    for protocol in bodies.PROTOCOLS:
        yield from _conversation(port, protocol)


def _conversation(port: int, protocol: str, rounds: int = 24) -> Iterator[Row]:
    plan = f"burst.{protocol}.one.40"
    with client(port, plan) as late, client(port, plan) as early:
        works = {
            "ours": _turn(_asking(late), 200 - rounds // 2),
            "requests": _turn(contestants.requests_conversation(port, plan), 200 - rounds // 2),
            "turn 15": _turn(_asking(early), 15 - rounds // 2),
        }
        costs = paired(works, rounds=rounds, collect=False)
    title = f"turn 200 of a conversation, {protocol}"
    yield Row(f"{title}: ÷ requests", *_both(costs, "ours", "requests"), 0.9)
    yield Row(f"{title}: ÷ turn 15", *_both(costs, "ours", "turn 15"), 1.3)


def _asking(asked: Client) -> Callable[[], str]:
    def turn() -> str:
        asked.send(QUESTION)
        return "".join(block.text for block in asked.receive())  # type: ignore[union-attr]

    return turn


def _turn(turn: Callable[[], str], said: int) -> Callable[[], None]:
    """A turn of a conversation in which some have been said."""

    def checked() -> None:
        assert turn() == bodies.WORD * 40

    for _ in range(said):
        checked()
    return checked


def tool_loop(port: int) -> Iterator[Row]:
    """Twenty rounds with a call each."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    add = Tool("add", "Add.", schema, lambda given: given["a"] + given["b"])
    settings = {"tools": [add], "auto_execute_tools": True, "max_tool_iterations": 30, "max_tool_calls": 30}

    def ask() -> None:
        with client(port, "tools", **settings) as asked:
            assert asked.ask("add") == bodies.WORD * 5
            assert len(asked.history) == 2 + 2 * bodies.ROUNDS

    def by_hand() -> None:
        assert contestants.requests_tool_loop(port) == bodies.WORD * 5

    costs = paired({"ours": ask, "requests": by_hand}, rounds=7)
    yield Row("a tool loop of 20 rounds: ÷ requests", *_both(costs, "ours", "requests"), 1.0)


def connections(port: int) -> Iterator[Row]:
    """How many connections a conversation opens."""

    def opened() -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/connections/") as response:
            return int(response.read())

    for protocol in bodies.PROTOCOLS:
        with client(port, f"burst.{protocol}.one.5") as asked:
            before = opened()
            for _ in range(50):
                asked.ask("Say something.")
            count = opened() - before - 1  # the one that asks
        yield Row(f"connections for 50 turns, {protocol}", str(count), "1", count, 1)


def threads(port: int, count: int = 64, events: int = 2_000) -> Iterator[Row]:
    """CPU for each event with so many threads, a client each, against one."""
    size = events * len(bodies.WORD)
    run = work(ours, port, f"burst.chat.eight.{events}", size=size)

    def alone() -> None:
        for _ in range(count // 4):
            run()

    def together() -> None:
        crew = [threading.Thread(target=run) for _ in range(count)]
        for one in crew:
            one.start()
        for one in crew:
            one.join()

    costs = paired({"ours": together, "alone": alone}, rounds=5)
    each = {"ours": count * events, "alone": count // 4 * events}
    costs = {name: [seconds / each[name] for seconds in values] for name, values in costs.items()}
    yield Row(
        f"{count} threads: ÷ one thread",
        _each(costs["ours"], 1),
        _each(costs["alone"], 1),
        ratio(costs["ours"], costs["alone"]),
        1.3,
    )


MEMORY = """
import pathlib, sys
from tests.benchmarks.contestants import ours

def peak():  # not ru_maxrss, which a child begins with that of its parent
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

def hear(text):
    global heard
    heard += len(text)

for count in (2_000, 200_000):
    before, heard = peak(), 0
    ours(int(sys.argv[1]), f"burst.{sys.argv[2]}.eight.{count}", hear)
print(heard, peak() - before)
"""


def memory(port: int) -> Iterator[Row]:
    """By how much the process grows over 200,000 deltas, the text itself not counted."""
    for protocol in bodies.PROTOCOLS:
        size, grown = map(int, _printed(MEMORY, str(port), protocol).split())
        assert size == 200_000 * len(bodies.WORD)
        over = max(0, grown - size) / MIB
        yield Row(f"growth over 200,000 deltas, {protocol}: MB over the text", f"{over:.1f} MB", "4.0 MB", over, 4.0)


FIRST_TOKEN = {
    "ours": """
import sys
from openagent import Client
client = Client(model="bench", base_url=f"http://127.0.0.1:{sys.argv[1]}/burst.chat.one.5/v1", api_key="k")
for text in client.stream("Say something."):
    print(text, end="", flush=True)
    break
""",
    "requests": """
import json, sys, requests
asked = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": "Say something."}]}
url = f"http://127.0.0.1:{sys.argv[1]}/burst.chat.one.5/v1/chat/completions"
with requests.post(url, json=asked, stream=True) as response:
    for line in response.iter_lines():
        if line.startswith(b"data: {") and (text := json.loads(line[6:])["choices"][0]["delta"].get("content")):
            print(text, end="", flush=True)
            break
""",
}


def cold(port: int, rounds: int = 15) -> Iterator[Row]:
    """Time from the interpreter's start: of the imports (CPU), and to the first token."""
    programs = {"bare": "pass", "ours": "import openagent", "requests": "import requests"}
    costs: dict[str, list[float]] = {name: [] for name in programs}
    spans: dict[str, list[float]] = {name: [] for name in FIRST_TOKEN}
    for number in range(rounds + 1):
        for name, program in programs.items():
            seconds = _child_cpu(program)
            if number:
                costs[name].append(seconds)
        for name, program in FIRST_TOKEN.items():
            started = time.perf_counter()
            assert _printed(program, str(port)) == bodies.WORD
            if number:
                spans[name].append(time.perf_counter() - started)
    middle = {name: statistics.median(values) for name, values in costs.items()}
    mine, other = middle["ours"] - middle["bare"], middle["requests"] - middle["bare"]
    yield Row("import, over bare Python: ÷ import requests", _ms(mine), _ms(other), mine / other, 0.5)
    first = {name: statistics.median(values) for name, values in spans.items()}
    yield Row(
        "interpreter to first token: ÷ requests",
        _ms(first["ours"]),
        _ms(first["requests"]),
        ratio(spans["ours"], spans["requests"]),
        1.15,
    )


def _child_cpu(program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, env=_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _printed(program: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(),
    ).stdout


def _environment() -> dict[str, str]:
    """The environment, in which compiled files are kept, as they usually are."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _each(costs: list[float], count: int) -> str:
    return f"{statistics.median(costs) / count * 1e6:.2f} µs"


def _both(costs: dict[str, list[float]], mine: str, other: str) -> tuple[str, str, float]:
    return (
        _ms(statistics.median(costs[mine])),
        _ms(statistics.median(costs[other])),
        ratio(costs[mine], costs[other]),
    )


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


ALL: dict[str, Callable[[int], Iterator[Row]]] = {
    measure.__name__: measure
    for measure in (bursts, delays, growth, conversation, tool_loop, connections, memory, cold, threads)
}
