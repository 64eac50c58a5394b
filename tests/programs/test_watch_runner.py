"""The runner of a host's checks: which of them run beside a run, and that none waits for another."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from rackwright.concerns.watch.units import BESIDE, watch_files
from rackwright.paths import ETC


@pytest.fixture
def host(tmp_path: Path) -> Path:
    for name in ("bin", "watch.d", "run", "state"):
        (tmp_path / name).mkdir()
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.write_text("#!/bin/sh\nexit 0\n")
    systemctl.chmod(0o755)
    (tmp_path / "watch.d" / "engines").write_text(f"# looks\n{BESIDE}\nsleep 1\necho looked\n")
    (tmp_path / "watch.d" / "firewall").write_text("# repairs\necho repaired\n")
    return tmp_path


def run(host: Path) -> list[str]:
    """Run the runner on this folder; return what the checks print."""
    text = watch_files()[f"{ETC}/watch"]
    for path, name in ((f"{ETC}/watch.d", "watch.d"), ("/var/lib/rackwright", "state"), ("/run/rackwright", "run")):
        assert path in text
        text = text.replace(path, str(host / name))
    text = text.replace("PATH=/usr/local/sbin", f"PATH={host / 'bin'}:/usr/local/sbin")
    return subprocess.run(
        ["sh", "-c", text], env=dict(os.environ), capture_output=True, text=True, check=True, timeout=30
    ).stdout.splitlines()


def test_at_rest_all_checks_run_and_none_waits_for_the_look(host: Path) -> None:
    assert run(host) == ["repaired", "looked"]


@pytest.mark.parametrize("why", ["lease", "trial", "pause"])
def test_beside_a_run_the_look_alone_runs(host: Path, why: str) -> None:
    uptime = int(float(Path("/proc/uptime").read_text().split()[0]))
    if why == "lease":
        (host / "run" / "lease").write_text(f"taken={uptime - 5}\nexpires={uptime + 60}\n")
    elif why == "pause":
        (host / "run" / "watch-paused").write_text(f"{uptime + 60}\n")
    else:
        (host / "state" / "endpoints" / "llm").mkdir(parents=True)
        (host / "state" / "endpoints" / "llm" / "trial").touch()
    assert run(host) == ["looked"]


def test_a_failed_repair_fails_the_runner_only_after_the_look(host: Path) -> None:
    (host / "watch.d" / "firewall").write_text("# repairs\nexit 1\n")
    begun = time.monotonic()
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(host)
    assert failed.value.stdout == "looked\n"
    assert time.monotonic() - begun < 20
