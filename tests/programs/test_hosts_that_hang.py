"""A host that floods or hangs is lost with a sentence; the others are shown, and the command ends. Real SSH, no lab."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import texts
from tests.programs.fake_site import make_site
from tests.refused import refusal
from tests.warm import ROOT

GRACE = 2
CODE = """\
import sys
from rackwright.cli.main import main
from rackwright.adapter import timeouts
from rackwright.remote import commands
from rackwright.adapter.run import poll
from rackwright.adapter.ssh import bounded_commands
from rackwright.adapter.ssh import client
timeouts.MOST = 2 << 20  # a busy machine reads as much within these seconds too
commands.GRACE, poll.SECONDS, client.LOGIN, bounded_commands.SLOW, bounded_commands.DEAD = {grace}, 5, 4, 1, 2
sys.exit(main(sys.argv[1:]))
"""
MEMORY = 3 << 30
"""Bytes of address space that a command may have: a flood must not fill the machine."""


class Standin:
    """A running server, and a site of hosts that are all of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        words = [sys.executable, "-m", "tests.programs.ssh_standin", str(folder)]
        self.process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def site(self, folder: Path, *names: str) -> Path:
        """Make a site whose hosts are called as what they do."""
        known_hosts, key = self.folder / "known_hosts", self.folder / "id"
        data = {"ssh_hostname": "127.0.0.1", "ssh_port": self.port, "ssh_key": str(key)}
        data |= {"ssh_known_hosts_file": str(known_hosts), "_sudo": False}
        hosts = [(name, {**data, "ssh_user": name}) for name in names]
        text = "from rackwright.inventory import build\n"
        return make_site(folder, "", f"{text}globals().update(build(__file__, {{'fleet': {hosts!r}}}))\n")


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standin]:
    """Start a server for this file."""
    found = Standin(tmp_path_factory.mktemp("ssh"))
    yield found
    found.process.kill()
    found.process.wait()


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def ask(site: Path, *words: str, within: float) -> tuple[int, str, str]:
    """Run `rackwright` in a fresh process. Raises subprocess.TimeoutExpired when it takes longer."""
    env = {**os.environ, "PYINFRA_PROGRESS": "off"}
    command = [sys.executable, "-c", CODE.format(grace=GRACE), *words]
    done = subprocess.run(
        command, cwd=site, env=env, capture_output=True, text=True, timeout=within, check=False, preexec_fn=bounded
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


FLOODS = ("flood", "flood-lines", "flood-errors")
HANGS = ("hang", "no-status", "no-start")


def test_hosts_that_flood_or_hang_are_lost_and_the_others_are_shown(standin: Standin, tmp_path: Path) -> None:
    site = standin.site(tmp_path, *FLOODS, *HANGS, "flood-window", "healthy")
    words = ("exec", "inventory/fleet.py", "--timeout", "3", "--", "true")
    status, out, errors = ask(site, *words, within=45)
    assert (status, out) == (1, "healthy: hello \ufffd\n"), errors
    messages = dict(row.split(": ", 1) for row in errors.splitlines() if ": " in row)
    for name in FLOODS:
        refusal(messages[name], "RW0761", "2 MiB")
    for name in HANGS:
        late = ("sshd", "answered after 2 s") if name == "no-start" else (f"still running after {3 + GRACE} s",)
        refusal(messages[name], "RW0751", *late)
    assert messages["flood-window"].startswith(("RW0712: ", "RW0761: "))


def test_status_shows_the_others_while_hosts_flood_or_hang(standin: Standin, tmp_path: Path) -> None:
    site = standin.site(tmp_path, *FLOODS, *HANGS, "flood-window", "healthy")
    status, out, errors = ask(site, "status", "inventory/fleet.py", "--json", within=45)
    assert status == 1
    assert "rackwright: waiting for " in errors
    rows = {row["host"]: json.dumps(row) for row in json.loads(out)["endpoints"]}
    assert len(rows) == len(FLOODS) + len(HANGS) + 2
    for name in FLOODS:
        assert "printed more than 2 MiB" in rows[name]
    for name in HANGS:
        assert "it did not answer within 5 s" in rows[name]


def test_a_host_that_freezes_while_it_is_logged_in_to_is_left_out(standin: Standin, tmp_path: Path) -> None:
    site = standin.site(tmp_path, "no-login", "no-session", "healthy")
    status, out, errors = ask(site, "exec", "inventory/fleet.py", "--timeout", "3", "--", "true", within=30)
    assert (status, out) == (1, "healthy: hello \ufffd\n"), errors
    assert "no-login: cannot be reached" in errors
    waits = [row.partition("waiting for ")[2] for row in errors.splitlines() if "waiting for " in row]
    assert texts.LOGS_IN.format(hosts="1 of 3 hosts: no-login") in waits
    assert "1 of 2 hosts: no-session" in waits
    assert "no-session: RW0751" in errors


def test_chat_asks_the_others_when_one_host_is_lost(standin: Standin, tmp_path: Path) -> None:
    site = standin.site(tmp_path, "no-session", "healthy")
    status, out, errors = ask(site, "chat", "inventory/fleet.py", "--", "hi", within=60)
    assert status == 1, errors
    assert [row.split()[0] for row in out.splitlines()] == ["no-session", "healthy"], errors
    assert "RW0" in out.splitlines()[0]


@pytest.mark.parametrize("words", [("exec", "--timeout", "100", "--", "true"), ("drift",)], ids=["exec", "drift"])
def test_an_sshd_that_freezes_is_noticed_long_before_the_limit(tmp_path: Path, words: tuple[str, ...]) -> None:
    frozen = Standin(tmp_path)
    site = frozen.site(tmp_path, "freeze")
    try:
        status, out, errors = ask(site, words[0], "inventory/fleet.py", *words[1:], within=60)
    finally:
        frozen.process.kill()
        frozen.process.wait()
    assert status != 0
    refusal(out + errors, "RW0751", "sshd", "answered after 2 s")


def test_a_server_that_freezes_before_its_first_word_is_left_out(tmp_path: Path) -> None:
    frozen = Standin(tmp_path)
    site = frozen.site(tmp_path, "healthy")
    os.kill(frozen.process.pid, signal.SIGSTOP)
    try:
        status, _, errors = ask(site, "exec", "inventory/fleet.py", "--", "true", within=60)
    finally:
        frozen.process.kill()
        frozen.process.wait()
    assert status == 1
    assert "no host could be reached" in errors
    assert texts.SILENT_SERVER.format(who="127.0.0.1", seconds=10) in errors
