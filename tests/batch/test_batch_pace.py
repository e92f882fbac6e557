"""``Pace``: turns, the common brake, and both seen from a server."""

import pickle
import random
import time
from itertools import pairwise

import pytest

from openagent import AgentOptions, ConfigError, Pace, RetryConfig, map_prompts
from openagent.batch.pace import FIRST_GAP, LONGEST_GAP, SPEED_UP
from openagent.testing import failure


class Clock:
    """Time that goes on only when told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def turns(pace, number):
    return [round(pace.turn(), 6) for _ in range(number)]


def test_without_limits_nobody_waits():
    assert turns(Pace(clock=Clock()), 3) == [0, 0, 0]


@pytest.mark.parametrize("limits", [{"requests_per_second": 4}, {"requests_per_minute": 240}])
def test_requests_are_spread_evenly(limits):
    assert turns(Pace(**limits, clock=Clock()), 4) == [0, 0.25, 0.5, 0.75]


def test_time_that_was_not_used_is_not_saved_up():
    clock = Clock()
    pace = Pace(requests_per_second=4, clock=clock)
    assert turns(pace, 2) == [0, 0.25]
    clock.now += 60
    assert turns(pace, 2) == [0, 0.25]


def test_tokens_are_set_aside_and_made_up_for_when_they_are_known():
    clock = Clock()
    pace = Pace(tokens_per_minute=60_000, clock=clock)  # 1 ms a token, and 500 for a start
    assert turns(pace, 2) == [0, 0.5]
    pace.answered(1500)
    pace.answered(None)
    assert turns(pace, 1) == [2.0]


def test_in_the_long_run_the_tokens_keep_their_limit():
    clock = Clock()
    pace = Pace(tokens_per_minute=60_000, clock=clock)
    for _ in range(200):
        clock.now += pace.turn()
        pace.answered(80)
    assert clock.now - 100 == pytest.approx(200 * 0.080, rel=0.1)


def answers(pace, clock, number, seconds):
    """So many answers, one every so many seconds."""
    for _ in range(number):
        clock.now += seconds
        pace.answered(None)


def test_too_many_holds_everybody_and_then_nobody_asks_faster_than_answers_came():
    clock = Clock()
    pace = Pace(clock=clock)
    answers(pace, clock, 200, 0.2)
    pace.too_many(3, age=0.1)
    pace.too_many(2, age=0.1)
    assert (pace.hold, turns(pace, 3)) == (3, pytest.approx([3, 3.2, 3.4], abs=0.001))
    clock.now += 10
    assert pace.hold == 0


def test_where_the_server_names_no_time_the_others_go_on_and_only_slow_down():
    clock = Clock()
    pace = Pace(clock=clock)
    answers(pace, clock, 200, 0.2)
    pace.too_many(None, age=0.1)
    assert (pace.hold, turns(pace, 3)) == (0, pytest.approx([0, 0.2, 0.4], abs=0.001))


def test_answers_speed_up_again():
    clock = Clock()
    pace = Pace(clock=clock)
    pace.too_many(None, age=0)
    assert turns(pace, 2) == [0, FIRST_GAP]
    answers(pace, clock, 10, FIRST_GAP)
    assert turns(pace, 2) == [0, round(FIRST_GAP * SPEED_UP**10, 6)]
    answers(pace, clock, 30, FIRST_GAP)
    assert turns(pace, 2) == [0, 0]


def test_of_many_that_are_refused_at_once_one_slows_down():
    clock = Clock()
    pace = Pace(clock=clock)
    pace.too_many(None, age=0)
    answers(pace, clock, 40, 0.1)
    pace.too_many(None, age=4.5)
    assert turns(pace, 2) == [0, 0]
    pace.too_many(None, age=3.5)
    assert turns(pace, 2)[1] > 0.05


def test_the_brake_has_an_end():
    clock = Clock()
    pace = Pace(clock=clock)
    answers(pace, clock, 200, 100)
    pace.too_many(None, age=0)
    assert turns(pace, 2) == [0, LONGEST_GAP]


@pytest.mark.parametrize("value", [0, -1, "5", True])
def test_a_limit_is_a_number_above_0(value):
    with pytest.raises(ConfigError, match="requests_per_second"):
        Pace(requests_per_second=value)


def test_the_limits_travel_and_can_be_shared_between_processes():
    pace = Pace(requests_per_second=10, tokens_per_minute=600)
    assert repr(pickle.loads(pickle.dumps(pace))) == repr(pace)
    assert repr(pace.shared(4)) == "Pace(requests_per_second=2.5, tokens_per_minute=150.0)"


def test_a_run_keeps_the_pace_over_all_its_threads(serve):
    moments = []

    def noted(request):
        moments.append(time.monotonic())
        return "yes"

    options = AgentOptions(model="m", base_url=serve(noted, repeat=True).url)
    started = time.monotonic()
    list(map_prompts(options, ["p"] * 11, pace=Pace(requests_per_second=50), progress=False))
    assert len(moments) == 11
    assert moments[-1] - started >= 10 / 50


def test_what_one_worker_is_told_holds_all(serve):
    script = [failure(429, "slow down", headers={"retry-after-ms": "300"})]
    moments = []

    def noted(request):
        moments.append(time.monotonic())
        return script.pop() if script else "yes"

    options = AgentOptions(model="m", base_url=serve(noted, repeat=True).url)
    results = list(map_prompts(options, ["p"] * 20, workers=2, window=2, pace=Pace(), progress=False))
    assert [result.answer for result in results] == ["yes"] * 20
    gaps = [later - before for before, later in pairwise(moments)]
    assert max(gaps) > 0.2
    assert len([gap for gap in gaps[:3] if gap > 0.2]) == 1


def test_who_is_refused_without_a_time_waits_and_the_other_goes_on(serve):
    moments = {}

    def refusing(request):
        prompt = request.body["messages"][-1]["content"]
        moments.setdefault(prompt, []).append(time.monotonic())
        return failure(429, "slow down") if prompt == "0" and len(moments["0"]) == 1 else "yes"

    random.seed(0)  # the delay is 0.84 of its longest
    patient = RetryConfig(initial_delay=0.1)
    options = AgentOptions(model="m", base_url=serve(refusing, repeat=True).url, retry=patient)
    numbers = map(str, range(10))
    results = list(map_prompts(options, numbers, workers=2, window=10, ordered=False, pace=Pace(), progress=False))
    assert [result.error for result in results] == [None] * 10
    assert {result.input: result.requests for result in results} == {str(n): 1 for n in range(1, 10)} | {"0": 2}
    refused, again = moments.pop("0")
    assert len([first for (first,) in moments.values() if refused < first < again]) >= 1
