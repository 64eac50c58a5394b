"""Endpoints on a real host: nothing restarts without a reason, and bad releases roll back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab.lab import Lab
from tests import texts
from tests.lab import tutorial
from tests.lab.conftest import Site
from tests.lab.products import in_proof, with_proof
from tests.lab.scene import HOME, Scene, interval, serving

pytestmark = pytest.mark.lab


@pytest.fixture
def scene(site: Site, worker_lab: Lab, request: pytest.FixtureRequest) -> Scene:
    """Return the lived-in host, which serves."""
    return serving(site, worker_lab.host("lived2"), request)


# -- what restarts, and what does not


def test_a_yaml_change_restarts_once_and_says_why(scene: Scene) -> None:
    assert scene.deploy().status == 0
    before = scene.starts()
    run = scene.deploy(engine={"kv_cache_config": {"free_gpu_memory_fraction": 0.7}})
    assert run.status == 0, run.output
    assert "(kv_cache_config changed)" in run.output
    assert scene.starts() == before + 1
    assert "42" in scene.ask()
    back = scene.deploy()
    assert back.status == 0
    assert tutorial.missing(8, run.output, scene.host.name, block=1) == []
    assert tutorial.missing(8, run.output, scene.host.name, block=2) == []
    assert tutorial.missing(9, back.output, scene.host.name) == []


def ports_in_rules(scene: Scene) -> set[str]:
    """Return the ports that Rackwright's rules open to all, IPv4 and IPv6."""
    rules = scene.host.run("iptables-save -t filter; ip6tables-save -t filter").stdout.splitlines()
    ours = [rule for rule in rules if '--comment "rackwright:llm' in rule]
    return {found for rule in ours for found in re.findall(r"port (\d+)", rule)}


@in_proof("test_several_endpoints.py proves endpoints at ports of their own, test_firewall.py has the rules")
def test_another_port_is_proven_there_and_the_rules_follow_what_serves(scene: Scene) -> None:
    assert scene.deploy().status == 0
    with scene.faults({"fault": "repeat_bang", "when": {"port": 8006}}):
        run = scene.deploy(port=8006)
    assert texts.ROLLED_BACK.format(endpoint="llm") in run.output
    assert "42" in scene.ask(8000)
    assert ports_in_rules(scene) == {"8000"}
    with (
        scene.faults({"fault": "never_ready", "when": {"port": 8007}}),
        scene.deploying(port=8007) as running,
    ):
        assert running.until("switching to release") is not None, running.output
        assert ports_in_rules(scene) == {"8000", "8007"}
        scene.host.set_engine_faults()
        run = running.end()
    assert run.status == 0, run.output
    assert "port changed" in run.output
    assert "42" in scene.ask(8007)
    assert ports_in_rules(scene) == {"8007"}
    assert scene.deploy(port=8007).changed == []
    back = scene.site.rackwright("rollback", "inventory/lab.py", "-y", "--limit", scene.host.name)
    assert back.status == 0, back.output
    assert "42" in scene.ask(8000)
    assert ports_in_rules(scene) == {"8000"}
    drift = scene.site.rackwright("drift", "inventory/lab.py", "--limit", scene.host.name)
    assert drift.status == 0, drift.output
    assert scene.deploy().changed == []


@in_proof(
    "test_deploy.py reboots what waits to be adopted, test_rollout.py adopts it, and test_firewall.py has the rules"
)
def test_firewall_and_time_limits_restart_nothing(scene: Scene) -> None:
    assert scene.deploy().status == 0
    before, release = scene.starts(), scene.runs()
    changed: dict[str, Any] = {"stop_timeout": 25, "allow_from": ["10.79.0.0/16", "192.0.2.0/24"]}
    run = scene.deploy(**changed)
    assert run.status == 0, run.output
    assert "is adopted at the next switch" in run.output
    assert scene.deploy(**changed).changed == []
    assert (scene.runs(), scene.starts()) == (release, before)
    assert "TimeoutStopSec=40" not in scene.host.run("systemctl cat rackwright-llm").stdout
    scene.host.run("docker exec rackwright-llm sh -c 'cd /config/release && sha256sum --check --quiet SHA256SUMS'")
    adopted = scene.deploy(**changed, rollout={"adopt": True})
    assert adopted.status == 0, adopted.output
    assert texts.ADOPTS in adopted.output
    assert "proved: a chat answer" in adopted.output
    assert scene.runs() == scene.proven() != release
    assert scene.starts() == before + 1
    assert "TimeoutStopSec=40" in scene.host.run("systemctl cat rackwright-llm").stdout
    assert scene.deploy(rollout={"adopt": True}).status == 0
    assert scene.runs() == release
    assert scene.deploy().changed == []


# -- what the host does on its own


