"""The registry that a host has for its own Docker, as a process; and the answers to a real registry's challenge."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from rackwright.hostside.hand_on.failures import NoPiecesError
from rackwright.hostside.hand_on.registry import RegistryFiles
from rackwright.hostside.hand_on.spec import File
from tests.programs.hand_on_hosts import Fleets, content, fleets, free_port, program

__all__ = ["fleets", "program"]

PROGRAM = Path(__file__).parents[2] / "rackwright/hostside/image_registry.py"
KIND = "application/vnd.oci.image.manifest.v1+json"
LAYER, MANIFEST = content(3 << 20), b'{"schemaVersion": 2}'


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Return the port of a registry with one manifest and one layer."""
    (tmp_path / "blobs/sha256").mkdir(parents=True)
    for data in (LAYER, MANIFEST):
        (tmp_path / "blobs/sha256" / sha256(data)).write_bytes(data)
    (tmp_path / "secret").write_text("not of the image")
    found = free_port()
    kinds = json.dumps({sha256(MANIFEST): KIND})
    process = subprocess.Popen([sys.executable, str(PROGRAM), str(tmp_path), "127.0.0.1", str(found), kinds])
    for _ in range(100):
        try:
            ask(found, "/v2/")
            break
        except OSError:
            time.sleep(0.05)
    yield found
    process.kill()
    process.wait()


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, Message, bytes]:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request(method, path, headers=headers)
    answer = link.getresponse()
    body = answer.read()
    link.close()
    return answer.status, answer.headers, body


def test_it_has_the_manifests_by_their_kind_and_the_layers(port: int) -> None:
    assert ask(port, "/v2/")[0] == 200
    status, headers, body = ask(port, f"/v2/any/name/manifests/sha256:{sha256(MANIFEST)}")
    assert (status, headers["Content-Type"], body) == (200, KIND, MANIFEST)
    assert headers["Docker-Content-Digest"] == f"sha256:{sha256(MANIFEST)}"
    assert ask(port, f"/v2/a/b/blobs/sha256:{sha256(LAYER)}")[2] == LAYER


def test_it_answers_heads_and_ranges(port: int) -> None:
    blob = f"/v2/a/b/blobs/sha256:{sha256(LAYER)}"
    status, headers, body = ask(port, blob, "HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(len(LAYER)), b"")
    status, headers, body = ask(port, blob, Range="bytes=1000-")
    assert (status, body) == (206, LAYER[1000:])
    assert headers["Content-Range"] == f"bytes 1000-{len(LAYER) - 1}/{len(LAYER)}"
    assert ask(port, blob, Range="bytes=10-19")[2] == LAYER[10:20]
    assert ask(port, blob, Range=f"bytes={len(LAYER)}-")[0] == 416


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/secret",
        "/v2/a/b/blobs/../../secret",
        "/v2/a/b/manifests/latest",
        f"/v2/a/b/blobs/sha256:{'0' * 64}",
        f"/v2/a/b/manifests/sha256:{sha256(LAYER)}",
        f"/v2/a/b/blobs/sha256:{sha256(MANIFEST)}",
    ],
)
def test_it_has_nothing_else(port: int, path: str) -> None:
    assert ask(port, path)[0] == 404


def test_a_client_that_begins_with_tls_is_answered_in_http(port: int) -> None:
    # containerd's client then asks again in clear; another answer it takes for a broken TLS.
    with socket.create_connection(("127.0.0.1", port), 10) as link:
        link.sendall(b"\x16\x03\x01\x00\x05hello\r\n\r\n")
        assert link.recv(4) == b"HTTP"


class Registry:
    """An opener that answers as a registry with token authentication does. private: anonymous tokens are refused.

    polite: they are given and allow nothing, as the specification has it. status: that of the token server.
    """

    def __init__(self, challenge: str, private: bool = True, polite: bool = False) -> None:
        self.challenge, self.private, self.polite, self.status = challenge, private, polite, 200
        self.requests: list[tuple[str, str]] = []
        self.good = "t1"

    def open(self, request: urllib.request.Request, timeout: float) -> Any:
        login = request.get_header("Authorization", "")
        self.requests.append((request.full_url, login))
        if "/token" in request.full_url:
            if self.status != 200 or (self.private and not login and not self.polite):
                raise self._refusal(request, 401 if self.status == 200 else self.status, "")
            token = self.good if login or not self.private else "nothing"
            return io.BytesIO(json.dumps({"token": token}).encode())
        if login not in (f"Bearer {self.good}", "Basic bG9naW4="):
            raise self._refusal(request, 401, self.challenge)
        return io.BytesIO(b"bytes")

    def _refusal(self, request: urllib.request.Request, code: int, challenge: str) -> urllib.error.HTTPError:
        headers = Message()
        headers["WWW-Authenticate"] = challenge
        return urllib.error.HTTPError(request.full_url, code, "no", headers, io.BytesIO())


