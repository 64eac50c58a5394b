"""Files of requests from a hub or a mirror: by their SHA-256 alone, continued after a cut, and never a login along."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.main import main
from rackwright.messages import RackwrightError, SettingsError
from rackwright.settings.host_settings import HostSettings
from rackwright_bench.suites import fetching
from rackwright_bench.suites.fetching import fetch_requests
from rackwright_bench.suites.loading import load_suite, suite_of
from rackwright_bench.suites.prompts import LOCK, locked, prompt_files, published, rows, store
from rackwright_bench.suites.suite import DataSet, Kind
from tests.fresh import fresh
from tests.refused import refused

SUITE = """\
datasets:
  talks: {kind: sharegpt}
  made: {kind: random, input: 8, output: 8}
arrivals:
  one: {concurrency: 1, requests: 5}
warmup: 2
"""
TALK = [{"from": "human", "value": "Hello there"}, {"from": "gpt", "value": "x" * 40}]
TALKS = json.dumps([{"conversations": TALK}] * 40).encode()
SPEC = (json.dumps({"turns": ["What is 2 + 2?"]}) + "\n").encode()
BURST = b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n2,GPT-4,3,7,10,x\n"
SHARE = published("sharegpt")
SPEC_FILE = published("spec_bench")["file"]
BURST_SUITE = """\
datasets:
  burst: {kind: burstgpt, path: b.csv}
arrivals:
  one: {concurrency: 1, requests: 2}
warmup: 1
"""
COMMIT = "c" * 40


def made_up(kind: Kind) -> Mapping[str, str]:
    """Return where a file was published, without the SHA-256 of its real bytes."""
    return {key: value for key, value in published(kind).items() if key != "sha256"}


@dataclass
class Server:
    """Files by their paths."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)
    """Bytes after which an answer ends, of the next ones."""
    busy: int = 0
    """Requests that are answered 503, before others are."""
    redirects: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range of each."""
    logins: dict[str, str | None] = field(default_factory=dict)

    def publish(self, sha256: str) -> None:
        """Be a hub with ShareGPT's file. sha256: what it says of it."""
        api = f"/api/datasets/{SHARE['hub']}"
        entry = {"type": "file", "path": SHARE["file"], "size": 1, "oid": "0" * 40, "lfs": {"oid": sha256}}
        self.files[f"{api}/revision/main"] = json.dumps({"sha": COMMIT}).encode()
        self.files[f"{api}/tree/{COMMIT}"] = json.dumps([entry]).encode()
        self.files["/cdn"] = TALKS
        self.redirects[f"/datasets/{SHARE['hub']}/resolve/{COMMIT}/{SHARE['file']}"] = "/cdn"


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append((self.path, self.headers["Range"]))
            server.logins[self.path] = self.headers["Authorization"]
            if server.busy:
                server.busy -= 1
                self.send_error(503)
                return
            if to := server.redirects.get(self.path):
                self.send_response(302)
                self.send_header("Location", to)
                self.end_headers()
                return
            content = server.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            begin = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").rstrip("-"))
            if begin and begin >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if begin else 200)
            self.send_header("Content-Length", str(len(content) - begin))
            self.end_headers()
            self.wfile.write(content[begin : begin + server.cut.pop(0)] if server.cut else content[begin:])

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "PAUSE", 0.0)
    monkeypatch.setattr(fetching, "published", made_up)
    found = Server()
    listening = ThreadingHTTPServer(("127.0.0.1", 0), handler(found))
    found.url = f"http://127.0.0.1:{listening.server_port}"
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield found
    listening.shutdown()


def settings(server: Server, **more: Any) -> HostSettings:
    model = {"repository": "a/b", "mount": "/config/models/b"}
    return HostSettings.model_validate({"model": model, "mirrors": {"hub": server.url}, **more})


def fetch(server: Server, root: Path, *sources: str, suite: str = SUITE) -> list[str]:
    """Return what is printed."""
    lines: list[str] = []
    fetch_requests(suite_of(suite, "bench.yml"), sources, settings(server), root, lines.append)
    return lines


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_the_hub_s_file_is_fetched_by_its_published_hash_and_measured_with(server: Server, tmp_path: Path) -> None:
    server.publish(sha(TALKS))
    lines = fetch(server, tmp_path, "published")
    assert "as 127.0.0.1 has it" in lines[-1]
    assert locked(tmp_path) == {"talks": sha(TALKS)}
    found = prompt_files(suite_of(SUITE, "bench.yml"), tmp_path, tmp_path, tmp_path)
    assert json.loads(found["talks"][0].read_text().splitlines()[0]) == {"text": "Hello there", "output_length": 10}
    count = len(server.requests)
    assert "is there already" in fetch(server, tmp_path, "published")[0]
    assert len(server.requests) == count


