"""Endpoints on a real host: bad releases go back, dead ones heal, and nothing restarts without a reason."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab import tutorial
from tests.lab.calm import needs_preparing
from tests.lab.conftest import BIN, PATIENCE, ROOT, Run, Site
from tests.lab.products import with_proof
from tests.lab.running import deploying

pytestmark = pytest.mark.lab

HOME = "/var/lib/rackwright/endpoints"


@dataclass(frozen=True)
class Scene:
    """One lived-in host whose endpoint `llm` serves a proven release."""

    site: Site
    host: Host

    def deploy(self, *options: str, **data: Any) -> Run:
        """A plain run on this host with settings given on the command line."""
        given = [word for key, value in data.items() for word in ("--data", f"{key}={json.dumps(value)}")]
        return self.site.deploy(*(options or ("-y",)), *given, limit=[self.host.name])

    def ask(self, port: int = 8000) -> str:
        body = {
            "model": "gpt-oss-120b",
            "messages": [{"role": "user", "content": "What is 17 + 25? Answer with the number only."}],
            "max_tokens": 512,
        }
        line = f"curl -sS -H 'Content-Type: application/json' -d @- http://127.0.0.1:{port}/v1/chat/completions"
        answer = json.loads(self.host.run(line, stdin=json.dumps(body)).stdout)
        return str(answer["choices"][0]["message"]["content"])

    def starts(self, endpoint: str = "llm") -> int:
        """How often systemd has started the endpoint on this host so far."""
        line = f"journalctl --sync; journalctl -u rackwright-{endpoint} --no-pager -o cat | grep -c '^Starting '"
        return int(self.host.run(line, check=False).stdout)

    def runs(self, endpoint: str = "llm") -> str:
        """The release that the running container was started with."""
        label = '{{index .Config.Labels "rackwright.release"}}'
        return self.host.run(f"docker inspect --format '{label}' rackwright-{endpoint}").stdout.strip()

    def proven(self, endpoint: str = "llm") -> str:
        return self.host.run(f"basename $(readlink {HOME}/{endpoint}/proven)").stdout.strip()

    def wait(self, state: str, endpoint: str = "llm", seconds: int = 60) -> None:
        line = f"[ $(systemctl is-active rackwright-{endpoint}) = {state} ]"
        self.host.run(f"for i in $(seq {seconds * 2}); do {line} && exit 0; sleep 0.5; done; exit 1")

    @contextmanager
    def faults(self, *rules: Mapping[str, Any]) -> Iterator[None]:
        self.host.set_engine_faults(*rules)
        try:
            yield
        finally:
            self.host.set_engine_faults()


@pytest.fixture(scope="module")
def fresh(worker_lab: Lab) -> Host:
    host = worker_lab.host("lived2")
    host.reset()
    return host


@pytest.fixture
def scene(fresh: Host, site: Site, request: pytest.FixtureRequest) -> Scene:
    """The host as the tests before left it: they end with what they found, or say otherwise."""
    scene = Scene(site, fresh)
    if needs_preparing(request):
        run = scene.deploy()
        assert run.status == 0, run.output
    return scene


def interval(number: int) -> dict[str, int]:
    """A YAML change that one case has for itself."""
    return {"stream_interval": number}


# -- what restarts, and what does not


def test_a_yaml_change_restarts_once_and_says_why(scene: Scene) -> None:
    before = scene.starts()
    run = scene.deploy(engine={"kv_cache_config": {"free_gpu_memory_fraction": 0.7}})
    assert run.status == 0, run.output
    assert "(kv_cache_config changed)" in run.output
    assert scene.starts() == before + 1
    assert "42" in scene.ask()
    back = scene.deploy()
    assert back.status == 0
    assert tutorial.missing(8, run.output, scene.host.name, block=2) == []
    assert tutorial.missing(8, run.output, scene.host.name, block=3) == []
    assert tutorial.missing(9, back.output, scene.host.name) == []


def test_another_port_is_proven_there(scene: Scene) -> None:
    run = scene.deploy(port=8005)
    assert run.status == 0, run.output
    assert "port changed" in run.output
    assert "42" in scene.ask(8005)
    assert scene.deploy().status == 0


def ports_in_rules(scene: Scene) -> set[str]:
    """The ports that our rules let anybody reach, IPv4 and IPv6."""
    rules = scene.host.run("iptables-save -t filter; ip6tables-save -t filter").stdout.splitlines()
    ours = [rule for rule in rules if '--comment "rackwright:llm' in rule]
    return {found for rule in ours for found in re.findall(r"port (\d+)", rule)}


def test_the_rules_follow_what_serves(scene: Scene) -> None:
    assert scene.deploy(port=8000).status == 0
    with scene.faults({"fault": "repeat_bang", "when": {"port": 8006}}):
        run = scene.deploy(port=8006)
    assert "serves its last proven release again" in run.output
    assert "42" in scene.ask(8000)
    assert ports_in_rules(scene) == {"8000"}
    with (
        scene.faults({"fault": "load_seconds", "value": 8, "when": {"port": 8007}}),
        deploying(scene.site, scene.host.name, "--data", "port=8007") as running,
    ):
        assert running.until("switching to release") is not None, running.output
        assert ports_in_rules(scene) == {"8000", "8007"}
        run = running.end()
    assert run.status == 0, run.output
    assert ports_in_rules(scene) == {"8007"}
    assert scene.deploy(port=8007).changed == []
    back = scene.site.rackwright("rollback", "inventory/lab.py", "-y", "--limit", scene.host.name)
    assert back.status == 0, back.output
    assert "42" in scene.ask(8000)
    assert ports_in_rules(scene) == {"8000"}
    drift = scene.site.rackwright("drift", "inventory/lab.py", "--limit", scene.host.name)
    assert drift.status == 0, drift.output
    assert scene.deploy().changed == []


def test_firewall_and_time_limits_restart_nothing(scene: Scene) -> None:
    before, release = scene.starts(), scene.runs()
    asked: dict[str, Any] = {"stop_timeout": 25, "allow_from": ["10.79.0.0/16", "192.0.2.0/24"]}
    run = scene.deploy(**asked)
    assert run.status == 0, run.output
    assert "is adopted at the next switch" in run.output
    assert scene.deploy(**asked).changed == []
    assert (scene.runs(), scene.starts()) == (release, before)
    assert "TimeoutStopSec=40" not in scene.host.run("systemctl cat rackwright-llm").stdout
    scene.host.run("docker exec rackwright-llm sh -c 'cd /config/release && sha256sum --check --quiet SHA256SUMS'")
    adopted = scene.deploy(**asked, rollout={"adopt": True})
    assert adopted.status == 0, adopted.output
    assert "its unit or its helper scripts differ, and --adopt asks for them" in adopted.output
    assert "proved: a chat answer" in adopted.output
    assert scene.runs() == scene.proven() != release
    assert scene.starts() == before + 1
    assert "TimeoutStopSec=40" in scene.host.run("systemctl cat rackwright-llm").stdout
    assert scene.deploy(rollout={"adopt": True}).status == 0
    assert scene.runs() == release
    assert scene.deploy().changed == []


# -- bad releases


BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "dies at the end of its load": ({"fault": "die_at_end_of_load"}, {}, "OutOfMemoryError"),
    "never ready": ({"fault": "never_ready"}, {"load_timeout": 8}, "not ready within its load_timeout"),
    "dies when asked": ({"fault": "die_after_requests", "value": 0}, {}, "no answer"),
    "repeats itself": ({"fault": "repeat_bang"}, {}, "chat repeats one token"),
    "answers wrongly": ({"fault": "wrong_answers"}, {}, "refused: a chat answer: 17 \\+ 25 is answered with"),
    "another model": ({"fault": "model_id", "value": "other"}, {}, "answers other, expected gpt-oss-120b"),
}


TUTORIAL_CASE, TUTORIAL_CHANGE = "repeats itself", {"max_batch_size": 8}


@pytest.mark.parametrize("case", with_proof(BAD, {"never ready", "dies when asked", TUTORIAL_CASE}))
def test_a_bad_release_goes_back(scene: Scene, case: str) -> None:
    fault, data, sentence = BAD[case]
    change = TUTORIAL_CHANGE if case == TUTORIAL_CASE else interval(2 + list(BAD).index(case))
    good = scene.proven()
    with scene.faults({**fault, "when": {f"option.{key}": value for key, value in change.items()}}):
        run = scene.deploy(engine=change, **data)
    assert run.status != 0
    assert re.search(sentence, run.output), run.output
    assert "serves its last proven release again" in run.output
    assert scene.runs() == scene.proven() == good
    assert "42" in scene.ask()
    kept = re.findall(r"the log of the failed try is kept on the host: (\S+)\.log", run.output)
    assert "Starting" in scene.host.run(f"cat {kept[-1]}.log").stdout
    assert good in scene.host.run(f"cat {kept[-1]}.before.log").stdout
    assert re.search(r"pointing back took [\d.]+ s, serving again after [\d.]+ s", run.output), run.output
    (fetched,) = re.findall(r"the failed release's log: (/\S+)", run.output)
    assert "Starting" in Path(fetched).read_text()
    if case == TUTORIAL_CASE:
        assert tutorial.missing(10, run.output, scene.host.name) == []


def test_a_command_line_that_the_image_refuses_is_never_switched_to(scene: Scene) -> None:
    before = scene.starts()
    run = scene.deploy(engine=interval(9), arguments=["--nonsense"])
    assert run.status != 0
    assert "the server's command line refuses it: No such option" in run.output
    assert scene.starts() == before


def test_after_going_back_the_old_settings_have_nothing_to_do(scene: Scene) -> None:
    assert scene.deploy().changed == []


def test_going_back_that_fails_too_is_said(scene: Scene) -> None:
    """The vocabularies are spoilt after they were staged, so that neither release can chat."""
    with scene.faults({"fault": "load_seconds", "value": 12, "when": {"option.stream_interval": 20}}):
        running = start(scene, engine=interval(20))
        scene.wait("activating")
        scene.host.run("cd /srv/encodings && for f in *.tiktoken; do echo spoilt >$f; done")
        output, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode != 0
    assert "chat answers 400" in output
    assert "going back failed too" in output
    assert "hands needed" in output
    run = scene.deploy()
    assert run.status == 0, run.output
    assert "42" in scene.ask()


def start(scene: Scene, **data: Any) -> subprocess.Popen[str]:
    """A deploy that goes on beside the test."""
    given = [word for key, value in data.items() for word in ("--data", f"{key}={json.dumps(value)}")]
    return subprocess.Popen(
        [str(BIN / "pyinfra"), "inventory/lab.py", "deploy.py", "-y", "--limit", scene.host.name, *given],
        cwd=ROOT,
        env=scene.site.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_full_disk_at_the_release_leaves_the_endpoint_serving(scene: Scene) -> None:
    good, before = scene.runs(), scene.starts()
    scene.host.run("mount -t tmpfs -o size=4k,nr_inodes=1 small " + f"{HOME}/llm/releases")
    try:
        run = scene.deploy(engine=interval(21))
    finally:
        scene.host.run(f"umount {HOME}/llm/releases")
    assert run.status != 0
    assert "No space left on device" in run.output
    assert (scene.runs(), scene.starts()) == (good, before)
    assert scene.deploy().status == 0


# -- a switch that is cut, and one that waits


def test_a_run_killed_while_the_endpoint_loads_is_proven_by_the_next(scene: Scene) -> None:
    before = scene.starts()
    with scene.faults({"fault": "load_seconds", "value": 15, "when": {"option.stream_interval": 22}}):
        running = start(scene, engine=interval(22))
        scene.wait("activating")
        running.kill()
        running.communicate()
        run = scene.deploy(engine=interval(22))
    assert run.status == 0, run.output
    assert "was never proven" in run.output
    assert "proved: a chat answer" in run.output
    assert scene.starts() == before + 1
    assert scene.runs() == scene.proven()
    assert scene.deploy().status == 0


def test_a_gpu_that_fails_during_the_switch_is_seen(scene: Scene) -> None:
    line = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, GPU has fallen off the bus."
    with scene.faults({"fault": "load_seconds", "value": 8, "when": {"option.stream_interval": 24}}):
        running = start(scene, engine=interval(24))
        scene.wait("activating")
        scene.host.run(f"logger -t kernel '{line}'")
        output, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode != 0
    assert f"GPU errors since the switch: {line}" in output
    assert "serves its last proven release again" in output


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
        settings = ("--data", f"engine={json.dumps(interval(23))}", "--data", "drain_timeout=120")
        with deploying(scene.site, scene.host.name, *settings) as running:
            # It goes on as fast as ever once the deploy waits for it, so the machine's pace decides nothing.
            seen = running.until("draining: 1 connections open")
            scene.host.set_engine_faults()
            run = running.end()
    assert run.status == 0, run.output
    assert seen, run.output
    assert "[DONE]" in scene.host.run("cat /root/stream.txt").stdout
    assert scene.deploy().status == 0


# -- the host's own switch: hooks, and nobody watching


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
    assert "it serves what it served: the drain_hook ended with status 1: /root/balancer drain" in run.output
    assert (scene.runs(), scene.starts()) == (good, before)
    scene.host.run("rm /root/refuse-drain; touch /root/refuse-ready")
    run = scene.deploy(engine=interval(25), **hooks)
    assert run.status != 0
    assert "clients are not let in again: the ready_hook ended with status 1" in run.output
    new = scene.proven()
    assert new != good
    scene.host.run("rm /root/refuse-ready")
    run = scene.deploy(engine=interval(25), **hooks)
    assert run.status == 0, run.output
    assert "clients were not let in again after its last switch" in run.output
    assert scene.starts() == before + 1
    assert scene.deploy(engine=interval(25), **hooks).changed == []
    assert scene.host.run("cat /root/balancer.log").stdout.splitlines() == [
        f"drain llm 8000 active {new}",
        f"ready llm 8000 active {good}",
        f"drain llm 8000 active {new}",
        f"ready llm 8000 active {new}",
        f"ready llm 8000 active {new}",
    ]
    assert scene.deploy().status == 0


def ended(scene: Scene, outcome: str) -> str:
    """Wait until the host's switch has ended so, with nobody watching; returns the reason that the host remembers."""
    line = f"grep -qx outcome={outcome} {HOME}/llm/last-switch"
    scene.host.run(f"for i in $(seq 200); do {line} && exit 0; sleep 0.3; done; cat {HOME}/llm/last-switch; exit 1")
    return scene.host.run(f"sed -n s/^reason=//p {HOME}/llm/last-switch").stdout.strip()


