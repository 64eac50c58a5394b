"""The watch's restart of a hung endpoint on a lab host: once, with proof; beside a deploy; and given up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rackwright.concerns.watch.metrics import CHECK, DEFAULT_FOLDER
from rackwright.paths import act_unit
from rackwright_lab.lab import Lab
from tests.lab.calm import needs_preparing
from tests.lab.conftest import Site
from tests.lab.products import in_proof
from tests.lab.scene import HOME, Scene, interval

pytestmark = [pytest.mark.lab, pytest.mark.hangs]

STATE, RUN = "/var/lib/rackwright", "/run/rackwright"
WATCHED = {
    "act": "restart", "after": 1, "load": 60, "hosts": 1, "index": 0, "max_unavailable": 1, "peers": "",
}  # fmt: skip
PEER = "peer-of-the-watch"
RESTARTING = {"watch": {"act": "restart"}}


@pytest.fixture
def scene(site: Site, worker_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Return the lived-in host with the watch's act on it; its own looks rest, since the tests write what is found."""
    scene = Scene(site, worker_lab.host("lived2"))
    if needs_preparing(request):
        run = scene.deploy(**RESTARTING)
        assert run.status == 0, run.output
    scene.host.run(f"systemctl stop rackwright-watch.timer; rm -f {STATE}/watch/acts-llm")
    yield scene
    scene.host.run(f"rm -rf {RUN}/watch/llm {STATE}/watch/acts-llm {STATE}/marks/*-llm", check=False)


def watched(scene: Scene, **changed: object) -> None:
    """Write what is watched on the host."""
    rows = "".join(f"{key}={value}\n" for key, value in {**WATCHED, **changed}.items())
    scene.host.run("mkdir -p /etc/rackwright/watched && cat >/etc/rackwright/watched/llm", stdin=rows)


def found(scene: Scene, state: str = "hung") -> str:
    """Return the line of a shell that writes the finding of a look."""
    text = f"looked=%s\\nstate={state}\\nsigns=by this test\\n"
    return f"mkdir -p {RUN}/watch; read -r up _ </proc/uptime; printf '{text}' ${{up%.*}} >{RUN}/watch/llm"


def hang(scene: Scene) -> None:
    """Stop every process of the engine, and say so as the look does."""
    pid = "docker inspect --format '{{.State.Pid}}' rackwright-llm"
    scene.host.run(f"kill -STOP $({pid}); {found(scene)}")


def acts(scene: Scene) -> list[str]:
    return [" ".join(row.split()[1:3]) for row in scene.host.run(f"cat {STATE}/watch/acts-llm").stdout.splitlines()]


def marks(scene: Scene) -> set[str]:
    return set(scene.host.run(f"ls {STATE}/marks").stdout.split())


@contextmanager
def serving_peer(scene: Scene) -> Iterator[str]:
    """Answer on this host as a peer that serves; its address."""
    command = "systemd-socket-activate --accept --inetd --listen=127.0.0.1:8999 /bin/echo ready up"
    scene.host.run(f"systemd-run --quiet --collect --unit={PEER} {command}")
    try:
        yield "peer=127.0.0.1:8999"
    finally:
        scene.host.run(f"systemctl stop {PEER}", check=False)


def test_a_hung_engine_is_restarted_once_with_its_evidence_and_proves_itself(scene: Scene) -> None:
    watched(scene)
    before = scene.starts()
    hang(scene)
    scene.host.run(f"systemctl start {act_unit('llm')}")
    assert acts(scene)[-1] == "restart proven"
    assert scene.starts() == before + 1
    assert "42" in scene.ask()
    assert "watch-llm" not in marks(scene)
    dumps = scene.host.run(f"ls {HOME}/llm/failed").stdout
    assert all(f"-watch.{kind}" in dumps for kind in ("log", "stacks", "kernel", "nvidia-smi", "look"))
    assert scene.host.run(f"cat {RUN}/lease", check=False).stdout == ""


@in_proof("tests/unit/test_act_beside_switch.py has the wait; this one sees it in a real deploy")
def test_a_deploy_that_begins_meanwhile_waits_for_it(scene: Scene) -> None:
    watched(scene)
    with scene.deploying(engine=interval(41), **RESTARTING) as running:
        assert running.until("Release | The wanted release") is not None, running.output
        hang(scene)
        scene.host.run(f"systemctl start --no-block {act_unit('llm')}")
        run = running.end()
    assert run.status == 0, run.output
    assert scene.proven() == scene.runs()
    assert "42" in scene.ask()


@in_proof("three restarts, two in a minute of their own; tests/programs/test_watch_act.py has the rule")
def test_three_restarts_that_do_not_last_leave_it_out_until_a_deploy_proves_it(scene: Scene) -> None:
    # Each restart of a group waits for its minute: two lie behind it already.
    rows = 'now=$(date +%s); for ago in 60 30; do echo "$((now - ago)) restart proven x"; done'
    scene.host.run(f"({rows}) >{STATE}/watch/acts-llm")
    with serving_peer(scene) as peer:
        watched(scene, hosts=2, peers=peer)
        for _ in range(2):
            hang(scene)
            in_its_minute = (
                "until [ $(($(date +%s) / 60 % 2)) = 0 ] && [ $(($(date +%s) % 60)) -lt 50 ]; do sleep 1; done"
            )
            scene.host.run(f"{in_its_minute}; {found(scene)}; systemctl start {act_unit('llm')}", check=False)
    assert acts(scene) == ["restart proven"] * 3 + ["sick -"]
    assert "sick-llm" in marks(scene)
    run = scene.deploy(**RESTARTING)
    assert run.status == 0, run.output
    assert "sick-llm" not in marks(scene)
    assert "42" in scene.ask()


@in_proof("four restarts; tests/programs/test_watch_act.py has the rule")
def test_alone_it_is_never_given_up(scene: Scene) -> None:
    watched(scene)
    for _ in range(4):
        scene.host.run("sleep 2")
        hang(scene)
        scene.host.run(f"systemctl start {act_unit('llm')}", check=False)
    assert "sick-llm" not in marks(scene)
    assert "sick -" not in acts(scene)[-4:]
    scene.host.run(f"{found(scene, 'serving')}; systemctl start {act_unit('llm')}", check=False)


def test_its_state_is_a_file_for_node_exporter(scene: Scene) -> None:
    watched(scene)
    scene.host.run(f"mkdir -p {DEFAULT_FOLDER}; {found(scene)}; sh {CHECK}")
    try:
        samples = scene.host.run(f"cat {DEFAULT_FOLDER}/rackwright.prom").stdout.splitlines()
        assert 'rackwright_endpoint_state{endpoint="llm",state="hung"} 1' in samples
        assert 'rackwright_release_proven{endpoint="llm"} 1' in samples
    finally:
        scene.host.run(f"rm -r {DEFAULT_FOLDER}")
