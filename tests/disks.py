"""A disk that can be full or read-only."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


class Disk:
    """A small file system in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mount(self, options: str) -> None:
        """Mount it, or mount it anew with other options."""
        words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)]
        made = subprocess.run(words, capture_output=True, text=True, check=False)
        if made.returncode and os.environ.get("LEAKBOUND_NO_MOUNT") == "1":
            pytest.skip("LEAKBOUND_NO_MOUNT: no small disk can be mounted here")
        assert made.returncode == 0, f"{made.stderr}; set LEAKBOUND_NO_MOUNT=1 where mounting is not permitted"

    def used(self) -> int:
        """In kilobytes."""
        room = os.statvfs(self.folder)
        return (room.f_blocks - room.f_bfree) * room.f_frsize // 1024
