"""The gateway under many and large requests, and reloaded in the middle of streams and of a drain."""

from __future__ import annotations

import contextlib
import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.gateway_stubs import ALICE, Running
from tests.programs.test_gateway import BODY, CHAT, GPT, HEAD, QWEN, running, streaming

pytestmark = pytest.mark.proof("`make test` sees each limit with one connection")


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process have enough open files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 16384), max(before[1], 16384)))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def resident(one: Running) -> int:
    """Return the bytes of memory of HAProxy."""
    assert one.process
    pids = [
        str(one.process.pid),
        *subprocess.run(
            ["pgrep", "-P", str(one.process.pid)], capture_output=True, text=True, check=False
        ).stdout.split(),
    ]
    rows = [Path(f"/proc/{pid}/status").read_text().split("VmRSS:") for pid in pids]
    return max(int(row[1].split()[0]) for row in rows) * 1024


@pytest.mark.usefixtures("many_files")
def test_idle_connections_and_a_slow_loris_keep_nobody_out(haproxy: Path, tmp_path: Path) -> None:
    with running(haproxy, tmp_path) as site, contextlib.ExitStack() as stack:
        before = resident(site.gateway)
        for number in range(2000):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", site.gateway.port)))
            if number % 2:
                one.sendall(HEAD[: 40 + number % 60])
        began = time.monotonic()
        assert site.gateway.ask(f"/{GPT}{CHAT}", BODY).status == 200
        print(f"answered in {time.monotonic() - began:.3f} s, {(resident(site.gateway) - before) / 2**20:.1f} MiB more")
        assert time.monotonic() - began < 5
        assert connections(site.gateway) >= 2000
        end = time.monotonic() + 60
        while connections(site.gateway) > 100 and time.monotonic() < end:
            time.sleep(1)
        assert connections(site.gateway) < 100


def connections(one: Running) -> int:
    """Return the connections that HAProxy has at the moment."""
    return int(one.admin("show info").split("CurrConns: ")[1].split()[0])


def test_a_body_of_a_gigabyte(haproxy: Path, tmp_path: Path) -> None:
    with running(haproxy, tmp_path) as site:
        before = resident(site.gateway)
        config = f'header = "Authorization: Bearer {ALICE}"\nurl = "{site.gateway.url}/{GPT}{CHAT}"\n'
        curl = ["curl", "--silent", "--write-out", "\n%{http_code} %{size_upload}", "--config", "-"]
        for way in (["Transfer-Encoding: chunked"], ["Expect:"], []):
            headers = [option for header in way for option in ("--header", header)]
            with (tmp_path / "zeros").open("wb") as file:
                file.truncate(2**30)
            command = [*curl, *headers, "--request", "POST", "--upload-file", str(tmp_path / "zeros")]
            run = subprocess.run(command, input=config, capture_output=True, text=True, check=False)
            code, size = run.stdout.rsplit("\n", 1)[1].split()
            print(way, code, size, run.returncode)
            # In clear text a client that does not wait for `100 Continue` may see the connection end before the answer.
            assert code in ("411", "413") or (run.returncode == 55 and "Expect:" in way), run
            assert int(size) < 2**24
        assert site.reached == 0
        assert resident(site.gateway) - before < 2**25


@pytest.mark.usefixtures("many_files")
def test_the_memory_of_bodies_that_are_read(haproxy: Path, tmp_path: Path) -> None:
    facts = {"timeout http-request 10s": "timeout http-request 3s"}
    with running(haproxy, tmp_path, route_by=("path", "body"), body_limit=2, changed=facts) as site:
        with contextlib.ExitStack() as stack:
            before = resident(site.gateway)
            for _ in range(100):
                one = stack.enter_context(socket.create_connection(("127.0.0.1", site.gateway.port)))
                one.settimeout(5)
                head = HEAD.replace(f"/{GPT}".encode(), b"") + b"Content-Length: 2000000\r\n\r\n"
                one.sendall(head + b"x" * 1_900_000)
            grown = resident(site.gateway) - before
            print(f"100 bodies of 1.9 MB, unfinished: {grown / 2**20:.0f} MiB")
            assert grown < 100 * (2**21 + 2**16) * 1.2
            assert site.gateway.ask(f"/{GPT}{CHAT}", BODY).status == 200
        assert site.gateway.ask(CHAT, BODY).status == 200


@pytest.mark.timeout(120)
def test_a_reload_cuts_no_stream_and_forgets_no_drain(haproxy: Path, tmp_path: Path) -> None:
    # The words are asked rarely, so that only the saved states can keep the drained host out.
    rarely = {"agent-inter 100ms": "agent-inter 5s"}
    with running(haproxy, tmp_path, master=True, changed=rarely) as site:
        site.gpu01.tick = site.gpu02.tick = 0.5
        site.gpu01.tokens = site.gpu02.tokens = 12
        streams = [streaming(site) for _ in range(8)]
        site.gpu01.answers = "drain"
        site.gateway.wait_for("gpu02", "gpu03", seconds=12)
        before = len(site.gpu01.requests)
        site.gpu02.tick = 0
        site.gateway.reload()
        answers = [site.gateway.ask(f"/{GPT}{CHAT}", BODY).status for _ in range(40)]
        assert answers == [200] * 40
        assert len(site.gpu01.requests) == before
        texts = [one.read() for one in streams]
        assert all(text.endswith(b"[DONE]\n\n") for text in texts)
        site.gpu01.answers = "ready up"
        site.gateway.wait_for("gpu01", "gpu02", "gpu03", seconds=12)


@pytest.mark.timeout(120)
def test_requests_in_a_row_during_reloads(haproxy: Path, tmp_path: Path) -> None:
    with running(haproxy, tmp_path, master=True) as site:
        answers = []
        for _ in range(5):
            site.gateway.reload()
            answers += [site.gateway.ask(f"/{QWEN}{CHAT}", BODY).status for _ in range(20)]
        assert answers == [200] * 100
