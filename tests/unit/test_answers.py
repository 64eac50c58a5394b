"""What all concerns share: systemd's units, and Docker's own API on engines of both ends of its history."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer

import pytest

from rackwright.hostside import host_script
from rackwright.messages import ReadingError
from rackwright.plan.answers import image_rows, parse_answers, parse_units

FIXTURES = Path(__file__).parents[1] / "fixtures" / "docker-api"
ENGINES = {name: (FIXTURES / f"{name}.txt").read_text() for name in ("20.10", "29")}
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release"


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_of_both_ends_say_the_same(engine: str) -> None:
    found = parse_answers("", ENGINES[engine])
    assert found.info is not None
    assert found.info["ServerVersion"].startswith(engine)
    (row,) = found.images or ()
    assert row[:2] == (IMAGE, "1.1.0rc0")
    container = found.named("rackwright-llm")
    assert container is not None
    assert (container.running, container.ports, container.image) == (True, frozenset({8000}), f"{IMAGE}@{row[2]}")
    assert container.labels["rackwright.endpoint"] == "llm"


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        ("", (False, False, False)),
        ("\n\nanswer 000 http://docker/version", (False, False, False)),
        ('{"message":"no"}\n\nanswer 500 http://docker/info', (False, False, False)),
        ("[]\n\nanswer 200 http://docker/v1.41/containers/json?all=1", (False, True, False)),
        ("[]\n\nanswer 200 http://docker/images/json", (False, False, True)),
        ("{}\n\nanswer 200 http://docker/info\n\nanswer 000 http://docker/images/json", (True, False, False)),
    ],
)
def test_what_docker_does_not_answer_is_unknown_and_never_nothing(text: str, answered: tuple[bool, ...]) -> None:
    found = parse_answers("", text)
    assert tuple(part is not None for part in (found.info, found.containers, found.images)) == answered


@pytest.mark.parametrize("body", ["", "{", "{}", "null", '"[]"'])
def test_an_answer_that_is_none_is_an_error(body: str) -> None:
    with pytest.raises(ReadingError, match="something unexpected"):
        parse_answers("", f"{body}\n\nanswer 200 http://docker/images/json")


@pytest.mark.parametrize(
    ("tags", "digests", "rows"),
    [
        (["a/b:1"], ["a/b@sha256:x"], [("a/b", "1", "sha256:x")]),
        (["a:5000/b:1", "a:5000/b:2"], [], [("a:5000/b", "1", "<none>"), ("a:5000/b", "2", "<none>")]),
        (["docker.io/library/b:1"], ["b@sha256:x"], [("b", "1", "sha256:x")]),
        ([], ["b@sha256:x", "c@sha256:x"], [("b", "<none>", "sha256:x"), ("c", "<none>", "sha256:x")]),
        (["b:1"], ["c@sha256:x"], [("b", "1", "<none>"), ("c", "<none>", "sha256:x")]),
        (["<none>:<none>"], ["b@sha256:x"], [("b", "<none>", "sha256:x")]),
        (["<none>:<none>"], ["<none>@<none>"], []),
        (None, None, []),
    ],
)
def test_images_are_listed_as_docker_lists_them(
    tags: list[str] | None, digests: list[str] | None, rows: list[tuple[str, str, str]]
) -> None:
    assert list(image_rows({"RepoTags": tags, "RepoDigests": digests})) == rows


def test_units_are_told_apart_by_their_place() -> None:
    assert parse_units("a.service b.timer\nMainPID=1\nActiveState=active\n\nActiveState=inactive") == {
        "a.service": {"MainPID": "1", "ActiveState": "active"},
        "b.timer": {"ActiveState": "inactive"},
    }
    assert parse_units("a.service b.timer\n") == {}


def test_units_that_do_not_fit_what_was_asked_are_an_error() -> None:
    with pytest.raises(ReadingError, match="reported 1 units"):
        parse_units("a.service b.timer\nActiveState=active")


# -- how Docker is asked


@dataclass
class Engine:
    """A Docker Engine's socket that answers from a fixture. refuses: paths without a version in them."""

    socket: Path
    answers: dict[str, str]
    refuses: bool = False
    requests: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, str]:
        self.requests.append(path)
        bare = path.removeprefix("/v1.41")
        if self.refuses and path == bare != "/version":
            return 400, '{"message":"a version is needed"}'
        return 200, self.answers[bare]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    lines = ENGINES["20.10"].split("\n")
    paths = [row.split("http://docker")[1] for row in lines if row.startswith("answer ")]
    engine = Engine(tmp_path / "docker.sock", dict(zip(paths, lines[::3], strict=False)))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = engine.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + 1))
            self.end_headers()
            self.wfile.write(f"{body}\n".encode())

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingMixIn, UnixStreamServer):
        daemon_threads = True

        def get_request(self):  # type: ignore[no-untyped-def]
            return self.socket.accept()[0], ("docker", 0)

    with Server(str(engine.socket), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield engine
        server.shutdown()


DIAL = """#!/usr/bin/env python3
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({socket!r})
line.sendall(sys.stdin.buffer.read())
while part := line.recv(65536):
    sys.stdout.buffer.write(part)
"""


def ask(engine: Engine, folder: Path, up: bool = True, curl: bool = True) -> str:
    """Run the reading of Docker, by curl or by Docker's own client, and return its output."""
    client = folder / "docker"
    client.write_text(DIAL.format(socket=str(engine.socket)))
    client.chmod(0o755)
    stubs = f"have() {{ {'true' if curl else 'false'}; }}\nis_active() {{ {'true' if up else 'false'}; }}\n"
    script = stubs + host_script("engine_ask", reading_socket=str(engine.socket)) + host_script("engine_read")
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script], env=path, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("curl", [True, False])
def test_docker_is_asked_once_for_all(engine: Engine, tmp_path: Path, curl: bool) -> None:
    printed = ask(engine, tmp_path, curl=curl)
    assert parse_answers("", printed) == parse_answers("", ENGINES["20.10"])
    assert engine.requests == ["/version", "/info", "/containers/json?all=1", "/images/json"]


