"""Ctrl-C and the signals that end: at any prompt, at any wait, at once, with 130 and one true sentence."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import texts
from tests.programs.test_hosts_that_hang import Standin
from tests.programs.typed import CTRL_C, CTRL_D, Typed, pyinfra, rackwright

SOON = 10.0
"""Seconds within which an interrupted command has ended, on a busy machine too: far below the limits of the waits."""
SHELL = "from pyinfra.operations import server\nserver.shell(name='wait', commands=['true'])\n"
PROMPT = "Press enter to execute..."
FLEET = "inventory/fleet.py"


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standin]:
    """Start a server for this file."""
    found = Standin(tmp_path_factory.mktemp("ssh"))
    yield found
    found.process.kill()
    found.process.wait()


def site_of(standin: Standin, folder: Path, *names: str) -> Path:
    """Make a site whose deploy runs one command."""
    site = standin.site(folder, *names)
    (site / "deploy.py").write_text(SHELL)
    return site


def ends_well(typed: Typed) -> str:
    assert typed.ends(SOON) == 130, typed.shown
    assert "Traceback" not in typed.shown
    return typed.shown


WAITS = {
    "reading": (("plan", FLEET), "hang"),
    "drift": (("drift", FLEET), "hang"),
    "a command": (("exec", FLEET, "--", "true"), "hang"),
    "logs": (("logs", FLEET), "hang"),
    "status": (("status", FLEET), "hang"),
    "a login": (("exec", FLEET, "--", "true"), "no-login"),
}


@pytest.mark.parametrize("case", WAITS)
def test_it_ends_a_wait_for_hosts(standin: Standin, tmp_path: Path, case: str) -> None:
    words, name = WAITS[case]
    with Typed(rackwright(*words), site_of(standin, tmp_path, name, "healthy")) as typed:
        time.sleep(4)
        assert typed.process.poll() is None, typed.shown
        typed.type(CTRL_C)
        assert ends_well(typed).count("rackwright: interrupted") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [("exec", FLEET, "--", "true"), ("status", FLEET)], ids=lambda words: words[0])
def test_other_signals_end_it_as_well(
    standin: Standin, tmp_path: Path, words: tuple[str, ...], number: signal.Signals
) -> None:
    with Typed(rackwright(*words), site_of(standin, tmp_path, "hang")) as typed:
        time.sleep(4)
        typed.process.send_signal(number)
        assert f"rackwright: stopped by {number.name}" in ends_well(typed)


def test_it_ends_the_question_of_pyinfra(standin: Standin, tmp_path: Path) -> None:
    with Typed(pyinfra(FLEET, "deploy.py"), site_of(standin, tmp_path, "healthy")) as typed:
        typed.until(PROMPT)
        typed.type(CTRL_C)
        shown = ends_well(typed)
    assert f"Stopped by Ctrl-C: {texts.NOTHING_BEGUN}\n" in shown
    assert "keep running" not in shown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_the_question_of_pyinfra(standin: Standin, tmp_path: Path, number: signal.Signals) -> None:
    with Typed(pyinfra(FLEET, "deploy.py"), site_of(standin, tmp_path, "healthy")) as typed:
        typed.until(PROMPT)
        typed.process.send_signal(number)
        assert f"Stopped by {number.name}: {texts.NOTHING_BEGUN}" in ends_well(typed)


def test_ctrl_d_at_the_question_of_pyinfra_says_what_to_type(standin: Standin, tmp_path: Path) -> None:
    with Typed(pyinfra(FLEET, "deploy.py"), site_of(standin, tmp_path, "healthy")) as typed:
        typed.until(PROMPT)
        typed.type(CTRL_D)
        assert typed.ends(SOON) == 1
        assert "no answer" in typed.shown


@pytest.mark.parametrize("name", ["hang", "no-login"])
def test_it_ends_a_wait_of_pyinfra(standin: Standin, tmp_path: Path, name: str) -> None:
    with Typed(pyinfra(FLEET, "deploy.py", "-y"), site_of(standin, tmp_path, name)) as typed:
        typed.until("Connecting to hosts" if name == "no-login" else "Starting operation")
        time.sleep(1)
        typed.type(CTRL_C)
        shown = ends_well(typed)
    assert shown.count("Stopped by Ctrl-C: ") == 1
    assert ("nothing was begun on any host" in shown) == (name == "no-login")


@pytest.mark.parametrize("typed_twice", [0.05, 1.0])
def test_twice_in_a_row_is_no_worse(standin: Standin, tmp_path: Path, typed_twice: float) -> None:
    with Typed(pyinfra(FLEET, "deploy.py", "-y"), site_of(standin, tmp_path, "hang")) as typed:
        typed.until("Starting operation")
        typed.type(CTRL_C)
        time.sleep(typed_twice)
        if typed.process.poll() is None:
            typed.type(CTRL_C)
        ends_well(typed)


@pytest.mark.parametrize("keys", [CTRL_C, CTRL_D])
def test_the_question_for_a_keys_password_ends(standin: Standin, tmp_path: Path, keys: str) -> None:
    site = site_of(standin, tmp_path, "healthy")
    key = site / "id"
    key.write_text((standin.folder / "id").read_text())
    key.chmod(0o600)
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(key)], check=True, capture_output=True)
    fleet = site / FLEET
    fleet.write_text(fleet.read_text().replace(str(standin.folder / "id"), str(key)))
    with Typed(pyinfra(FLEET, "deploy.py", "-y"), site) as typed:
        typed.until("password for private key")
        typed.type(keys)
        status = typed.ends(SOON)
    assert "Traceback" not in typed.shown
    assert (status == 130) == (keys == CTRL_C), typed.shown
    assert status != 0


@pytest.mark.parametrize(("keys", "status"), [(CTRL_C, 130), (CTRL_D, 1)])
def test_the_question_for_the_vault_password_ends(standin: Standin, tmp_path: Path, keys: str, status: int) -> None:
    with Typed(rackwright("check", FLEET, "--ask-vault-pass"), standin.site(tmp_path, "healthy")) as typed:
        typed.until("Vault password:")
        typed.type(keys)
        assert typed.ends(SOON) == status, typed.shown
    assert "Traceback" not in typed.shown


def test_a_question_of_ours_to_a_closed_input_is_a_sentence(standin: Standin, tmp_path: Path) -> None:
    words = " ".join(rackwright("teardown", FLEET, "--all"))
    site = site_of(standin, tmp_path, "healthy")
    done = subprocess.run(f"{words} <&-", shell=True, cwd=site, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "RW1025: no answer" in done.stderr


def test_ctrl_c_at_the_question_of_a_rollout_and_before_it(standin: Standin, tmp_path: Path) -> None:
    site = site_of(standin, tmp_path, "hang")
    with Typed(rackwright("rollout", FLEET), site) as typed:
        time.sleep(5)
        typed.type(CTRL_C)
        assert ends_well(typed).count("interrupted") == 1
    (site / FLEET).write_text((site / FLEET).read_text().replace("hang", "healthy"))
    with Typed(rackwright("rollout", FLEET), site) as typed:
        typed.until("Type yes to continue")
        typed.type(CTRL_C)
        assert ends_well(typed).count("interrupted") == 1
