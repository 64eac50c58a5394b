"""What not even root can write is refused with its file and the next command, before anything is stopped."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright.concerns.endpoint.switch.events import SwitchProgress
from rackwright.concerns.endpoint.switch.follow import ending, failure_of
from rackwright.concerns.endpoint.switch.job import can_start_script
from rackwright.hostside import host_script
from rackwright.record.cause import Cause
from rackwright.remote.errors import NotStartedError
from rackwright.remote.job_scripts import Ended
from rackwright.remote.unwritable import FULL, IMMUTABLE, QUOTA, READ_ONLY, unwritable
from tests.unit.test_switch import STEP

SHELLS = [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)]
FILE = "/etc/systemd/system/rackwright-llm.service"
Ask = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("text", "code", "file"),
    [
        (f"mv: cannot move '{FILE}.new' to '{FILE}': Operation not permitted", IMMUTABLE, FILE),
        (f"sh: 4: cannot create {FILE}.new: Operation not permitted", IMMUTABLE, FILE),
        (f"bash: line 1: {FILE}.new: Read-only file system", READ_ONLY, FILE),
        (f"mkdir: cannot create directory '{FILE}': Read-only file system", READ_ONLY, FILE),
        ("cat: write error: No space left on device", FULL, "/etc/written"),
        ("cat: write error: Disk quota exceeded", QUOTA, "/etc/written"),
        (f"rm: cannot remove '{FILE}': Operation not permitted", IMMUTABLE, FILE),
    ],
)
def test_a_refused_write_is_recognised_in_every_programs_words(text: str, code: str, file: str) -> None:
    found = unwritable(["some other line", text], "/etc/written")
    assert found is not None
    assert (found[0], file in found[1], "next, on the host: " in found[1]) == (code, True, True)
    assert code != IMMUTABLE or f"chattr -i {file};" in found[1]


@pytest.mark.parametrize(
    "text", ["mount: Operation not permitted", "mv: cannot stat '/x': No such file or directory", ""]
)
def test_other_failures_are_left_to_their_own_words(text: str) -> None:
    assert unwritable([text]) is None


# -- before a switch


@pytest.fixture(params=SHELLS)
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    """Ask on a host with these attributes and writes; returns exit status, reason and cause."""
    shell = [request.param, "sh"] if request.param == "busybox" else [request.param]

    def answer(flags: str = "--------------e-------", of: str = "", sync: str = "exit 0") -> tuple[int, str, str]:
        lsattr = (
            f'for f in "$@"; do :; done; case $f in */{of or "none"}) echo "{flags} $f" ;; *) echo "------- $f" ;; esac'
        )
        for name, text in {"lsattr": lsattr, "sync": sync}.items():
            program = tmp_path / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        folders = {name: tmp_path / name for name in ("units", "home")}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
        script = host_script("can_write", unit="u.service", **{name: str(path) for name, path in folders.items()})
        paths = {name: str(tmp_path / name) for name in ("reason", "cause")}
        env = {**os.environ, **paths, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        run = subprocess.run([*shell, "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60)
        assert run.stderr == ""
        texts = {name: Path(path).read_text().strip() if Path(path).exists() else "" for name, path in paths.items()}
        assert not [path for folder in folders.values() for path in folder.iterdir()]
        return run.returncode, texts["reason"], texts["cause"]

    return answer


def test_what_can_be_written_lets_the_switch_begin(ask: Ask) -> None:
    assert ask() == (0, "", "")


@pytest.mark.parametrize(
    ("flags", "of", "command"),
    [("----i---------e-------", "u.service", "chattr -i"), ("-----a--------e-------", "history", "chattr -a")],
)
def test_an_immutable_file_is_named_with_the_command_that_frees_it(
    ask: Ask, tmp_path: Path, flags: str, of: str, command: str
) -> None:
    status, reason, cause = ask(flags, of)
    file = tmp_path / ("units" if of == "u.service" else "home") / of
    assert (status, cause, f"{command} {file};" in reason) == (1, "immutable", True)


@pytest.mark.parametrize(
    ("words", "cause", "code"),
    [
        ("Read-only file system", "readonly", READ_ONLY),
        ("No space left on device", "disk", FULL),
        ("Disk quota exceeded", "quota", QUOTA),
        ("Operation not permitted", "immutable", IMMUTABLE),
        ("Input/output error", "disk", FULL),
    ],
)
def test_each_way_in_which_a_folder_takes_nothing_has_its_code_and_is_the_hosts(
    ask: Ask, words: str, cause: str, code: str
) -> None:
    status, reason, kind = ask(sync=f"echo 'sync: {words}' >&2; exit 1")
    assert (status, kind, "; next, on this host: " in reason) == (1, cause, True)
    progress = SwitchProgress("llm", "")
    progress.failure, progress.cause = reason, kind
    failure = failure_of(progress)
    assert (failure.code, [one.cause for one in failure.reasons]) == (code, [Cause.DISK])
    if code != FULL:
        ended = ending(STEP, progress, Ended(5, ""))
        assert (type(ended), ended and ended.code) == (NotStartedError, code)


def test_every_switch_asks_this_before_it_drains_and_not_again_after_it() -> None:
    assert "lsattr" in can_start_script("llm", [("llm", "abc")], False)
    assert "lsattr" not in can_start_script("llm", [("llm", "abc")], False, again=True)
