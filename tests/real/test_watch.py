"""A real vLLM that hangs or dies between two deploys: its host finds it, restarts it once and proves it."""

from __future__ import annotations

import json
import time

import pytest

from rackwright.paths import act_unit
from rackwright_lab.hosts.host import Host
from tests.lab.calm import needs_preparing
from tests.lab.conftest import Site
from tests.lab.watching import STATE, looked
from tests.real.test_vllm import CHILD, ask, deploy, started, wait_for_another_start

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

CORE = "$(docker top rackwright-llm -eo pid,args | awk '/EngineCore/ {print $1}')"
ACTS = "cat /var/lib/rackwright/watch/acts-llm"
FOUND = 4 * 60 + 15
"""Seconds within which docs/how-to/watch.md promises that a hang of vLLM with room in its batch is found."""


@pytest.fixture
def host(site: Site, request: pytest.FixtureRequest) -> Host:
    """Return a host that serves, and whose watch restarts."""
    host = site.lab.hosts[-1]
    if needs_preparing(request):
        # The lab's other host serves nothing: the watch may take the last one down.
        facts = {"watch": {"act": "restart"}, "rollout": {"max_unavailable": len(site.lab.hosts)}}
        data = [part for key, value in facts.items() for part in ("--data", f"{key}={json.dumps(value)}")]
        run = deploy(site, *data, "--limit", host.name)
        assert run.status == 0, run.output
    return host


def wait_until_found(host: Host, seconds: int) -> None:
    """Wait until a look of the host's own timer has found that the engine hangs."""
    script = f"until grep -q ^fired=hang {STATE}; do sleep 1; done"
    host.run(f"timeout {seconds} sh -c '{script}' || {{ cat {STATE}; exit 1; }}", timeout=2 * seconds)


def wait_for_proof(host: Host, seconds: int = 900) -> None:
    """Wait until the act has ended with its proof."""
    host.run(
        f"for i in $(seq {seconds}); do {ACTS} | tail -n 1 | grep -q 'restart proven' && exit 0; sleep 1; done; exit 1",
        timeout=2 * seconds,
    )


@pytest.mark.hangs
def test_a_core_that_is_stopped_is_found_restarted_once_and_proven(host: Host) -> None:
    host.run(f"rm -f {ACTS.partition(' ')[2]}")
    assert looked(host, 700)["state"] in ("idle", "serving")
    before = started(host)
    host.run(f"kill -STOP {CORE}")
    assert host.run("curl -fsS -m 5 -o /dev/null http://127.0.0.1:8000/health", check=False).returncode == 0
    wait_until_found(host, FOUND)
    wait_for_proof(host)
    assert started(host) != before
    assert "42" in ask(host)
    assert host.run("ls /var/lib/rackwright/marks").stdout == ""
    assert len(host.run(ACTS).stdout.splitlines()) == 1


def test_a_core_that_is_killed_comes_back_by_its_unit_and_the_watch_leaves_it_alone(host: Host) -> None:
    acts, before = host.run(ACTS).stdout, started(host)
    host.run(CHILD)
    wait_for_another_start(host, before)
    # The watch's probe is the first request of this start: one of a single token ended this build's worker (look.sh).
    again = started(host)
    time.sleep(35)
    assert "42" in ask(host)
    assert started(host) == again
    assert looked(host)["state"] in ("idle", "serving")
    assert host.run(ACTS).stdout == acts
    assert host.run(f"systemctl is-active {act_unit('llm')}", check=False).stdout.strip() == "inactive"
