"""The fault matrix: a conversation of three tool rounds, broken in every way at every place, over loopback.

The full product takes some minutes and prints its figures; ``tests/test_fault_matrix.py`` plays a sample of it::

    python tests/soak/fault_matrix.py            # all protocols, modes, rounds, faults and places
    python tests/soak/fault_matrix.py --bytes    # and the stream of every round cut at every byte
    python tests/soak/fault_matrix.py --bytes --part 1/2    # every second case; 2/2 are the others

What is expected of a case is not written down place by place: what a decoder makes of the frames before the place,
without a network, says whether the turn had ended by then and whether anything of it had been told.
"""

from __future__ import annotations

import gc
import gzip
import itertools
import json
import os
import random
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import trustme
from requests.structures import CaseInsensitiveDict

from openagent import (
    AgentError,
    AgentOptions,
    APIError,
    Client,
    InvalidResponseError,
    Message,
    RetryConfig,
    StreamInterruptedError,
    Timeout,
    Tool,
    ToolUseBlock,
    TransportError,
)
from openagent.client import ADAPTERS
from openagent.decoding import BodyDecoder
from openagent.testing import ScriptedServer, answer, call, failure, raw
from openagent.testing.reply import reply, wire_of
from openagent.testing.script import Headers, Request
from openagent.testing.wire import Memory

MODES = ("manual", "ask", "stream", "events")
ROUNDS = 3
TURNS = [answer(f"step {n} ", calls=[call("step", {"n": n}, id=f"c{n}")]) for n in range(1, ROUNDS + 1)]
TURNS.append(answer("All done."))
STEP = Tool("step", "", {"type": "object", "properties": {"n": {"type": "integer"}}}, len)
HTML = {"Content-Type": "text/html"}
NO_RETRY_AFTER, RETRY_AFTER = {}, {"Retry-After": "0"}
MANY = RetryConfig(max_attempts=3, initial_delay=0.001, max_delay=0.001)

# At every frame boundary: how the body goes on there, and the error if something had been told by then.
IN_BODY = {
    "cut": StreamInterruptedError,  # closed without the last chunk
    "end": StreamInterruptedError,  # closed cleanly
    "reset": StreamInterruptedError,
    "stall": Timeout,
    "garbage": InvalidResponseError,
    "error event": APIError,
    "half frame": StreamInterruptedError,
    "gzip cut": StreamInterruptedError,
    "no chunks": StreamInterruptedError,  # what follows is not chunked as announced
}
# Instead of an answer: what comes, and the error when it comes again and again (None: it is recovered from).
INSTEAD = {
    **{f"{status}": failure(status) for status in (408, 409, 429, 500, 502, 503, 504, 529)},
    **{f"{status}, Retry-After": failure(status, headers=RETRY_AFTER) for status in (429, 500, 503, 529)},
    "429, long Retry-After": failure(429, headers={"Retry-After": "900"}),
    "400": failure(400),
    "401": failure(401),
    "redirect": raw("moved", status=307, headers={"Location": "http://localhost:1/v1"}, framing="length"),
    "web page": raw("<html>hello</html>", headers=HTML, framing="length"),
    "empty": raw(b"", framing="length"),
    "cut error": raw('{"error": {"mess', status=500, headers={"Content-Length": "100"}, end="abrupt"),
}
RECOVERED = {name for name in INSTEAD if name[:3] in ("408", "409", "429", "500", "502", "503", "504", "529")}
RECOVERED = (RECOVERED | {"empty", "cut error"}) - {"429, long Retry-After"}
ERRORS = {"web page": InvalidResponseError}
# On the way there. In auto mode the way is the same for all rounds, so only the first can fail by it.
ON_THE_WAY = {
    "TLS": TransportError,
    "DNS": TransportError,
    "proxy refuses": TransportError,
    "refused": TransportError,
    "dropped": None,
    "dropped, then refused": TransportError,
}
FAULTS = [*IN_BODY, *INSTEAD, *ON_THE_WAY]


@dataclass(frozen=True)
class Case:
    """One way to break the conversation. ``place`` counts frames (or bytes), where the fault has places."""

    protocol: str
    mode: str
    fault: str
    round: int
    place: int = 0
    in_bytes: bool = False


def frames(protocol: str, number: int) -> list[bytes]:
    """The frames of a turn."""
    path = {"openai-chat": "chat/completions", "openai-responses": "responses", "anthropic": "messages"}[protocol]
    wire = wire_of(Request("POST", f"/v1/{path}", Headers(), None, b""))
    assert wire is not None
    return wire.frames(TURNS[number], asked(protocol), Memory())


@cache
def asked(protocol: str) -> dict[str, Any]:
    """The body of a request: some of it comes back in the answer."""
    adapter = ADAPTERS[protocol](AgentOptions(model="m", protocol=protocol), [Message.user("q")], [STEP], None)
    body: dict[str, Any] = json.loads(adapter.encode(None, include_tools=True).body)
    return body


def cases(protocols=tuple(ADAPTERS), modes=MODES, faults=FAULTS) -> list[Case]:
    """The full product."""
    made = []
    for protocol, mode, fault, number in itertools.product(protocols, modes, faults, range(ROUNDS + 1)):
        if fault in IN_BODY:
            made += [Case(protocol, mode, fault, number, place) for place in range(len(frames(protocol, number)) + 1)]
        elif fault not in ("TLS", "DNS", "proxy refuses", "refused") or mode == "manual" or number == 0:
            made.append(Case(protocol, mode, fault, number))
    return made


def byte_cases(protocol: str, mode: str = "ask") -> list[Case]:
    """The stream of every round, cut at every byte."""
    sizes = [len(b"".join(frames(protocol, number))) for number in range(ROUNDS + 1)]
    return [
        Case(protocol, mode, "cut", number, place, in_bytes=True)
        for number, size in enumerate(sizes)
        for place in range(size)
    ]