def test_other_bytes_than_the_hub_publishes_are_not_kept(server: Server, tmp_path: Path) -> None:
    server.publish("0" * 64)
    with refused("RW1587", "talks", sha(TALKS), "0" * 64):
        fetch(server, tmp_path, "published")
    assert [path.name for path in store().iterdir() if path.suffix != ".lock"] == []
    assert not (tmp_path / LOCK).exists()


def test_a_token_stays_with_the_hub(server: Server, tmp_path: Path) -> None:
    server.publish(sha(TALKS))
    found = settings(server)
    token = HostSettings.model_validate(
        {
            "model": {"repository": "a/b", "mount": "/config/models/b"},
            "models": {"hub_token": "hf_abcdefghijklmnopqrstuvwxyz"},
        }
    ).models.hub_token
    found = found.model_copy(update={"models": found.models.model_copy(update={"hub_token": token})})
    fetch_requests(suite_of(SUITE, "bench.yml"), ["published"], found, tmp_path, print)
    assert server.logins.pop("/cdn") is None
    assert set(server.logins.values()) == {"Bearer hf_abcdefghijklmnopqrstuvwxyz"}


def test_a_colleague_fetches_the_bytes_of_the_site_s_lock_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text(f"talks: {sha(TALKS)}\n")
    server.files[f"/mirror/{SHARE['file']}"] = TALKS + b" "
    with refused("RW1587", "talks", sha(TALKS)):
        fetch(server, tmp_path, f"{server.url}/mirror")
    server.files[f"/mirror/{SHARE['file']}"] = TALKS
    assert f"as {LOCK} has it" in fetch(server, tmp_path, f"{server.url}/mirror")[-1]


def test_a_mirror_s_file_is_locked_at_the_first_time(server: Server, tmp_path: Path) -> None:
    server.files[f"/mirror/{SHARE['file']}"] = TALKS
    assert LOCK in fetch(server, tmp_path, f"{server.url}/mirror/")[-1]
    assert locked(tmp_path) == {"talks": sha(TALKS)}


@pytest.mark.parametrize(
    ("source", "is_known"), [("/mirror", True), ("/mirror/", True), (f"/mirror/{SPEC_FILE}", False)]
)
def test_a_mirror_s_folder_is_held_against_the_published_bytes(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, is_known: bool
) -> None:
    monkeypatch.setattr(fetching, "published", published)
    suite = SUITE.replace("talks: {kind: sharegpt}", "spec: {kind: spec_bench, output: 8}")
    server.files[f"/mirror/{SPEC_FILE}"] = SPEC
    address = source if is_known else f"spec={server.url}{source}"
    if is_known:
        other = f"and the published {SPEC_FILE} has"
        with refused("RW1587", "spec", sha(SPEC), other, published("spec_bench")["sha256"], "--fetch spec=URL"):
            fetch(server, tmp_path, f"{server.url}{address}", suite=suite)
    else:
        assert LOCK in fetch(server, tmp_path, address, suite=suite)[-1]


def test_a_million_lengths_are_no_million_prompts(tmp_path: Path) -> None:
    """Only the requests that are sent have their prompts made."""
    head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
    content = "\n".join([head, *(f"{number},GPT-4,100000,5,100005,x" for number in range(20_000))])
    data = DataSet(kind="burstgpt")
    found = rows("burst", data, content, 1)
    assert len(found) == 20_000
    assert sum(sys.getsizeof(one) + sys.getsizeof(one.text) for one in found) < 5_000_000
    (tmp_path / "b.csv").write_text(content)
    suite = suite_of(BURST_SUITE, "bench.yml")
    sent = prompt_files(suite, tmp_path, tmp_path, tmp_path)["burst"][0].read_text().splitlines()
    assert [len(json.loads(one)["text"].split()) for one in sent] == [100_000] * 3


def test_a_cut_is_continued_where_a_hash_is_known(server: Server, tmp_path: Path) -> None:
    server.publish(sha(TALKS))
    api = 2
    server.cut = [10_000, 10_000, 1000, 1000]
    fetch(server, tmp_path, "published")
    assert [part for path, part in server.requests[api:] if path == "/cdn"] == [None, "bytes=1000-", "bytes=2000-"]
    assert (store() / sha(TALKS)).read_bytes() == TALKS


