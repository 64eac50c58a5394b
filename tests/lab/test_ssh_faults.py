"""Hosts that cannot be reached, or no longer: each fault has its text, and the other hosts do not notice."""

from __future__ import annotations

import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from rackwright.concerns.lease import LAST_NUMBER, LEASE
from rackwright.concerns.lease.this_process import this_holder
from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.calm import needs_preparing
from tests.lab.conftest import Run, Site
from tests.lab.products import in_proof
from tests.lab.running import Running, deploying
from tests.lab.test_cuts import UNIT, assert_converged, damage
from tests.lab.test_deploy import ask
from tests.refused import refusal

pytestmark = pytest.mark.lab

RATE = 4 << 10
"""Bytes a second: slower than any machine is crowded."""
LAST = "Endpoint | Nothing is left to change"


@pytest.fixture
def well(site: Site, request: pytest.FixtureRequest) -> Host:
    """Return a host with nothing wrong and nothing to do."""
    host = site.lab.host("lived2")
    if needs_preparing(request):
        run = site.deploy("-y", limit=[host.name])
        assert run.status == 0, run.output
    return host


@pytest.fixture
def faulty(worker_lab: Lab) -> Host:
    """Return the host that something is going to be wrong with; it needs no deploy for that."""
    return worker_lab.host("bare1")


@pytest.fixture
def fetching(site: Site, well: Host) -> Iterator[Running]:
    """Deploy a host that keeps fetching a model, until the test clears the faults."""
    damage(well)
    faults.set_fault(site.lab.paths.web, "slow", path="*cdn*", value=RATE)
    try:
        with deploying(site, well.name) as running:
            assert running.until(" MiB of ") is not None, running.output
            yield running
    finally:
        faults.clear(site.lab.paths.web)


def fence(host: Host) -> int:
    """Return the last lease's number."""
    return int(host.run(f"cat {LAST_NUMBER}").stdout)


def started(host: Host) -> int:
    """How often the endpoint was started since the host's boot."""
    return int(host.run(f"journalctl -b -u {UNIT} -o cat | grep -c '^Starting '", check=False).stdout)


def lease(host: Host) -> str:
    """Return the lease as a host stores it; empty when it has no lease."""
    return host.run(f"cat {LEASE}", check=False).stdout


@dataclass(frozen=True)
class Fault:
    """Something wrong with a host, how it is fixed, and what is said of it."""

    strike: Callable[[Lab, Host], object]
    fix: Callable[[Lab, Host], object]
    messages: tuple[str, ...]


def _forget_key(lab: Lab, host: Host) -> None:
    lines = lab.paths.known_hosts.read_text().splitlines(keepends=True)
    lab.paths.known_hosts.write_text("".join(entry for entry in lines if not entry.startswith(f"{host.address} ")))


def _want_sudo_password(lab: Lab, host: Host) -> None:
    host.run("echo 'ops ALL=(ALL) ALL' >/etc/sudoers.d/zz-password")


def _flood(lab: Lab, host: Host) -> None:
    """Give sudo an `sh` that prints without end."""
    host.run("mkdir -p /opt/flood && printf '#!/bin/bash\\nexec yes AAAA\\n' >/opt/flood/sh && chmod 755 /opt/flood/sh")
    host.run("echo 'Defaults:ops secure_path=\"/opt/flood:/usr/sbin:/usr/bin:/sbin:/bin\"' >/etc/sudoers.d/zz-flood")


