"""How long 10^6 and 10^9 prompts would take, and what is short first: ``python -m tests.benchmarks.scale``.

A discrete-event model: prompts go round between a driver (who hands out and writes results), client processes (CPU),
a rate limit and model servers (slots). Each station is a queue; 20,000 prompts are played, and their steady rate is
reckoned up. What our side costs is measured (``Costs``; ``measure`` does it again on this machine); what servers do and
what things cost in money is assumed and stands in ``FLEETS``.

``... scale measure`` measures the costs, ``... scale run [PROMPTS]`` really asks so many (100,000) prompts of a fast
server through threads and says what the model says of that.
"""

from __future__ import annotations

import heapq
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

PLAYED = 20_000
TOKENS = (500, 100)  # read and written for a prompt


@dataclass(frozen=True)
class Costs:
    """Measured, on 2 shared cores of a cloud machine: seconds and bytes per prompt."""

    client: float = 0.0014  # CPU of the process that asks: eight threads, short answers, with faults
    ledger: float = 0.0002  # a line, synced to the disk
    task: float = 0.0026  # what dask needs for a task that does nothing
    start: float = 5.6e-6  # reading a key of an output that is gone on with, and checking its row
    key: float = 380.0  # bytes of memory for a key then
    line: float = 244.0  # bytes of an output line with an answer of 100 characters


@dataclass(frozen=True)
class Fleet:
    """Who asks whom. ``rate`` is a limit in requests a second; a server writes ``speed`` tokens a second, all slots
    together; ``price`` is in dollars, for an hour of one server or for 10^6 tokens read and written.
    """

    name: str
    shards: int = 1  # runs side by side, each with a driver and an output of its own
    processes: int = 1  # clients in each shard
    threads: int = 8  # in each process
    servers: int = 1
    slots: int = 32
    speed: float = 1000.0
    rate: float | None = None
    uses_dask: bool = False
    server_hour: float = 0.0
    mega_tokens: tuple[float, float] = (0.0, 0.0)


API = Fleet("rented API, 10,000 requests/min", threads=256, slots=10**6, speed=5e7, rate=10_000 / 60)
GPU = Fleet("one GPU", threads=64, slots=64, speed=2500, server_hour=2)
FLEETS = (
    Fleet("laptop, llama.cpp", threads=4, slots=4, speed=60),
    replace(GPU, name="one GPU, 64 threads"),
    replace(API, mega_tokens=(0.15, 0.6)),
    replace(GPU, name="16 GPUs, one process", threads=1024, servers=16),
    replace(GPU, name="16 GPUs, dask, 8 processes", servers=16, processes=8, threads=128, uses_dask=True),
    replace(GPU, name="64 GPUs, dask, 32 processes", servers=64, processes=32, threads=128, uses_dask=True),
    replace(GPU, name="64 GPUs, 16 shards", servers=64, shards=16, threads=256),
    replace(GPU, name="1000 GPUs, 250 shards", servers=1000, shards=250, threads=256),
    replace(API, name="API, 250 shards, limit x 100", shards=250, rate=1_000_000 / 60, mega_tokens=(0.15, 0.6)),
)


class Station:
    """A queue before so many places; counts how long they are taken."""

    def __init__(self, places: int) -> None:
        self.free, self.places, self.busy = places, places, 0.0
        self.line: deque[tuple[float, Callable[[], None]]] = deque()

    def load(self, seconds: float) -> float:
        return min(1.0, self.busy / (self.places * seconds))  # counted when taken, so a little early


class Shard:
    """One run of the fleet, played; the servers and the limit are its share."""

    def __init__(self, fleet: Fleet, costs: Costs) -> None:
        self.fleet, self.costs = fleet, costs
        self.now, self.order, self.done = 0.0, count(), 0
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []
        servers = fleet.servers / fleet.shards
        slots = max(1, round(servers * fleet.slots))
        self.latency = TOKENS[1] / (fleet.speed * servers / min(slots, fleet.processes * fleet.threads))
        self.driver, self.slots = Station(1), Station(slots)
        self.clients = [Station(1) for _ in range(fleet.processes)]
        self.limit = Station(1)
        self.gap = fleet.shards / fleet.rate if fleet.rate else 0.0

    def play(self) -> tuple[float, dict[str, float]]:
        """Prompts per second, and how busy each station was."""
        askers = min(PLAYED, self.fleet.processes * self.fleet.threads)
        for number in range(askers):
            self._hand_out(number % self.fleet.processes)
        while self.done < PLAYED:
            self.now, _, step = heapq.heappop(self.agenda)
            step()
        loads = {"driver": self.driver, "rate limit": self.limit, "servers": self.slots}
        busy = {name: station.load(self.now) for name, station in loads.items()}
        busy["client CPU"] = sum(station.load(self.now) for station in self.clients) / len(self.clients)
        return PLAYED / self.now, busy

    def _hand_out(self, process: int) -> None:
        dispatch = self.costs.task if self.fleet.uses_dask else 0.0
        client, half = self.clients[process], self.costs.client / 2

        def ended() -> None:
            self.done += 1
            self._hand_out(process)

        steps = [
            (self.driver, dispatch + self.costs.ledger),
            (self.limit, self.gap),
            (client, half),
            (self.slots, self.latency),
            (client, half),
        ]
        self._through(iter(steps), ended)

    def _through(self, steps: Iterator[tuple[Station, float]], ended: Callable[[], None]) -> None:
        step = next(steps, None)
        if step is None:
            ended()
        else:
            self._enter(*step, lambda: self._through(steps, ended))

    def _enter(self, station: Station, seconds: float, then: Callable[[], None]) -> None:
        if station.free == 0:
            station.line.append((seconds, then))
            return
        station.free -= 1
        station.busy += seconds

        def leave() -> None:
            station.free += 1
            if station.line:
                self._enter(station, *station.line.popleft())
            then()

        heapq.heappush(self.agenda, (self.now + seconds, next(self.order), leave))


