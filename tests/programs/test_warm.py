"""A command in a fork of a loaded process is the command that a user types: its words, place, output and end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.warm import BIN, COLD, ROOT, Forked, run, start


def typed(*words: str, cwd: Path = ROOT) -> tuple[int, str]:
    return run(words, cwd, os.environ, 120)


RACKWRIGHT, PYINFRA = str(BIN / "rackwright"), str(BIN / "pyinfra")
COMMANDS = [
    (RACKWRIGHT, "check", "inventory/gb200.py"),
    (RACKWRIGHT, "check", "inventory/absent.py"),
    (RACKWRIGHT, "--version"),
    (RACKWRIGHT, "statsu"),
    (PYINFRA, "inventory/gb200.py", "debug-inventory"),
    (PYINFRA, "inventory/gb200.py"),
    ("env", "RACKWRIGHT_SITE=/nowhere", RACKWRIGHT, "runs"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(Path(argument).name for argument in words))
def test_it_says_and_ends_as_one_that_a_user_starts(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COLD, raising=False)
    warm, kind = typed(*words), kind_of(*words)
    monkeypatch.setenv(COLD, "1")
    cold, other = typed(*words), kind_of(*words)
    assert (kind, other) == (Forked, subprocess.Popen)
    assert warm == cold


def kind_of(*words: str) -> type:
    """Return the class by which such a command is started."""
    with Path(os.devnull).open("wb") as nothing:
        process = start(words, ROOT, os.environ, nothing.fileno())
    process.wait(120)
    return type(process)


def test_each_has_a_folder_and_variables_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "deploy.py").write_text("import os\nprint(os.getcwd(), os.environ.get('SHOWN'))\n")
    deploy = (PYINFRA, "@local", "deploy.py", "-y")
    with_variable, without = typed("env", "SHOWN=yes", *deploy, cwd=tmp_path), typed(*deploy, cwd=tmp_path)
    assert f"{tmp_path} yes" in with_variable[1], with_variable[1]
    assert f"{tmp_path} None" in without[1], "variables of one command do not reach the next"


def test_it_looks_for_modules_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "own_words.py").write_text("print('found')\n")
    (tmp_path / "deploy.py").write_text("import sys, own_words\nprint([one for one in sys.path if 'modules' in one])\n")
    words = ("env", f"PYTHONPATH={tmp_path / 'modules'}", PYINFRA, "@local", str(tmp_path / "deploy.py"), "-y")
    warm = typed(*words, cwd=tmp_path)
    assert "found" in warm[1], warm[1]
    monkeypatch.setenv(COLD, "1")
    assert typed(*words, cwd=tmp_path) == warm


def test_with_other_variables_of_pythons_it_is_started() -> None:
    assert kind_of("env", "PYTHONUTF8=1", RACKWRIGHT, "--version") is subprocess.Popen


def test_other_programs_are_started() -> None:
    assert typed("echo", "a", "b") == (0, "a b\n")


def test_its_output_ends_with_it() -> None:
    for _ in range(2):
        output, into = os.pipe()
        process = start((PYINFRA, "--version"), ROOT, os.environ, into)
        os.close(into)
        assert process.wait(60) == 0
        with os.fdopen(output) as printed:
            first, end = (select.select([printed], [], [], 5)[0] and os.read(output, 1000) for _ in range(2))
        assert (first[:9], end) == (b"pyinfra: ", b""), "a process still holds the pipe"


def test_one_that_is_killed_says_so() -> None:
    with tempfile.TemporaryFile() as printed:
        process = start((PYINFRA, "@local", "exec", "--", "sleep", "60"), ROOT, os.environ, printed.fileno())
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(10) == process.poll() == -signal.SIGKILL


def test_its_clock_is_not_that_of_the_process_that_was_loaded(tmp_path: Path) -> None:
    typed(PYINFRA, "--version")
    time.sleep(1)  # the loop of the loaded process stands still
    ask = "import gevent\nended = gevent.joinall([gevent.spawn(gevent.sleep, 0.1)], timeout=0.9)\nhosts = ['@local']\n"
    (tmp_path / "hosts.py").write_text(f"{ask}print('in time' if ended else 'too late')\n")
    printed = typed(PYINFRA, "hosts.py", "debug-inventory", cwd=tmp_path)[1]
    assert "in time" in printed, printed
