"""Who really gets in, asked from outside the host: over IPv4 and IPv6, through restarts, and with a guard that acts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.concerns.firewall import SCRIPT, UNIT, UNIT_FILE, remove_script
from rackwright.iptables import parse_save
from rackwright.lab import network
from rackwright.lab.host import Host
from rackwright.lab.lab import Lab
from tests.lab.calm import settle
from tests.lab.conftest import BIN, ROOT, Run, Site

pytestmark = pytest.mark.lab

INVENTORY = """\
from rackwright.inventory import build
from rackwright.lab.inventory import hosts

globals().update(build(__file__, {"lab": hosts()}))
"""
DEPLOY = """\
from tasks.firewall import firewall

firewall()
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1.5).recv(0)"
SERVER = "/usr/bin/python3 -m http.server --bind {} {}"


@dataclass(frozen=True)
class Client:
    """A machine beside the host: a network namespace on the lab's bridge, with addresses of its own."""

    name: str
    address: str

    @property
    def address6(self) -> str:
        return network.address6(self.address)

    def plug_in(self, bridge: str) -> None:
        """Attach it to the bridge."""
        self.unplug()
        link = f"{self.name}-l"
        _ip("netns", "add", self.name)
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("link", "set", link, "master", bridge, "up")
        self._ip("addr", "add", f"{self.address}/24", "dev", "eth0")
        self._ip("addr", "add", f"{self.address6}/64", "dev", "eth0", "nodad")
        self._ip("link", "set", "eth0", "up")

    def unplug(self) -> None:
        """Take it away; safe when it was never there."""
        subprocess.run(["ip", "netns", "delete", self.name], capture_output=True, check=False)

    def route(self, subnet: str, via: str) -> None:
        """Send a subnet's packets by way of a neighbour."""
        self._ip("route", "replace", subnet, "via", via)

    def reaches(self, address: str, port: int) -> bool:
        """Whether a connection is made."""
        argv = ["ip", "netns", "exec", self.name, sys.executable, "-c", CONNECT, address, str(port)]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    def _ip(self, *words: str) -> None:
        _ip("-n", self.name, *words)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass(frozen=True)
