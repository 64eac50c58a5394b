from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.image import IMAGE, SeenImages, digest_of, parse, pin_path, remove_names_script
from rackwright.concerns.registry import SeenLogin
from rackwright.plan.change import Job, Owned, WriteFile
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_reference import login_key, registry_of, repository_of, tag_of
from rackwright.settings.secret import Secret
from tests import texts

REFERENCE = "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0"
REPOSITORY = "nvcr.io/nvidia/tensorrt-llm/release"
ONE, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64
MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}


def host(**keys: Any) -> HostSettings:
    return HostSettings.model_validate({"model": MODEL, "image": REFERENCE, **keys})


def pending(settings: HostSettings, output: str, helper: str | None = None) -> list[Any]:
    return IMAGE.pending(settings, reading(output, helper))


def reading(output: str, helper: str | None = None) -> HostReading:
    return HostReading({"image": parse(output), "registry": SeenLogin(None, "salt", None, helper)})


THERE = f"known\nimage {REPOSITORY} 1.1.0rc0 {ONE}"


def test_a_missing_image_is_pulled_by_tag_and_its_digest_recorded() -> None:
    (change,) = pending(host(), "known")
    (job,) = change.steps
    assert isinstance(job, Job)
    assert f"reference={REFERENCE}\n" in job.script
    assert f"pin={pin_path(REFERENCE)}\n" in job.script
    assert change.owns == (Owned("image", REFERENCE),)


def test_a_pinned_image_is_pulled_by_digest() -> None:
    (change,) = pending(host(image_digest=ONE), f"known\nimage {REPOSITORY} 1.1.0rc0 {OTHER}")
    (job,) = change.steps
    assert f"reference={REPOSITORY}@{ONE}\n" in job.script
    assert "pin=''\n" in job.script
    assert change.owns == (Owned("image", f"{REPOSITORY}@{ONE}"),)


def test_an_image_that_is_there_gets_its_digest_recorded_once() -> None:
    (change,) = pending(host(), THERE)
    assert change.steps == (WriteFile(pin_path(REFERENCE), f"{REFERENCE} {ONE}\n"),)
    assert pending(host(), f"pin {REFERENCE} {ONE}\n{THERE}") == []


def test_a_moved_tag_is_reported_and_changes_nothing() -> None:
    output = f"pin {REFERENCE} {ONE}\nknown\nimage {REPOSITORY} <none> {ONE}\nimage {REPOSITORY} 1.1.0rc0 {OTHER}"
    assert pending(host(), output) == []
    assert digest_of(host(), reading(output)) == ONE
    assert IMAGE.report is not None
    assert "has moved on this host" in IMAGE.report(IMAGE.wanted(host(), reading(output)), parse(output))


def test_an_image_that_was_removed_comes_back_at_its_recorded_digest() -> None:
    (change,) = pending(host(), f"pin {REFERENCE} {ONE}\nknown")
    assert f"reference={REPOSITORY}@{ONE}\n" in change.steps[0].script


@pytest.mark.parametrize("output", ["", f"pin {REFERENCE} {ONE}"])
def test_without_docker_nothing_counts_as_there_or_absent(output: str) -> None:
    (change,) = pending(host(), output)
    assert "unknown" in change.why
    assert change.owns == ()


def test_endpoints_share_an_image() -> None:
    endpoints = {"a": {"port": 8000}, "b": {"port": 8001}}
    assert len(pending(host(endpoints=endpoints), "known")) == 1


def test_a_kept_login_is_not_sent_along_and_another_is() -> None:
    key = Secret("nvapi-known")
    (with_login,) = pending(host(registry={"key": key}), "known")
    assert with_login.steps[0].secrets == {}
    for change in (
        *pending(host(registry={"key": key, "keep": False}), "known"),
        *pending(host(registry={"key": key}), "known", helper="pass"),
    ):
        assert list(change.steps[0].secrets) == ["config.json"]
        assert key.unmask() not in change.steps[0].script


def test_the_key_goes_to_its_own_registry_only() -> None:
    settings = host(image="docker.io/vllm/vllm-openai:v0.14.1", registry={"key": Secret("k"), "keep": False})
    (change,) = pending(settings, "known")
    assert change.steps[0].secrets == {}
    assert "reference=docker.io/vllm/vllm-openai:v0.14.1\n" in change.steps[0].script


@pytest.mark.parametrize(
    ("reference", "registry", "repository", "tag"),
    [
        (REFERENCE, "nvcr.io", REPOSITORY, "1.1.0rc0"),
        ("vllm/vllm-openai:v0.14.1", "docker.io", "vllm/vllm-openai", "v0.14.1"),
        ("docker.io/lmsysorg/sglang:latest", "docker.io", "lmsysorg/sglang", "latest"),
        ("localhost:5000/a/b:c", "localhost:5000", "localhost:5000/a/b", "c"),
        ("docker.io/library/busybox:1", "docker.io", "busybox", "1"),
    ],
)
def test_references(reference: str, registry: str, repository: str, tag: str) -> None:
    assert (registry_of(reference), repository_of(reference), tag_of(reference)) == (registry, repository, tag)


def test_docker_hub_has_a_name_of_its_own_in_config_json() -> None:
    assert login_key("docker.io") == "https://index.docker.io/v1/"
    assert login_key("nvcr.io") == "nvcr.io"


def test_unknown_images_are_unknown() -> None:
    assert SeenImages(False, (), {}).has(REFERENCE, ONE) is False


# -- names that a killed pull from a bundle has left

LEFT = "127.0.0.1 localhost\n# rackwright-bundle: 10.1.2.3 nvcr.io\n127.83.87.1 nvcr.io # rackwright-bundle\n"
"""The middle row was the site's own."""
WITHOUT = "127.0.0.1 localhost\n10.1.2.3 nvcr.io\n"


def in_folder(script: str, folder: Path) -> str:
    """Return a host's script on a folder of the test's."""
    return script.replace("/etc/hosts", f"{folder}/hosts").replace("/run/rackwright", f"{folder}/run")


def says_left(folder: Path) -> bool:
    script = in_folder(IMAGE.read(host()), folder)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    return parse(done.stdout).names_left


def test_names_of_a_killed_pull_are_seen_and_taken_away_and_what_they_stood_in_for_comes_back(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(WITHOUT)
    assert not says_left(tmp_path)
    hosts.write_text(LEFT)
    (tmp_path / "hosts.rackwright").write_text("half a ro")
    assert says_left(tmp_path)
    for _ in range(2):
        subprocess.run(["sh", "-c", in_folder(remove_names_script(), tmp_path)], check=True)
        assert [path.name for path in tmp_path.iterdir()] == ["hosts"]
        assert hosts.read_text() == WITHOUT
    assert not says_left(tmp_path)


def test_names_of_a_pull_that_is_under_way_stay(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(LEFT)
    (tmp_path / "run").mkdir()
    with (tmp_path / "run/bundle.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("used\n")
        lock.flush()
        assert not says_left(tmp_path)
        subprocess.run(["sh", "-c", in_folder(remove_names_script(), tmp_path)], check=True)
        assert (tmp_path / "hosts").read_text() == LEFT
    assert says_left(tmp_path)


def test_left_names_are_a_change_of_their_own_beside_images_that_are_there() -> None:
    (change,) = pending(host(), f"names-left\npin {REFERENCE} {ONE}\n{THERE}")
    assert change.what == texts.TAKES_NAME
