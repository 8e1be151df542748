"""The most memory that a process has held."""

from __future__ import annotations

from pathlib import Path


def peak_bytes() -> int:
    """Read the largest resident size of this program (Linux).

    `resource.getrusage` is no help here: in a child process it starts from what the parent held.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    kibibytes = next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kibibytes) * 1024