def span(seconds: float) -> str:
    """Seconds in the unit that fits."""
    for unit, size in (("years", 31_557_600), ("days", 86_400), ("hours", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} s"


def dollars(fleet: Fleet, prompts: int, seconds: float) -> float:
    tokens = sum(price * amount for price, amount in zip(fleet.mega_tokens, TOKENS, strict=True)) / 1e6
    return prompts * tokens + fleet.server_hour * fleet.servers * seconds / 3600


def table(costs: Costs) -> None:
    print("| who asks whom | prompts/s | what is short | 10^6 | | 10^9 | |\n|---|---|---|---|---|---|---|")
    for fleet in FLEETS:
        rate, busy = Shard(fleet, costs).play()
        rate *= fleet.shards
        short = max(busy, key=lambda name: busy[name])
        cells = [fleet.name, f"{rate:,.0f}" if rate > 10 else f"{rate:.1f}", f"{short} ({busy[short]:.0%})"]
        for prompts in (10**6, 10**9):
            cost = dollars(fleet, prompts, prompts / rate)
            cells += [span(prompts / rate), f"${cost:,.0f}" if cost else ""]
        print(f"| {' | '.join(cells)} |")
    print("\n| an output of | lines | memory to go on | time until it goes on |\n|---|---|---|---|")
    for prompts in (10**5, 10**6, 10**7, 10**9):
        size, memory = prompts * costs.line / 1e9, prompts * costs.key / 1e9
        print(f"| {prompts:,} prompts | {size:.3g} GB | {memory:.3g} GB | {span(prompts * costs.start)} |")


def measure() -> None:
    """What a prompt costs our side, here and now."""
    from openagent import AgentOptions, FinishReason, Usage
    from openagent.batch import Ledger, Result
    from openagent.batch.filling import fingerprint, record

    rate, cpu = run(20_000)
    print(f"client: {cpu * 1000:.2f} ms of CPU, {rate:.0f} prompts/s")
    result = Result(0, "p", "x" * 100, Usage(500, 100), FinishReason("stop"), 0.2, 1)
    mark = fingerprint(AgentOptions(model="m", base_url="http://127.0.0.1:1/v1"), "p")
    with tempfile.TemporaryDirectory(dir=".") as folder, Ledger(f"{folder}/out.jsonl") as ledger:
        started = time.perf_counter()
        for number in range(1000):
            ledger.append(record(str(number), mark, result))
        print(f"ledger: {time.perf_counter() - started:.3f} ms a line, synced to the disk of this folder")


def run(prompts: int, workers: int = 8) -> tuple[float, float]:
    """Really asks: prompts per second and CPU seconds per prompt of this process."""
    from openagent import AgentOptions, map_prompts

    from . import server

    memory = []
    with server.running() as port:
        url = f"http://127.0.0.1:{port}/burst.chat.eight.{TOKENS[1]}/v1"
        started, cpu, place = time.perf_counter(), time.process_time(), 0
        asked = (f"p{number}" for number in range(prompts))
        for result in map_prompts(AgentOptions(model="m", base_url=url), asked, workers=workers, progress=False):
            assert (result.index, result.error) == (place, None)
            place += 1
            if place % (prompts // 10) == 0:
                with open("/proc/self/statm", encoding="ascii") as file:
                    memory.append(int(file.read().split()[1]) * 4096 / 1e6)
        assert place == prompts
        seconds = time.perf_counter() - started
        print(f"{prompts} asked in {seconds:.0f} s, each once and in order; MB after each tenth:", end=" ")
        print(*(f"{size:.1f}" for size in memory), flush=True)
        return prompts / seconds, (time.process_time() - cpu) / prompts


def really(prompts: int) -> None:
    rate, cpu = run(prompts)
    fleet = Fleet("this run", slots=8, speed=8 * TOKENS[1] / 0.0005)
    told, busy = Shard(fleet, replace(Costs(), client=cpu, ledger=0.0)).play()
    print(f"{rate:.0f} prompts/s, {cpu * 1000:.2f} ms of CPU each; the model says {told:.0f}/s, busy: {busy}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure"]:
            measure()
        case ["run", *number]:
            really(int(number[0]) if number else 100_000)
        case _:
            table(Costs())
