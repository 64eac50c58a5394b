"""A switch on its host: the real shell script with parts that pass or fail, and the judge that the host runs."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.proof.chat import chat, model_name, version
from rackwright.concerns.endpoint.proof.container_rows import RELEASE, gpus_inside, release_runs
from rackwright.concerns.endpoint.proof.gpu_errors import gpu_errors
from rackwright.concerns.endpoint.proof.proof_row import RULES, Answer, Question, is_refused, judge_safely, mark_of
from rackwright.concerns.endpoint.switch.balancer_hooks import ready_script
from rackwright.concerns.endpoint.switch.events import SwitchProgress
from rackwright.concerns.endpoint.switch.follow import TAKEN as TAKEN_CAUSE
from rackwright.concerns.endpoint.switch.job import join_script, started_script, wait_script
from rackwright.concerns.endpoint.switch.proving import JUDGE, Tried, prove_script, rows_of
from rackwright.hostside import host_script, job_script
from rackwright.hostside.packed import packed
from rackwright.plan.jobstream import Event, Heard, JobStream, text_of
from rackwright.settings.host_settings import EndpointSettings
from tests import texts

SHELLS = [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)]


@dataclass
class Ended:
    """How a transaction has ended."""

    status: int
    lines: list[str]
    steps: list[str]
    last: dict[str, str]
    marked: bool
    events: list[Event]


NONCE = "0b7f3c1e-7f0b-4d57-8a51-6f1f3f2f6f10"


def said_by(job: Path) -> list[Heard]:
    """Return the lines and events in a job's folder."""
    stream, events = JobStream(NONCE), job / "events"
    log = (job / "log").read_bytes()
    return [*stream.take(log, events.read_bytes() if events.exists() else b""), *stream.end()]


class Stage:
    """A folder that stands for a host's, and parts of a switch that note their turn and end as the test wants."""

    def __init__(self, folder: Path) -> None:
        self.job, self.home = folder / "job", folder / "home"
        self.job.mkdir()
        (self.job / "nonce").write_text(f"{NONCE}\n")
        self.home.mkdir()

    def script(self, failing: Sequence[str], words: Mapping[str, str]) -> str:
        parts = (
            "prepare",
            "forward",
            "prove",
            "commit",
            "keep_log",
            "back",
            "prove_back",
            "halt",
            "ready",
            "ready_back",
        )
        scripts = {part: f"echo {part} >>{self.job}/steps; {self._end(part, part in failing)}" for part in parts}
        scripts["prepare"] = f": >{self.home}/not-admitted; {scripts['prepare']}"
        given = {
            "trial": str(self.home / "trial"),
            "trying": "true",
            "release": "new",
            "previous": "old",
            "gate": "basic",
            "deadline": "1",
            "known": "no",
        }
        return job_script("transaction", **{"home": str(self.home), **given, **scripts, **words})

    def _end(self, part: str, fails: bool) -> str:
        if fails:
            return f"echo the {part} failed | tee $reason; exit 1"
        if part in ("ready", "ready_back"):
            return f"rm -f {self.home}/not-admitted"
        return f"cut -d' ' -f1 /proc/uptime >{self.job}/pointed" if part == "back" else "true"

    def start(self, *failing: str, **words: str) -> subprocess.Popen[str]:
        script = f"{self.script(failing, words)}"
        (self.job / "script").write_text(script)
        command = f"sh {self.job}/script >>{self.job}/log 2>&1"
        return subprocess.Popen(["sh", "-c", command], env={**os.environ, "JOB": str(self.job)}, text=True)

    def end(self, process: subprocess.Popen[str]) -> Ended:
        status = process.wait(30)
        last = dict(row.split("=", 1) for row in (self.home / "last-switch").read_text().splitlines())
        steps = (self.job / "steps").read_text().split()
        marked = (self.home / "not-admitted").exists()
        heard = said_by(self.job)
        lines = [one for one in heard if isinstance(one, str)]
        return Ended(status, lines, steps, last, marked, [one for one in heard if isinstance(one, Event)])

    def run(self, *failing: str, **words: str) -> Ended:
        return self.end(self.start(*failing, **words))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_good_release_is_committed_by_the_host_alone(stage: Stage) -> None:
    ended = stage.run()
    assert (ended.status, ended.steps) == (0, ["prepare", "forward", "prove", "commit", "ready"])
    assert (ended.last["release"], ended.last["outcome"], ended.last["reason"]) == ("new", "committed", "")
    assert not ended.marked


def test_a_part_may_be_longer_than_an_argument(stage: Stage) -> None:
    ended = stage.run(prove=f"echo prove >>{stage.job}/steps #{'x' * 200_000}")
    assert (ended.status, ended.steps) == (0, ["prepare", "forward", "prove", "commit", "ready"])


@pytest.mark.parametrize("failing", ["forward", "prove"])
def test_a_bad_one_rolls_back_and_that_is_proven(stage: Stage, failing: str) -> None:
    ended = stage.run(failing)
    assert ended.status == 3
    assert ended.steps[-5:] == [failing, "keep_log", "back", "prove_back", "ready_back"]
    assert "commit" not in ended.steps
    assert Event("failed", f"the {failing} failed") in ended.events
    assert (ended.last["outcome"], ended.last["reason"]) == ("rolled-back", f"the {failing} failed")
    progress = SwitchProgress("llm", f"{stage.home}/failed")
    for event in ended.events:
        progress.hear(event)
    assert progress.clocks is not None
    assert 0 <= progress.clocks.pointed <= progress.clocks.serving < 20


@pytest.mark.parametrize("failing", ["back", "prove_back"])
def test_rolling_back_that_fails_is_lost_and_no_client_let_in(stage: Stage, failing: str) -> None:
    ended = stage.run("prove", failing)
    assert (ended.status, ended.last["outcome"], ended.last["reason"]) == (4, "lost", "the prove failed")
    assert Event("lost", f"the {failing} failed") in ended.events
    assert "ready_back" not in ended.steps
    assert ended.marked


