"""What is on trial does not survive a cut, wherever it falls: the real scripts on real folders, without a host."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rackwright.concerns.endpoint.binding import Binding
from rackwright.hostside import durable_script, job_script, trial_script

OLD, NEW = Binding(("GPU-1",)), Binding(("GPU-2",))
UNIT = "rackwright-llm.service"
STAND_INS = {
    # What the scripts ask of systemd is noted; is-system-running answers what the test says.
    "systemctl": '#!/bin/sh\nprintf "%s\\n" "$*" >>"$NOTES/systemctl"\n'
    'case $1 in is-active) exit 3 ;; is-system-running) cat "$NOTES/system" 2>/dev/null ;; esac\nexit 0\n',
    # The power goes before the rename whose number is in the file `cut`.
    "mv": '#!/bin/sh\nn=$(($(cat "$NOTES/moves" 2>/dev/null || echo 0) + 1))\necho $n >"$NOTES/moves"\n'
    '[ "$n" = "$(cat "$NOTES/cut" 2>/dev/null)" ] && { kill -9 $PPID; exit 1; }\nexec /bin/mv "$@"\n',
}


@dataclass
class Disk:
    """An endpoint's folder and the units of a host, where the release `old` is proven, unless a test says otherwise."""

    root: Path
    proven: bool = True
    notes: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home, self.units, self.notes = self.root / "home", self.root / "units", self.root / "notes"
        self.held = self.root / "run" / f"{UNIT}.d" / "rackwright-held.conf"
        for folder in (self.units, self.notes, self.root / "bin"):
            folder.mkdir(parents=True)
        for name, text in STAND_INS.items():
            (self.root / "bin" / name).write_text(text)
            (self.root / "bin" / name).chmod(0o755)
        for release in ("old", "new"):
            (self.home / "releases" / release).mkdir(parents=True)
            (self.home / "releases" / release / UNIT).write_text(f"unit of {release}\n")
        if self.proven:
            self.point("current", "old")
            self.point("proven", "old")
            (self.home / "binding").write_text(OLD.text)
            (self.home / "proven-binding").write_text(OLD.text)
            (self.home / "history").write_text("older\nold\n")
            (self.units / UNIT).write_text("unit of old\n")

    def point(self, name: str, release: str) -> None:
        (self.home / name).symlink_to(f"releases/{release}")

    def sh(self, script: str, *words: str, cut: int = 0) -> int:
        """Run a script; cut: the number of the rename before which the power goes, or 0."""
        (self.notes / "moves").unlink(missing_ok=True)
        (self.notes / "cut").write_text(str(cut) if cut else "")
        environment = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "NOTES": str(self.notes), "JOB": str(self.notes)}
        (self.notes / "nonce").write_text("x")
        (self.notes / "log").touch()
        return subprocess.run(["sh", "-c", script, "sh", *words], env=environment, check=False).returncode

    @property
    def trial(self) -> Path:
        return self.home / "trial"

    def begin(self) -> None:
        """Lay the trial down."""
        self.trial.write_text(self._trial_text())

    def lay_down(self) -> None:
        """Do the same by the transaction's own words, so that a power cut leaves it."""
        words = f"printf %s {shlex.quote(self._trial_text())} | durable_file {self.trial} 0600"
        assert self.sh(f"{durable_script('event')}\n{words}") == 0

    def _trial_text(self) -> str:
        return trial_script(
            "endpoint",
            owner="rackwright-job-switch-llm.service",
            held=str(self.held),
            decided="pointers",
            unit=UNIT,
            units=str(self.units),
            home=str(self.home),
            tried="new",
            tried_binding=NEW.text,
            previous="old" if self.proven else "",
            previous_binding=OLD.text if self.proven else "",
        )

    def switch_and_commit(self, cut: int = 0) -> int:
        words = {"unit": UNIT, "home": str(self.home), "units": str(self.units), "held": str(self.held)}
        point = durable_script("point", **words, release=str(self.home / "releases/new"), binding=NEW.text)
        forward = point + job_script("start", unit=UNIT, home=str(self.home), release="new")
        commit = durable_script("commit", home=str(self.home), release_hash="new", binding=NEW.text, keep=5)
        return self.sh(f"{forward}\n{commit}", cut=cut)

    def end(self, *words: str) -> int:
        """Run the trial as the host does that finds it."""
        return self.sh('exec sh "$@"', str(self.trial), *words)

    @property
    def state(self) -> tuple[str, ...]:
        """What is current, proven, bound, proven with, and the unit."""
        pointers = (self.home / name for name in ("current", "proven"))
        files = (self.home / "binding", self.home / "proven-binding", self.units / UNIT)
        return (*(one.readlink().name if one.is_symlink() else "" for one in pointers), *(_text(one) for one in files))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


