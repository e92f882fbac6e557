"""A sample of the fault matrix: each fault on each wire, at places and in modes drawn anew from a fixed seed.

The full product is ``tests/soak/fault_matrix.py``; the rules are in ``fault_cases.py`` there.
"""

import os
import random

import pytest
from soak.fault_cases import IN_BODY, INSTEAD, ON_THE_WAY, THEN, Case, byte_cases, cases, frames
from soak.fault_matrix import play

from openagent.client import ADAPTERS

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")


def sample(protocol, fault, count):
    chosen = cases(protocols=[protocol], faults=[fault])
    return random.Random(f"{protocol} {fault}").sample(chosen, min(count, len(chosen)))


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("fault", [*IN_BODY, *INSTEAD, *ON_THE_WAY])
def test_each_fault_gives_its_error_or_is_recovered_from_and_leaves_nothing_open(protocol, fault):
    """Issue 4.3: the history is whole, nothing is run twice, the next prompt is answered."""
    for case in sample(protocol, fault, 3 if fault == "stall" else 8):
        play(case)


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_what_meets_the_next_request_after_a_cut_gives_its_error_or_is_recovered_from(protocol):
    """Issue 4.3: at a frame boundary of any round, and then a refusal, a lost name, a strange certificate, ..."""
    for then in THEN:
        for case in sample(protocol, f"cut, then {then}", 2):
            play(case)


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_stream_cut_at_any_byte_is_recovered_from_or_broken_off(protocol):
    """Issue 4.3, promise 2: over sockets; without them every byte is cut at in adapters/test_any_stream.py."""
    for case in random.Random(protocol).sample(byte_cases(protocol), 60):
        play(case)


def test_a_call_is_not_run_again_when_the_round_after_it_is_repeated():
    """Issue 4.3: the last frame but one of a later round, in auto mode."""
    for protocol in ADAPTERS:
        for number in range(4):
            play(Case(protocol, "events", "dropped", number))
            play(Case(protocol, "events", "reset", number, len(frames(protocol, number)) - 1))
