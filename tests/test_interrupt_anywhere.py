"""A short version of ``tests/soak/interrupts.py``: real signals at random moments of a conversation with tools."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parent / "soak" / "interrupts.py"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
def test_a_signal_at_any_moment_leaves_the_history_whole_and_the_client_usable():
    """Issue 4.4, promises 1 and 4: Ctrl-C and interrupt(), on each wire; nothing is run twice or left open."""
    child = subprocess.run([sys.executable, str(SOAK), "10"], capture_output=True, text=True, timeout=120)
    assert child.returncode == 0, child.stderr
    figures = json.loads(child.stdout)
    assert figures["left open"] == {"descriptors": 0, "threads": 0}
    for kind in ("ctrl-c", "interrupt"):
        assert figures[kind]["count"] > 3
        assert figures[kind]["max"] < 3
