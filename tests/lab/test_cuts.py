"""A deploy that is cut, anywhere and by anything: the next run continues, and nothing that was complete is lost."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import Site
from tests.lab.products import in_proof, with_proof
from tests.lab.running import deploying
from tests.lab.test_deploy import ask

pytestmark = pytest.mark.lab

MOST_CUTS = 120
UNIT = "rackwright-llm.service"


@pytest.fixture
def lived(worker_lab: Lab) -> Iterator[Host]:
    """Return the lived-in host, powered and plugged in afterwards."""
    host = worker_lab.host("lived2")
    yield host
    if host.machine.is_off():
        host.start()
    host.restore_network()


def assert_converged(site: Site, host: Host) -> None:
    """Check that a run to the end works, another has nothing to do, and the endpoint answers."""
    run = site.deploy("-y", limit=[host.name])
    assert run.status == 0, run.output
    again = site.deploy("-y", limit=[host.name])
    assert again.status == 0, again.output
    assert again.changed == [], again.output
    assert "42" in ask(host, "What is 17 + 25? Answer with the number only.")


def fetched(lab: Lab) -> Counter[str]:
    """How often each file with an identity of its own was downloaded: weights, vocabularies, packages."""
    rows = [row for row in faults.requests(lab.paths.web) if row["method"] == "GET" and row["bytes"]]
    wanted = re.compile(r"/cdn/|/resolve/|\.tiktoken$|\.deb$")
    return Counter(f"{row['host']}{row['path']}" for row in rows if wanted.search(row["path"]))


# -- the control process dies


class Cutter:
    """Ends runs each time before a command at which no earlier run was ended.

    A command is known by its text, of which a lease's and a process's numbers are no part: one is new as soon as it has
    a line that no command had before it.
    """

    def __init__(self, host: Host) -> None:
        self._host = f"[{host.name}]"
        self._known: set[str] = set()
        self._inside = False

    def is_new(self, output_line: str) -> bool:
        """Whether this line belongs to a command that was never cut."""
        return self._is_command(output_line) and _plain(output_line) not in self._known

    def learn(self, lines: list[str]) -> None:
        """Know all commands that a run has begun."""
        self._inside = False
        self._known |= {_plain(output_line) for output_line in lines if self._is_command(output_line)}
        self._inside = False

    def _is_command(self, output_line: str) -> bool:
        if output_line.startswith((self._host, f"    {self._host}", "--> ")):
            self._inside = output_line.startswith(f"{self._host} >>> ")
        return self._inside


def _plain(output_line: str) -> str:
    return re.sub(r"[0-9a-f]{8,}|[0-9]+", "#", output_line)


MORE_CUTS = (
    "test_a_fresh_host_is_cut_where_it_is_worst has kills and power cuts, fewer of them, and sees the same afterwards"
)


@in_proof(MORE_CUTS)
@pytest.mark.parametrize(
    ("every", "least"), [pytest.param(1, 15, id="each command"), pytest.param(12, 3, id="each dozen lines")]
)
def test_killed_before_and_in_commands_of_a_fresh_host(site: Site, lived: Host, every: int, least: int) -> None:
    """every: new lines of commands from one kill to the next; least: kills that there must be at the least."""
    lived.reset()
    faults.forget_requests(site.lab.paths.web)
    cutter = Cutter(lived)
    for number in range(MOST_CUTS):
        with deploying(site, lived.name, "-vv") as running:
            if any(running.until(cutter.is_new) is None for _ in range(every)):
                break
            time.sleep(0.15 * (number % 2))
            run = running.stop(signal.SIGINT if number % 4 == 3 else signal.SIGKILL)
            assert run.status != 0
            cutter.learn(running.lines)
    last = running.end()
    assert last.status == 0, last.output
    assert number > least, "too few boundaries for a fresh host"
    assert_converged(site, lived)
    assert {path: times for path, times in fetched(site.lab).items() if times > 1} == {}


# -- the host loses its power, or its cable


POINTS = {
    "installing docker",
    "refreshing the package lists",
    "set the firewall rules",
    "store the login",
    "pull nvcr.io/",
    "SHA-256 as published",
    "asking the hub for openai/gpt-oss-120b",
    "write release",
    "switching to release",
    "proved: GPUs",
}


def is_at(points: set[str], output_line: str) -> bool:
    """Whether the deploy says that it has come to one of these points."""
    return any(point in output_line for point in points)


@in_proof(MORE_CUTS)
def test_power_lost_at_each_stage(site: Site, worker_lab: Lab) -> None:
    host = worker_lab.host("bare1")
    host.reset()
    remaining = set(POINTS)
    while remaining:
        with deploying(site, host.name) as running:
            output_line = running.until(partial(is_at, remaining))
            assert output_line is not None, f"never reached: {remaining}\n{running.output}"
            remaining -= {point for point in remaining if point in output_line}
            host.kill_power()
            running.stop()
            host.start()
    assert_converged(site, host)


WORST = {
    "set the firewall rules": signal.SIGKILL,
    "pull nvcr.io/": None,
    "asking the hub for openai/gpt-oss-120b": signal.SIGINT,
    "write release": signal.SIGKILL,
    "switching to release": None,
}
"""Where a fresh host is cut, in this order: by a signal to the control process, or by the loss of its power.

