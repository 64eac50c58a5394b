"""Which keys of dockerd's file give it another store at its next start: the real script among stand-ins."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside import host_text

SHELLS = [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)]
Look = Callable[..., list[str]]
MAPPED = ["name=seccomp,profile=default", "name=userns"]
STORE = [["driver-type", "io.containerd.snapshotter.v1"]]


@pytest.fixture(params=SHELLS)
def look(request: pytest.FixtureRequest, tmp_path: Path) -> Look:
    """Run the script on a host whose dockerd has the usual store, unless the test says otherwise."""
    shell = [request.param, "sh"] if request.param == "busybox" else [request.param]

    def looked(daemon: dict[str, Any] | str = "", words: str = "dockerd -H fd://", **info: Any) -> list[str]:
        text = host_text("docker_lacks.sh") + host_text("docker_store.sh")
        for root in ("/proc/", "/etc/"):
            text = text.replace(root, f"{tmp_path}{root}")
        for path, content in {
            "proc/7/cmdline": words.replace(" ", "\0") + "\0",
            "etc/docker/daemon.json": daemon if isinstance(daemon, str) else json.dumps(daemon, indent=4),
        }.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content)
        facts = {"Driver": "overlay2", "DockerRootDir": "/var/lib/docker", "ServerVersion": "28.0.1", **info}
        command = [*shell, "-c", f'{text}\ndocker_other_store "$1" 7', "sh", json.dumps(facts, separators=(",", ":"))]
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
        assert run.stderr == ""
        return run.stdout.splitlines()

    return looked


@pytest.mark.parametrize(
    ("daemon", "info", "keys"),
    [
        ({"userns-remap": "default"}, {}, ["userns-remap"]),
        ({}, {"SecurityOptions": MAPPED, "DockerRootDir": "/var/lib/docker/1000.1000"}, ["userns-remap"]),
        ({"data-root": "/big"}, {}, ["data-root"]),
        ({}, {"DockerRootDir": "/big"}, ["data-root"]),
        ({"graph": "/big"}, {}, ["graph"]),
        ({"features": {"containerd-snapshotter": True}}, {}, ["features.containerd-snapshotter"]),
        ({"features": {"containerd-snapshotter": False}}, {"DriverStatus": STORE}, ["features.containerd-snapshotter"]),
        ({"storage-driver": "btrfs"}, {}, ["storage-driver"]),
        ({"userns-remap": "a", "data-root": "/big"}, {}, ["userns-remap", "data-root"]),
    ],
)
def test_an_edit_that_gives_another_store_is_named(look: Look, daemon: Any, info: Any, keys: list[str]) -> None:
    assert look(daemon, **info) == keys


@pytest.mark.parametrize(
    ("daemon", "words", "info"),
    [
        ("", "dockerd", {}),
        ({"userns-remap": ""}, "dockerd", {}),
        ({"userns-remap": "a"}, "dockerd", {"SecurityOptions": MAPPED, "DockerRootDir": "/var/lib/docker/1.1"}),
        (
            {"data-root": "/big", "userns-remap": "a"},
            "dockerd",
            {"SecurityOptions": MAPPED, "DockerRootDir": "/big/1.1"},
        ),
        ({}, "dockerd --userns-remap=a", {"SecurityOptions": MAPPED, "DockerRootDir": "/var/lib/docker/1.1"}),
        ({}, "dockerd --data-root /big", {"DockerRootDir": "/big"}),
        ({}, "dockerd -g /big", {"DockerRootDir": "/big"}),
        ({"data-root": "/var/lib/docker/"}, "dockerd", {}),
        ({"data-root": "/a b"}, "dockerd", {"DockerRootDir": "/a b"}),
        ({"features": {"containerd-snapshotter": True}}, "dockerd", {"DriverStatus": STORE, "Driver": "overlayfs"}),
        ({"features": {"containerd-snapshotter": True}}, "dockerd", {"ServerVersion": "20.10.24+dfsg1"}),
        ({"storage-driver": "overlay2"}, "dockerd", {}),
        ({"storage-driver": "overlay2"}, "dockerd", {"DriverStatus": STORE, "Driver": "overlayfs"}),
        ({"data-root": "/big"}, "dockerd", {"DockerRootDir": ""}),
    ],
)
def test_the_store_of_now_is_no_other(look: Look, daemon: Any, words: str, info: Any) -> None:
    assert look(daemon, words, **info) == []


def test_a_link_that_leads_to_the_store_is_no_other(look: Look, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to("store")
    assert look({"data-root": f"{tmp_path}/link"}, DockerRootDir=f"{tmp_path}/store") == []
    mapped = {"SecurityOptions": MAPPED, "DockerRootDir": f"{tmp_path}/store/1.1"}
    assert look({"data-root": f"{tmp_path}/link", "userns-remap": "a"}, **mapped) == []