class Script:
    """What the server does: it plays the round that the request is about, and the fault once, in its round."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._has_failed = False
        self.server: ScriptedServer | None = None

    def __call__(self, request):
        case = self._case
        if b"and now?" in request.raw:
            return "fine"
        number = sum(f"done {n}".encode() in request.raw for n in range(1, ROUNDS + 1))
        if number != case.round or self._has_failed:
            return TURNS[number]
        self._has_failed = case.fault not in INSTEAD or case.fault in RECOVERED
        if case.fault in INSTEAD:
            return INSTEAD[case.fault]
        if case.fault.startswith("dropped"):
            self._drop()
        if case.fault in IN_BODY:
            return spoilt(case, reply(TURNS[number], request, wire_of(request), Memory()))
        return TURNS[number]

    def _drop(self) -> None:
        assert self.server is not None
        if "refused" in self._case.fault:
            self.server._listener.shutdown(socket.SHUT_RDWR)
        for sock in list(self.server._open):
            sock.shutdown(socket.SHUT_RDWR)


def spoilt(case: Case, whole):
    """The answer as it comes when it is spoilt."""
    if case.in_bytes:
        return replace(whole, chunks=(b"".join(whole.chunks)[: case.place],), end="abrupt")
    kept = replace(whole, chunks=whole.chunks[: case.place])
    if case.fault == "cut":
        return replace(kept, end="abrupt")
    if case.fault == "reset":
        return replace(kept, end="reset", hold=0.01)  # or what was sent is lost with it
    if case.fault == "stall":
        return replace(kept, hold=30.0)
    if case.fault == "half frame":
        half = b"".join(whole.chunks[case.place :])[:9]
        return replace(kept, chunks=(*kept.chunks, half), end="abrupt")
    if case.fault == "garbage":
        return replace(kept, chunks=(*kept.chunks, b"data: {garbage\n\n"))
    if case.fault == "error event":
        event = b'event: error\ndata: {"type": "error", "error": {"type": "server_error", "message": "broken"}}\n\n'
        return replace(kept, chunks=(*kept.chunks, event))
    if case.fault == "gzip cut":
        packer = gzip.compress(b"".join(kept.chunks) + os.urandom(64))
        headers = {**whole.headers, "Content-Encoding": "gzip"}
        return replace(kept, chunks=(packer[:-40],), headers=headers, end="abrupt")
    if case.fault == "no chunks":
        end = b"zz\r\nwhat is this\r\n"
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in kept.chunks)
        headers = {**whole.headers, "Transfer-Encoding": "chunked"}
        return replace(kept, chunks=(chunks + end,), framing="close", headers=headers)
    return kept


def expected(case: Case) -> type[AgentError] | None:
    """The error of a case; None if the conversation goes on to its end."""
    if case.fault in ON_THE_WAY:
        return ON_THE_WAY[case.fault]
    if case.fault in INSTEAD:
        return None if case.fault in RECOVERED else ERRORS.get(case.fault, APIError)
    options = AgentOptions(model="m", protocol=case.protocol)
    decoder = BodyDecoder(ADAPTERS[case.protocol](options, [], [], None).decoder(CaseInsensitiveDict()))
    kept = b"".join(frames(case.protocol, case.round))[: case.place] if case.in_bytes else b""
    pieces = [kept] if case.in_bytes else frames(case.protocol, case.round)[: case.place]
    for piece in pieces:
        decoder.feed(piece)
    if case.fault == "garbage":
        return None if decoder.done else InvalidResponseError
    if case.fault == "error event":
        return None if decoder.done or not decoder.delivered else APIError  # a server error may be tried again
    if case.in_bytes:
        decoder.end(StreamInterruptedError("cut"))
        return None if decoder.failure is None or decoder.failure.retryable else StreamInterruptedError
    if decoder.done or decoder.has_ended or not decoder.delivered:
        return None
    return IN_BODY[case.fault]


class Broken(AssertionError):
    """A case did not come out as it must."""


def play(case: Case) -> str:
    """How a case came out, in a word; ``Broken`` if that is not as it must be."""
    if case.fault == "TLS":
        untrusted()
    before = resources()
    script, ran = Script(case), []
    step = replace(STEP, handler=lambda given: run(given, ran))
    client = None
    try:
        with ScriptedServer(script, repeat=True) as server, ScriptedServer("fine") as other:
            script.server = server
            client = Client(
                model="m",
                base_url=server.url,
                protocol=case.protocol,
                tools=[step],
                auto_execute_tools=case.mode != "manual",
                retry=MANY,
                timeout=(5, 0.15 if case.fault == "stall" else 5),
            )
            error: AgentError | None = None
            try:
                converse(client, case)
            except AgentError as exc:
                error = exc
            check(case, client, ran, error)
            if "refused" in case.fault:
                client.options = client.options.replace(base_url=other.url)
            client.options = client.options.replace(timeout=5)
            if client.ask("and now?") != "fine":
                raise Broken(f"{case}: the next prompt got no answer")
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


@cache
def untrusted() -> ScriptedServer:
    """A server whose certificate nobody trusts, for the whole process."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return ScriptedServer(ssl_context=context)


def check(case: Case, client: Client, ran: list[int], error: AgentError | None) -> None:
    """The outcome is the one expected, the history is whole up to there, and nothing was run twice."""
    want = expected(case)
    if type(error) is not (want or type(None)):
        raise Broken(f"{case}: expected {want and want.__name__}, got {error!r}")
    rounds = ROUNDS if error is None else case.round
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
    untrusted()  # which stays, and is none of what a case leaves open
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