test_host.py cuts the power while packages are installed, test_trials.py in each phase of a switch.
"""


def test_a_fresh_host_is_cut_where_it_is_worst(site: Site, lived: Host) -> None:
    lived.reset()
    faults.forget_requests(site.lab.paths.web)
    for point, number in WORST.items():
        with deploying(site, lived.name) as running:
            assert running.until(point) is not None, f"never reached: {point}\n{running.output}"
            if number is None:
                lived.kill_power()
            run = running.stop(number or signal.SIGKILL)
            assert run.status != 0
        if number is None:
            lived.start()
    assert_converged(site, lived)
    assert {path: times for path, times in fetched(site.lab).items() if times > 1} == {}


KEPT = "port is already allocated"
CUTS = 15
"""Of those in the moment in which Docker starts a container, more than half leave its port with dockerd."""


def cut_while_a_container_starts(host: Host) -> None:
    """Cut the power until dockerd keeps the port of a container that is gone: https://github.com/moby/moby/issues/25981."""
    log = f"journalctl --sync; journalctl --boot --unit {UNIT} --output cat --no-pager"
    wait = f"for i in $(seq 60); do {log} | grep -e '{KEPT}' -e '^Started ' && break; sleep 0.5; done"
    begun = "for i in $(seq 500); do pgrep -x docker-proxy >/dev/null && exit; sleep 0.02; done"
    for number in range(CUTS):
        host.run(f"systemctl reset-failed {UNIT}; systemctl stop {UNIT}", check=False)
        host.run(f"systemctl start --no-block {UNIT}; {begun}", check=False)
        time.sleep(0.3 * number / CUTS)
        host.kill_power()
        host.start()
        if KEPT in host.run(wait, check=False).stdout:
            return
    pytest.fail(f"none of {CUTS} cuts left the port with dockerd")


@in_proof(
    "test_endpoint.py has a port that was taken, tests/unit/test_transaction.py and test_kept_port.py both scripts"
)
@pytest.mark.parametrize("who", ["the next run", "the host itself"])
def test_a_port_that_dockerd_kept_from_a_power_cut_is_freed(site: Site, lived: Host, who: str) -> None:
    site.deploy("-y", limit=[lived.name])
    cut_while_a_container_starts(lived)
    if who == "the next run":
        run = site.deploy("-y", limit=[lived.name])
        assert run.status == 0, run.output
        assert texts.RESTARTS_IDLE_DOCKERD in run.output
    active = f"[ $(systemctl is-active {UNIT}) = active ]"
    lived.run(f"for i in $(seq 180); do {active} && exit 0; sleep 0.5; done; exit 1")
    assert_converged(site, lived)


def damage(host: Host) -> None:
    """Bring a job, a file and a switch back onto the list of changes."""
    state = "/var/lib/rackwright"
    endpoint_folder = f"{state}/endpoints/llm"
    models = f"/srv/models/nvidia--* {state}/manifests/nvidia--*"
    host.run(f"systemctl stop {UNIT}; rm -rf {models} {endpoint_folder}/releases/* {endpoint_folder}/proven")


@pytest.mark.parametrize(
    "point",
    with_proof(
        ["asking the hub", "write release", "switching to release", "ready after"],
        set(),
        "test_switch_alone.py has a host that is cut off in its switch, test_field.py a connection that is lost in one",
    ),
)
def test_cable_cut_fails_with_what_to_do_and_heals(site: Site, lived: Host, point: str) -> None:
    site.deploy("-y", limit=[lived.name])
    damage(lived)
    with deploying(site, lived.name) as running:
        assert running.until(point) is not None, running.output
        lived.cut_network()
        began = time.monotonic()
        run = running.end()
    assert run.status == 1, run.output
    assert time.monotonic() - began < 90
    assert "Traceback" not in run.output
    assert "run the same command again" in run.output
    lived.restore_network()
    assert_converged(site, lived)
