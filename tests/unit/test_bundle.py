"""A bundle: what is written, what of it is taken up again, and what is refused of one that is not right."""

from __future__ import annotations

import base64
import hashlib
import http.client
import io
import json
import resource
import shutil
import socket
import struct
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from paramiko import SSHException

from rackwright.adapter.run_context import part_of
from rackwright.bundle import contents as contents_module
from rackwright.bundle import fetching
from rackwright.bundle.catalog import FILE, read_catalog
from rackwright.bundle.checking import changed_files, opened, refuse_other_lock
from rackwright.bundle.contents import Contents, contents_of
from rackwright.bundle.running import Bundles, ServedBundle, lead_to_bundle
from rackwright.bundle.serve import Shelf
from rackwright.bundle.signature import SIGNATURE, SUMS
from rackwright.bundle.store import Store, is_right
from rackwright.bundle.writing import BundleWriter
from rackwright.concerns.encodings import Encoding as EncodingFile
from rackwright.messages import RackwrightError
from rackwright.processes import module
from rackwright.settings.from_bundle import from_bundle
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret
from rackwright.settings.sections import FilePin, ModelSource
from rackwright.sources.http import HttpAnswer
from rackwright.sources.lockfile import Lock, LockedFile, LockedModel, locked, pinned

COMMIT = "a" * 40
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.0"
WEIGHTS = bytes(range(256)) * 16384  # 4 MiB
CONFIG = b'{"model_type": "gpt_oss"}'
LAYERS = {"amd64": b"layer of amd64" * 1000, "arm64": b"layer of arm64" * 1000}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def row(content: bytes, **more: Any) -> dict[str, Any]:
    return {"digest": f"sha256:{sha256(content)}", "size": len(content), **more}


def manifest(machine: str) -> bytes:
    return json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": row(machine.encode()),
            "layers": [row(LAYERS[machine])],
        }
    ).encode()


INDEX = json.dumps(
    {
        "schemaVersion": 2,
        "manifests": [row(manifest(one), platform={"os": "linux", "architecture": one}) for one in LAYERS],
    }
).encode()


