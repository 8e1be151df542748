"""The way out."""

from __future__ import annotations

import signal
import threading

import pytest

from leakbound.cli import main as cli


def test_a_thread_that_fails_after_ctrl_c_is_not_heard() -> None:
    """Nor is anything left behind: pytest's own hook would make an error of it."""
    before = threading.excepthook, signal.getsignal(signal.SIGINT)
    with cli._quiet_after_ctrl_c():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        feeding = threading.Thread(target={}.pop, args=("no such call",))
        feeding.start()
        feeding.join()
    assert (threading.excepthook, signal.getsignal(signal.SIGINT)) == before
