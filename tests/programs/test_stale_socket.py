"""A docker.socket that a removed package has left listening is stopped, and one of an installed Docker is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.hostside import host_text

SYSTEMCTL = """#!/bin/sh
printf '%s\\n' "$*" >>{folder}/calls
case $1 in show) echo {load} ;; is-active) [ {active} = active ] ;; esac
"""


@pytest.mark.parametrize(
    ("load", "active", "stops"),
    [("not-found", "active", True), ("loaded", "active", False), ("not-found", "inactive", False)],
)
@pytest.mark.parametrize("script", ["docker_install.sh", "remove_packages.sh"])
def test_only_a_socket_without_a_unit_file_is_stopped(
    tmp_path: Path, script: str, load: str, active: str, stops: bool
) -> None:
    text = host_text(script)
    assert "\nend_stale_socket\n" in text.replace("  ", "")
    tool = tmp_path / "systemctl"
    tool.write_text(SYSTEMCTL.format(folder=tmp_path, load=load, active=active))
    tool.chmod(0o755)
    words = ["sh", "-ec", host_text("stale_socket.sh") + "end_stale_socket"]
    subprocess.run(words, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    assert ("stop docker.socket" in (tmp_path / "calls").read_text().splitlines()) is stops
