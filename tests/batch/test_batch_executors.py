"""``map_prompts`` over executors: threads of the user's, processes, a dask cluster, and those that lose tasks."""

import multiprocessing
import os
import pickle
import sys
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace

import pytest

from openagent import AgentError, AgentOptions, ConfigError, HookDecision, Hooks, Pace, map_prompts, tool
from openagent.testing import answer, call


def echo(request):
    return f"re: {request.body['messages'][-1]['content']}"


@tool
def process_id() -> int:
    """The process that runs this tool."""
    return os.getpid()


def told_process(request):
    """First asks for the tool, then says what it said."""
    last = request.body["messages"][-1]
    return last["content"] if last["role"] == "tool" else answer(calls=[call("process_id", {})])


def options_of(server, **settings):
    return AgentOptions(**{"model": "m", "base_url": server.url} | settings)


class Here(Executor):
    """Runs each task at once, in this thread, as if it were another process; fails as the test says."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.tasks = 0

    def submit(self, task, *arguments):
        future = Future()
        self.tasks += 1
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            future.set_exception(failure)
        else:
            task, arguments = pickle.loads(pickle.dumps((task, arguments)))
            future.set_result(pickle.loads(pickle.dumps(task(*arguments))))
        return future


def test_the_users_own_threads_serve_and_stay_open(serve):
    with ThreadPoolExecutor(2) as executor:
        run = map_prompts(options_of(serve(echo, repeat=True)), ["a", "b"], executor=executor, progress=False)
        assert [result.answer for result in run] == ["re: a", "re: b"]
        assert executor.submit(len, "still open").result() == 10


def spawned():
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def loky():
    return import_module("loky").ProcessPoolExecutor(2)


@pytest.mark.parametrize("pool", [spawned, loky])
def test_processes_do_the_work_with_tools_and_bring_back_errors(serve, pool):
    server = serve(told_process, repeat=True)
    options = options_of(server, tools=[process_id], auto_execute_tools=True)
    with pool() as executor:
        run = map_prompts(options, ["p"] * 12 + [""], executor=executor, workers=2, progress=False)
        *results, empty = run
        numbers = {int(result.answer) for result in results}
        assert os.getpid() not in numbers
        assert 1 <= len(numbers) <= 2
        assert {(result.input, result.requests, result.error) for result in results} == {("p", 2, None)}
        assert (empty.answer, type(empty.error)) == (None, ConfigError)


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        ({"hooks": Hooks().add_pre_tool_use(lambda event: None)}, "option hooks"),
        ({"approve": lambda call: True}, "option approve"),
    ],
)
def test_what_cannot_travel_is_named_before_anything_is_sent(serve, settings, culprit):
    with pytest.raises(ConfigError, match=f"^{culprit} cannot be pickled for another process"):
        map_prompts(options_of(serve(), **settings), ["p"], executor=Here())


def loud(event):
    return HookDecision.modify_prompt(event.prompt.upper())


def test_hooks_travel(serve):
    options = options_of(serve(echo), hooks=Hooks().add_user_prompt_submit(loud))
    assert [result.answer for result in map_prompts(options, ["p"], executor=Here(), progress=False)] == ["re: P"]


def test_a_schema_that_cannot_travel_is_named(serve):
    @dataclass
    class Local:
        name: str

    with pytest.raises(ConfigError, match=r"^schema cannot be pickled for another process"):
        map_prompts(options_of(serve()), ["p"], schema=Local, executor=Here())


def test_what_a_worker_does_not_know_has_failed_at_once_and_says_what_to_do(serve, monkeypatch):
    """As a class of a notebook, which has no name in the worker's process."""

    @dataclass
    class Bird:
        name: str

    Bird.__qualname__, Bird.__module__ = "Bird", "notebook_of_the_user"
    monkeypatch.setitem(sys.modules, "notebook_of_the_user", SimpleNamespace(Bird=Bird))
    executor = Here()
    run = map_prompts(options_of(serve()), ["p"], schema=Bird, executor=executor, progress=False)
    monkeypatch.delitem(sys.modules, "notebook_of_the_user")
    (result,) = run
    assert (type(result.error), result.input, executor.tasks) == (ConfigError, "p", 1)
    assert str(result.error) == (
        "the worker process cannot load what the run needs: No module named 'notebook_of_the_user'; "
        "put tools, hooks and types into a module that it can import"
    )


def test_a_tool_that_cannot_travel_is_named(serve):
    @tool
    def local() -> str:
        """Made in a function."""
        return ""

    with pytest.raises(ConfigError, match=r"^tool 'local' cannot be pickled for another process"):
        map_prompts(options_of(serve(), tools=[local]), ["p"], executor=Here())


def test_a_prompt_that_cannot_travel_has_failed(serve):
    row = {"prompt": "p", "lock": lambda: None}
    good, bad = map_prompts(options_of(serve("yes")), ["p", row], executor=Here(), progress=False)
    assert (good.answer, bad.input is row, type(bad.error)) == ("yes", True, ConfigError)


def test_a_lost_task_is_sent_again(serve):
    executor = Here(CancelledError(), RuntimeError("worker killed"))
    run = map_prompts(options_of(serve("yes")), ["p"], executor=executor, progress=False)
    assert [(result.answer, result.input) for result in run] == [("yes", "p")]
    assert executor.tasks == 3


def test_a_task_that_is_lost_again_and_again_has_failed(serve):
    executor = Here(*(RuntimeError("worker killed") for _ in range(3)))
    lost, good = map_prompts(options_of(serve("yes")), ["p", "q"], executor=executor, progress=False, window=1)
    assert str(lost.error) == "the executor lost the task 3 times: RuntimeError: worker killed"
    assert good.answer == "yes"


def test_a_pool_that_broke_ends_the_run(serve):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        assert isinstance(executor.submit(os._exit, 1).exception(), Exception)
        run = map_prompts(options_of(serve()), ["p"], executor=executor, progress=False)
        with pytest.raises(AgentError, match=r"^the executor"):
            next(run)


def test_each_process_gets_its_share_of_the_pace(serve):
    seen = []

    class Listening(Here):
        def submit(self, task, packed, *arguments):
            seen.append(pickle.loads(packed).pace)
            return super().submit(task, packed, *arguments)

    pace = Pace(requests_per_second=1000)
    list(map_prompts(options_of(serve("yes")), ["p"], executor=Listening(), workers=4, pace=pace, progress=False))
    assert [repr(pace) for pace in seen] == ["Pace(requests_per_second=250.0)"]