def test_a_host_that_is_cut_off_during_its_switch_commits_alone(scene: Scene) -> None:
    good = scene.proven()
    scene.host.run(f"rm -f {HOME}/llm/last-switch")
    with deploying(scene.site, scene.host.name, "--data", f"engine={json.dumps(interval(26))}") as running:
        assert running.until("switching to release") is not None, running.output
        scene.host.cut_network()
        try:
            assert ended(scene, "committed") == ""
            assert scene.proven() == scene.runs() != good
            run = running.end()
        finally:
            scene.host.restore_network()
    assert run.status == 1
    assert "the host finishes the switch by itself, or goes back" in run.output
    assert scene.deploy(engine=interval(26)).changed == []


def test_with_the_control_process_killed_before_its_word_the_host_goes_back_alone(scene: Scene) -> None:
    good = scene.proven()
    scene.host.run(f"rm -f {HOME}/llm/last-switch")
    options = {"engine": interval(27), "gate": {"level": "full", "commit_deadline": 6}}
    given = [word for key, value in options.items() for word in ("--data", f"{key}={json.dumps(value)}")]
    with deploying(scene.site, scene.host.name, *given) as running:
        assert running.until("basic proof passed") is not None, running.output
        running.stop()
    assert ended(scene, "went-back").startswith("no word came within 6 s (gate.commit_deadline)")
    assert scene.proven() == scene.runs() == good
    assert "42" in scene.ask()
    again = scene.deploy("--dry", engine=interval(27))
    assert "it was tried here at" in again.output