FAULTS = {
    "wrong SSH key": Fault(
        lambda lab, host: host.run("mv /home/ops/.ssh/authorized_keys /home/ops/.ssh/kept"),
        lambda lab, host: host.run("mv /home/ops/.ssh/kept /home/ops/.ssh/authorized_keys"),
        ("Authentication error (username=ops, key=",),
    ),
    "changed host key": Fault(
        lambda lab, host: host.new_host_key(),
        lambda lab, host: lab.trust(host),
        (
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
            "does not match",
            "rackwright rebuild inventory/lab.py ",
        ),
    ),
    "unknown host key": Fault(
        _forget_key,
        lambda lab, host: lab.trust(host),
        ("not in known_hosts, so SSH will refuse them: ssh to each once", "No host key for"),
    ),
    "sudo password": Fault(
        _want_sudo_password,
        lambda lab, host: host.run("rm /etc/sudoers.d/zz-password"),
        ("sudo asks for a password", "NOPASSWD", "could not be read, so nothing was done"),
    ),
    "flood": Fault(
        _flood,
        lambda lab, host: host.run("rm -r /etc/sudoers.d/zz-flood /opt/flood"),
        ("a command printed more than 16 MiB", "could not be read, so nothing was done"),
    ),
    "down": Fault(
        lambda lab, host: host.power_off(),
        lambda lab, host: host.start(),
        ("Could not connect",),
    ),
}


@pytest.fixture(params=FAULTS)
def struck(request: pytest.FixtureRequest, worker_lab: Lab, faulty: Host) -> Iterator[Fault]:
    """One fault at a time."""
    fault = FAULTS[request.param]
    fault.strike(worker_lab, faulty)
    try:
        yield fault
    finally:
        fault.fix(worker_lab, faulty)


def reached_the_end(run: Run, host: Host) -> bool:
    """Whether this host got through the last operation, in a run with -v."""
    after = run.output.rpartition(f"--> Starting operation: {LAST}")[2]
    return f"[{host.name}] No changes" in after or f"[{host.name}] Success" in after


def test_a_fault_before_the_run_is_named_and_stops_no_other_host(
    site: Site, well: Host, faulty: Host, struck: Fault
) -> None:
    run = site.deploy("-y", "-v")
    assert run.status == 1, run.output
    for text in struck.messages:
        assert text in run.output
    assert faulty.name in run.output
    assert "Traceback" not in run.output
    assert run.changed == []
    assert reached_the_end(run, well), run.output


def test_a_mended_host_is_reached_again(site: Site, worker_lab: Lab, faulty: Host) -> None:
    for fault in FAULTS.values():
        fault.strike(worker_lab, faulty)
        fault.fix(worker_lab, faulty)
    run = site.deploy("--dry", limit=[faulty.name])
    assert run.status == 0, run.output


@in_proof("a host that is down or unreachable stops no other host")
def test_a_host_that_dies_in_a_run_does_not_hold_up_the_others(site: Site, well: Host, faulty: Host) -> None:
    faulty.reset()
    damage(well)
    with deploying(site, f"{site.lab.paths.id}-*", "-v") as running:
        assert running.until("installing docker") is not None, running.output
        faulty.kill_power()
        run = running.end()
    faulty.start()
    assert run.status == 1, run.output
    assert "Traceback" not in run.output
    assert f"[{faulty.name}]" in next(
        output_line for output_line in run.output.splitlines() if "the connection was lost" in output_line
    )
    assert reached_the_end(run, well), run.output
    assert "42" in ask(well, "What is 17 + 25? Answer with the number only.")


def test_a_job_outlives_its_connection_and_is_followed_over_a_new_one(
    site: Site, well: Host, fetching: Running
) -> None:
    well.run("pkill -f '^sshd: ops'")
    assert fetching.until(" MiB of ") is not None, fetching.output
    faults.clear(site.lab.paths.web)
    run = fetching.end()
    assert run.status == 0, run.output
    assert "the connection was lost" not in run.output


@in_proof("test_cuts.py kills runs whose jobs the next one joins")
def test_a_job_outlives_its_run_and_the_next_one_joins_it(site: Site, well: Host, fetching: Running) -> None:
    fetching.stop()
    assert "active" in well.run("systemctl is-active 'rackwright-job-model-*'").stdout
    with deploying(site, well.name) as running:
        assert running.until(texts.JOINED) is not None, running.output
        faults.clear(site.lab.paths.web)
        run = running.end()
    assert run.status == 0, run.output


