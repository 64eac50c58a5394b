"""Where a user stands does not matter: commands work from a folder full of other things by the same names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from rackwright.record.journal import read_record, records
from tests.programs.fake_site import make_site, started
from tests.trap import SPRUNG, make_trap
from tests.warm import ROOT

INVENTORY = """\
from rackwright.inventory import build
globals().update(build(__file__, {"front": ["@fake/a1", "@fake/a2"]}))
"""
DEPLOY = """\
from pyinfra import host
from pyinfra.api import operation
from rackwright.record.journal import note
from rackwright.adapter.host import this_host
from rackwright.inventory import settings_of
from tasks.words import WORD

print(f"{WORD} for {host.name} in {settings_of(host).hardware.rack}")

@operation()
def serve():
    if this_host().state.is_executing:
        note("host", host=this_host().name, state="switching", before={"llm": "old"})
        note("host", host=this_host().name, state="switched")
    yield from ()

serve(name="It serves")
"""
GREETING = "the site's own word"
HOOKS = "hardware: {rack: r1}\nrollout:\n  hooks: {plan: [{command: [bin/hook]}]}\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make a site with tasks, a template and a hook of its own."""
    (tmp_path / "site").mkdir()
    site = make_site(tmp_path / "site", DEPLOY, INVENTORY, HOOKS)
    for name in ("tasks", "templates", "bin"):
        (site / name).mkdir()
    (site / "tasks" / "__init__.py").touch()
    (site / "tasks" / "words.py").write_text(f'WORD = "{GREETING}"\n')
    (site / "templates" / "before-start.j2").write_text("# the site's own template\n")
    (site / "bin" / "hook").write_text("#!/bin/sh\npwd >hooked\n")
    (site / "bin" / "hook").chmod(0o755)
    return site


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Make a folder where everything that is looked for is found as well, and is wrong."""
    return make_trap(tmp_path / "elsewhere")


def assert_well(status: int, output: str) -> None:
    assert status == 0, output
    assert SPRUNG not in output


def test_pyinfra_itself_finds_the_sites_own_tasks(site: Path, elsewhere: Path) -> None:
    status, output = started(elsewhere, "pyinfra", "../site/inventory/fleet.py", "../site/deploy.py", "-y")
    assert_well(status, output)
    assert f"{GREETING} for @fake/a2 in r1" in output
    assert len(records(site)) == 1


def test_the_verbs_read_the_site_and_its_templates(site: Path, elsewhere: Path) -> None:
    inventory = str(site / "inventory" / "fleet.py")
    assert_well(*started(elsewhere, "rackwright", "check", inventory))
    out = site / "out"
    assert_well(*started(elsewhere, "rackwright", "render", inventory, "--limit", "@fake/a1", "--out", str(out)))
    texts = [path.read_text() for path in out.rglob("before-start")]
    assert texts == ["# the site's own template\n"]


def test_plan_says_the_same_from_anywhere(site: Path, elsewhere: Path) -> None:
    inventory = str(site / "inventory" / "fleet.py")
    assert started(elsewhere, "rackwright", "plan", inventory) == started(site, "rackwright", "plan", inventory)


def test_a_rollout_runs_where_no_pyinfra_lies_beside_python(site: Path, elsewhere: Path, tmp_path: Path) -> None:
    """As after `pip install --user`: the commands are in ~/.local/bin, and Python in /usr/bin."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    paths = os.pathsep.join([str(ROOT), str(ROOT / "packages" / "engines"), sysconfig.get_path("purelib")])
    words = ["-P", "-m", "rackwright", "rollout", "../site/inventory/fleet.py", "-y", "--skip-offline", "0"]
    done = subprocess.run(
        [python, *words],
        cwd=elsewhere,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": paths, "PYINFRA_PROGRESS": "off"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert_well(done.returncode, done.stdout)
    assert (site / "hooked").read_text() == f"{site}\n"
    begin = read_record(records(site)[-1])[0]
    assert begin["what"] == "rollout inventory/fleet.py"
    assert json.dumps(begin["hosts"]) == '["@fake/a1", "@fake/a2"]'
