"""Makes README's two pictures from the record of a real rollout: its live view (SVG) and its report (PNG).

`python scripts/pictures.py` draws the record in docs/pictures again; it needs chromium (scripts/browser).
For a new record, on a lab:

    rackwright lab up --hosts 4 --bare 2
    pyinfra inventory/lab.py deploy.py -y
    rackwright rollout inventory/lab.py -y --wave 2 --max-unavailable 2 --bake 8    # after a change of an engine option
    python scripts/pictures.py runs/ID.jsonl

The record is kept beside the pictures with another user's name, and the hash of the page that was photographed.
tests/unit/test_pictures.py draws the live view again, and compares the page with its hash.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console

from rackwright import __version__
from rackwright.record.journal import Event, read_record
from rackwright.record.view.report import page
from rackwright.record.view.screen import draw
from rackwright.record.view.timeline import Timeline
from rackwright.record.view.timeline_events import add_event, timeline_of

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
LIVE, REPORT = PICTURES / "live-view.svg", PICTURES / "report.png"
PHOTOGRAPHED = PICTURES / "report.sha256"
WHO = "ops@deploy1"
COLUMNS, LINES = 118, 14
WINDOW = (1180, 1030)
"""Pixels of the report that are shown."""
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1")


def main() -> None:
    """Draw both pictures, of the record given as an argument or of the one stored with them."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("record", nargs="?", type=Path, help="runs/ID.jsonl of a rollout")
    if record := options.parse_args().record:
        keep(record)
    LIVE.write_text(live_view(read_record(stored_record())))
    photograph(report(), REPORT)
    PHOTOGRAPHED.write_text(sum_of(report()))
    for path in (LIVE, REPORT):
        print(f"{path}: {path.stat().st_size} bytes")


def stored_record() -> Path:
    """Return the record stored with the pictures. Raises StopIteration when it is missing."""
    return next(PICTURES.glob("*.jsonl"))


def keep(record: Path) -> None:
    """Put a record beside the pictures instead of the one there, without what tells of the machine that made it."""
    events = [_plain(event) for event in read_record(record) if event["kind"] != "process"]
    for path in PICTURES.glob("*.jsonl"):
        path.unlink()
    (PICTURES / record.name).write_text("".join(f"{json.dumps(event)}\n" for event in events))


def _plain(event: Event) -> Event:
    public = {key: value for key, value in event.items() if key not in ("process", "deploy", "data", "inventory")}
    return {**public, "who": WHO} if "who" in public else public


# -- the live view


def live_view(events: list[Event]) -> str:
    """Return the product's own screen at the fullest moment of a run, as SVG that fetches nothing."""
    size = {"width": COLUMNS, "height": LINES}
    console = Console(record=True, file=io.StringIO(), color_system="truecolor", no_color=False, **size)
    timeline = timeline_of(events[: fullest(events) + 1])
    console.print(draw(timeline, timeline.now or 0.0, LINES, COLUMNS))
    return without_fonts(console.export_svg(title=timeline.what, unique_id="rollout"))


def fullest(events: list[Event]) -> int:
    """Return the last event after which the hosts do as many different things as they ever do."""
    timeline, best, most = Timeline(), 0, 0
    for number, event in enumerate(events):
        add_event(timeline, event)
        words = {host.phase or host.state for host in timeline.hosts.values()}
        if timeline.waves and len(words) >= most:
            best, most = number, len(words)
    return best


def without_fonts(svg: str) -> str:
    """Remove the fonts: a picture in a page must fetch nothing, and any monospaced font will do."""
    plain = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")
    return "".join(f"{row.rstrip()}\n" for row in plain.splitlines())


# -- the report


def report() -> str:
    """Return the report of the record stored with the pictures, as a page."""
    return page(timeline_of(read_record(stored_record())), stored_record().stem)


def sum_of(html: str) -> str:
    """Return the hash of a page; another version of Rackwright alone is no reason for another picture."""
    plain = html.replace(f"rackwright {__version__}", "rackwright VERSION")
    return hashlib.sha256(plain.encode()).hexdigest() + "\n"


def photograph(html: str, out: Path) -> None:
    """Write the upper part of a page as PNG. Raises FileNotFoundError without chromium, else CalledProcessError."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise FileNotFoundError("chromium is not here; next: scripts/browser")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        path.write_text(html)
        size, profile = f"--window-size={WINDOW[0]},{WINDOW[1]}", f"--user-data-dir={folder}/profile"
        words = [chromium, *FLAGS, size, profile, f"--screenshot={out}", path.as_uri()]
        subprocess.run(words, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
