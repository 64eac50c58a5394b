"""A model that hosts take from each other: the download program of several hosts on loopback, and one hub."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside.packed import HAND_ON, packed
from rackwright.operations.run_certificate import run_certificate
from rackwright_lab import faults
from tests import texts
from tests.programs.model_hub import BASE, Hub, hub, server

__all__ = ("hub", "server")
TOKEN = "t" * 64
Chain = Callable[..., list[Hub]]


@pytest.fixture
def lock(hub: Hub) -> dict[str, Any]:
    """Return what a lock file has of the model: commit and files, with the hashes that the hub publishes."""
    code, output = hub.run(BASE)
    assert code == 0, output
    manifest = hub.manifest()
    small = {file["path"] for file in manifest["files"] if file["blob"]}
    assert small, "the hub publishes git's hash of small files alone"
    files = {
        file["path"]: {
            "size": file["size"],
            "sha256": None if file["path"] in small else file["sha256"],
            "blob": file["blob"],
        }
        for file in manifest["files"]
    }
    faults.forget_requests(hub.state)
    return {"commit": manifest["commit"], "files": files}


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
        return found


@pytest.fixture
def new_host(hub: Hub, tmp_path: Path) -> Callable[[str], Hub]:
    def make(name: str) -> Hub:
        host = replace(hub, models=tmp_path / name / "models")
        for folder in (host.models, host.manifests, host.models.parent / "secrets"):
            folder.mkdir(parents=True)
        give_secrets(host)
        return host

    return make


def give_secrets(host: Hub) -> None:
    secrets = host.models.parent / "secrets"
    secrets.mkdir(exist_ok=True)
    (secrets / "run_token").write_text(TOKEN)
    (secrets / "hand_on.pyz").write_bytes(base64.b64decode(packed(*HAND_ON)))


def address(number: int) -> str:
    return f"127.0.0.{number + 2}"


def terms(host: Hub, port: int, number: int, sources: list[int], takers: list[int], **more: Any) -> dict[str, Any]:
    allow = [address(one) for one in takers]
    return {
        "hand_on": {
            "address": address(number),
            "listen": {"address": address(number), "port": port, "allow": allow} if allow else None,
            "sources": [{"name": f"host{one}", "address": address(one), "port": port} for one in sources],
            "origin": None,
            "rate_mib": None,
            "serve_mib": None,
            "stall": 20,
            "linger": 20,
            "secrets": str(host.models.parent / "secrets"),
            "tls": False,
            **more,
        }
    }


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


def requested(host: Hub) -> list[str]:
    return [row["path"] for row in faults.requests(host.state)]


def sums(host: Hub) -> dict[str, str]:
    files = [path for path in host.target().rglob("*") if path.is_file() and not path.name.startswith(".rackwright")]
    return {str(path.relative_to(host.target())): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_three_hosts_have_a_model_and_the_hub_is_asked_once(
    hub: Hub, lock: dict[str, Any], port: int, new_host: Callable[[str], Hub]
) -> None:
    first, second, third = (new_host(name) for name in ("a", "b", "c"))
    origin = {"url": f"{hub.url}/{BASE}/resolve/{lock['commit']}/", "authorised": False}
    runs = [
        first.start(BASE, **lock, **terms(first, port, 0, [], [1, 2], origin=origin)),
        second.start(BASE, **lock, **terms(second, port, 1, [0], [2])),
        third.start(BASE, **lock, **terms(third, port, 2, [1, 0], [])),
    ]
    for run in runs:
        code, output = ended(run)
        assert code == 0, "\n".join([output, *(ended(other)[1] for other in runs if other is not run)])
    assert sums(first) == sums(second) == sums(third) == sums(hub)
    for host in (first, second, third):
        assert {file["path"] for file in host.manifest()["files"]} == set(lock["files"])
        assert not list(host.models.glob("*.partial"))
    weights = [path for path in requested(hub) if path.endswith(".safetensors") and "resolve" in path]
    assert len(weights) == len(set(weights))


def keeper_of(hub: Hub, port: int, lock: dict[str, Any], **more: Any) -> subprocess.Popen[str]:
    """Start what hands on the model that the first host has."""
    give_secrets(hub)
    spec = terms(hub, port, 0, [], [1], **more)["hand_on"]
    files = [{"path": path, **pin} for path, pin in lock["files"].items()]
    program = str(hub.models.parent / "secrets/hand_on.pyz")
    words = [sys.executable, program, json.dumps({**spec, "files": files, "folder": str(hub.target())})]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_host_is_filled_by_its_neighbour_encrypted_and_the_hub_is_not_asked(
    hub: Hub, lock: dict[str, Any], port: int, new_host: Callable[[str], Hub]
) -> None:
    host, pem = new_host("rebuilt"), run_certificate().unmask()
    (hub.models.parent / "secrets").mkdir(exist_ok=True)
    for one in (hub, host):
        (one.models.parent / "secrets/tls.pem").write_text(pem)
    before = sorted(path.name for path in hub.target().iterdir())
    keeper = keeper_of(hub, port, lock, tls=True)
    faults.set_fault(hub.state, "503", path="*")
    code, output = ended(host.start(BASE, **lock, **terms(host, port, 1, [0], [], tls=True)))
    assert code == 0, output
    code, output = ended(keeper)
    assert code == 0, output
    assert "by TLS" in output
    assert sums(host) == sums(hub)
    assert requested(hub) == []
    assert sorted(path.name for path in hub.target().iterdir()) == before


def test_a_host_that_may_ask_the_hub_in_need_does_not_ask_it_where_a_neighbour_gives(
    hub: Hub, lock: dict[str, Any], port: int, new_host: Callable[[str], Hub]
) -> None:
    host = new_host("rebuilt")
    keeper = keeper_of(hub, port, lock)
    faults.set_fault(hub.state, "503", path="*")
    origin = {"url": f"{hub.url}/{BASE}/resolve/{lock['commit']}/", "authorised": False, "after": 20}
    code, output = ended(host.start(BASE, **lock, **terms(host, port, 1, [0], [], origin=origin)))
    assert code == 0, output
    assert ended(keeper)[0] == 0
    assert (sums(host), requested(hub)) == (sums(hub), [])


def test_a_host_that_has_it_by_now_says_so_and_nobody_waits_for_it(
    hub: Hub, lock: dict[str, Any], port: int, new_host: Callable[[str], Hub]
) -> None:
    give_secrets(hub)
    host = new_host("late")
    give_secrets(host)
    for folder in (host.models, host.manifests):
        shutil.rmtree(folder)
    shutil.copytree(hub.models, host.models)
    host.manifests.mkdir()
    spec = terms(hub, port, 0, [], [1], linger=100, start=100)["hand_on"]
    files = [{"path": path, **pin} for path, pin in lock["files"].items()]
    words = [sys.executable, str(hub.models.parent / "secrets/hand_on.pyz")]
    begun = time.monotonic()
    words.append(json.dumps({**spec, "files": files, "folder": str(hub.target())}))
    keeper = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    code, output = ended(host.start(BASE, **lock, **terms(host, port, 1, [0], [])))
    assert code == 0, output
    assert ended(keeper)[0] == 0
    assert time.monotonic() - begun < 60


def test_without_a_neighbour_that_answers_it_fails_and_says_what_to_do(
    hub: Hub, lock: dict[str, Any], port: int, new_host: Callable[[str], Hub]
) -> None:
    host = new_host("alone")
    code, output = ended(host.start(BASE, **lock, **terms(host, port, 1, [0], [], stall=2)))
    assert code == 1, output
    assert texts.NOT_HANDED_ON.format(repository=BASE) in output
    assert "downloads.hand_on.hub: true" in output
    assert requested(hub) == []
    assert not host.complete()
