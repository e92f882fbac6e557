"""The code of docs/conversations.md runs as it stands, in order, as one program."""

import re
from pathlib import Path

from openagent.testing import ScriptedServer

PAGE = Path(__file__).parent.parent / "docs" / "conversations.md"
SHOWN = """\
Be brief. 2
2 0
Again: two divisors.
['system', 'user', 'assistant']
Hi.
"""


def test_the_code_of_the_page_does_what_it_says(tmp_path, monkeypatch, capsys):
    program = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    monkeypatch.chdir(tmp_path)
    with ScriptedServer("One with two divisors.", "Again: two divisors.") as server:
        address = f'model="m", base_url="{server.url}"'
        program = program.replace('model="qwen3:8b", provider="ollama"', address)
        exec(compile(program, "conversations.md", "exec"), {"__name__": "page"})
        assert server.complaints == []
    assert capsys.readouterr().out == SHOWN
