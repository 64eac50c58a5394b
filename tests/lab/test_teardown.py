"""Teardown removes what we added and nothing else; deployed again it ends the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rackwright.lab.host import Host
from tests.lab.conftest import Site

pytestmark = pytest.mark.lab

STATE = """
for f in /etc/docker/daemon.json /root/.docker/config.json; do echo "== $f"; cat $f 2>/dev/null; done
echo "== rules"; iptables-save 2>/dev/null | grep -E 'INPUT|DOCKER-USER|FORWARD' | grep -v ':' | sed 's/\\[.*//' | sort
echo "== users"; getent group | grep -E '^(docker|adm|video|sudo):'
echo "== units"; ls /etc/systemd/system
echo "== packages"; dpkg-query -W -f '${Package} ${db:Status-Abbrev}\\n' | grep ' ii'
echo "== held"; apt-mark showhold
echo "== apt"; ls /etc/apt/sources.list.d /etc/apt/keyrings /etc/apt/apt.conf.d
"""


def state(host: Host) -> dict[str, Any]:
    """What is on a host of the kinds that we touch, by section."""
    sections = host.run(STATE, check=False).stdout.split("== ")[1:]
    found = {section.split("\n")[0]: section.split("\n", 1)[1] for section in sections}
    return {name: json.loads(text) if name.endswith(".json") and text.strip() else text for name, text in found.items()}


def test_what_was_there_before_is_there_after(site: Site) -> None:
    for host in site.lab.hosts:
        host.reset()
    before = {host.name: state(host) for host in site.lab.hosts}
    assert site.deploy().status == 0
    run = site.rackwright("teardown", "inventory/lab.py", "-y")
    assert run.status == 0, run.output
    assert "left on the host: image" in run.output
    lived, bare = site.lab.host("lived2"), site.lab.host("bare1")
    assert state(lived) == before[lived.name]
    after = state(bare)
    assert after["packages"] == before[bare.name]["packages"]
    assert after["units"] == before[bare.name]["units"]
    assert host_has(lived, "/srv/models/gpt-oss-120b"), "a foreign half-downloaded model stays"

    again = site.deploy()
    assert again.status == 0, again.output
    assert site.deploy().changed == []

    purged = site.rackwright("teardown", "inventory/lab.py", "-y", "--purge")
    assert purged.status == 0, purged.output
    for host in site.lab.hosts:
        assert not host_has(host, "/var/lib/rackwright")
        assert not host.run("ls /srv/models | grep -- --", check=False).stdout
    images = lived.run("docker image ls --format '{{json .}}'").stdout.splitlines()
    assert not [image for image in images if json.loads(image)["Repository"].startswith("nvcr.io")]


def host_has(host: Host, path: str) -> bool:
    return host.run(f"test -e {path}", check=False).returncode == 0
