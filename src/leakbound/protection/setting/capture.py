"""What a statistic of the user's prints while it sees the records in use: nobody gets to see it."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress

from leakbound.files.system import flush_c_streams

_DESCRIPTORS = (1, 2)  # standard output and standard error, whoever writes to them


@contextmanager
def silenced() -> Iterator[None]:
    """Send standard output, standard error and log records of this process nowhere, until the block ends.

    A message about the records in use would tell who they are. Replacing ``sys.stdout`` stops ``print`` alone; here the
    file descriptors are replaced, so that C code, child processes and ``sys.__stdout__`` are silent too. What other
    threads print meanwhile is lost as well.

    >>> with silenced():
    ...     n_bytes = os.write(1, b"who is in")
    >>> n_bytes
    9
    """
    log_level = logging.root.manager.disable
    _flush()
    copies: dict[int, int] = {}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in _DESCRIPTORS:
            with suppress(OSError):  # one that is closed has nobody who reads it
                copies[descriptor] = os.dup(descriptor)
                os.dup2(nowhere, descriptor)
        logging.disable(logging.CRITICAL)
        silent = io.StringIO()  # in a notebook sys.stdout has no descriptor
        with redirect_stdout(silent), redirect_stderr(silent):
            yield
    finally:
        logging.disable(log_level)
        _flush()  # what waits in a buffer goes nowhere as well
        for descriptor, copy in copies.items():
            os.dup2(copy, descriptor)
            os.close(copy)
        os.close(nowhere)


def _flush() -> None:
    """Empty the buffers of Python and of C."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):  # closed, or none at all
            stream.flush()  # pyright: ignore[reportOptionalMemberAccess]
    flush_c_streams()
