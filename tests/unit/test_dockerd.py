"""A restart of dockerd under serving endpoints: what is planned, what the host's job does, and its end."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.docker import DOCKER
from rackwright.concerns.docker.daemon import DAEMON_JSON
from rackwright.concerns.dockerd.concern import DOCKERD, parse
from rackwright.concerns.dockerd.follow import ConfigurationBackError, ending
from rackwright.concerns.dockerd.restart_job import HOME, Scripts, joining_job, restart_job
from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.concern import ENDPOINT, takes_capacity
from rackwright.concerns.endpoint.seen import Running, SeenEndpoint
from rackwright.concerns.endpoint.switch.events import SwitchProgress
from rackwright.concerns.endpoint.switch.follow import WAITS, NotAdmittedError, NothingServesError, UnknownEndError
from rackwright.concerns.endpoint.switch.job import in_turn
from rackwright.concerns.endpoint.switch.proving import Tried
from rackwright.concerns.endpoint.switch.steps import DaemonRestart
from rackwright.concerns.endpoint.switch.transaction import Part
from rackwright.concerns.read_host import parse_reading
from rackwright.inspect.drift import drift_of
from rackwright.inspect.plan import plan_host
from rackwright.inspect.plan_text import summary
from rackwright.operations.endpoints import pending
from rackwright.plan.change import Change, Job, Owned, Refuse
from rackwright.plan.concern import HostReading
from rackwright.plan.jobstream import Event, JobStream
from rackwright.record.progress import DRAINING
from rackwright.record.view.timeline_events import phase_of_job
from rackwright.remote.errors import NotStartedError
from rackwright.remote.job_scripts import Ended
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright_engines.quick_yaml import load_yaml
from tests.unit.machines import EVERYTHING

OPERATIONS = Path(__file__).parents[1] / "operations"
BASE: dict[str, Any] = load_yaml((OPERATIONS / "settings.yaml").read_text())
LOG = {"log-level": "warn"}
RUNS = "aaaaaaaaaaaa"
BOUND = Binding(("GPU-1",))
FACTS = {
    "format": 2,
    "hash": RUNS,
    "serving": "feedfeedfeed",
    "image": "nvcr.io/x/y@sha256:0",
    "address": "127.0.0.1",
    "port": 8123,
    "mounts": [{"source": "/srv/m", "target": "/config/models/gpt-oss-120b", "writable": False}],
    "served_name": "gpt-oss-120b",
}
SERVES = SeenEndpoint(
    active="active",
    running=Running(RUNS, "feedfeedfeed", BOUND.hash),
    health=200,
    current=RUNS,
    proven=RUNS,
    spec=FACTS,
    binding=BOUND,
)


def settings(**changed: Any) -> HostSettings:
    values = {key: value for key, value in BASE.items() if key in HostSettings.model_fields}
    return HostSettings.model_validate({**values, **changed})


@cache
def recorded() -> HostReading:
    return parse_reading((OPERATIONS / "readings" / "converged.txt").read_text().splitlines())


def reading(section: str = "", docker: dict[str, Any] | None = None, **endpoints: SeenEndpoint) -> HostReading:
    """Return the recorded host with these endpoints, `llm` serving by default."""
    by_name = endpoints or {"llm": SERVES}
    names = tuple(sorted(name for name, endpoint in by_name.items() if endpoint.active == "active"))
    endpoint = replace(recorded()[DOCKER], **{"serving": names, **(docker or {})})
    endpoint_reading = replace(recorded()[ENDPOINT], docker=True, endpoints=by_name)
    return HostReading(
        {**recorded().by_concern, DOCKER.name: endpoint, ENDPOINT.name: endpoint_reading, DOCKERD.name: parse(section)},
    )


def restart(host_settings: HostSettings, reading: HostReading) -> tuple[Change, DaemonRestart]:
    (change,) = DOCKERD.pending(host_settings, reading)
    (step,) = change.steps
    assert isinstance(step, DaemonRestart)
    return change, step


def part(step: DaemonRestart, name: str) -> str:
    """Return a part of the host's job."""
    head = step.job.script.split("# Switch an endpoint, prove it", 1)[0]
    command = f'printf %s "${name}"'
    return subprocess.run(["sh"], input=head + command, capture_output=True, text=True, check=True).stdout


