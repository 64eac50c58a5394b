"""Answers of a hub or a registry, right and wrong, by servers on loopback: one sentence, in time, no token lost."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret
from rackwright.settings.sections import ModelSource, Registry
from rackwright.sources import http, hub, registry
from rackwright.sources.errors import SourceError, UnreachableError
from rackwright.sources.http import Client, HttpAnswer
from rackwright.sources.hub import model_at_revision

TOKEN = "hf_secretsecret"
SOURCE = ModelSource(repository="openai/gpt-oss-120b", mount="/config/models/base")
COMMIT = "a" * 40
FILE = {"type": "file", "path": "config.json", "size": 3, "oid": "b" * 40}
SETTINGS = HostSettings.model_validate({"model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/base"}})


@dataclass
class RawServer:
    """Answers each connection by what `answer` makes of its request, byte by byte as it likes."""

    answer: Callable[[str, socket.socket], None]
    requests: list[str] = field(default_factory=list)

    def __enter__(self) -> RawServer:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._one, args=self._listener.accept()[:1], daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            request = connection.recv(65536).decode("latin-1")
            self.requests.append(request)
            self.answer(request, connection)


def reply(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answers(tree: bytes) -> Callable[[str, socket.socket], None]:
    """Return a hub whose revision is right, and whose tree is these bytes on the wire."""

    def answer(request: str, connection: socket.socket) -> None:
        connection.sendall(reply(json.dumps({"sha": COMMIT}).encode()) if "/revision/" in request else tree)

    return answer


def listed(*rows: Any, link: str = "") -> bytes:
    return reply(json.dumps(list(rows)).encode(), *([f'Link: <{link}>; rel="next"'] if link else []))


def resolved(server: RawServer) -> Any:
    return model_at_revision(Client(SETTINGS), server.url, SOURCE, Secret(TOKEN))


def refusal(answer: Callable[[str, socket.socket], None]) -> SourceError:
    with RawServer(answer) as server, pytest.raises(SourceError) as caught:
        resolved(server)
    assert TOKEN not in str(caught.value)
    return caught.value


ODD = {
    "a bad status line": (b"HTTP/1.1 abc\r\n\r\n", "RW0950"),
    "no HTTP at all": (b"SSH-2.0-OpenSSH_9.2\r\n", "RW0950"),
    "a header of 200 kB": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n[]", "RW0950"),
    "a thousand headers": (b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 1000 + b"\r\n[]", "RW0950"),
    "an end too early": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]", "RW0950"),
    "a broken chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n[]", "RW0950"),
    "JSON nested deep": (reply(b"[" * 200_000), "RW0902"),
    "a page": (reply(b"<html>login</html>"), "RW0902"),
    "not UTF-8": (reply(b'["\xff\xfe"]'), "RW0902"),
    "a tree that is an object": (reply(b"{}"), "RW0930"),
    "a tree that is a number": (reply(b"7"), "RW0930"),
    "a tree that is null": (reply(b"null"), "RW0930"),
    "rows of text": (reply(b'["config.json"]'), "RW0930"),
    "a row without path": (listed({"type": "file", "size": 3, "oid": "b" * 40}), "RW0930"),
    "a path that is a list": (listed({**FILE, "path": ["a"]}), "RW0930"),
    "no size": (listed({**FILE, "size": None}), "RW0930"),
    "a negative size": (listed({**FILE, "size": -1}), "RW0930"),
    "a size of 2^70": (listed({**FILE, "size": 1 << 70}), "RW0930"),
    "a size as text": (listed({**FILE, "size": "3"}), "RW0930"),
    "a size that is true": (listed({**FILE, "size": True}), "RW0930"),
    "a size that is not a number": (reply(json.dumps([{**FILE, "size": float("nan")}]).encode()), "RW0930"),
    "a wrong blob hash": (listed({**FILE, "oid": "x"}), "RW0930"),
    "a hash and a line break": (listed({**FILE, "oid": "b" * 40 + "\n"}), "RW0930"),
    "a wrong SHA-256": (listed({**FILE, "lfs": {"oid": "c" * 63}}), "RW0930"),
    "a store that is text": (listed({**FILE, "lfs": "yes"}), "RW0930"),
    "a name that leads out": (listed({**FILE, "path": "../../etc/x"}), "RW0990"),
    "an absolute name": (listed({**FILE, "path": "/etc/x"}), "RW0990"),
    "an escape in a name": (listed({**FILE, "path": "a\x1b[2Jb"}), "RW0990"),
    "a line break in a name": (listed({**FILE, "path": "a\nb"}), "RW0990"),
    "a name of Rackwright": (listed({**FILE, "path": ".rackwright/verified"}), "RW0990"),
    "a name of 2,000 characters": (listed({**FILE, "path": "x" * 2000}), "RW0930"),
    "no file at all": (listed({"type": "directory", "path": "a"}), "RW0905"),
    "more than a list": (reply(b" " * (http.MOST + 1)), "RW0960"),
    "more than a list, without its size": (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (http.MOST + 2), "RW0960"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_tree_is_one_refusal(name: str) -> None:
    tree, code = ODD[name]
    assert refusal(answers(tree)).code == code


@pytest.mark.parametrize("body", [b"[]", b"7", b'"x"', b'{"sha": 7}', b"null"])
def test_an_odd_revision_is_one_refusal(body: bytes) -> None:
    assert refusal(lambda _, connection: connection.sendall(reply(body))).code == "RW0930"


@pytest.mark.parametrize("sha", ["", "main", "A" * 40, "a" * 40 + "\n"])
def test_a_revision_that_is_no_commit_is_refused(sha: str) -> None:
    body = json.dumps({"sha": sha}).encode()
    assert refusal(lambda _, connection: connection.sendall(reply(body))).code == "RW0906"


def test_right_answers_pass_with_what_else_a_hub_says() -> None:
    large = {"type": "file", "path": "a/b.safetensors", "size": 9, "oid": "d" * 40, "lfs": {"oid": "c" * 64, "size": 9}}
    rows = ({**FILE, "xetHash": "x"}, {"type": "directory", "path": "a", "size": 0}, large, {"type": "submodule"})
    with RawServer(answers(listed(*rows))) as server:
        locked = resolved(server)
    assert {path: (file.sha256, file.blob) for path, file in locked.files.items()} == {
        "config.json": (None, "b" * 40),
        "a/b.safetensors": ("c" * 64, None),
    }
    assert all(f"Authorization: Bearer {TOKEN}" in request for request in server.requests)


def test_a_list_goes_on_over_pages_of_the_same_server() -> None:
    def answer(request: str, connection: socket.socket) -> None:
        first = "cursor" not in request
        page = listed(FILE, link="/api/next?cursor=1") if first else listed({**FILE, "path": "b"})
        connection.sendall(reply(json.dumps({"sha": COMMIT}).encode()) if "/revision/" in request else page)

    with RawServer(answer) as server:
        assert set(resolved(server).files) == {"config.json", "b"}


@pytest.mark.parametrize(
    "link", ["http://localhost:{port}/next", "//localhost:{port}/next", "HTTP://LOCALHOST:{port}/"]
)
def test_no_token_goes_to_another_server_by_a_link(link: str) -> None:
    with RawServer(lambda _, connection: connection.sendall(listed(FILE))) as other:
        tree = listed(FILE, link=link.format(port=other.url.rpartition(":")[2]))
        assert refusal(answers(tree)).code == "RW0980"
    assert other.requests == []


@pytest.mark.parametrize("link", ["file:///etc/hostname", "ftp://x/y", "data:,x", "http://[::1", "javascript:x"])
def test_a_link_that_is_no_page_is_refused(link: str) -> None:
    assert refusal(answers(listed(FILE, link=link))).code == "RW0980"


def test_a_mirror_that_names_itself_by_http_is_asked_where_it_was_asked() -> None:
    page = hub._next_page("https://hub.corp:8443/api/tree?x=1", "http://hub.corp/api/tree?cursor=2")
    assert page == "https://hub.corp:8443/api/tree?cursor=2"


def test_pages_without_an_end_are_refused_and_not_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MOST_PAGES", 3)
    assert refusal(answers(listed(FILE, link="/again"))).code == "RW0970"
    monkeypatch.setattr(hub, "MOST_PAGES", 1000)
    monkeypatch.setattr(hub, "LISTING", 0)
    assert refusal(answers(listed(FILE, link="/again"))).code == "RW0970"


@pytest.mark.parametrize(
    "begin", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["all", "head", "body"]
)
def test_an_answer_that_drips_ends_in_time(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "WHOLE", 0.6)

    def drip(_: str, connection: socket.socket) -> None:
        connection.sendall(begin)
        for _second in range(100):
            connection.sendall(b"X")
            time.sleep(0.05)

    began = time.monotonic()
    assert isinstance(refusal(drip), UnreachableError)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("token", ["hf_x\n", "hf_x\r\nHost: other", "hf_\u00e9", "\x00"])
def test_a_token_that_no_header_carries_is_refused_and_not_shown(token: str) -> None:
    with RawServer(lambda _, connection: connection.sendall(reply(b"{}"))) as server:
        with pytest.raises(SourceError) as caught:
            model_at_revision(Client(SETTINGS), server.url, SOURCE, Secret(token))
        assert (caught.value.code, server.requests) == ("RW0940", [])
    assert token not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["http://user:PASS@127.0.0.1", "http://127.0.0.1:PASS", "http://[::1PASS", "file:///PASS"]
)
def test_an_address_that_cannot_be_asked_is_not_quoted(address: str) -> None:
    with pytest.raises(UnreachableError) as caught:
        Client(SETTINGS).get(address, {})
    assert "PASS" not in str(caught.value)


# -- the registry

CHALLENGE = 'Bearer realm="{url}/token",service="x"'
INDEX = json.dumps({"schemaVersion": 2, "manifests": []}).encode()


class Script:
    """A client that answers from a list and notes what was asked; where TLS would be needed for a realm."""

    def __init__(self, *answers: HttpAnswer) -> None:
        self._answers = list(answers)
        self.requests: list[tuple[str, str]] = []

    def get(self, url: str, headers: Any, login: Secret | None = None) -> HttpAnswer:
        self.requests.append((url, login.unmask() if login else ""))
        return self._answers.pop(0)


def digest(*given: HttpAnswer, key: str | None = "k1") -> tuple[Script, str]:
    client = Script(*given)
    login = Registry.model_validate({"host": "nvcr.io", "key": key})
    return client, registry.digest_of_tag(client, "nvcr.io/nvidia/release:1.0", login)  # type: ignore[arg-type]


def http_answer(status: int, body: bytes, **headers: str) -> HttpAnswer:
    return HttpAnswer(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<html>sign in to the guest network</html>", "RW0902"),
        (b"[]", "RW0930"),
        (b'{"schemaVersion": 1, "fsLayers": []}', "RW0930"),
        (b'{"errors": []}', "RW0930"),
        (b'{"schemaVersion": "2"}', "RW0930"),
    ],
)
def test_what_is_no_manifest_gets_no_digest(body: bytes, code: str) -> None:
    with pytest.raises(SourceError) as caught:
        digest(http_answer(200, body))
    assert caught.value.code == code


@pytest.mark.parametrize("body", [b"[]", b'{"token": 7}', b'{"token": {"a": 1}}', b"null"])
def test_an_odd_token_is_one_refusal(body: bytes) -> None:
    with pytest.raises(SourceError) as caught:
        digest(http_answer(401, b"", www_authenticate='Bearer realm="https://a.example/t"'), http_answer(200, body))
    assert caught.value.code == "RW0930"


@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer realm="https://a.example/t?x=1",service="s"',
        'Basic realm="x", Bearer realm="https://a.example/t?x=1",service="s"',
        'Bearer realm="https://a.example/t?x=1", service="s", Basic realm="x"',
    ],
)
def test_a_registry_that_offers_two_ways_is_asked_by_token(challenge: str) -> None:
    client, found = digest(
        http_answer(401, b"", www_authenticate=challenge), http_answer(200, b'{"token": "t"}'), http_answer(200, INDEX)
    )
    assert found.startswith("sha256:")
    assert client.requests[1] == ("https://a.example/t?x=1&service=s", "")
    assert client.requests[2][1] == "Bearer t"


@pytest.mark.parametrize("realm", ["http://a.example/t", "file:///t", ""])
def test_a_key_goes_to_no_realm_without_tls(realm: str) -> None:
    first = http_answer(401, b"", www_authenticate=f'Bearer realm="{realm}"')
    client = Script(first, first)
    with pytest.raises(SourceError):
        registry.digest_of_tag(client, "nvcr.io/x/y:1", Registry(key=Secret("k1")))  # type: ignore[arg-type]
    assert {login for _, login in client.requests} == {""}
