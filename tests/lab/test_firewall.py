"""Who really gets in, asked from outside the host: over IPv4 and IPv6, through restarts, and with a guard that acts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from rackwright.concerns.firewall import remove_script
from rackwright.concerns.firewall.kept import SCRIPT, UNIT, UNIT_FILE
from tests import texts
from tests.lab.calm import settle
from tests.lab.firewall_scene import EVERYBODY, FRIEND_ONLY, Client, Scene, kill_when, raised
from tests.lab.products import in_proof
from tests.refused import refusal

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def scene(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Return a host with a server, and two clients."""
    with raised(worker_id, tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(autouse=True)
def _settled(scene: Scene) -> None:
    settle(scene.lab)


CLOSED = """
for c in iptables ip6tables; do
  $c -I INPUT -p tcp --dport 22 -j ACCEPT
  $c -I INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
  $c -P INPUT DROP
done
ip6tables -I INPUT -p ipv6-icmp -j ACCEPT
"""
AS_BEFORE = """
for c in iptables ip6tables; do
  $c -P INPUT ACCEPT
  $c -D INPUT -p tcp --dport 22 -j ACCEPT
  $c -D INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
done
ip6tables -D INPUT -p ipv6-icmp -j ACCEPT
"""
SQUAT = "systemd-run --quiet --collect --unit squatter --uid nobody python3 -m http.server 8000 --bind {}"


def test_only_the_allowed_reach_a_published_port(scene: Scene) -> None:
    assert scene.deploy(allow_from="any").status == 0
    assert scene.who_gets_in() == EVERYBODY
    assert scene.deploy(allow_from=scene.friends).status == 0
    assert scene.who_gets_in() == FRIEND_ONLY
    assert scene.host.run(f"curl --silent --fail --max-time 2 {scene.host.address}:8000 >/dev/null && echo in").stdout
    assert scene.container_reaches(scene.host.address, 8000)
    assert scene.container_reaches(scene.lab.servers()[0], 443)
    scene.host.run(CLOSED)
    try:
        assert scene.who_gets_in() == FRIEND_ONLY
        scene.host.run(f"docker stop --time 0 stand-in; {SQUAT.format('0.0.0.0')}")
        scene.wait_for(lambda: scene.host.run("ss -Hltn 'sport = :8000'").stdout != "")
        assert not scene.friend.reaches(scene.host.address, 8000), "another process listens in its place"
    finally:
        scene.host.run(f"systemctl stop squatter; {AS_BEFORE} docker start stand-in", check=False)
    scene.wait_for(lambda: scene.friend.reaches(scene.host.address, 8000))
    assert scene.deploy(allow_from="any").status == 0
    assert scene.who_gets_in() == EVERYBODY


@in_proof("tests/unit/test_by_input.py shows that nothing of it is an argument")
def test_many_networks_of_many_endpoints_fit(scene: Scene) -> None:
    """Beyond the 128 KiB that Linux takes as one argument."""
    networks = [f"10.{number}.{part}.0/24" for number in range(200, 208) for part in range(0, 16, 2)]
    endpoints = {
        f"e{number}": {"port": 8000 + number, "gpus": [number], "allow_from": [*networks, *scene.friends]}
        for number in range(8)
    }
    run = scene.deploy(endpoints=endpoints)
    assert run.status == 0, run.output
    assert scene.who_gets_in() == FRIEND_ONLY
    assert scene.deploy(endpoints=endpoints).changed == []


def test_without_a_word_only_private_networks_get_in(scene: Scene) -> None:
    assert scene.deploy().status == 0
    assert scene.who_gets_in() == EVERYBODY, "the lab's networks are private ones"
    public = Client(f"{scene.lab.paths.id}-pub", "198.18.0.9", "2001:db8:99::9")
    public.plug_in(scene.lab.paths.bridge)
    scene.host.run("ip address add 198.18.0.1/24 dev host0; ip -6 address add 2001:db8:99::1/64 dev host0 nodad")
    try:
        assert not public.reaches("198.18.0.1", 8000)
        assert not public.reaches("2001:db8:99::1", 8000)
        assert scene.deploy(allow_from="any").status == 0
        assert public.reaches("198.18.0.1", 8000)
        assert public.reaches("2001:db8:99::1", 8000)
    finally:
        scene.host.run("ip address del 198.18.0.1/24 dev host0; ip -6 address del 2001:db8:99::1/64 dev host0")
        public.unplug()


@in_proof("only the allowed reach a published port")
def test_a_neighbour_with_a_route_to_the_bridge_does_not_get_round_it(scene: Scene) -> None:
    inside = scene.host.run("docker inspect --format '{{.NetworkSettings.IPAddress}}' stand-in").stdout.strip()
    scene.outsider.route(f"{inside}/32", scene.host.address)
    assert scene.deploy(allow_from="any").status == 0
    assert scene.outsider.reaches(inside, 8000)
    for bind in ("0.0.0.0", scene.host.address):
        assert scene.deploy(allow_from=scene.friends, bind=bind).status == 0
        assert not scene.outsider.reaches(inside, 8000)


@in_proof("only the allowed reach a published port has the half over IPv4")
def test_whoever_listens_in_a_published_ports_place_is_reached_by_no_rule_of_ours(scene: Scene) -> None:
    """INPUT leads to Docker's proxy alone: IPv6 clients, while the container publishes there."""
    assert scene.deploy(allow_from=scene.friends).status == 0
    scene.host.run(CLOSED)
    try:
        assert scene.who_gets_in() == FRIEND_ONLY
        scene.host.run("docker stop --time 0 stand-in")
        scene.host.run(SQUAT.format("0.0.0.0"))
        scene.wait_for(lambda: scene.host.run("ss -Hltn 'sport = :8000'").stdout != "")
        assert not any(scene.who_gets_in().values())
        assert scene.deploy(allow_from=scene.friends).status == 0
        scene.host.run("systemctl stop squatter; " + SQUAT.format("::"))
        scene.wait_for(lambda: scene.host.run("ss -Hltn 'sport = :8000'").stdout != "")
        assert not any(scene.who_gets_in().values())
    finally:
        scene.host.run(f"systemctl stop squatter; {AS_BEFORE} docker start stand-in", check=False)
    scene.wait_for(lambda: scene.friend.reaches(scene.host.address, 8000))
    assert scene.who_gets_in()["friend"], "INPUT's policy is ACCEPT again"


def test_only_the_allowed_reach_a_port_on_the_hosts_network(scene: Scene) -> None:
    scene.serve("--network host", "on-host", ("::", 8100))
    try:
        scene.wait_for(lambda: scene.friend.reaches(scene.host.address, 8100))
        assert scene.deploy(network="host", port=8100, bind="::", allow_from="any").status == 0
        assert scene.who_gets_in(8100) == EVERYBODY
        assert scene.deploy(network="host", port=8100, bind="::", allow_from=scene.friends).status == 0
        assert scene.who_gets_in(8100) == FRIEND_ONLY
        assert scene.who_gets_in(8000) == EVERYBODY
        assert scene.container_reaches(scene.host.address, 8100)
    finally:
        scene.host.run("docker rm --force on-host")


def test_a_second_run_changes_nothing_and_foreign_rules_stay_as_they_are(scene: Scene) -> None:
    before = scene.foreign()
    assert len(before) > 10
    # 10.79.0.7/24 and a network twice: neither is how iptables-save spells it.
    values = {"allow_from": [*scene.friends, "10.79.0.7/24", "10.79.0.0/24", "0.0.0.0/0"], "bind": scene.host.address}
    assert scene.deploy(**values).changed
    again = scene.deploy(**values)
    assert (again.status, again.changed) == (0, [])
    assert scene.foreign() == before


def test_rules_survive_a_restart_of_docker_and_a_reboot(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    rules = scene.ours()
    scene.host.run("systemctl restart docker")
    scene.wait_for(lambda: scene.friend.reaches(scene.host.address, 8000))
    assert (scene.ours(), scene.who_gets_in()) == (rules, FRIEND_ONLY)
    scene.host.reboot()
    scene.wait_for(lambda: scene.friend.reaches(scene.host.address, 8000))
    assert (scene.ours(), scene.who_gets_in()) == (rules, FRIEND_ONLY)
    again = scene.deploy(allow_from=scene.friends)
    assert (again.status, again.changed) == (0, [])


def test_rules_that_somebody_flushed_are_back_after_a_restart_of_docker(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    rules = scene.ours()
    scene.host.run("iptables -D DOCKER-USER 1; iptables -D INPUT 1; systemctl restart docker")
    scene.wait_for(lambda: scene.ours() == rules)


def test_a_rule_that_lets_everybody_in_lets_nobody_past_the_drops(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    scene.host.run("iptables -I DOCKER-USER -p tcp -j ACCEPT; iptables -I INPUT -j ACCEPT")
    try:
        assert scene.who_gets_in() == FRIEND_ONLY
        assert scene.deploy(allow_from=scene.friends).changed == []
    finally:
        scene.host.run("iptables -D DOCKER-USER -p tcp -j ACCEPT; iptables -D INPUT -j ACCEPT")


def test_what_a_site_closes_for_containers_stays_closed(scene: Scene) -> None:
    server = scene.lab.servers()[0]
    assert scene.deploy().status == 0
    assert scene.container_reaches(server, 443)
    # Before the RETURN with which Docker ends its chain, and so behind ours.
    last = "$(($(iptables -S DOCKER-USER | grep -n -e '-j RETURN' | cut -d : -f 1) - 1))"
    try:
        with scene.unwatched():
            scene.host.run(f"iptables -I DOCKER-USER {last} -d {server} -j DROP")
            run = scene.deploy()
        assert f"in DOCKER-USER {texts.RULE_BEHIND}" in run.output
        assert not scene.container_reaches(server, 443)
        assert scene.deploy().changed == []
    finally:
        scene.host.run(f"iptables -D DOCKER-USER -d {server} -j DROP")


def kill_when_ours_has(scene: Scene, words: str, **settings: Any) -> None:
    """Begin a deploy with these settings, and kill the control process once one of Rackwright's rules has this text."""
    kill_when(scene, lambda: any(words in rule for rule in scene.ours()), **settings)


LOCK_OUT = {"port": 22, "network": "host", "bind": "0.0.0.0", "allow_from": ["192.0.2.0/24"]}


def test_a_change_that_locks_us_out_is_taken_back_by_the_host(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    before = (scene.ours(), scene.foreign(), scene.host.run(f"cat {SCRIPT}").stdout)
    run = scene.deploy(**LOCK_OUT)
    assert run.status != 0
    refusal(run.output, "RW0717", scene.host.name)
    scene.wait_for(lambda: scene.host.ssh("true").returncode == 0)
    assert (scene.ours(), scene.foreign(), scene.host.run(f"cat {SCRIPT}").stdout) == before
    assert scene.deploy(allow_from=scene.friends).changed == []


@in_proof("the host's own timer does it, as when the run is locked out above; below the power goes")
def test_a_lock_out_is_taken_back_even_when_the_control_process_is_killed(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    before = scene.ours()
    kill_when_ours_has(scene, "--dport 22 ", **LOCK_OUT)
    scene.wait_for(lambda: scene.ours() == before)
    assert scene.host.ssh("true").returncode == 0


def test_a_lock_out_is_taken_back_when_the_power_goes_before_it_is_confirmed(scene: Scene) -> None:
    """The guard is a timer, and gone with the power: what it leaves on the disk is what a boot goes by."""
    assert scene.deploy(allow_from=scene.friends).status == 0
    before = scene.ours()
    kill_when_ours_has(scene, "--dport 22 ", **LOCK_OUT, firewall={"confirm_timeout": 600})
    scene.host.kill_power()
    scene.host.start()
    scene.wait_for(lambda: scene.ours() == before)
    assert scene.host.ssh("true").returncode == 0
    assert scene.deploy(allow_from=scene.friends).changed == []


def test_a_run_that_died_before_it_confirmed_is_confirmed_by_the_next(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    kill_when_ours_has(scene, "{ 10.0.0.0/8, ", firewall={"confirm_timeout": 20})
    assert scene.deploy().status == 0
    assert scene.host.run("systemctl list-timers --all 'rackwright-guard-*' --no-legend").stdout == ""
    assert scene.deploy().changed == []


@in_proof("fixtures have both backends; the rules are counted on the newer one")
def test_a_host_moved_to_the_legacy_backend_is_closed_again_and_keeps_none_of_ours_in_the_other(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    try:
        with scene.unwatched():
            _backend(scene, "legacy")
            run = scene.deploy(allow_from=scene.friends)
        assert run.status == 0
        assert re.search(texts.pattern(texts.TWO_BACKENDS, command="iptables-nft"), run.output), run.output
        assert "rackwright:" not in scene.host.run("iptables-nft-save; ip6tables-nft-save").stdout
        assert any("DOCKER-USER" in rule for rule in scene.ours())
        assert scene.who_gets_in() == FRIEND_ONLY
        assert scene.deploy(allow_from=scene.friends).changed == []
    finally:
        scene.host.run(remove_script())
        _backend(scene, "nft")
    assert scene.deploy(allow_from=scene.friends).status == 0
    assert scene.who_gets_in() == FRIEND_ONLY


def _backend(scene: Scene, name: str) -> None:
    lines = [f"update-alternatives --set {command} /usr/sbin/{command}-{name}" for command in ("iptables", "ip6tables")]
    scene.host.run(" && ".join([*lines, "systemctl restart docker"]))
    scene.wait_for(lambda: scene.friend.reaches(scene.host.address, 8000))


@in_proof("fixtures have both families; IPv4 is probed")
def test_an_engine_that_forwards_ipv6_without_docker_user_is_filtered_too(scene: Scene) -> None:
    daemon_json = scene.host.run("cat /etc/docker/daemon.json").stdout
    more = {"experimental": True, "ip6tables": True, "ipv6": True, "fixed-cidr-v6": "fd00:d0c::/64"}
    scene.host.run(
        "cat >/etc/docker/daemon.json; systemctl restart docker", stdin=json.dumps({**json.loads(daemon_json), **more})
    )
    scene.serve("--publish 8200:8200", "both", ("::", 8200))
    try:
        scene.wait_for(lambda: scene.friend.reaches(scene.host.address6, 8200))
        assert "DOCKER-USER" not in scene.host.run("ip6tables-save").stdout
        assert scene.deploy(port=8200).status == 0
        assert scene.who_gets_in(8200) == EVERYBODY
        assert scene.deploy(port=8200, allow_from=scene.friends).status == 0
        assert scene.who_gets_in(8200) == FRIEND_ONLY
        scene.host.run("systemctl restart docker")
        scene.wait_for(lambda: scene.friend.reaches(scene.host.address6, 8200))
        scene.wait_for(lambda: scene.who_gets_in(8200) == FRIEND_ONLY)
        assert scene.deploy(port=8200, allow_from=scene.friends).changed == []
    finally:
        scene.host.run("docker rm --force both; cat >/etc/docker/daemon.json", stdin=daemon_json)
        # The chains that Docker made for IPv6 stay until the next boot.
        scene.host.reboot()


def test_nothing_of_ours_is_left_after_removal_and_all_of_the_others(scene: Scene) -> None:
    before = scene.foreign()
    assert scene.deploy(allow_from=scene.friends).status == 0
    scene.host.run(remove_script())
    assert scene.ours() == []
    assert scene.foreign() == before
    assert (
        scene.host.run(f"ls {SCRIPT} {UNIT_FILE} 2>/dev/null; systemctl is-enabled {UNIT} 2>/dev/null; true").stdout
        == ""
    )
    scene.host.run(remove_script())