def test_a_host_that_waits_for_a_killed_control_process_gets_the_word_of_the_next(scene: Scene) -> None:
    before = scene.starts()
    options = {"engine": interval(28), "gate": {"level": "full", "commit_deadline": 120}}
    given = [word for key, value in options.items() for word in ("--data", f"{key}={json.dumps(value)}")]
    with deploying(scene.site, scene.host.name, *given) as running:
        assert running.until("basic proof passed") is not None, running.output
        running.stop()
    run = scene.deploy(**options)
    assert run.status == 0, run.output
    assert "already under way on the host, joining it" in run.output
    assert "proved: a tool call" in run.output
    assert scene.starts() == before + 1
    assert scene.proven() == scene.runs()
    assert scene.deploy().status == 0


# -- dockerd is restarted under an endpoint that serves


DAEMON_JSON = "/etc/docker/daemon.json"


def daemon(scene: Scene) -> tuple[str, str]:
    """dockerd's configuration, and when it was started."""
    started = "systemctl show docker.service --property=ExecMainStartTimestampMonotonic"
    return scene.host.run(f"cat {DAEMON_JSON}").stdout, scene.host.run(started).stdout


def test_a_restart_of_dockerd_is_a_switch(scene: Scene) -> None:
    assert scene.deploy().status == 0  # at the release that is wanted: nothing else is to be switched
    before, (text, started) = scene.starts(), daemon(scene)
    wanted = {"docker": {"daemon": {"log-level": "warn"}}}
    ahead = scene.deploy("--dry", **wanted)
    assert f"would configure dockerd and restart it with llm ({DAEMON_JSON}: log-level)" in ahead.output
    assert daemon(scene) == (text, started)
    run = scene.deploy(**wanted)
    assert run.status == 0, run.output
    assert run.changed == ["Endpoint | Each endpoint runs its wanted release and has answered"]
    assert "proved: a chat answer" in run.output
    assert json.loads(daemon(scene)[0])["log-level"] == "warn"
    assert daemon(scene)[1] != started
    assert scene.starts() == before + 1
    assert "42" in scene.ask()
    assert scene.deploy(**wanted).changed == []