@pytest.mark.parametrize("curl", [True, False])
def test_an_engine_that_wants_a_version_gets_its_own(engine: Engine, tmp_path: Path, curl: bool) -> None:
    engine.refuses = True
    found = parse_answers("", ask(engine, tmp_path, curl=curl))
    assert found == parse_answers("", ENGINES["20.10"])
    assert engine.requests[-3:] == ["/v1.41/info", "/v1.41/containers/json?all=1", "/v1.41/images/json"]


def test_a_stopped_dockerd_is_not_asked_since_that_would_start_it(engine: Engine, tmp_path: Path) -> None:
    assert ask(engine, tmp_path, up=False).strip() == ""
    assert engine.requests == []


@pytest.mark.parametrize("curl", [True, False])
def test_a_dockerd_that_does_not_answer_is_unknown(engine: Engine, tmp_path: Path, curl: bool) -> None:
    engine.socket = tmp_path / "absent.sock"
    found = parse_answers("", ask(engine, tmp_path, curl=curl))
    assert (found.info, found.containers, found.images) == (None, None, None)


def test_the_release_that_runs_is_found_among_other_containers(tmp_path: Path) -> None:
    entry = {"Names": ["/rackwright-a"], "Labels": {"rackwright.release": "aaaa", "note": '"Names":["/rackwright-b"'}}
    entries = [{"Names": ["/x"], "Labels": {}}, entry, {"Names": ["/rackwright-b"], "Labels": {}}]
    text = json.dumps(entries, separators=(",", ":"))
    stubs = "have() { false; }\nis_active() { false; }\n"
    script = f"{stubs}{host_script('engine_ask', reading_socket='')}reading_engine=$(cat)\n"
    script += 'for name in a b c; do release_of "rackwright-$name"; echo "$name $release"; done'
    done = subprocess.run(["sh", "-c", script], input=text, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["a aaaa", "b ", "c "]