def test_an_endpoint_that_found_its_port_taken_at_its_start_serves_once_dockerd_has_let_it_go(scene: Scene) -> None:
    """Somebody's container stands for dockerd's memory of one, which only a power cut leaves: Docker says the same."""
    assert scene.deploy().status == 0
    image = scene.host.run("docker inspect --format '{{.Image}}' rackwright-llm").stdout.strip()
    scene.host.run("systemctl stop rackwright-llm")
    scene.host.run(f"docker run --detach --name squatter --publish 8000:80 --entrypoint sleep {image} 600")
    try:
        scene.host.run("systemctl start --no-block rackwright-llm")
        scene.wait("failed", seconds=120)
        look = scene.host.run("sh /etc/rackwright/watch.d/kept-port", check=False)
        assert (look.returncode, look.stdout) == (0, ""), "the container that has it would go down"
    finally:
        scene.host.run("docker rm --force squatter")
    scene.host.run("systemctl start rackwright-watch.service", check=False)
    scene.wait("active", seconds=120)
    assert "42" in scene.ask()
    watch_log = scene.host.run(
        "journalctl --sync; journalctl --boot --unit rackwright-watch --output cat --no-pager"
    ).stdout
    assert texts.WATCH_RESTARTED.format(units=" rackwright-llm.service") in watch_log
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
BAD_ELSEWHERE = "one that never gets ready is in test_several_endpoints.py; tests/unit/test_switch.py has each answer"


@pytest.mark.parametrize("case", with_proof(BAD, {TUTORIAL_CASE}, BAD_ELSEWHERE))
def test_a_bad_release_rolls_back(scene: Scene, case: str) -> None:
    fault, data, sentence = BAD[case]
    assert scene.deploy().status == 0
    change = TUTORIAL_CHANGE if case == TUTORIAL_CASE else interval(2 + list(BAD).index(case))
    good = scene.proven()
    with scene.faults({**fault, "when": {f"option.{key}": value for key, value in change.items()}}):
        run = scene.deploy(engine=change, **data)
    assert run.status != 0
    assert re.search(sentence, run.output), run.output
    assert texts.ROLLED_BACK.format(endpoint="llm") in run.output
    assert scene.runs() == scene.proven() == good
    assert "42" in scene.ask()
    logs = re.findall(r"the log of the failed try is kept on the host: (\S+)\.log", run.output)
    assert "Starting" in scene.host.run(f"cat {logs[-1]}.log").stdout
    assert good in scene.host.run(f"cat {logs[-1]}.before.log").stdout
    assert re.search(texts.pattern(texts.CLOCKS, pointed=r"[\d.]+", serving=r"[\d.]+"), run.output), run.output
    (fetched,) = re.findall(r"the failed release's log: (/\S+)", run.output)
    assert "Starting" in Path(fetched).read_text()
    if case == TUTORIAL_CASE:
        assert scene.deploy().changed == [], "the old settings have nothing to do"
        assert tutorial.missing(10, run.output, scene.host.name) == []


def test_a_command_line_that_the_image_refuses_is_never_switched_to(scene: Scene) -> None:
    before = scene.starts()
    run = scene.deploy(engine=interval(9), arguments=["--nonsense"])
    assert run.status != 0
    assert f"{texts.REFUSED_WORDS}No such option" in run.output
    assert scene.starts() == before


@in_proof("test_blame.py has a rollback that fails, and what is said of it")
def test_rolling_back_that_fails_too_is_said(scene: Scene) -> None:
    """The vocabularies are spoilt after they were staged, so that neither release starts."""
    with (
        scene.faults({"fault": "never_ready", "when": {"option.stream_interval": 20}}),
        scene.deploying(engine=interval(20)) as running,
    ):
        scene.wait("activating")
        scene.host.run("cd /srv/encodings && for f in *.tiktoken; do echo spoilt >$f; done")
        scene.host.set_engine_faults()
        failed = running.end()
    assert failed.status != 0
    # Spoilt before its start, which is refused then, or after it.
    assert "cl100k_base.tiktoken" in failed.output or "chat answers 400" in failed.output
    assert "rolling back failed too" in failed.output
    assert "manual action needed" in failed.output
    run = scene.deploy()
    assert run.status == 0, run.output
    assert "42" in scene.ask()


def test_a_full_disk_at_the_release_leaves_the_endpoint_serving(scene: Scene) -> None:
    good, before = scene.runs(), scene.starts()
    scene.host.run("mount -t tmpfs -o size=4k,nr_inodes=1 small " + f"{HOME}/llm/releases")
    try:
        run = scene.deploy(engine=interval(21))
    finally:
        scene.host.run(f"umount {HOME}/llm/releases")
    assert run.status != 0
    assert "RW0729: " in run.output
    assert (scene.runs(), scene.starts()) == (good, before)
    assert scene.deploy().status == 0
