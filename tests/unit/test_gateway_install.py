"""The installation of HAProxy: what it notes as brought along, and whose service it ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.hostside import host_script

STANDINS = """
wait_for_others() { :; }
refuse_half_configured() { :; }
refresh() { :; }
install() { echo "install $*" >>"$calls"; touch "$calls.done"; }
installed() { echo base; [ ! -e "$calls.done" ] || echo brought-along; }
systemctl() {
  echo "systemctl $*" >>"$calls"
  case $1 in cat) [ "$service" = yes ] ;; esac
}
"""


def install(tmp_path: Path, packages: str, service: str) -> list[str]:
    """Run the job where systemd knows a haproxy.service or not; returns what it called."""
    calls = tmp_path / "calls"
    text = host_script("apt") + STANDINS + host_script("gateway_install", packages=packages)
    text = text.replace("/run/rackwright", str(tmp_path)).replace("/var/lib/rackwright", str(tmp_path))
    values = f"calls={calls} service={service} http_proxy=\n"
    done = subprocess.run(["sh", "-c", values + text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return calls.read_text().splitlines()


@pytest.mark.parametrize(
    ("packages", "service", "ended"),
    [("haproxy curl", "no", True), ("haproxy", "yes", False), ("curl", "yes", False), ("curl", "no", False)],
)
def test_only_the_service_that_the_package_begins_is_ended(
    tmp_path: Path, packages: str, service: str, ended: bool
) -> None:
    calls = install(tmp_path, packages, service)
    assert f"install {packages}" in calls
    assert any(call.startswith("systemctl disable") for call in calls) == ended


def test_what_came_along_is_noted_for_the_teardown(tmp_path: Path) -> None:
    install(tmp_path, "haproxy", "no")
    assert (tmp_path / "packages").read_text().split() == ["brought-along"]
