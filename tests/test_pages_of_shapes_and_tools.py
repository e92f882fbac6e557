"""The code of docs/extract.md and docs/emulation.md does what the pages say."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from openagent.testing import ScriptedServer, answer

DOCS = Path(__file__).parent.parent / "docs"
EMMA = '{"title": "Emma", "pages": 474, "authors": ["Jane Austen"], "published": "1815-12-23"}'
CALL = {"name": "add", "arguments": {"a": 1, "b": 2}}
SCRIPTS = {
    "extract": [
        EMMA,
        '{"value": "good"}',
        '{"value": ["Rhine", "Elbe"]}',
        answer(chunk_text=['{"title": "Em', 'ma", "pages": 474, "authors": [', '"Jane Austen"], "published": null}']),
        answer('{"title": "Emma"', finish="length"),
    ],
    "emulation": [
        '{"tool": "add", "arguments": {"a": 1723, "b": 2581}}',
        '{"answer": "now"}',
        "It is 4304.",
        f"<tool_call>{json.dumps(CALL)}</tool_call>",
        "It is 3.",
    ],
}
SHOWN = {
    "extract": """\
Emma 1815
good
['Rhine', 'Elbe']
{'title': 'Em'}
{'title': 'Emma', 'pages': 474, 'authors': []}
{'title': 'Emma', 'pages': 474, 'authors': ['Jane Austen'], 'published': None}
Book(title='Emma', pages=474, authors=['Jane Austen'], published=None)
the answer was cut by the output limit before it had its shape: raise max_tokens
""",
    "emulation": "It is 4304.\n{'a': 1723, 'b': 2581}\nIt is 3.\n",
}


@pytest.mark.parametrize("page", SCRIPTS)
def test_the_code_of_the_page_does_what_it_says(page):
    parts = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    with ScriptedServer(*SCRIPTS[page]) as server:
        program = "\n".join(parts).replace('model="qwen3:8b", provider="ollama"', f'model="m", base_url="{server.url}"')
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(program, f"{page}.md", "exec"), {"__name__": page})
        assert shown.getvalue() == SHOWN[page]
        assert (server.complaints, len(server.requests)) == ([], len(SCRIPTS[page]))
