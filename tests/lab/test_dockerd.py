"""dockerd is restarted under an endpoint that serves: that is a switch, and fails and is cut as one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rackwright_lab.lab import Lab
from tests import foreign_texts, texts
from tests.lab.conftest import Site
from tests.lab.products import in_proof
from tests.lab.scene import DAEMON_JSON, Scene, interval, serving
from tests.refused import refusal

pytestmark = pytest.mark.lab

APT = "DEBIAN_FRONTEND=noninteractive apt-get"
INSTALL = f"{APT} update -q && {APT} install -y -q --no-install-recommends"
FLUSHES = {
    "a firewall script": "iptables -t nat -F; iptables -t nat -X",
    "csf": "for table in filter nat; do iptables -t $table -F; iptables -t $table -X; done",
    "jumps alone": "iptables -F FORWARD; iptables -t nat -F PREROUTING",
    "nft": f"{INSTALL} nftables && nft flush ruleset",
    "firewalld": f"{INSTALL} firewalld && systemctl restart firewalld",
}
"""Ways by which others take Docker's chains away."""
GONE = texts.CHAINS_GONE.format(chains="nat DOCKER")
WARN: dict[str, Any] = {"log-level": "warn"}


@pytest.fixture
def scene(site: Site, worker_lab: Lab, request: pytest.FixtureRequest) -> Scene:
    """Return the lived-in host, which serves."""
    return serving(site, worker_lab.host("lived2"), request)


def daemon(scene: Scene) -> tuple[str, str]:
    """Return dockerd's configuration, and when it was started."""
    started = "systemctl show docker.service --property=ExecMainStartTimestampMonotonic"
    return scene.host.run(f"cat {DAEMON_JSON}").stdout, scene.host.run(started).stdout


def test_a_restart_of_dockerd_is_a_switch_and_one_that_fails_rolls_back(scene: Scene) -> None:
    assert scene.deploy().status == 0  # at the release that is wanted: nothing else is to be switched
    before, (text, started) = scene.starts(), daemon(scene)
    ahead = scene.deploy("--dry", docker={"daemon": WARN})
    configures = texts.CONFIGURES_DOCKERD.format(action="restart")
    assert f"would {configures} with llm ({DAEMON_JSON}: log-level)" in ahead.output
    assert daemon(scene) == (text, started)
    # What serves needs none of Docker's chains, and its next start would fail without them.
    scene.host.run(FLUSHES["a firewall script"])
    status = scene.site.rackwright("status", "inventory/lab.py", "--limit", scene.host.name)
    assert f"it cannot start again: {GONE}" in status.output
    drain = ("drain", scene.host.name, "-i", "inventory/lab.py", "--anyway", "--reason", "chains")
    warned = scene.site.rackwright(*drain)
    assert f"{scene.host.name} could not start llm again: {GONE}" in warned.output
    assert "RW1025" in warned.output, "it asks before it stops anything"
    assert "42" in scene.ask()
    run = scene.deploy(docker={"daemon": WARN})
    assert run.status == 0, run.output
    assert f"({DAEMON_JSON}: log-level; {GONE}" in run.output
    assert "-A DOCKER " in scene.host.run("iptables-save -t nat").stdout
    assert [name.partition(" | ")[0] for name in run.changed] == ["Endpoint"]
    assert "proved: llm: a chat answer" in run.output
    text, restarted = daemon(scene)
    assert json.loads(text)["log-level"] == "warn"
    assert restarted != started
    assert scene.starts() == before + 1

    # The unit names hosts on dockerd's command line, which --validate does not see.
    run = scene.deploy(docker={"daemon": {**WARN, "hosts": ["unix:///var/run/docker.sock"]}})
    assert run.status == 1, run.output
    refusal(run.output, "RW0720", "llm")
    assert foreign_texts.DOCKERD_TWICE.format(key="hosts") in run.output
    assert "-dockerd-" in scene.host.run("ls /var/lib/rackwright/dockerd/failed").stdout
    assert daemon(scene)[0] == text
    assert scene.starts() == before + 2
    assert "42" in scene.ask()
    assert scene.deploy(docker={"daemon": WARN}).changed == []


