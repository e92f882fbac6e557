"""Ctrl-C after each call of a conversation with tools, in our code and in the libraries'.

A signal at a random moment seldom comes in the few microseconds that matter: between a lock being taken and the
``with`` that gives it back. Here the profiler raises ``KeyboardInterrupt`` at each place in turn. After each the
history must be whole and the next prompt answered::

    python tests/soak/everywhere.py            # each place on each wire, 20 minutes
    python tests/soak/everywhere.py 7          # each seventh, 3 minutes
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import threading

from interrupts import check, scripted

from openagent import Client, Tool
from openagent.client import ADAPTERS
from openagent.testing import ScriptedServer

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Tripwire:
    """Raises ``KeyboardInterrupt`` where the n-th call of this thread comes back."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.place: str | None = None

    def __call__(self, frame, event, _) -> None:
        # A signal is heard after a call. At a yield, which counts as a return, a generator would lose its ``finally``.
        is_after = event == "c_return" or (event == "return" and not frame.f_code.co_flags & inspect.CO_GENERATOR)
        if not is_after or self.place is not None:
            return
        self._left -= 1
        if self._left < 0:
            self.place = f"{event} in {frame.f_code.co_filename}, line {frame.f_lineno}"
            raise KeyboardInterrupt


def interrupted(client: Client, number: int) -> str | None:
    """Where a prompt was interrupted; None if it has fewer places than ``number``."""
    wire = Tripwire(number)
    sys.setprofile(wire)
    try:
        client.ask("prompt")
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return wire.place


def tries(protocol: str, every: int) -> int:
    """How many places were tried; an ``AssertionError`` that names the place if anything was not whole after one."""
    ran: list[int] = []

    def step(given):
        ran.append(given["n"])
        return f"done {given['n']}"

    count = 0
    with ScriptedServer(scripted, repeat=True) as server:
        tools = [Tool("step", "", SCHEMA, step)]
        client = Client(
            model="m", base_url=server.url, protocol=protocol, tools=tools, auto_execute_tools=True, retry=None
        )
        client.ask("prompt")  # imports
        place: str | None = ""
        while place is not None:
            if count % 10 == 0:
                client.close()  # so that connects are hit, too
            client.clear_history()
            ran.clear()
            place = interrupted(client, count * every)
            try:
                check(client, ran)
                assert client.ask("and now?") == "fine", "the next prompt got no answer"
                assert not server.complaints, server.complaints
            except Exception as error:
                raise AssertionError(f"{protocol}, place {count * every}, {place}: {error}") from error
            count += 1
        client.close()
    return count


def main(every: int) -> None:
    tries("openai-chat", 100_000)
    before = len(os.listdir("/proc/self/fd"))
    counts = {protocol: tries(protocol, every) for protocol in ADAPTERS}
    left = {"descriptors": len(os.listdir("/proc/self/fd")) - before, "threads": threading.active_count() - 1}
    print(json.dumps({"places": counts, "left open": left}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
