"""``map_prompts`` with data frames of pandas and polars."""

from dataclasses import dataclass
from importlib import import_module

import pytest

from openagent import AgentOptions, ConfigError, map_prompts
from openagent.testing import failure


def prompt_of(request):
    return request.body["messages"][-1]["content"]


def echo(request):
    return f"re: {prompt_of(request)}"


def asked_about(server, frame, **how):
    return map_prompts(AgentOptions(model="m", base_url=server.url, retry=None), frame, progress=False, **how)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_gets_its_answers_in_columns(serve, library):
    frames = import_module(library)
    frame = frames.DataFrame({"text": ["a", "b"], "n": [1, 2]})
    if library == "pandas":
        frame.index = [7, 9]
    run = asked_about(serve(echo, repeat=True), frame, template="{text}{n}")
    result = run.frame()
    assert list(result.columns) == [
        *("text", "n", "answer", "finish_reason", "input_tokens", "output_tokens", "seconds", "error")
    ]
    assert (list(result["answer"]), list(result["output_tokens"])) == (["re: a1", "re: b2"], [5, 5])
    assert list(frame.columns) == ["text", "n"]
    if library == "pandas":
        assert list(result.index) == [7, 9]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_values_that_are_missing_here_and_there_stand_in_a_frame(serve, library):
    @dataclass
    class Bird:
        name: str
        legs: int | None = None

    said = {"owl": '{"name": "owl", "legs": 2}', "kiwi": '{"name": "kiwi"}'}
    server = serve(lambda request: said.get(prompt_of(request), failure(400, "no")), repeat=True)
    frame = import_module(library).DataFrame({"prompt": ["fog", *["kiwi"] * 150, "owl"]})
    answers = list(asked_about(server, frame, schema=Bird).frame()["answer"])
    if library == "pandas":
        assert answers == [None, *[Bird("kiwi")] * 150, Bird("owl", 2)]
    else:
        assert answers == [None, *[{"name": "kiwi", "legs": None}] * 150, {"name": "owl", "legs": 2}]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_that_is_taken_is_told_before_anything_is_sent(serve, library):
    frame = import_module(library).DataFrame({"prompt": ["a"], "answer": ["b"]})
    with pytest.raises(ConfigError, match="the frame has a column 'answer' already"):
        asked_about(serve(), frame).frame()
