import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openagent import (
    APIError,
    ConfigError,
    InvalidResponseError,
    RetryConfig,
    StreamInterruptedError,
    Timeout,
    ToolError,
    TransportError,
    is_retryable_error,
    retry_with_backoff,
    retry_with_backoff_conditional,
)
from openagent.retry import LONGEST_RETRY_AFTER, pause


def busy(**facts):
    return APIError("busy", retryable=True, **facts)


class Flaky:
    """Fails so often, then returns."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"


def test_the_defaults_wait_out_the_loading_of_a_model():
    """design.md 7.10, err-01: tens of seconds in all."""
    config = RetryConfig()
    assert dataclasses.asdict(config) == {"max_attempts": 6, "initial_delay": 0.5, "max_delay": 30.0, "multiplier": 2.0}
    assert [config.delay(failures, chance=lambda: 1.0) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 4.0, 8.0]


CONFIGS = st.builds(
    RetryConfig,
    max_attempts=st.integers(1, 1000),
    initial_delay=st.floats(0, 86_400),
    max_delay=st.floats(0, 86_400),
    multiplier=st.floats(1, 1000),
)


@given(CONFIGS, st.integers(1, 100_000), st.floats(0, 1, exclude_max=True))
def test_a_delay_stays_within_its_bounds(config, failures, chance):
    """R-211 as replaced by design.md 7.10 (full jitter); B-29, B-46: max_delay is a hard ceiling."""
    delay = config.delay(failures, chance=lambda: chance)
    assert 0 <= delay <= config.max_delay
    assert delay <= config.initial_delay * config.multiplier ** (failures - 1) if failures < 30 else True


def test_the_jitter_is_full():
    """B-29: over 1000 samples."""
    config = RetryConfig(initial_delay=8.0, max_delay=10.0)
    samples = [config.delay(2) for _ in range(1000)]
    assert min(samples) < 1 < 9 < max(samples) < 10


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", -1),
        ("max_attempts", 1.5),
        ("max_attempts", True),
        ("max_attempts", "3"),
        ("max_attempts", None),
        ("initial_delay", -1),
        ("initial_delay", math.nan),
        ("initial_delay", math.inf),
        ("initial_delay", "1"),
        ("max_delay", -0.1),
        ("max_delay", None),
        ("max_delay", math.inf),
        ("multiplier", 0.5),
        ("multiplier", 1e9),
        ("multiplier", math.nan),
        ("multiplier", "2"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(name, value):
    """design.md 3; R-210 (no attempt at all)."""
    with pytest.raises(ConfigError, match=name) as caught:
        RetryConfig(**{name: value})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("error", "is_retryable"),
    [
        (busy(), True),
        (APIError("no", status=400), False),
        (TransportError("no", retryable=True), True),
        (Timeout("late", retryable=True), True),
        (StreamInterruptedError("cut", retryable=True), True),
        (StreamInterruptedError("cut", retryable=False), False),
        (InvalidResponseError("garbage"), False),
        (ConfigError("no"), False),
        (ToolError("no"), False),
        (ValueError("no"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_an_error_knows_whether_another_try_may_help(error, is_retryable):
    """R-213 as replaced by design.md 7.10."""
    assert is_retryable_error(error) is is_retryable


def test_there_is_a_pause_only_if_there_is_another_try():
    """R-210: max_attempts counts all tries."""
    config = RetryConfig(max_attempts=3, initial_delay=0)
    assert [pause(config, busy(), failures) for failures in (1, 2, 3, 4)] == [0.0, 0.0, None, None]
    assert pause(None, busy(), 1) is None
    assert pause(config, APIError("no"), 1) is None
    assert pause(RetryConfig(max_attempts=1), busy(), 1) is None


def test_the_wait_that_the_server_asks_for_is_honoured_up_to_two_minutes():
    """design.md 7.10: longer raises at once."""
    waits = [0.0, 1.5, LONGEST_RETRY_AFTER, LONGEST_RETRY_AFTER + 1, 86_400.0]
    assert [pause(RetryConfig(max_delay=1), busy(retry_after=wait), 1) for wait in waits] == [
        0.0,
        1.5,
        120.0,
        None,
        None,
    ]
    assert pause(RetryConfig(), APIError("no", retry_after=1.0), 1) is None


def test_an_operation_is_tried_until_it_works():
    """R-210: nothing is slept after the last try."""
    slept = []
    operation = Flaky(OSError("1"), ValueError("2"))
    config = RetryConfig(max_attempts=3, initial_delay=1.0)
    assert retry_with_backoff(operation, config, sleep=slept.append) == "done"
    assert (operation.calls, len(slept)) == (3, 2)
    assert all(0 <= wait <= most for wait, most in zip(slept, (1.0, 2.0), strict=True))


def test_the_last_error_is_raised():
    """R-210."""
    slept = []
    operation = Flaky(OSError("1"), OSError("2"), OSError("3"))
    with pytest.raises(OSError, match="2"):
        retry_with_backoff(operation, RetryConfig(max_attempts=2), sleep=slept.append)
    assert (operation.calls, len(slept)) == (2, 1)


def test_what_would_only_fail_again_is_not_tried_again():
    """R-212."""
    operation = Flaky(busy(), APIError("no", status=400), busy())
    with pytest.raises(APIError, match="no"):
        retry_with_backoff_conditional(operation, sleep=lambda seconds: None)
    assert operation.calls == 2
    with pytest.raises(OSError):
        retry_with_backoff_conditional(Flaky(OSError()), sleep=lambda seconds: None)


def test_the_caller_may_decide_what_is_tried_again():
    operation = Flaky(OSError("1"), ValueError("2"))
    with pytest.raises(ValueError, match="2"):
        retry_with_backoff(operation, is_retryable=lambda error: isinstance(error, OSError), sleep=lambda seconds: None)


def test_an_interrupt_is_never_an_error_to_try_again():
    """life-01."""
    operation = Flaky(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        retry_with_backoff(operation)
    assert operation.calls == 1
