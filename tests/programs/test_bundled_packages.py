"""Packages of a bundle, by the real apt in a root of its own: what comes along, and what the hosts' apt then takes."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.bundle import apt_root, packages
from rackwright.bundle.apt_root import AptRoot, system_of
from rackwright.concerns.docker.apt import Repository
from rackwright.messages import RackwrightError
from rackwright.settings.host_settings import HostSettings

pytestmark = pytest.mark.skipif(shutil.which("apt-ftparchive") is None, reason="needs apt-utils")
NAMES = {"one": "Depends: two (>= 1)", "two": "Pre-Depends: three", "three": "", "other": ""}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the line of a repository with four packages, and count its keyring as the distribution's."""
    folder = tmp_path / "repository"
    for name, needs in NAMES.items():
        control = folder / name / "DEBIAN/control"
        control.parent.mkdir(parents=True)
        rows = [f"Package: {name}", "Version: 1:1.0", "Architecture: all", "Maintainer: X <x@example.com>", needs]
        control.write_text("\n".join(row for row in rows if row) + "\nDescription: X\n")
        target = folder / "pool" / f"{name}_1.0_all.deb"
        target.parent.mkdir(exist_ok=True)
        subprocess.run(
            ["dpkg-deb", "--build", "--root-owner-group", folder / name, target], check=True, capture_output=True
        )
    done = subprocess.run(["apt-ftparchive", "packages", "pool"], cwd=folder, check=True, capture_output=True)
    (folder / "Packages").write_bytes(done.stdout)
    keyring = tmp_path / "keyring.gpg"
    keyring.touch()
    monkeypatch.setattr(apt_root, "KEYRINGS", {"debian": (str(keyring), "x"), "ubuntu": (str(tmp_path / "x"), "x")})
    return f"deb [trusted=yes] file:{folder} ./"


def root_with(folder: Path, *sources: str) -> AptRoot:
    root = AptRoot(folder, system_of("debian-12-arm64"))
    root.lay(sources)
    return root


def test_all_that_a_package_needs_comes_along_and_nothing_else(repository: str, tmp_path: Path) -> None:
    root = root_with(tmp_path / "root", repository)
    found = {one.sha256: one for one in root.packages(["one"])}
    assert {one.file.partition("_")[0] for one in found.values()} == {"one", "two", "three"}
    assert {row.partition("Filename: ")[2].partition("\n")[0] for row in root.records(found).values()} == {
        one.file for one in found.values()
    }


def test_apt_takes_them_from_the_list_that_the_bundle_has(repository: str, tmp_path: Path) -> None:
    root = root_with(tmp_path / "root", repository)
    found = {one.sha256: one for one in root.packages(["one"])}
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    for one in found.values():
        shutil.copy(one.url.removeprefix("file:"), bundle / one.file)
    (bundle / "Packages").write_text("\n".join(root.records(found).values()))
    again = root_with(tmp_path / "host", f"deb [trusted=yes] file:{bundle} /")
    assert {one.sha256 for one in again.packages(["one"])} == set(found)
    with pytest.raises(RackwrightError, match=r"RW3913.*other"):
        again.packages(["other"])


def test_what_the_lists_do_not_have_is_refused_in_apts_words(repository: str, tmp_path: Path) -> None:
    with pytest.raises(RackwrightError, match=r"RW3913.*missing-one"):
        root_with(tmp_path / "root", repository).packages(["missing-one"])


def test_a_missing_keyring_and_an_unknown_system_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(apt_root.KEYRINGS, "debian", (str(tmp_path / "x"), "debian-archive-keyring"))
    client: Any = None
    with pytest.raises(RackwrightError, match=r"RW3913.*next: apt-get install debian-archive-keyring"):
        packages.keyring_for(system_of("debian-12-amd64"), client, tmp_path)
    with pytest.raises(RackwrightError, match=r"RW3903"):
        system_of("debian-11-amd64")


def test_ubuntus_keyring_is_fetched_by_its_hash_where_this_machine_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "package"
    (folder / "DEBIAN").mkdir(parents=True)
    (folder / "DEBIAN/control").write_text(
        "Package: k\nVersion: 1\nArchitecture: all\nMaintainer: X <x@example.com>\nDescription: X\n"
    )
    inside = tmp_path / "here/ubuntu.gpg"
    (folder / inside.relative_to("/")).parent.mkdir(parents=True)
    (folder / inside.relative_to("/")).write_text("keys")
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", folder], check=True, capture_output=True)
    content = folder.with_suffix(".deb").read_bytes()
    monkeypatch.setitem(apt_root.KEYRINGS, "ubuntu", (str(inside), "ubuntu-keyring"))
    client: Any = SimpleNamespace(opened=lambda *_: answer_with(content))
    with pytest.raises(RackwrightError, match=r"RW3823.*other bytes"):
        packages.keyring_for(system_of("ubuntu-24.04-amd64"), client, tmp_path / "package")
    wanted = replace(packages.UBUNTU_KEYRING, sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(packages, "UBUNTU_KEYRING", wanted)
    found = packages.keyring_for(system_of("ubuntu-24.04-amd64"), client, tmp_path)
    assert found.read_text() == "keys"
    inside.parent.mkdir()
    inside.write_text("this machine's")
    assert packages.keyring_for(system_of("ubuntu-24.04-amd64"), client, tmp_path) == inside


def answer_with(content: bytes) -> Any:
    answer: Any = io.BytesIO(content)
    answer.status = 200
    return answer


def test_a_key_that_is_not_pinned_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer: Any = SimpleNamespace(status=200, body=b"<html>a portal</html>")
    monkeypatch.setattr(packages, "Client", lambda _: SimpleNamespace(get=lambda *_: answer))
    source = Repository("docker", "https://apt.example.com/gpg", "deb https://apt.example.com x", ("A" * 40,))
    with pytest.raises(RackwrightError, match=r"RW3923"):
        packages._source(HostSettings.model_validate({}), source, tmp_path)
