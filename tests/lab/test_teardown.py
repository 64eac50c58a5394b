"""Teardown removes what we added and nothing else; deployed again it ends the same."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

from rackwright.plan.change import Owned
from rackwright_lab.hosts.host import Host
from tests.lab.conftest import BIN, Site
from tests.lab.running import Running, deploying

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
    assert "gone, but for what is left on purpose" in run.output
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
    assert "left on the host: image" not in purged.output
    for host in site.lab.hosts:
        assert not host_has(host, "/var/lib/rackwright")
        assert not host.run("ls /srv/models | grep -- --", check=False).stdout
    images = lived.run("docker image ls --format '{{json .}}'").stdout.splitlines()
    assert not [image for image in images if json.loads(image)["Repository"].startswith("nvcr.io")]


def host_has(host: Host, path: str) -> bool:
    return host.run(f"test -e {path}", check=False).returncode == 0


# -- without its record

OWN_TRACES = """
ls -d /etc/systemd/system/rackwright* /var/lib/rackwright /etc/rackwright /run/rackwright 2>/dev/null
ls -d /etc/apt/*/*rackwright* 2>/dev/null
iptables-save 2>/dev/null | grep -- '"rackwright:'; ip6tables-save 2>/dev/null | grep -- '"rackwright:'
docker ps --all --format '{{.Names}}' 2>/dev/null | grep rackwright
systemctl list-units --all --plain --no-legend 'rackwright*' | grep -v 'rackwright-lab'
exit 0
"""


def traces(host: Host) -> list[str]:
    """Everything on a host that has a mark of ours, but the lab's own."""
    return [line for line in host.run(OWN_TRACES).stdout.splitlines() if "rackwright-lab" not in line]


def test_without_its_record_a_serving_host_is_cleared_by_marks_and_the_rest_is_said(site: Site) -> None:
    host = site.lab.host("lived2")
    host.reset()
    assert site.deploy(limit=[host.name]).status == 0
    assert traces(host)
    host.run("rm -rf /var/lib/rackwright")
    run = site.rackwright("teardown", "inventory/lab.py", "--limit", host.name, "-y")
    assert run.status == 1, run.output
    assert "nothing of it is left" not in run.output
    assert "/var/lib/rackwright/owned.json is gone, and it alone names which packages, holds" in run.output
    assert "not everything is gone, or known to be gone" in run.output
    assert traces(host) == [], run.output
    again = site.rackwright("teardown", "inventory/lab.py", "--limit", host.name, "-y")
    assert (again.status, "nothing of Rackwright was found" in again.output) == (0, True), again.output


# -- cut between a removal and its record


def test_killed_between_a_removal_and_its_record_nothing_is_orphaned(site: Site) -> None:
    host = site.lab.host("lived2")
    host.reset()
    host.run("id extra >/dev/null 2>&1 || useradd --create-home extra")
    more = ("--data", 'docker.users=["extra"]')
    assert site.deploy("-y", *more, limit=[host.name]).status == 0
    assert "extra" in host.run("getent group docker").stdout
    assert Owned("group_member", "docker:extra") in record_on(host)
    # What the run removes is held up there until the run has been killed.
    host.run("mv /usr/bin/gpasswd /usr/bin/gpasswd.real")
    host.run("printf '#!/bin/sh\ntouch /run/at-it; sleep 4; exec /usr/bin/gpasswd.real \"$@\"\n' >/usr/bin/gpasswd")
    host.run("chmod 0755 /usr/bin/gpasswd")
    with deploying(site, host.name) as running:
        deadline = time.monotonic() + 120
        while host.run("test -e /run/at-it", check=False).returncode and time.monotonic() < deadline:
            time.sleep(0.2)
        run = running.stop(signal.SIGKILL)
    assert run.status != 0
    assert Owned("group_member", "docker:extra") in record_on(host), "recorded until it is known to be gone"
    time.sleep(6)
    host.run("mv /usr/bin/gpasswd.real /usr/bin/gpasswd; rm -f /run/at-it")
    healed = site.deploy("-y", limit=[host.name])
    assert healed.status == 0, healed.output
    assert Owned("group_member", "docker:extra") not in record_on(host)
    assert "extra" not in host.run("getent group docker").stdout
    assert site.deploy("-y", limit=[host.name]).changed == []
    purged = site.rackwright("teardown", "inventory/lab.py", "--limit", host.name, "-y", "--purge")
    assert purged.status == 0, purged.output
    assert traces(host) == []
    assert not host.run("ls /srv/models | grep -- --", check=False).stdout


def record_on(host: Host) -> frozenset[Owned]:
    found = json.loads(host.run("cat /var/lib/rackwright/owned.json").stdout)["owned"]
    return frozenset(Owned(**entry) for entry in found)


def test_killed_in_a_teardown_the_next_one_ends_it(site: Site) -> None:
    host = site.lab.host("lived2")
    host.reset()
    assert site.deploy("-y", limit=[host.name]).status == 0
    words = (BIN / "rackwright", "teardown", "inventory/lab.py", "--limit", host.name, "-y", "--purge")
    for sentence in ("stop and remove rackwright-llm.service", "remove the model"):
        running = Running(site, *map(str, words))
        assert running.until(sentence) is not None, running.output
        time.sleep(0.5)
        running.stop(signal.SIGKILL)
    run = site.command(*words)
    assert run.status == 0, run.output
    assert traces(host) == []
    assert not host.run("ls /srv/models | grep -- --", check=False).stdout


# -- made by hand

BY_HAND = """\
[Unit]
Description=by hand
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""


def test_a_unit_made_by_hand_is_refused_or_kept_aside_and_put_back(site: Site) -> None:
    host = site.lab.host("lived2")
    host.reset()
    path = "/etc/systemd/system/rackwright-llm.service"
    host.run(f"printf '%s' '{BY_HAND}' >{path}; systemctl daemon-reload; systemctl enable --now --quiet rackwright-llm")
    before = state(host)
    refused = site.deploy("-y", limit=[host.name])
    assert refused.status == 1
    assert f"{path} was not written by Rackwright" in refused.output
    assert "releases: {foreign_units: aside}" in refused.output
    assert state(host) == before
    assert not host_has(host, "/var/lib/rackwright")
    assert host.run("systemctl is-active rackwright-llm").stdout.strip() == "active"

    asked = ("-y", "--data", "releases.foreign_units=aside")
    deployed = site.deploy(*asked, limit=[host.name])
    assert deployed.status == 0, deployed.output
    assert "keep rackwright-llm.service aside in /var/lib/rackwright/aside" in deployed.output
    assert "Written by Rackwright" in host.run(f"cat {path}").stdout
    assert Owned("aside", "rackwright-llm.service") in record_on(host)
    assert site.deploy("-y", limit=[host.name]).changed == [], "ours now, so it needs no setting any more"

    torn = site.rackwright("teardown", "inventory/lab.py", "--limit", host.name, "-y", "--purge")
    assert torn.status == 0, torn.output
    assert host.run(f"cat {path}").stdout == BY_HAND
    assert host.run("systemctl is-active rackwright-llm; systemctl is-enabled rackwright-llm").stdout.split() == [
        "active",
        "enabled",
    ]
    host.run(f"systemctl disable --now --quiet rackwright-llm; rm -f {path}; systemctl daemon-reload")
