"""What was not proven does not survive: a switch cut by a kill, a stop, a limit, a reboot, a power cut."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from rackwright.plan.change import Job
from rackwright.remote.job_scripts import payload, start_script
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import Site
from tests.lab.products import in_proof
from tests.lab.running import deploying
from tests.lab.scene import DAEMON_JSON, HOME, Scene, endpoints, interval, serving

pytestmark = pytest.mark.lab

JOB = "rackwright-job-switch-llm.service"


@pytest.fixture
def scene(request: pytest.FixtureRequest, worker_lab: Lab, site: Site) -> Scene:
    return serving(site, worker_lab.host("lived2"), request)


def kill(host: Host) -> None:
    host.run(f"systemctl kill --signal=KILL {JOB}")


def stop(host: Host) -> None:
    host.run(f"systemctl stop {JOB}")


def reboot(host: Host) -> None:
    host.reboot()


def power_cut(host: Host) -> None:
    host.kill_power()
    host.start()


PHASES = {
    "drains": ("draining:", {}),
    "is pointed at": ("switching to release", {}),
    "loads": ("loading, 5 s", {}),
    "is proven": ("ready after", {}),
    "waits for the word": ("basic proof passed", {"gate": {"level": "full", "commit_deadline": 120}}),
}
"""What a deploy says as it comes to each phase, and the settings that make it long enough."""
CLIENT = "systemd-run --quiet --collect --unit=client bash -c 'exec 3<>/dev/tcp/127.0.0.1/8000; sleep 600'"
"""An open connection: without one there is nothing to drain."""
CUTS = {"kill": kill, "stop": stop, "reboot": reboot, "power cut": power_cut}
QUICK = {("loads", "power cut")}
ELSEWHERE = (
    "one that boots takes back; test_switch_alone.py has one that runs on; tests/unit/test_trial.py cuts at each step"
)
CASES = [
    pytest.param(
        *PHASES[phase], cut, id=f"{name} while it {phase}", marks=() if (phase, name) in QUICK else in_proof(ELSEWHERE)
    )
    for phase in PHASES
    for name, cut in CUTS.items()
]


@pytest.mark.parametrize(("output_line", "settings", "cut"), CASES)
def test_a_switch_that_is_cut_is_taken_back(
    scene: Scene, output_line: str, settings: dict[str, object], cut: Callable[[Host], None]
) -> None:
    assert scene.deploy().status == 0
    good = scene.proven()
    wanted = {"engine": interval(41), "drain_timeout": 5, **settings}
    given = [argument for key, value in wanted.items() for argument in ("--data", f"{key}={json.dumps(value)}")]
    when = {"option.stream_interval": 41}
    # The proof takes a second otherwise, and is over before it is cut.
    slow = [{"fault": "slow_factor", "value": 20, "when": when}] if output_line == "ready after" else []
    with scene.faults({"fault": "load_seconds", "value": 8, "when": when}, *slow):
        if output_line == "draining:":
            scene.host.run(CLIENT)
        with deploying(scene.site, scene.host.name, *given) as running:
            assert running.until(output_line) is not None, running.output
            cut(scene.host)
            run = running.end()
    scene.host.run("systemctl stop client.service", check=False)
    assert run.status != 0, run.output
    serves_again(scene, good)
    status = scene.site.rackwright("status", "inventory/lab.py", "--limit", scene.host.name)
    assert "serving" in status.output
    # A boot puts back what was proven last, and takes the mark with the trial; otherwise the next run clears it.
    boots = output_line != "draining:" and cut in (reboot, power_cut)
    assert ("trial-llm" in marks(scene)) is not boots
    if output_line != "draining:":
        assert "was cut at " in status.output
        assert f"release {good} was put back" in status.output
    again = scene.deploy(**wanted)
    assert again.status == 0, again.output
    assert scene.proven() == scene.runs() != good
    assert marks(scene) == []


def marks(scene: Scene) -> list[str]:
    """Return the names of the host's marks."""
    return scene.host.run("ls /var/lib/rackwright/marks").stdout.split()


def serves_again(scene: Scene, good: str) -> None:
    """Check that the proven release serves, its unit and its pointer are in place, and nothing is left on trial."""
    scene.wait("active", seconds=90)
    assert (scene.runs(), scene.proven()) == (good, good)
    in_place = f"cmp {HOME}/llm/current/rackwright-llm.service /etc/systemd/system/rackwright-llm.service"
    scene.host.run(
        f"[ $(basename $(readlink {HOME}/llm/current)) = {good} ] && {in_place} && [ ! -e {HOME}/llm/trial ]"
    )
    assert "42" in scene.ask()


def test_a_job_that_takes_too_long_takes_back_what_it_tried(scene: Scene) -> None:
    trial = "/root/trial"
    scene.host.run(f"cat >{trial}", stdin='echo "$@" >/root/taken-back; rm "$0"\n')
    job = Job("lab-limit", "try for ever", "sleep 60\n", timeout=2, trial=trial)
    scene.host.run(start_script(job), stdin=payload(job))
    scene.host.run("for i in $(seq 100); do [ -s /root/taken-back ] && exit 0; sleep 0.2; done; exit 1")
    taken_back = scene.host.run("cat /root/taken-back").stdout
    assert re.match(f"cut {texts.pattern(texts.LATE_JOB, seconds=r'[0-9]+')}", taken_back), taken_back
    result, seconds = scene.host.run("cat /run/rackwright/jobs/lab-limit/ended").stdout.split()
    assert result == "timeout"
    assert int(seconds) <= 20
    scene.host.run(f"[ ! -e {trial} ]; rm -rf /run/rackwright/jobs/lab-limit* /root/taken-back")


def test_what_was_never_proven_stays_stopped_after_a_reboot(scene: Scene) -> None:
    """Of two endpoints, the one that was under way is held back; the other serves again on its own."""
    assert scene.deploy(endpoints=endpoints("a")).status == 0
    given = ["--data", f"endpoints={json.dumps(endpoints('a', 'b'))}"]
    with (
        scene.faults({"fault": "never_ready", "when": {"port": 8001}}),
        deploying(scene.site, scene.host.name, *given) as running,
    ):
        assert running.until("loading, 5 s") is not None, running.output
        reboot(scene.host)
        running.stop()
    scene.wait("active", "a", seconds=90)
    states = scene.host.run("systemctl is-active rackwright-b; systemctl is-enabled rackwright-b", check=False).stdout
    assert states.split() == ["inactive", "disabled"]
    last = scene.host.run(f"cat {HOME}/b/last-switch").stdout.splitlines()
    assert "outcome=cut" in last
    assert scene.deploy(endpoints=endpoints("a", "b")).status == 0


@in_proof("test_dockerd.py has one that fails and one that is cut off; what a boot takes back is tried above")
def test_a_configuration_of_dockerd_that_is_cut_rolls_back(scene: Scene) -> None:
    assert scene.deploy().status == 0
    before = scene.host.run(f"cat {DAEMON_JSON}").stdout
    good = scene.proven()
    with scene.faults({"fault": "load_seconds", "value": 12}):
        with deploying(scene.site, scene.host.name, "--data", 'docker={"daemon": {"log-level": "warn"}}') as running:
            assert running.until("switching to release") is not None, running.output
            power_cut(scene.host)
            running.stop()
        assert scene.host.run(f"cat {DAEMON_JSON}").stdout == before
        serves_again(scene, good)
    assert scene.deploy().status == 0  # the record forgets the key that was tried
    assert scene.deploy().changed == []