# -- the plan


def test_the_text_of_a_key_that_takes_a_restart() -> None:
    host_settings, host_reading = settings(docker={"daemon": LOG}), reading()
    assert not [change for change in DOCKER.pending(host_settings, host_reading) if "dockerd" in change.what]
    change, step = restart(host_settings, host_reading)
    assert change.sentence == f"configure dockerd and restart it with llm ({DAEMON_JSON}: log-level)"
    assert Owned("daemon_key", "log-level") in change.owns
    assert '"log-level": "warn"' in change.diff
    assert (step.endpoints, step.serving) == (("llm",), True)
    assert takes_capacity([change], host_reading[ENDPOINT])


def test_it_comes_before_the_endpoints_own_changes() -> None:
    host_settings, host_reading = settings(docker={"daemon": LOG}), reading()
    assert [
        type(step).__name__
        for change in pending(EVERYTHING.steps, host_settings, host_reading)
        for step in change.steps
    ][:1] == ["DaemonRestart"]
    assert len(pending(EVERYTHING.steps, host_settings, host_reading)) > 1


def test_the_text_of_plan_and_drift() -> None:
    host_settings, host_reading = settings(docker={"daemon": LOG}), reading()
    summary_line = summary(plan_host("gpu01", host_settings, host_reading, EVERYTHING))
    assert f"restarts dockerd and endpoint llm because {DAEMON_JSON}: log-level" in summary_line
    assert "dockerd" in [
        finding.concern for finding in drift_of("gpu01", host_settings, host_reading, EVERYTHING).findings
    ]


@pytest.mark.parametrize(("docker", "daemon"), [({}, LOG), ({"lacks": ("nat DOCKER",)}, {})], ids=["a key", "chains"])
def test_a_restart_is_refused_where_an_edit_waits_that_gives_another_store(docker: Any, daemon: Any) -> None:
    wanted, host = settings(docker={"daemon": daemon}), reading(docker={**docker, "other_store": ("userns-remap",)})
    [refusal] = [step for change in DOCKER.pending(wanted, host) for step in change.steps if isinstance(step, Refuse)]
    assert refusal.code == "RW2104"
    assert "userns-remap" in refusal.message
    assert not DOCKERD.pending(wanted, host)


@pytest.mark.parametrize(
    ("docker", "daemon"),
    [
        ({}, {"max-concurrent-uploads": 3}),
        ({}, {}),
        ({"serving": ()}, LOG),
        ({"daemon": "down", "info": {}}, LOG),
        ({}, {**LOG, "data-root": "/srv/docker"}),
        ({"files": {DAEMON_JSON: "{"}}, LOG),
    ],
    ids=["a reload", "nothing", "nothing serves", "dockerd is down", "another store", "broken"],
)
def test_what_is_no_matter_of_the_hosts_turn(docker: dict[str, Any], daemon: dict[str, Any]) -> None:
    assert DOCKERD.pending(settings(docker={"daemon": daemon}), reading(docker=docker)) == []


def test_a_proxy_waits_too() -> None:
    change, _ = restart(settings(proxy={"http": "http://192.0.2.1:3128"}), reading())
    assert "its proxy differs" in change.why


def test_the_text_names_foreign_containers() -> None:
    info = {**recorded()[DOCKER].info, "ContainersRunning": 3}
    change, _ = restart(settings(docker={"daemon": LOG}), reading(docker={"info": info}))
    assert "2 other containers run and may stop with it" in change.why


def test_what_is_asked_and_started_again_is_the_release_that_runs() -> None:
    endpoint = replace(SERVES, current="b" * 12, spec={**FACTS, "hash": "b" * 12}, proven_spec=FACTS)
    _, step = restart(settings(docker={"daemon": LOG}), reading(llm=endpoint))
    assert f"releases/{RUNS}" in part(step, "forward")
    assert f"releases/{RUNS}" in part(step, "back")
    assert RUNS in part(step, "prove")
    assert part(step, "prove") == part(step, "prove_back")
    assert "port=8123" in part(step, "prepare")


