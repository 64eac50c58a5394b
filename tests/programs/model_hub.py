"""A model hub on loopback, and the download program as a host's image runs it with the real huggingface_hub."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside import store_functions
from rackwright.hostside.packed import FETCH_MODEL, packed
from rackwright_lab import faults
from rackwright_lab.servers.web import Site, WebServer

BASE = "openai/gpt-oss-120b"
SMALL = "nvidia/gpt-oss-120b-Eagle3"
GATED = "meta-llama/Llama-3.1-8B-Instruct"
EXCLUDE = ["original/*", "metal/*"]


def stores_in(models: Path) -> bytes:
    """On which store each folder is, as the host tells the program."""
    words = ["sh", "-c", store_functions() + 'stores_in "$1"', "-", str(models)]
    return subprocess.run(words, check=True, capture_output=True).stdout


def _size(path: Path) -> int:
    """Return a file's bytes; none when it has been moved into place in the meantime."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@dataclass
class Hub:
    """A loopback hub, and the program that downloads from it into `models`."""

    url: str
    state: Path
    models: Path
    program: Path

    cache: Path | None = None
    """A Hugging Face cache on the host."""
    packages: Path | None = None
    """Where Python looks first for the image's packages."""

    def start(self, repository: str = SMALL, token: str = "", **spec: Any) -> subprocess.Popen[str]:
        secrets = self.models.parent / "secrets"
        secrets.mkdir(exist_ok=True)
        (secrets / "hub_token").write_text(token)
        (secrets / "stores").write_bytes(stores_in(self.models))
        whole = {
            "repository": repository,
            "revision": "main",
            "commit": None,
            "name": repository.replace("/", "--"),
            "directory": None,
            "include": [],
            "exclude": EXCLUDE,
            "models_dir": str(self.models),
            "stall": 30,
            "pause": 0.1,
            "rate_mib": None,
            "secrets": str(secrets),
            "files": {},
            "manifests": str(self.manifests),
        } | spec
        env = {"PATH": os.environ["PATH"], "HF_ENDPOINT": self.url, "HOME": str(self.models.parent)}
        env |= {"HUB_CACHES": f"/nowhere:{self.cache}"} if self.cache else {}
        env |= {"PYTHONPATH": str(self.packages)} if self.packages else {}
        command = [sys.executable, str(self.program), json.dumps(whole)]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, repository: str = SMALL, token: str = "", **spec: Any) -> tuple[int, str]:
        process = self.start(repository, token, **spec)
        output, _ = process.communicate(timeout=120)
        return process.returncode, output

    @property
    def manifests(self) -> Path:
        return self.models.parent / "manifests"

    def target(self) -> Path:
        """Return the one complete model folder."""
        (found,) = [path.parent for path in self.models.glob("*/.rackwright.json") if path.parent.suffix != ".partial"]
        return found

    def wait_for_bytes(self, size: int) -> None:
        """Wait until a file has so many bytes, and no more than it must have."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if any(_size(part) > size for part in self.models.glob("*.partial/.parts/*.part")):
                return
            time.sleep(0.05)
        raise AssertionError("no byte came within a minute")

    def wait_for_verified(self) -> Path:
        """Wait until a file of a model that is not complete is verified."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if found := next((path for path in self.models.glob("*.partial/[!.]*") if path.stat().st_size), None):
                return found
            time.sleep(0.01)
        raise AssertionError("no file was verified within a minute")

    def complete(self) -> bool:
        return any(self.models.glob("*/.rackwright.json"))

    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.target() / ".rackwright.json").read_text())
        return found

    def fetched(self) -> list[dict[str, Any]]:
        return [row for row in faults.requests(self.state) if row["method"] == "GET" and "/api/" not in row["path"]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Path]]:
    state = tmp_path_factory.mktemp("web")
    faults.set_tokens(state, {"hf_granted": True, "hf_stranger": False})
    program = state / "fetch_model.pyz"
    program.write_bytes(base64.b64decode(packed(*FETCH_MODEL)))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    site = Site(state, hub="127.0.0.1", cdn="localhost", cdn_url=f"http://localhost:{port}")
    with WebServer(("127.0.0.1", port), site) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{port}", state, program
        running.shutdown()


@pytest.fixture
def hub(server: tuple[str, Path, Path], tmp_path: Path) -> Iterator[Hub]:
    url, state, program = server
    faults.clear(state)
    faults.forget_requests(state)
    for name in ("models", "manifests"):
        (tmp_path / name).mkdir()
    yield Hub(url, state, tmp_path / "models", program)
    faults.clear(state)
