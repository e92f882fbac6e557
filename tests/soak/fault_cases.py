"""The cases of the fault matrix, and how each must come out.

That is not written down place by place: what a decoder makes of the frames before the place, without a network, says
whether the turn had ended by then and whether anything of it had been told.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from requests.structures import CaseInsensitiveDict

from openagent import (
    AgentError,
    AgentOptions,
    APIError,
    InvalidResponseError,
    Message,
    StreamInterruptedError,
    Timeout,
    Tool,
    TransportError,
)
from openagent.client import ADAPTERS
from openagent.decoding import BodyDecoder
from openagent.testing import answer, call, failure, raw
from openagent.testing.reply import wire_of
from openagent.testing.script import Headers, Request
from openagent.testing.wire import Memory

MODES = ("manual", "ask", "stream", "events")
ROUNDS = 3
TURNS = [answer(f"step {n} ", calls=[call("step", {"n": n}, id=f"c{n}")]) for n in range(1, ROUNDS + 1)]
TURNS.append(answer("All done."))
STEP = Tool("step", "", {"type": "object", "properties": {"n": {"type": "integer"}}}, len)
HTML = {"Content-Type": "text/html"}
NO_RETRY_AFTER, RETRY_AFTER = {}, {"Retry-After": "0"}

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
# Cut off, and then: what the next request meets (the retry, the next round or the next prompt), and its error.
THEN: dict[str, type[AgentError] | None] = {
    **dict.fromkeys([name for name in INSTEAD if name[:3] in ("429", "500", "503", "529")]),
    "429, long Retry-After": APIError,
    "redirect": APIError,
    "refused": TransportError,
    "TLS": TransportError,
    "DNS": TransportError,
    "proxy refuses": TransportError,
}
FAULTS = [*IN_BODY, *INSTEAD, *ON_THE_WAY, *(f"cut, then {name}" for name in THEN)]


@dataclass(frozen=True)
class Case:
    """One way to break the conversation. ``place`` counts frames (or bytes), where the fault has places."""

    protocol: str
    mode: str
    fault: str
    round: int
    place: int = 0
    in_bytes: bool = False

    @property
    def then(self) -> str:
        """What the next request meets."""
        return self.fault.partition(", then ")[2] if self.fault.startswith("cut, then ") else ""


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
        if fault in IN_BODY or fault.startswith("cut, then "):
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


@dataclass(frozen=True)
class Outcome:
    """How the conversation of a case ends: its error, the rounds that are kept; the error of the prompt after it."""

    error: type[AgentError] | None
    rounds: int
    error_of_next: type[AgentError] | None = None


def expected(case: Case) -> Outcome:
    """How a case must come out."""
    if not case.then:
        error = error_of(case)
        return Outcome(error, ROUNDS if error is None else case.round)
    error, then = error_of(replace(case, fault="cut")), THEN[case.then]
    has_ended = error is None and decoded(frames(case.protocol, case.round)[: case.place], case.protocol).has_ended
    if error is not None or (has_ended and case.round == ROUNDS):  # nothing more is asked for in this conversation
        return Outcome(error, case.round, then)
    return Outcome(then, ROUNDS if then is None else case.round + has_ended)


def decoded(heard: list[bytes], protocol: str) -> BodyDecoder:
    """A decoder that has heard these frames."""
    options = AgentOptions(model="m", protocol=protocol)
    decoder = BodyDecoder(ADAPTERS[protocol](options, [], [], None).decoder(CaseInsensitiveDict()))
    for frame in heard:
        decoder.feed(frame)
    return decoder


def error_of(case: Case) -> type[AgentError] | None:
    """The error of a single fault; None if the conversation goes on to its end."""
    if case.fault in ON_THE_WAY:
        return ON_THE_WAY[case.fault]
    if case.fault in INSTEAD:
        return None if case.fault in RECOVERED else ERRORS.get(case.fault, APIError)
    whole = frames(case.protocol, case.round)
    decoder = decoded([b"".join(whole)[: case.place]] if case.in_bytes else whole[: case.place], case.protocol)
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
