"""The versions of a real vLLM that a lab can offer: how they are asked for, and what each is made of."""

from __future__ import annotations

import ast
import json
import re
from importlib import metadata
from pathlib import Path

import pytest

from rackwright_lab import inventory
from rackwright_lab.cli import main
from rackwright_lab.machine import paths, prerequisites
from rackwright_lab.machine.shell import LabError
from rackwright_lab.real import builds, gpu, vllm
from rackwright_lab.real.builds import BUILDS, Build


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--engine-version", "0.32.0"], "add --engine vllm"),
        (["--engine", "vllm", "--engine-version", "0.33.0"], "no vLLM 0.33.0 .* there are 0.14.1 and 0.32.0"),
        (["--engine", "vllm", "--engine-version", "v0.32.0"], "no vLLM v0.32.0 .* there are 0.14.1 and 0.32.0"),
        (
            ["--engine", "vllm", "--gpus", "host", "--engine-version", "0.32.0"],
            f"is {gpu.VERSION}, not 0.32.0: leave --engine-version out",
        ),
    ],
)
def test_a_version_that_there_is_not_is_refused_before_anything_is_made(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prerequisites, "ensure", lambda _: pytest.fail("it would begin to make a lab"))
    assert main(["up", "--id", "never", *words]) == 1
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_each_version_is_locked_and_has_a_tag_and_a_key_of_its_own(build: Build) -> None:
    assert f"\nvllm-cpu=={build.version} \\\n    --hash=sha256:" in build.locked.read_text()
    others = [other for other in BUILDS.values() if other is not build]
    for name in ("image", "title", "locked"):
        assert getattr(build, name) not in [getattr(other, name) for other in others]
    assert vllm.key(build) not in [vllm.key(other) for other in others]
    assert build.settings["image"] == build.image


def test_each_revision_is_something_that_is_taught() -> None:
    teach_draft = ast.parse((builds.HERE / "teach_draft.py").read_text())
    kinds = next(
        ast.literal_eval(ast.unparse(node.value).replace("MOST_STEPS", "1"))
        for node in teach_draft.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "KINDS"
    )
    assert set(vllm.REVISIONS[builds.MODEL].values()) == set(vllm.KINDS)
    assert set(vllm.REVISIONS[builds.DRAFT].values()) == set(kinds)
    assert builds.EAGLE3_DRAFT["mount"] == json.loads(builds.EAGLE3["speculative-config"])["model"]
    assert builds.EAGLE3_DRAFT["revision"] in vllm.REVISIONS[builds.DRAFT]


def test_vllm_finds_its_own_version_by_the_name_that_it_asks_for(tmp_path: Path) -> None:
    vllm.name_it_vllm(tmp_path, "0.32.0")
    assert [(one.name, one.version) for one in metadata.distributions(path=[str(tmp_path)])] == [("vllm", "0.32.0+cpu")]


def test_the_inventory_follows_the_version_that_the_lab_offers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "STATE_ROOT", tmp_path)
    with pytest.raises(LabError, match="no lab is up"):
        inventory.endpoint("mine")
    record = paths.Paths("mine").record
    record.parent.mkdir()
    for version, build in BUILDS.items():
        record.write_text(json.dumps({"real": version}))
        assert inventory.endpoint("mine") == build.settings
    record.write_text(json.dumps({"real": None}))
    with pytest.raises(LabError, match="lab up --id mine --engine vllm"):
        inventory.endpoint("mine")


def test_the_build_that_is_meant_without_a_version_is_the_stand_ins() -> None:
    assert builds.named(builds.DEFAULT).version == "0.14.1"