def test_a_restart_of_dockerd_that_lost_its_control_process_is_joined(scene: Scene) -> None:
    assert scene.deploy(docker={"daemon": WARN}).status == 0  # a key that the next run takes away
    before = scene.starts()
    with scene.faults({"fault": "never_ready"}):
        with scene.deploying() as running:
            assert running.until("switching to release") is not None, running.output
            running.stop()
        with scene.deploying() as running:
            assert running.until(texts.JOINED) is not None, running.output
            scene.host.set_engine_faults()
            run = running.end()
    assert run.status == 0, run.output
    assert "log-level" not in daemon(scene)[0]
    assert scene.starts() == before + 1
    assert "42" in scene.ask()
    assert scene.deploy().changed == []


@in_proof("one of these ways is above, and tests/unit/test_docker_lacks.py has what each leaves")
@pytest.mark.parametrize("how", FLUSHES)
def test_whoever_flushes_dockers_chains_makes_no_change_an_outage(scene: Scene, how: str) -> None:
    assert scene.deploy().status == 0
    scene.host.run(FLUSHES[how], timeout=300)
    try:
        drift = scene.site.rackwright("drift", "inventory/lab.py", "--limit", scene.host.name)
        gone = texts.CHAINS_GONE.partition("{")[0]
        assert (drift.status, gone in drift.output) == (2, True), drift.output
        run = scene.deploy(engine=interval(61 + list(FLUSHES).index(how)))
        assert run.status == 0, run.output
        assert f"restart dockerd with llm ({gone}" in run.output
        assert "42" in scene.ask()
    finally:
        scene.host.run(f"{APT} purge -y -q firewalld; systemctl restart docker", check=False, timeout=300)


AT_STOP = """\
[Service]
ExecStopPost=-/bin/sh -c '[ -e /run/flushed ] || { : >/run/flushed; iptables -t nat -F; iptables -t nat -X; }'
"""


@in_proof("tests/unit/test_transaction.py and test_kept_port.py have the steps of both")
def test_chains_that_go_between_stop_and_start_are_made_again_by_the_host(scene: Scene) -> None:
    assert scene.deploy().status == 0
    folder = "/etc/systemd/system/rackwright-llm.service.d"
    scene.host.run(f"rm -f /run/flushed; mkdir -p {folder}; cat >{folder}/flush.conf", stdin=AT_STOP)
    scene.host.run("systemctl daemon-reload")
    try:
        run = scene.deploy(engine=interval(71), releases={"drop_ins": ["flush.conf"]})
        assert run.status == 0, run.output
        assert f"{GONE}: {texts.RESTARTS_IDLE_DOCKERD}" in run.output
    finally:
        scene.host.run(f"rm -f {folder}/flush.conf; systemctl daemon-reload")
    # The timer does so for one that has crashed, where nothing else runs.
    scene.host.run(f"{FLUSHES['a firewall script']}; docker kill rackwright-llm")
    scene.wait("failed", seconds=90)
    scene.wait("active", seconds=120)
    assert "42" in scene.ask()


@in_proof("tests/unit/test_can_start.py has all that may be gone")
def test_nothing_is_stopped_where_what_a_start_needs_is_gone(scene: Scene) -> None:
    assert scene.deploy().status == 0
    before, program = scene.starts(), "/usr/bin/nvidia-container-runtime"
    scene.host.run(f"mv {program} {program}.away")
    try:
        run = scene.deploy(engine=interval(72))
    finally:
        scene.host.run(f"mv {program}.away {program}")
    assert run.status == 1, run.output
    refusal(run.output, "RW0772", "endpoint llm")
    assert (scene.starts(), "42" in scene.ask()) == (before, True)