def test_a_configuration_that_dockerd_cannot_start_with_goes_back(scene: Scene) -> None:
    good: dict[str, Any] = {"log-level": "warn"}
    assert scene.deploy(docker={"daemon": good}).status == 0  # at the release and daemon.json that are wanted
    before, (text, _) = scene.starts(), daemon(scene)
    # The unit names hosts on dockerd's command line, which --validate does not see.
    run = scene.deploy(docker={"daemon": {**good, "hosts": ["unix:///var/run/docker.sock"]}})
    assert run.status == 1, run.output
    assert "specified both as a flag and in the configuration file: hosts" in run.output
    assert "dockerd has its previous configuration, serving again: llm" in run.output
    assert "-dockerd-" in scene.host.run("ls /var/lib/rackwright/dockerd/failed").stdout
    assert daemon(scene)[0] == text
    assert scene.starts() == before + 1
    assert "42" in scene.ask()
    assert scene.deploy(docker={"daemon": good}).changed == []


def test_a_restart_of_dockerd_that_lost_its_control_process_is_joined(scene: Scene) -> None:
    assert scene.deploy(docker={"daemon": {"log-level": "warn"}}).status == 0  # a key that the next run takes away
    before = scene.starts()
    with scene.faults({"fault": "load_seconds", "value": 12}):
        with deploying(scene.site, scene.host.name) as running:
            assert running.until("switching to release") is not None, running.output
            running.stop()
        run = scene.deploy()
    assert run.status == 0, run.output
    assert "already under way on the host, joining it" in run.output
    assert "log-level" not in daemon(scene)[0]
    assert scene.starts() == before + 1
    assert "42" in scene.ask()
    assert scene.deploy().changed == []


