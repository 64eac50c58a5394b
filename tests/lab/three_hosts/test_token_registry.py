"""An image of 300 MiB from a registry that wants bearer tokens which end within seconds: one copy, for all hosts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.hostside.packed import HAND_ON, packed
from rackwright.settings.image_file import ImageFile, for_machine
from rackwright.sources.lockfile import load_lock
from rackwright_lab.servers import image
from rackwright_lab.servers.registry import USER, Registry
from rackwright_lab.standins import oci
from tests.lab.conftest import BIN, ROOT, Site
from tests.lab.products import in_proof
from tests.lab.three_hosts.test_handed_images import IMAGE, REPOSITORY, STAGING, forget, pin, words

pytestmark = pytest.mark.lab
LAYER_SIZE, SEGMENT = 300 << 20, 1 << 20
SECONDS = 2
"""How long a token is taken: the transfer takes several times as long."""
MEGABITS = 200
"""Of a host's link, for a pull that takes a while."""
PULLED = re.compile(r"of (\d+\.\d) MiB \(\d+%\), (\d+\.\d) MiB/s")
RATE = 40
"""MiB/s of the first host's."""
GRANTED = re.compile(r"token: (\S+) at (\S+): nvidia/")
SENT = re.compile(r'(\S+) - - \[[^]]*\] "GET /v2/\S+/blobs/sha256:[0-9a-f]{64} [^"]*" 20[06] (\d+)')


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of two architectures, whose images share a layer that does not compress."""
    folder = tmp_path_factory.mktemp("image")
    numbers, root = random.Random(45), folder / "root"
    root.mkdir()
    with (root / "weights").open("wb") as file:
        for _ in range(LAYER_SIZE // SEGMENT):
            file.write(numbers.randbytes(SEGMENT))
    for machine in ("amd64", "arm64"):
        (root / machine).write_bytes(numbers.randbytes(SEGMENT))
    written = oci.Layout(folder / "layout")
    large = written.add_tree(root, ["weights"])
    images = [
        written.add_image([large, written.add_tree(root, [machine])], machine, {"Env": ["PATH=/bin"]})
        for machine in ("amd64", "arm64")
    ]
    written.tag(written.add_index(images), IMAGE.partition("/")[2])
    written.close()
    return folder / "layout"


@pytest.fixture(scope="module")
def registry(fleet: Site, layout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Run a registry with that image alone in the place of the lab's: it wants tokens, of its own token server."""
    lab, folder = fleet.lab, tmp_path_factory.mktemp("registry")
    found = replace(lab.registry, storage=folder / "storage", folder=folder)
    lab.registry.stop()
    try:
        found.start(with_key=False)
        login = image.Login(f"{found.server.address}:{found.server.port}", lab.paths.pki / "ca.crt")
        image.ensure(layout, lambda _: True, login, lab.progress)
        found.require_tokens(SECONDS)
        yield found
    finally:
        found.stop()
        lab.registry.heal()
        for host in lab.hosts:
            forget(host)
        lock_file(fleet).unlink(missing_ok=True)


def lock_file(site: Site) -> Path:
    return ROOT / STAGING / f"rackwright.lock.{site.lab.paths.id}.yml"


def files_for(site: Site, machine: str) -> tuple[ImageFile, ...]:
    """Return the files that the lock file lists for an architecture."""
    lock = load_lock(lock_file(site).parent, lock_file(site).name)
    [files] = lock.image_files.values()
    found = (ImageFile(sha256, one.size, one.kind, one.machine) for sha256, one in files.items())
    return for_machine(found, machine)


def tokens(registry: Registry) -> list[tuple[str, str]]:
    """Return who got a token for the image, and at which address."""
    return GRANTED.findall(registry.tokens.log.read_text())


@in_proof("tests/programs/test_image_registry.py has the challenge; here 300 MiB for three hosts")
def test_one_copy_of_a_large_image_by_tokens_that_end_in_the_transfer(fleet: Site, registry: Registry) -> None:
    pinned = pin(fleet)
    digest = re.search(rf"{re.escape(IMAGE)}  (sha256:[0-9a-f]{{64}})", pinned.output)
    assert digest
    before, log = len(tokens(registry)), registry.server.log
    begun, first = log.stat().st_size, fleet.lab.hosts[0]
    deploy = (BIN / "pyinfra", f"{STAGING}/inventory.py", "tests/lab/deploys/image.py", "-y")
    run = fleet.command(*words(fleet, rate_mib=RATE), *deploy)
    assert run.status == 0, run.output
    sent = SENT.findall(log.read_bytes()[begun:].decode(errors="replace"))
    size = sum(one.size for one in files_for(fleet, "amd64") if one.kind == "")
    assert size <= sum(int(number) for _, number in sent) <= 1.1 * size
    given = tokens(registry)[before:]
    assert {address for address, _ in sent} == {first.address}
    assert set(given) == {(USER, first.address)}
    assert len(given) > 3, "each is taken for seconds"
    for host in fleet.lab.hosts:
        assert f"{REPOSITORY}@{digest[1]}" in host.run(f"docker image inspect {IMAGE}").stdout


@in_proof("the hosts of a lab are amd64: here the program alone takes what an arm64 host takes")
def test_the_files_of_arm64_come_from_the_same_registry(fleet: Site, registry: Registry, tmp_path: Path) -> None:
    pin(fleet)
    secrets, address = tmp_path / "secrets", registry.server.address
    secrets.mkdir()
    login = f"{USER}:{fleet.lab.secrets()['registry-key']}"
    (secrets / "run_token").write_text("t" * 64)
    (secrets / "registry_login").write_text(base64.b64encode(login.encode()).decode())
    program = tmp_path / "hand_on.pyz"
    program.write_bytes(base64.b64decode(packed(*HAND_ON)))
    files = files_for(fleet, "arm64")
    spec = {
        "files": [{"path": one.path, "size": one.size, "sha256": one.sha256, "at": one.at} for one in files],
        "folder": str(tmp_path / "image"),
        "listen": None,
        "sources": [],
        "origin": {"url": f"https://{address}/v2/{IMAGE.partition('/')[2].partition(':')[0]}/", "registry": True},
        "rate_mib": RATE,
        "stall": 10,
        "secrets": str(secrets),
    }
    trust = {**os.environ, "SSL_CERT_FILE": str(fleet.lab.paths.pki / "ca.crt")}
    command = [sys.executable, str(program), json.dumps(spec)]
    run = subprocess.run(command, env=trust, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    for one in files:
        with (tmp_path / "image" / one.path).open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == one.sha256
    assert {one.machine for one in files} == {"", "arm64"}


@in_proof("tests/programs/test_pull_progress.py has the figures of made-up manifests; here are Docker's own")
def test_an_ordinary_pull_shows_bytes_and_rate(fleet: Site, registry: Registry) -> None:
    host, deploy = fleet.lab.hosts[0], (BIN / "pyinfra", f"{STAGING}/inventory.py", "tests/lab/deploys/image.py", "-y")
    pin(fleet)
    forget(host)
    host.limit_line(MEGABITS)
    try:
        run = fleet.command(*words(fleet, images=False), *deploy, "--limit", host.name)
    finally:
        host.limit_line(10_000)
    assert run.status == 0, run.output
    size = sum(one.size for one in files_for(fleet, "amd64") if one.path and one.kind == "") / (1 << 20)
    rates = [float(rate) for total, rate in PULLED.findall(run.output) if abs(float(total) - size) < 1]
    assert rates, run.output
    assert any(0.6 < rate * 8 * 1.048576 / MEGABITS < 1.3 for rate in rates), rates
