"""Makes the pictures of a real rollout, its live view (SVG) and its report (PNG), and one of a fleet (SVG).

`python scripts/pictures.py` draws the record in docs/pictures again; it needs chromium (scripts/browser).
For a new record, on a lab:

    rackwright lab up --hosts 4 --bare 2
    pyinfra inventory/lab.py deploy.py -y
    rackwright rollout inventory/lab.py -y --wave 2 --max-unavailable 2 --bake 8    # after a change of an engine option
    python scripts/pictures.py runs/ID.jsonl

The picture of `rackwright top` is drawn from readings of lab hosts; for new ones:

    python scripts/pictures.py --fleet inventory/lab.py

The record is stored beside the pictures with another user's name, and the hash of the page that was photographed.
tests/unit/test_pictures.py draws the live view again, and compares the page with its hash.
"""

from __future__ import annotations

import argparse
import getpass
import hashlib
import io
import json
import re
import shutil
import socket
import subprocess
import tempfile
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from rackwright import __version__
from rackwright.adapter.run.session import chosen_hosts
from rackwright.cli.status import pinned
from rackwright.inspect.top.output import Top
from rackwright.inspect.top.rows import Fact, TopRow
from rackwright.inspect.top.screen import Title
from rackwright.inspect.top.screen import draw as draw_fleet
from rackwright.loading.files import site_root
from rackwright.record.journal import Event, read_record
from rackwright.record.view.report import page
from rackwright.record.view.screen import draw
from rackwright.record.view.timeline import Timeline
from rackwright.record.view.timeline_events import add_event, timeline_of

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
LIVE, REPORT = PICTURES / "live-view.svg", PICTURES / "report.png"
FLEET, TOP = PICTURES / "fleet.json", PICTURES / "top.svg"
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
    options.add_argument("--fleet", metavar="INVENTORY", help="lab hosts to read for the picture of `rackwright top`")
    typed = options.parse_args()
    if typed.record:
        keep(typed.record)
    if typed.fleet:
        keep_fleet(typed.fleet)
    TOP.write_text(top_view())
    LIVE.write_text(live_view(read_record(stored_record())))
    photograph(report(), REPORT)
    PHOTOGRAPHED.write_text(sum_of(report()))
    for path in (LIVE, REPORT, TOP):
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


# -- the fleet


def keep_fleet(inventory: str) -> None:
    """Read hosts until their rates are known, and put the rows beside the pictures, with another user's name."""
    site, entries = site_root(Path(inventory)), chosen_hosts(inventory, [])
    top = Top(inventory, site, entries, pinned(entries, site))
    title, rows = top.read()
    stored = {"inventory": inventory, "time": title.time.isoformat(), "rows": [asdict(row) for row in rows]}
    FLEET.write_text(re.sub(rf"{getpass.getuser()}@{socket.gethostname()}", WHO, json.dumps(stored, indent=1)) + "\n")


def top_view() -> str:
    """Return the stored fleet on the product's own screen, as SVG that fetches nothing."""
    stored = json.loads(FLEET.read_text())
    rows = [TopRow(**{**row, "hosts": tuple(row["hosts"]), "facts": _facts(row)}) for row in stored["rows"]]
    title = Title(stored["inventory"], datetime.fromisoformat(stored["time"]), "q ends")
    console = Console(
        record=True, file=io.StringIO(), color_system="truecolor", no_color=False, width=COLUMNS, height=len(rows) + 6
    )
    console.print(draw_fleet(rows, title, len(rows) + 6, COLUMNS))
    return without_fonts(console.export_svg(title=f"rackwright top {stored['inventory']}", unique_id="fleet"))


def _facts(row: dict[str, Any]) -> tuple[Fact, ...]:
    return tuple(Fact(**fact) for fact in row["facts"])


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
