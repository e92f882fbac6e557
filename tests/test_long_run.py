"""A short version of ``tests/soak/long_run.py``: nothing grows with the number of exchanges."""

import os

import pytest
from soak.long_run import run


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
def test_three_hundred_exchanges_with_faults_leave_nothing_behind():
    """Issue 4.8: memory, descriptors and threads are flat, connections are used again."""
    figures = run(300, warm_up=100)
    assert set(figures.outcomes) >= {"ended", "left", "interrupted", "APIError", "StreamInterruptedError"}
    assert figures.memory_after - figures.memory_before < 5_000_000
    assert figures.descriptors[1] <= figures.descriptors[0]
    assert figures.threads[1] <= figures.threads[0]
    # An answer that is left, interrupted or broken costs its connection: two of five, and the faults.
    assert figures.connections < 300
