"""A switch whose control process or network is gone: the host ends it alone."""

from __future__ import annotations

from typing import Any

import pytest

from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import Site
from tests.lab.products import in_proof
from tests.lab.scene import HOME, Scene, interval, serving
from tests.refused import refusal

pytestmark = pytest.mark.lab


@pytest.fixture
def scene(site: Site, worker_lab: Lab, request: pytest.FixtureRequest) -> Scene:
    """Return the lived-in host, which serves."""
    return serving(site, worker_lab.host("lived2"), request)


def ended(scene: Scene, outcome: str) -> str:
    """Wait until the host's switch has this outcome, which no run watches; return the reason that the host keeps."""
    is_so = f"grep -qx outcome={outcome} {HOME}/llm/last-switch"
    scene.host.run(f"for i in $(seq 200); do {is_so} && exit 0; sleep 0.3; done; cat {HOME}/llm/last-switch; exit 1")
    return scene.host.run(f"sed -n s/^reason=//p {HOME}/llm/last-switch").stdout.strip()


def test_a_host_that_is_cut_off_during_its_switch_commits_alone(scene: Scene) -> None:
    good = scene.proven()
    scene.host.run(f"rm -f {HOME}/llm/last-switch")
    with scene.deploying(engine=interval(26)) as running:
        assert running.until("switching to release") is not None, running.output
        scene.host.cut_network()
        try:
            assert ended(scene, "committed") == ""
            assert scene.proven() == scene.runs() != good
            run = running.end()
        finally:
            scene.host.restore_network()
    assert run.status == 1
    assert texts.ALONE in refusal(run.output, "RW0712", scene.host.name)
    assert scene.deploy(engine=interval(26)).changed == []


def test_with_the_control_process_killed_before_its_word_the_host_rolls_back_alone(scene: Scene) -> None:
    good = scene.proven()
    scene.host.run(f"rm -f {HOME}/llm/last-switch")
    options: dict[str, Any] = {"engine": interval(27), "gate": {"level": "full", "commit_deadline": 6}}
    with scene.deploying(**options) as running:
        assert running.until("basic proof passed") is not None, running.output
        running.stop()
    assert ended(scene, "rolled-back").startswith(texts.NO_WORD.format(seconds=6))
    assert scene.proven() == scene.runs() == good
    assert "42" in scene.ask()
    again = scene.deploy("--dry", engine=interval(27))
    assert "it was tried here at" in again.output


@in_proof("three_hosts/test_blame.py kills a rollout in a switch, and its resume joins it and gives the word")
def test_a_host_that_waits_for_a_killed_control_process_gets_the_word_of_the_next(scene: Scene) -> None:
    before = scene.starts()
    options: dict[str, Any] = {"engine": interval(28), "gate": {"level": "full", "commit_deadline": 120}}
    with scene.deploying(**options) as running:
        assert running.until("basic proof passed") is not None, running.output
        running.stop()
    run = scene.deploy(**options)
    assert run.status == 0, run.output
    assert texts.JOINED in run.output
    assert "proved: a tool call" in run.output
    assert scene.starts() == before + 1
    assert scene.proven() == scene.runs()