def test_with_nothing_to_roll_back_to_it_is_stopped(stage: Stage) -> None:
    ended = stage.run("prove", previous="")
    assert (ended.status, ended.steps[-2:]) == (4, ["keep_log", "halt"])
    assert Event("end", "stopped the prove failed") in ended.events
    assert all(event.kind != "lost" for event in ended.events)


def test_a_stop_that_fails_is_said(stage: Stage) -> None:
    ended = stage.run("prove", "halt", previous="")
    assert ended.status == 4
    assert Event("lost", "the halt failed") in ended.events


def test_a_preparation_that_fails_switches_nothing_and_lets_clients_in_again(stage: Stage) -> None:
    ended = stage.run("prepare")
    assert (ended.status, ended.steps) == (5, ["prepare", "ready_back"])
    assert Event("end", "not-switched the prepare failed") in ended.events
    assert not ended.marked


def test_a_ready_hook_that_fails_leaves_a_mark_for_the_next_run(stage: Stage) -> None:
    ended = stage.run("ready")
    assert (ended.status, ended.last["outcome"]) == (0, "committed")
    assert Event("not-admitted", "the ready failed") in ended.events
    assert ended.marked


def test_a_commit_that_cannot_be_written_is_told(stage: Stage) -> None:
    ended = stage.run("commit")
    assert (ended.status, ended.last["reason"]) == (6, "the commit failed")
    assert "keep_log" not in ended.steps


EVIL = r"no\n::kept /root/.docker/config.json\n::end committed\033]52;c;ZXZpbA==\a"
"""What an engine may answer: a shell's echo makes line breaks and escapes of it."""


@pytest.mark.parametrize("evil", [EVIL, EVIL.replace(r"\n", "\n"), f"{NONCE} 0 kept L3Jvb3QveC5sb2c="])
def test_nothing_that_is_printed_or_answered_becomes_protocol(stage: Stage, evil: str) -> None:
    text = shlex.quote(evil)
    ended = stage.run(prove=f"echo prove >>{stage.job}/steps; printf '%s\\n' {text} | tee $reason; exit 1")
    assert [event.kind for event in ended.events] == ["failed", "progress", "back", "end"]
    progress = SwitchProgress("llm", "/root/.docker")
    for heard in said_by(stage.job):
        assert "\n" not in progress.hear(heard).text
    assert progress.retained_log is None
    assert list(ended.last) == ["release", "outcome", "time", "reason"]


def test_a_word_from_the_gate_is_only_text(stage: Stage) -> None:
    running = stage.start(gate="full", deadline="20")
    say(stage, f"back a tool call: {EVIL}")
    ended = stage.end(running)
    assert ended.last["reason"].startswith(r"a tool call: no\n::kept /root")
    assert all(event.kind != "kept" for event in ended.events)


MEASURED = 'echo "$moment" >>$JOB/moments; [ "$moment" = before ] || echo disk >"$cause"'


@pytest.mark.parametrize("failing", ["prepare", "forward", "prove", "commit"])
def test_a_failure_brings_what_the_host_has_measured_of_itself(stage: Stage, failing: str) -> None:
    ended = stage.run(failing, faults=MEASURED)
    assert ended.events[0] == Event("cause", "disk"), "before what it explains"
    assert [event.kind for event in ended.events].count("cause") == 1
    assert (stage.job / "moments").read_text().split() == ["before", "after"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("faults", "cause"), [("true", "start"), (MEASURED, "disk")])
def test_a_part_says_what_kind_of_failure_it_is_and_a_measured_one_wins(
    stage: Stage, shell: str, faults: str, cause: str
) -> None:
    script = stage.script([], {"forward": 'echo start >"$cause"; exit 1', "faults": faults})
    words = [*([shell, "sh"] if shell == "busybox" else [shell]), "-c", script]
    (stage.job / "log").touch()
    subprocess.run(words, env={**os.environ, "JOB": str(stage.job)}, check=False, timeout=30)
    assert next(heard for heard in said_by(stage.job) if isinstance(heard, Event)) == Event("cause", cause)


def test_a_switch_that_goes_well_blames_nobody(stage: Stage) -> None:
    assert [event.kind for event in stage.run(faults="true").events] == ["end"]


def say(stage: Stage, decision: str) -> None:
    """Write what the control machine writes, once the host waits for it."""
    for _ in range(100):
        if (stage.job / "events").exists() and " word " in (stage.job / "events").read_text():
            break
        time.sleep(0.05)
    script = host_script("say_word", unit="u", folder=str(stage.job), word=decision)
    subprocess.run(["sh", "-c", f"systemctl() {{ true; }}\n{script}"], check=True)


def test_the_full_gate_waits_for_the_control_machines_word(stage: Stage) -> None:
    running = stage.start(gate="full", deadline="20")
    say(stage, "commit")
    ended = stage.end(running)
    assert (ended.status, ended.steps[-2:]) == (0, ["commit", "ready"])


def test_the_control_machine_can_send_it_back(stage: Stage) -> None:
    running = stage.start(gate="full", deadline="20")
    say(stage, "back a tool call: it's $HOME gone")
    ended = stage.end(running)
    assert (ended.status, ended.last["reason"]) == (3, "a tool call: it's $HOME gone")
    assert Event("cause", "check") in ended.events


def test_a_trial_that_is_over_blames_nothing(stage: Stage) -> None:
    running = stage.start(gate="full", deadline="20")
    say(stage, "over measured, never to be kept")
    ended = stage.end(running)
    assert (ended.status, ended.last["outcome"]) == (3, "rolled-back")
    assert ended.last["reason"] == "", "the next plan for this release has nothing to tell of it"
    assert all(event.kind != "cause" for event in ended.events), "no check has refused it"


