"""``map_prompts`` with threads: results, order, window, stopping, faults."""

import gc
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from dataclasses import dataclass
from itertools import count

import pytest

from openagent import (
    AgentError,
    AgentOptions,
    APIError,
    Budget,
    ConfigError,
    Hooks,
    Message,
    RetryConfig,
    map_prompts,
    tool,
)
from openagent.testing import answer, call, failure

AT_ONCE = RetryConfig(initial_delay=0)


def asked(request):
    return request.body["messages"][-1]["content"]


def echo(request):
    return f"re: {asked(request)}"


@pytest.fixture
def many():
    """``map_prompts`` against a server, and without a word about its progress."""

    def start(server, prompts, *, settings=None, **how):
        options = AgentOptions(**{"model": "m", "base_url": server.url, "retry": AT_ONCE} | (settings or {}))
        return map_prompts(options, prompts, **{"progress": False} | how)

    return start


def batch_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("openagent batch")]


def test_each_prompt_is_answered_in_a_conversation_of_its_own_and_in_order(serve, many):
    server = serve(echo, repeat=True)
    results = list(many(server, (f"p{number}" for number in range(30))))
    assert [(r.index, r.input, r.answer) for r in results] == [(n, f"p{n}", f"re: p{n}") for n in range(30)]
    assert {(r.usage.input_tokens, r.finish_reason, r.requests, r.error) for r in results} == {(7, "stop", 1, None)}
    assert {len(request.body["messages"]) for request in server.requests} == {1}
    assert server.connections <= 8


def test_results_come_as_they_are_ready_if_the_order_does_not_matter(serve, many):
    gate = threading.Event()

    def slow_first(request):
        if asked(request) == "first":
            gate.wait(5)
        return "done"

    run = many(serve(slow_first, repeat=True), ["first", "second"], ordered=False)
    assert next(run).input == "second"
    gate.set()
    assert [result.input for result in run] == ["first"]


def test_what_goes_wrong_is_kept_with_its_prompt(serve, many):
    def moody(request):
        return failure(400, "no") if asked(request) == "bad" else "yes"

    good, bad, last = many(serve(moody, repeat=True), ["good", "bad", "last"])
    assert (good.answer, last.answer) == ("yes", "yes")
    assert (bad.answer, bad.finish_reason, type(bad.error), bad.error.status) == (None, None, APIError, 400)


def test_the_first_error_is_raised_if_so_wanted(serve, many):
    run = many(serve(failure(400, "no"), repeat=True), ["a", "b"], raise_errors=True)
    with pytest.raises(APIError):
        list(run)
    assert batch_threads() == []


def test_an_error_of_the_users_own_hook_is_kept(serve, many):
    def broken(event):
        raise ZeroDivisionError("in the hook")

    hooks = Hooks().add_user_prompt_submit(broken)
    (result,) = many(serve("unused"), ["a"], settings={"hooks": hooks})
    assert (result.answer, repr(result.error)) == (None, "ZeroDivisionError('in the hook')")


def test_tools_run_within_a_prompt(serve, many):
    @tool
    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    server = serve(answer(calls=[call("double", {"number": 21})]), "It is 42.")
    (result,) = many(server, ["21?"], settings={"tools": [double], "auto_execute_tools": True})
    assert (result.answer, result.requests, result.usage.input_tokens) == ("It is 42.", 2, 14)


def test_messages_and_rows_are_prompts_too(serve, many):
    server = serve(echo, repeat=True)
    talk = [Message.user("Hi"), Message.assistant("Hello"), Message.user("and?")]
    plain = [message.to_dict() for message in talk]
    prompts = [talk, plain, Message.user("one"), {"prompt": "two"}, {"messages": plain}]
    answers = [result.answer for result in many(server, prompts, workers=1)]
    assert answers == ["re: and?", "re: and?", "re: one", "re: two", "re: and?"]
    assert [len(request.body["messages"]) for request in server.requests] == [3, 3, 1, 1, 3]


def test_a_row_fills_the_template(serve, many):
    good, bad = many(serve(echo, repeat=True), [{"a": 1, "b": "x"}, {"b": "y"}], template="{a} and {b}, {{so}}")
    assert good.answer == "re: 1 and x, {so}"
    assert (type(bad.error), str(bad.error)) == (ConfigError, "template: there is no 'a' among b")


@pytest.mark.parametrize(
    ("prompts", "how", "told"),
    [
        ("one prompt", {}, "must be several"),
        ({"role": "user"}, {}, "must be several"),
        (["p"], {"workers": 0}, "workers 0 must be a whole number"),
        (["p"], {"template": "{a.b}"}, "{a.b} must be the name of a column"),
        (["p"], {"template": "{a"}, "a brace of its own is written twice"),
        (["p"], {"executor": object()}, "has no submit()"),
    ],
)
def test_a_wrong_setting_is_told_before_any_request(serve, many, prompts, how, told):
    with pytest.raises(ConfigError, match=r"^[^\n]*") as caught:
        many(serve(), prompts, **how)
    assert told in str(caught.value)


def test_a_run_is_never_more_than_a_window_ahead_of_who_takes_the_results(serve, many, eventually):
    taken = []

    def prompts():
        for number in count():
            taken.append(number)
            yield str(number)

    server = serve(echo, repeat=True)
    with many(server, prompts(), workers=4, window=10) as run:
        for expected in range(20):
            assert next(run).index == expected
            assert len(taken) <= expected + 1 + 10
        assert eventually(lambda: len(server.requests) >= len(taken))
        assert len(server.requests) <= 30


