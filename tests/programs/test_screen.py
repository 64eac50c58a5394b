"""A plain run on a terminal: an unchanged one of four hosts is one screen; -v shows what it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.fake_site import make_site, started

SCREEN = 35
"""Lines of a usual terminal."""
HOSTS = [f"@fake/h{number}" for number in range(4)]
INVENTORY = f"""\
from rackwright.inventory import build
globals().update(build(__file__, {{"fleet": {HOSTS}}}))
"""
DEPLOY = """\
from pyinfra.api import FunctionCommand, operation
from rackwright.adapter.host import this_host
from rackwright.operations.hostrun import fail
from rackwright.record.journal import note

@operation()
def step(number, bad=False):
    host = this_host()
    if number == 20 and host.state.is_executing and not bad:
        note("host", host=host.name, state="unchanged")
    if bad and host.name.endswith("h2"):
        yield fail("RW0714: it is broken\\n  next: repair it")

for number in range(21):
    step(name=f"Step {number} | A sentence that says what is so when the step has ended", number=number, bad=BAD)
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return make_site(tmp_path, DEPLOY.replace("BAD", "False"), INVENTORY)


def run(site: Path, *options: str) -> list[str]:
    status, output = started(site, "pyinfra", "inventory/fleet.py", "deploy.py", *options, COLUMNS="100")
    assert status == 0, output
    return output.splitlines()


def test_an_unchanged_run_of_four_hosts_is_one_screen(site: Path) -> None:
    lines = run(site, "-y")
    assert len(lines) <= SCREEN, "\n".join(lines)
    assert max(map(len, lines)) <= 100
    assert not any("Starting operation" in line or "No changes" in line for line in lines)
    assert "    21 operations changed nothing; pyinfra -v lists them" in lines
    assert lines[-7:-5] == ["rackwright: done: 4 unchanged", "  serves:  http://@fake/h0:8000/v1, model gpt-oss-120b"]


def test_with_v_it_is_pyinfras_own_output(site: Path) -> None:
    lines = run(site, "-y", "-v")
    assert sum("Starting operation" in line for line in lines) == 21
    assert sum(line.endswith("No changes") for line in lines) == 84
    assert sum(line.startswith("    Step ") for line in lines) == 21


def test_a_failed_run_ends_with_the_cause_and_the_next_command(tmp_path: Path) -> None:
    site = make_site(tmp_path, DEPLOY.replace("BAD", "True"), INVENTORY)
    status, output = started(site, "pyinfra", "inventory/fleet.py", "deploy.py", "-y", COLUMNS="100")
    assert status == 1, output
    cause, last = output.splitlines()[-2:]
    assert cause == "rackwright: @fake/h2: RW0714: it is broken"
    assert last.startswith("rackwright: RW0823: failed on @fake/h2; next: rackwright resume ")
