"""Rolling back: which release, what is refused, and that nothing is done where it runs already."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.formats import refusal
from rackwright.concerns.endpoint.seen import Running, SeenEndpoint
from rackwright.concerns.endpoint.switch.rollback import LAST, WayBack, back_changes, parse_kept, target_of
from rackwright.concerns.endpoint.switch.steps import Proved
from rackwright.hostside import host_script
from rackwright.plan.change import Refuse
from rackwright.settings.group import Group, GroupMember
from rackwright.settings.host_settings import HostSettings
from tests.unit.test_endpoint_changes import assigned

SETTINGS = HostSettings.model_validate(
    {"model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}, "load_timeout": 90}
)

BOUND = Binding(("GPU-1", "GPU-2"))
TODAY = Binding(("GPU-1", "GPU-3"))
"""One of its GPUs was swapped since."""


def spec(release: str) -> dict[str, Any]:
    mount = {"source": "/srv/models/a", "target": "/config/models/gpt-oss-120b", "writable": False}
    return {
        "format": 2,
        "hash": release,
        "serving": "feedfeedfeed",
        "image": "engine@sha256:1",
        "network": "bridge",
        "address": "0.0.0.0",
        "port": 8000,
        "mounts": [mount],
        "served_name": "gpt-oss-120b",
    }


def retained(*history: str, gone: Mapping[str, str] | None = None) -> WayBack:
    return WayBack(history, {release: spec(release) for release in history}, gone or {})


def serving(release: str) -> SeenEndpoint:
    return SeenEndpoint(
        active="active",
        running=Running(release, "feedfeedfeed", BOUND.hash),
        health=200,
        current=release,
        proven=release,
        spec=spec(release),
        binding=BOUND,
    )


def change(target: str, reading: SeenEndpoint, way_back: WayBack) -> Proved | Refuse | None:
    found = back_changes(SETTINGS, {"llm": reading}, {"llm": way_back}, {"llm": target}, {"llm": TODAY})
    if not found:
        return None
    (step,) = found[0].steps
    assert isinstance(step, Proved | Refuse)
    return step


def test_the_release_before_is_switched_to_and_the_later_one_forgotten() -> None:
    step = change(LAST, serving("bbb"), retained("aaa", "bbb"))
    assert isinstance(step, Proved)
    assert step.release == "aaa"
    assert step.serving
    assert "releases/aaa" in assigned(step, "forward")
    commit = assigned(step, "commit")
    assert commit.index("release_hash=aaa") < commit.index("sed ")
    assert "releases/bbb" in assigned(step, "back")
    assert assigned(step, "previous") == "release bbb"


def test_a_swapped_gpu_blocks_no_way_back() -> None:
    step = change(LAST, serving("bbb"), retained("aaa", "bbb"))
    assert isinstance(step, Proved)
    for part in ("forward", "back", "commit"):
        text = assigned(step, part)
        assert TODAY.text in text, part
        assert BOUND.hash not in text, part


def keyed(way_back: WayBack, key: str) -> WayBack:
    specs = {release: {**facts, "keyed": True} for release, facts in way_back.specs.items()}
    return replace(way_back, specs=specs, binding=replace(BOUND, key=key))


def test_rolling_back_keeps_the_key_that_lies_on_the_host() -> None:
    """A key that was only written into the settings has no file there, and no start would find it."""
    way_back = keyed(retained("aaa", "bbb"), "0123456789ab")
    step = back_changes(SETTINGS, {"llm": serving("bbb")}, {"llm": way_back}, {"llm": LAST}, {"llm": TODAY})[0].steps[0]
    assert isinstance(step, Proved)
    for part in ("forward", "back", "commit"):
        assert replace(TODAY, key="0123456789ab").text in assigned(step, part)


def test_a_release_that_asks_for_a_key_is_not_rolled_back_to_without_one_text() -> None:
    step = change(LAST, serving("bbb"), keyed(retained("aaa", "bbb"), ""))
    assert isinstance(step, Refuse)
    assert "release aaa asks its clients for a key, and the host no longer has one; next: write api_key" in step.text


def test_a_release_of_another_format_is_refused_by_name() -> None:
    way_back = replace(retained("aaa", "bbb"), specs={"aaa": {**spec("aaa"), "format": 3}, "bbb": spec("bbb")})
    step = change(LAST, serving("bbb"), way_back)
    assert isinstance(step, Refuse)
    assert step.text == refusal("llm", 3)


def test_with_nothing_earlier_it_is_refused() -> None:
    step = change(LAST, serving("bbb"), retained("bbb"))
    assert isinstance(step, Refuse)
    assert step.code == "RW2406"
    assert "an earlier proven release " in step.text
    assert "keeps: bbb" in step.text


def test_a_release_whose_weights_are_gone_is_refused() -> None:
    step = change("aaa", serving("bbb"), retained("aaa", "bbb", gone={"aaa": "/srv/models/a"}))
    assert isinstance(step, Refuse)
    assert "/srv/models/a" in step.text


def listed(tmp_path: Path, docker: str) -> WayBack:
    """List two releases by the host's own script, with this for a `docker`."""
    for release in ("aaa", "bbb"):
        folder = tmp_path / "endpoints/llm/releases" / release
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps(spec(release)))
        (folder / "needs").write_text("image x@y\n")
    (tmp_path / "endpoints/llm/history").write_text("aaa\nbbb\n")
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\n{docker}\n")
    program.chmod(0o755)
    script = host_script("kept_releases", home=f"{tmp_path}/endpoints")
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return parse_kept(done.stdout.splitlines())["llm"]