def test_of_two_runs_at_once_the_second_is_told_who_writes(site: Site, well: Host, fetching: Running) -> None:
    before, starts = fence(well), started(well)
    second = site.deploy("-y", limit=[well.name])
    assert second.status == 1, second.output
    holder = f"@{socket.gethostname()} (pyinfra lab.py deploy.py, run "
    command = f"rackwright lease break inventory/lab.py --limit {well.name}"
    refusal(second.output, "RW0705", f"[{well.name}] ", holder, command)
    assert "Traceback" not in second.output
    assert fence(well) == before, "a run that is refused takes no number"
    faults.clear(site.lab.paths.web)
    first = fetching.end()
    assert first.status == 0, first.output
    assert started(well) == starts + 1
    assert lease(well) == ""
    assert_converged(site, well)
    assert fence(well) == before, "a run with nothing to do takes no lease"


@in_proof("the second of two runs is refused above; tests/unit/test_lease.py fences off")
def test_unlocking_fences_a_living_run_off_and_its_job_goes_on(site: Site, well: Host, fetching: Running) -> None:
    unlocked = site.rackwright("lease", "break", "inventory/lab.py", "--limit", well.name, "-y")
    assert unlocked.status == 0, unlocked.output
    assert "unless it is renewed" in unlocked.output
    assert f"{well.name}: lease ended" in unlocked.output
    # It looks every few seconds; whom it would name, had another run begun by then, is a unit test's.
    first = fetching.end()
    assert first.status == 1, first.output
    assert re.search(texts.pattern(texts.LEASE_TAKEN_AWAY), first.output), first.output
    assert "Traceback" not in first.output
    assert "active" in well.run("systemctl is-active 'rackwright-job-model-*'").stdout.split()
    # A run that asks for something else waits for it, and has nothing left to fetch then.
    faults.clear(site.lab.paths.web)
    other = site.deploy("-y", "--data", "downloads.stall_timeout=77", limit=[well.name])
    assert other.status == 0, other.output
    assert "no host is leased" in site.rackwright("lease", "show", "inventory/lab.py", "--limit", well.name).output
    assert_converged(site, well)


@in_proof("a living run's lease is held and fenced off above; tests/unit/test_lease.py has when one ends")
def test_a_dead_runs_lease_ends_by_itself_or_at_once_on_its_own_machine(
    site: Site, well: Host, fetching: Running
) -> None:
    fetching.stop(signal.SIGKILL)
    well.run(f"sed -i 's/^expires=.*/expires=999999999/' {LEASE}")  # a crowded machine may take longer than its age
    well.run(f"sed -i.kept 's/^place=/place=elsewhere-/' {LEASE}")
    refused = site.deploy("-y", limit=[well.name])
    assert refused.status == 1, refused.output
    refusal(refused.output, "RW0705", f"[{well.name}] ")
    well.run(f"mv {LEASE}.kept {LEASE}")
    faults.clear(site.lab.paths.web)
    run = site.deploy("-y", limit=[well.name])
    assert run.status == 0, run.output
    assert texts.LEASE_HOLDER.format(pid=fetching.process.pid) in run.output
    well.run(f"systemctl stop {UNIT}")
    well.run(f"printf 'id=1.0\\nuser=ghost\\nplace=elsewhere\\ntaken=0\\nexpires=1\\n' >{LEASE}")
    assert_converged(site, well)
    mine = f"place={this_holder().place}\\nstarted=1"
    well.run(f"printf 'id=1.0\\nuser=me\\n{mine}\\ntaken=0\\nexpires=999999999\\n' >{LEASE}")
    again = site.deploy("-y", limit=[well.name])
    assert again.changed == [], again.output
    assert lease(well) == "", "a run with nothing to do leaves no dead lease of its machine behind"


def test_ctrl_c_is_no_success(site: Site, well: Host) -> None:
    well.run(f"systemctl stop {UNIT}")
    with deploying(site, well.name) as running:
        assert running.until("switching to release") is not None, running.output
        began = time.monotonic()
        run = running.stop(signal.SIGINT)
    assert time.monotonic() - began < 10
    assert run.status == 130, run.output
    assert lease(well) == "", "a run that is stopped gives its leases back"
    assert "run the same command again" in run.output
    assert "Traceback" not in run.output
    assert_converged(site, well)
