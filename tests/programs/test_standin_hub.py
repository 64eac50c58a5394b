from __future__ import annotations

import hashlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright_lab import faults
from rackwright_lab.servers import certificates
from rackwright_lab.servers.web import WEB_HOSTS, Site, WebServer, byte_range
from rackwright_lab.standins.hub import OWN_FOLDER
from rackwright_lab.standins.hub_content import REPOSITORIES

BASE = "openai/gpt-oss-20b"
LARGE = "openai/gpt-oss-120b"
DRAFT = "nvidia/gpt-oss-120b-Eagle3"
GATED = "meta-llama/Llama-3.1-8B-Instruct"
WEIGHTS = "model.safetensors"
TOKEN, NOT_GRANTED = "hf_granted", "hf_valid_but_not_granted"


@dataclass
class Web:
    url: str
    state: Path

    def get(self, path: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=named), timeout=10) as answer:
                return answer.status, answer.read(), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read(), dict(error.headers)

    def download(self, target: Path, repo: str, *arguments: str, token: str = "") -> subprocess.CompletedProcess[str]:
        """Run the real client in a process of its own, as it reads its endpoint when it is imported."""
        hf = Path(sys.executable).with_name("hf")
        home = target.parent / "hf-home"
        env = {**os.environ, "HF_ENDPOINT": self.url, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        env |= {"HF_TOKEN": token} if token else {}
        command = [str(hf), "download", repo, "--local-dir", str(target), *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, check=False)

    def bodies(self) -> list[dict[str, object]]:
        return [row for row in faults.requests(self.state) if row["method"] == "GET" and "/cdn/" in str(row["path"])]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    state = tmp_path_factory.mktemp("web")
    faults.set_tokens(state, {TOKEN: True, NOT_GRANTED: False})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    site = Site(state, hub="127.0.0.1", cdn="localhost", cdn_url=f"http://localhost:{port}")
    with WebServer(("127.0.0.1", port), site) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield Web(f"http://127.0.0.1:{port}", state)
        running.shutdown()


@pytest.fixture
def web(server: Web) -> Iterator[Web]:
    faults.clear(server.state)
    faults.forget_requests(server.state)
    yield server
    faults.clear(server.state)


def published(web: Web, repo: str, revision: str = "main") -> dict[str, dict[str, object]]:
    info = json.loads(web.get(f"/api/models/{repo}/revision/{revision}?blobs=true")[1])
    return {row["rfilename"]: row for row in info["siblings"]}


def assert_whole(web: Web, folder: Path, repo: str, names: list[str]) -> None:
    listed = published(web, repo)
    for name in names:
        data = (folder / name).read_bytes()
        row = listed[name]
        assert len(data) == row["size"]
        lfs = row.get("lfs")
        if isinstance(lfs, dict):
            assert hashlib.sha256(data).hexdigest() == lfs["sha256"]
        else:
            assert hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest() == row["blobId"]


def test_a_data_set_of_ones_own_is_no_model(web: Web) -> None:
    content = b"[" + b" " * 20_000 + b"]"
    file = web.state / OWN_FOLDER / "datasets" / "someone" / "talks" / "v1" / "talks.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    commit = json.loads(web.get("/api/datasets/someone/talks/revision/main")[1])["sha"]
    (row,) = json.loads(web.get(f"/api/datasets/someone/talks/tree/{commit}")[1])
    assert (row["path"], row["lfs"]["oid"]) == ("talks.json", hashlib.sha256(content).hexdigest())
    assert web.get(f"/datasets/someone/talks/resolve/{commit}/talks.json")[1] == content
    assert web.get("/api/models/someone/talks/revision/main")[0] == 401
    assert web.get("/api/models/datasets/someone/talks/revision/main")[0] == 404


def test_the_real_client_downloads_a_model_without_what_is_excluded(web: Web, tmp_path: Path) -> None:
    done = web.download(tmp_path / "model", BASE, "--exclude", "original/*", "--exclude", "metal/*")
    assert done.returncode == 0, done.stderr
    wanted = [name for name in published(web, BASE) if not name.startswith(("original/", "metal/"))]
    assert_whole(web, tmp_path / "model", BASE, wanted)
    assert not (tmp_path / "model" / "metal").exists()


def test_a_slow_answer_is_slow_until_the_fault_is_cleared(web: Web) -> None:
    faults.set_fault(web.state, "slow", value=50)  # hours for this answer
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(web.get, f"/{BASE}/resolve/main/config.json")
        with pytest.raises(TimeoutError):
            answer.result(timeout=1)
        faults.clear(web.state)
        assert answer.result(timeout=60)[0] == 200


def test_a_download_that_was_cut_is_resumed_with_a_range(web: Web, tmp_path: Path) -> None:
    target, shard = tmp_path / "model", "model-00002-of-00003.safetensors"
    # The client keeps whole pieces of 10 MiB only, so the cut lies after the first.
    faults.set_fault(web.state, "truncated", path=f"/cdn/*/{shard}", value=0.9, times=1)
    done = web.download(target, LARGE, "--include", shard)
    assert done.returncode == 0, done.stderr
    assert [(row["range"], row["status"]) for row in web.bodies()] == [("", 200), (f"bytes={10 * 2**20}-", 206)]
    assert_whole(web, target, LARGE, [shard])


def test_snapshot_download_of_an_older_revision_by_commit(web: Web, tmp_path: Path) -> None:
    commit = REPOSITORIES[DRAFT].commit(1)
    script = (
        "import sys; from huggingface_hub import snapshot_download as s; s(sys.argv[1], revision=sys.argv[2], "
        "local_dir=sys.argv[3])"
    )
    env = {**os.environ, "HF_ENDPOINT": web.url, "HF_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", script, DRAFT, commit, str(tmp_path / "model")]
    subprocess.run(command, env=env, check=True, timeout=60, capture_output=True)
    digest = hashlib.sha256((tmp_path / "model" / WEIGHTS).read_bytes()).hexdigest()
    old, new = (published(web, DRAFT, revision)[WEIGHTS]["lfs"] for revision in (commit, "main"))
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    assert (digest == old["sha256"], digest == new["sha256"]) == (True, False)


def test_main_moves_when_it_is_told_to(web: Web) -> None:
    def main() -> str:
        return str(json.loads(web.get(f"/api/models/{DRAFT}")[1])["sha"])

    assert main() == REPOSITORIES[DRAFT].commit(2)
    faults.move_branch(web.state, DRAFT, 1)
    assert main() == REPOSITORIES[DRAFT].commit(1)
    faults.move_branch(web.state, DRAFT, 2)


@pytest.mark.parametrize("token", ["", NOT_GRANTED, "hf_wrong"])
def test_a_gated_repository_needs_a_token_that_was_granted(web: Web, tmp_path: Path, token: str) -> None:
    done = web.download(tmp_path / "model", GATED, token=token)
    assert done.returncode != 0
    assert ("requires approval" if token != "hf_wrong" else "Invalid credentials") in done.stderr
    assert not (tmp_path / "model" / WEIGHTS).exists()


def test_a_granted_token_opens_the_gated_repository_and_is_never_logged(web: Web, tmp_path: Path) -> None:
    done = web.download(tmp_path / "model", GATED, token=TOKEN)
    assert done.returncode == 0, done.stderr
    assert_whole(web, tmp_path / "model", GATED, [WEIGHTS])
    log = (web.state / faults.REQUESTS_FILE).read_text()
    assert '"token": true' in log
    assert TOKEN not in log


@pytest.mark.parametrize(
    ("path", "token", "status", "code"),
    [
        ("/api/models/no/such", "", 401, "RepoNotFound"),
        ("/api/models/no/such", TOKEN, 404, "RepoNotFound"),
        (f"/api/models/{BASE}/revision/nope", "", 404, "RevisionNotFound"),
        (f"/{BASE}/resolve/main/nope.txt", "", 404, "EntryNotFound"),
        (f"/{GATED}/resolve/main/config.json", "", 401, "GatedRepo"),
        (f"/{GATED}/resolve/main/config.json", NOT_GRANTED, 403, "GatedRepo"),
    ],
)
def test_errors_carry_the_hubs_codes(web: Web, path: str, token: str, status: int, code: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answered, _, answer = web.get(path, **headers)
    assert (answered, answer["X-Error-Code"]) == (status, code)


def test_the_tree_lists_folders_and_files(web: Web) -> None:
    rows = json.loads(web.get(f"/api/models/{BASE}/tree/main")[1])
    assert {row["path"] for row in rows if row["type"] == "directory"} == {"metal", "original"}
    deep = json.loads(web.get(f"/api/models/{BASE}/tree/main?recursive=true")[1])
    assert {row["path"] for row in deep} == set(published(web, BASE))


@pytest.mark.parametrize("kind", ["401", "403", "404", "429", "500", "503"])
def test_status_faults_hit_what_they_name_and_no_more_often_than_told(web: Web, kind: str) -> None:
    faults.set_fault(web.state, kind, path=f"/{BASE}/resolve/*", times=1, value=7 if kind == "429" else None)
    path = f"/{BASE}/resolve/main/config.json"
    status, _, headers = web.get(path)
    assert status == int(kind)
    assert headers.get("Retry-After") == ("7" if kind == "429" else None)
    assert web.get(path)[0] == 200


def test_wrong_bytes_keep_the_length(web: Web) -> None:
    path = f"/{BASE}/resolve/main/{'model-00001-of-00002.safetensors'}"
    right = web.get(path)[1]
    faults.set_fault(web.state, "wrong_bytes", path="/cdn/*")
    wrong = web.get(path)[1]
    assert len(wrong) == len(right)
    assert wrong != right


def test_slow_and_stalled_answers(web: Web) -> None:
    path = f"/{BASE}/resolve/main/tokenizer.json"
    faults.set_fault(web.state, "slow", path="/cdn/*", value=100_000, times=1)
    began = time.monotonic()
    body = web.get(path)[1]
    assert time.monotonic() - began > 0.8 * len(body) / 100_000
    faults.set_fault(web.state, "stall", path="/cdn/*", value=100)
    request = urllib.request.Request(web.url + path)
    with urllib.request.urlopen(request, timeout=1) as answer, pytest.raises(TimeoutError):
        answer.read()
    assert ("stall", 100) in [(row["fault"], row["bytes"]) for row in web.bodies()]


def test_an_unknown_kind_of_fault_is_refused(web: Web) -> None:
    with pytest.raises(ValueError, match="no such fault"):
        faults.set_fault(web.state, "gremlins")


def test_other_names_get_their_static_tree_and_nothing_outside_it(web: Web) -> None:
    tree = web.state / "static" / "nvidia.github.io"
    (tree / "libnvidia-container").mkdir(parents=True)
    (tree / "libnvidia-container" / "gpgkey").write_text("key")
    assert web.get("/libnvidia-container/gpgkey", Host="nvidia.github.io")[:2] == (200, b"key")
    assert web.get("/../../hub-tokens.json", Host="nvidia.github.io")[0] == 404
    assert web.get("/gpgkey", Host="unknown.example")[0] == 404


@pytest.mark.parametrize(
    ("header", "span"),
    [
        ("bytes=0-9", (0, 10)),
        ("bytes=5-", (5, 100)),
        ("bytes=-10", (90, 100)),
        ("bytes=50-999", (50, 100)),
        ("bytes=100-", None),
    ],
)
def test_byte_ranges(header: str, span: tuple[int, int] | None) -> None:
    assert byte_range(header, 100) == span


def test_it_serves_https_under_the_real_names(tmp_path: Path) -> None:
    authority = certificates.make_authority(tmp_path, "unit")
    pair = certificates.issue(tmp_path, authority, "web", WEB_HOSTS, "127.0.0.1")
    tree = tmp_path / "state" / "static" / "download.docker.com"
    tree.mkdir(parents=True)
    (tree / "key").write_text("hello")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    trust = ssl.create_default_context(cafile=authority.certificate)
    with WebServer(("127.0.0.1", 0), Site(tmp_path / "state"), tls) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        address = ("127.0.0.1", running.server_port)
        # A client that connects and says nothing must not hold up the others.
        with (
            socket.create_connection(address),
            trust.wrap_socket(socket.create_connection(address), server_hostname="download.docker.com") as client,
        ):
            client.settimeout(5)
            client.sendall(b"GET /key HTTP/1.1\r\nHost: download.docker.com\r\nConnection: close\r\n\r\n")
            received = b"".join(iter(lambda: client.recv(4096), b""))
        running.shutdown()
    assert received.startswith(b"HTTP/1.1 200")
    assert received.endswith(b"hello")
