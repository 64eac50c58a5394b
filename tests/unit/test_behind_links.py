"""Files that stand behind links are written there, or not at all; what an old name would keep is never left behind."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright.concerns import registry
from rackwright.concerns.docker.dockerd import Configuration
from rackwright.concerns.registry import REGISTRY, SeenLogin
from rackwright.hostside import host_script, script_folders, trial_script
from rackwright.plan.change import Shell
from rackwright.plan.concern import HostReading
from tests.unit.test_registry import edit, host, login, read

OLD = json.dumps({"auths": {"nvcr.io": {"auth": "b2xkOmtleQ=="}}, "other": 1})


@pytest.fixture
def managed(tmp_path: Path) -> tuple[Path, Path]:
    """Make a file that root manages elsewhere, and the link to it."""
    target, link = tmp_path / "managed" / "config.json", tmp_path / "docker" / "config.json"
    for path in (target, link):
        path.parent.mkdir()
    target.write_text(OLD)
    target.chmod(0o640)
    link.symlink_to(target)
    return target, link


def write_file(path: Path, text: str = "new") -> subprocess.CompletedProcess[str]:
    script = host_script("write_file", path=str(path), mode="0644", owner="root:root")
    content = base64.b64encode(text.encode()).decode()
    return subprocess.run(["sh", "-c", script], input=content, text=True, capture_output=True, check=False)


def put_login(path: Path) -> subprocess.CompletedProcess[str]:
    return edit(path, "put")


def put_daemon(path: Path) -> subprocess.CompletedProcess[str]:
    """Put dockerd's configuration in place, with tools that report success."""
    tools = path.parents[1] / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("systemctl", "docker", "dockerd", "timeout"):
        (tools / name).write_text("#!/bin/sh\nexit 0\n")
        (tools / name).chmod(0o755)
    script = Configuration("new", None).apply_script("restart")
    script = script.replace("/etc/docker/daemon.json", str(path)).replace("PATH=", f"PATH={tools}:")
    script = script.replace("/etc/systemd/system/docker.service.d", str(path.parents[1] / "units"))
    return subprocess.run(["sh", "-c", script], text=True, capture_output=True, check=False)


def take_back(path: Path) -> subprocess.CompletedProcess[str]:
    """Put the previous configuration of dockerd back, as a cut change does."""
    words = {"daemon_json": str(path), "dropin": str(path.parents[1] / "units" / "x.conf"), "dropin_text": ""}
    text = base64.b64encode(b"new").decode()
    script = trial_script("dockerd", owner="u", held="", daemon_text=text, endpoints="", **words)
    script = script.replace("case $1 in\n  boot)", "restore; exit\ncase $1 in\n  boot)")
    return subprocess.run(["sh", "-c", script], text=True, capture_output=True, check=False)


Write = Callable[[Path], "subprocess.CompletedProcess[str]"]
WRITES: list[Write] = [write_file, put_login, put_daemon, take_back]
every_write = pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)


@every_write
@pytest.mark.parametrize("chain", ["one link", "two links", "a relative link", "nothing behind it"])
def test_the_file_behind_a_link_is_written_and_the_link_stays(
    managed: tuple[Path, Path], write: Write, chain: str
) -> None:
    target, link = managed
    if chain == "two links":
        (link.parent / "second").symlink_to(target)
        link.unlink()
        link.symlink_to("second")
    if chain == "a relative link":
        link.unlink()
        link.symlink_to("../managed/config.json")
    if chain == "nothing behind it":
        target.unlink()
    done = write(link)
    assert done.returncode == 0, done.stderr
    assert link.is_symlink()
    assert not target.is_symlink()
    assert target.read_text() not in ("", OLD)
    assert "b2xkOmtleQ==" not in "".join(path.read_text() for path in target.parent.iterdir())
    assert [path.name for path in target.parent.iterdir()] == ["config.json"]


