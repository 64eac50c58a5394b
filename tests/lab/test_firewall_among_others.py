"""Other tools that write firewall rules: whatever they flush, the port stays closed, or the host closes it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rackwright.concerns.firewall.kept import CHECK, LEFT, SCRIPT, kept_rules, placed
from rackwright.concerns.lease import LEASE
from rackwright.concerns.watch import WATCH_SERVICE, WATCH_TIMER
from rackwright.settings.host_settings import HostSettings
from tests import texts
from tests.lab.calm import settle
from tests.lab.firewall_scene import FRIEND_ONLY, Scene, kill_when, raised
from tests.lab.products import in_proof
from tests.older_drops import older_drops, older_script
from tests.refused import refusal

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def scene(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Return a host with a server, and two clients."""
    with raised(worker_id, tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(autouse=True)
def _settled(scene: Scene) -> Iterator[None]:
    settle(scene.lab)
    yield
    scene.host.run(
        f"systemctl stop {WATCH_TIMER}; rm -rf /var/lib/rackwright/watch; systemctl restart docker", check=False
    )


def outsiders_in(scene: Scene) -> list[str]:
    """By which families a outsider gets in."""
    return [name for name, gets_in in scene.who_gets_in().items() if gets_in and name.startswith("outsider")]


def unwatched(scene: Scene) -> None:
    """Deploy, and pause the watch that puts rules back: what holds now holds alone."""
    assert scene.deploy(allow_from=scene.friends).status == 0
    scene.host.run(f"systemctl stop {WATCH_TIMER}")


FLUSH = "for c in iptables ip6tables; do $c -P INPUT ACCEPT; $c -F INPUT; $c -F DOCKER-USER || true; done"
OLDER = {
    "iptables-restore": "iptables-restore </tmp/older4; ip6tables-restore </tmp/older6",
    "a flush": FLUSH,
}


@pytest.mark.parametrize("how", OLDER)
def test_rules_from_before_that_come_back_open_nothing(scene: Scene, how: str) -> None:
    scene.host.run("iptables-save -t filter >/tmp/older4; ip6tables-save -t filter >/tmp/older6")
    unwatched(scene)
    assert scene.who_gets_in() == FRIEND_ONLY
    scene.host.run(OLDER[how])
    assert outsiders_in(scene) == []


@contextmanager
def without_nft(scene: Scene) -> Iterator[None]:
    """Take nft from the host for a while."""
    scene.host.run("mv /usr/sbin/nft /usr/sbin/nft.away")
    try:
        yield
    finally:
        scene.host.run("mv /usr/sbin/nft.away /usr/sbin/nft")


def closed_by_an_earlier_version(scene: Scene) -> None:
    """Leave the host as an earlier version left it where nft was missing: its script, and its drops in the kernel."""
    assert scene.deploy(allow_from=scene.friends).status == 0
    model = {"repository": "openai/gpt-oss-20b", "mount": "/config/models/m"}
    settings = HostSettings.model_validate({"model": model, "allow_from": scene.friends})
    text = older_script(kept_rules_of(scene), older_drops(list(settings.all_endpoints.items())))
    scene.host.run(f"cat >{SCRIPT}; nft delete table inet rackwright; rm {LEFT}/nft.*; sh {SCRIPT}", stdin=text)


def kept_rules_of(scene: Scene) -> dict[str, list[str]]:
    """Return the rules that let in, as the script on the host has them."""
    return {command: placed(rules) for command, rules in kept_rules(scene.host.run(f"cat {SCRIPT}").stdout).items()}


def mangle(scene: Scene) -> list[int]:
    """Return how many lines of each family's mangle table are of Rackwright's chain."""
    return [
        int(scene.host.run(f"{command}-save -t mangle | grep -c RACKWRIGHT", check=False).stdout)
        for command in ("iptables", "ip6tables")
    ]


def test_what_an_earlier_version_closed_in_the_mangle_table_stays_closed_until_nft_has_it(scene: Scene) -> None:
    closed_by_an_earlier_version(scene)
    assert scene.who_gets_in() == FRIEND_ONLY
    before = mangle(scene)
    assert min(before) > 0
    with scene.outsider.probing(8000, scene.host.address, scene.host.address6) as probes:
        with without_nft(scene):
            run = scene.deploy(allow_from=scene.friends)
            refusal(run.output, "RW2504", scene.host.name, "apt-get install nftables")
            assert (run.status, mangle(scene)) == (1, before)
        assert scene.rackwright("drift", "inventory/lab.py").status == 0
        kill_when(scene, lambda: bool(scene.ours_by_nft()), allow_from=scene.friends)
        scene.wait_for(lambda: not scene.ours_by_nft())
        assert mangle(scene) == before, "the change was not confirmed"
        assert scene.who_gets_in() == FRIEND_ONLY
        assert scene.deploy(allow_from=scene.friends).status == 0
        assert mangle(scene) == [0, 0]
        assert scene.who_gets_in() == FRIEND_ONLY
    tries, made = probes
    assert (tries > 100, made) == (True, 0)
    assert scene.deploy(allow_from=scene.friends).changed == []


def test_an_earlier_versions_drops_go_by_a_teardown_and_by_the_hosts_own_look(scene: Scene) -> None:
    closed_by_an_earlier_version(scene)
    former = scene.host.run(f"cat {SCRIPT}").stdout
    assert scene.deploy(allow_from=scene.friends).status == 0
    current = scene.host.run(f"cat {SCRIPT}").stdout
    scene.host.run(f"cat >{SCRIPT}; sh {SCRIPT}", stdin=former)
    scene.host.run(f"cat >{SCRIPT}; systemctl start {WATCH_SERVICE}", stdin=current, check=False)
    assert mangle(scene) == [0, 0]
    assert outsiders_in(scene) == []
    closed_by_an_earlier_version(scene)
    assert scene.rackwright("teardown", "inventory/lab.py", "--all", "-y").status == 0
    assert mangle(scene) == [0, 0]


QUIET = "DEBIAN_FRONTEND=noninteractive apt-get"
INSTALL = f"{QUIET} update -q && {QUIET} install -y -q --no-install-recommends"
TOOLS = {
    "ufw": ("ufw allow 22/tcp; ufw --force enable", "ufw reload", "ufw --force disable"),
    "firewalld": (
        "systemctl start firewalld",
        "firewall-cmd --reload; systemctl restart firewalld",
        "systemctl disable --now firewalld",
    ),
    "iptables-persistent": (
        "cp /tmp/older4 /etc/iptables/rules.v4; cp /tmp/older6 /etc/iptables/rules.v6",
        "netfilter-persistent reload; systemctl restart netfilter-persistent",
        "systemctl disable --now netfilter-persistent",
    ),
}


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(tool, marks=() if tool == "ufw" else in_proof("another tool with the same effect"))
        for tool in TOOLS
    ],
)
def test_a_tool_that_reloads_its_own_rules_lets_no_outsider_in(scene: Scene, tool: str) -> None:
    start, reload, stop = TOOLS[tool]
    scene.host.run("iptables-save >/tmp/older4; ip6tables-save >/tmp/older6")
    scene.host.run(f"{INSTALL} {tool}", timeout=300)
    try:
        unwatched(scene)
        scene.host.run(start)
        assert outsiders_in(scene) == []
        scene.host.run(reload)
        assert outsiders_in(scene) == []
        assert scene.host.ssh("true").returncode == 0
        assert scene.deploy(allow_from=scene.friends).status == 0
        assert outsiders_in(scene) == []
    finally:
        scene.host.run(f"{stop}; apt-get purge -y -q {tool}; systemctl restart docker", check=False, timeout=300)