# -- faults under an endpoint that serves


def test_one_that_loads_is_waited_for_and_that_is_no_change(scene: Scene) -> None:
    with scene.faults({"fault": "load_seconds", "value": 15}):
        scene.host.run("systemctl restart --no-block rackwright-llm; sleep 1")
        scene.wait("activating")
        before = scene.starts()
        run = scene.deploy()
    assert run.status == 0, run.output
    assert "ready after" in run.output
    assert run.changed == []
    assert scene.starts() == before


def test_it_gives_up_after_three_deaths_and_the_next_run_heals(scene: Scene) -> None:
    before = scene.starts()
    with scene.faults({"fault": "die_at_end_of_load"}):
        scene.host.run("docker kill rackwright-llm")
        scene.wait("failed", seconds=90)
    assert scene.starts() - before <= 3
    run = scene.deploy()
    assert run.status == 0, run.output
    assert "it gave up (" in run.output
    assert "42" in scene.ask()


def test_an_unhealthy_endpoint_is_restarted_once_and_its_log_kept(scene: Scene) -> None:
    scene.host.run("systemctl restart rackwright-llm")
    before = scene.starts()
    with scene.faults({"fault": "unhealthy_after_seconds", "value": 25}):
        scene.host.run("for i in $(seq 60); do curl -fs http://127.0.0.1:8000/health || exit 0; sleep 1; done; exit 1")
        run = scene.deploy()
    assert run.status == 0, run.output
    assert "it runs, but /health answers" in run.output
    assert scene.starts() == before + 1
    assert scene.host.run(f"ls {HOME}/llm/failed | grep unhealthy").stdout