def test_an_endless_generator_runs_in_flat_memory(serve, many, tmp_path):
    """All prompts are the same and cached, so the server has nothing to remember."""
    run = many(serve("yes"), ("same" for _ in count()), workers=2, cache=tmp_path)

    def grown(results):
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(results):
            assert next(run).answer == "yes"
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    with run:
        tracemalloc.start()
        try:
            grown(50)
            assert grown(250) < 100_000
        finally:
            tracemalloc.stop()


def test_leaving_the_loop_interrupts_what_is_going_on(serve, many, eventually):
    def endless(request):
        return "quick" if asked(request) == "0" else answer("slow", hold=30, done=False, finish="unspecified")

    server = serve(endless, repeat=True)
    started = time.monotonic()
    for result in many(server, map(str, range(100)), workers=4):
        assert result.answer == "quick"
        server.wait_for_requests(4)
        break
    assert time.monotonic() - started < 10
    assert batch_threads() == []
    assert eventually(lambda: server.open_connections == 0)


def test_ctrl_c_stops_a_run_at_once(serve):
    server = serve(answer("slow", hold=30, done=False, finish="unspecified"), repeat=True)
    code = (
        "from openagent import *\n"
        f"list(map_prompts(AgentOptions(model='m', base_url={server.url!r}), map(str, range(100)), workers=3))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        server.wait_for_requests(3, timeout=20)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert len(server.requests) == 3


def test_a_broken_source_of_prompts_is_raised_and_all_is_stopped(serve, many):
    def prompts():
        yield "one"
        raise ZeroDivisionError("in the generator")

    with pytest.raises(ZeroDivisionError):
        list(many(serve(echo, repeat=True), prompts()))
    assert batch_threads() == []


def test_mixed_faults_are_asked_again_until_all_is_answered_once(serve, many):
    """5 % 429, 2 % cut streams, 1 % 500."""
    numbers = count(1)

    def moody(request):
        number = next(numbers)
        if number % 20 == 0:
            return failure(429, "slow down", headers={"retry-after": "0"})
        if number % 50 == 1:
            return answer(echo(request), cut=300)
        return failure(500, "oops") if number % 100 == 2 else echo(request)

    prompts = [f"p{number}" for number in range(400)]
    run = many(serve(moody, repeat=True), prompts, ordered=False)
    results = list(run)
    assert sorted((r.index, r.answer) for r in results) == [(n, f"re: p{n}") for n in range(400)]
    assert run.tally.requests > 400


def test_eight_workers_are_five_times_as_fast_as_a_loop(serve, many):
    def slow(request):
        time.sleep(0.05)
        return "yes"

    def seconds(prompts, workers):
        started = time.perf_counter()
        assert all(result.answer == "yes" for result in many(server, prompts, workers=workers))
        return (time.perf_counter() - started) / len(prompts)

    server = serve(slow, repeat=True)
    assert seconds(["p"] * 24, 1) / seconds(["p"] * 160, 8) >= 5


def test_a_budget_of_requests_ends_the_run_in_order(serve, many):
    server = serve(echo, repeat=True)
    run = many(server, map(str, count()), budget=Budget(requests=13))
    assert [result.answer for result in run] == [f"re: {n}" for n in range(13)]
    assert (len(server.requests), run.tally.ended_by, run.tally.requests) == (13, "budget", 13)


def test_a_budget_of_tokens_ends_the_run(serve, many):
    run = many(serve(echo, repeat=True), map(str, count()), workers=2, window=2, budget=Budget(tokens=120))
    answers = len(list(run))
    assert 10 <= answers <= 12
    assert (run.tally.ended_by, run.tally.tokens) == ("budget", answers * 12)


def test_a_budget_that_suffices_is_not_why_the_run_ended(serve, many):
    run = many(serve(echo, repeat=True), ["a", "b"], budget=Budget(requests=2))
    assert (len(list(run)), run.tally.ended_by) == (2, "end")
    with pytest.raises(ConfigError, match="budget tokens -1 must be a whole number"):
        Budget(tokens=-1)


def test_an_unanswered_call_is_an_error(serve, many):
    @tool
    def look() -> str:
        """Look."""
        return ""

    (result,) = many(serve(answer(calls=[call("look", {})])), ["?"], settings={"tools": [look]})
    assert type(result.error) is AgentError
    assert result.tokens == 12


def test_with_a_schema_the_answers_are_values(serve, many):
    @dataclass
    class Bird:
        name: str
        legs: int

    attempts = iter(['{"name": "owl"}', '{"name": "owl", "legs": 2}', '{"name": "emu", "legs": 2}'])
    talk = [Message.user("Hi"), Message.assistant("Hello"), Message.user("And the emu?")]
    server = serve(lambda request: next(attempts), repeat=True)
    owl, emu = many(server, ["The owl?", talk], schema=Bird, workers=1)
    assert (owl.answer, owl.requests, owl.usage.input_tokens, owl.tokens) == (Bird("owl", 2), 2, 14, 24)
    assert (emu.answer, emu.requests, emu.finish_reason) == (Bird("emu", 2), 1, "stop")
    with pytest.raises(ConfigError, match="is no shape for an answer"):
        many(server, ["p"], schema=object())
