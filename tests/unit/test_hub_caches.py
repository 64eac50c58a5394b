"""Hugging Face caches of a host's users: those that hold a model are found, and no link leads the download out."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rackwright.concerns.models.concern import _Fetcher, fetch_job
from rackwright.hostside import host_script
from rackwright.settings.sections import ModelSource
from tests.unit.machines import settings

MODEL = "models--org--small"
HUB = ".cache/huggingface/hub"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the one home of the host."""
    folder = tmp_path / "home" / "ann"
    folder.mkdir(parents=True)
    return folder


def fill(cache: Path) -> Path:
    (cache / MODEL / "snapshots").mkdir(parents=True)
    return cache


def found(home: Path, *patterns: str, system: str = "") -> tuple[list[str], str]:
    """Return the caches that a host finds, and its output on those that it does not use."""
    environment = home.parent / "environment"
    environment.write_text(system)
    script = host_script("hub_caches", hub_caches=" ".join(patterns or (f"~/{HUB}",)), model=MODEL)
    script = script.replace("/etc/environment ", f"{environment} ")
    words = ["sh", "-c", f"{script}homes() {{ printf '%s\\n' {home}; }}\nholding"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return done.stdout.split(), done.stderr


def test_a_cache_counts_only_where_it_holds_the_model(home: Path) -> None:
    (home / HUB / "models--org--other").mkdir(parents=True)
    assert found(home) == ([], "")
    fill(home / HUB)
    assert found(home) == ([f"{home}/{HUB}"], "")


@pytest.mark.parametrize("linked", [HUB, ".cache/huggingface", ".cache"])
def test_no_link_leads_out_of_a_home(home: Path, tmp_path: Path, linked: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    fill(elsewhere / Path(HUB).relative_to(linked))
    (home / linked).parent.mkdir(parents=True, exist_ok=True)
    (home / linked).symlink_to(elsewhere)
    caches, warnings = found(home)
    assert caches == []
    real = (elsewhere / Path(HUB).relative_to(linked)).resolve()
    assert f"name {real} in models.hub_caches" in warnings
    assert found(home, str(real))[0] == [str(real)]


@pytest.mark.parametrize("target", ["/", "/nowhere", "hub"])
def test_a_link_to_the_root_to_nothing_or_to_itself_is_no_cache(home: Path, target: str) -> None:
    (home / HUB).parent.mkdir(parents=True)
    (home / HUB).symlink_to(target)
    assert found(home) == ([], "")


def test_a_model_that_is_a_link_is_not_taken(home: Path, tmp_path: Path) -> None:
    fill(tmp_path / "other")
    (home / HUB).mkdir(parents=True)
    (home / HUB / MODEL).symlink_to(tmp_path / "other" / MODEL)
    assert found(home) == ([], "")


def test_a_link_within_a_home_is_followed_and_each_cache_is_named_once(home: Path) -> None:
    fill(home / "disk" / "hub")
    (home / ".cache").mkdir()
    (home / ".cache" / "huggingface").symlink_to(home / "disk")
    assert found(home, f"~/{HUB}", "~/disk/hub", f"{home}/*/hub")[0] == [f"{home}/disk/hub"]


@pytest.mark.parametrize(
    ("assignment", "cache"),
    [
        ("export HF_HOME={data}/ann", "ann/hub"),
        ('HF_HUB_CACHE="{data}/$USER/mine"', "ann/mine"),
        ("  export HUGGINGFACE_HUB_CACHE='{data}/old' # as ever", "old"),
        ("export XDG_CACHE_HOME={data}; echo", "huggingface/hub"),
    ],
)
@pytest.mark.parametrize("everybodys", [True, False])
def test_caches_that_the_environment_names_are_found(
    home: Path, tmp_path: Path, assignment: str, cache: str, everybodys: bool
) -> None:
    data = (tmp_path / "data").resolve()
    fill(data / cache)
    text = assignment.format(data=data) + "\n"
    if not everybodys:
        (home / ".bashrc").write_text(text)
    assert found(home, system=text if everybodys else "")[0] == [f"{data}/{cache}"]


def test_what_a_user_names_may_be_a_home_and_no_link_out_of_it(home: Path, tmp_path: Path) -> None:
    fill(home / "hf" / "hub")
    fill(tmp_path / "elsewhere" / "hub")
    (home / ".profile").write_text("HF_HOME=~/hf\n")
    (home / ".bashrc").write_text(f"HF_HOME={home}/link\nHF_HUB_CACHE=$(touch {home}/ran)\n")
    (home / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(home / ".zshrc")
    assert found(home)[0] == [f"{home}/hf/hub"]
    assert not (home / "ran").exists()


DOCKER = """#!/bin/sh
[ "$1" != run ] || printf '%s\\n' "$@" >"$JOB/asked"
"""


@pytest.mark.parametrize("shared", ["folder", "link", "none"])
def test_the_download_gets_the_model_and_the_shared_blobs_alone(home: Path, tmp_path: Path, shared: str) -> None:
    cache = fill(home / HUB)
    if shared == "folder":
        (cache / "blobs").mkdir()
    if shared == "link":
        (cache / "blobs").symlink_to("/")
    host_settings = settings(models={"folder": f"{tmp_path}/models"})
    source = ModelSource.model_validate({"repository": "org/small", "mount": "/m"})
    script = fetch_job(host_settings, source, "main", _Fetcher("image@sha256:1", "pull")).script
    script = script.replace("/var/lib/rackwright", f"{tmp_path}/state")
    script = script.replace("homes() {", f"homes() {{ printf '%s\\n' {home}; return; ", 1)
    for name, text in (("docker", DOCKER), ("systemctl", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "JOB": str(tmp_path), "SECRETS": str(tmp_path)}
    (tmp_path / "nonce").write_text("n\n")
    subprocess.run(["sh", "-c", script], env=env, check=True, capture_output=True)
    arguments = (tmp_path / "asked").read_text().splitlines()
    mounts = [arguments[index + 1] for index, argument in enumerate(arguments) if argument == "--mount"]
    names = [MODEL, "blobs"] if shared == "folder" else [MODEL]
    assert mounts == [f"type=bind,src={cache}/{name},dst={cache}/{name},readonly" for name in names]
    assert f"HUB_CACHES={cache}" in arguments
    volumes = [arguments[index + 1].split(":")[0] for index, argument in enumerate(arguments) if argument == "--volume"]
    assert set(volumes) == {f"{tmp_path}/models", f"{tmp_path}/state/manifests", str(tmp_path)}
