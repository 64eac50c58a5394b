"""A published file comes whole or not at all: a server that sends too much, or in drops, leaves nothing behind."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rackwright.hostside import host_script

BODY = b"vocabulary " * 512
SUM = hashlib.sha256(BODY).hexdigest()


class Server(BaseHTTPRequestHandler):
    """Answers by the path that is asked for."""

    protocol_version = "HTTP/1.1"
    sent = 0

    def do_GET(self) -> None:
        getattr(self, self.path.strip("/"))()

    def good(self) -> None:
        self._answer(200, {"Content-Length": str(len(BODY))}, BODY)

    def long(self) -> None:
        self._answer(200, {"Content-Length": str(10**12)}, BODY)
        self._pour(b"x" * 65536)

    def one_more(self) -> None:
        self._answer(200, {"Connection": "close"}, BODY + b"x")

    def endless(self) -> None:
        self._answer(200, {"Transfer-Encoding": "chunked"}, b"")
        self._pour(b"10000\r\n" + b"x" * 65536 + b"\r\n")

    def drops(self) -> None:
        self._answer(200, {"Content-Length": str(len(BODY))}, b"")
        while True:
            self._pour(b"x", 1)
            time.sleep(3)

    def moved(self) -> None:
        self._answer(302, {"Location": "/good", "Content-Length": "0"}, b"")

    def round(self) -> None:
        self._answer(302, {"Location": "/round", "Content-Length": "0"}, b"")

    def inside(self) -> None:
        self._answer(302, {"Location": "file:///etc/hostname", "Content-Length": "0"}, b"")

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def _pour(self, piece: bytes, most: int = 10**9) -> None:
        while most:
            self.wfile.write(piece)
            self.wfile.flush()
            Server.sent += len(piece)
            most -= 1

    def handle(self) -> None:
        with suppress(OSError):  # curl has gone, as it should
            super().handle()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        running.daemon_threads = True
        running.block_on_close = False
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def fetch(url: str, folder: Path, stall: int = 5, size: int = len(BODY), name: str = "file") -> tuple[int, str]:
    """Run the script; its temporary files are made beside `folder`."""
    (folder.parent / "tmp").mkdir(exist_ok=True)
    names = {"path": str(folder / name), "mark": str(folder.parent / "marks" / "file")}
    words: dict[str, str | int] = {"url": url, "size": size, "sha256": SUM, "stall": stall, **names}
    script = "sleep() { :; }\n" + host_script("fetch_file", **words, http_proxy="", https_proxy="", no_proxy="")
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(folder.parent / "tmp")}
    done = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60)
    assert list((folder.parent / "tmp").iterdir()) == []
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("page", ["good", "moved"])
def test_the_file_comes_with_its_mark(server: str, tmp_path: Path, page: str) -> None:
    folder = tmp_path / "encodings"
    status, output = fetch(f"{server}/{page}", folder)
    assert status == 0, output
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert (folder / "file").read_bytes() == BODY
    assert (folder / "file").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "marks" / "file").read_text().startswith(f"{SUM} {(folder / 'file').stat().st_ino}:")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("long", f"has more than {len(BODY)} bytes"),
        ("endless", f"has more than {len(BODY)} bytes"),
        ("one_more", f"has {len(BODY) + 1} bytes and should have {len(BODY)}"),
        ("round", "leads from one address to the next"),
        ("inside", "leads to an address that is not https"),
        ("drops", "stalled"),
    ],
)
def test_what_is_wrong_is_bounded_and_leaves_what_was_there(
    server: str, tmp_path: Path, page: str, message: str
) -> None:
    folder = tmp_path / "encodings"
    folder.mkdir()
    (folder / "file").write_text("old")
    Server.sent = 0
    status, output = fetch(f"{server}/{page}", folder, stall=1)
    assert (status, message in output) == (1, True), output
    assert (folder / "file").read_text() == "old"
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert Server.sent < 64 << 20


def test_an_https_address_never_leads_to_http(tmp_path: Path) -> None:
    """The judge is curl itself: only its arguments count."""
    (tmp_path / "curl").write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$SEEN"\nexit 1\n')
    (tmp_path / "curl").chmod(0o755)
    places = {"path": f"{tmp_path}/f", "mark": f"{tmp_path}/m", "sha256": SUM}
    proxies = {"http_proxy": "", "https_proxy": "", "no_proxy": ""}
    script = host_script("fetch_file", url="https://h/f", **places, size=1, stall=1, **proxies)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SEEN": str(tmp_path / "seen")}
    subprocess.run(["sh", "-c", script], env=env, capture_output=True, check=False)
    requests = (tmp_path / "seen").read_text().splitlines()
    assert requests[requests.index("--proto") + 1] == "=https"
    assert requests[requests.index("--proto-redir") + 1] == "=https"


def test_links_and_folders_in_its_place_are_never_followed(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "encodings"
    folder.mkdir()
    (tmp_path / "outside").write_text("stays")
    (folder / "file").symlink_to(tmp_path / "outside")
    assert fetch(f"{server}/good", folder)[0] == 0
    assert not (folder / "file").is_symlink()
    assert (tmp_path / "outside").read_text() == "stays"
    (folder / "file").unlink()
    (folder / "file").mkdir()
    status, output = fetch(f"{server}/good", folder)
    assert (status, "could not be written" in output) == (1, True)
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_a_folder_in_which_no_file_can_be_made_is_named(server: str, tmp_path: Path) -> None:
    """The name is too long with its suffix: root can write in all other folders of a test."""
    status, output = fetch(f"{server}/good", tmp_path / "encodings", name="f" * 240)
    assert (status, "no file can be written in" in output) == (1, True), output
    assert list((tmp_path / "encodings").iterdir()) == []


def test_what_a_killed_fetch_has_left_goes_after_an_hour(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "encodings"
    folder.mkdir()
    for name, age in {
        "file.AbCdEfGh": 7200,
        "file.AbCdEfGh.err": 7200,
        "file.young": 60,
        "other.AbCdEfGh": 7200,
    }.items():
        (folder / name).write_text("")
        os.utime(folder / name, (time.time() - age,) * 2)
    assert fetch(f"{server}/good", folder)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["file", "file.young", "other.AbCdEfGh"]


@pytest.mark.parametrize("trap", ["", "link", "other bytes"])
def test_a_file_is_opened_to_all_by_its_bytes_and_not_by_its_name(tmp_path: Path, trap: str) -> None:
    file, secret = tmp_path / "file", tmp_path / "secret"
    for path in (file, secret):
        path.write_bytes(BODY)
        path.chmod(0o600)
        os.chown(path, 12345, 12345)
    if trap == "link":
        file.unlink()
        file.symlink_to(secret)
    if trap == "other bytes":
        file.write_bytes(b"shadow")
    script = host_script("open_file", path=str(file), sha256=SUM)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == (1 if trap else 0), done.stderr
    assert file.stat().st_mode & 0o777 == (0o600 if trap else 0o644)
    assert file.stat().st_uid == (12345 if trap else 0)
