"""dockerd is restarted under an endpoint that serves: that is a switch, and fails and is cut as one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rackwright_lab.lab import Lab
from tests.lab.conftest import Site
from tests.lab.scene import DAEMON_JSON, Scene, serving

pytestmark = pytest.mark.lab

WARN: dict[str, Any] = {"log-level": "warn"}


@pytest.fixture
def scene(site: Site, worker_lab: Lab, request: pytest.FixtureRequest) -> Scene:
    """The lived-in host, which serves."""
    return serving(site, worker_lab.host("lived2"), request)


def daemon(scene: Scene) -> tuple[str, str]:
    """dockerd's configuration, and when it was started."""
    started = "systemctl show docker.service --property=ExecMainStartTimestampMonotonic"
    return scene.host.run(f"cat {DAEMON_JSON}").stdout, scene.host.run(started).stdout


def test_a_restart_of_dockerd_is_a_switch_and_one_that_fails_rolls_back(scene: Scene) -> None:
    assert scene.deploy().status == 0  # at the release that is wanted: nothing else is to be switched
    before, (text, started) = scene.starts(), daemon(scene)
    ahead = scene.deploy("--dry", docker={"daemon": WARN})
    assert f"would configure dockerd and restart it with llm ({DAEMON_JSON}: log-level)" in ahead.output
    assert daemon(scene) == (text, started)
    run = scene.deploy(docker={"daemon": WARN})
    assert run.status == 0, run.output
    assert run.changed == ["Endpoint | Each endpoint runs its wanted release and has answered"]
    assert "proved: a chat answer" in run.output
    text, restarted = daemon(scene)
    assert json.loads(text)["log-level"] == "warn"
    assert restarted != started
    assert scene.starts() == before + 1

    # The unit names hosts on dockerd's command line, which --validate does not see.
    run = scene.deploy(docker={"daemon": {**WARN, "hosts": ["unix:///var/run/docker.sock"]}})
    assert run.status == 1, run.output
    assert "specified both as a flag and in the configuration file: hosts" in run.output
    assert "dockerd has its previous configuration, serving again: llm" in run.output
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
            assert running.until("already under way on the host, joining it") is not None, running.output
            scene.host.set_engine_faults()
            run = running.end()
    assert run.status == 0, run.output
    assert "log-level" not in daemon(scene)[0]
    assert scene.starts() == before + 1
    assert "42" in scene.ask()
    assert scene.deploy().changed == []
