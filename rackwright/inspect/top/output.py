"""`rackwright top` once its command line is understood: live, once, or as a page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.live import Live

from rackwright.adapter.concurrency import sleep
from rackwright.adapter.run.readings import Readings, Script
from rackwright.inspect.top.collect import TopFleet
from rackwright.inspect.top.keys import quit_pressed
from rackwright.inspect.top.rows import TopRow, rows_of
from rackwright.inspect.top.screen import Title, draw
from rackwright.inspect.top.script import OVER, top_script
from rackwright.loading.host import InventoryHost
from rackwright.messages import listed, waiting
from rackwright.record.quarantine import load_quarantine
from rackwright.record.view.report.writing import write_privately
from rackwright.settings.host_settings import HostSettings
from rackwright.tables import shown_width

INTERVAL = 2.0
"""Seconds between two readings of a host."""
REFRESH = 0.5
"""Seconds between two pictures."""
TICK = 0.1
"""Seconds between two looks for new readings, where nothing is drawn."""
ENOUGH = 2
"""Readings of each host before the only picture: a rate needs two."""
PATIENCE = 60.0
"""Seconds that the only picture waits for slow hosts."""
UNLIMITED = 1_000_000
"""Lines of a picture that no terminal cuts."""
PLAIN = 160
"""Columns of a picture without a terminal."""


class Top:
    """A fleet that is being read."""

    def __init__(
        self, inventory: str, root: Path, entries: Sequence[InventoryHost], settings: Mapping[str, HostSettings]
    ) -> None:
        self.inventory, self.names = inventory, list(settings)
        quarantined = {host: f"since {one.since}, {one.why}" for host, one in load_quarantine(root).items()}
        self.fleet = TopFleet(settings, quarantined)
        made = {id(one): _script(one) for one in settings.values()}
        scripts = {name: made[id(one)] for name, one in settings.items()}
        self.readings = Readings(entries, scripts, self.fleet.next_request, INTERVAL)

    def live(self) -> None:
        """Draw until a key ends it. Raises KeyboardInterrupt."""
        self.readings.start()
        console = Console()
        try:
            with quit_pressed() as is_over, Live(console=console, screen=True, auto_refresh=False) as live:
                over = False
                while not over:
                    self.fleet.take(self.readings.new())
                    title = self._title("q ends")
                    live.update(draw(self._rows(title.time), title, console.height, console.width), refresh=True)
                    over = is_over(REFRESH)
        finally:
            self.readings.stop()

    def once(self) -> None:
        """Read every host until a rate is known, and print one picture. Raises KeyboardInterrupt."""
        title, rows = self.read()
        console = Console(width=shown_width() or PLAIN)
        with console.capture() as capture:
            console.print(draw(rows, title, UNLIMITED, console.width))
        print("\n".join(row.rstrip() for row in capture.get().splitlines()))

    def page(self, out: Path) -> None:
        """Do the same as one HTML file. Raises RackwrightError where it cannot be written."""
        from rackwright.inspect.top.page import page  # noqa: PLC0415 - only a page needs templates

        title, rows = self.read()
        write_privately(out, page(rows, title))

    def read(self) -> tuple[Title, list[TopRow]]:
        """Return all rows, once a rate is known of every host, or once slow ones have been waited for."""
        self._read_enough()
        title = self._title()
        return title, self._rows(title.time)

    @property
    def is_whole(self) -> bool:
        """True if every host was read."""
        return all(host.status_at is not None and not host.trouble for host in self.fleet.hosts)

    def _read_enough(self) -> None:
        self.readings.start()
        until = time.monotonic() + PATIENCE
        try:
            with waiting(self._missing):
                while not self.fleet.is_complete(ENOUGH) and time.monotonic() < until:
                    sleep(TICK)
                    self.fleet.take(self.readings.new())
        finally:
            self.readings.stop()

    def _missing(self) -> str:
        return listed([host.name for host in self.fleet.hosts if not host.looks and not host.trouble], len(self.names))

    def _rows(self, now: datetime) -> list[TopRow]:
        return rows_of(self.fleet.hosts, time.monotonic(), now)

    def _title(self, keys: str = "") -> Title:
        return Title(self.inventory, datetime.now(UTC), keys)


def _script(settings: HostSettings) -> Script:
    return Script(top_script(settings), lambda request: top_script(settings, request), OVER)
