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


def test_an_unchanged_run_of_four_hosts_is_one_screen_text(site: Path) -> None:
    printed = run(site, "-y")
    assert len(printed) <= SCREEN, "\n".join(printed)
    assert max(map(len, printed)) <= 100
    assert not any("Starting operation" in row or "No changes" in row for row in printed)
    assert "    21 operations changed nothing; pyinfra -v lists them" in printed
    assert printed[-7:-5] == ["rackwright: done: 4 unchanged", "  serves:  http://@fake/h0:8000/v1, model gpt-oss-120b"]


def test_with_v_it_is_pyinfras_own_output_text(site: Path) -> None:
    printed = run(site, "-y", "-v")
    assert sum("Starting operation" in row for row in printed) == 21
    assert sum(row.endswith("No changes") for row in printed) == 84
    assert sum(row.startswith("    Step ") for row in printed) == 21


def test_a_failed_run_ends_with_the_cause_and_the_next_command_text(tmp_path: Path) -> None:
    site = make_site(tmp_path, DEPLOY.replace("BAD", "True"), INVENTORY)
    status, output = started(site, "pyinfra", "inventory/fleet.py", "deploy.py", "-y", COLUMNS="100")
    assert status == 1, output
    assert sum(row.startswith("    Step ") for row in output.splitlines()) == 1, "each later step counts it as an error"
    how, cause, last = output.splitlines()[-3:]
    assert how == "rackwright: RW0823: failed on @fake/h2"
    assert cause == "  cause:   @fake/h2: RW0714: it is broken"
    assert last.startswith("  next:    rackwright resume ")


def test_the_next_command_is_the_last_line_where_no_host_is_left_text(tmp_path: Path) -> None:
    site = make_site(tmp_path, DEPLOY.replace("BAD", "True").replace('endswith("h2")', "startswith('@')"), INVENTORY)
    status, output = started(site, "pyinfra", "inventory/fleet.py", "deploy.py", "-y", COLUMNS="100")
    assert status == 1, output
    assert output.count("No hosts remaining!") == 1
    cause, last = output.splitlines()[-2:]
    assert cause == f"  cause:   {', '.join(HOSTS)}: RW0714: it is broken"
    assert last.startswith("  next:    rackwright resume ")
