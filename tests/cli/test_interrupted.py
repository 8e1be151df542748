"""Ctrl-C while modules are imported: the exit code of Ctrl-C, and no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Sends Ctrl-C to its own process when a module is looked for.
PROGRAM = """
import os, signal, sys
import leakbound.__main__ as command
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["leakbound", "audit", "--dataset", "wine", "--n-models", "8", "--out", {out!r}]
command.main()
"""


@pytest.mark.by_day("leakbound.cli.main")
@pytest.mark.parametrize(
    "module", ["leakbound.cli.main", "typer", "leakbound.auditing.api", "numpy", "sklearn.ensemble"]
)
def test_ctrl_c_during_an_import(module, tmp_path):
    program = PROGRAM.format(module=module, out=str(tmp_path / "out"))
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (130, "")
    assert "Traceback" not in run.stderr
    assert run.stderr.startswith("leakbound: interrupted")
