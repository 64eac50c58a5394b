"""Hosts that a run restarted before it was cut: they go down at a moment of their own, and come back.

A run that reads one of them just before would plan for a host that is gone in the next second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from rackwright.adapter.concurrency import sleep
from rackwright.adapter.run.poll import Reply, poll
from rackwright.concerns.endpoint.switch.rest_and_return import RESTART_JOB
from rackwright.hostside import host_script
from rackwright.loading.host import InventoryHost
from rackwright.paths import job_unit
from rackwright.record.progress import SELDOM

PAUSE = 2
"""Seconds between two looks."""

Look = Callable[[Sequence[InventoryHost]], Mapping[str, Reply]]


def _look(entries: Sequence[InventoryHost]) -> Mapping[str, Reply]:
    script = host_script("restart_seen", unit=job_unit(RESTART_JOB))
    return poll(entries, lambda _: script)


def await_restarts(
    entries: Sequence[InventoryHost], boots: Mapping[str, str], seconds: float, look: Look = _look
) -> None:
    """Wait until none of the hosts is about to restart; a host that stays away is the run's own to report.

    boots: by host, the boot that was to end; hosts without one are not looked at. seconds: how long at most.
    """
    pending = [entry for entry in entries if entry.name in boots]
    began, reported = time.monotonic(), float("-inf")
    while pending and time.monotonic() - began < seconds:
        replies = look(pending)
        why = {name: text for name, reply in replies.items() if (text := under_way(reply, boots[name]))}
        pending = [entry for entry in pending if entry.name in why]
        if pending and time.monotonic() - reported > SELDOM:
            reported = time.monotonic()
            for name, text in why.items():
                print(
                    f"rackwright: {name} {text}; waiting for it, {round(seconds - reported + began)} s at most",
                    flush=True,
                )
        if pending:
            sleep(PAUSE)


def under_way(reply: Reply, boot: str) -> str:
    """Return why a host is not to be read yet, as what follows its name; empty when it is not going to restart."""
    if reply.trouble:
        return f"got the order to restart, and is not back: {reply.trouble}"
    now, going = _words(reply.lines)
    return "still drains and restarts, as ordered" if now == boot and going == "yes" else ""


def _words(lines: Iterable[str]) -> tuple[str, str]:
    boot, _, going = next(iter(lines), "").partition(" ")
    return boot, going
