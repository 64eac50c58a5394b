"""The looks of lab hosts during tests, as rows of JSON; tests/programs/test_recorded_signs.py replays some of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rackwright_lab.lab import Lab

STATES, WATCHED = "run/rackwright/watch", "etc/rackwright/watched"
LIMITS = ("engine", "after", "full_after", "load", "fresh", "batch")
"""What the deploy wrote of an endpoint, and a look judges by."""
SECONDS = 5.0
"""The looks come every 30 s."""


@contextmanager
def recorded(lab: Lab, file: Path, test: str) -> Iterator[None]:
    """Append each look's state of all endpoints of a lab to a file of JSON lines, as long as a test runs."""
    over, last = threading.Event(), dict[str, str]()

    def record() -> None:
        while not over.wait(SECONDS):
            _append(lab, file, test, last)

    thread = threading.Thread(target=record, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _append(lab, file, test, last)


def _append(lab: Lab, file: Path, test: str, last: dict[str, str]) -> None:
    for name, state in _states(lab):
        look = _values(state)
        if look.get("looked") and last.get(name) != look["looked"]:
            last[name] = look["looked"]
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a") as rows:
                rows.write(json.dumps({"test": test, "endpoint": name, **look}) + "\n")


def _states(lab: Lab) -> Iterator[tuple[str, str]]:
    """Yield host and endpoint, and its state and limits; a host that boots or ends has none."""
    for host in lab.hosts:
        with suppress(OSError):
            if (leader := host.machine.leader()) is not None:
                root = Path("/proc", str(leader), "root")
                for file in sorted((root / WATCHED).iterdir()):
                    limits = {key: value for key, value in _values(file.read_text()).items() if key in LIMITS}
                    state = (root / STATES / file.name).read_text()
                    yield f"{host.name}/{file.name}", state + "".join(f"{key}={limits[key]}\n" for key in limits)


def _values(text: str) -> dict[str, str]:
    return dict(row.split("=", 1) for row in text.splitlines() if "=" in row)
