"""In a real kernel of Jupyter: answers shown live, values as HTML, the stop button, the cell magic."""

import json
import re
import warnings

import pytest
from jupyter_client import manager

from openagent.testing import ScriptedServer, answer, call, failure

SETUP = """
from openagent import *
from openagent.testing import answer
@tool
def add(a: float, b: float) -> float:
    "Add two numbers."
    return a + b
"""


class Notebook:
    """A kernel; ``run`` gives what a cell has come to."""

    def __init__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the event loop that this library brings
            self._manager, self._client = manager.start_new_kernel(kernel_name="python3")
        self.run(SETUP)

    def run(self, code, stop_at=None):
        """Displays in order and the number of their drawings, text on stdout, error; stopped when a text is seen."""
        self.displays, self.drawings, self.out, self.error = {}, 0, "", None
        self._stop_at = stop_at
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reply = self._client.execute_interactive(code, output_hook=self._hear, timeout=30)
        self.status = reply["content"]["status"]
        return self

    @property
    def shown(self):
        """The one display there is."""
        (bundle,) = self.displays.values()
        return bundle

    def _hear(self, message):
        kind, content = message["msg_type"], message["content"]
        if kind in ("display_data", "execute_result", "update_display_data"):
            self.drawings += 1
            self.displays[content.get("transient", {}).get("display_id", "result")] = content["data"]
        elif kind == "stream":
            self.out += content["text"]
        elif kind == "error":
            self.error = "\n".join(content["traceback"])
        if self._stop_at and self._stop_at in json.dumps(content):
            self._stop_at = None
            self._manager.interrupt_kernel()

    def close(self):
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def notebook():
    started = Notebook()
    yield started
    started.close()


@pytest.fixture
def cell(notebook, serve):
    """Runs a cell in which ``client`` is a new client of a server with this script."""

    def run(code, *script, settings="", **how):
        server = serve(*script)
        notebook.run(f"client = Client(model='m', base_url={server.url!r}, retry=None, {settings})")
        return notebook.run(code, **how)

    return run


def without_time(text):
    return re.sub(r"\d+\.\d s", "0.0 s", text)


def test_an_answer_is_one_display_with_a_closing_line(cell):
    shown = cell("client.show('q')", answer("**Paris** costs $5.", chunk_text=["**Paris**", " costs", " $5."])).shown
    assert {form: without_time(text) for form, text in shown.items()} == {
        "text/markdown": "**Paris** costs <span>\\$</span>5.\n\n<small>stop · 7 tokens in, 5 out · 0.0 s</small>",
        "text/plain": "**Paris** costs $5.\n\n(stop · 7 tokens in, 5 out · 0.0 s)",
    }


def test_an_answer_of_many_pieces_is_drawn_few_times(cell):
    notebook = cell("client.show('q')", "word " * 3000)
    assert notebook.shown["text/plain"].startswith("word word")
    assert notebook.drawings < 300


def test_what_came_before_a_silence_is_seen(cell):
    pieces = answer(chunk_text=["One ", "two ", "three."], hold=30, done=False, finish="unspecified")
    notebook = cell("client.show('q')", pieces, stop_at="three.")
    assert notebook.shown["text/plain"].startswith("One two three.\n\n(interrupted")


def test_a_line_is_shown_while_the_answer_is_waited_for_and_vanishes(cell):
    notebook = cell("client.show('q')", answer(chunk_text=["Slowly."], delay=0.4))
    [shown] = notebook.displays.values()
    assert notebook.drawings > 2
    assert without_time(shown["text/plain"]).startswith("Slowly.\n\n(stop")


def test_the_stop_button_takes_the_line_of_waiting_away(cell):
    silent = answer(chunk_text=[], hold=30, done=False, finish="unspecified")
    notebook = cell("client.show('q')", silent, stop_at="waiting for the answer")
    assert [shown["text/plain"] for shown in notebook.displays.values()] == [""]
    assert notebook.error == "The answer was stopped; the conversation is as it was."


def test_a_batch_has_a_bar_in_a_notebook(cell):
    notebook = cell("[result.answer for result in map_prompts(client.options, ['p', 'q'])]", "yes", "yes")
    assert notebook.displays["result"]["text/plain"] == "['yes', 'yes']"
    assert "2/2" in notebook.out or len(notebook.displays) > 1