def test_whoever_still_asks_can_hold_it_and_then_send_it_back(stage: Stage) -> None:
    """A bench measures for longer than the deadline, and says again and again that it is alive."""
    running = stage.start(gate="full", deadline="4")
    for _ in range(10):
        say(stage, "hold")
        time.sleep(0.8)
    assert running.poll() is None, "the deadline of 4 s is over twice"
    say(stage, "back measured")
    ended = stage.end(running)
    assert (ended.status, ended.last["reason"]) == (3, "measured")


def test_what_was_held_and_then_left_alone_rolls_back(stage: Stage) -> None:
    running = stage.start(gate="full", deadline="1")
    say(stage, "hold")
    ended = stage.end(running)
    assert (ended.status, ended.last["outcome"]) == (3, "rolled-back")
    assert ended.last["reason"].startswith("no word came within 1 s")


def test_without_a_word_it_rolls_back_at_the_deadline(stage: Stage) -> None:
    ended = stage.run(gate="full")
    assert (ended.status, ended.last["outcome"]) == (3, "rolled-back")
    assert ended.last["reason"].startswith(texts.NO_WORD.format(seconds=1))
    assert all(event.kind != "cause" for event in ended.events), "silence is not a refused check"


def admitted(stage: Stage, **words: str) -> subprocess.Popen[str]:
    """Start a switch that lets clients in before the commit."""
    scripts = {part: f"echo {part} >>{stage.job}/steps" for part in ("admit", "leave")}
    running = stage.start(gate="full", **{"deadline": "20", **scripts, **words})
    say(stage, "admit")
    return running


def test_clients_are_let_in_before_the_commit_and_stay(stage: Stage) -> None:
    running = admitted(stage)
    say(stage, "commit")
    ended = stage.end(running)
    assert (ended.status, ended.steps[3:]) == (0, ["admit", "ready", "commit"])
    assert not ended.marked


@pytest.mark.parametrize("message", ["back slow", ""])
def test_clients_that_came_on_trial_are_taken_away_before_it_rolls_back(stage: Stage, message: str) -> None:
    """Also where the control machine is lost."""
    running = admitted(stage, deadline="20" if message else "2")
    if message:
        say(stage, message)
    ended = stage.end(running)
    assert ended.status == 3
    assert ended.steps[3:] == ["admit", "ready", "leave", "keep_log", "back", "prove_back", "ready_back"]
    assert ended.last["reason"].startswith("slow" if message else "no word came within 2 s")


def test_a_hook_that_takes_no_clients_away_keeps_nothing_from_rolling_back(stage: Stage) -> None:
    running = admitted(stage, leave='echo "the drain hook" >"$reason"; echo hook >"$cause"; exit 1')
    say(stage, "back slow")
    ended = stage.end(running)
    assert (ended.status, ended.last["reason"]) == (3, "slow")
    assert Event("cause", "check") in ended.events


def test_a_ready_hook_that_fails_on_trial_is_run_again_after_the_commit(stage: Stage) -> None:
    running = admitted(
        stage, ready=f"echo ready >>{stage.job}/steps; [ -e {stage.job}/once ] || {{ : >{stage.job}/once; exit 1; }}"
    )
    say(stage, "commit")
    ended = stage.end(running)
    assert (ended.status, ended.steps[3:]) == (0, ["admit", "ready", "commit", "ready"])
    assert all(event.kind not in ("not-admitted", "cause") for event in ended.events)


def test_clients_of_a_release_without_another_one_are_taken_away_when_nobody_decides(stage: Stage) -> None:
    ended = stage.end(admitted(stage, previous="", deadline="2"))
    assert (ended.status, ended.steps[3:]) == (6, ["admit", "ready", "leave"])


def test_a_message_is_not_replaced_before_clients_are_let_in(stage: Stage) -> None:
    running = admitted(stage)
    say(stage, "hold")
    say(stage, "back slow")
    assert "admit" in stage.end(running).steps


def test_silence_stops_nothing_that_has_no_other_release(stage: Stage) -> None:
    ended = stage.run(gate="full", previous="")
    assert (ended.status, ended.steps) == (6, ["prepare", "forward", "prove"])


def test_silence_is_enough_for_a_release_that_was_proven_before(stage: Stage) -> None:
    assert stage.run(gate="full", previous="", known="yes").status == 0


