"""A host that was reinstalled comes back to its place: its new key compared, its group's release, proven."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from tests.lab.conftest import ROOT, Site
from tests.lab.products import in_proof
from tests.lab.test_plan import inventory

pytestmark = pytest.mark.lab

INVENTORY = "inventory/lab.py"


def fingerprint(host: Host) -> str:
    """As the host's own console shows it."""
    words = ["ssh-keygen", "-lf", str(host.host_key.with_suffix(".pub"))]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[1]


def spec_of(host: Host) -> dict[str, object]:
    spec: dict[str, object] = json.loads(host.run("cat /var/lib/rackwright/endpoints/llm/proven/spec.json").stdout)
    return spec


@pytest.fixture
def lock_file(site: Site) -> Iterator[Path]:
    """Return the lab's lock file, which exists neither before nor afterwards."""
    path = ROOT / f"rackwright.lock.{site.lab.paths.id}.yml"
    before = path.read_text() if path.exists() else None
    path.unlink(missing_ok=True)
    yield path
    path.unlink(missing_ok=True)
    if before is not None:
        path.write_text(before)


def test_a_reinstalled_host_comes_back_with_the_release_of_its_group(
    site: Site, tmp_path: Path, lock_file: Path
) -> None:
    bare, lived = site.lab.host("bare1"), site.lab.host("lived2")
    known_hosts = site.lab.paths.known_hosts
    assert site.deploy("-y", limit=(lived.name,)).status == 0
    bare.reset()
    bare.new_host_key()
    before = known_hosts.read_text()

    # Neither a deploy nor -y alone takes the new key, nor does a fingerprint that is another one's.
    assert site.deploy("-y", limit=(bare.name,)).status == 1
    assert site.rackwright("rebuild", INVENTORY, "--limit", bare.name, "-y").status == 1
    wrong = site.rackwright("rebuild", INVENTORY, "--limit", bare.name, "-y", "--fingerprint", fingerprint(lived))
    assert wrong.status == 1
    assert fingerprint(bare) in wrong.output
    status = site.rackwright("rebuild", INVENTORY, "--limit", bare.name)
    assert (status.status, "nothing was done" in status.output) == (1, True), status.output

    # Its group serves something else than these settings ask: it is left as it is.
    other = inventory(tmp_path, more={"engine": {"max_batch_size": 7}})
    held = site.rackwright("rebuild", other, "--limit", bare.name, "-y", "--fingerprint", fingerprint(bare))
    assert held.status == 1
    assert "max_batch_size changed" in held.output, held.output
    assert (known_hosts.read_text(), lock_file.exists()) == (before, False)

    # What --data asks for counts as settings do: for what its group serves, and for the deploy.
    words = ("rebuild", INVENTORY, "--limit", bare.name, "-y", "--fingerprint", fingerprint(bare), "--data")
    asked_for = site.rackwright(*words, 'engine={"max_batch_size": 7}')
    assert (asked_for.status, "max_batch_size changed" in asked_for.output) == (1, True), asked_for.output
    assert (known_hosts.read_text(), lock_file.exists()) == (before, False)

    done = site.rackwright(*words, 'ready_hook=["/usr/bin/touch", "/root/ready"]')
    assert done.status == 0, done.output
    assert bare.run("test -e /root/ready", check=False).returncode == 0
    assert f"the same release as on {lived.name}" in done.output
    assert "from bare OS to answered" in done.output
    assert spec_of(bare) == spec_of(lived)
    assert str(spec_of(lived)["image"]).partition("@")[2] in lock_file.read_text()
    old, new = before.splitlines(), known_hosts.read_text().splitlines()
    assert [entry for entry in old if bare.address not in entry] == [
        entry for entry in new if bare.address not in entry
    ]
    assert f"{bare.address} {bare.public_host_key()}" in new
    assert site.rackwright("plan", "inventory/lab.py").status == 0
    rows = json.loads(site.rackwright("status", "inventory/lab.py", "--json").output)["endpoints"]
    assert [(row["health"], row["wanted"]) for row in rows] == [("serving", True)] * 2
    assert "rebuild" in next(row["last_run"] for row in rows if row["host"] == bare.name)


@in_proof("three_hosts/test_hand_on.py has a run of one host, which a rebuild is")
def test_a_reinstalled_host_takes_its_model_from_a_neighbour_with_the_hub_cut_off(site: Site, lock_file: Path) -> None:
    bare, lived, web = site.lab.host("bare1"), site.lab.host("lived2"), site.lab.paths.web
    data = ("--data", 'downloads={"hand_on": {"interface": "host0"}}')
    assert site.rackwright("pin", INVENTORY).status == 0
    assert lock_file.exists()
    assert site.deploy("-y", limit=(lived.name,)).status == 0
    bare.reset()
    bare.new_host_key()
    faults.forget_requests(web)
    for path in ("/api/models/*", "*/resolve/*"):
        faults.set_fault(web, "503", path=path)
    try:
        words = ("rebuild", INVENTORY, "--limit", bare.name, "-y", "--fingerprint", fingerprint(bare), *data)
        done = site.rackwright(*words)
    finally:
        faults.clear(web)
    assert done.status == 0, done.output
    assert f" from {lived.name}" in done.output, done.output
    assert not [row for row in faults.requests(web) if row["client"] == bare.address and "/resolve/" in row["path"]]
    assert spec_of(bare) == spec_of(lived)
    assert "rebuild" not in next(
        row["last_run"]
        for row in json.loads(site.rackwright("status", INVENTORY, "--json").output)["endpoints"]
        if row["host"] == lived.name
    )
