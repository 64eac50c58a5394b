"""The lock from the control machine: real HTTP servers on loopback, with the registry's token flow and the hub."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.image import IMAGE, SeenImages, digest_of
from rackwright.concerns.models import MODELS, SeenModels, commit_of
from rackwright.concerns.registry import REGISTRY
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import Paths
from rackwright.sources import opener
from rackwright.sources.errors import SourceError, UnreachableError
from rackwright.sources.http import Client, goes_direct
from rackwright.sources.names import Names
from rackwright.sources.resolve import Resolver
from rackwright_lab import faults
from rackwright_lab.servers import certificates
from rackwright_lab.servers.web import Site, WebServer
from rackwright_lab.standins.hub_content import REPOSITORIES

MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/base", "exclude": ["original/*", "metal/"]}
INDEX = json.dumps({"schemaVersion": 2, "manifests": []}).encode()
DIGEST = f"sha256:{hashlib.sha256(INDEX).hexdigest()}"
BASIC = "Basic JG9hdXRodG9rZW46azE="  # $oauthtoken:k1


class Registry(BaseHTTPRequestHandler):
    """A registry whose tokens come from /token; `open` repositories give one to anybody."""

    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer, and note who asked with what."""
        login = self.headers.get("Authorization", "")
        self.server.requests.append((self.path, login))
        self.server.answer(self, login)

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """One registry with TLS."""

    daemon_threads = True
    answer: Callable[[Registry, str], None]

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), Registry)
        self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.requests: list[tuple[str, str]] = []

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """Make an authority, and what a server with its certificate serves with."""
    folder = tmp_path_factory.mktemp("pki")
    authority = certificates.make_authority(folder, "unit")
    ours = certificates.issue(folder, authority, "ours", ("localhost",), "127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(ours.certificate, ours.key)
    return authority.certificate, tls


@pytest.fixture
def registry(pair: tuple[Path, ssl.SSLContext]) -> Iterator[Server]:
    with Server(pair[1]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, pair: tuple[Path, ssl.SSLContext]) -> Iterator[str]:
    state = tmp_path_factory.mktemp("web")
    faults.set_tokens(state, {"hf_granted": True})
    with WebServer(("127.0.0.1", 0), Site(state, hub="127.0.0.1")) as server:
        server.socket = pair[1].wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def host(authority: Path, registry: Server, hub: str, key: str | None = "k1", **more: Any) -> HostSettings:
    values = {
        "image": f"{registry.name}/nvidia/release:1.0",
        "registry": {"host": registry.name, "key": key},
        "paths": {"private_ca": str(authority)},
        "mirrors": {"hub": hub},
        "model": MODEL,
    }
    return HostSettings.model_validate({**values, **more})


def with_tokens(server: Server, anonymous: bool) -> Callable[[Registry, str], None]:
    """As nvcr.io answers: a Bearer challenge, and tokens for a login, or for anybody."""

    def answer(request: Registry, login: str) -> None:
        if request.path.startswith("/token"):
            granted = anonymous or login == BASIC
            request.reply(200 if granted else 401, json.dumps({"token": "t1"}).encode() if granted else b"{}")
        elif login == "Bearer t1":
            request.reply(200, INDEX, Docker_Content_Digest=DIGEST)
        else:
            realm = f'Bearer realm="https://{server.name}/token",service="x",scope="repository:nvidia/release:pull"'
            request.reply(401, b"{}", WWW_Authenticate=realm)

    return answer


def test_tag_and_branch_are_resolved_without_a_host(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str
) -> None:
    registry.answer = with_tokens(registry, anonymous=False)
    settings = host(pair[0], registry, hub)
    resolver = Resolver()
    lock = resolver.lock(settings)
    assert lock.images == {settings.image: DIGEST}
    model = lock.models["openai/gpt-oss-120b@main"]
    repository = REPOSITORIES["openai/gpt-oss-120b"]
    assert model.commit == repository.commit(repository.refs()["main"])
    assert not [path for path in model.files if path.startswith(("original/", "metal/"))]
    assert all(bool(file.sha256) != bool(file.blob) for file in model.files.values())
    assert {bool(file.sha256) for file in model.files.values()} == {True, False}
    before = len(registry.requests)
    assert resolver.lock(settings) == lock
    assert len(registry.requests) == before, "asked once for all hosts"


def test_the_key_is_shown_only_where_it_is_asked_for(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str
) -> None:
    registry.answer = with_tokens(registry, anonymous=True)
    Resolver().lock(host(pair[0], registry, hub))
    assert BASIC not in [login for _, login in registry.requests]


def test_a_login_does_not_follow_a_redirect(pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str) -> None:
    def answer(request: Registry, login: str) -> None:
        if request.path == "/elsewhere":
            request.reply(200, INDEX)
        elif login == BASIC:
            request.reply(307, b"", Location=f"https://{registry.name}/elsewhere")
        else:
            request.reply(401, b"", WWW_Authenticate='Basic realm="x"')

    registry.answer = answer
    assert Resolver().lock(host(pair[0], registry, hub)).images
    assert ("/elsewhere", "") in registry.requests


@pytest.mark.parametrize(
    ("status", "key", "message"),
    [
        (401, "k1", "refuses the key"),
        (403, None, "wants a key"),
        (404, "k1", r"has no .*release:1.0 \(404\)"),
        (503, "k1", "answers 503"),
    ],
)
def test_what_the_registry_refuses_is_told(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str, status: int, key: str | None, message: str
) -> None:
    registry.answer = lambda request, login: request.reply(status, b"", WWW_Authenticate='Basic realm="x"')
    with pytest.raises(SourceError, match=message) as caught:
        Resolver().lock(host(pair[0], registry, hub, key))
    assert "k1" not in str(caught.value).split()


def test_a_changed_manifest_is_not_locked(pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str) -> None:
    registry.answer = lambda request, login: request.reply(200, INDEX, Docker_Content_Digest="sha256:" + "0" * 64)
    with pytest.raises(SourceError, match="changed it"):
        Resolver().lock(host(pair[0], registry, hub))


@pytest.mark.parametrize(
    ("model", "token", "message"),
    [
        ({**MODEL, "revision": "v9"}, None, "has no revision v9"),
        ({**MODEL, "repository": "absent/nothing"}, None, "set models.hub_token if it is private"),
        ({**MODEL, "repository": "absent/nothing"}, "hf_granted", "check models.hub_token"),
        ({**MODEL, "include": ["*.nothing"]}, None, "no file of openai/gpt-oss-120b matches"),
    ],
)
def test_what_the_hub_refuses_is_told(
    pair: tuple[Path, ssl.SSLContext],
    registry: Server,
    hub: str,
    model: dict[str, Any],
    token: str | None,
    message: str,
) -> None:
    registry.answer = lambda request, login: request.reply(200, INDEX)
    with pytest.raises(SourceError, match=message):
        Resolver().lock(host(pair[0], registry, hub, model=model, models={"hub_token": token}))


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.write_text("no PEM"), lambda path: None])
def test_an_authority_that_is_none_is_told_by_its_file(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "ca.pem")
    values = {"model": MODEL, "paths": {"private_ca": str(tmp_path / "ca.pem")}}
    with pytest.raises(SourceError, match=r"ca\.pem cannot be read; .*: \S"):
        Client(HostSettings.model_validate(values))


