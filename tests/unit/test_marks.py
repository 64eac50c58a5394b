"""Marks of a host: one file a writer, the word that follows from them, and what an ended run leaves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.concerns.drained import SeenDrained
from rackwright.concerns.endpoint.switch.marking import mark_script, unmark_script
from rackwright.concerns.marks import Mark, parse_mark_file, quarantine_script, release_script
from rackwright.hostside import host_text


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "units").mkdir()
    (tmp_path / "state").mkdir()
    (tmp_path / "job").mkdir()
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(f'#!/bin/sh\ncat "{tmp_path}/is-active"\n')
    systemctl.chmod(0o755)
    return tmp_path


def run(host: Path, script: str) -> subprocess.CompletedProcess[str]:
    text = script.replace("/var/lib/rackwright", f"{host}/state").replace("/run/systemd/units", f"{host}/units")
    text = text.replace("/run/rackwright/lease", f"{host}/lease")
    environment = {"PATH": f"{host}:/usr/bin:/bin", "JOB": f"{host}/job", "LC_ALL": "C"}
    return subprocess.run(["sh"], input=text, text=True, capture_output=True, env=environment, check=False)


def endpoint(host: Path, state: str = "active", proven: str = "a") -> None:
    home = host / "state/endpoints/e"
    for release in ("a", "b"):
        (home / "releases" / release).mkdir(parents=True)
    (home / "current").symlink_to("releases/a")
    (home / "proven").symlink_to(f"releases/{proven}")
    (host / "units/invocation:rackwright-e.service").symlink_to("x")
    (host / "is-active").write_text(f"{state}\n")


def marked(host: Path, name: str, state: str) -> None:
    assert (
        run(host, host_text("durable.sh") + host_text("marks.sh") + f"mark {name} {state} me why 4.ab").returncode == 0
    )


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ({"trial-e": "up"}, "ready up\n"),
        ({"trial-e": "drain"}, "down #trial\n"),
        ({"sick-e": "up"}, "down #trial\n"),
        ({"trial-e": "up", "sick-e": "down"}, "down #sick\n"),
        ({"trial-e": "up", "watch-e": "drain"}, "drain\n"),
    ],
)
def test_a_release_on_trial_gets_clients_where_its_job_lets_them_in(
    host: Path, marks: dict[str, str], expected: str
) -> None:
    endpoint(host, proven="b")
    for name, state in marks.items():
        marked(host, name, state)
    assert answer(host) == expected


def answer(host: Path) -> str:
    return run(host, host_text("marks.sh") + "word_of e").stdout


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ({}, "ready up\n"),
        ({"trial-e": "drain"}, "drain\n"),
        ({"trial-e": "down"}, "down #trial\n"),
        ({"trial-e": "drain", "sick-e": "down"}, "down #sick\n"),
        ({"watch-e": "down", "trial-e": "drain"}, "down #watch\n"),
        ({"trial-other": "down"}, "ready up\n"),
        ({"quarantine": "up"}, "ready up\n"),
    ],
)
def test_the_word_is_the_worst_of_an_endpoints_marks(host: Path, marks: dict[str, str], expected: str) -> None:
    endpoint(host)
    for name, one in marks.items():
        marked(host, name, one)
    assert answer(host) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("active", "ready up\n"), ("activating", "down #loading\n"), ("failed", "down #stopped\n"),
        ("deactivating", "down #stopped\n"), ("", "ready up\n"),
    ],
)  # fmt: skip
def test_the_word_follows_the_unit(host: Path, state: str, expected: str) -> None:
    endpoint(host, state)
    assert answer(host) == expected


def test_an_operators_drain_an_unproven_release_and_a_damaged_mark(host: Path) -> None:
    endpoint(host, proven="b")
    assert answer(host) == "down #trial\n"
    (host / "state/endpoints/e/proven").unlink()
    assert answer(host) == "down #trial\n"
    (host / "state/endpoints/e/proven").symlink_to("releases/a")
    (host / "state/drained").write_text("")
    assert answer(host) == "drain\n"
    (host / "state/marks").mkdir()
    (host / "state/marks/watch-e").write_text("word=")
    assert answer(host) == "down #watch\n"
    (host / "units/invocation:rackwright-e.service").unlink()
    (host / "state/marks/watch-e").unlink()
    assert answer(host) == "down #stopped\n"


def test_a_mark_has_who_when_and_why_and_no_line_of_its_own_making(host: Path) -> None:
    text = host_text("durable.sh") + host_text("marks.sh") + "mark sick-e down watch 'a\nword=up\033[1m' 4.ab\n"
    assert run(host, text).returncode == 0
    mark = parse_mark_file("sick-e", (host / "state/marks/sick-e").read_text())
    assert (mark.state, mark.who, mark.lease, mark.kind, mark.endpoint) == ("down", "watch", "4.ab", "sick", "e")
    assert mark.reason == "aword=up[1m"
    assert mark.since.count(":") == 2
    assert parse_mark_file("sick-e", "nonsense").state == "down"


def test_a_job_marks_with_its_runs_lease_and_puts_an_earlier_jobs_mark_back(host: Path) -> None:
    marked(host, "trial-e", "down")
    earlier = (host / "state/marks/trial-e").read_text()
    (host / "lease").write_text("id=7.cd\nuser=ann\nmachine=desk\n")
    assert run(host, mark_script(["e", "f"], "drain", "a try")).returncode == 0
    mark = parse_mark_file("trial-e", (host / "state/marks/trial-e").read_text())
    assert (mark.state, mark.who, mark.lease, mark.job, mark.reason) == ("drain", "ann@desk", "7.cd", "job", "a try")
    run(host, mark_script(["e", "f"], "down", "a try"))
    run(host, unmark_script(["e", "f"], undone=True))
    assert (host / "state/marks/trial-e").read_text() == earlier
    assert not (host / "state/marks/trial-f").exists()
    run(host, unmark_script(["e", "f"]))
    assert not any((host / "state/marks").iterdir())


def test_a_mark_that_cannot_be_written_ends_the_job_before_anything_moves(host: Path) -> None:
    (host / "state/marks").write_text("in the way")
    assert run(host, mark_script(["e"], "drain", "a try")).returncode == 1


def test_quarantine_is_a_mark_that_leaves_the_word_and_other_marks_alone(host: Path) -> None:
    endpoint(host)
    run(host, quarantine_script("ann@desk", "gpu"))
    first = (host / "state/marks/quarantine").read_text()
    run(host, quarantine_script("bob@desk", "again"))
    assert (host / "state/marks/quarantine").read_text() == first
    marked(host, "trial-e", "drain")
    assert answer(host) == "drain\n"
    run(host, release_script())
    assert [path.name for path in (host / "state/marks").iterdir()] == ["trial-e"]


def test_only_runs_that_have_ended_leave_a_mark() -> None:
    marks = (Mark("trial-a", lease="1.x", job="switch-a"), Mark("trial-b", lease="2.x"), Mark("sick-c", lease="1.x"))
    assert [mark.name for mark in SeenDrained(marks=marks).of_ended_runs("")] == ["trial-a", "trial-b"]
    assert [mark.name for mark in SeenDrained(marks=marks).of_ended_runs("2.x")] == ["trial-a"]
    at_work = SeenDrained(marks=marks, at_work=frozenset({"switch-a"}))
    assert [mark.name for mark in at_work.of_ended_runs("2.x")] == []


def test_what_could_not_be_written_leaves_no_half_of_it(tmp_path: Path) -> None:
    (tmp_path / "marks/watch-llm/x").mkdir(parents=True)
    script = host_text("durable.sh") + f"echo word=down | durable_file {tmp_path}/marks/watch-llm"
    assert subprocess.run(["sh", "-c", script], capture_output=True, check=False).returncode == 1
    assert [path.name for path in (tmp_path / "marks").iterdir()] == ["watch-llm"]