def test_what_even_our_table_does_not_outlive_is_put_back_and_a_fight_is_named(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    for number in range(3):
        scene.host.run(f"systemctl stop {WATCH_TIMER}; nft flush ruleset")
        assert outsiders_in(scene) != [], "nothing else keeps them out here"
        if number == 0:
            scene.host.run(f"systemctl start {WATCH_TIMER}")
            scene.wait_for(lambda: outsiders_in(scene) == [], 60)
        else:
            scene.host.run(f"systemctl start {WATCH_SERVICE}", check=False)
        assert outsiders_in(scene) == []
    scene.host.run(f"systemctl start {WATCH_TIMER}")
    run = scene.deploy(allow_from=scene.friends)
    assert (run.status, run.changed) == (0, [])
    assert texts.PUT_BACK_OFTEN.format(times="3 times") in run.output
    assert f"{texts.PUT_BACK_AGAIN.format(times=3)}by process" in run.output
    assert "(nft)" in run.output
    shown = scene.rackwright("firewall", "show", "inventory/lab.py")
    assert texts.AS_PUT in shown.output
    assert shown.output.count("put back ") == 3


def test_nothing_is_put_back_while_somebody_is_at_work(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    scene.host.run(f"systemctl stop {WATCH_TIMER}")
    paused = scene.rackwright("firewall", "pause", "inventory/lab.py", "--limit", scene.host.name, "--for", "1h")
    assert paused.status == 0, paused.output
    scene.host.run("nft delete table inet rackwright")
    scene.host.run(f"systemctl start {WATCH_SERVICE}")
    assert outsiders_in(scene) != []
    shown = scene.rackwright("firewall", "show", "inventory/lab.py")
    assert shown.status == 1
    assert "is not as it was put" in shown.output
    assert re.search(texts.pattern(texts.PAUSED, seconds=r"\d+"), shown.output), shown.output
    assert scene.rackwright("firewall", "resume", "inventory/lab.py", "--limit", scene.host.name).status == 1, (
        "its timer does not run"
    )
    scene.host.run("mkdir -p /var/lib/rackwright/guards && touch /var/lib/rackwright/guards/firewall")
    scene.host.run(f"systemctl start {WATCH_SERVICE}")
    assert outsiders_in(scene) != [], "a guard that a boot must find decides"
    taken = f"read -r now _ </proc/uptime; printf 'taken=1\\nexpires=%s\\n' $((${{now%%.*}} + 60)) >{LEASE}"
    scene.host.run(f"rm /var/lib/rackwright/guards/firewall; {taken}; systemctl start {WATCH_SERVICE}")
    assert outsiders_in(scene) != [], "the holder of the lease is at work"
    scene.host.run(f"rm {LEASE}; systemctl start {WATCH_SERVICE}", check=False)
    assert outsiders_in(scene) == []


ENDPOINT = "[Service]\\nExecStart=/bin/sleep infinity\\n"


def test_an_endpoint_starts_behind_the_drops_or_not_at_all(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    scene.host.run(f"printf '{ENDPOINT}' >/etc/systemd/system/rackwright-llm.service; systemctl daemon-reload")
    scene.host.run(f"systemctl stop {WATCH_TIMER}; nft delete table inet rackwright")
    try:
        scene.host.run("systemctl restart rackwright-llm")
        assert outsiders_in(scene) == []
        scene.host.run("nft delete table inet rackwright; mv /usr/sbin/nft /usr/sbin/nft.away")
        assert scene.host.run("systemctl is-active rackwright-llm").stdout.strip() == "active", (
            "losing them stops nothing"
        )
        assert scene.host.run("systemctl restart rackwright-llm", check=False).returncode != 0
    finally:
        scene.host.run(
            "mv /usr/sbin/nft.away /usr/sbin/nft; rm /etc/systemd/system/rackwright-llm.service", check=False
        )
        scene.host.run(
            "systemctl stop rackwright-llm; systemctl reset-failed rackwright-llm; systemctl daemon-reload", check=False
        )


def test_a_host_whose_iptables_fails_at_boot_is_closed_all_the_same(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    scene.host.run(f"test -f {CHECK} && systemctl disable {WATCH_TIMER}")
    broken = "/usr/local/sbin/iptables-save"
    scene.host.run(f"printf '#!/bin/sh\\nexit 1\\n' >{broken}; chmod +x {broken}")
    try:
        scene.host.reboot()
        scene.wait_for(lambda: scene.friend.reaches(scene.host.address, 8000))
        scene.wait_for(lambda: scene.host.run(f"sh {SCRIPT} close", check=False).returncode == 0)
        assert outsiders_in(scene) == []
    finally:
        scene.host.run(f"rm {broken}")
