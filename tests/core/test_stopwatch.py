"""A training that is only timed."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress

import pytest

from leakscope.core.stopwatch import made, timed


def test_what_ends_in_time_is_whole():
    with timed(5.0) as stopwatch:
        time.sleep(0.01)
    assert stopwatch.is_whole
    assert 0.01 <= stopwatch.whole < 1


def test_what_is_stopped_is_extrapolated_from_its_steps():
    """The first step takes longer, and counts once."""
    with timed(0.15) as stopwatch:
        time.sleep(0.05)
        for step in range(1, 1001):
            time.sleep(0.01)
            made(step, 1000)
    assert not stopwatch.is_whole
    done, total = stopwatch.n_steps
    assert (2 <= done <= 10, total) == (True, 1000)
    assert 10 <= stopwatch.whole < 40


def test_without_steps_nothing_is_known():
    with timed(0.05) as stopwatch:
        while True:
            pass
    assert (stopwatch.is_whole, stopwatch.whole, stopwatch.n_steps) == (False, None, None)


def test_code_that_catches_errors_is_stopped_all_the_same():
    with timed(0.05) as stopwatch:
        try:
            time.sleep(5)
        except Exception:
            time.sleep(5)
    assert stopwatch.seconds < 2


def test_code_that_catches_everything_is_not_taken_to_be_whole():
    with timed(0.05) as stopwatch, suppress(BaseException):
        time.sleep(5)
    assert not stopwatch.is_whole


def test_errors_pass_and_the_signal_is_given_back():
    number = getattr(signal, "SIGALRM", signal.SIGINT)
    before = signal.getsignal(number)
    with pytest.raises(ZeroDivisionError), timed(5.0):
        raise ZeroDivisionError
    assert signal.getsignal(number) is before


def test_another_thread_runs_to_its_end():
    seen = []

    def work():
        with timed(0.01) as stopwatch:
            time.sleep(0.05)
        seen.append(stopwatch.is_whole)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True]


def test_steps_that_nobody_times_cost_nothing():
    made(1, 2)
