"""The lock file gets a profile when the real `pyinfra` command is going to change hosts, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.profiles import catalog
from rackwright.profiles.locked import LockedProfile
from rackwright.sources.lockfile import FILE, Lock, load_lock, write_lock
from tests.programs.fake_site import make_site, started
from tests.refused import refusal

INVENTORY = """\
from rackwright.inventory import build
globals().update(build(__file__, {"one": ["@fake/a1"], "other": ["@fake/b1"]}))
"""
DEPLOY = """\
from pyinfra import host
from rackwright.inventory import settings_of
print(f"settings {host.name} {settings_of(host).engine.get('max_batch_size')}")
"""
KEPT = "profile b200: kept in rackwright.lock.yml"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make a site of two hosts with two profiles."""
    make_site(tmp_path, DEPLOY, INVENTORY)
    (tmp_path / "group_vars" / "one.yml").write_text("profile: b200\n")
    (tmp_path / "group_vars" / "other.yml").write_text("profile: b200_stable\n")
    return tmp_path


def pyinfra(site: Path, *words: str) -> str:
    status, output = started(site, "pyinfra", "inventory/fleet.py", *words)
    assert status == 0, output
    return output


def test_a_deploy_writes_the_profiles_of_its_hosts_once(site: Path) -> None:
    pyinfra(site, "deploy.py", "--dry")
    pyinfra(site, "debug-inventory")
    pyinfra(site, "exec", "-y", "--", "true")
    assert not (site / FILE).exists()
    assert KEPT in pyinfra(site, "deploy.py", "-y", "--limit", "one")
    lock = load_lock(site)
    assert {name: one.sha256 for name, one in lock.profiles.items()} == {"b200": catalog.profile("b200").sha256}
    output = pyinfra(site, "deploy.py", "-y")
    assert KEPT not in output
    assert "profile b200_stable: kept" in output
    assert load_lock(site).profiles["b200"] == lock.profiles["b200"]


def test_a_deploy_goes_by_the_lock_files_text_and_leaves_it(site: Path) -> None:
    text = catalog.profile("b200").files["b200.yml"].replace("max_batch_size: 10", "max_batch_size: 9")
    lock = Lock(profiles={"b200": LockedProfile.of({"b200.yml": text})})
    write_lock(site, lock)
    assert "settings @fake/a1 9" in pyinfra(site, "deploy.py", "-y", "--limit", "one")
    assert load_lock(site) == lock


def test_a_lock_file_that_cannot_be_written_warns_and_the_deploy_runs(site: Path) -> None:
    (site / f"{FILE}.new").mkdir()
    output = pyinfra(site, "deploy.py", "-y", "--limit", "one")
    refusal(output, "RW0921", "b200")
    assert "settings @fake/a1 10" in output