def test_calls_are_shown_with_arguments_and_results(cell):
    script = [answer("Let me see.", calls=[call("add", {"a": 25, "b": 17})]), "It is 42."]
    shown = cell("client.show('q')", *script, settings="tools=[add], auto_execute_tools=True").shown
    assert without_time(shown["text/markdown"]) == (
        "Let me see.\n\n"
        "<details><summary><code>add(a=25, b=17)</code> done, 0.0 s</summary>"
        "<pre>&#123;&#10;  &quot;a&quot;: 25,&#10;  &quot;b&quot;: 17&#10;&#125;</pre><pre>42.0</pre></details>\n\n"
        "It is 42.\n\n<small>stop · 14 tokens in, 10 out · 0.0 s</small>"
    )


def test_reasoning_is_folded(cell):
    shown = cell(
        "client.show('q')", answer("42.", reasoning="Six\n\ntimes seven"), settings="include_reasoning=True"
    ).shown
    assert shown["text/markdown"].startswith(
        "<details><summary>Reasoning</summary><blockquote>Six<br><br>times seven</blockquote></details>\n\n42.\n\n"
    )


def test_the_stop_button_stops_the_answer_and_keeps_the_rest(cell, notebook):
    endless = answer(chunk_text=["Once upon"], hold=30, done=False, finish="unspecified")
    cell("client.ask('q'); client.show('r')", "a", endless, "Here again.", stop_at="Once")
    assert (notebook.status, notebook.error) == ("error", "The answer was stopped; the conversation is as it was.")
    assert without_time(notebook.shown["text/plain"]) == "Once upon\n\n(interrupted · 0.0 s)"
    notebook.run("print(client.ask('r')); print([message.text for message in client.history])")
    assert notebook.out == "Here again.\n['q', 'a', 'r', 'Here again.']\n"


def test_an_error_is_short_and_names_the_next_step(cell):
    notebook = cell("1\n\nclient.show('q')", failure(401, "no"))
    assert notebook.status == "error"
    assert notebook.displays == {}
    marks = set(" ~^")  # under the failing call, from Python 3.13 on
    lines = [line for line in notebook.error.splitlines() if set(line) - marks]
    assert lines[-1] == "APIError: API error 401: no (check api_key)"
    assert len(lines) <= 3
    assert "line 3" in lines[0]


def test_the_magic_asks_the_client(cell, notebook, serve):
    notebook.run("%load_ext openagent")
    assert cell("%%ask\nWhat is\nit?", "A cell.").shown["text/plain"].startswith("A cell.\n\n(stop")
    assert notebook.run("print(client.history[0].text)").out == "What is\nit?\n"
    assert notebook.run("%%ask nobody\nq").error.splitlines()[-1] == (
        "ConfigError: %%ask needs a client: nobody = Client(...) in another cell, or %%ask NAME"
    )


EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"
VALUES = {
    "client": "client",
    "message": "client.history[1]",
    "text": f"TextBlock({EVIL!r})",
    "image": "ImageBlock('https://x/\"onerror=alert(1)')",
    "call": f"ToolUseBlock('c', {EVIL!r}, {{'x': {EVIL!r}}})",
    "result": f"ToolResultBlock('c', {{'x': [{EVIL!r}]}})",
    "tool": f"Tool('t', {EVIL!r}, {{}})",
    "usage": "Usage(7, 5)",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_at_the_end_of_a_cell_is_html_without_a_script(cell, value):
    evil = [answer(EVIL, calls=[call("add", {"x": EVIL})])]
    bundle = cell(f"_ = client.send({EVIL!r}), list(client.receive())\n{value}", *evil).shown
    page = bundle["text/html"]
    assert not re.search(r"<(?!/?(?:div|strong|details|summary|code|pre|table|tr|t[hd]|a|img)\b)", page)
    assert not re.search(r"<img (?!src=\"data:)|<a (?!href=\"https://x/&quot;onerror)", page)
    assert bundle["text/plain"]


def test_an_answer_in_a_script_is_plain_text(connect, serve, capsys):
    connect(serve("Hello.")).show("q")
    assert without_time(capsys.readouterr().out) == "Hello.\n(stop · 7 tokens in, 5 out · 0.0 s)\n"


def test_a_call_in_a_script_is_a_line(connect, capsys):
    with ScriptedServer(answer("So:", calls=[call("f", {"x": 1})]), "Done.") as server:
        from openagent import Tool

        tool = Tool("f", "", {}, lambda arguments: "a\nb")
        connect(server, tools=[tool], auto_execute_tools=True).show("q")
    assert without_time(capsys.readouterr().out) == (
        "So:\n[f(x=1) -> a b, 0.0 s]\nDone.\n(stop · 14 tokens in, 10 out · 0.0 s)\n"
    )