def test_a_dockerd_that_is_down_has_lost_no_image(tmp_path: Path) -> None:
    way_back = listed(tmp_path, "echo 'Cannot connect to the Docker daemon'; exit 1")
    assert (way_back.gone, way_back.docker) == ({}, False)
    step = change("aaa", serving("bbb"), way_back)
    assert isinstance(step, Refuse)
    assert "Docker does not answer" in step.text
    assert "gone" not in step.text


def test_an_image_that_docker_does_not_have_is_gone(tmp_path: Path) -> None:
    way_back = listed(tmp_path, '[ "$1" = version ] || { echo "Error: No such image: x@y" >&2; exit 1; }')
    assert (way_back.gone, way_back.docker) == ({"aaa": "x@y", "bbb": "x@y"}, True)


def test_what_runs_already_is_no_change() -> None:
    assert change("bbb", serving("bbb"), retained("aaa", "bbb")) is None


@given(st.lists(st.sampled_from(("aaa", "bbb", "ccc")), unique=True), st.sampled_from((None, "aaa", "bbb", "ccc")))
def test_the_last_one_is_never_the_present_one(history: list[str], proven: str | None) -> None:
    found = target_of(SeenEndpoint(proven=proven), retained(*history), LAST)
    assert found is None or (found in history and found != proven)


def test_the_listing_is_parsed() -> None:
    encoded = base64.b64encode(json.dumps(spec("aaa")).encode()).decode()
    lines = [
        "history llm aaa bbb ",
        f"release llm aaa {encoded} ok",
        f"release llm bbb {encoded} image x@y /srv/models/a",
    ]
    found = parse_kept(lines)["llm"]
    assert found.history == ("aaa", "bbb")
    assert set(found.specs) == {"aaa", "bbb"}
    assert found.gone == {"bbb": "image x@y /srv/models/a"}


def test_hosts_that_serve_together_are_asked_for_the_release_before_anything_stops() -> None:
    members = (GroupMember("h1", "10.9.0.1"), GroupMember("h2", "10.9.0.2"))
    arguments = ({"llm": serving("new")}, {"llm": retained("old", "new")}, {"llm": LAST}, {"llm": TODAY})
    [change] = back_changes(SETTINGS.in_group(Group("llm", members, 0)), *arguments)
    [step] = change.steps
    assert isinstance(step, Proved)
    question = step.job.script.index("does not have release")
    assert question < step.job.script.index("draining: ")
    assert back_changes(SETTINGS.in_group(Group("llm", members, 1)), *arguments) == [], "it follows its head"