def test_dockerd_that_is_down_is_started_and_nothing_deleted(scene: Scene) -> None:
    models = scene.host.run("ls /srv/models").stdout
    scene.host.run("systemctl stop docker.socket docker.service")
    run = scene.deploy()
    assert run.status == 0, run.output
    assert "42" in scene.ask()
    assert scene.host.run("ls /srv/models").stdout == models


def test_a_removed_container_comes_back_by_itself(scene: Scene) -> None:
    scene.host.run("systemctl reset-failed rackwright-llm; docker rm -f rackwright-llm; sleep 1")
    scene.wait("active")
    assert "42" in scene.ask()
    assert scene.deploy().changed == []


def test_a_lost_gpu_stops_the_run_and_not_the_endpoint(scene: Scene) -> None:
    before = scene.starts()
    scene.host.gpu.set(gpus=7)
    try:
        run = scene.deploy()
    finally:
        scene.host.gpu.set()
    assert run.status != 0
    assert "GPU count" in run.output
    assert scene.starts() == before
    assert "42" in scene.ask()


def test_a_swapped_gpu_restarts_the_same_release_and_is_in_no_ones_way_back(scene: Scene) -> None:
    release, before = scene.runs(), scene.starts()
    new = scene.host.gpu.swap(3)
    run = scene.deploy()
    assert run.status == 0, run.output
    assert f"switch endpoint llm to release {release} and ask it (its GPUs changed)" in run.output
    assert (scene.runs(), scene.starts()) == (release, before + 1)
    assert new in scene.host.run("docker exec rackwright-llm nvidia-smi -L").stdout
    assert scene.deploy().changed == []
    newer = scene.host.gpu.swap(3, "another")
    back = scene.site.rackwright("rollback", "inventory/lab.py", "-y", "--limit", scene.host.name)
    assert back.status == 0, back.output
    assert scene.runs() == scene.proven() != release
    assert newer in scene.host.run("docker exec rackwright-llm nvidia-smi -L").stdout
    assert "42" in scene.ask()
    assert scene.deploy().status == 0
    assert scene.runs() == release


def test_a_daemon_reload_leaves_the_gpus(scene: Scene) -> None:
    scene.host.run("systemctl daemon-reload")
    assert scene.host.run("docker exec rackwright-llm nvidia-smi -L").stdout.count("GPU ") == 8


