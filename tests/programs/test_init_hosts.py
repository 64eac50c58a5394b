"""`rackwright init --host`: what is read over real SSH, whose key is shown and asked, and hosts that misbehave."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests import texts
from tests.lab.products import in_proof, with_proof
from tests.programs.typed import CTRL_C, Typed, rackwright
from tests.warm import ROOT

SECONDS = 120
B200 = "8 x NVIDIA B200"


class Server:
    """A running SSH server, and a home whose ssh configuration leads to it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        words = [sys.executable, "-m", "tests.programs.ssh_standin", str(folder)]
        self.process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        (folder / ".ssh").mkdir(mode=0o700)
        lines = ("Host *", f"IdentityFile {folder}/id", f"UserKnownHostsFile {self.known_hosts}")
        (folder / ".ssh/config").write_text("\n  ".join(lines) + "\n")

    @property
    def known_hosts(self) -> Path:
        """The file that ssh reads."""
        return self.home / ".ssh/known_hosts"

    @property
    def key(self) -> str:
        """The line of the server's key."""
        return (self.home / "known_hosts").read_text()

    def at(self, name: str, address: str = "127.0.0.1") -> list[str]:
        """Return the option of a host that does what its login says."""
        return ["--host", f"{name}@{address}:{self.port}"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server whose key is not known yet."""
    found = Server(tmp_path)
    yield found
    found.process.kill()
    found.process.wait()


@pytest.fixture
def trusted(server: Server) -> Server:
    """Have its key in known_hosts."""
    server.known_hosts.write_text(server.key)
    return server


def init(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `rackwright init site` without a terminal."""
    env = {**os.environ, "HOME": str(server.home)}
    command = rackwright("init", "site", *words)
    done = subprocess.run(
        command, cwd=server.home, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def inventories(server: Server) -> dict[str, str]:
    return {path.stem: path.read_text() for path in (server.home / "site/inventory").glob("*.py")}


def test_a_host_is_read_and_gets_the_profile_that_fits(trusted: Server) -> None:
    done = init(trusted, *trusted.at("b200"), "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"127.0.0.1: {B200}, x86_64, driver 575.57.08, Debian 12\n" in done.stdout
    assert (
        f'("127.0.0.1", {{"ssh_port": {trusted.port}, "ssh_user": "b200"}}),  # 8 x NVIDIA B200'
        in inventories(trusted)["b200"]
    )


CONTROLS = ("controls", "nvidia-smi fails there: gone")
UNREAD = [
    ("no-driver", "it has 8 NVIDIA GPUs and no driver"),
    CONTROLS,
    ("healthy", "did not answer as a Linux host does"),
]


@pytest.mark.parametrize(
    ("name", "words"), with_proof(UNREAD, [CONTROLS], "tests/unit/test_init.py has what each answer means")
)
def test_a_host_without_an_answer_is_in_the_site_and_said(name: str, words: str, trusted: Server) -> None:
    done = init(trusted, *trusted.at(name), "--profile", "b200")
    assert done.returncode == 0, done.stdout + done.stderr
    assert words in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert "# not read yet" in inventories(trusted)["b200"]


@in_proof("tests/unit/test_init.py leaves hosts out that do not fit")
def test_a_host_without_a_gpu_is_left_out(trusted: Server) -> None:
    done = init(trusted, *trusted.at("no-gpu"), "--profile", "b200")
    assert done.returncode == 1
    assert texts.LEFT_OUT.format(host="127.0.0.1", why="no NVIDIA GPU") in done.stdout
    assert "127.0.0.1" not in inventories(trusted)["b200"]


@in_proof("a start of ten seconds; an unknown key's host is not read either")
def test_hosts_that_hang_or_refuse_do_not_hold_the_others(trusted: Server) -> None:
    refusing = ["--host", "127.0.0.3:1"]
    done = init(trusted, *trusted.at("b200"), *refusing, "--profile", "b200")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "127.0.0.1: 8 x NVIDIA B200" in done.stdout
    assert "127.0.0.3: " in done.stdout


def test_an_unknown_key_is_never_taken_without_a_person(server: Server) -> None:
    done = init(server, *server.at("b200"), "--yes", "--profile", "b200")
    assert done.returncode == 0
    assert texts.KEY_NOT_KNOWN in done.stdout
    assert not server.known_hosts.exists()


def test_a_changed_key_is_refused(server: Server) -> None:
    made = subprocess.run(
        ["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", server.home / "another"], check=True, capture_output=True
    )
    assert made.returncode == 0
    another = " ".join((server.home / "another.pub").read_text().split()[:2])
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {another}\n")
    done = init(server, *server.at("b200"), "--profile", "b200")
    assert texts.KEY_CHANGED in done.stdout
    assert f"ssh-keygen -R '[127.0.0.1]:{server.port}'" in done.stdout
    assert server.known_hosts.read_text() == f"[127.0.0.1]:{server.port} {another}\n"


def typed(server: Server, *words: str) -> Typed:
    return Typed(rackwright("init", "site", *words), server.home, {"HOME": str(server.home)})


def test_a_key_that_a_person_has_compared_is_kept(server: Server) -> None:
    with typed(server, *server.at("b200")) as run:
        run.until("[y/N] ")
        assert "SHA256:" in run.shown
        run.type("y\n")
        run.until("Number or name [1]: ")
        run.type("\n")
        assert run.ends(SECONDS) == 0, run.shown
    assert server.known_hosts.read_text() == server.key
    [group] = (server.home / "site/group_vars").glob("b200.yml")
    assert "profile" in yaml.safe_load(group.read_text())


@pytest.mark.parametrize("answer", with_proof(["n\n", "\n", "maybe\n"], ["\n"], "one answer that is not yes is tried"))
def test_a_key_that_was_not_compared_is_not_kept(answer: str, server: Server) -> None:
    with typed(server, *server.at("b200"), "--profile", "b200") as run:
        run.until("[y/N] ")
        run.type(answer)
        assert run.ends(SECONDS) == 0, run.shown
    assert "was not accepted" in run.shown
    assert not server.known_hosts.exists()


def test_ctrl_c_in_a_question_writes_nothing(server: Server) -> None:
    with typed(server) as run:
        run.until("none yet): ")
        run.type(CTRL_C)
        assert run.ends(SECONDS) == 130, run.shown
    assert texts.NO_SITE_WRITTEN in run.shown
    assert "Traceback" not in run.shown
    assert not (server.home / "site").exists()


@in_proof("Ctrl-C in a question is tried, and tests/programs/test_ctrl_c.py ends such waits")
def test_ctrl_c_ends_the_wait_for_a_host_that_hangs(trusted: Server) -> None:
    with typed(trusted, *trusted.at("hang"), "--profile", "b200") as run:
        run.until("waiting")
        run.type(CTRL_C)
        assert run.ends(SECONDS) == 130, run.shown
    assert not (trusted.home / "site").exists()
