"""Teardown removes what we added and nothing else; deployed again it ends the same."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

from rackwright.plan.change import Owned
from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.conftest import BIN, Site
from tests.lab.products import in_proof, with_proof
from tests.lab.running import Running, deploying
from tests.refused import refusal

pytestmark = pytest.mark.lab

STATE = """
for f in /etc/docker/daemon.json /root/.docker/config.json; do echo "== $f"; cat $f 2>/dev/null; done
echo "== rules"; iptables-save 2>/dev/null | grep -E 'INPUT|DOCKER-USER|FORWARD' | grep -v ':' | sed 's/\\[.*//' | sort
echo "== users"; getent group | grep -E '^(docker|adm|video|sudo):'
echo "== units"; ls /etc/systemd/system
echo "== packages"; dpkg-query -W -f '${Package} ${db:Status-Abbrev}\\n' | grep ' ii'
echo "== held"; apt-mark showhold
echo "== apt"; ls /etc/apt/sources.list.d /etc/apt/keyrings /etc/apt/apt.conf.d
echo "== trust"; find /etc/ssl/certs -lname '*rackwright*' -printf '%p %l\\n' | sort
"""


def state(host: Host) -> dict[str, Any]:
    """Return the state of a host in the kinds that Rackwright touches, by section."""
    sections = host.run(STATE, check=False).stdout.split("== ")[1:]
    found = {section.split("\n")[0]: section.split("\n", 1)[1] for section in sections}
    return {name: json.loads(text) if name.endswith(".json") and text.strip() else text for name, text in found.items()}


@pytest.mark.parametrize(
    "name", with_proof(["lived2", "bare1"], {"lived2"}, "test_ubuntu.py deploys onto a bare host and tears it down")
)
def test_what_was_there_before_is_there_after(site: Site, name: str) -> None:
    host = site.lab.host(name)
    host.reset()
    before = state(host)
    assert site.deploy("-y", limit=[host.name]).status == 0
    run = site.rackwright("teardown", "inventory/lab.py", "-y", "--limit", host.name)
    assert run.status == 0, run.output
    assert "left on the host: image" in run.output
    assert texts.DONE_BUT_KEPT in run.output
    if host.kind == "lived":
        assert state(host) == before
        assert host_has(host, "/srv/models/gpt-oss-120b"), "a foreign half-downloaded model stays"
    after = state(host)
    assert (after["packages"], after["units"]) == (before["packages"], before["units"])

    again = site.deploy("-y", limit=[host.name])
    assert again.status == 0, again.output
    assert site.deploy("-y", limit=[host.name]).changed == []
    if host.kind == "bare":  # the lived-in one is purged below
        purged = site.rackwright("teardown", "inventory/lab.py", "-y", "--purge", "--limit", host.name)
        assert purged.status == 0, purged.output
        assert_purged(host)


def assert_purged(host: Host) -> None:
    """Check that a host has nothing of Rackwright left, including what teardown leaves unless it purges."""
    assert traces(host) == []
    assert not host_has(host, "/var/lib/rackwright")
    assert not host.run("ls /srv/models | grep -- --", check=False).stdout
    images = host.run("docker image ls --format '{{json .}}'", check=False).stdout.splitlines()
    assert not [image for image in images if json.loads(image)["Repository"].startswith("nvcr.io")]


def host_has(host: Host, path: str) -> bool:
    return host.run(f"test -e {path}", check=False).returncode == 0


OWN_TRACES = """
ls -d /etc/systemd/system/rackwright* /var/lib/rackwright /etc/rackwright /run/rackwright 2>/dev/null
ls -d /etc/apt/*/*rackwright* 2>/dev/null
iptables-save 2>/dev/null | grep -- '"rackwright:'; ip6tables-save 2>/dev/null | grep -- '"rackwright:'
nft list tables 2>/dev/null | grep rackwright
docker ps --all --format '{{.Names}}' 2>/dev/null | grep rackwright
systemctl list-units --all --plain --no-legend 'rackwright*' | grep -v 'rackwright-lab'
exit 0
"""


def traces(host: Host) -> list[str]:
    """Return everything on a host that has a mark of Rackwright, but the lab's own."""
    return [trace for trace in host.run(OWN_TRACES).stdout.splitlines() if "rackwright-lab" not in trace]


# -- cut

GPASSWD = """#!/bin/sh
touch /run/at-it
until [ -e /run/let-go ]; do sleep 0.2; done
exec /usr/bin/gpasswd.real "$@"
"""


@in_proof("a teardown without its record is below; tests/unit/test_ownership.py cuts anywhere")
def test_killed_between_a_removal_and_its_record_and_in_a_teardown_nothing_is_orphaned(site: Site) -> None:
    host = site.lab.host("lived2")
    host.run("id extra >/dev/null 2>&1 || useradd --create-home extra")
    more = ("--data", 'docker.users=["extra"]')
    assert site.deploy("-y", *more, limit=[host.name]).status == 0
    assert "extra" in host.run("getent group docker").stdout
    assert Owned("group_member", "docker:extra") in record_on(host)
    # What the run removes is held up there until the run has been killed.
    host.run(
        "mv /usr/bin/gpasswd /usr/bin/gpasswd.real; cat >/usr/bin/gpasswd; chmod 0755 /usr/bin/gpasswd", stdin=GPASSWD
    )
    with deploying(site, host.name) as running:
        wait_for(host, "test -e /run/at-it")
        run = running.stop(signal.SIGKILL)
    assert run.status != 0
    assert Owned("group_member", "docker:extra") in record_on(host), "recorded until it is known to be gone"
    host.run("touch /run/let-go")
    wait_for(host, "! pgrep -x gpasswd && ! pgrep -x gpasswd.real")
    host.run("mv /usr/bin/gpasswd.real /usr/bin/gpasswd; rm -f /run/at-it /run/let-go")
    healed = site.deploy("-y", limit=[host.name])
    assert healed.status == 0, healed.output
    assert Owned("group_member", "docker:extra") not in record_on(host)
    assert "extra" not in host.run("getent group docker").stdout
    assert site.deploy("-y", limit=[host.name]).changed == []
    purge_with_kills(site, host)
    assert_purged(host)


def wait_for(host: Host, condition: str) -> None:
    host.run(f"for i in $(seq 600); do {{ {condition}; }} && exit 0; sleep 0.2; done; exit 1", timeout=130)


def record_on(host: Host) -> frozenset[Owned]:
    found = json.loads(host.run("cat /var/lib/rackwright/owned.json").stdout)["owned"]
    return frozenset(Owned(**entry) for entry in found)


def purge_with_kills(site: Site, host: Host) -> None:
    """Run a teardown that is killed twice; the third one ends it."""
    words = (BIN / "rackwright", "teardown", "inventory/lab.py", "--limit", host.name, "-y", "--purge")
    for sentence in ("stop and remove rackwright-llm.service", "remove the model"):
        running = Running(site, *map(str, words))
        assert running.until(sentence) is not None, running.output
        time.sleep(0.5)
        running.stop(signal.SIGKILL)
    run = site.command(*words)
    assert run.status == 0, run.output


# -- made by hand

BY_HAND = """\
[Unit]
Description=by hand
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""


@in_proof("what was there before is there after; units by hand are refused in tests/unit")
def test_a_unit_made_by_hand_is_refused_or_kept_aside_and_put_back(site: Site, request: pytest.FixtureRequest) -> None:
    host = site.lab.host("lived2")
    if traces(host) or host.run("ls /srv/models | grep -- --", check=False).stdout:
        host.reset()
    path = "/etc/systemd/system/rackwright-llm.service"
    host.run(f"printf '%s' '{BY_HAND}' >{path}; systemctl daemon-reload; systemctl enable --now --quiet rackwright-llm")
    request.addfinalizer(lambda: remove_by_hand(host, path))
    before = state(host)
    refused = site.deploy("-y", limit=[host.name])
    assert refused.status == 1
    refusal(refused.output, "RW3129", path, "releases: {foreign_units: aside}")
    assert state(host) == before
    assert not host_has(host, "/var/lib/rackwright")
    assert host.run("systemctl is-active rackwright-llm").stdout.strip() == "active"

    arguments = ("-y", "--data", "releases.foreign_units=aside")
    deployed = site.deploy(*arguments, limit=[host.name])
    assert deployed.status == 0, deployed.output
    assert f"{texts.MOVED_AWAY_TO.format(unit='rackwright-llm.service')}/var/lib/rackwright/aside" in deployed.output
    assert "Written by Rackwright" in host.run(f"cat {path}").stdout
    assert Owned("aside", "rackwright-llm.service") in record_on(host)
    assert site.deploy("-y", limit=[host.name]).changed == [], "the unit is Rackwright's now, so it needs no setting"

    torn = site.rackwright("teardown", "inventory/lab.py", "--limit", host.name, "-y", "--purge")
    assert torn.status == 0, torn.output
    assert host.run(f"cat {path}").stdout == BY_HAND
    assert host.run("systemctl is-active rackwright-llm; systemctl is-enabled rackwright-llm").stdout.split() == [
        "active",
        "enabled",
    ]


def remove_by_hand(host: Host, path: str) -> None:
    """Remove the unit, whatever became of its test: left behind, it would stop every test after it."""
    host.run(f"if grep -q 'by hand' {path}; then systemctl disable --now --quiet rackwright-llm; rm -f {path}; fi")
    host.run("systemctl daemon-reload")


# -- without its record, which leaves models that are nobody's: last


def test_without_its_record_a_serving_host_is_cleared_by_marks_and_the_rest_is_said(site: Site) -> None:
    host = site.lab.host("lived2")
    assert site.deploy("-y", limit=[host.name]).status == 0
    assert traces(host)
    host.run("rm -rf /var/lib/rackwright")
    run = site.rackwright("teardown", "inventory/lab.py", "--limit", host.name, "-y")
    assert run.status == 1, run.output
    assert "nothing of it is left" not in run.output
    assert texts.NO_RECORD.format(path="/var/lib/rackwright/owned.json") in run.output
    assert f"{texts.NOT_ALL_GONE}{host.name}" in run.output
    assert traces(host) == [], run.output
    again = site.rackwright("teardown", "inventory/lab.py", "--limit", host.name, "-y")
    assert (again.status, texts.NOTHING_FOUND in again.output) == (0, True), again.output