def test_it_starts_and_chats_with_no_route_out(scene: Scene) -> None:
    route = scene.host.run("ip route show default").stdout.strip()
    scene.host.run("ip route del default")
    try:
        scene.host.run("systemctl restart rackwright-llm")
        assert "42" in scene.ask()
    finally:
        scene.host.run(f"ip route add {route}")


# -- what is promised before a run


def test_what_render_writes_is_what_lies_on_the_host(scene: Scene, tmp_path: Path) -> None:
    run = scene.site.rackwright(
        "render", "inventory/lab.py", "--host", scene.host.name, "--out", str(tmp_path), timeout=60
    )
    assert run.status == 0, run.output
    spec = json.loads(scene.host.run(f"cat {HOME}/llm/current/spec.json").stdout)
    (folder,) = (tmp_path / HOME.lstrip("/") / "llm/releases").iterdir()
    guessed = json.loads((folder / "spec.json").read_text())
    learned = {guessed[key]: spec[key] for key in ("image", "hash", "serving")}
    mounts = zip(guessed["mounts"], spec["mounts"], strict=True)
    learned |= {one["source"]: other["source"] for one, other in mounts}
    for file in sorted(folder.iterdir()):
        if file.name == "spec.json":
            continue
        text = file.read_text()
        for unknown, known in sorted(learned.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(unknown, known)
        assert text == scene.host.run(f"cat {HOME}/llm/current/{file.name}").stdout, file.name


def test_looking_ahead_at_a_bare_host_tells_all_and_writes_nothing(worker_lab: Lab, site: Site) -> None:
    host = worker_lab.host("bare1")
    host.reset()
    before = listing(host)
    run = site.deploy("--dry", limit=[host.name])
    assert run.status == 0, run.output
    for sentence in (
        "would install",
        "would pull",
        "would fetch",
        "would write release",
        "would start endpoint llm",
    ):
        assert sentence in run.output, sentence
    assert listing(host) == before
    assert tutorial.missing(4, run.output, host.name) == []


def listing(host: Host) -> str:
    """Every file with its size and time, except what a login itself leaves."""
    pruned = " -o ".join(
        f"-path {path}" for path in ("/proc", "/sys", "/run", "/dev", "/tmp", "/var/log", "/var/lib/systemd")
    )
    return host.run(f"find / \\( {pruned} \\) -prune -o -type f -printf '%p %s %t\\n' | sort").stdout


# -- several endpoints; last, because the host is another one afterwards


def sessions(host: Host) -> int:
    """Commands that sshd has started for others since the host was made."""
    journal = host.run("journalctl -u ssh --no-pager -o cat | grep -c 'Starting session'", check=False).stdout
    return int(journal.strip() or 0)


def endpoints(*names: str, b: Mapping[str, Any] | None = None) -> dict[str, Any]:
    four = {"tensor_parallel_size": 4, "moe_expert_parallel_size": 4}
    rows: dict[str, Any] = {
        "a": {"port": 8000, "gpus": [0, 1, 2, 3], "engine": four},
        "b": {"port": 8001, "gpus": [4, 5, 6, 7], "engine": {**four, **(b or {})}},
    }
    return {name: rows[name] for name in names}


def named(scene: Scene, name: str, **own: Any) -> dict[str, Any]:
    """The same endpoint under another name."""
    return {"endpoint_name": name, **own}


def test_a_new_name_that_fails_leaves_the_old_one_serving(scene: Scene) -> None:
    good = scene.runs()
    with scene.faults({"fault": "repeat_bang", "when": {"port": 8009}}):
        run = scene.deploy(**named(scene, "chat", port=8009))
    assert run.status != 0
    assert "replace endpoint llm by endpoint chat at release" in run.output
    assert "endpoint llm serves again, in whose place chat was to" in run.output
    assert scene.runs() == scene.proven() == good
    assert "42" in scene.ask(8000)
    states = scene.host.run("systemctl is-active rackwright-chat; systemctl is-enabled rackwright-llm", check=False)
    assert states.stdout.split() == ["inactive", "enabled"]


def test_a_new_name_is_a_switch_that_a_rollback_undoes(scene: Scene) -> None:
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
    assert scene.deploy().changed == []


def test_two_endpoints_beside_each_other(scene: Scene) -> None:
    with scene.faults({"fault": "repeat_bang", "when": {"port": 8001}}):
        failed = scene.deploy(endpoints=endpoints("a", "b"))
    assert failed.status != 0
    assert "endpoint llm serves again, in whose place a was to" in failed.output
    assert "42" in scene.ask(8000)
    run = scene.deploy(endpoints=endpoints("a", "b"))
    assert run.status == 0, run.output
    assert "replace endpoint llm by endpoint a at release" in run.output
    assert "42" in scene.ask(8000)
    assert "42" in scene.ask(8001)
    before = sessions(scene.host)
    again = scene.deploy(endpoints=endpoints("a", "b"))
    assert again.changed == [], again.output
    assert sessions(scene.host) - before <= 3, "round trips do not grow with the endpoints"


@pytest.fixture
def pair(scene: Scene) -> None:
    """Two endpoints serve on the host, `a` and `b`, each at its own port."""
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


def test_with_nothing_to_go_back_to_it_is_stopped(scene: Scene) -> None:
    assert scene.deploy(endpoints=endpoints("a")).status == 0
    before = scene.starts("a")
    with scene.faults({"fault": "repeat_bang", "when": {"port": 8001}}):
        run = scene.deploy(endpoints=endpoints("a", "b"))
    assert run.status != 0
    assert "endpoint b is stopped: there was no other proven release to go back to" in run.output
    states = scene.host.run("systemctl is-active rackwright-a rackwright-b", check=False).stdout.split()
    assert states == ["active", "inactive"]
    assert scene.starts("a") == before
    run = scene.deploy(endpoints=endpoints("a", "b"))
    assert run.status == 0, run.output


def swapped(b: Mapping[str, Any] | None = None, **own: Any) -> dict[str, Any]:
    """Both endpoints, each at the port that the other one had. b: engine options of b's; own: other settings of b's."""
    rows = endpoints("a", "b", b=b)
    return {"a": {**rows["a"], "port": 8001}, "b": {**rows["b"], "port": 8000, **own}}


def served_at(scene: Scene, port: int) -> str:
    """The name of the endpoint that serves at a port, after it has answered there."""
    assert "42" in scene.ask(port)
    return scene.host.run(f"docker ps --filter publish={port} --format '{{{{.Names}}}}'").stdout.strip()


@pytest.mark.usefixtures("pair")
def test_swapped_ports_that_fail_leave_both_where_they_were(scene: Scene) -> None:
    """The release of one that never gets ready takes the other one's new port back, too."""
    good = [(scene.runs(name), scene.proven(name)) for name in ("a", "b")]
    with scene.faults({"fault": "never_ready", "when": {"option.stream_interval": 26}}):
        run = scene.deploy(endpoints=swapped(interval(26), load_timeout=8))
    assert run.status != 0
    assert "switch endpoint a at release" in run.output
    assert "not ready within its load_timeout" in run.output
    assert [served_at(scene, port) for port in (8000, 8001)] == ["rackwright-a", "rackwright-b"]
    assert [(scene.runs(name), scene.proven(name)) for name in ("a", "b")] == good
    scene.host.run(f"[ ! -e {HOME}/a/trial ] && [ ! -e {HOME}/b/trial ]")


@pytest.mark.usefixtures("pair")
def test_swapped_ports_switch_as_one(scene: Scene) -> None:
    before = [scene.starts(name) for name in ("a", "b")]
    run = scene.deploy(endpoints=swapped())
    assert run.status == 0, run.output
    assert "each takes GPUs or a port of the other" in run.output
    assert [served_at(scene, port) for port in (8000, 8001)] == ["rackwright-b", "rackwright-a"]
    assert [scene.starts(name) for name in ("a", "b")] == [count + 1 for count in before]
    assert scene.deploy(endpoints=swapped()).changed == []
