"""What the bytes of a result may depend on besides its plan: the kind of machine that computed it.

The same plan gives the same bytes on machines of one kind. Elsewhere, another instruction set or another library may
round the last digit differently; a chunk therefore says on which kind of machine it was computed.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

THREADS_OF_A_TASK = 1  # BLAS threads of each task, which the pool sets: results do not depend on the cores of a machine
NVIDIA = Path("/proc/driver/nvidia")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")  # that compute; one that is not installed is left out


@dataclass(frozen=True)
class Machine:
    """A kind of machine.

    >>> sorted(this_machine().facts)
    ['blas', 'cpu', 'features', 'system', 'threads', 'versions']
    >>> len(this_machine().digest)
    16
    """

    facts: Mapping[str, Any]  # plain JSON, without a name of a host, user or folder

    @property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the facts."""
        text = json.dumps(self.facts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.facts["versions"].items())
        features = " ".join(self.facts["features"])
        return f"{self.facts['system']} {self.facts['cpu']} ({features}), {self.facts['blas']}, {versions}"


@lru_cache(maxsize=1)
def this_machine() -> Machine:
    """Describe the kind of the machine that runs this process.

    A library counts by its installed version, whether or not it has been imported: the same environment is always of
    one kind.
    """
    numpy_build: Any = np.show_config(mode="dicts")
    simd = numpy_build["SIMD Extensions"]
    facts = {
        "system": platform.system(),
        "cpu": platform.machine(),
        "features": [*simd.get("baseline", ()), *simd.get("found", ())],
        "blas": _blas(numpy_build),
        "threads": THREADS_OF_A_TASK,
        "versions": {"python": platform.python_version(), **_versions()},
    }
    gpus = _gpus(NVIDIA)
    return Machine(facts | {"gpus": gpus} if gpus else facts)


def _gpus(driver: Path) -> list[str]:
    """List the models of the GPUs, each once, and the version of their driver; nothing where there is none.

    The driver of NVIDIA writes them into files on Linux. So PyTorch need not be imported, which takes seconds, and a
    process that has not imported it is of the same kind as one that has.
    """
    models = set()
    for file in driver.glob("gpus/*/information"):
        models |= {line.split(":", 1)[1].strip() for line in _lines(file) if line.startswith("Model:")}
    version = [found[0] for line in _lines(driver / "version")[:1] if (found := re.findall(r"\d+\.\d+[.\d]*", line))]
    return [*sorted(models), *(f"driver {number}" for number in version)] if models else []


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _blas(numpy_build: Mapping[str, Any]) -> str:
    """Name the BLAS that numpy calls, its version, and the processor whose kernels it has chosen."""
    built_with = numpy_build["Build Dependencies"]["blas"]
    words = [built_with.get("name", "unknown"), built_with.get("version", "")]
    loaded = [library for library in threadpool_info() if library["user_api"] == "blas"]
    # scipy may bring, and load later, a BLAS of its own: that of numpy is there from the beginning
    of_numpy = [library for library in loaded if "numpy" in library["filepath"]] or loaded
    words += sorted({library.get("architecture") or "" for library in of_numpy})
    return " ".join(word for word in words if word)


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
