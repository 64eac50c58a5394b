"""What the lab decides before it touches the machine: names, addresses, keys of its caches, refusals."""

from __future__ import annotations

import io
import ipaddress
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rackwright_lab
from rackwright_lab import gpu, hosts, machine, servers
from rackwright_lab.cli import main
from rackwright_lab.gpu import pose
from rackwright_lab.hosts import base
from rackwright_lab.machine import inherited, locks, network, prerequisites
from rackwright_lab.machine.paths import Paths
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import LabError, run
from rackwright_lab.servers import aptrepo, toolkit


@pytest.mark.parametrize("name", ["demo", "a", "t12345", "two-words"])
def test_every_name_of_a_lab_carries_its_id_and_fits(name: str) -> None:
    paths = Paths(name)
    assert name in paths.bridge
    assert len(paths.bridge) <= 15
    assert name in paths.tag


@pytest.mark.parametrize("name", ["", "Demo", "1st", "a_b", "much-too-long-a-name", "../x", "end-"])
def test_a_name_that_cannot_be_used_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="is not a lab id"):
        Paths(name)


def test_a_lab_gets_its_own_subnet_or_the_next_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_used", lambda: iter(()))
    first = network.choose("demo")
    assert network.choose("demo") == first
    monkeypatch.setattr(network, "_used", lambda: iter((first,)))
    assert int(network.choose("demo")[0]) - int(first[0]) in (256, -255 * 256)
    monkeypatch.setattr(network, "_used", lambda: iter((ipaddress.IPv4Network("10.0.0.0/8"),)))
    with pytest.raises(LabError, match="rackwright lab down"):
        network.choose("demo")


def test_a_base_has_another_key_when_it_or_what_is_below_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {kind: each.key for kind, each in base.BASES.items()}
    changed = base.Base("bare", (*base.COMMON, "tree"), base.FETCHED)
    monkeypatch.setitem(base.BASES, "bare", changed)
    assert base.BASES["bare"].key != before["bare"]
    assert base.BASES["lived"].key != before["lived"]


def test_apt_settings_are_handed_down_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    dump = 'APT::Color "1";\nAcquire::http::Proxy "http://proxy:3128";\nDPkg::Lock::Timeout "5";\n'
    monkeypatch.setattr(inherited, "run", lambda *words, **more: run("printf", "%s", dump))
    assert inherited.apt_options() == ['Acquire::http::Proxy "http://proxy:3128";']


def test_without_root_the_message_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="sudo rackwright lab up"):
        prerequisites.refuse_foreign_systems()


def test_without_linux_the_message_says_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(LabError, match="this is Darwin"):
        prerequisites.refuse_foreign_systems()


APT = """#!/bin/sh
# Like apt, it does not wait for another process that holds its lists.
mkdir "$0.lock" 2>/dev/null || { echo "E: Could not get lock" >&2; exit 100; }
sleep 0.2
[ "$1" = update ] || install -m 755 /dev/null "${0%/*}/new-tool"
echo "$1" >>"$0.log"
rmdir "$0.lock"
"""


def test_labs_that_begin_together_install_what_is_missing_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text(APT)
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(prerequisites, "PACKAGE_OF", {"new-tool": "new-tools"})
    monkeypatch.setattr(prerequisites, "UNWANTED_UNITS", ())
    monkeypatch.setattr(prerequisites, "POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setattr(locks, "FOLDERS", (tmp_path,))
    with ThreadPoolExecutor(4) as labs:
        list(labs.map(lambda _: prerequisites.ensure(Progress(io.StringIO())), range(4)))
    assert Path(f"{apt}.log").read_text().split() == ["update", "install"]
    assert not prerequisites.POLICY.exists()


def test_labs_that_begin_together_build_a_repository_once(tmp_path: Path) -> None:
    begun: list[Path] = []

    def build(tree: Path, _: Path) -> None:
        begun.append(tree)
        time.sleep(0.05)
        tree.mkdir()
        (tree / "package").touch()

    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: aptrepo.built_once(tmp_path / "cache/some-apt", build), range(4)))
    assert (len(begun), folders) == (1, {tmp_path / "cache/some-apt"})
    assert [path.name for path in (tmp_path / "cache/some-apt").iterdir()] == ["package"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["some-apt"]


def test_a_failed_command_says_what_it_said() -> None:
    with pytest.raises(LabError, match=r"status 3 .*\nno such thing"):
        run("sh", "-c", "echo no such thing >&2; exit 3")


def test_a_command_that_is_missing_says_what_to_type() -> None:
    with pytest.raises(LabError, match="never-there is not "):
        run("never-there")


def test_status_without_a_lab_is_an_error_with_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--id", "never"]) == 1
    assert "rackwright lab up --hosts 2" in capsys.readouterr().err


def test_progress_names_each_step_with_its_time() -> None:
    out = io.StringIO()
    with Progress(out).step("doing this"):
        pass
    assert out.getvalue().endswith(" s  doing this\n")


def test_nvidias_packages_pin_each_other() -> None:
    packages = toolkit.packages("1.18.1")
    assert packages["nvidia-container-toolkit"][0] == (
        "nvidia-container-toolkit-base (= 1.18.1-1), libnvidia-container-tools (= 1.18.1-1)"
    )
    assert (
        'mode = "auto"' in packages["nvidia-container-toolkit-base"][1]["etc/nvidia-container-runtime/config.toml"][0]
    )


def test_the_runtime_and_its_kin_are_clean_shell() -> None:
    for script in sorted(pose.FILES.iterdir()):
        if script.read_text().startswith("#!/bin/sh"):
            run("sh", "-n", script)


EVERY_DEBIAN_HAS = {"sh", "mount", "umount", "unshare", "chroot", "systemctl", "apt-get", "apt-config", "gpgconf"}


def test_every_command_that_the_lab_runs_here_has_its_package() -> None:
    folders = (Path(package.__file__ or "").parent for package in (rackwright_lab, gpu, hosts, machine, servers))
    sources = [path.read_text() for folder in folders for path in folder.glob("*.py")]
    run_here = {name for text in sources for name in re.findall(r'\b(?:run|start)\(\s*"([a-z][a-z-]+)"', text)}
    assert len(run_here) > 10
    assert run_here - EVERY_DEBIAN_HAS <= set(prerequisites.PACKAGE_OF)
