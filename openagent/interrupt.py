"""A flag that also wakes what is waiting.

Owns: the flag, sleeping that can be cut short. Does not know: what is woken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Waker = Callable[[], None]

SLICE = 0.1  # seconds
PATIENCE = 0.2  # seconds


class Interrupt:
    """Like ``threading.Event``, but setting it also wakes those who asked for it.

    Safe to set from another thread and from a signal handler: no lock is taken.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._wakers: list[Waker] = []
        self._ringing: list[None] = []  # one for each thread that is waking now

    def set(self) -> None:
        """Interrupt what is going on."""
        self._ringing.append(None)  # before the flag: who sees that knows that somebody may still be waking
        try:
            self._is_set = True
            self.wake()
        finally:
            del self._ringing[-1:]

    def is_set(self) -> bool:
        """Whether it was set since the last ``clear``."""
        return self._is_set

    def clear(self) -> None:
        """Start anew, once those who are being woken are: the rest of a wake would cut the next request.

        That takes microseconds; a forked child, where the thread that was waking is gone, waits for ``PATIENCE``.
        """
        until = time.monotonic() + PATIENCE
        while self._ringing and time.monotonic() < until:
            time.sleep(0.0001)
        self._ringing.clear()
        self._is_set = False

    def wake(self) -> None:
        """Wake those who asked for it, without setting the flag."""
        for waker in tuple(self._wakers):
            waker()

    @contextmanager
    def waking(self, waker: Waker) -> Iterator[None]:
        """Within this context the function is called when the flag is set."""
        self._wakers.append(waker)
        try:
            yield
        finally:
            self._wakers.remove(waker)

    def sleep(self, seconds: float) -> None:
        """Sleep so long, or until woken."""
        # A plain lock, not an Event: Event.set() takes a lock that the interrupted thread may hold.
        lock = threading.Lock()
        lock.acquire()

        def ring() -> None:
            try:
                lock.release()
            except RuntimeError:  # rung twice
                pass

        until = time.monotonic() + seconds
        with self.waking(ring):
            # In slices: where a library (polars) has signals restart what they interrupt, one long wait
            # would not feel Ctrl-C.
            while not self._is_set and (left := until - time.monotonic()) > 0:
                if lock.acquire(timeout=min(left, SLICE)):
                    return