def test_an_unknown_authority_and_a_missing_server_are_told(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str
) -> None:
    registry.answer = lambda request, login: request.reply(200, INDEX)
    settings = host(pair[0], registry, hub)
    with pytest.raises(SourceError, match=r"set paths\.private_ca"):
        Resolver().lock(settings.model_copy(update={"paths": Paths()}))
    with pytest.raises(SourceError, match="cannot be reached "):
        Client(settings).get("https://127.0.0.1:1/v2/", {})


@pytest.mark.parametrize(
    ("host", "pattern", "direct"),
    [
        ("hub.corp", "hub.corp", True),
        ("hub.corp", ".corp", True),
        ("hub.corp", "corp", True),
        ("hubcorp", "corp", False),
        ("hub.corp", "*.corp", True),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("hub.corp", "10.0.0.0/8", False),
        ("::1", "::1", True),
    ],
)
def test_what_goes_direct(host: str, pattern: str, direct: bool) -> None:
    assert goes_direct(host, pattern) is direct


def test_a_proxy_is_used_except_for_what_goes_direct(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str
) -> None:
    registry.answer = lambda request, login: request.reply(200, INDEX)
    dead = {"http": "http://127.0.0.1:1", "no_proxy": []}
    with pytest.raises(SourceError, match="cannot be reached"):
        Resolver().lock(host(pair[0], registry, hub, proxy=dead))
    assert Resolver().lock(host(pair[0], registry, hub, proxy={**dead, "no_proxy": ["127.0.0.1"]})).images
    assert Resolver().lock(host(pair[0], registry, hub, proxy=dead, control_proxy={})).images


# -- in a run, where neither settings nor host say it


def fresh(managed: frozenset[str] | None = frozenset({"image", "models"})) -> HostReading:
    """Return a host that has neither image nor model."""
    return HostReading({"image": SeenImages(True, (), {}), "models": SeenModels((), frozenset())}, managed)


def test_all_fresh_hosts_of_a_run_get_what_the_names_were_when_first_asked(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str
) -> None:
    registry.answer = with_tokens(registry, anonymous=True)
    settings, names = host(pair[0], registry, hub), Names()
    one = names.complete(settings, fresh())
    before = len(registry.requests)
    registry.answer = lambda request, login: request.reply(200, b"{}")  # the tag moves between two hosts
    other = names.complete(settings, fresh())
    assert digest_of(settings, one) == digest_of(settings, other) == DIGEST
    repository = REPOSITORIES["openai/gpt-oss-120b"]
    assert settings.model is not None
    assert commit_of(settings.model, other) == repository.commit(repository.refs()["main"])
    assert len(registry.requests) == before