def test_an_endpoint_that_is_sick_or_unknown_is_started_again_and_not_asked() -> None:
    for name, host_reading in (("llm", reading(llm=replace(SERVES, health=500))), ("old", reading(old=SERVES))):
        _, step = restart(settings(docker={"daemon": LOG}), host_reading)
        assert (step.endpoints, step.serving) == ((name,), False)
        assert part(step, "prove") == ""
        assert f"systemctl start --no-block rackwright-{name}.service" in part(step, "forward")


def test_the_text_of_a_try_that_failed_here() -> None:
    host_settings = settings(docker={"daemon": LOG})
    _, step = restart(host_settings, reading())
    last_switch = (
        f"last_release={step.configuration}\nlast_outcome=rolled-back\nlast_time=2030-01-01 00:00:00\nlast_reason=no"
    )
    change, _ = restart(host_settings, reading(last_switch))
    assert change.why.endswith("; it was tried here at 2030-01-01 00:00:00: no")


def test_one_that_is_under_way_is_joined_whatever_it_is() -> None:
    host_settings = settings(docker={"daemon": LOG})
    _, step = restart(host_settings, reading())
    _, joined = restart(settings(), reading(docker={"restarting": True, "serving": ()}, llm=SeenEndpoint()))
    assert (joined.job.name, joined.job.aim) == (step.job.name, step.job.aim)
    assert joined.serving


def test_a_view_counts_it_as_draining_first() -> None:
    assert phase_of_job(joining_job().name) == DRAINING


# -- Docker's chains are gone

GONE = ("nat DOCKER", "filter DOCKER-USER")
CHAINS = "Docker's chains are gone (nat DOCKER, filter DOCKER-USER), so no container that publishes a port can start"


def alone(**more: Any) -> dict[str, Any]:
    """Read a host whose endpoints alone run, and whose chains are gone."""
    return {"lacks": GONE, "foreign_running": 0, **more}


def test_chains_that_are_gone_take_a_restart_in_the_hosts_turn_text() -> None:
    host_settings, host_reading = settings(), reading(docker=alone())
    assert not [one for one in DOCKER.pending(host_settings, host_reading) if "dockerd" in one.what]
    change, step = restart(host_settings, host_reading)
    assert change.sentence == f"restart dockerd with llm ({CHAINS})"
    assert (change.owns, change.disowns, change.diff) == ((), (), "")
    assert (step.endpoints, step.serving) == (("llm",), True)
    assert "docker_lacks" in part(step, "prepare"), "the chains may be there again by then"
    assert "iptables cannot make a chain" in part(step, "prepare"), "a dockerd that cannot make them does not start"
    assert f"restarts dockerd and endpoint llm because {CHAINS}" in summary(
        plan_host("g", host_settings, host_reading, EVERYTHING)
    )
    found = [one for one in drift_of("g", host_settings, host_reading, EVERYTHING).findings if one.concern == "dockerd"]
    assert [(one.verdict, CHAINS in one.text) for one in found] == [("moved", True)]


SILENT = "firewalld does not answer; next, on it: look"


def test_a_dockerd_that_would_not_come_up_again_is_not_stopped_in_the_turn() -> None:
    host = reading(docker=alone(waits=(SILENT,)))
    (change,) = DOCKERD.pending(settings(), host)
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert (step.code, step.text.endswith(SILENT)) == ("RW2112", True)
    drift = drift_of("g", settings(), host, EVERYTHING).findings
    assert [one.verdict for one in drift if (one.concern, one.text) == ("docker", SILENT)] == ["moved"]
    _, restarts = restart(settings(), reading(docker=alone()))
    assert part(restarts, "prepare").count("docker_start_waits 10") == 3, (
        "before the drains, behind them, and for the containers"
    )


