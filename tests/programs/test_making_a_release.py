"""The archives of this commit: built twice, the wheel tried alone, all of it signed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rackwright import __version__
from scripts import release


@pytest.mark.proof(
    "six archives twice, 35 packages of a registry, and minisign out of Debian; its parts are unit tests"
)
def test_a_release_has_the_same_bytes_twice_works_alone_and_verifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = release.commit_time()
    first, second = release.built(tmp_path / "1", epoch), release.built(tmp_path / "2", epoch, TZ="Asia/Tokyo")
    assert len(first) == 6
    release.refuse_unlike(first, second)
    needs = json.loads(release.tried(tmp_path / "alone", first, __version__, epoch))
    assert "pyinfra" in {one["name"] for one in needs["components"]}
    unpacked = subprocess.run([release.ROOT / "scripts/minisign"], capture_output=True, text=True, check=True)
    program = Path(unpacked.stdout.strip()) / "bin/minisign"
    key, public = tmp_path / "secret.key", tmp_path / "public.key"
    subprocess.run([program, "-G", "-W", "-p", public, "-s", key], check=True, capture_output=True)
    monkeypatch.setattr(release, "PUBLIC_KEY", public)
    release.sign(tmp_path / "1/built", str(key), "a test")
    wheel = next((tmp_path / "1/built").glob("rackwright-*.whl"))
    verify: list[str | Path] = [program, "-V", "-q", "-p", public, "-m", wheel]
    assert subprocess.run(verify, check=False, capture_output=True).returncode == 0
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    assert subprocess.run(verify, check=False, capture_output=True).returncode != 0