ALL_OLD = ("old", "old", OLD.text, OLD.text, "unit of old\n")
ALL_NEW = ("new", "new", NEW.text, NEW.text, "unit of new\n")
RENAMES = 7
"""Of a switch and its commit: binding, unit, current, switched; history, proven-binding, proven."""


@pytest.mark.parametrize("how", [("boot",), ("cut", "it was ended from outside after 3 s")], ids=["boot", "cut"])
@pytest.mark.parametrize("cut", range(1, RENAMES + 1))
def test_a_switch_that_is_cut_anywhere_is_as_it_was(tmp_path: Path, cut: int, how: tuple[str, ...]) -> None:
    disk = Disk(tmp_path)
    disk.begin()
    assert disk.switch_and_commit(cut) != 0
    assert disk.end(*how) == 0
    assert disk.state == ALL_OLD
    assert (disk.home / "history").read_text().split()[-1] == "old"
    assert not disk.trial.exists()
    assert not disk.held.parent.exists()
    last = dict(row.split("=", 1) for row in (disk.home / "last-switch").read_text().splitlines())
    assert (last["release"], last["outcome"]) == ("new", "cut")


def test_the_switch_makes_as_many_renames_as_are_cut_here(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    assert disk.switch_and_commit() == 0
    assert (disk.notes / "moves").read_text().strip() == str(RENAMES)
    assert disk.state == ALL_NEW


def test_what_was_committed_stays_when_the_power_goes_before_its_trial_does(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.begin()
    disk.switch_and_commit()
    disk.end("boot")
    assert disk.state == ALL_NEW
    assert not disk.trial.exists()


def test_without_a_proven_release_nothing_is_started(tmp_path: Path) -> None:
    disk = Disk(tmp_path, proven=False)
    disk.begin()
    disk.switch_and_commit(cut=5)
    assert disk.end("boot") == 0
    assert disk.state[:2] == ("", "")
    assert f"disable --quiet --no-reload {UNIT}" in (disk.notes / "systemctl").read_text()


@pytest.mark.parametrize(("system", "restarts"), [("running", True), ("degraded", True), ("stopping", False)])
def test_what_was_proven_is_started_again_unless_the_host_goes_down(
    tmp_path: Path, system: str, restarts: bool
) -> None:
    disk = Disk(tmp_path)
    (disk.notes / "system").write_text(system)
    disk.begin()
    disk.switch_and_commit(cut=5)
    assert disk.end("cut", "it was ended from outside after 1 s") == 0
    calls = (disk.notes / "systemctl").read_text().splitlines()
    assert (f"restart --no-block {UNIT}" in calls) is restarts
    assert not restarts or calls.index("daemon-reload") < calls.index(f"restart --no-block {UNIT}")


@pytest.mark.parametrize(
    ("how", "system", "expected"),
    [("cut", "running", "word=down\nwho=me\n"), ("cut", "stopping", ""), ("boot", "starting", "")],
)
def test_clients_that_a_trial_let_in_stay_out_of_what_is_started_again(
    tmp_path: Path, how: str, system: str, expected: str
) -> None:
    """What serves then was started without a proof; a boot takes the mark away, as any boot does."""
    disk = Disk(tmp_path)
    (disk.notes / "system").write_text(system)
    mark = tmp_path / "trial-llm"
    mark.write_text("word=up\nwho=me\n")
    disk.begin()
    disk.trial.write_text(f"trial_marks={mark}\n{disk.trial.read_text()}")
    disk.switch_and_commit(cut=5)
    assert disk.end(how, "it was ended from outside") == 0
    assert _text(mark) == expected


def test_what_cannot_be_put_back_is_held_back(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.begin()
    disk.switch_and_commit(cut=5)
    shutil.rmtree(disk.home / "releases/old")
    assert disk.end("boot") != 0
    assert disk.held.read_text() == f"[Unit]\nConditionPathExists=!{disk.held}\n"
    assert disk.trial.exists()
    (disk.home / "releases/old").mkdir()
    (disk.home / "releases/old" / UNIT).write_text("unit of old\n")
    assert disk.end("boot") == 0
    assert not disk.held.parent.exists()


# -- the order in which bytes and names reach the disk

CALL = re.compile(r"(fsync|fdatasync|rename\w*)\((.*)\) += 0")


def whole(trace: str) -> Iterator[str]:
    """Join the calls, one a line: strace parts one where another process came in between."""
    begun: dict[str, str] = {}
    for row in trace.splitlines():
        pid, _, text = row.partition(" ")
        text = text.strip()
        if text.endswith("<unfinished ...>"):
            begun[pid] = text.removesuffix("<unfinished ...>").rstrip()
        elif resumed := re.fullmatch(r"<\.\.\. \w+ resumed>(.*)", text):
            yield begun.pop(pid, "") + resumed[1]
        else:
            yield text


def test_a_call_that_strace_parts_is_one() -> None:
    trace = "7 fsync(3</a/b> <unfinished ...>\n8 +++ exited with 0 +++\n7 <... fsync resumed>)            = 0\n"
    assert calls(trace) == [("fsync", "/a/b")]


def calls(trace: str) -> list[tuple[str, str]]:
    """Find fsync and rename in their order, with the path: of the file that is synced, or of the new name."""
    found = []
    for row in whole(trace):
        if call := CALL.search(row):
            kind, words = call.groups()
            path = re.search(r"<(.*)>", words) if "sync" in kind else re.findall(r'"([^"]*)"', words)[-1:]
            found.append((kind[:6], path.group(1) if isinstance(path, re.Match) else "".join(path or [])))
    return found


def test_bytes_reach_the_disk_before_their_name_and_the_name_before_the_next(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.fail("strace is not installed; next: apt-get install strace")
    disk = Disk(tmp_path)
    (tmp_path / "bin/mv").unlink()
    strace = [
        "strace",
        "-f",
        "-y",
        "-o",
        str(tmp_path / "trace"),
        "-e",
        "trace=fsync,fdatasync,rename,renameat,renameat2",
    ]
    words = {"unit": UNIT, "home": str(disk.home), "units": str(disk.units), "held": str(disk.held)}
    point = durable_script("point", **words, release=str(disk.home / "releases/new"), binding=NEW.text)
    forward = point + job_script("start", unit=UNIT, home=str(disk.home), release="new")
    commit = durable_script("commit", home=str(disk.home), release_hash="new", binding=NEW.text, keep=5)
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "NOTES": str(disk.notes), "JOB": str(disk.notes)}
    (disk.notes / "nonce").write_text("x")
    (disk.notes / "log").touch()
    subprocess.run([*strace, "sh", "-c", f"{forward}\n{commit}"], env=environment, check=True)
    made = calls((tmp_path / "trace").read_text())
    renamed = [n for n, (kind, _) in enumerate(made) if kind == "rename"]
    assert len(renamed) == RENAMES, made
    for n, after in zip(renamed, [*renamed[1:], len(made)], strict=True):
        path = Path(made[n][1])
        if not path.is_symlink():
            assert ("fsync", f"{path}.new") in made[:n], path
        assert ("fsync", str(path.parent)) in made[n:after], path


def test_what_is_gone_already_needs_no_folder(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    for path in (tmp_path / "nowhere/file", tmp_path / "home/file"):
        script = f"{durable_script('event')}\ndurably_gone {path}"
        assert disk.sh(script) == 0


# -- a guarded change whose host goes down before it is confirmed


class Guard:
    """dockerd's configuration on a host, changed under a guard; systemd is a stand-in with prepared answers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.notes = folder, folder / "notes"
        self.file, self.trial = folder / "etc/daemon.json", folder / "state/guards/docker"
        for path in (self.notes, folder / "bin", folder / "etc"):
            path.mkdir(parents=True)
        self.file.write_text("old")
        for name in ("systemctl", "systemd-run"):
            (folder / "bin" / name).write_text('#!/bin/sh\ncat "$NOTES/says" 2>/dev/null\nexit 0\n')
            (folder / "bin" / name).chmod(0o755)

    def sh(self, script: str, text: str = "") -> int:
        environment = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "NOTES": str(self.notes)}
        return subprocess.run(["sh", "-c", script], env=environment, input=text, text=True, check=False).returncode

    def arm(self, change: str) -> int:
        undo = self.folder / "run/undo"
        back = f"printf old >{self.file}\n"
        trying = trial_script(
            "dockerd",
            owner="rackwright-guard-docker.timer",
            held="",
            daemon_json=str(self.file),
            daemon_text=base64.b64encode(b"old").decode(),
            dropin=str(self.folder / "etc/nowhere/dropin"),
            dropin_text="",
            endpoints="",
        )
        words: dict[str, str | int] = {
            "unit": "guard",
            "folder": str(undo.parent),
            "undo": str(undo),
            "seconds": 30,
            "change": change,
        }
        digest = hashlib.sha256(back.encode()).hexdigest()
        return self.sh(durable_script("guard_arm", **words, sum=digest, trial=str(self.trial), trying=trying), back)


def test_a_guarded_change_is_taken_back_at_boot_until_it_is_confirmed(tmp_path: Path) -> None:
    guard = Guard(tmp_path)
    assert guard.arm(f"printf new >{guard.file}") == 0
    assert (guard.file.read_text(), guard.trial.exists()) == ("new", True)
    # is-active answers with success here: a guard that is under way at this very moment is left to itself.
    assert guard.sh(f"sh {guard.trial} boot") == 0
    assert guard.file.read_text() == "new"
    (tmp_path / "bin/systemctl").write_text("#!/bin/sh\nexit 3\n")
    assert guard.sh(f"sh {guard.trial} boot") == 0
    assert (guard.file.read_text(), guard.trial.exists()) == ("old", False)


def test_a_confirmed_change_is_not_on_trial_any_more(tmp_path: Path) -> None:
    guard = Guard(tmp_path)
    guard.arm(f"printf new >{guard.file}")
    (guard.notes / "says").write_text("waiting\n")
    # The service that would take it back does not run: its is-active fails.
    (tmp_path / "bin/systemctl").write_text('#!/bin/sh\n[ "$1" = is-active ] && exit 3\ncat "$NOTES/says"\n')
    assert guard.sh(durable_script("guard_confirm", unit="guard", trial=str(guard.trial))) == 0
    assert (guard.file.read_text(), guard.trial.exists()) == ("new", False)


def test_a_change_that_fails_is_taken_back_and_leaves_no_trial(tmp_path: Path) -> None:
    guard = Guard(tmp_path)
    assert guard.arm(f"printf half >{guard.file}; false") == 1
    assert (guard.file.read_text(), guard.trial.exists()) == ("old", False)
