"""Pictures as PNG: drawn by Pillow in aiperf's environment, which every bench has, so that ours stays light."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rackwright.fleet.bench.aiperf.environment import without_ours
from rackwright.fleet.bench.report.shapes import Picture
from rackwright.messages import RackwrightError, printable

WRITER = Path(__file__).with_name("png_writer.py")
SCALE = 2
"""Dots to a pixel of the screen: for print and for fine screens."""
SECONDS = 120


def write_png(python: Path, pictures: Sequence[tuple[Picture, Path]]) -> None:
    """Write each picture to its path. python: aiperf's. Raises RackwrightError."""
    told = [{**asdict(picture), "path": str(path)} for picture, path in pictures]
    asked = json.dumps({"scale": SCALE, "pictures": told})
    try:
        done = subprocess.run(
            [str(python), "-P", str(WRITER)],
            env=without_ours(os.environ),
            input=asked,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        why = done.stderr.strip().splitlines()[-1:] if done.returncode else []
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        failed, why = True, [str(error)]
    if failed:
        raise RackwrightError(
            f"the PNG pictures could not be drawn: {printable(''.join(why)) or 'no reason given'}; page, SVG and "
            f"record are there; next: rm -r {python.parents[1]}, and the next bench makes aiperf's environment anew",
            code="RW1540",
        )
