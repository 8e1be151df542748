"""Whether what is built holds what it must: ``python -m tests.dist_files FOLDER`` reads a wheel and an sdist there.

It builds the wheel anew from the sdist alone, compares the two wheels and the sources byte by byte, prints the sizes,
and exits with 1 if a file is missing, unexpected or different. With ``SOURCE_DATE_EPOCH`` the two wheels are one file.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
METADATA = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt", "licenses/LICENSE")
OF_THE_SDIST = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "MANIFEST.in")


def is_source(path: Path | PurePosixPath) -> bool:
    """Tell whether a file belongs to the package: not what Python or an installation has left beside it."""
    return "__pycache__" not in path.parts and not any(part.endswith(".egg-info") for part in path.parts)


def sources(folder: Path = SOURCES) -> dict[str, bytes]:
    """Read all files of the package, under their names in a wheel."""
    files = [path for path in folder.rglob("*") if path.is_file() and is_source(path.relative_to(folder))]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def of_wheel(wheel: Path) -> dict[str, bytes]:
    """Read all files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def of_sdist(sdist: Path) -> dict[str, bytes]:
    """Read all files of an sdist, without the name of its folder."""
    files: dict[str, bytes] = {}
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            stream = archive.extractfile(member)
            if stream is not None:
                files[member.name.partition("/")[2]] = stream.read()
    return files


def differences(found: dict[str, bytes], expected: dict[str, bytes], where: str) -> list[str]:
    """Say which files are missing, unexpected or different."""
    missing = [f"{where}: {name} is missing" for name in sorted(expected.keys() - found.keys())]
    unexpected = [f"{where}: {name} is unexpected" for name in sorted(found.keys() - expected.keys())]
    both = sorted(found.keys() & expected.keys())
    different = [f"{where}: {name} is different" for name in both if found[name] != expected[name]]
    return missing + unexpected + different


def wheel_complaints(wheel: Path, folder: Path = SOURCES) -> list[str]:
    """Compare a wheel with the sources that it was built from."""
    files = of_wheel(wheel)
    package = {
        name: content for name, content in files.items() if not PurePosixPath(name).parts[0].endswith(".dist-info")
    }
    metadata = {name.partition("/")[2] for name in files.keys() - package.keys()}
    complaints = differences(package, sources(folder), wheel.name)
    complaints += [f"{wheel.name}: {name} is missing" for name in METADATA if name not in metadata]
    return complaints


def sdist_complaints(sdist: Path, folder: Path = SOURCES) -> list[str]:
    """Compare an sdist with the sources, and with what else the wheel is built from."""
    files = of_sdist(sdist)
    package = {
        name: content for name, content in files.items() if name.startswith("src/") and is_source(PurePosixPath(name))
    }
    expected = {f"src/{name}": content for name, content in sources(folder).items()}
    complaints = differences(package, expected, sdist.name)
    complaints += [f"{sdist.name}: {name} is missing" for name in OF_THE_SDIST if name not in files]
    own = (*OF_THE_SDIST, "PKG-INFO", "setup.cfg")
    complaints += [
        f"{sdist.name}: {name} is unexpected"
        for name in sorted(files)
        if not name.startswith("src/") and name not in own
    ]
    return complaints


def build(what: str, source: Path, target: Path, *, isolated: bool = True) -> Path:
    """Build a ``wheel`` or an ``sdist`` from a folder, and return its path."""
    how = [] if isolated else ["--no-isolation"]
    command = [sys.executable, "-m", "build", f"--{what}", *how, "--outdir", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"no {what} of {source}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return only(target, "*.whl" if what == "wheel" else "*.tar.gz")


def wheel_of_sdist(sdist: Path, target: Path, *, isolated: bool = True) -> Path:
    """Build the wheel from what is in an sdist and from nothing else."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
        (unpacked,) = Path(folder).iterdir()
        return build("wheel", unpacked, target, isolated=isolated)


def only(folder: Path, pattern: str) -> Path:
    """Return the one file of a pattern in a folder."""
    files = sorted(folder.glob(pattern))
    if len(files) != 1:
        raise ValueError(f"expected one {pattern} in {folder}, found {len(files)}")
    return files[0]


def size(path: Path) -> str:
    """Describe a file: its size, and the start of its digest."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, sha256 {digest[:16]}"


def main() -> int:
    """Check the wheel and the sdist of the folder that the command line names."""
    if len(sys.argv) != 2:
        raise SystemExit("expected one folder with a wheel and an sdist: python -m tests.dist_files dist")
    folder = Path(sys.argv[1])
    wheel, sdist = only(folder, "*.whl"), only(folder, "*.tar.gz")
    complaints = wheel_complaints(wheel) + sdist_complaints(sdist)
    with tempfile.TemporaryDirectory() as target:
        rebuilt = wheel_of_sdist(sdist, Path(target))
        complaints += differences(of_wheel(rebuilt), of_wheel(wheel), "the wheel of the sdist")
        print(size(wheel), size(sdist), f"of the sdist alone: {size(rebuilt)}", sep="\n")
    print(*complaints, f"{len(of_wheel(wheel))} files in the wheel, {len(complaints)} complaints", sep="\n")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
