"""The fault matrix: a conversation of three tool rounds, broken in every way at every place, over loopback.

The full product takes some minutes and prints its figures; ``tests/test_fault_matrix.py`` plays a sample of it::

    python tests/soak/fault_matrix.py            # all protocols, modes, rounds, faults and places
    python tests/soak/fault_matrix.py --bytes    # and the stream of every round cut at every byte
    python tests/soak/fault_matrix.py --bytes --part 1/2    # every second case; 2/2 are the others

The cases, and what is expected of each, are in ``fault_cases.py``.
"""

from __future__ import annotations

import gc
import itertools
import os
import random
import socket
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from soak.fault_cases import STEP, Case, byte_cases, cases, expected
from soak.fault_server import NAME, Script, authority, context, names, untrusted

from openagent import AgentError, Client, RetryConfig, ToolUseBlock
from openagent.client import ADAPTERS
from openagent.testing import ScriptedServer

MANY = RetryConfig(max_attempts=3, initial_delay=0.001, max_delay=0.001)


class Broken(AssertionError):
    """A case did not come out as it must."""


def play(case: Case) -> str:
    """How a case came out, in a word; ``Broken`` if that is not as it must be."""
    untrusted(), authority()
    before = resources()
    script, ran = Script(case), []
    client = None
    secure = context(authority()[0]) if case.then == "TLS" else None
    try:
        with ScriptedServer(script, repeat=True, ssl_context=secure) as server, ScriptedServer("fine") as other:
            script.server = server
            client = client_of(case, server, ran)
            with names.known():
                error = None
                try:
                    converse(client, case)
                except AgentError as exc:
                    error = exc
                check(case, client, ran, error)
                check_next(case, client, script, other)
            if server.complaints or other.complaints:
                raise Broken(f"{case}: {server.complaints + other.complaints}")
            client.close()
    finally:
        if client is not None:
            client.close()
    left = leftover(before)
    if left:
        raise Broken(f"{case}: left open: {left}")
    return "recovered" if error is None else type(error).__name__


def client_of(case: Case, server: ScriptedServer, ran: list[int]) -> Client:
    """A client whose way to the server is the one that the case needs."""
    way = {
        "TLS": {"verify": authority()[1]},
        "DNS": {"base_url": f"http://{NAME}:{server.port}/v1", "proxies": {}},
        "proxy refuses": {"base_url": f"http://{NAME}/v1", "proxies": f"http://127.0.0.1:{server.port}"},
    }.get(case.then, {})
    settings = {"base_url": server.url, "timeout": (5, 0.15 if case.fault == "stall" else 5)} | way
    return Client(
        model="m",
        protocol=case.protocol,
        tools=[replace(STEP, handler=lambda given: run(given, ran))],
        auto_execute_tools=case.mode != "manual",
        retry=MANY,
        **settings,
    )


def check_next(case: Case, client: Client, script: Script, other: ScriptedServer) -> None:
    """The next prompt gets its answer, once nothing is in its way."""
    if error := expected(case).error_of_next:
        try:
            client.ask("and now?")
        except error as exc:
            if type(exc) is not error:
                raise Broken(f"{case}: the next prompt got {exc!r}") from exc
        else:
            raise Broken(f"{case}: the next prompt did not get its {error.__name__}")
    script.repair()
    changes = {"timeout": 5}
    if case.then in ("refused", "TLS", "DNS", "proxy refuses") or "refused" in case.fault:
        changes |= {"base_url": other.url, "proxies": None, "verify": None}
    client.options = client.options.replace(**changes)
    if client.ask("and now?") != "fine":
        raise Broken(f"{case}: the next prompt got no answer")


def run(given, ran):
    ran.append(given["n"])
    return f"done {given['n']}"


