"""The tutorial's code runs as it stands, step by step, and prints what the tutorial shows."""

import contextlib
import io
import re
from pathlib import Path

from openagent.testing import ScriptedServer, answer, call

PAGE = (Path(__file__).parent.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
STEPS = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", PAGE, re.DOTALL)
APPLES = answer(calls=[call("in_stock", {"fruit": "apples"})])
SCRIPT = [
    "The capital of France is Paris.",
    "The capital of Norway is Oslo.",
    answer(chunk_text=["One, ", "two, ", "three."], usage=(20, 3)),
    APPLES,
    "There are 12 apples.",
    answer(calls=[call("in_stock", {"fruit": "plums"}), call("in_stock", {"fruit": "pears"})]),
    "No plums, and the pears are sold out.",
    APPLES,
    "12 apples.",
    "I am here.",
    "About apples, pears and plums.",
]


def shown(step, names):
    """What the code of a step prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(step, "tutorial.md", "exec"), names)
    return printed.getvalue()


def test_each_step_of_the_tutorial_prints_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(STEPS) == PAGE.count("```python")
    names = {"__name__": "tutorial"}
    with ScriptedServer(*SCRIPT) as server:
        address = f'model="m", base_url="{server.url}"'
        steps = [code.replace('provider="local"', address) for code, _ in STEPS]
        assert [shown(step, names) for step in steps] == [output for _, output in STEPS]
        assert (len(server.requests), server.complaints) == (len(SCRIPT), [])