def test_a_word_for_a_switch_that_has_ended_is_refused(tmp_path: Path) -> None:
    script = host_script("say_word", unit="u", folder=str(tmp_path), word="commit")
    done = subprocess.run(
        ["sh", "-c", f"systemctl() {{ false; }}\n{script}"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    assert "ended already" in done.stderr


# -- hooks


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["sh", "-c", 'echo "$RACKWRIGHT_ENDPOINT $RACKWRIGHT_PORT $RACKWRIGHT_RELEASE"'], 0, "llm 8123 abc"),
        (["echo", "it's; $HOME"], 0, "it's; $HOME"),
        (["sh", "-c", "exit 7"], 1, "the ready_hook ended with status 7"),
        (["/no/such/hook"], 1, "the ready_hook ended with status 127"),
        (["sleep", "9"], 1, "the ready_hook took more than 1 s"),
    ],
)
def test_a_hook_knows_its_endpoint_and_has_a_time_limit(
    tmp_path: Path, words: list[str], status: int, message: str
) -> None:
    endpoint = EndpointSettings.model_validate({"ready_hook": words, "port": 8123, "hook_timeout": 1})
    done = subprocess.run(
        ["sh", "-c", ready_script("llm", endpoint, "abc")],
        env={**os.environ, "reason": str(tmp_path / "reason"), "cause": str(tmp_path / "cause")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status
    assert message in done.stdout.splitlines()
    if status:
        assert (tmp_path / "reason").read_text().startswith(message)
        assert (tmp_path / "cause").read_text() == "hook\n"


LOADING = """
event() { printf '%s\\n' "$2"; }
port_holder() { printf %s "${taken_by:-}"; }
sleep() { :; }
systemctl() {
  [ "$waited" -ge 5 ] && echo ActiveState=active || echo ActiveState=activating
  echo SubState=running
}
journalctl() { printf '%s\\n' "$journal"; }
"""
NO_CONTAINER = "Error: No such container: rackwright-llm"


@pytest.mark.parametrize(
    ("journal", "message"),
    [
        ("Loading weights\n", "loading, 5 s: Loading weights"),
        (f"{NO_CONTAINER}\n", "loading, 5 s: its container starts"),
        (f"Loading weights\n{NO_CONTAINER}\n", "loading, 5 s: its container starts"),
    ],
)
def test_that_the_unit_found_no_container_to_remove_is_not_told_as_an_error(journal: str, message: str) -> None:
    variables = {**os.environ, "journal": journal.rstrip("\n"), "unit": "u", "load_timeout": "9"}
    done = subprocess.run(
        ["sh", "-c", LOADING + host_script("await_start")], env=variables, check=False, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [message, "ready after 5 s"]


def test_a_load_names_who_shares_the_port_while_it_waits() -> None:
    """With SO_REUSEPORT both listen, the start is never ready, and the wait may be an hour."""
    holder = "port 8000 is taken by perl, pid 7"
    taken = f"{holder}; next: end it"
    variables = {**os.environ, "journal": "GET /health 200", "unit": "u", "load_timeout": "9", "taken_by": taken}
    done = subprocess.run(
        ["sh", "-c", LOADING + host_script("await_start")], env=variables, check=False, capture_output=True, text=True
    )
    loading, ready = done.stdout.splitlines()
    assert holder in loading
    assert "next:" not in loading
    assert ready == "ready after 5 s"


DYING = """
event() { printf '%s\\n' "$2"; }
sleep() { :; }
journalctl() { :; }
port_holder() { printf %s "${taken_by:-}"; }
durable_file() { cat >/dev/null; }
systemctl() {
  case $1 in
    show) echo "ExecMainStartTimestampMonotonic=$main"; echo "ActiveState=$state"; echo SubState=running ;;
    restart) echo "docker restarted" ;;
    start) [ -z "${started_once:-}" ] || { echo started; main=9000000000000000 state=$then; }; started_once=yes ;;
  esac
}
state=failed
"""
BEFORE, AFTER = "1", "9000000000000000"
"""When its process began, in microseconds since boot: long ago, and later than any test."""
SWITCHING = "switching to release abc"
RESTARTED = ["an earlier start has ended: starting again", "started"]
DEAD = "the server died after 0 s; its last lines:"


@pytest.mark.parametrize(
    ("parts", "main", "then", "ends"),
    [
        (("start", "await_start"), BEFORE, "active", [SWITCHING, *RESTARTED, "ready after 0 s"]),
        (("start", "await_start"), BEFORE, "failed", [SWITCHING, *RESTARTED, DEAD]),
        (("start", "await_start"), AFTER, "active", [SWITCHING, DEAD]),
        (("await_start",), BEFORE, "active", [DEAD]),
    ],
)
def test_the_end_of_what_had_begun_before_it_was_asked_for_is_not_the_releases(
    tmp_path: Path, parts: Sequence[str], main: str, then: str, ends: list[str]
) -> None:
    """A group's head that came up before its member restarted was in line with what that one ended."""
    words = {"unit": "u", "load_timeout": "9", "home": str(tmp_path), "release": "abc", "main": main, "then": then}
    script = DYING + "".join(map(host_script, parts))
    done = subprocess.run(
        ["sh", "-c", script], env={**os.environ, **words}, check=False, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ends, done.stderr
    assert done.returncode == (0 if "ready" in ends[-1] else 1)


STEPPED = """
date() {
  case $1 in +%s) ;; *) command date "$@"; return ;; esac
  echo $(($(command date +%s) - $(cat "$back" 2>/dev/null || echo 0)))
}
systemctl() {
  [ -s "$back" ] || echo "$by" >"$back"
  echo "ExecMainStartTimestampMonotonic=$main"; echo ActiveState=failed
}
journalctl() { printf '%s\\n' "$*" >>"$calls"; }
since='2026-11-26 12:00:00.123456'
"""


@pytest.mark.parametrize(("by", "since"), [("0", "12:00:00"), ("-3600", "12:00:00"), ("7200", "(10:00:0|09:59:5)")])
def test_a_clock_that_is_put_back_during_a_load_hides_no_line_of_it(tmp_path: Path, by: str, since: str) -> None:
    words = {"unit": "u", "load_timeout": "9", "main": AFTER, "by": by}
    words |= {name: str(tmp_path / name) for name in ("back", "calls", "reason", "cause")}
    script = DYING + STEPPED + host_script("await_start")
    done = subprocess.run(
        ["sh", "-c", script], env={**os.environ, **words}, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "")
    calls = [call for call in (tmp_path / "calls").read_text().splitlines() if "--since" in call]
    assert calls
    assert all(re.search(f"--since 2026-11-26 {since}", call) for call in calls)


def test_a_stranger_on_the_port_is_why_a_start_failed_and_the_hosts_fault(tmp_path: Path) -> None:
    words = {
        "unit": "u",
        "load_timeout": "9",
        "main": AFTER,
        "taken_by": "port 8000 is taken by python3, pid 7; next: X",
    }
    places = {name: str(tmp_path / name) for name in ("reason", "cause")}
    script = DYING + host_script("await_start")
    done = subprocess.run(
        ["sh", "-c", script], env={**os.environ, **words, **places}, check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert (tmp_path / "cause").read_text() == "stranger\n"
    taken = texts.TAKEN.format(port=8000, by="python3, pid 7; next: X")
    assert (tmp_path / "reason").read_text().startswith(taken)


HELD = "docker: Error response from daemon: driver failed: Bind for 0.0.0.0:8000 failed: port is already allocated."
BY_DOCKERD = (
    "dockerd holds port 8000 and no container has it, as after a power cut (github.com/moby/moby/issues/25981); next: "
    "systemctl restart docker on this host, then run the same command again"
)


@pytest.mark.parametrize(
    ("log", "others", "why"),
    [
        (HELD, "echo", f": {BY_DOCKERD}"),
        (HELD, "echo 0123456789ab", ""),
        (HELD, "exit 1", ""),
        ("out of memory", "echo", ""),
    ],
    ids=["no process has it", "another container has it", "docker does not say", "another end"],
)
def test_a_port_that_dockerd_kept_from_a_power_cut_is_told_with_the_way_out(
    tmp_path: Path, log: str, others: str, why: str
) -> None:
    (tmp_path / "docker").write_text(f"#!/bin/sh\n{others}\n")
    (tmp_path / "docker").chmod(0o755)
    stub = f"journalctl() {{ [ $1 = --sync ] || echo '{log}'; }}\n"
    words = {"unit": "u", "load_timeout": "9", "main": AFTER, "reason": str(tmp_path / "reason")}
    words["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    script = DYING + stub + host_script("await_start")
    done = subprocess.run(
        ["sh", "-c", script], env={**os.environ, **words}, check=False, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [f"the server died after 0 s{why}; its last lines:", log], done.stderr
    assert (tmp_path / "reason").read_text() == f"the server died after 0 s{why}\n"


FREED = "dockerd holds port 8000 and no container has it, as after a power cut: restarting dockerd, which runs nothing"


ANSWERS = 'docker_start_waits() { :; }\ntimeout() { shift; "$@"; }\n'
"""Of a host on which dockerd can be restarted; its systemctl is a function."""


@pytest.mark.parametrize(
    ("runs", "then", "ends"),
    [
        ("", "active", [FREED, "docker restarted", "started", "ready after 0 s"]),
        ("", "failed", [FREED, "docker restarted", "started", f"{DEAD.partition(';')[0]}: {BY_DOCKERD}"]),
        ("0123456789ab", "active", [f"{DEAD.partition(';')[0]}: {BY_DOCKERD}"]),
    ],
    ids=["it is free then", "it is not", "a container of somebody's would go down"],
)
def test_a_switch_frees_a_port_that_dockerd_kept_where_nothing_else_runs(
    tmp_path: Path, runs: str, then: str, ends: list[str]
) -> None:
    docker = f"#!/bin/sh\ncase $* in *publish*) ;; *) echo {runs} ;; esac\n"
    (tmp_path / "docker").write_text(docker)
    (tmp_path / "docker").chmod(0o755)
    stub = f"{ANSWERS}journalctl() {{ [ $1 = --sync ] || echo '{HELD}'; }}\n"
    words = {"unit": "u", "load_timeout": "9", "main": AFTER, "then": then}
    words["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    script = f"{DYING}started_once=yes\n{stub}{host_script('free_port')}{host_script('await_start')}"
    done = subprocess.run(
        ["sh", "-c", script], env={**os.environ, **words}, check=False, capture_output=True, text=True
    )
    printed = [output_line for output_line in done.stdout.splitlines() if output_line != HELD]
    assert printed == [
        output_line if "died" not in output_line else f"{output_line}; its last lines:" for output_line in ends
    ], done.stderr
    assert done.returncode == (0 if "ready" in ends[-1] else 1)


LEFT = "docker: Error response from daemon: endpoint with name rackwright-llm already exists in network bridge."


def test_a_network_that_docker_kept_of_a_container_that_is_gone_is_freed_once_text(tmp_path: Path) -> None:
    """As after a file system of Docker's that was read-only for a while."""
    printed, _, _ = died(tmp_path, LEFT, 125, runs="")
    assert printed[:2] == [
        "Docker has the network of a container that is gone: restarting dockerd, which runs nothing",
        "docker restarted",
    ]
    assert "docker restarted" not in died(tmp_path, LEFT, 125, runs="0123")[0]


@pytest.mark.parametrize(
    ("script", "frees"),
    [(started_script("llm", 9), True), (join_script("llm", 9), True), (wait_script("llm", 9), False)],
)
def test_a_port_is_freed_by_a_start_and_by_a_run_that_joins_a_load_and_not_by_a_proof(
    tmp_path: Path, script: str, frees: bool
) -> None:
    """A run may meet the unit between two of its own tries; RW2411 would leave it to the next run, or to the watch."""
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    idle = DYING.replace("  esac", "    is-active) return 1 ;;\n  esac")
    stubs = f"{idle}{ANSWERS}journalctl() {{ [ $1 = --sync ] || echo '{HELD}'; }}\n"
    for name in re.findall(r"^(\w+)\(\) ", stubs, re.MULTILINE):
        script = re.sub(rf"^{name}\(\) ", f"real_{name}() ", script, flags=re.MULTILINE)
    words = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "main": AFTER, "then": "active", "started_once": "yes"}
    done = subprocess.run(
        ["sh", "-c", stubs + script], env={**os.environ, **words}, check=False, capture_output=True, text=True
    )
    assert (FREED in done.stdout, done.returncode) == (frees, 0 if frees else 1), done.stdout + done.stderr


# -- what Docker refuses

NO_CHAIN = (
    f"docker: Error response from daemon: driver failed programming external connectivity on endpoint rackwright-llm "
    f"({64 * 'a'}):  (iptables failed: iptables --wait -t nat -A DOCKER -p tcp -d 0/0 --dport 8000 -j DNAT: "
    "iptables: No chain/target/match by that name."
)
NO_CHAIN_SAID = (
    "Docker could not start the container: driver failed programming external connectivity on endpoint rackwright-llm:"
    "  (iptables failed: iptables --wait -t nat -A DOCKER -p tcp -d 0/0 --dport 8000 -j DNAT: iptables: No "
    "chain/target/match by that name."
)
DAEMON = "docker: Error response from daemon: "


def died(
    folder: Path, log: str, status: int, lacks: str = "", runs: str = "x", waits: str = ""
) -> tuple[list[str], str, str]:
    """Return the output, the reason and the cause when the unit's process has ended so, with this last line."""
    (folder / "docker").write_text(f"#!/bin/sh\ncase $1 in info) ;; *) echo '{runs}' ;; esac\n")
    (folder / "docker").chmod(0o755)
    (folder / "log").write_text(f"{log}\nSee 'docker run --help'.\n")
    stub = f"journalctl() {{ [ $1 = --sync ] || cat {folder}/log; }}\ndocker_lacks() {{ printf '%b' '{lacks}'; }}\n"
    silent = f"{ANSWERS}docker_start_waits() {{ printf '%s' '{waits}'; }}\n"
    words = {"unit": "u", "load_timeout": "9", "main": AFTER, "then": "active", "ended": str(status)}
    words |= {name: str(folder / name) for name in ("reason", "cause")}
    words["PATH"] = f"{folder}:{os.environ['PATH']}"
    dying = DYING.replace("echo SubState=running", 'echo SubState=running; echo "ExecMainStatus=$ended"')
    script = f"{dying}started_once=yes\n{silent}{stub}{host_script('free_port')}{host_script('await_start')}"
    for name in ("reason", "cause"):
        (folder / name).write_text("")
    done = subprocess.run(
        ["sh", "-c", script], env={**os.environ, **words}, check=False, capture_output=True, text=True
    )
    assert done.stderr == ""
    reason, cause = ((folder / name).read_text().strip() for name in ("reason", "cause"))
    return done.stdout.splitlines(), reason, cause


@pytest.mark.parametrize(
    ("log", "status", "cause", "reason"),
    [
        (NO_CHAIN, 125, "docker", NO_CHAIN_SAID),
        (f"{DAEMON}unknown or invalid runtime name: nvidia.", 125, "docker", "unknown or invalid runtime name: nvidia"),
        (
            f"{DAEMON}failed to create task: fork/exec /usr/bin/nvidia-container-runtime: no such file",
            127,
            "docker",
            "fork",
        ),
        (f"{DAEMON}failed to set up container networking: could not find bridge docker0", 125, "docker", "docker0"),
        ("docker: Cannot connect to the Docker daemon at unix:///run/docker.sock.", 125, "docker", "Cannot connect"),
        ("unknown flag: --no-such-option", 125, "start", "unknown flag: --no-such-option"),
        ('invalid argument "12q" for "--shm-size" flag: invalid size: \'12q\'', 125, "start", "--shm-size"),
        (f"{DAEMON}invalid CapAdd: unknown capability: CAP_NONE.", 125, "start", "CAP_NONE"),
        (f'{DAEMON}runc create failed: exec: "serve": executable file not found in $PATH', 127, "start", "serve"),
        (NO_CHAIN, 1, "start", "the server died after 0 s"),
        ("out of memory", 125, "start", "the server died after 0 s"),
    ],
)
def test_what_docker_refuses_is_the_hosts_fault_unless_it_is_the_request(
    tmp_path: Path, log: str, status: int, cause: str, reason: str
) -> None:
    """A server may print Docker's words, and end with its status: not both by accident."""
    _, message, found = died(tmp_path, log, status)
    assert (found, reason in message) == (cause, True), message


def test_chains_that_are_gone_follow_dockers_own_words_with_the_way_out(tmp_path: Path) -> None:
    _, message, cause = died(tmp_path, NO_CHAIN, 125, lacks="nat DOCKER\\nfilter DOCKER\\n")
    gone = texts.CHAINS_GONE.format(chains="nat DOCKER, filter DOCKER")
    assert message.startswith(f"{NO_CHAIN_SAID}: {gone}; next: systemctl restart")
    assert (cause, len(message) < 600) == ("docker", True)


def test_no_dockerd_is_restarted_that_would_not_come_up(tmp_path: Path) -> None:
    printed, _, _ = died(tmp_path, NO_CHAIN, 125, lacks="nat DOCKER\\n", runs="", waits="firewalld is silent")
    assert "docker restarted" not in printed
    assert "firewalld is silent" in "".join(printed)


def test_a_switch_has_the_chains_made_again_where_dockerd_runs_nothing(tmp_path: Path) -> None:
    printed, message, _ = died(tmp_path, NO_CHAIN, 125, lacks="nat DOCKER\\n", runs="")
    mended = "Docker's chains are gone (nat DOCKER): restarting dockerd, which runs nothing"
    assert printed == [mended, "docker restarted", "started", "ready after 0 s"]
    assert message == ""
    printed, _, _ = died(tmp_path, NO_CHAIN, 125, runs="")
    assert "docker restarted" not in printed, "something else is wrong"


# -- the judge of the host

BASE = "http://127.0.0.1:8000"
ROWS = (
    release_runs("rackwright-llm", "abc", "123"),
    gpus_inside("rackwright-llm", 2),
    model_name(BASE, "m"),
    version(BASE, "1.1"),
    chat(BASE, "m"),
    gpu_errors("/var/lib/rackwright/endpoints/llm"),
)
CHAT = json.dumps({"choices": [{"message": {"content": "42"}}]})
GOOD = [
    Answer(0, "abc 123", 0),
    Answer(0, "GPU 0: B200\nGPU 1: B200", 0),
    Answer(200, '{"data": [{"id": "m"}]}', 0.1),
    Answer(200, '{"version": "1.1"}', 0.1),
    Answer(200, CHAT, 0.5),
    Answer(0, "", 0),
]
BAD = {
    "another release": (0, Answer(0, "abd 123", 0)),
    "other GPUs": (0, Answer(0, "abc 124", 0)),
    "no container": (0, Answer(0, "", 0)),
    "a GPU is gone": (1, Answer(0, "GPU 0: B200", 0)),
    "nvidia-smi fails": (1, Answer(255, "Failed to initialize NVML", 0)),
    "another model": (2, Answer(200, '{"data": [{"id": "other"}]}', 0.1)),
    "not a body": (2, Answer(200, "<html>", 0.1)),
    "an old version": (3, Answer(200, '{"version": "1.0"}', 0.1)),
    "wrong": (4, Answer(200, CHAT.replace("42", "142"), 0.1)),
    "repeats": (4, Answer(200, CHAT.replace("42", "!" * 40), 0.1)),
    "empty": (4, Answer(200, CHAT.replace('"42"', "null"), 0.1)),
    "an error": (4, Answer(500, "Internal Server Error", 0.1)),
    "no answer": (4, Answer(0, "curl: (7) Failed to connect", 0)),
    "a broken GPU": (5, Answer(0, "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.", 0)),
    "a program's end": (5, Answer(0, "NVRM: Xid (PCI:0000:1b:00): 45, pid=1", 0)),
}


def judged(folder: Path, answers: Sequence[Answer | str | None]) -> tuple[int, list[dict[str, object]], str]:
    """Run the packed judge in a Python that has nothing else of Rackwright."""
    (folder / "rows.json").write_text(json.dumps(rows_of(ROWS)))
    for number, answer in enumerate(answers):
        if isinstance(answer, Answer):
            (folder / str(number)).write_text(f"{answer.body}\n{answer.status} {answer.seconds}")
        elif isinstance(answer, str):
            (folder / f"{number}.error").write_text(answer)
    (folder / "judge.pyz").write_bytes(base64.b64decode(packed(*JUDGE)))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", str(folder / "judge.pyz"), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    lines = done.stdout.splitlines()
    rows = [json.loads(row.removeprefix("row ")) for row in lines if row.startswith("row ")]
    return done.returncode, rows, "".join(row for row in lines if row.startswith("reason "))


def test_the_hosts_judge_passes_what_is_good(tmp_path: Path) -> None:
    status, rows, reason = judged(tmp_path, GOOD)
    assert (status, reason) == (0, "")
    assert [row["mark"] for row in rows] == ["proved"] * len(ROWS)


@pytest.mark.parametrize("case", BAD)
def test_the_hosts_judge_is_as_strict_as_the_control_machines(tmp_path: Path, case: str) -> None:
    number, bad = BAD[case]
    answers = [*GOOD[:number], bad, *GOOD[number + 1 :]]
    status, rows, reason = judged(tmp_path, answers)
    here = [judge_safely(question, answer) for question, answer in zip(ROWS, answers, strict=True)]
    marks = [mark_of(one, is_refused(row, one)) for row, one in zip(ROWS, here, strict=True)]
    # What another release, or none, answers says nothing: least of all of the host's GPUs.
    judged_rows = 1 if ROWS[number].name == RELEASE else len(ROWS)
    assert [row["mark"] for row in rows] == marks[:judged_rows]
    assert [row["seen"] for row in rows] == [one.text for one in here][:judged_rows]
    assert status == (3 if "refused" in marks else 0)
    assert (ROWS[number].name in reason) == ("refused" in marks)


@pytest.mark.parametrize(("missing", "observed"), [("docker is gone", "docker is gone"), (None, "it was never asked")])
def test_a_question_that_could_not_be_asked_is_refused(tmp_path: Path, missing: str | None, observed: str) -> None:
    status, rows, _ = judged(tmp_path, [missing, *GOOD[1:]])
    assert status == 3
    assert rows[0] == {
        "row": ROWS[0].name,
        "mark": "refused",
        "seen": f"could not be asked: {observed}",
        "figure": None,
    }


def test_hosts_build_the_very_same_rows_again() -> None:
    for row, sent in zip(ROWS, json.loads(json.dumps(rows_of(ROWS))), strict=True):
        again = RULES[sent["rule"]](**sent["arguments"])
        assert (again.name, again.script, again.stdin, again.timeout, again.severity) == (
            row.name,
            row.script,
            row.stdin,
            row.timeout,
            row.severity,
        )


def test_a_row_that_hosts_do_not_know_is_never_left_out_silently() -> None:
    row = Question("mine", "true", ROWS[0].judge)
    with pytest.raises(ValueError, match="row 'mine'"):
        rows_of([row])


DOCKER = """#!/bin/sh
case "$1" in
  inspect) echo abc 123 ;;
  rm) exit 1 ;;
  run) shift; echo "$*" >"$JOB/ran"; exec {python} -I -B "$JOB/answers/judge.pyz" "$JOB/answers" ;;
esac
"""


def proving(folder: Path, docker: str, *rows: Question) -> tuple[int, str, str]:
    """Run the script that asks and judges, with a `docker` of our own. Returns status, output and reason."""
    (folder / "docker").write_text(docker.format(python=sys.executable))
    (folder / "docker").chmod(0o755)
    reason = folder / "reason"
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "JOB": str(folder), "reason": str(reason)}
    env["cause"] = str(folder / "cause")
    script = prove_script("llm", Tried("abc", Binding(("GPU-1",)), "engine@sha256:1", rows))
    (folder / "nonce").write_text(f"{NONCE}\n")
    with (folder / "log").open("w") as log:
        done = subprocess.run(["sh", "-c", script], env=env, stdout=log, stderr=log, check=False)
    output = "\n".join(map(text_of, said_by(folder)))
    return done.returncode, output, reason.read_text() if reason.exists() else ""


def test_questions_are_asked_on_the_host_and_judged_in_the_image(tmp_path: Path) -> None:
    status, output, reason = proving(tmp_path, DOCKER, release_runs("rackwright-llm", "abc", "123"))
    assert (status, reason) == (0, ""), output
    assert "proved" in output
    ran = (tmp_path / "ran").read_text()
    assert "--network none" in ran
    assert "engine@sha256:1" in ran


def test_a_wrong_answer_refuses_on_the_host(tmp_path: Path) -> None:
    status, output, reason = proving(
        tmp_path, DOCKER, release_runs("rackwright-llm", "it's", "123"), chat("http://[::1]:1", "m")
    )
    assert status == 1
    assert output.count('"mark": "refused"') == 1
    assert "runs abc, expected it's" in reason
    (tmp_path / "2").mkdir()
    status, output, reason = proving(
        tmp_path / "2", DOCKER, release_runs("rackwright-llm", "abc", "123"), chat("http://[::1]:1", "m")
    )
    assert status == 1
    assert output.count('"mark": "refused"') == 1
    assert " a chat answer: " in reason
    assert "(curl: (7)" in reason


KIND = TAKEN_CAUSE.cause.value
TAKEN = "port 8000 is taken by perl, pid 7, user root, at 0.0.0.0; next: X"


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        (f"{KIND}: {TAKEN}\n\n0 0", KIND),
        (f"curl: (7) not asked: {TAKEN}\n0 0.1", KIND),
        ("curl: (7) not asked: its container does not run\n0 0.1", "check"),
        (f"curl: (7) not asked: {TAKEN}\n200 0.1", "check"),
        (f"curl: (7) not asked: {TAKEN}\ncurl: (18) transfer closed\n0 0.1", "check"),
    ],
    ids=["at first", "between two requests", "a container that ended", "said by a server", "cut by a server"],
)
def test_who_takes_the_port_during_the_proof_is_why_and_no_server_can_say_so(
    tmp_path: Path, printed: str, cause: str
) -> None:
    (tmp_path / "printed").write_text(f"{printed}\n")
    row = replace(chat("http://[::1]:1", "m"), script=f"cat {tmp_path}/printed")
    status, output, _ = proving(tmp_path, DOCKER, row)
    assert status == 1, output
    assert (tmp_path / "cause").read_text() == f"{cause}\n"


LEFT_BEHIND = """#!/bin/sh
case "$1" in
  inspect) if [ "$2" = --type ]; then [ -e "$JOB/left" ] && echo LABEL; else echo abc 123; fi ;;
  rm) rm "$JOB/left"; echo "$*" >"$JOB/removed" ;;
  run)
    [ ! -e "$JOB/left" ] || {{ echo "Conflict. The container name is already in use" >&2; exit 125; }}
    exec {python} -I -B "$JOB/answers/judge.pyz" "$JOB/answers" ;;
esac
"""


@pytest.mark.parametrize(("label", "ends"), [("judge", 0), ("''", 1)])
def test_a_judge_that_an_earlier_try_has_left_goes_and_somebody_elses_container_stays(
    tmp_path: Path, label: str, ends: int
) -> None:
    (tmp_path / "left").touch()
    docker = LEFT_BEHIND.replace("LABEL", label)
    status, output, reason = proving(tmp_path, docker, release_runs("rackwright-llm", "abc", "123"))
    assert status == ends, output
    assert (tmp_path / "removed").exists() == (ends == 0)
    assert (tmp_path / "left").exists() == (ends == 1)
    assert ends == 0 or "Conflict" in reason


def test_what_cannot_be_judged_is_not_proven(tmp_path: Path) -> None:
    status, output, reason = proving(tmp_path, "#!/bin/sh\necho no such image >&2; exit 125\n", ROWS[0])
    assert status == 1
    assert "(status 125): no such image" in reason
    assert "could not be judged" in output


@pytest.mark.parametrize("shell", SHELLS)
def test_every_part_of_the_switch_is_posix_sh(shell: str, tmp_path: Path) -> None:
    names = (
        "transaction",
        "prove",
        "drain",
        "hook",
        "say_word",
        "pointed_at",
        "point",
        "print_log",
        "start",
        "await_start",
        "write_release",
        "commit",
        "keep_log",
        "job_start",
        "job_follow",
    )
    for name in names:
        (tmp_path / name).write_text(job_script(name))
        words = [shell, "sh"] if shell == "busybox" else [shell]
        subprocess.run([*words, "-n", str(tmp_path / name)], check=True)


@pytest.mark.parametrize(
    ("failing", "words", "stays"),
    [
        ((), {}, False),
        (("prove",), {}, False),
        (("prove", "back"), {}, False),
        (("forward",), {"previous": ""}, False),
        (("commit",), {}, True),
        (("prepare",), {}, True),
    ],
)
def test_the_trial_lies_there_until_it_is_decided(
    stage: Stage, failing: tuple[str, ...], words: dict[str, str], stays: bool
) -> None:
    trial = stage.home / "trial"
    trial.write_text("an earlier switch's\n")
    stub = f"[ $(cat {trial}) = trying ] || echo gone >>{stage.job}/steps; "
    ended = stage.run(*failing, trying="trying", **words, **({} if "prove" in failing else {"prove": stub}))
    assert "gone" not in ended.steps
    assert trial.exists() is stays
    assert not stays or trial.read_text() == ("trying" if failing == ("commit",) else "an earlier switch's\n")
