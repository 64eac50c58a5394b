"""Another name, two endpoints beside each other, and two that take each other's place, on a real host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import Site
from tests.lab.products import in_proof
from tests.lab.scene import HOME, Scene, endpoints, interval, serving

pytestmark = pytest.mark.lab


@pytest.fixture
def scene(site: Site, worker_lab: Lab, request: pytest.FixtureRequest) -> Scene:
    """Return the lived-in host, which serves."""
    return serving(site, worker_lab.host("lived2"), request)


def sessions(host: Host) -> int:
    """Commands that sshd has started for others since the host was made."""
    journal = host.run("journalctl -u ssh --no-pager -o cat | grep -c 'Starting session'", check=False).stdout
    return int(journal.strip() or 0)


def named(scene: Scene, name: str, **values: Any) -> dict[str, Any]:
    """Return the same endpoint under another name."""
    return {"endpoint_name": name, **values}


def replaces(new: str) -> str:
    """Return how a plan says that an endpoint takes the place of `llm`."""
    return texts.REPLACES.format(old="llm", new=f"endpoint {new} at release ")


@in_proof("two endpoints in the place of one fail so in test_two_endpoints_beside_each_other, with the same way back")
def test_a_new_name_that_fails_leaves_the_old_one_serving(scene: Scene) -> None:
    assert scene.deploy().status == 0
    good = scene.runs()
    with scene.faults({"fault": "repeat_bang", "when": {"port": 8009}}):
        run = scene.deploy(**named(scene, "chat", port=8009))
    assert run.status != 0
    assert replaces("chat") in run.output
    assert texts.GIVEN_BACK.format(old="llm", new="chat") in run.output
    assert scene.runs() == scene.proven() == good
    assert "42" in scene.ask(8000)
    states = scene.host.run("systemctl is-active rackwright-chat; systemctl is-enabled rackwright-llm", check=False)
    assert states.stdout.split() == ["inactive", "enabled"]


def test_a_new_name_is_a_switch_that_a_rollback_undoes(scene: Scene) -> None:
    assert scene.deploy().status == 0
    good = scene.runs()
    run = scene.deploy(**named(scene, "chat"))
    assert run.status == 0, run.output
    assert "42" in scene.ask()
    assert scene.host.run("docker ps --format '{{.Names}}'").stdout.split() == ["rackwright-chat"]
    assert scene.host.run("[ ! -e /etc/systemd/system/rackwright-llm.service ]").returncode == 0
    assert scene.deploy(**named(scene, "chat")).changed == []
    back = scene.site.rackwright("rollback", "inventory/lab.py", "-y", "--limit", scene.host.name)
    assert back.status == 0, back.output
    assert scene.runs() == scene.proven() == good
    assert scene.host.run("docker ps --format '{{.Names}}'").stdout.split() == ["rackwright-llm"]
    # The rollback moved endpoints alone: the host learns at the next deploy whom to look at.
    assert [name.partition(" ")[0] for name in scene.deploy().changed] == ["Watch"]
    assert scene.deploy().changed == []


def test_two_endpoints_beside_each_other(scene: Scene) -> None:
    assert scene.deploy().status == 0
    with scene.faults({"fault": "repeat_bang", "when": {"port": 8001}}):
        failed = scene.deploy(endpoints=endpoints("a", "b"))
    assert failed.status != 0
    assert texts.GIVEN_BACK.format(old="llm", new="a") in failed.output
    assert "42" in scene.ask(8000)
    run = scene.deploy(endpoints=endpoints("a", "b"))
    assert run.status == 0, run.output
    assert replaces("a") in run.output
    assert "42" in scene.ask(8000)
    assert "42" in scene.ask(8001)
    status = scene.site.rackwright("status", "inventory/lab.py", "--limit", scene.host.name)
    assert status.output.count("4 NVIDIA B200") == 2, status.output
    before = sessions(scene.host)
    again = scene.deploy(endpoints=endpoints("a", "b"))
    assert again.changed == [], again.output
    assert sessions(scene.host) - before <= 3, "round trips do not grow with the endpoints"


@pytest.fixture
def pair(scene: Scene) -> None:
    """Have two endpoints serve on the host, `a` and `b`, each at its own port, whatever their options are."""
    if set(scene.host.run("docker ps --format '{{.Names}}'").stdout.split()) != {"rackwright-a", "rackwright-b"}:
        run = scene.deploy(endpoints=endpoints("a", "b"))
        assert run.status == 0, run.output


@pytest.mark.usefixtures("pair")
def test_a_change_of_one_leaves_the_other_alone(scene: Scene) -> None:
    before = scene.starts("a")
    run = scene.deploy(endpoints=endpoints("a", "b", b=interval(30)))
    assert run.status == 0, run.output
    assert scene.starts("a") == before
    assert "42" in scene.ask(8001)


@pytest.mark.usefixtures("pair")
def test_an_endpoint_no_longer_wanted_goes(scene: Scene) -> None:
    before = scene.starts("a")
    run = scene.deploy(endpoints=endpoints("a"))
    assert run.status == 0, run.output
    assert scene.host.run("docker ps --format '{{.Names}}'").stdout.split() == ["rackwright-a"]
    assert scene.host.run(f"[ ! -e {HOME}/b ] && [ ! -e /etc/systemd/system/rackwright-b.service ]").returncode == 0
    assert scene.starts("a") == before


@in_proof("tests/unit/test_transaction.py; test_trials.py stops what was never proven")
def test_with_nothing_to_roll_back_to_it_is_stopped(scene: Scene) -> None:
    assert scene.deploy(endpoints=endpoints("a")).status == 0
    before = scene.starts("a")
    with scene.faults({"fault": "repeat_bang", "when": {"port": 8001}}):
        run = scene.deploy(endpoints=endpoints("a", "b"))
    assert run.status != 0
    assert texts.STOPPED.format(endpoint="b") in run.output
    states = scene.host.run("systemctl is-active rackwright-a rackwright-b", check=False).stdout.split()
    assert states == ["active", "inactive"]
    assert scene.starts("a") == before
    assert "42" in scene.ask()


def swapped(b: Mapping[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """Both endpoints, each at the port that the other one had. b: engine options of b's; own: other settings of b's."""
    rows = endpoints("a", "b", b=b)
    return {"a": {**rows["a"], "port": 8001}, "b": {**rows["b"], "port": 8000, **changed}}


def served_at(scene: Scene, port: int) -> str:
    """Return the name of the endpoint that serves at a port, after it has answered there."""
    assert "42" in scene.ask(port)
    return scene.host.run(f"docker ps --filter publish={port} --format '{{{{.Names}}}}'").stdout.strip()


@pytest.mark.usefixtures("pair")
@in_proof("two that fail together are in test_two_endpoints_beside_each_other, swapped ports that switch are below")
def test_swapped_ports_that_fail_leave_both_where_they_were(scene: Scene) -> None:
    """The release of one that never gets ready takes the other one's new port back, too."""
    good = [(scene.runs(name), scene.proven(name)) for name in ("a", "b")]
    with scene.faults({"fault": "never_ready", "when": {"option.stream_interval": 26}}):
        run = scene.deploy(endpoints=swapped(interval(26), load_timeout=8))
    assert run.status != 0
    assert "switch endpoint a at release" in run.output
    assert texts.NOT_READY in run.output
    assert [served_at(scene, port) for port in (8000, 8001)] == ["rackwright-a", "rackwright-b"]
    assert [(scene.runs(name), scene.proven(name)) for name in ("a", "b")] == good
    scene.host.run(f"[ ! -e {HOME}/a/trial ] && [ ! -e {HOME}/b/trial ]")


@in_proof("two endpoints stand and change beside each other; the order is pure")
@pytest.mark.usefixtures("pair")
def test_swapped_ports_switch_as_one(scene: Scene) -> None:
    before = [scene.starts(name) for name in ("a", "b")]
    run = scene.deploy(endpoints=swapped())
    assert run.status == 0, run.output
    assert texts.TOGETHER in run.output
    assert [served_at(scene, port) for port in (8000, 8001)] == ["rackwright-b", "rackwright-a"]
    assert [scene.starts(name) for name in ("a", "b")] == [count + 1 for count in before]
    assert scene.deploy(endpoints=swapped()).changed == []
