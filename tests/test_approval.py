"""Asking the user at the terminal."""

import io
import sys

import pytest

from openagent import Approval, ConfigError, ToolUseBlock, ask_user
from openagent.approval import described, verdict

CALL = ToolUseBlock("c1", "delete", {"path": "/tmp/x", "force": True})


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("y\n", Approval("yes")),
        ("YES\n", Approval("yes")),
        ("n\n", Approval("no")),
        ("always\n", Approval("always")),
        ("\n \na\n", Approval("always")),
        ("it is mine\n", Approval("no", "it is mine")),
        ("", Approval("no", "nobody was there to be asked")),
    ],
)
def test_the_user_says_yes_no_always_or_why_not(monkeypatch, capsys, typed, said):
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert ask_user(CALL) == said
    assert capsys.readouterr().out.startswith(
        "\nThe model wants to call delete(path='/tmp/x', force=True)\n"
        "Run it? [y]es, [n]o, [a]lways, or a reason why not: "
    )


def test_nothing_in_a_call_can_write_over_the_question():
    block = ToolUseBlock("c1", "a\x1b[2J", {"x\r": "\x1b[1A\x9b2K\u202e"})
    assert described(block) == r"'a\x1b[2J'('x\r'='\x1b[1A\x9b2K\u202e')"


def test_a_huge_argument_is_cut_with_a_mark():
    text = described(ToolUseBlock("c1", "say", {"text": "x" * 3000}))
    assert text.endswith("x... (1002 more characters))")


def test_an_approval_has_three_answers():
    with pytest.raises(ConfigError, match="approval 'maybe' must be 'yes', 'no' or 'always'"):
        Approval("maybe")


def test_an_exception_of_an_approve_function_passes():
    def approve(call):
        raise LookupError("who?")

    with pytest.raises(LookupError):
        verdict(approve, CALL)
