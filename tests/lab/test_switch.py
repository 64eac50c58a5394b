"""A switch during which a GPU fails, one that waits for its clients, and one with hooks, on a real host."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.behind import Clients, bridge, in_front
from tests.lab.conftest import Site
from tests.lab.products import in_proof
from tests.lab.scene import Scene, interval, serving
from tests.refused import refusal

pytestmark = pytest.mark.lab

KERNEL = r"""#!/bin/sh
case " $* " in *' _TRANSPORT=kernel '*) printf '[%12s] gpu01 kernel: %s\n' 'UPTIME' 'LINE' ;; esac
exec /usr/bin/journalctl "$@"
"""
"""A journalctl that has one line of the kernel: a lab host does not get its kernel's log."""


@contextmanager
def kernel_says(host: Host, message: str) -> Iterator[None]:
    """Let the kernel of a host log a message now."""
    uptime = host.run("cut -d ' ' -f 1 /proc/uptime").stdout.strip()
    program = "/usr/local/bin/journalctl"
    host.run(f"cat >{program} && chmod 0755 {program}", stdin=KERNEL.replace("UPTIME", uptime).replace("LINE", message))
    try:
        yield
    finally:
        host.run(f"rm {program}")


@pytest.fixture
def scene(site: Site, worker_lab: Lab, request: pytest.FixtureRequest) -> Scene:
    """Return the lived-in host, which serves."""
    return serving(site, worker_lab.host("lived2"), request)


@in_proof("three_hosts/test_blame.py joins a killed run's switch; test_healing.py waits for one that loads")
def test_a_run_killed_while_the_endpoint_loads_is_proven_by_the_next(scene: Scene) -> None:
    before = scene.starts()
    with scene.faults({"fault": "never_ready", "when": {"option.stream_interval": 22}}):
        with scene.deploying(engine=interval(22)) as running:
            scene.wait("activating")
            running.stop()
        with scene.deploying(engine=interval(22)) as running:
            assert running.until("was never proven") is not None, running.output
            scene.host.set_engine_faults()
            run = running.end()
    assert run.status == 0, run.output
    assert "proved: a chat answer" in run.output
    assert scene.starts() == before + 1
    assert scene.runs() == scene.proven()


def test_a_gpu_that_fails_during_the_switch_is_seen(scene: Scene) -> None:
    kernel_line = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, GPU has fallen off the bus."
    with (
        scene.faults({"fault": "never_ready", "when": {"option.stream_interval": 24}}),
        scene.deploying(engine=interval(24)) as running,
    ):
        assert running.until("switching to release") is not None, running.output
        scene.wait("activating")
        with kernel_says(scene.host, kernel_line):
            scene.host.set_engine_faults()
            run = running.end()
    assert run.status != 0
    assert f"GPU errors since the switch: {kernel_line}" in run.output
    assert texts.ROLLED_BACK.format(endpoint="llm") in run.output


def test_a_stream_through_a_gateway_ends_well_and_the_gateway_sends_requests_again(
    scene: Scene, tmp_path: Path
) -> None:
    asks = {"word": {"allow_from": [bridge(scene.host)]}, "drain_timeout": 120}
    assert scene.deploy(**asks).status == 0
    with in_front(tmp_path / "gw", [scene.host]) as gateway:
        clients = Clients(gateway)
        with scene.faults({"fault": "slow_factor", "value": 1000}):
            clients.stream(200)
            with scene.deploying(engine=interval(26), **asks) as running:
                draining = running.until("draining: requests open: 1")
                out = gateway.serving()
                scene.host.set_engine_faults()
                run = running.end()
        clients.end()
        assert (run.status, draining is not None, out) == (0, True, set()), run.output
        assert clients.streams == [""]
        # The job ends once the gateway has asked again.
        gateway.wait_for(scene.host.name, seconds=1)


def test_an_open_stream_is_let_finish(scene: Scene) -> None:
    body = {
        "model": "gpt-oss-120b",
        "messages": [{"role": "user", "content": "Tell me a long story."}],
        "max_tokens": 200,
        "stream": True,
    }
    with scene.faults({"fault": "slow_factor", "value": 1000}):
        scene.host.run("cat >/root/body.json", stdin=json.dumps(body))
        scene.host.run(
            "systemd-run --quiet --collect --unit=reader sh -c 'curl -sN -H Content-Type:application/json "
            "-d @/root/body.json http://127.0.0.1:8000/v1/chat/completions >/root/stream.txt'"
        )
        scene.host.run("for i in $(seq 50); do [ -s /root/stream.txt ] && exit 0; sleep 0.2; done; exit 1")
        with scene.deploying(engine=interval(23), drain_timeout=120) as running:
            # It continues as fast as ever once the deploy waits for it, so the machine's pace decides nothing.
            draining = running.until("draining: requests open: 1")
            answer = word_of(scene)
            scene.host.set_engine_faults()
            run = running.end()
    assert run.status == 0, run.output
    assert draining, run.output
    assert (answer, word_of(scene)) == ("drain", "ready up")
    with pytest.raises(TimeoutError):  # this machine may not ask
        socket.create_connection((scene.host.address, 8010), timeout=2)
    assert "[DONE]" in scene.host.run("cat /root/stream.txt").stdout


def word_of(scene: Scene) -> str:
    """Ask the host for its word of the endpoint, as HAProxy does."""
    return scene.host.run("bash -c 'exec 3<>/dev/tcp/127.0.0.1/8010; echo llm >&3; cat <&3'").stdout.strip()


HOOK = """#!/bin/sh
active=$(systemctl is-active rackwright-llm)
echo "$1 $RACKWRIGHT_ENDPOINT $RACKWRIGHT_PORT $active $RACKWRIGHT_RELEASE" >>/root/balancer.log
[ ! -e /root/refuse-$1 ]
"""


def test_hooks_take_it_out_and_let_it_in_again(scene: Scene) -> None:
    good, before = scene.proven(), scene.starts()
    scene.host.run("cat >/root/balancer; chmod 755 /root/balancer; touch /root/refuse-drain", stdin=HOOK)
    hooks = {name: ["/root/balancer", name.removesuffix("_hook")] for name in ("drain_hook", "ready_hook")}
    run = scene.deploy(engine=interval(25), **hooks)
    assert run.status != 0
    refusal(run.output, "RW0726", "endpoint llm", "drain_hook", "status 1", "/root/balancer")
    assert (scene.runs(), scene.starts()) == (good, before)
    scene.host.run("rm /root/refuse-drain; touch /root/refuse-ready")
    run = scene.deploy(engine=interval(25), **hooks)
    assert run.status != 0
    refusal(run.output, "RW0724", "endpoint llm")
    assert texts.NOT_LET_IN.format(why="the ready_hook ended with status 1") in run.output
    new = scene.proven()
    assert new != good
    scene.host.run("rm /root/refuse-ready")
    run = scene.deploy(engine=interval(25), **hooks)
    assert run.status == 0, run.output
    assert texts.LET_IN_LATE in run.output
    assert scene.starts() == before + 1
    assert scene.deploy(engine=interval(25), **hooks).changed == []
    assert scene.host.run("cat /root/balancer.log").stdout.splitlines() == [
        f"drain llm 8000 active {new}",
        f"ready llm 8000 active {good}",
        f"drain llm 8000 active {new}",
        f"ready llm 8000 active {new}",
        f"ready llm 8000 active {new}",
    ]
