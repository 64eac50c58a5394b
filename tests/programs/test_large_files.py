"""Files over 4 GiB, a size that 32 bits do not hold: handed on, given to a host's own Docker, and from a bundle."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.bundle.catalog import Catalog, Image
from rackwright.bundle.store import PIECE, Store
from rackwright.processes import module
from tests.lab.products import in_proof
from tests.programs.hand_on_hosts import MIB, Fleets, content, fleets, free_port, program

__all__ = ["fleets", "program"]
REGISTRY = Path(__file__).parents[2] / "rackwright/hostside/image_registry.py"
HOLE = 1 << 32
TAIL = content(2 * MIB + 5)
"""A file of the tests: so many zeros, which take no room on the disk, and these bytes."""
SIZE = HOLE + len(TAIL)


@pytest.fixture(scope="module")
def sha256() -> str:
    """Return the digest of the file."""
    digest, block = hashlib.sha256(), bytes(16 * MIB)
    for _ in range(HOLE // len(block)):
        digest.update(block)
    digest.update(TAIL)
    return digest.hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder whose bytes do not outlive the test."""
    yield tmp_path
    shutil.rmtree(tmp_path)


def sparse(path: Path, tail: bytes = TAIL) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.seek(HOLE)
        file.write(tail)
        file.truncate(HOLE + len(tail))


class Zeros:
    """The file as the hub of the tests holds one: bytes by a slice of it."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> Any:
        if part.start is None:
            return Zeros(min(part.stop, self.size))
        first, last = part.start, min(part.stop, self.size)
        zeros = bytes(max(0, min(last, HOLE) - first))
        return zeros + TAIL[max(0, first - HOLE) : max(0, last - HOLE)]


def part_of_file(folder: Path) -> Path:
    return folder / ".parts" / f"{hashlib.sha256(b'layer').hexdigest()[:24]}.part"


@in_proof("tests/programs/test_hand_on.py hands small files on; this one is over 4 GiB")
@pytest.mark.usefixtures("folder")
def test_a_file_over_4_gib_is_resumed_at_the_piece_and_handed_on_whole(fleets: Fleets, sha256: str) -> None:
    fleet = fleets(3, {})
    fleet.hub.files = {"layer": Zeros()}  # type: ignore[dict-item]
    first, second, third = fleet.hosts
    for host, tail in ((first, b""), (third, TAIL[: MIB + 7])):
        sparse(part_of_file(host.folder), tail)
    terms: dict[str, Any] = {
        "files": [{"path": "layer", "size": SIZE, "sha256": sha256}],
        "linger": 60,
        "start": 300,
        "stall": 120,
    }
    for host in fleet.hosts:
        host.start(**terms)
    for host in fleet.hosts:
        assert host.wait(550) == 0, host.text()
        assert (host.folder / "layer").stat().st_size == SIZE
    assert [wanted for _, wanted, _ in fleet.hub.asked] == [f"bytes={HOLE}-"], "the first host asks for what it lacks"
    assert "4.0 GiB from host-0" in second.text().rpartition("whole:")[2]
    assert "4.0 GiB from this host's disk" in third.text().rpartition("whole:")[2]
    assert not fleet.listening()


def read(port: int, path: str, start: int) -> tuple[int, str, bytes]:
    """Return status, range and bytes from a byte on."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    link.request("GET", path, headers={"Range": f"bytes={start}-"})
    answer = link.getresponse()
    return answer.status, answer.headers["Content-Range"], answer.read()


def test_a_hosts_own_registry_gives_a_layer_over_4_gib(folder: Path) -> None:
    name, port = "a" * 64, free_port()
    sparse(folder / "blobs/sha256" / name)
    process = subprocess.Popen([sys.executable, str(REGISTRY), str(folder), "127.0.0.1", str(port), "{}"])
    try:
        start = HOLE - 3
        assert within(10, lambda: read(port, f"/v2/x/blobs/sha256:{name}", start)) == (
            206,
            f"bytes {start}-{SIZE - 1}/{SIZE}",
            bytes(3) + TAIL,
        )
    finally:
        process.kill()
        process.wait()


def within(seconds: float, ask: Any) -> Any:
    """Return an answer, which may be refused at first."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@in_proof("tests/unit/test_bundle.py has pieces of a few bytes; these are of 4 GiB")
def test_a_bundle_gives_a_layer_over_4_gib_across_its_pieces(folder: Path, sha256: str) -> None:
    store = Store(folder, 100 << 30)
    arrived = store.incoming("layer")
    sparse(arrived)
    store.add(arrived, sha256)
    pieces = store.stored[sha256].pieces
    assert [piece.size for piece in pieces] == [PIECE, SIZE - PIECE]
    image = Image(reference="nvcr.io/x:1", digest=f"sha256:{'b' * 64}", kinds={}, layers=[sha256])
    catalog = Catalog(images=[image], stored=store.stored)
    (folder / "bundle.json").write_text(catalog.model_dump_json())
    words = [*module("rackwright.bundle.serve"), str(folder)]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        port = int(server.stdout.readline())
        start = HOLE - 3
        assert read(port, f"/v2/x/blobs/sha256:{sha256}", start) == (
            206,
            f"bytes {start}-{SIZE - 1}/{SIZE}",
            bytes(3) + TAIL,
        )
    finally:
        server.communicate()