@dataclass
class Servers:
    """Registry, hub and encodings, as the control machine's client sees them."""

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Address, and Range."""
    ends_after: int = 1 << 40
    """Bytes after which each answer ends early."""

    def get(self, url: str, headers: Mapping[str, str], login: object = None) -> HttpAnswer:
        self.requests.append((url, ""))
        found = self.files.get(url)
        return HttpAnswer(404 if found is None else 200, {}, found or b"")

    def opened(self, url: str, headers: Mapping[str, str], login: object = None) -> Any:
        span = headers.get("Range", "")
        self.requests.append((url, span))
        start = int(span.removeprefix("bytes=").rstrip("-") or 0) if span else 0
        answer: Any = io.BytesIO(self.files.get(url, b"")[start : start + self.ends_after])
        answer.status = 404 if url not in self.files else 206 if start else 200
        return answer


def put_files() -> dict[str, bytes]:
    hub, registry = (
        "https://hub.example.com/openai/gpt-oss-120b/resolve",
        "https://nvcr.io/v2/nvidia/tensorrt-llm/release",
    )
    blobs = [*LAYERS.values(), *(one.encode() for one in LAYERS)]
    return {
        f"{hub}/{COMMIT}/model.safetensors": WEIGHTS,
        f"{hub}/{COMMIT}/config.json": CONFIG,
        "https://files.example.com/o200k": b"vocabulary",
        f"{registry}/manifests/sha256:{sha256(INDEX)}": INDEX,
        **{f"{registry}/manifests/sha256:{sha256(manifest(one))}": manifest(one) for one in LAYERS},
        **{f"{registry}/blobs/sha256:{sha256(blob)}": blob for blob in blobs},
    }


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    found = Servers(put_files())
    vocabulary = EncodingFile("o200k", 10, sha256(b"vocabulary"))
    monkeypatch.setattr(contents_module, "Client", lambda _: found)
    monkeypatch.setattr(contents_module, "ENCODING_FILES", (vocabulary,))
    monkeypatch.setattr(fetching, "PAUSE", 0)
    return found


def settings(**more: Any) -> HostSettings:
    values = {
        "image": IMAGE,
        "model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/base"},
        "harmony": True,
        "mirrors": {"hub": "https://hub.example.com", "encodings": "https://files.example.com"},
    }
    return HostSettings.model_validate({**values, **more})


def lock() -> Lock:
    blob = hashlib.sha1(b"blob %d\0" % len(CONFIG) + CONFIG, usedforsecurity=False).hexdigest()
    files = {
        "model.safetensors": LockedFile(size=len(WEIGHTS), sha256=sha256(WEIGHTS)),
        "config.json": LockedFile(size=len(CONFIG), blob=blob),
    }
    models = {"openai/gpt-oss-120b@main": LockedModel(commit=COMMIT, files=files)}
    return Lock({IMAGE: f"sha256:{sha256(INDEX)}"}, models)


def contents(machine: str | None = "x86_64", **more: Any) -> Contents:
    found = settings(hardware={"architecture": machine}, **more) if machine else settings(**more)
    return contents_of({"h1": locked(found, lock())}, ("amd64", "arm64"))


def write(folder: Path, part_size: int = 1 << 40, **more: Any) -> BundleWriter:
    bundle = BundleWriter(Store(folder, part_size), lambda _: None)
    bundle.begin()
    bundle.fill(contents(**more))
    bundle.close()
    return bundle


def test_a_bundle_holds_what_the_lock_names_once_and_each_file_by_its_sum(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path)
    catalog = opened(tmp_path, None)
    assert catalog.missing() == []
    assert catalog.models[f"openai/gpt-oss-120b@{COMMIT}"]["config.json"].sha256 == sha256(CONFIG)
    done = subprocess.run(["sha256sum", "--check", "--quiet", SUMS], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert list(changed_files(tmp_path, catalog, lambda _: None)) == []


@pytest.mark.parametrize(
    ("machine", "layers"), [("x86_64", {"amd64"}), ("aarch64", {"arm64"}), (None, {"amd64", "arm64"})]
)
def test_images_are_bundled_for_the_machines_of_the_inventory(
    servers: Servers, tmp_path: Path, machine: str | None, layers: set[str]
) -> None:
    write(tmp_path, machine=machine)
    image = read_catalog(tmp_path).images[0]
    assert {name for name, layer in LAYERS.items() if sha256(layer) in image.layers} == layers
    assert sha256(INDEX) in image.kinds


def test_parts_fit_a_disk_and_a_file_that_does_not_is_cut(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path, part_size=1 << 20)
    catalog = opened(tmp_path, None)
    sizes = [sum(path.stat().st_size for path in part.iterdir()) for part in tmp_path.glob("part-*")]
    assert len(sizes) == 5
    assert max(sizes) <= 1 << 20
    assert len(catalog.stored[sha256(WEIGHTS)].pieces) == 4
    assert is_right(tmp_path, sha256(WEIGHTS), catalog.stored[sha256(WEIGHTS)])


def test_the_first_piece_of_a_file_that_is_cut_is_not_written_a_second_time(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    arrived = store.incoming("layer")
    arrived.write_bytes(WEIGHTS)
    inode = arrived.stat().st_ino
    store.add(arrived, sha256(WEIGHTS))
    first, *others = (tmp_path / piece.path for piece in store.stored[sha256(WEIGHTS)].pieces)
    assert first.stat().st_ino == inode
    assert all(path.stat().st_ino != inode for path in others)
    assert is_right(tmp_path, sha256(WEIGHTS), store.stored[sha256(WEIGHTS)])


def test_the_room_to_cut_a_file_is_counted(servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = SimpleNamespace(free=len(WEIGHTS) + (1 << 20) - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room)
    with pytest.raises(RackwrightError, match=r"RW3943"):
        write(tmp_path / "cut", part_size=1 << 20)
    assert write(tmp_path / "whole").fetched, "without parts nothing is on the disk twice"
    assert Store(tmp_path, 10).cutting([10, 12, 35]) == 10
    assert Store(tmp_path, 10).cutting([10, 12]) == 2


def test_what_is_there_and_right_is_not_fetched_again(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    servers.requests.clear()
    assert write(tmp_path).fetched == 0
    assert {url for url, _ in servers.requests if "manifests" not in url} == set()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_is_damaged_is_fetched_again(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "part-01" / sha256(WEIGHTS)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    assert write(tmp_path).fetched == len(WEIGHTS)
    assert path.read_bytes() == WEIGHTS


def test_an_interrupted_file_continues_where_it_was(servers: Servers, tmp_path: Path) -> None:
    servers.ends_after = 3 << 20
    write(tmp_path)
    ranges = [span for url, span in servers.requests if url.endswith("model.safetensors")]
    assert ranges == ["", f"bytes={3 << 20}-"]
    assert opened(tmp_path, None).missing() == []


def test_an_interrupted_command_leaves_no_bundle_and_the_next_one_continues(servers: Servers, tmp_path: Path) -> None:
    whole = dict(servers.files)
    servers.files = {url: content for url, content in whole.items() if not url.endswith("safetensors")}
    with pytest.raises(RackwrightError, match=r"RW3823.*model.safetensors"):
        write(tmp_path)
    with pytest.raises(RackwrightError, match=r"RW3803"):
        opened(tmp_path, None)
    servers.files = whole
    assert write(tmp_path).fetched == len(WEIGHTS) + len(b"vocabulary")
    assert opened(tmp_path, None).missing() == []


def test_a_second_interruption_forgets_nothing_of_what_came_before_the_first(servers: Servers, tmp_path: Path) -> None:
    whole = dict(servers.files)
    for gone in ("o200k", f"blobs/sha256:{sha256(LAYERS['amd64'])}"):
        servers.files = {url: content for url, content in whole.items() if not url.endswith(gone)}
        for lost in (LAYERS["amd64"], b"amd64"):
            (tmp_path / "part-01" / sha256(lost)).unlink(missing_ok=True)
        with pytest.raises(RackwrightError, match=r"RW3823"):
            write(tmp_path)
    servers.files = whole
    assert write(tmp_path).fetched == len(LAYERS["amd64"]) + len(b"vocabulary")


def test_other_bytes_than_the_locks_are_thrown_away(servers: Servers, tmp_path: Path) -> None:
    url = next(url for url in servers.files if url.endswith("model.safetensors"))
    servers.files[url] = b"x" + WEIGHTS[1:]
    with pytest.raises(RackwrightError, match=r"RW3823.*other bytes"):
        write(tmp_path)
    assert list((tmp_path / "incoming").iterdir()) == []


def test_a_disk_that_is_too_small_is_refused_before_anything_is_fetched(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "first")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=len(WEIGHTS)))
    servers.requests.clear()
    with pytest.raises(RackwrightError, match=r"RW3943.*4.0 MiB free"):
        write(tmp_path / "second")
    assert not [url for url, _ in servers.requests if "manifests" not in url]
    assert write(tmp_path / "first").fetched == 0, "what is there needs no room"


def test_a_full_disk_ends_it_at_once_and_what_came_stays(servers: Servers, tmp_path: Path) -> None:
    for limit in (1 << 20, 64 << 20):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            if limit == 1 << 20:
                with pytest.raises(RackwrightError, match=r"RW1408.*File too large"):
                    write(tmp_path)
            else:
                assert write(tmp_path).fetched > 0
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert opened(tmp_path, None).missing() == []


def test_what_no_lock_names_is_refused() -> None:
    found = contents_of({"h1": settings()}, ("amd64",))
    with pytest.raises(RackwrightError, match=r"RW3843.*openai/gpt-oss-120b@main.*next: rackwright pin inventory/x.py"):
        found.refuse_unpinned("inventory/x.py")


# -- what is refused of a bundle


def changed(folder: Path) -> None:
    path = folder / "part-01" / sha256(WEIGHTS)
    path.write_bytes(b"x" + path.read_bytes()[1:])


def shortened(folder: Path) -> None:
    (folder / "part-01" / sha256(CONFIG)).write_bytes(b"")


def without_a_part(folder: Path) -> None:
    shutil.rmtree(folder / "part-01")


def with_another_list(folder: Path) -> None:
    path = folder / FILE
    path.write_text(path.read_text().replace("gpt-oss-120b", "gpt-oss-20b"))


def with_a_link(folder: Path) -> None:
    path = folder / "part-01" / sha256(CONFIG)
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (shortened, "RW3883.*config.json.*is missing, or of another size"),
        (without_a_part, "RW3883.*part-01 is missing"),
        (with_another_list, "RW3883.*bundle.json is not what SHA256SUMS says"),
        (with_a_link, "RW3883.*config.json"),
    ],
)
def test_a_bundle_that_is_not_whole_is_refused(
    servers: Servers, tmp_path: Path, spoil: Callable[[Path], None], text: str
) -> None:
    write(tmp_path)
    spoil(tmp_path)
    with pytest.raises(RackwrightError, match=text):
        opened(tmp_path, None)


def test_a_changed_byte_is_found_by_verify_and_named(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path)
    changed(tmp_path)
    found = list(changed_files(tmp_path, opened(tmp_path, None), lambda _: None))
    assert len(found) == 1
    assert "model.safetensors" in found[0]


def test_a_bundle_of_another_lock_is_refused(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path)
    catalog = opened(tmp_path, None)
    refuse_other_lock(tmp_path, catalog, contents())
    other = Lock({IMAGE: f"sha256:{'1' * 64}"}, lock().models)
    found = contents_of({"h1": locked(settings(), other)}, ())
    with pytest.raises(RackwrightError, match=r"RW3873"):
        refuse_other_lock(tmp_path, catalog, found)


@dataclass
class Signer:
    """minisign's way to sign, by a key of the test's."""

    secret: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    name: bytes = b"12345678"

    @property
    def public(self) -> str:
        raw = self.secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return base64.b64encode(b"Ed" + self.name + raw).decode()

    def sign(self, folder: Path) -> None:
        over_sums = self.secret.sign(hashlib.blake2b((folder / SUMS).read_bytes()).digest())
        over_comment = self.secret.sign(over_sums + b"bundle")
        rows = [
            "untrusted comment: x",
            base64.b64encode(b"ED" + self.name + over_sums).decode(),
            "trusted comment: bundle",
            base64.b64encode(over_comment).decode(),
        ]
        (folder / SIGNATURE).write_text("\n".join(rows) + "\n")


def test_a_signature_of_the_right_key_is_taken_and_every_other_refused(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path)
    signer, other = Signer(), Signer(name=b"87654321")
    with pytest.raises(RackwrightError, match=r"RW3863.*it is not signed"):
        opened(tmp_path, signer.public)
    signer.sign(tmp_path)
    opened(tmp_path, signer.public)
    with pytest.raises(RackwrightError, match=r"RW3863.*3837363534333231"):
        opened(tmp_path, other.public)
    with pytest.raises(RackwrightError, match=r"RW3863"):
        opened(tmp_path, Signer().public)
    path = tmp_path / SIGNATURE
    path.write_text(path.read_text().replace("trusted comment: bundle", "trusted comment: bundla"))
    with pytest.raises(RackwrightError, match=r"RW3863"):
        opened(tmp_path, signer.public)


def test_sums_that_were_changed_with_their_list_are_refused_by_the_signature(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path)
    signer = Signer()
    signer.sign(tmp_path)
    with_another_list(tmp_path)
    sums = (tmp_path / SUMS).read_text().splitlines()
    rows = [row if not row.endswith(FILE) else f"{sha256((tmp_path / FILE).read_bytes())}  {FILE}" for row in sums]
    (tmp_path / SUMS).write_text("\n".join(rows) + "\n")
    opened(tmp_path, None)
    with pytest.raises(RackwrightError, match=r"RW3863"):
        opened(tmp_path, signer.public)


# -- served


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the address of a bundle that is served, and the process."""
    words = [*module("rackwright.bundle.serve"), str(folder)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}", process
        end(process)