class Scene:
    """One host with a container that serves on a published port, a client to let in, and one to keep out."""

    lab: Lab
    host: Host
    friend: Client
    stranger: Client
    folder: Path

    @property
    def friends(self) -> list[str]:
        """What allow_from says."""
        return [f"{self.friend.address}/32", f"{self.friend.address6}/128"]

    def command(self, **values: Any) -> list[str]:
        """Write the settings; the words that deploy them."""
        model = {"repository": "openai/gpt-oss-20b", "mount": "/config/models/m"}
        (self.folder / "group_vars/lab.yml").write_text(
            yaml.safe_dump({"model": model, "firewall": {"confirm_timeout": 5}, **values})
        )
        return [str(BIN / "pyinfra"), "inventory/lab.py", "deploy.py", "-y"]

    def deploy(self, **values: Any) -> Run:
        """Deploy the firewall with these settings."""
        run = Site(self.lab).command(*self.command(**values), cwd=self.folder)
        print(run.output)
        return run

    def environment(self) -> dict[str, str]:
        """What a deploy runs with."""
        return Site(self.lab).environment()

    def serve(self, publish: str, name: str = "stand-in", listen: tuple[str, int] = ("0.0.0.0", 8000)) -> None:
        """Start a container that accepts connections."""
        binds = "--volume /usr:/usr:ro --restart always --stop-signal KILL"
        self.host.run(f"docker run --detach --name {name} {publish} {binds} empty {SERVER.format(*listen)}")

    def container_reaches(self, address: str, port: int) -> bool:
        """Whether a container on Docker's bridge makes a connection."""
        argv = f"docker run --rm --volume /usr:/usr:ro empty /usr/bin/python3 -c '{CONNECT}' {address} {port}"
        return self.host.run(argv, check=False).returncode == 0

    def wait_for(self, what: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, "it did not come"
            time.sleep(0.1)

    def who_gets_in(self, port: int = 8000) -> dict[str, bool]:
        """Friend and stranger, over both families."""
        return {
            "friend": self.friend.reaches(self.host.address, port),
            "friend over IPv6": self.friend.reaches(self.host.address6, port),
            "stranger": self.stranger.reaches(self.host.address, port),
            "stranger over IPv6": self.stranger.reaches(self.host.address6, port),
        }

    def foreign(self) -> list[str]:
        """Everybody else's rules of both families, in order, apart from those that Docker makes for containers."""
        docker = ("DOCKER", "DOCKER-ISOLATION-STAGE-1", "DOCKER-ISOLATION-STAGE-2")
        found = [rule for rule in self._rules() if not rule.ours and "172.17." not in rule.text]
        return [f"{rule.chain} {rule.text}" for rule in found if rule.chain not in docker]

    def ours(self) -> list[str]:
        """Our rules of both families."""
        return [f"{rule.chain} {rule.text}" for rule in self._rules() if rule.ours]

    def _rules(self) -> list[Any]:
        tables = [parse_save(self.host.run(f"{name}-save -t filter").stdout) for name in ("iptables", "ip6tables")]
        return [rule for table in tables for rules in table.chains.values() for rule in rules]


FRIEND_ONLY = {"friend": True, "friend over IPv6": True, "stranger": False, "stranger over IPv6": False}
EVERYBODY = dict.fromkeys(FRIEND_ONLY, True)


@pytest.fixture(scope="module")
def scene(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A lab of its own: one lived-in host, and two clients."""
    lab = Lab.open(f"fw{worker_id.removeprefix('gw').removeprefix('master')}")
    lab.down()
    (host,) = lab.up(hosts=1, bare=0)
    prefix = host.address.rpartition(".")[0]
    clients = [Client(f"{lab.paths.id}-{name}", f"{prefix}.{last}") for name, last in (("in", 201), ("out", 202))]
    for client in clients:
        client.plug_in(lab.paths.bridge)
    found = Scene(lab, host, clients[0], clients[1], _site(tmp_path_factory.mktemp("site")))
    host.run(
        "mkdir /tmp/e && cd /tmp/e && ln -s usr/lib lib && ln -s usr/lib64 lib64 && tar -c . | docker import - empty"
    )
    found.serve("--publish 8000:8000")
    found.wait_for(lambda: clients[0].reaches(host.address, 8000))
    yield found
    for client in clients:
        client.unplug()
    lab.down()


@pytest.fixture(autouse=True)
def _settled(scene: Scene) -> None:
    settle(scene.lab)


def _site(folder: Path) -> Path:
    for name in ("inventory", "group_vars"):
        (folder / name).mkdir()
    (folder / "inventory/lab.py").write_text(INVENTORY)
    (folder / "deploy.py").write_text(DEPLOY)
    shutil.copytree(ROOT / "tasks", folder / "tasks")
    return folder


def test_only_the_allowed_reach_a_published_port(scene: Scene) -> None:
    assert scene.deploy().status == 0
    assert scene.who_gets_in() == EVERYBODY
    assert scene.deploy(allow_from=scene.friends).status == 0
    assert scene.who_gets_in() == FRIEND_ONLY
    assert scene.host.run(f"curl --silent --fail --max-time 2 {scene.host.address}:8000 >/dev/null && echo in").stdout
    assert scene.container_reaches(scene.host.address, 8000)
    assert scene.container_reaches(scene.lab.servers()[0], 443)
    assert scene.deploy().status == 0
    assert scene.who_gets_in() == EVERYBODY


def test_a_neighbour_with_a_route_to_the_bridge_does_not_get_round_it(scene: Scene) -> None:
    inside = scene.host.run("docker inspect --format '{{.NetworkSettings.IPAddress}}' stand-in").stdout.strip()
    scene.stranger.route(f"{inside}/32", scene.host.address)
    assert scene.deploy().status == 0
    assert scene.stranger.reaches(inside, 8000)
    for bind in ("0.0.0.0", scene.host.address):
        assert scene.deploy(allow_from=scene.friends, bind=bind).status == 0
        assert not scene.stranger.reaches(inside, 8000)


def test_only_the_allowed_reach_a_port_on_the_hosts_network(scene: Scene) -> None:
    scene.serve("--network host", "on-host", ("::", 8100))
    try:
        scene.wait_for(lambda: scene.friend.reaches(scene.host.address, 8100))
        assert scene.deploy(network="host", port=8100, bind="::").status == 0
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


def test_a_rule_that_would_let_strangers_in_is_put_after_ours(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    scene.host.run("iptables -I DOCKER-USER -p tcp -j ACCEPT")
    try:
        assert scene.stranger.reaches(scene.host.address, 8000)
        run = scene.deploy(allow_from=scene.friends)
        assert "a rule stands before ours" in run.output
        assert scene.who_gets_in() == FRIEND_ONLY
        assert scene.deploy(allow_from=scene.friends).changed == []
    finally:
        scene.host.run("iptables -D DOCKER-USER -p tcp -j ACCEPT")


LOCK_OUT = {"port": 22, "network": "host", "bind": "0.0.0.0", "allow_from": ["192.0.2.0/24"]}


def test_a_change_that_locks_us_out_is_taken_back_by_the_host(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    before = (scene.ours(), scene.foreign(), scene.host.run(f"cat {SCRIPT}").stdout)
    run = scene.deploy(**LOCK_OUT)
    assert run.status != 0
    assert "no new SSH connection could confirm" in run.output
    scene.wait_for(lambda: scene.host.ssh("true").returncode == 0)
    assert (scene.ours(), scene.foreign(), scene.host.run(f"cat {SCRIPT}").stdout) == before
    assert scene.deploy(allow_from=scene.friends).changed == []


def test_a_lock_out_is_taken_back_even_when_the_control_process_is_killed(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    before = scene.ours()
    process = subprocess.Popen(
        scene.command(**LOCK_OUT),
        cwd=scene.folder,
        env=scene.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    scene.wait_for(lambda: any("--dport 22 " in rule for rule in scene.ours()))
    process.kill()
    process.wait()
    scene.wait_for(lambda: scene.ours() == before)
    assert scene.host.ssh("true").returncode == 0


def test_a_run_that_died_before_it_confirmed_is_confirmed_by_the_next(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    process = subprocess.Popen(
        scene.command(firewall={"confirm_timeout": 20}),
        cwd=scene.folder,
        env=scene.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    scene.wait_for(lambda: len(scene.ours()) == 3)
    process.kill()
    process.wait()
    assert scene.deploy().status == 0
    assert scene.host.run("systemctl list-timers --all 'rackwright-guard-*' --no-legend").stdout == ""
    assert scene.deploy().changed == []


def test_a_host_moved_to_the_legacy_backend_is_closed_again_and_keeps_none_of_ours_in_the_other(scene: Scene) -> None:
    assert scene.deploy(allow_from=scene.friends).status == 0
    _backend(scene, "legacy")
    try:
        run = scene.deploy(allow_from=scene.friends)
        assert run.status == 0
        assert "iptables-nft has rules of its own" in run.output
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


def test_an_engine_that_forwards_ipv6_without_docker_user_is_filtered_too(scene: Scene) -> None:
    kept = scene.host.run("cat /etc/docker/daemon.json").stdout
    more = {"experimental": True, "ip6tables": True, "ipv6": True, "fixed-cidr-v6": "fd00:d0c::/64"}
    scene.host.run(
        "cat >/etc/docker/daemon.json; systemctl restart docker", stdin=json.dumps({**json.loads(kept), **more})
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
        scene.host.run("docker rm --force both; cat >/etc/docker/daemon.json", stdin=kept)
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
