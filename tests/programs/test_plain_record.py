"""A plain `pyinfra INVENTORY deploy.py` leaves a record, whatever its end; looking ahead leaves none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import click
import pytest

from rackwright.record.journal import Event, read_record, records
from rackwright.record.quarantine import Quarantined, change_quarantine, load_quarantine
from rackwright.record.record import record_of
from rackwright.rollout.deploy_record import exit_status, sentence
from tests import texts
from tests.programs.fake_site import make_site, started
from tests.refused import refusal
from tests.warm import BIN, ROOT

INVENTORY = """\
from rackwright.inventory import build
globals().update(build(__file__, {"front": ["@fake/a1", "@fake/a2"], "back": ["@fake/b1"]}))
"""
DEPLOY = """\
from pyinfra.api import FunctionCommand, operation
from rackwright.record.journal import note
from rackwright.adapter.host import this_host
from rackwright.operations.hostrun import fail

@operation()
def serve():
    host = this_host()
    if not host.state.is_executing or host.name.endswith("a1"):
        return
    note("host", host=host.name, state="switched")
    if host.name.endswith("b1"):
        yield fail("still pending")

serve(name="It serves")
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make a site of three hosts; the last one fails at its end."""
    return make_site(tmp_path, DEPLOY, INVENTORY)


def only_record(site: Path) -> list[Event]:
    (path,) = records(site)
    assert path.stat().st_mode & 0o777 == 0o600
    return read_record(path)


def test_it_says_what_became_of_each_host(site: Path) -> None:
    status, output = started(
        site,
        "pyinfra",
        "inventory/fleet.py",
        "deploy.py",
        "-y",
        "--data",
        "port=8001",
        "--data",
        'proxy={"http": "http://me:s3cretword@proxy.lab:3128"}',
    )
    assert status == 1, output
    record = record_of("r", only_record(site))
    assert record.states == {"@fake/a1": "done", "@fake/a2": "switched", "@fake/b1": "not converged"}
    assert record.begin["what"] == "deploy inventory/fleet.py"
    assert record.begin["deploy"] == str(site / "deploy.py")
    assert record.begin["data"] == {"port": 8001, "proxy": {"http": "http://*MASKED*@proxy.lab:3128"}}
    assert record.end is not None
    assert record.end["status"] == 1
    again = "the same command again, with --limit @fake/b1"
    failed = refusal(output, "RW0823", "rackwright: ", "@fake/b1", f"  next:    {again}")
    assert failed.partition("\n")[0] == f"rackwright: {record.end['text'].partition('; next: ')[0]}"
    assert record.end["text"].endswith(f"next: {again}"), "no record keeps the secret of its --data"


def test_it_names_the_hosts_of_the_limit_and_ends_well(site: Path) -> None:
    status, output = started(site, "pyinfra", "inventory/fleet.py", "deploy.py", "-y", "--limit", "front")
    assert status == 0, output
    record = record_of("r", only_record(site))
    assert record.hosts == ["@fake/a1", "@fake/a2"]
    done = "done: 1 switched, 1 done"
    assert record.outcome == f"exit 0: {done}"
    ending, url, ask, last = output.splitlines()[-4:]
    assert ending == f"rackwright: {done}"
    assert url.split(", ") == ["  serves:  http://@fake/a2:8000/v1", "model gpt-oss-120b"]
    assert ask == f"  ask it:  {texts.ASK_IT.format(inventory='inventory/fleet.py')}"
    assert last.endswith("rackwright pin inventory/fleet.py")


def test_the_output_of_json_is_one_value(site: Path) -> None:
    words = [str(BIN / "pyinfra"), "inventory/fleet.py", "deploy.py", "-y", "--json", "--limit", "front"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=site, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["results"]["failed_hosts"] == []
    assert "  serves:  " in done.stderr


def test_a_quarantined_host_is_taken_on_and_leaves_the_list_when_it_is_well(site: Path) -> None:
    names = ["@fake/a1", "@fake/a2"]
    change_quarantine(site, lambda _: {name: Quarantined("today", "GPU errors") for name in names})
    _, output = started(site, "pyinfra", "inventory/fleet.py", "deploy.py", "-y", "--limit", "front")
    assert texts.INCLUDED.format(host="@fake/a1", mark="quarantined since today (GPU errors)") in output
    assert texts.WELL_AGAIN.format(host="@fake/a2") in output
    assert list(load_quarantine(site)) == ["@fake/a1"]


@pytest.mark.parametrize("words", [("deploy.py", "--dry"), ("debug-inventory",), ("exec", "--", "true")])
def test_what_deploys_nothing_leaves_none(site: Path, words: tuple[str, ...]) -> None:
    started(site, "pyinfra", "inventory/fleet.py", *words)
    assert records(site) == []


@pytest.mark.parametrize("deploy", [b"x = (\n", b"x = '\0'\n", b"raise OSError('no')\n"])
def test_a_deploy_file_that_cannot_be_run_is_said_in_one_sentence(site: Path, deploy: bytes) -> None:
    (site / "deploy.py").write_bytes(deploy)
    status, output = started(site, "pyinfra", "inventory/fleet.py", "deploy.py", "-y")
    assert status == 1, output
    assert "Traceback" not in output
    assert ": RW130" in output
    assert "deploy.py:None" not in output
    record = record_of("r", only_record(site))
    assert record.end is not None
    assert record.end["status"] == 1


def test_a_folder_that_cannot_be_written_stops_nothing(site: Path) -> None:
    (site / "runs").touch()
    status, output = started(site, "pyinfra", "inventory/fleet.py", "deploy.py", "-y", "--limit", "front")
    assert status == 0, output
    assert "leaves no record" in output


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (None, 0),
        (SystemExit(None), 0),
        (SystemExit(130), 130),
        (SystemExit("text"), 1),
        (click.exceptions.Exit(0), 0),
        (click.ClickException("no"), 1),
    ],
)
def test_an_ending_has_its_status(error: BaseException | None, status: int) -> None:
    assert exit_status(error) == status


def test_a_drained_host_is_left_aside_and_has_not_failed() -> None:
    begin: Event = {"kind": "begin", "what": "deploy i.py", "purpose": "deploy", "plain": True, "hosts": ["h1", "h2"]}
    drained: Event = {"kind": "host", "host": "h1", "state": "drained", "text": "drained since …"}
    same: Event = {"kind": "host", "host": "h2", "state": "unchanged"}
    record = record_of("r", [begin, drained, same])
    assert sentence(record, 0, executed=True) == "done: 1 drained, 1 unchanged"
    assert sentence(record, 1, executed=True).startswith("RW0823")


def test_a_run_that_the_leases_refused_is_to_be_run_again_and_not_resumed() -> None:
    begin: Event = {"kind": "begin", "what": "deploy i.py", "purpose": "deploy", "plain": True, "hosts": ["h1", "h2"]}
    busy: Event = {"kind": "host", "host": "h1", "state": "busy"}
    same: Event = {"kind": "host", "host": "h2", "state": "unchanged"}
    text = sentence(record_of("r", [begin, busy, same]), 1, executed=True)
    assert refusal(text, "RW0823", "h1; next: the same command again, when the other run") == text
    failed: Event = {"kind": "host", "host": "h2", "state": "failed"}
    assert sentence(record_of("r", [begin, busy, failed]), 1, executed=True).endswith("next: rackwright resume r")
