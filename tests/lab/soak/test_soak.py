"""Two hosts that switch, roll back and reboot for a long time: after each nothing is left to do (`make soak`)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.conftest import Run, Site
from tests.lab.test_deploy import ask

MINUTES = float(os.environ.get("RACKWRIGHT_SOAK_MINUTES", "60"))
pytestmark = [pytest.mark.lab, pytest.mark.timeout(60 * MINUTES + 3600)]

LEFT_OVERS = """
systemctl list-units --failed --plain --no-legend
systemctl list-units --plain --no-legend 'rackwright-job-*' 'rackwright-guard-*'
cat /run/rackwright/lease 2>/dev/null || true
"""
"""What must print nothing on a host at rest."""
RELEASES = "ls /var/lib/rackwright/endpoints/llm/releases"


def asking(interval: int) -> list[str]:
    """Options of a deploy that asks for this release."""
    return ["-y", "--data", f"engine={json.dumps({'stream_interval': interval})}"]


def well(run: Run) -> Run:
    assert run.status == 0, run.output
    return run


def assert_at_rest(site: Site, interval: int) -> None:
    """Another run has nothing to do, the endpoints answer, and nothing piles up."""
    assert well(site.deploy(*asking(interval))).changed == []
    for host in site.lab.hosts:
        assert "42" in ask(host, "What is 17 + 25? Answer with the number only.")
        assert host.run(LEFT_OVERS).stdout == ""
        assert len(host.run(RELEASES).stdout.split()) <= 2


def reboot(hosts: Sequence[Host]) -> None:
    for host in hosts:
        host.reboot()


def test_nothing_is_left_to_do_after_any_of_it(site: Site) -> None:
    ends, cycle, now, next_one = time.monotonic() + 60 * MINUTES, 0, 2, 3
    well(site.deploy(*asking(now)))
    while cycle == 0 or time.monotonic() < ends:
        cycle += 1
        well(site.deploy(*asking(next_one)))
        assert_at_rest(site, next_one)
        well(site.rackwright("rollback", "inventory/lab.py", "-y"))
        assert_at_rest(site, now)
        reboot(site.lab.hosts)
        assert_at_rest(site, now)
        now, next_one = next_one, now
        well(site.deploy(*asking(now)))
        site.runs.clear()
        print(f"cycle {cycle}: switched, rolled back, rebooted; nothing was left to do", flush=True)
