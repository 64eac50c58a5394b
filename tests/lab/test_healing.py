"""What goes wrong under an endpoint that serves: it heals on its own, or by the next run, and for a reason only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import Site
from tests.lab.products import in_proof
from tests.lab.scene import HOME, Scene, interval, serving

pytestmark = pytest.mark.lab


@pytest.fixture
def scene(site: Site, worker_lab: Lab, request: pytest.FixtureRequest) -> Scene:
    """Return the lived-in host, which serves."""
    return serving(site, worker_lab.host("lived2"), request)


def test_one_that_loads_is_waited_for_and_that_is_no_change(scene: Scene) -> None:
    with scene.faults({"fault": "never_ready"}):
        scene.host.run("systemctl restart --no-block rackwright-llm; sleep 1")
        scene.wait("activating")
        before = scene.starts()
        with scene.deploying() as running:
            assert running.until("loading, ") is not None, running.output
            scene.host.set_engine_faults()
            run = running.end()
    assert run.status == 0, run.output
    assert "ready after" in run.output
    assert run.changed == []
    assert scene.starts() == before


def test_it_gives_up_after_three_deaths_and_the_next_run_heals(scene: Scene) -> None:
    # systemd counts starts from the first one of an interval on: one that ends in the meantime would allow for more.
    scene.host.run("systemctl reset-failed rackwright-llm")
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
    before = scene.starts()
    with scene.faults({"fault": "unhealthy_after_seconds", "value": 0}):
        scene.host.run("for i in $(seq 60); do curl -fs http://127.0.0.1:8000/health || exit 0; sleep 1; done; exit 1")
        with scene.deploying() as running:
            assert running.until("it runs, but /health answers") is not None, running.output
            scene.host.set_engine_faults()
            run = running.end()
    assert run.status == 0, run.output
    assert scene.starts() == before + 1
    assert scene.host.run(f"ls {HOME}/llm/failed | grep unhealthy").stdout


def test_dockerd_that_is_down_is_started_and_nothing_deleted(scene: Scene) -> None:
    models = scene.host.run("ls /srv/models").stdout
    scene.host.run("systemctl stop docker.socket docker.service")
    run = scene.deploy()
    assert run.status == 0, run.output
    assert "42" in scene.ask()
    assert scene.host.run("ls /srv/models").stdout == models


def test_a_removed_container_comes_back_by_itself_whatever_it_has_left_in_its_caches(scene: Scene) -> None:
    trap = (
        "rm -rf tmp triton && ln -s /etc tmp && : >triton && cp /bin/sh hf-modules/root && chmod 4755 hf-modules/root"
    )
    scene.host.run(f"docker exec -w /scratch rackwright-llm sh -c '{trap}'")
    assert scene.host.run(f"ls {HOME}/llm/caches/*/hf-modules/root", user="ops", check=False).returncode != 0
    scene.host.run("systemctl reset-failed rackwright-llm; docker rm -f rackwright-llm; sleep 1")
    scene.wait("active")
    assert "42" in scene.ask()
    scene.host.run(f"chmod 0755 {HOME}/llm/caches")
    before = scene.starts()
    assert texts.CLOSES_CACHES.format(endpoint="llm") in scene.deploy().output
    assert scene.host.run(f"stat -c %a {HOME}/llm/caches").stdout.strip() == "700"
    assert scene.deploy().changed == []
    assert scene.starts() == before


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


@in_proof("a lost GPU is above; tests/unit/test_deferred.py and test_rollback.py swap one")
def test_a_swapped_gpu_restarts_the_same_release_and_is_in_no_ones_way_back(scene: Scene) -> None:
    assert scene.deploy().status == 0
    older = scene.proven()
    assert scene.deploy(engine=interval(29)).status == 0
    release, before = scene.runs(), scene.starts()
    new = scene.host.gpu.swap(3)
    run = scene.deploy(engine=interval(29))
    assert run.status == 0, run.output
    asks_again = texts.ASKS_AGAIN.format(endpoint="llm", release=release)
    assert f"{asks_again} and ask it ({texts.GPUS_CHANGED})" in run.output
    assert (scene.runs(), scene.starts()) == (release, before + 1)
    assert new in scene.host.run("docker exec rackwright-llm nvidia-smi -L").stdout
    assert scene.deploy(engine=interval(29)).changed == []
    newer = scene.host.gpu.swap(3, "another")
    back = scene.site.rackwright("rollback", "inventory/lab.py", "-y", "--limit", scene.host.name)
    assert back.status == 0, back.output
    assert scene.runs() == scene.proven() == older
    assert newer in scene.host.run("docker exec rackwright-llm nvidia-smi -L").stdout
    assert "42" in scene.ask()
    assert scene.deploy().changed == []


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
        "render", "inventory/lab.py", "--limit", scene.host.name, "--out", str(tmp_path), timeout=60
    )
    assert run.status == 0, run.output
    spec = json.loads(scene.host.run(f"cat {HOME}/llm/current/spec.json").stdout)
    (folder,) = (tmp_path / HOME.lstrip("/") / "llm/releases").iterdir()
    guessed = json.loads((folder / "spec.json").read_text())
    learned = {guessed[key]: spec[key] for key in ("image", "hash", "serving")}
    # Compiled caches belong to an image, by its digest's first digits.
    learned |= {"DIGEST-SEEN-": spec["image"].rpartition("@sha256:")[2][:12]}
    mounts = zip(guessed["mounts"], spec["mounts"], strict=True)
    learned |= {one["source"]: other["source"] for one, other in mounts}
    for file in sorted(folder.iterdir()):
        if file.name == "spec.json":
            continue
        text = file.read_text()
        for unknown, real in sorted(learned.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(unknown, real)
        assert text == scene.host.run(f"cat {HOME}/llm/current/{file.name}").stdout, file.name
