"""Short versions of ``tests/soak/interrupts.py`` and ``everywhere.py``: Ctrl-C in a conversation with tools."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
SOAK = Path(__file__).parent / "soak"


def figures_of(script, count):
    command = [sys.executable, str(SOAK / script), str(count)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def test_a_signal_at_any_moment_leaves_the_history_whole_and_the_client_usable():
    """Issue 4.4, promises 1 and 4: Ctrl-C and interrupt(), on each wire; nothing is run twice or left open."""
    figures = figures_of("interrupts.py", 10)
    assert figures["left open"] == {"descriptors": 0, "threads": 0}
    for kind in ("ctrl-c", "interrupt"):
        assert figures[kind]["count"] > 3
        assert figures[kind]["max"] < 3


def test_ctrl_c_after_any_call_leaves_the_history_whole_and_the_client_usable():
    """Promises 1 and 4: after each 301st call on each wire, in our code and in the libraries'; nothing is left open."""
    figures = figures_of("everywhere.py", 301)
    assert figures["left open"] == {"descriptors": 0, "threads": 0}
    assert all(count > 20 for count in figures["places"].values()), figures
