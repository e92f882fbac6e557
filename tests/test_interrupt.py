import signal
import threading
import time

import pytest

from openagent.interrupt import Interrupt


def elapsed(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start


def test_it_is_set_until_it_is_cleared():
    """R-70: idempotent."""
    interrupt = Interrupt()
    seen = [interrupt.is_set()]
    for step in (interrupt.set, interrupt.set, interrupt.clear, interrupt.clear):
        step()
        seen.append(interrupt.is_set())
    assert seen == [False, True, True, False, False]


def test_setting_it_wakes_those_who_asked_for_it():
    interrupt, woken = Interrupt(), []
    with interrupt.waking(lambda: woken.append("a")), interrupt.waking(lambda: woken.append("b")):
        interrupt.set()
        interrupt.wake()
    interrupt.set()
    assert woken == ["a", "b", "a", "b"]


def test_waking_does_not_set_it():
    interrupt, woken = Interrupt(), []
    with interrupt.waking(lambda: woken.append(1)):
        interrupt.wake()
    assert (woken, interrupt.is_set()) == ([1], False)


def test_nobody_is_woken_after_their_context_even_if_it_failed():
    interrupt, woken = Interrupt(), []
    with pytest.raises(ValueError):
        with interrupt.waking(lambda: woken.append(1)):
            raise ValueError
    interrupt.set()
    assert woken == []


def test_the_same_function_may_wait_twice():
    interrupt, woken = Interrupt(), []

    def waker():
        woken.append(1)

    with interrupt.waking(waker):
        with interrupt.waking(waker):
            pass
        interrupt.set()
    assert woken == [1]


def test_a_sleep_ends_by_itself():
    assert 0.01 <= elapsed(lambda: Interrupt().sleep(0.02)) < 5


def test_a_sleep_is_cut_short_from_another_thread():
    """design.md, promise 4."""
    interrupt = Interrupt()
    timer = threading.Timer(0.02, interrupt.set)
    timer.start()
    assert elapsed(lambda: interrupt.sleep(60)) < 5
    timer.join()
    assert interrupt.is_set()


def test_a_sleep_does_not_begin_when_it_is_already_set():
    interrupt = Interrupt()
    interrupt.set()
    assert elapsed(lambda: interrupt.sleep(60)) < 5


def test_a_sleep_can_be_woken_many_times():
    interrupt = Interrupt()

    def many():
        for _ in range(100):
            interrupt.set()

    timer = threading.Timer(0.02, many)
    timer.start()
    interrupt.sleep(60)
    timer.join()
    interrupt.clear()
    assert elapsed(lambda: interrupt.sleep(0.01)) < 5


def test_it_can_be_set_from_a_signal_handler_in_the_sleeping_thread():
    """No lock is taken that the interrupted code may hold."""
    interrupt = Interrupt()
    before = signal.signal(signal.SIGALRM, lambda *_: interrupt.set())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert elapsed(lambda: interrupt.sleep(60)) < 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupt.is_set()


def test_ctrl_c_ends_a_sleep():
    """design.md, promise 4: and nobody waits for the flag any more."""
    interrupt = Interrupt()

    def interrupted(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupted)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            interrupt.sleep(60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    interrupt.set()


def test_setting_it_while_others_come_and_go_wakes_every_sleeper():
    """R-70: thread-safe."""
    interrupt, done = Interrupt(), threading.Event()

    def set_again_and_again():
        while not done.is_set():
            interrupt.wake()

    setter = threading.Thread(target=set_again_and_again)
    setter.start()
    try:
        sleepers = [threading.Thread(target=lambda: [interrupt.sleep(60) for _ in range(50)]) for _ in range(4)]
        for sleeper in sleepers:
            sleeper.start()
        for sleeper in sleepers:
            sleeper.join(20)
        assert not any(sleeper.is_alive() for sleeper in sleepers)
    finally:
        done.set()
        setter.join()


def test_clear_waits_for_a_wake_that_is_not_over():
    """Else what is left of it would cut the next request: one in a few hundred broke off right after an interrupt."""
    interrupt, entered, go, order = Interrupt(), threading.Event(), threading.Event(), []

    def waker():
        entered.set()
        go.wait(5)
        order.append("woken")

    with interrupt.waking(waker):
        threading.Thread(target=interrupt.set).start()
        assert entered.wait(5)
        assert interrupt.is_set()
        threading.Timer(0.05, go.set).start()
        interrupt.clear()
        order.append("cleared")
    assert (order, interrupt.is_set()) == (["woken", "cleared"], False)


def test_a_wake_that_never_ends_does_not_hold_the_next_request_for_ever():
    """As in a forked child, where the thread that woke is not there any more."""
    interrupt = Interrupt()
    interrupt._ringing.append(None)
    interrupt.clear()
    assert not interrupt.is_set()