def test_where_nothing_serves_they_are_made_at_once() -> None:
    host_reading = reading(docker=alone(serving=()), llm=replace(SERVES, active="failed", running=None, health=None))
    assert DOCKERD.pending(settings(), host_reading) == []
    (change,) = [one for one in DOCKER.pending(settings(), host_reading) if "dockerd" in one.what]
    assert (change.what, change.restarts, change.by_itself) == ("restart dockerd", "dockerd", True)
    found = [one for one in drift_of("g", settings(), host_reading, EVERYTHING).findings if one.concern == "docker"]
    assert [one.verdict for one in found if "restart dockerd" in one.text] == ["moved"]


def test_an_endpoint_on_the_hosts_network_needs_none_of_them() -> None:
    host_settings = settings(network="host")
    assert DOCKERD.pending(host_settings, reading(docker=alone())) == []
    assert DOCKERD.pending(settings(), reading(docker={"lacks": ()})) == []


def test_what_others_run_is_not_stopped_for_it_unless_it_outlives_dockerd() -> None:
    assert DOCKERD.pending(settings(), reading(docker=alone(foreign_running=2))) == []
    info = {**recorded()[DOCKER].info, "LiveRestoreEnabled": True}
    change, _ = restart(settings(), reading(docker=alone(foreign_running=2, info=info)))
    assert CHAINS in change.why


def test_the_text_of_a_change_of_the_configuration_says_both() -> None:
    change, _ = restart(settings(docker={"daemon": LOG}), reading(docker=alone()))
    assert change.sentence == f"configure dockerd and restart it with llm ({DAEMON_JSON}: log-level; {CHAINS})"
    assert not change.by_itself


# -- the host's job, with scripted systemd and Docker


SYSTEMCTL = """\
echo "systemctl $*" >>"$STAGE/steps"
case "$*" in
  *--property=ActiveState*)
    [ -f "$STAGE/dies" ] && [ ! -f "$STAGE/back" ] && echo ActiveState=failed || echo ActiveState=active
    echo SubState=running
    ;;
esac
exit 0
"""


