"""The picture of a report, ``docs/_static/report.png``: ``python docs/picture.py leakbound-report/report.html``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 1000, 2400  # the whole page, folded
TARGET = Path(__file__).parent / "_static" / "report.png"
SCHEMES = {"dark": 0, "light": 1}  # as Chromium numbers what a page finds as prefers-color-scheme
N_COLOURS = 256


def screen(page: Path, width: int, height: int, scheme: str = "light") -> Image.Image:
    """The top of a page as Chromium shows it on a light or a dark screen."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "page.png"
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
        flags.append(f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}")
        size = [f"--window-size={width},{height}", f"--screenshot={shot}"]
        subprocess.run(["chromium", *flags, *size, page.resolve().as_uri()], check=True, capture_output=True)
        with Image.open(shot) as image:
            return image.convert("RGB")


def save(image: Image.Image, target: Path) -> None:
    """Write a picture in 256 colours."""
    image.quantize(N_COLOURS, Image.Quantize.MAXCOVERAGE).save(target, optimize=True)


if __name__ == "__main__":
    save(screen(Path(sys.argv[1]), WIDTH, HEIGHT), TARGET)