def end(process: subprocess.Popen[str]) -> str:
    """End a server as its run does; returns what the operator reads."""
    assert process.stdin
    assert process.stderr
    process.stdin.close()
    assert process.wait(10) == 0
    return "" if process.stderr.closed else process.stderr.read()


@pytest.fixture
def served(servers: Servers, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    write(tmp_path, part_size=1 << 20)
    with serving(tmp_path) as (base, _):
        yield base, tmp_path


def ask(url: str, **headers: str) -> Any:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as found:
            return SimpleNamespace(status=found.status, body=found.read(), headers=found.headers)
    except urllib.error.HTTPError as error:
        return SimpleNamespace(status=error.code, body=error.read(), headers=error.headers)


def test_it_answers_as_registry_as_hub_and_with_files(served: tuple[str, Path]) -> None:
    base, _ = served
    assert ask(f"{base}/v2/").status == 200
    by_tag = ask(f"{base}/v2/nvidia/tensorrt-llm/release/manifests/1.0")
    assert (by_tag.body, by_tag.headers["Docker-Content-Digest"]) == (INDEX, f"sha256:{sha256(INDEX)}")
    assert by_tag.headers["Content-Type"] == "application/vnd.oci.image.index.v1+json"
    blob = ask(f"{base}/v2/nvidia/tensorrt-llm/release/blobs/sha256:{sha256(LAYERS['amd64'])}")
    assert blob.body == LAYERS["amd64"]
    api = f"{base}/hub/api/models/openai/gpt-oss-120b"
    assert json.loads(ask(f"{api}/revision/{COMMIT}").body)["sha"] == COMMIT
    tree = {entry["path"]: entry for entry in json.loads(ask(f"{api}/tree/{COMMIT}?recursive=True").body)}
    assert tree["model.safetensors"]["lfs"]["oid"] == sha256(WEIGHTS)
    weights = f"{base}/hub/openai/gpt-oss-120b/resolve/{COMMIT}/model.safetensors"
    assert ask(weights).body == WEIGHTS
    part = ask(weights, Range="bytes=1048570-1048580")
    assert (part.status, part.body) == (206, WEIGHTS[1048570:1048581])
    assert ask(weights, Range=f"bytes={len(WEIGHTS)}-").status == 416
    assert ask(f"{base}/encodings/o200k").body == b"vocabulary"


OTHERS = (
    *("/", "/encodings/", "/encodings/../bundle.json", "/encodings/%2e%2e/bundle.json", "/bundle.json", "/part-01/x"),
    *(
        "/packages/a/../../SHA256SUMS",
        f"/hub/openai/gpt-oss-120b/resolve/{COMMIT}/../../etc/passwd",
        "/v2/a/blobs/sha256:1",
    ),
    *(f"/v2/x/blobs/sha256:{'0' * 64}", "//etc/passwd"),
)


def test_nothing_else_is_served(served: tuple[str, Path]) -> None:
    base, _ = served
    assert {path: ask(base + path).status for path in OTHERS} == dict.fromkeys(OTHERS, 404)


def test_docker_which_tries_tls_first_is_answered_in_clear(served: tuple[str, Path]) -> None:
    address, _, port = served[0].removeprefix("http://").rpartition(":")
    with socket.create_connection((address, int(port)), 10) as link:
        link.sendall(b"\x16\x03\x01\x00\x0a\x01\x00\n")
        assert link.recv(5) == b"HTTP/"


def test_a_changed_byte_is_never_sent(served: tuple[str, Path]) -> None:
    base, folder = served
    piece = read_catalog(folder).stored[sha256(WEIGHTS)].pieces[0]
    path = folder / piece.path
    path.write_bytes(b"x" + path.read_bytes()[1:])
    found = ask(f"{base}/hub/openai/gpt-oss-120b/resolve/{COMMIT}/model.safetensors")
    assert (found.status, found.body) == (404, b"damaged in the bundle\n")


def test_a_damaged_file_is_named_to_the_operator_once(
    servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    changed(tmp_path)
    shelf = Shelf(tmp_path, read_catalog(tmp_path))
    piece = shelf.catalog.stored[sha256(WEIGHTS)].pieces[0]
    assert (shelf.is_right(piece), shelf.is_right(piece)) == (False, False)
    printed = capsys.readouterr().err
    assert printed.count("RW3893") == 1
    assert "model.safetensors" in printed


def begin_and_leave(base: str, path: str) -> None:
    """Ask for a file, take a little of it, and go away as a killed job does."""
    address, _, port = base.removeprefix("http://").rpartition(":")
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.connect((address, int(port)))
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert link.recv(5) == b"HTTP/"


def test_a_client_that_goes_away_is_nothing_that_the_operator_reads(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path, part_size=1 << 20)
    with serving(tmp_path) as (base, process):
        for _ in range(3):
            begin_and_leave(base, f"/hub/openai/gpt-oss-120b/resolve/{COMMIT}/model.safetensors")
        assert ask(f"{base}/encodings/o200k").body == b"vocabulary"
        assert end(process) == ""


def test_a_disk_that_goes_away_is_named(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path)
    weights = f"/hub/openai/gpt-oss-120b/resolve/{COMMIT}/model.safetensors"
    with serving(tmp_path) as (base, process):
        assert ask(base + weights).body == WEIGHTS
        (tmp_path / read_catalog(tmp_path).stored[sha256(WEIGHTS)].pieces[0].path).unlink()
        with pytest.raises(http.client.IncompleteRead):
            ask(base + weights)
        printed = end(process)
    assert "RW3811" in printed
    assert "model.safetensors" in printed
    assert "Traceback" not in printed


# -- what the hosts get


def test_with_a_bundle_every_source_is_a_port_of_the_host_and_no_key_leaves() -> None:
    found = settings(
        bundle={"folder": "/media/disk"},
        registry={"key": Secret("nvapi-x")},
        models={"hub_token": Secret("hf_x")},
        proxy={"http": "http://proxy.example.com:3128"},
    )
    closed = pinned(found, lock())
    assert closed.mirrors.hub == "http://127.0.0.1:7460/hub"
    assert closed.mirrors.encodings == "http://127.0.0.1:7460/encodings"
    assert closed.docker.daemon["registry-mirrors"] == ["http://127.0.0.1:7460"]
    assert (closed.registry.key, closed.models.hub_token, closed.proxy.http) == (None, None, None)
    assert from_bundle(settings()) == settings()
    assert closed.model is not None
    assert closed.model.revision == COMMIT
    assert isinstance(closed.model, ModelSource)
    assert all(isinstance(pin, FilePin) for pin in closed.model.files)


# -- a run


def host_of_a_run(state: Any, denies: bool = False) -> Any:
    def forward(*_: Any) -> None:
        if denies:
            raise SSHException("TCP forwarding request denied")

    transport = SimpleNamespace(request_port_forward=forward)
    return SimpleNamespace(
        name="h1", state=state, connector=SimpleNamespace(client=SimpleNamespace(get_transport=lambda: transport))
    )


def test_a_run_verifies_a_bundle_once_and_its_server_ends_with_it(
    servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    state: Any = SimpleNamespace()
    closed = pinned(settings(bundle={"folder": str(tmp_path)}), lock())
    lead_to_bundle(host_of_a_run(state), closed)
    lead_to_bundle(host_of_a_run(state), closed)
    assert capsys.readouterr().err.count("bundle.public_key is not set") == 1
    served = next(iter(part_of(state, Bundles).served.values()))
    assert isinstance(served, ServedBundle)
    assert ask(f"http://127.0.0.1:{served.port}/encodings/o200k").body == b"vocabulary"
    assert served.process.stdin
    served.process.stdin.close()
    assert served.process.wait(10) == 0


def test_a_run_without_a_bundle_starts_nothing_and_one_of_another_lock_is_refused(
    servers: Servers, tmp_path: Path
) -> None:
    state = SimpleNamespace()
    lead_to_bundle(host_of_a_run(state), settings())
    assert vars(state) == {}
    write(tmp_path)
    with pytest.raises(RackwrightError, match=r"RW3873"):
        lead_to_bundle(host_of_a_run(state), settings(bundle={"folder": str(tmp_path)}))


def test_a_command_that_only_looks_goes_on_where_a_run_has_the_hosts_port(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path)
    closed = pinned(settings(bundle={"folder": str(tmp_path)}), lock())
    state = SimpleNamespace()
    lead_to_bundle(host_of_a_run(state, denies=True), closed, fetches=False)
    with pytest.raises(RackwrightError, match=r"RW3813"):
        lead_to_bundle(host_of_a_run(state, denies=True), closed)