def others_file(target: Path, link: Path) -> None:
    os.chown(target, 12345, 12345)


def others_folder(target: Path, link: Path) -> None:
    os.chown(target.parent, 12345, 12345)


def open_folder(target: Path, link: Path) -> None:
    target.parent.chmod(0o777)


def loop(target: Path, link: Path) -> None:
    target.unlink()
    target.symlink_to(link)


def no_folder(target: Path, link: Path) -> None:
    target.unlink()
    target.parent.rmdir()


def device(target: Path, link: Path) -> None:
    link.unlink()
    link.symlink_to("/dev/null")


def folder(target: Path, link: Path) -> None:
    target.unlink()
    target.mkdir()


def plain_folder(target: Path, link: Path) -> None:
    link.unlink()
    link.mkdir()


def hard_link(target: Path, link: Path) -> None:
    link.unlink()
    os.link(target, link)


def hard_link_behind(target: Path, link: Path) -> None:
    os.link(target, target.with_name("copy"))


REFUSED: dict[Callable[[Path, Path], None], str] = {
    others_file: "can be changed by others than root",
    others_folder: "can be changed by others than root",
    open_folder: "can be changed by others than root",
    loop: "leads nowhere",
    no_folder: "leads nowhere",
    device: "is not a file",
    folder: "is not a file",
    plain_folder: "is not a file",
    hard_link: "has another name",
    hard_link_behind: "has another name",
}


@pytest.mark.parametrize("write", WRITES[:3], ids=lambda write: write.__name__)
@pytest.mark.parametrize("trap", REFUSED, ids=lambda trap: trap.__name__)
def test_what_cannot_be_written_as_it_stands_is_refused_with_the_reason_and_the_next_command(
    managed: tuple[Path, Path], write: Write, trap: Callable[[Path, Path], None]
) -> None:
    target, link = managed
    trap(target, link)
    done = write(link)
    assert done.returncode != 0
    assert REFUSED[trap] in done.stderr
    assert f"{link} " in done.stderr
    assert "next: " in done.stderr
    if target.is_file():
        assert target.read_text() == OLD


@pytest.mark.parametrize("trap", [others_file, others_folder], ids=lambda trap: trap.__name__)
def test_what_a_change_could_not_write_is_not_put_back_either(
    managed: tuple[Path, Path], trap: Callable[[Path, Path], None]
) -> None:
    target, link = managed
    trap(target, link)
    assert take_back(link).returncode == 0
    assert (target.read_text(), link.is_symlink()) == (OLD, True)


def test_a_login_behind_a_link_is_read_and_closed_there(managed: tuple[Path, Path]) -> None:
    target, link = managed
    assert read(link).mode == "640:root"
    assert edit(link, "put").returncode == 0
    assert read(link).mode == "600:root"
    assert read(link).digest == read(target).digest
    target.chmod(0o644)
    reading = HostReading({"ownership": frozenset(), "registry": SeenLogin("644:root", "s", _digest("s"), None)})
    ((step,),) = [change.steps for change in REGISTRY.pending(host(), reading)]
    assert isinstance(step, Shell)
    script = step.script.replace("/root/.docker/config.json", str(link))
    subprocess.run(["sh", "-c", script], check=True)
    assert target.stat().st_mode & 0o777 == 0o600


def _digest(salt: str) -> str:
    return registry.digest(salt, login())


def test_what_a_killed_edit_has_left_of_an_old_login_goes(managed: tuple[Path, Path]) -> None:
    target, link = managed
    leftover = target.parent / ".rackwright.AbCdEfGh"
    leftover.mkdir()
    (leftover / "config.json").write_text(OLD)
    assert edit(link, "put").returncode == 0
    assert not leftover.exists()


def test_every_script_that_is_included_is_there() -> None:
    names = [path.stem for folder in script_folders() for path in folder.glob("*.sh")]
    assert not [name for name in names if "#include" in host_script(name)]