def converse(client: Client, case: Case) -> None:
    """The conversation, in the mode of the case."""
    wrong = {
        "TLS": {"base_url": untrusted().url} if case.fault == "TLS" else {},
        "DNS": {"base_url": "http://no-such-host.invalid/v1"},
        "proxy refuses": {"proxies": f"http://127.0.0.1:{closed_port()}"},
        "refused": {"base_url": f"http://127.0.0.1:{closed_port()}/v1"},
    }.get(case.fault, {})
    if case.mode == "manual":
        client.send("q", **(wrong if case.round == 0 else {}))
        for number in itertools.count(1):
            calls = [block for block in client.receive() if isinstance(block, ToolUseBlock)]
            if not calls:
                return
            for made in calls:
                client.add_tool_result(made.id, client.tools["step"].execute(made.input))
            client.send("", **(wrong if case.round == number else {}))
    elif case.mode == "ask":
        client.ask("q", **wrong)
    elif case.mode == "stream":
        list(client.stream("q", **wrong))
    else:
        client.send("q", **wrong)
        list(client.events())


def check(case: Case, client: Client, ran: list[int], error: AgentError | None) -> None:
    """The outcome is the one expected, the history is whole up to there, and nothing was run twice."""
    want = expected(case)
    if type(error) is not (want.error or type(None)):
        raise Broken(f"{case}: expected {want.error and want.error.__name__}, got {error!r}")
    rounds = want.rounds
    told = [(message.role, message.text.strip(), [made.id for made in message.calls]) for message in client.history]
    told = [entry for entry in told if entry != ("user", "", [])]  # how manual mode went on
    whole = [("user", "q", [])]
    for n in range(1, rounds + 1):
        whole += [("assistant", f"step {n}", [f"c{n}"]), ("tool", "", [])]
    if error is None:
        whole.append(("assistant", "All done.", []))
    if told != whole:
        raise Broken(f"{case}: the history is {told}")
    if ran != list(range(1, rounds + 1)):
        raise Broken(f"{case}: the calls that were run are {ran}")


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
    return port


def resources() -> tuple[set[str], set[threading.Thread]]:
    """What is open: descriptors with what they are, and threads."""
    return set(descriptors()), set(threading.enumerate())


def descriptors() -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        try:
            found.append(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except OSError:  # the descriptor of the listing itself
            pass
    return found


def leftover(before) -> list[str]:
    """What is open that was not before. A thread that ends just now, and its socket, get a second."""
    until = time.monotonic() + 1
    while True:
        names, threads = resources()
        left = sorted(names - before[0]) + [thread.name for thread in threads - before[1]]
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.002)


def part_of(arguments: list[str]) -> tuple[int, int]:
    """``--part 1/2`` is every second case, from the first one on."""
    if "--part" not in arguments:
        return 1, 1
    first, _, parts = arguments[arguments.index("--part") + 1].partition("/")
    return int(first), int(parts)


def main(arguments: list[str]) -> int:
    chosen = cases()
    if "--bytes" in arguments:
        for protocol in ADAPTERS:
            chosen += byte_cases(protocol)
    random.Random(0).shuffle(chosen)  # so that a figure shown in the midst is one of all kinds
    first, parts = part_of(arguments)
    whole, chosen = len(chosen), chosen[first - 1 :: parts]
    print(f"{len(chosen)} cases of {whole}", flush=True)
    untrusted(), authority()  # which stay, and are none of what a case leaves open
    gc.collect()
    before, started = resources(), time.monotonic()
    outcomes: Counter[str] = Counter()
    broken = []
    for number, case in enumerate(chosen, 1):
        try:
            outcomes[play(case)] += 1
        except Broken as exc:
            broken.append(str(exc))
            print("BROKEN", exc, flush=True)
        if number % 1000 == 0:
            print(f"{number} cases, {time.monotonic() - started:.0f} s, {dict(outcomes)}", flush=True)
    print(f"{len(chosen) - len(broken)} of {len(chosen)} cases passed in {time.monotonic() - started:.0f} s")
    for outcome, count in outcomes.most_common():
        print(f"  {outcome}: {count}")
    print(f"left open: {leftover(before) or 'nothing'}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