def test_a_host_that_knows_its_bytes_keeps_them_and_nobody_is_asked(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str
) -> None:
    settings = host(pair[0], registry, hub, model=None)
    reading = HostReading(
        {"image": SeenImages(True, (), {settings.image: DIGEST}), "models": SeenModels((), frozenset())},
        frozenset({"image", "models"}),
    )
    assert Names().complete(settings, reading) == reading
    assert registry.requests == []


@pytest.mark.parametrize("managed", [None, frozenset({"firewall"})])
def test_what_fetches_nothing_asks_nobody(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str, managed: frozenset[str] | None
) -> None:
    reading = fresh(managed)
    assert Names().complete(host(pair[0], registry, hub), reading) == reading
    assert registry.requests == []


def test_a_registry_that_cannot_be_asked_from_here_is_said_and_asked_once(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str
) -> None:
    registry.answer = lambda request, login: request.reply(503, b"")
    settings, names = host(pair[0], registry, hub), Names()
    one = names.complete(
        settings, replace(fresh(), by_concern={**fresh().by_concern, REGISTRY.name: REGISTRY.parse("salt=a\n")})
    )
    before = len(registry.requests)
    names.complete(settings, fresh())
    assert len(registry.requests) == before
    report = IMAGE.report
    assert report is not None
    text = report(IMAGE.wanted(settings, one), one[IMAGE])
    assert "resolved by this host itself" in text
    assert "answers 503" in text


def test_a_server_that_does_not_answer_costs_its_time_out_once(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def silent(_: Client, url: str, *__: Any) -> None:
        tried.append(url)
        raise UnreachableError("nothing")

    monkeypatch.setattr(Client, "get", silent)
    settings = host(pair[0], registry, hub, draft={"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/d"})
    one = Names().complete(settings, fresh())
    assert len(tried) == 2, "the registry once, the hub once for two models"
    report = MODELS.report
    assert report is not None
    head, *reasons = report(MODELS.wanted(settings, one), one[MODELS]).splitlines()
    assert "gpt-oss-120b@main and nvidia/gpt-oss-120b-Eagle3@main are" in head
    assert [row.strip() for row in reasons].count("nothing") == 1


def test_registry_and_hub_are_asked_side_by_side(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2)

    def waits(*_: object) -> str:
        together.wait(30)
        return "sha256:" + 64 * "a"

    monkeypatch.setattr(Names, "_digest", staticmethod(waits))
    monkeypatch.setattr(Names, "_commit", staticmethod(waits))
    reading = Names().complete(host(pair[0], registry, hub), fresh())
    assert (len(reading.names_of(IMAGE).resolved), len(reading.names_of(MODELS).resolved)) == (1, 1)


LOST = "nvcr.io/nvidia/tensorrt-llm/release:1.1.0"


def test_a_registry_that_is_lost_says_nothing_of_another(
    pair: tuple[Path, ssl.SSLContext], registry: Server, hub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest(_: HostSettings, image: str) -> str:
        if image == LOST:
            raise UnreachableError("nvcr.io cannot be reached", code="RW0903")
        return "sha256:" + 64 * "a"

    monkeypatch.setattr(Names, "_digest", staticmethod(digest))
    monkeypatch.setattr(Names, "_commit", staticmethod(lambda *_: 40 * "b"))
    endpoints = {"llm": {"gpus": [0], "image": LOST}, "other": {"gpus": [1], "port": 8001}}
    settings = host(pair[0], registry, hub, endpoints=endpoints, hardware={"gpu_count": 2})
    images = Names().complete(settings, fresh()).names_of(IMAGE)
    assert (list(images.resolved), list(images.unresolved)) == ([settings.image], [LOST])


def test_a_name_that_no_resolver_answers_for_and_a_server_that_takes_no_connection_end_within_their_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never, settings = threading.Event(), HostSettings.model_validate({"model": None})
    monkeypatch.setattr(opener, "NAMING", 0.2)
    monkeypatch.setattr(opener, "CONNECTING", 0.5)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", lambda *_, **__: never.wait(60))
        with pytest.raises(UnreachableError, match=r"hub\.invalid .* 0\.2 s"):
            Client(settings).get("http://hub.invalid/", {})
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        taken = socket.create_connection(full.getsockname())
        blocked = socket.socket()
        blocked.setblocking(False)
        blocked.connect_ex(full.getsockname())
        with pytest.raises(UnreachableError, match="timed out"):
            Client(settings).get(f"http://127.0.0.1:{full.getsockname()[1]}/", {})
        taken.close()
        blocked.close()
    never.set()


def test_a_server_that_has_one_good_address_is_reached_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
        places = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.2", "127.0.0.1")
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
        opener.connect(("hub.invalid", port), 5).close()