class Machine:
    """A folder that stands for a host's, in which the host's job runs with made-up tools."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.job, self.home = folder, folder / "job", folder / "state" / "dockerd"
        self.tools = folder / "tools"
        for one in (self.job, self.tools, folder / "units"):
            one.mkdir()
        self.tool("systemctl", SYSTEMCTL)
        self.tool("docker", 'case $1 in info) echo \'{"ServerVersion":"20","Runtimes":{"nvidia":{}}}\' ;; esac\n')
        self.tool("journalctl", "exit 0\n")
        for name in ("llm", "second"):
            release = folder / "state" / "endpoints" / name / "releases" / RUNS
            release.mkdir(parents=True)
            (release / f"rackwright-{name}.service").write_text("unit\n")

    def tool(self, name: str, text: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)

    def stood(self, name: str, **values: Any) -> Part:
        hooks = {f"{hook}_hook": ["sh", "-c", f"echo {hook} {name} >>$STAGE/steps"] for hook in ("drain", "ready")}
        settings = EndpointSettings.model_validate({"drain_timeout": 0, "load_timeout": 5, **hooks, **values})
        return Part(name, settings, Tried(RUNS, BOUND, "", ()), Tried(RUNS, BOUND, "", ()), 8000)

    def run(self, *stood: Part, others: tuple[str, ...] = (), **failing: str) -> tuple[int, list[str], str]:
        """Exit status, what was done in order, and what was said."""
        steps = self.folder / "steps"

        def script(name: str, more: str = "") -> str:
            return f"echo {name} >>{steps}; {more}{failing.get(name, 'true')}"

        ways = (script("valid"), script("restart"), script("back", f": >{self.folder}/back; "))
        scripts = Scripts(*ways, "true", failing.get("again", ""))
        job = restart_job("conf", scripts, stood or (self.stood("llm"), self.stood("second")), others)
        text = job.script.replace("/var/lib/rackwright", str(self.folder / "state"))
        (self.job / "nonce").write_text("n\n")
        (self.job / "script").write_text(text.replace("/etc/systemd/system", str(self.folder / "units")))
        path = f"{self.tools}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "JOB": str(self.job), "STAGE": str(self.folder)}
        command = f"sh {self.job}/script >>{self.job}/log 2>&1"
        done = subprocess.run(["sh", "-c", command], env=env, check=False, timeout=60)
        words = ("systemctl stop rackwright", "systemctl start", "valid", "restart", "back", "drain", "ready")
        done_steps = [text for text in steps.read_text().splitlines() if text.startswith(words)]
        stream = JobStream("n")
        heard = [*stream.take((self.job / "log").read_bytes(), (self.job / "events").read_bytes()), *stream.end()]
        messages = [one if isinstance(one, str) else f"{one.kind}: {one.text}" for one in heard]
        return done.returncode, done_steps, "\n".join(messages)

    def marks(self) -> list[str]:
        return sorted(path.parent.name for path in self.folder.glob("state/endpoints/*/not-admitted"))

    def last(self) -> dict[str, str]:
        return dict(row.split("=", 1) for row in (self.home / "last-switch").read_text().splitlines())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


STOPS = "systemctl stop rackwright-llm.service rackwright-second.service"
STARTS = [f"systemctl start --no-block rackwright-{name}.service" for name in ("llm", "second")]
DRAINS, READY = ["drain llm", "drain second"], ["ready llm", "ready second"]


def test_all_are_drained_stopped_and_started_again_around_one_restart(machine: Machine) -> None:
    status, steps, log = machine.run()
    assert (status, steps) == (0, ["valid", *DRAINS, STOPS, "restart", *STARTS, *READY]), log
    assert (machine.last()["release"], machine.last()["outcome"]) == ("conf", "committed")
    assert machine.marks() == []
    assert (machine.folder / "units" / "rackwright-llm.service").read_text() == "unit\n"


def test_those_that_do_not_serve_are_started_too(machine: Machine) -> None:
    status, steps, log = machine.run(machine.stood("llm"), others=("sick",))
    assert status == 0, log
    assert "systemctl stop rackwright-llm.service rackwright-sick.service" in steps
    assert "systemctl start --no-block rackwright-sick.service" in steps


def test_a_configuration_that_dockerd_knows_to_be_bad_stops_nothing(machine: Machine) -> None:
    status, steps, _ = machine.run(valid="{ echo no such key >$reason; exit 1; }")
    assert (status, steps) == (5, ["valid", *READY])
    assert machine.last()["reason"] == "no such key"


def test_a_firewalld_that_stops_answering_in_the_drain_stops_nothing(machine: Machine) -> None:
    status, steps, log = machine.run(again="echo silent >$reason; echo waits >$cause; exit 1")
    assert (status, steps) == (5, ["valid", *DRAINS, *READY]), log
    assert machine.last()["reason"] == "silent"
    progress = switch_progress(Event("cause", "waits"), Event("end", "not-switched silent"))
    error = ending(STEP, progress, Ended(5))
    assert isinstance(error, NotStartedError)
    assert error.code == WAITS


def test_a_release_that_is_gone_stops_nothing_text(machine: Machine) -> None:
    shutil.rmtree(machine.folder / "state" / "endpoints" / "second" / "releases")
    status, steps, log = machine.run()
    assert (status, steps) == (5, ["valid", *READY])
    assert "endpoint second serves a release that is no longer on the host" in log


def test_a_drain_hook_that_fails_lets_those_before_it_in_again_text(machine: Machine) -> None:
    status, steps, _ = machine.run(machine.stood("llm"), machine.stood("second", drain_hook=["false"]))
    assert (status, steps) == (5, ["valid", "drain llm", *READY])
    assert machine.marks() == []
    assert machine.last()["reason"] == "endpoint second: the drain_hook ended with status 1: false"


def test_a_dockerd_that_does_not_start_gets_its_configuration_of_before_text(machine: Machine) -> None:
    status, steps, log = machine.run(restart="{ echo dockerd did not restart >$reason; exit 1; }")
    assert (status, steps) == (3, ["valid", *DRAINS, STOPS, "restart", STOPS, "back", *STARTS, *READY]), log
    assert "failed: dockerd did not restart" in log
    assert "rolling back to dockerd's previous configuration" in log
    assert "back: " in log
    assert (machine.last()["outcome"], machine.last()["reason"]) == ("rolled-back", "dockerd did not restart")
    assert [path.parent.parent.name for path in machine.folder.glob("state/**/failed/*-dockerd-conf.log")].count(
        "dockerd"
    ) == 1


def test_an_endpoint_that_does_not_come_up_again_rolls_back_too_text(machine: Machine) -> None:
    (machine.folder / "dies").touch()
    status, steps, log = machine.run()
    assert status == 3, log
    assert steps.count("restart") == steps.count("back") == 1
    assert "failed: endpoint llm: the server died after 0 s" in log


def test_when_rolling_back_fails_nobody_is_let_in(machine: Machine) -> None:
    status, steps, log = machine.run(restart="exit 1", back="{ echo broken >$reason; exit 1; }")
    assert status == 4
    assert "lost: broken" in log
    assert not set(READY) & set(steps)
    assert machine.marks() == ["llm", "second"]


def test_a_ready_hook_that_fails_leaves_its_own_mark_alone_text(machine: Machine) -> None:
    status, steps, log = machine.run(machine.stood("llm", ready_hook=["false"]), machine.stood("second"))
    assert status == 0
    assert "not-admitted: the ready_hook ended with status 1: false" in log
    assert steps[-1] == "ready second"
    assert machine.marks() == ["llm"]


@pytest.mark.parametrize("shell", [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)])
def test_scripts_in_turn_end_with_the_first_that_fails(shell: str) -> None:
    words = [shell, "sh"] if shell == "busybox" else [shell]
    for text, status, message in [
        (in_turn(["echo a; exit 0", "", "x=1; echo b$x"]), 0, "a b1"),
        (in_turn(["echo a", "set -e; false; echo b", "echo c"]), 1, "a"),
        (in_turn([]), 0, ""),
    ]:
        done = subprocess.run([*words, "-c", text], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.split()) == (status, message.split())


# -- how its end is reported


STEP = DaemonRestart(("llm", "second"), "conf", Job("dockerd", "restart dockerd", "true"), serving=True)


def switch_progress(*lines: Event) -> SwitchProgress:
    progress = SwitchProgress("dockerd", f"{HOME}/failed", "configuration")
    for row in lines:
        progress.hear(row)
    return progress


@pytest.mark.parametrize(
    ("status", "lines", "kind", "text"),
    [
        (
            3,
            (Event("failed", "no"), Event("back", "0.8 14.2")),
            ConfigurationBackError,
            "serving again: llm, second: pointing back took 0.8 s",
        ),
        (
            4,
            (Event("failed", "no"), Event("lost", "bad")),
            NothingServesError,
            "and rolling back failed too: bad\nmanual action needed",
        ),
        (
            5,
            (Event("end", "not-switched no"),),
            NotStartedError,
            "dockerd was not restarted, still serving: llm, second: no",
        ),
        (None, (), UnknownEndError, "it is not known yet whether that serves"),
        (0, (Event("not-admitted", "no"),), NotAdmittedError, "proven: llm, second; clients are not let in again: no"),
    ],
)
def test_each_way_out_is_an_error_of_its_own(
    status: int | None, lines: tuple[Event, ...], kind: type[Exception], text: str
) -> None:
    error = ending(STEP, switch_progress(*lines), Ended(status))
    assert type(error) is kind
    assert text in str(error)


def test_a_good_end_is_none() -> None:
    assert ending(STEP, switch_progress(Event("end", "committed")), Ended(0)) is None


def test_its_text_is_that_of_a_configuration() -> None:
    hear: Callable[[Event], Any] = SwitchProgress("dockerd", f"{HOME}/failed", "configuration").hear
    assert hear(Event("failed", "no")).text == "no; not keeping this configuration"


def test_its_folder_is_none_of_the_endpoints() -> None:
    assert "/endpoints" not in HOME
