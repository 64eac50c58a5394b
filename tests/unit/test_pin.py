"""`rackwright pin`: which file is written for which hosts, what is printed, and the next step without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.cli.main import main
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import Paths
from rackwright.sources.errors import SourceError
from rackwright.sources.lockfile import FILE, Lock, LockedFile, LockedModel, Locks, load_lock
from rackwright.sources.resolve import Resolver

IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0"
PUBLIC, PRIVATE, OLD = ("sha256:" + figure * 64 for figure in "123")
MODEL = LockedModel(commit="a" * 40, files={"config.json": LockedFile(size=2, blob="b" * 40)})
OWN = "closed.lock.yml"
INVENTORY = f"""\
from rackwright.inventory import build
model = {{"repository": "openai/gpt-oss-120b", "mount": "/config/models/base"}}
open_host = {{"model": model, "image": "{IMAGE}"}}
closed_host = {{**open_host, "paths": {{"lock_file": "{OWN}"}}}}
globals().update(build(__file__, {{"all_hosts": [("h1", open_host), ("h2", closed_host), ("h3", open_host)]}}))
"""


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site of three hosts, of which one lives in a network where the same names lead to other servers."""
    (tmp_path / "deploy.py").touch()
    monkeypatch.chdir(tmp_path)

    def answers(_: Resolver, settings: HostSettings) -> Lock:
        digest = PRIVATE if settings.paths.lock_file == OWN else PUBLIC
        return Lock({settings.image: digest}, {"openai/gpt-oss-120b@main": MODEL})

    monkeypatch.setattr(Resolver, "lock", answers)
    found = tmp_path / "hosts.py"
    found.write_text(INVENTORY)
    return found


def test_hosts_with_other_servers_do_not_pin_the_site(inventory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (inventory.parent / FILE).write_text(f"version: 1\nimages: {{{IMAGE!r}: '{OLD}', 'a/b:1': '{OLD}'}}\n")
    assert main(["pin", str(inventory)]) == 0
    assert load_lock(inventory.parent).images == {IMAGE: PUBLIC, "a/b:1": OLD}
    assert load_lock(inventory.parent, OWN).images == {IMAGE: PRIVATE}
    assert load_lock(inventory.parent, OWN).models == {"openai/gpt-oss-120b@main": MODEL}
    out = capsys.readouterr().out
    assert f"{IMAGE}  {PUBLIC}  (was {OLD})" in out
    assert f"written to {inventory.parent / OWN}" in out


def test_each_host_is_pinned_by_its_own_file(inventory: Path) -> None:
    assert main(["pin", str(inventory)]) == 0
    locks = Locks(inventory.parent)
    settings = HostSettings.model_validate(
        {"model": {"repository": "openai/gpt-oss-120b", "mount": "/m"}, "image": IMAGE}
    )
    assert locks.pin(settings).image_digest == PUBLIC
    assert locks.pin(settings.model_copy(update={"paths": Paths(lock_file=OWN)})).image_digest == PRIVATE


def test_limited_to_a_host_other_files_stay(inventory: Path) -> None:
    assert main(["pin", str(inventory), "--limit", "h2"]) == 0
    assert not (inventory.parent / FILE).exists()
    assert (inventory.parent / OWN).exists()


def test_where_nobody_can_be_asked_the_hosts_may_tell(
    inventory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(_: Resolver, settings: HostSettings) -> Lock:
        raise SourceError("nvcr.io cannot be reached from this machine")

    monkeypatch.setattr(Resolver, "lock", away)
    assert main(["pin", str(inventory)]) == 1
    errors = capsys.readouterr().err
    assert "nvcr.io cannot be reached" in errors
    assert f"rackwright pin {inventory} --from-hosts" in errors
    assert not (inventory.parent / FILE).exists()
