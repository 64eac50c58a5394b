"""The looking verbs on real hosts: they write nothing, and tell what changes, what moved and what serves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab import tutorial
from tests.lab.conftest import ARTEFACTS, Site

pytestmark = pytest.mark.lab

INVENTORY_FILE = "inventory/lab.py"
OTHERS = "/proc /sys /run /dev /tmp /var/tmp /var/log /var/lib/systemd /var/lib/docker /var/lib/containerd"
"""What changes on its own: logins, a running Docker, the private /tmp of systemd services that answer a question."""
LISTING = f"""
prune=$(for p in {OTHERS}; do printf -- '-path %s -prune -o ' $p; done)
find / -xdev $prune -printf '%p %y %s %m %u %T@\\n' | sort
"""
INVENTORY = """
from rackwright.inventory import build
from rackwright_lab.inventory import hosts

more = {more!r}
own = [(name, {{**data, **more}}) for name, data in hosts()]
globals().update(build(__file__, {{"lab": [*own, *{away!r}]}}, children={{"b200": ["lab"]}}))
"""


def listing(host: Host) -> list[str]:
    """Every file of a host with what a write would change."""
    return host.run(LISTING).stdout.splitlines()


def inventory(folder: Path, more: dict[str, object] | None = None, away: list[object] | None = None) -> str:
    """Make an inventory of the lab whose hosts say more, with hosts that are not there."""
    path = ARTEFACTS / folder.name / "fleet.py"  # below the checkout, so that it is the checkout's
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(INVENTORY.format(more=more or {}, away=away or []))
    return str(path)


def test_looking_at_a_bare_host_writes_nothing(site: Site) -> None:
    bare = site.lab.host("bare1")
    bare.reset()
    before = listing(bare)
    assert len(before) > 1000
    plan = site.rackwright("plan", "inventory/lab.py", "--limit", bare.name, "--json")
    assert plan.status == 2, plan.output
    [host] = json.loads(plan.output[plan.output.index("{") :])["hosts"]
    assert host["state"] == "pending"
    assert {"docker", "image", "models", "endpoint"} <= {change["concern"] for change in host["changes"]}
    assert sum(change["download_bytes"] or 0 for change in host["changes"]) > 2**30
    assert site.rackwright("drift", "inventory/lab.py", "--limit", bare.name).status == 0
    assert site.rackwright("status", "inventory/lab.py", "--limit", bare.name).status == 0
    ahead = site.deploy("--dry", limit=[bare.name])
    assert ahead.status == 0, ahead.output
    for sentence in ("install", "pull", "fetch", "write release", "start endpoint llm"):
        assert f"would {sentence}" in ahead.output, sentence
    assert tutorial.missing(4, ahead.output, bare.name) == []
    assert listing(bare) == before


OVERRIDE = "/etc/systemd/system/rackwright-llm.service.d/override.conf"
BY_HAND = rf"""mkdir -p {OVERRIDE.rpartition("/")[0]}; {{ printf '[Service]\nExecStart=\n'
  sed -n '/^ExecStart=/,/[^\\]$/p' /etc/systemd/system/rackwright-llm.service |
    sed 's#docker run --rm#docker run --env DEBUG_BY_BOB=hunter2 --memory 64g --rm#'; }} >{OVERRIDE} &&
  systemctl daemon-reload"""
"""As most people change a unit: `systemctl edit`."""


@pytest.mark.proof("the drop-in itself is seen in the test below; the restart and its heal take two loads")
def test_what_runs_is_held_against_its_release(site: Site) -> None:
    lived = site.lab.host("lived2")
    limit = ("--limit", lived.name)
    assert site.deploy("-y", limit=(lived.name,)).status == 0
    lived.run(f"{BY_HAND} && systemctl restart rackwright-llm && rm {OVERRIDE} && systemctl daemon-reload")
    for verb in ("drift", "status", "plan"):
        shown = site.rackwright(verb, "inventory/lab.py", *limit).output
        assert texts.STARTED_OTHERWISE.format(edited="with DEBUG_BY_BOB, --memory") in shown, shown
        assert "hunter2" not in shown
    assert site.deploy("-y", limit=(lived.name,)).status == 0
    assert site.rackwright("drift", "inventory/lab.py", *limit).status == 0
    named = ("--data", 'releases={"drop_ins": ["override.conf"]}')
    lived.run(f"printf '[Service]\nTimeoutStopSec=50\n' >{OVERRIDE}; systemctl daemon-reload")
    assert "RW2467" in site.deploy("-y", limit=(lived.name,)).output
    assert site.deploy("-y", *named, limit=(lived.name,)).status == 0
    assert site.deploy("-y", *named, limit=(lived.name,)).changed == []
    lived.run(f"rm {OVERRIDE}; systemctl daemon-reload")
    assert site.deploy("-y", limit=(lived.name,)).status == 0


def test_the_fleet_is_drawn_with_what_serves_and_where_the_watch_is_paused(site: Site) -> None:
    bare, lived = site.lab.host("bare1"), site.lab.host("lived2")
    assert site.deploy("-y", limit=(lived.name,)).status == 0
    pause = site.rackwright(
        "watch", "pause", INVENTORY_FILE, "--limit", lived.name, "--for", "1h", "--reason", "RMA 4711"
    )
    assert pause.status == 0, pause.output
    try:
        top = site.rackwright("top", INVENTORY_FILE, "--once", "--limit", bare.name, "--limit", lived.name)
        assert top.status == 0, top.output
        rows = {row.split()[0]: row for row in top.output.splitlines() if row.startswith((bare.name, lived.name))}
        assert rows[bare.name].split()[1] != "serving"
        assert rows[lived.name].split()[1] == "serving"
        assert "RMA 4711" in rows[lived.name]
        shown = site.rackwright("watch", "show", INVENTORY_FILE, "--limit", lived.name)
        assert (shown.status, "RMA 4711" in shown.output) == (0, True), shown.output
    finally:
        resumed = site.rackwright("watch", "resume", INVENTORY_FILE, "--limit", lived.name)
    assert resumed.status == 0, resumed.output
    assert lived.run("[ ! -e /run/rackwright/engines-paused ]").returncode == 0


def test_a_served_host_is_planned_and_its_drift_is_told(site: Site, tmp_path: Path) -> None:
    lived = site.lab.host("lived2")
    limit = ("--limit", lived.name)
    assert site.deploy("-y", limit=(lived.name,)).status == 0
    plan = site.rackwright("plan", "inventory/lab.py", *limit)
    assert plan.status == 0, plan.output
    assert site.rackwright("drift", "inventory/lab.py", *limit).status == 0
    [row] = json.loads(site.rackwright("status", "inventory/lab.py", *limit, "--json").output)["endpoints"]
    assert (row["health"], row["drift"], row["gpus"], row["proven"]) == ("serving", False, 8, True)
    assert (row["wanted"], row["connections"]) == (True, 0)

    other = site.rackwright("plan", inventory(tmp_path, more={"engine": {"max_batch_size": 7}}), *limit)
    assert other.status == 2, other.output
    assert "+max_batch_size: 7" in other.output
    behind = site.rackwright("status", inventory(tmp_path, more={"engine": {"max_batch_size": 7}}), *limit)
    assert "behind" in behind.output, behind.output
    restarts = texts.pattern(texts.RESTARTS, endpoint="endpoint llm", why=".*max_batch_size changed")
    assert re.search(restarts, other.output), other.output
    assert site.lab.secrets()["hub-token"] not in other.output

    # Otherwise the host may put its rules back before anybody has looked.
    assert site.rackwright("firewall", "pause", "inventory/lab.py", "--limit", lived.name, "--for", "1h").status == 0
    lived.run("systemctl disable --quiet rackwright-llm rackwright-boot.service; iptables -F DOCKER-USER")
    lived.run("chmod 0777 /var/lib/rackwright/endpoints/llm && chown ops /etc/rackwright/watch")
    lived.run("proxy=$(command -v docker-proxy) && mv $proxy $proxy.gone")
    lived.run(BY_HAND)
    drift = site.rackwright("drift", "inventory/lab.py", *limit)
    assert drift.status == 2, drift.output
    assert texts.NO_BOOT in drift.output
    assert "firewall" in drift.output
    assert "/var/lib/rackwright/endpoints/llm are 777:root" in drift.output
    assert "/etc/rackwright/watch are 644:ops" in drift.output
    assert re.search(texts.pattern(texts.PROGRAM_GONE, path=r"/\S+/docker-proxy"), drift.output), drift.output
    lived.run("for gone in /usr/*bin/docker-proxy.gone; do mv $gone ${gone%.gone}; done")
    assert texts.DROP_IN_SETS.format(path="override.conf", keys="ExecStart") in drift.output
    status = site.rackwright("status", "inventory/lab.py", *limit).output
    assert "serving" in status
    assert texts.NO_BOOT in status
    assert texts.BOOT_UNIT_OFF.format(unit="rackwright-boot.service") in status
    assert texts.DROP_IN.format(path="override.conf") in status
    refused = site.rackwright("plan", "inventory/lab.py", *limit)
    assert (refused.status, "RW2467" in refused.output) == (1, True), refused.output
    lived.run(f"rm {OVERRIDE}; systemctl daemon-reload")
    assert site.deploy("-y", limit=(lived.name,)).status == 0
    assert site.rackwright("firewall", "resume", "inventory/lab.py", "--limit", lived.name).status == 0
    assert site.rackwright("drift", "inventory/lab.py", *limit).status == 0


def test_a_host_that_is_dark_is_named_and_the_others_are_looked_at(site: Site, tmp_path: Path) -> None:
    lived = site.lab.host("lived2")
    path = inventory(tmp_path, away=[("dark1", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})])
    limits = ("--limit", lived.name, "--limit", "dark1")
    plan = site.rackwright("plan", path, *limits)
    assert plan.status == 1, plan.output
    assert "dark1: cannot be reached" in plan.output
    assert lived.name in plan.output
    status = site.rackwright("status", path, *limits)
    assert status.status == 1
    assert "1 not known" in status.output


def test_exec_and_logs_follow_the_limit(site: Site) -> None:
    lived = site.lab.host("lived2")
    run = site.rackwright("exec", "inventory/lab.py", "--limit", lived.name, "--", "sh", "-c", "id -un; uname -n")
    assert run.status == 0, run.output
    assert f"{lived.name}: root\n{lived.name}: {lived.name}" in run.output
    assert site.rackwright("exec", "inventory/lab.py", "--limit", lived.name, "--", "false").status == 1
    assert site.rackwright("logs", "inventory/lab.py", "--limit", lived.name, "-n", "5").status == 0