def taken(files: RegistryFiles, registry: Registry) -> bytes:
    files.opener = registry  # type: ignore[assignment]
    data: bytes = files._answer(urllib.request.Request("https://nvcr.io/v2/a/blobs/sha256:1")).read()
    return data


BEARER = 'Bearer realm="https://auth.example/token",service="nvcr.io",scope="repository:a:pull"'


def test_a_token_is_asked_for_with_the_login_and_again_when_it_ends() -> None:
    registry, files = Registry(BEARER), RegistryFiles("https://nvcr.io/v2/a/", "bG9naW4=", 5)
    assert taken(files, registry) == b"bytes"
    tokens = [(url, login) for url, login in registry.requests if "/token" in url]
    assert [login for _, login in tokens] == ["", "Basic bG9naW4="]
    assert tokens[0][0] == "https://auth.example/token?service=nvcr.io&scope=repository%3Aa%3Apull"
    registry.requests.clear()
    assert taken(files, registry) == b"bytes"
    assert [url for url, _ in registry.requests if "/token" in url] == [], "it is kept while it is taken"
    registry.good = "t2"
    assert taken(files, registry) == b"bytes"


def test_a_token_for_nobody_that_allows_nothing_is_followed_by_one_for_the_login() -> None:
    registry, files = Registry(BEARER, polite=True), RegistryFiles("https://nvcr.io/v2/a/", "bG9naW4=", 5)
    assert taken(files, registry) == b"bytes"
    registry.requests.clear()
    assert taken(files, registry) == b"bytes"
    assert len(registry.requests) == 1, "what let in is used first"


def test_a_token_server_that_is_busy_is_asked_later() -> None:
    registry, files = Registry(BEARER), RegistryFiles("https://nvcr.io/v2/a/", "bG9naW4=", 5)
    registry.status = 503
    files.opener = registry  # type: ignore[assignment]
    with pytest.raises(NoPiecesError, match="503"):
        files._open(File("blobs/sha256/1", 5, "1" * 64, "blobs/sha256:1"), 0)
    registry.status = 200
    assert taken(files, registry) == b"bytes"


def test_an_image_that_is_open_to_all_is_taken_without_the_login() -> None:
    registry = Registry(BEARER, private=False)
    assert taken(RegistryFiles("https://nvcr.io/v2/a/", "bG9naW4=", 5), registry) == b"bytes"
    assert not any("Basic" in login for _, login in registry.requests)


def test_a_registry_with_a_password_gets_it() -> None:
    registry = Registry('Basic realm="lab"')
    assert taken(RegistryFiles("https://nvcr.io/v2/a/", "bG9naW4=", 5), registry) == b"bytes"


def test_a_login_never_goes_to_a_token_server_in_clear() -> None:
    registry = Registry(BEARER.replace("https://auth", "http://auth"))
    with pytest.raises(urllib.error.HTTPError):
        taken(RegistryFiles("https://nvcr.io/v2/a/", "bG9naW4=", 5), registry)
    assert [url for url, _ in registry.requests if url.startswith("http://")] == []


def test_a_registrys_files_are_laid_down_as_an_image_layout_and_handed_on(fleets: Fleets) -> None:
    names = {f"blobs/sha256:{sha256(LAYER)}": LAYER, f"manifests/sha256:{sha256(MANIFEST)}": MANIFEST}
    fleet = fleets(2, names)
    files = [
        {"path": f"blobs/sha256/{sha256(data)}", "at": at, "size": len(data), "sha256": sha256(data)}
        for at, data in names.items()
    ]
    first, second = fleet.hosts
    first.start(files=files, origin={"url": fleet.hub.url, "registry": True})
    second.start(files=files)
    for host in fleet.hosts:
        assert host.wait() == 0, host.text()
        assert {path.name for path in (host.folder / "blobs/sha256").iterdir()} == {sha256(LAYER), sha256(MANIFEST)}
    assert sorted(path for path, _, _ in fleet.hub.asked) == sorted(names)
