"""Each example runs as a user runs it: in a process of its own, against a server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openagent.testing import ScriptedServer, answer, call, failure, raw

FOLDER = Path(__file__).parent.parent / "examples"


def completion(*pieces, asked):
    """A stream of the completions endpoint, for a prompt that is checked."""

    def answered(request):
        wanted = {"model": "m", "prompt": asked, "stop": ["\nUser:"], "stream": True, "max_tokens": 50}
        if (request.path, request.body) != ("/v1/completions", wanted):
            return failure(400, f"unexpected: {request.path} {request.body}")
        chunks = [{"choices": [{"text": piece, "finish_reason": None}]} for piece in pieces]
        chunks[-1]["choices"][0]["finish_reason"] = "stop"
        chunks[-1]["usage"] = {"prompt_tokens": 9, "completion_tokens": len(pieces)}
        return raw(*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n")

    return answered


def judged(request):
    """The answers come in the order of the questions, whoever is asked first."""
    text = request.body["messages"][-1]["content"]
    if "Tuesday" in text:
        return failure(400, "that is no review")
    return "bad" if "broke" in text else "good"


def judged_in_fields(request):
    """The same, and what it is about."""
    mood = judged(request)
    about = {"bad": "pump", "good": "noise"}
    return json.dumps({"mood": mood, "about": about[mood]}) if isinstance(mood, str) else mood


PLAY = "A helpful assistant talks to a user.\nUser: What is the capital of France?\nAssistant:"

SCRIPTS = {
    "simple_query": (["Paris."], "Paris.\n[stop]\n"),
    "multi_turn": (
        ["One with two divisors.", "No: 7 times 13.", "Yes."],
        "You: What is a prime number?\nModel: One with two divisors.\nYou: Is 91 one?\nModel: No: 7 times 13.\n"
        "You: And 97?\nModel: Yes.\n",
    ),
    "save_and_fork": (
        ["Plum.", "Cherry.", "Lime."],
        "Model: Plum.\nOne way: Cherry.\nAnother: Lime.\nTaken back: ['A green one?', 'Lime.']\n"
        "For others: ['system', 'user', 'assistant']\n",
    ),
    "manual_tools": (
        [answer("Let me add. ", calls=[call("add", {"a": 25, "b": 17})]), "It is 42."],
        "Let me add. [the model asks for add({'a': 25, 'b': 17})]\nIt is 42.\n",
    ),
    "auto_tools": (
        [answer(calls=[call("days_between", {"start": "2024-02-01", "end": "2024-03-01"})]), "29 days."],
        "[days_between {'start': '2024-02-01', 'end': '2024-03-01'}]\n[-> 29]\n29 days.\n",
    ),
    "hooks": (
        [
            answer(
                calls=[
                    call("write_file", {"path": "/etc/motd", "text": "hello"}, id="c1"),
                    call("write_file", {"path": "/tmp/hello.txt", "text": "hello"}, id="c2"),
                ]
            ),
            "One of two.",
        ],
        "[audit] write_file /etc/motd: {'error': 'Tool execution blocked by hook', 'reason': "
        "'only /sandbox/ and /tmp/ may be written', 'tool': 'write_file', 'id': 'c1'}\n"
        "[audit] write_file /sandbox/hello.txt: 5 characters written to /sandbox/hello.txt\nOne of two.\n",
    ),
    "context_management": (
        ["Bees dance. " * 8, "They see ultraviolet. " * 8, "Ants farm."],
        "You: Tell me a fact about bees.\nModel: " + "Bees dance. " * 8 + "\n[3 messages, about 47 tokens]\n"
        "You: Another one.\nModel: " + "They see ultraviolet. " * 8 + "\n[3 messages, about 63 tokens]\n"
        "You: And one about ants.\nModel: Ants farm.\n[3 messages, about 23 tokens]\n",
    ),
    "interrupt": (
        [
            answer("1 2 3", hold=30, done=False, finish="unspecified"),
            answer("1 2", hold=30, done=False, finish="unspecified"),
            "Hello!",
        ],
        "[the deadline of 0.5 s has passed; heard: 1 2 3]\n[interrupted; heard: 1 2]\nHello!\n",
    ),
    "custom_adapter": (
        [
            completion(" Par", "is.", asked=PLAY),
            completion(" Oslo.", asked=f"{PLAY}  Paris.\nUser: And of Norway?\nAssistant:"),
        ],
        "You: What is the capital of France?\nModel: Paris. [stop, 2 tokens]\n"
        "You: And of Norway?\nModel: Oslo. [stop, 1 tokens]\n",
    ),
    "extract": (
        [
            answer(chunk_text=['{"items": [{"name": "lemon", "count": 2}', ', {"name": "egg"}], "urg', 'ent": true}']),
            '{"value": "polite"}',
        ],
        "[1 items so far]\n[2 items so far]\n[2 items so far]\n"
        "Shopping(items=[Item(name='lemon', count=2), Item(name='egg', count=1)], urgent=True)\n"
        "polite\n",
    ),
    "emulated_tools": (
        [
            '{"tool": "in_stock", "arguments": {"item": "lemon"}}',
            '{"answer": "now"}',
            "Twelve.",
            '<tool_call>{"name": "in_stock", "arguments": {"item": "egg"}}</tool_call>',
            "None.",
        ],
        "You: How many lemons do you have?\n[in_stock {'item': 'lemon'}]\nTwelve.\n"
        "You: And eggs?\n[in_stock {'item': 'egg'}]\nNone.\n",
    ),
    "many_prompts": (
        [judged] * 3,
        "17 bad\n18 good\n19 [API error 400: that is no review]\n[2 answered, 1 failed, 24 tokens]\n",
    ),
    "classify_a_table": (
        [judged_in_fields] * 3,
        "                              text  mood  about\n"
        "17  The pump broke after two days.   bad   pump\n"
        "18      Quiet, and it cleans well.  good  noise\n"
        "19           It came on a Tuesday.     ?      ?\n"
        "[19: API error 400: that is no review]\n[2 answered, 1 failed, 24 tokens]\n",
    ),
    "git_commit": (
        [json.dumps({"subject": "Say hello", "body": "Nobody was greeted."})],
        "Say hello\n\nNobody was greeted.\n",
    ),
    "log_analyser": (
        [
            answer(calls=[call("count_levels")]),
            answer(calls=[call("search", {"pattern": "ERR("})]),
            answer(calls=[call("search", {"pattern": "ERROR|WARNING"})]),
            "The disk is full, so the upload failed. Free some space.",
        ],
        "[count_levels {} -> {'INFO': 1, 'WARNING': 1, 'ERROR': 1}]\n"
        "[search {'pattern': 'ERR('} -> {'error': \"'ERR(' is no regular expression: missing ), unterminated "
        "subpattern at position 3\", 'tool': 'search', 'id': 'call_2'}]\n"
        "[search {'pattern': 'ERROR|WARNING'} -> ['2: 12:01 WARNING disk at 99 %', '3: 12:02 ERROR upload failed']]\n"
        "The disk is full, so the upload failed. Free some space.\n",
    ),
    "vision": (["Red.", "The same."], "Red.\nThe same.\n"),
    "errors_and_retry": (
        [failure(429, "slow down"), "Hi!", answer("Once upon a time", done=False, finish="unspecified"), "The end."],
        "Hi!\nThe answer broke off after: Once upon a time\nThe end.\n",
    ),
}


PIPED_IN = {
    "git_commit": "--- a/hello.py\n+++ b/hello.py\n+print('hello')\n",
    "log_analyser": "12:00 INFO started\n12:01 WARNING disk at 99 %\n12:02 ERROR upload failed\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_example_does_what_it_shows(name):
    script, expected = SCRIPTS[name]
    with ScriptedServer(*script, strict=name != "custom_adapter") as server:  # which speaks a wire of its own
        environment = os.environ | {"OPENAGENT_BASE_URL": server.url, "OPENAGENT_MODEL": "m"}
        done = subprocess.run(
            [sys.executable, str(FOLDER / f"{name}.py")],
            input=PIPED_IN.get(name),
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.stdout, done.stderr, done.returncode) == (expected, "", 0)
        assert server.complaints == []
        assert len(server.requests) == len(script)


def test_every_example_is_tested_and_listed():
    names = {path.stem for path in FOLDER.glob("*.py")}
    assert names == set(SCRIPTS)
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}.py`" not in readme] == []
