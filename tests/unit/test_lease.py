"""The lease: what is read of it, whom it names, and the scripts that take, check and give it back, run for real."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.cli.lease import lease_lines
from rackwright.concerns.lease import (
    LEASE,
    TTL,
    LeaseHolder,
    SeenLease,
    parse_lease,
    parse_seen,
    read_script,
    span,
    whose,
)
from rackwright.concerns.lease.own_leases import lease_checked, was_refused, why_lost
from rackwright.concerns.lease.take_lease import Taken, acquire_script, parse_acquired
from rackwright.concerns.lease.this_process import is_gone, purpose, run_word, this_holder
from rackwright.hostside import host_script
from rackwright.paths import RUN, STATE
from rackwright.processes import started
from rackwright.record.handover import VARIABLE, Handover

FILE = """\
id=7.3fa9c1d2
user=alice
machine=ctl-1
purpose=pyinfra deploy.py
place=ctl-1 boot 4026531836
pid=4711
started=99
taken=1000
expires=1120
"""


def read_at(uptime: int, text: str = FILE) -> SeenLease:
    return parse_seen(["fence=7", f"lease={base64.b64encode(text.encode()).decode()}", f"uptime={uptime}", ""])


def test_the_text_of_a_lease_has_its_owner_and_its_times() -> None:
    read = read_at(1090)
    assert read.live is not None
    assert (read.last_number, read.live.number, read.live.id) == (7, 7, "7.3fa9c1d2")
    assert (read.age, read.remaining) == (90, 30)
    text = whose(read, datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC))
    assert text == "alice@ctl-1 (pyinfra deploy.py) since 11:58:30, 1 min 30 s ago"


@pytest.mark.parametrize("uptime", [1120, 5000, 999])
def test_a_lease_ends_by_the_hosts_own_clock_and_after_its_restart(uptime: int) -> None:
    read = read_at(uptime)
    assert read.lease is not None
    assert read.live is None
    assert read.remaining == 0


def test_a_host_without_a_lease() -> None:
    read = parse_seen(["fence=", "uptime=12"])
    assert read == SeenLease(0, 12, None)
    assert whose(read, datetime.now(UTC)) == "no run"


@pytest.mark.parametrize("content", ["lease=", "lease=%%%", "lease=AA=A"])
def test_a_lease_that_cannot_be_decoded_locks_nobody_out(content: str) -> None:
    assert parse_seen(["fence=3", content, "uptime=9"]) == SeenLease(3, 9, None)


@given(st.text())
def test_a_lease_that_makes_no_sense_has_ended(text: str) -> None:
    lease = parse_lease(text)
    assert lease is None or SeenLease(0, 10**12, lease).live is None


@pytest.mark.parametrize(("seconds", "text"), [(59, "59 s"), (185, "3 min 5 s"), (7800, "2 h 10 min")])
def test_spans_are_for_people(seconds: int, text: str) -> None:
    assert span(seconds) == text


# -- the scripts, run for real in a folder of their own

ALICE = LeaseHolder("alice", "ctl-1", "pyinfra deploy.py", "ctl-1 boot pid:[1]", 4711, 99)
BOB = LeaseHolder("bob o'neil", "ctl-2", "rackwright unlock")


@dataclass(frozen=True)
class Ground:
    """A folder that stands for a host."""

    folder: Path

    def here(self, script: str) -> str:
        return script.replace(STATE, f"{self.folder}/state").replace(RUN, f"{self.folder}/run")

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-c", self.here(script)], capture_output=True, text=True, check=False, timeout=30)

    def background(self, script: str) -> subprocess.Popen[str]:
        return subprocess.Popen(["sh", "-c", self.here(script)], stdout=subprocess.PIPE, text=True)

    def acquire(self, holder: LeaseHolder = ALICE, last_number: int = 0, **words: Any) -> Taken | SeenLease:
        done = self.run(acquire_script(last_number, holder, **words))
        assert done.returncode == 0, done.stderr
        return parse_acquired(done.stdout.splitlines())

    def take(self, holder: LeaseHolder = ALICE, last_number: int = 0, **words: Any) -> Taken:
        taken = self.acquire(holder, last_number, **words)
        assert isinstance(taken, Taken), taken
        return taken

    def reading(self) -> SeenLease:
        return parse_seen(self.run(read_script()).stdout.splitlines())

    def release(self, lease_id: str, patience: int = 1) -> None:
        script = host_script("lease_release", lease=LEASE, id=lease_id, patience=patience)
        assert self.run(script).returncode == 0

    def age(self, seconds: int) -> None:
        """Let the lease grow older."""
        file = self.folder / "run/lease"
        file.write_text(re.sub(r"(taken|expires)=(\d+)", lambda m: f"{m[1]}={int(m[2]) - seconds}", file.read_text()))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_a_lease_is_taken_read_renewed_and_given_back(ground: Ground) -> None:
    assert ground.reading().lease is None
    taken = ground.take()
    assert taken == Taken(f"1.{run_word()}", fresh=True)
    live = ground.reading().live
    assert live is not None
    assert (live.id, live.holder, ground.reading().last_number) == (taken.id, ALICE, 1)
    assert (ground.folder / "run/lease").stat().st_mode & 0o777 == 0o600
    ground.age(100)
    assert ground.reading().remaining <= 20
    assert ground.run(lease_checked("echo done", taken.id)).stdout == "done\n"
    assert ground.reading().remaining > TTL - 10
    assert ground.reading().age >= 100
    ground.release("1.00000000")
    assert ground.reading().live is not None
    ground.release(taken.id)
    after = ground.reading()
    assert after == SeenLease(1, after.uptime, None)


def test_a_live_lease_holds_off_everybody_else(ground: Ground) -> None:
    ground.take()
    held = ground.acquire(BOB, last_number=1)
    assert isinstance(held, SeenLease)
    assert held.live is not None
    assert held.live.holder == ALICE
    assert ground.reading().last_number == 1


def test_one_that_has_ended_is_taken_and_its_holder_is_fenced_off_text(ground: Ground) -> None:
    old = ground.take()
    ground.age(TTL + 1)
    new = ground.take(BOB, last_number=1)
    assert new.id.startswith("2.")
    assert not new.fresh, "a lease that was not given back may have had a command at work"
    refused = ground.run(lease_checked("echo must not be printed", old.id))
    assert (refused.returncode, refused.stdout) == (76, "")
    assert was_refused(refused.stderr.splitlines())
    text = why_lost(refused.stderr.splitlines(), datetime.now(UTC))
    assert "taken over by bob o'neil@ctl-2 (rackwright unlock)" in text or "taken away by bob o'neil@ctl-2" in text
    assert ground.run(lease_checked("echo done", new.id)).stdout == "done\n"


def test_a_lease_that_ran_out_unnoticed_is_still_ours(ground: Ground) -> None:
    taken = ground.take()
    ground.age(TTL + 1)
    assert ground.run(lease_checked("echo done", taken.id)).stdout == "done\n"
    assert ground.reading().live is not None


def test_a_burst_of_commands_writes_the_lease_once(ground: Ground) -> None:
    """Two programs fewer for each command of a first deploy; what is kept of the lease is all of it."""
    taken = ground.take()
    file = ground.folder / "run/lease"
    first, text = file.stat().st_ino, file.read_text()
    assert ground.run(lease_checked("echo done", taken.id)).stdout == "done\n"
    assert (file.stat().st_ino, file.read_text()) == (first, text)
    ground.age(20)
    assert ground.run(lease_checked("echo done", taken.id)).stdout == "done\n"
    assert file.stat().st_ino != first
    live = ground.reading().live
    assert live is not None
    assert (live.id, live.holder) == (taken.id, ALICE)
    assert file.stat().st_mode & 0o777 == 0o600


def test_unlocking_fences_off_a_holder_that_lives_text(ground: Ground) -> None:
    taken = ground.take()
    ground.take(BOB, last_number=1, displace=taken.id, ttl=0)
    assert ground.reading().live is None
    refused = ground.run(lease_checked("echo must not be printed", taken.id, writes=False))
    assert (refused.returncode, refused.stdout) == (76, "")
    text = why_lost(refused.stderr.splitlines(), datetime.now(UTC))
    assert "was taken away by bob o'neil@ctl-2 (rackwright unlock)" in text
    assert ground.take(last_number=2).id.startswith("3.")


def test_what_somebody_wrote_since_the_reading_is_told(ground: Ground) -> None:
    last_number = ground.reading().last_number
    ground.release(ground.take().id)
    assert not ground.take(BOB, last_number=last_number).fresh


def test_the_next_writer_waits_for_a_command_of_the_one_before(ground: Ground) -> None:
    taken = ground.take()
    slow = ground.background(lease_checked(f"echo begun; sleep 1; echo x >{ground.folder}/written", taken.id))
    assert slow.stdout is not None
    assert slow.stdout.readline() == "begun\n"
    ground.release(taken.id, patience=0)
    assert ground.reading().live is not None, "a lease is not given back under a command of its own"
    new = ground.take(BOB, last_number=1, displace=taken.id)
    assert (ground.folder / "written").exists()
    assert not new.fresh
    slow.communicate()


def test_a_restarted_host_and_a_torn_down_one_refuse_the_old_holder(ground: Ground) -> None:
    taken = ground.take()
    shutil.rmtree(ground.folder / "run")
    refused = ground.run(lease_checked("echo must not be printed", taken.id))
    assert (refused.returncode, refused.stdout) == (76, "")
    assert "the host was restarted" in why_lost(refused.stderr.splitlines(), datetime.now(UTC))
    shutil.rmtree(ground.folder / "state")
    ground.release(taken.id)
    assert list(ground.folder.iterdir()) == [], "looking and giving back leave nothing"


def test_of_many_at_once_one_gets_it(ground: Ground) -> None:
    script = acquire_script(0, ALICE)
    found = [ground.background(script) for _ in range(12)]
    answers = [parse_acquired(one.communicate()[0].splitlines()) for one in found]
    assert sum(isinstance(answer, Taken) for answer in answers) == 1


def test_a_broken_fence_or_lease_locks_nobody_out(ground: Ground) -> None:
    ground.take()
    (ground.folder / "run/lease").write_text("\0nonsense\nexpires=soon\n")
    (ground.folder / "state/fence").write_text("many\n")
    assert ground.reading().live is None
    assert ground.take(BOB).id == f"1.{run_word()}"


# -- this process


def test_this_process_lives_and_one_that_has_ended_is_gone() -> None:
    holder = this_holder()
    assert not is_gone(holder)
    child = subprocess.Popen(["sleep", "60"])
    other = replace(holder, pid=child.pid, started=started(child.pid) or 0)
    assert not is_gone(other)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(other), "a process of which only the remains are left has ended"
    child.wait()
    assert is_gone(other)
    assert is_gone(replace(holder, started=holder.started - 1)), "another process has that number now"


@pytest.mark.parametrize("home", ["", "another machine boot pid:[1]"])
def test_a_process_elsewhere_is_never_taken_for_dead(home: str) -> None:
    assert not is_gone(replace(this_holder(), place=home, pid=2**22 + 1))


def test_the_purpose_is_the_run_or_the_deploy_and_never_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("sys.argv", ["/x/bin/pyinfra", "inventory/lab.py", "deploy.py", "--data", "key=s3cret"])
    assert purpose() == "pyinfra lab.py deploy.py"
    monkeypatch.setenv(VARIABLE, Handover(record="/site/runs/20260102-030405-rollout.jsonl").text)
    assert purpose().split(", ") == ["pyinfra lab.py deploy.py", "run 20260102-030405-rollout"]


# -- unlock


def test_the_text_of_leased_and_unread_hosts_and_no_others() -> None:
    now = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
    ours = FILE.replace("place=ctl-1 boot 4026531836", f"place={this_holder().place}").replace(
        "pid=4711", "pid=4194305"
    )
    looks: dict[str, SeenLease | str] = {
        "a": read_at(1090),
        "b": read_at(5000),
        "c": SeenLease(),
        "d": "cannot be reached",
        "e": read_at(1090, ours),
    }
    assert lease_lines(looks, now) == [
        "a: alice@ctl-1 (pyinfra deploy.py) since 11:58:30, 1 min 30 s ago; ends in 30 s unless it is renewed",
        "d: cannot be reached",
        "e: alice@ctl-1 (pyinfra deploy.py) since 11:58:30, 1 min 30 s ago; its process on this machine has ended",
    ]
    assert lease_lines({"c": SeenLease()}, now) == ["no host is leased"]
