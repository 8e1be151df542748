"""The picture of a report, ``docs/_static/report.png``: ``python docs/picture.py leakscope-report/report.html``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 1000, 1950  # the summary, the claims, the attack and its ceiling
TARGET = Path(__file__).parent / "_static" / "report.png"


def picture(page: Path) -> None:
    """The top of the page as Chromium shows it on a light screen, in 256 colours."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "page.png"
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--blink-settings=preferredColorScheme=1"]
        size = [f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={shot}"]
        subprocess.run(["chromium", *flags, *size, page.resolve().as_uri()], check=True, capture_output=True)
        with Image.open(shot) as image:
            image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(TARGET, optimize=True)


if __name__ == "__main__":
    picture(Path(sys.argv[1]))
