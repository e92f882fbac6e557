"""The README's code runs as it stands, in order, as one program."""

import contextlib
import io
import re
from pathlib import Path

from openagent.testing import ScriptedServer, answer, call, failure

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
PARTS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
ADDING = answer(calls=[call("add", {"a": 25, "b": 17})])
SCRIPT = [
    ("The capital of France is Paris.", "The capital of Norway is Oslo."),
    (ADDING, "25 + 17 = 42."),
    (ADDING, "It is 42."),
    (answer("Hello!", usage=(9, 2)),),
    (failure(404, "no model 'my-model'"), "Yes."),
]
SHOWN = """\
The capital of France is Paris.
The capital of Norway is Oslo.
25 + 17 = 42.
The model asks for add {'a': 25, 'b': 17}
It is 42.
Hello!
stop Usage(input_tokens=9, output_tokens=2, cache_read_tokens=None, cache_write_tokens=None, reasoning_tokens=None)
API error 404: no model 'my-model' (check the model's name, and base_url: it usually ends with /v1)
Yes.
"""


def test_the_code_of_the_readme_does_what_it_says():
    assert len(PARTS) == len(SCRIPT)
    with ScriptedServer(*[item for items in SCRIPT for item in items]) as server:
        address = f'model="m", base_url="{server.url}"'
        program = "\n".join(PARTS)
        program = re.sub(r'provider="local"|model="qwen3:8b", provider="ollama"', address, program)
        program = program.replace("http://localhost:8080/v1", server.url)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(program, "README.md", "exec"), {"__name__": "readme"})
        assert shown.getvalue() == SHOWN
        assert server.complaints == []


def test_the_readme_has_exactly_two_set_up_commands():
    commands = [line for part in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in part.splitlines()]
    assert commands == [
        'python -m pip install -e ".[local]" && openagent ask --local "What is the capital of France?"',
        'python -m pip install -e ".[dev]" && python -m pytest',
    ]