def test_a_cut_begins_again_where_none_is_known(server: Server, tmp_path: Path) -> None:
    server.files[f"/mirror/{SHARE['file']}"] = TALKS
    server.cut = [1000]
    fetch(server, tmp_path, f"{server.url}/mirror")
    assert [part for _, part in server.requests] == [None, None]


def test_a_server_that_never_ends_its_answer_is_given_up(server: Server, tmp_path: Path) -> None:
    server.files[f"/mirror/{SHARE['file']}"] = TALKS
    server.cut = [1000] * 10
    with refused("RW1577", "talks", f"1000 of {len(TALKS)} bytes"):
        fetch(server, tmp_path, f"{server.url}/mirror")
    with refused("RW1577", "talks", "404", "next: --fetch talks=URL"):
        fetch(server, tmp_path, f"{server.url}/nothing")


def test_a_server_that_is_busy_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.files[f"/mirror/{SHARE['file']}"] = TALKS
    server.busy = 2
    assert LOCK in fetch(server, tmp_path, f"{server.url}/mirror")[-1]
    assert len(server.requests) == 3
    server.busy = 100
    with refused("RW1577", "answers 503", "next: the same command again, or --fetch talks=URL"):
        fetch(server, tmp_path / "other", f"{server.url}/other")


def test_other_bytes_than_the_suite_names_are_refused(server: Server, tmp_path: Path) -> None:
    server.files[f"/mirror/{SHARE['file']}"] = TALKS
    suite = SUITE.replace("{kind: sharegpt}", f"{{kind: sharegpt, sha256: {'a' * 64}}}")
    with refused("RW1587", f"and the suite has {'a' * 64}", "correct its sha256 in the suite"):
        fetch(server, tmp_path, f"{server.url}/mirror", suite=suite)


def test_a_page_that_is_no_file_of_requests_is_not_kept(server: Server, tmp_path: Path) -> None:
    server.files[f"/mirror/{SHARE['file']}"] = b"<html>sign in</html>"
    with refused("RW1518", "talks", error=SettingsError):
        fetch(server, tmp_path, f"{server.url}/mirror")
    assert not (tmp_path / LOCK).exists()


def test_each_set_of_the_guide_s_suite_may_have_an_address_of_its_own(server: Server, tmp_path: Path) -> None:
    for name, content in ((SHARE["file"], TALKS), (published("spec_bench")["file"], SPEC)):
        server.files[f"/mirror/{name}"] = content
    server.files["/elsewhere/burst.csv"] = BURST
    lines: list[str] = []
    sources = [f"{server.url}/mirror", f"burstgpt={server.url}/elsewhere/burst.csv"]
    suite = load_suite("seed003")
    assert fetch_requests(suite, sources, settings(server), tmp_path, lines.append) == [
        "sharegpt",
        "spec_bench",
        "burstgpt",
    ]
    assert locked(tmp_path) == {"sharegpt": sha(TALKS), "spec_bench": sha(SPEC), "burstgpt": sha(BURST)}
    assert set(prompt_files(suite, tmp_path, tmp_path, tmp_path)) == {"sharegpt", "spec_bench", "burstgpt"}


@pytest.mark.parametrize(
    "source", ["publish", "tolks=https://a/b", "talks=b", "ftp://a/b", "https://", "https://me:secret@a/b"]
)
def test_a_source_of_another_form_is_refused(source: str, server: Server, tmp_path: Path) -> None:
    with refused("RW1567", "--fetch ", error=SettingsError) as caught:
        fetch(server, tmp_path, source)
    assert "secret" not in str(caught.value)


def test_a_set_without_an_address_is_named(server: Server, tmp_path: Path) -> None:
    suite = SUITE.replace("made:", "spec: {kind: spec_bench, output: 8}\n  made:")
    server.files["/t.json"] = TALKS
    with pytest.raises(RackwrightError, match=r"RW1567.*--fetch spec=URL"):
        fetch(server, tmp_path, f"talks={server.url}/t.json", suite=suite)


def test_a_suite_without_files_says_that_there_is_nothing_to_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["bench", "inventory/b200.py", "--limit", "b200-01.example.com", "--suite"]
    assert main([*words, "seed003-1", "--fetch", "published"]) == 0
    assert "suite seed003-1: nothing to fetch" in capsys.readouterr().out
    assert main([*words, "seed003"]) == 1
    next_command = "rackwright bench inventory/b200.py --suite seed003 --fetch published"
    assert f"next: {next_command}" in capsys.readouterr().err
