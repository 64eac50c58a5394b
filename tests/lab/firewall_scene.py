"""A host whose port friends and outsiders probe, from outside it: shared by the tests of the firewall."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rackwright.concerns.firewall.rule_table import parse_save
from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.machine import network
from tests.lab.conftest import BIN, ROOT, Run, Site

INVENTORY = """\
from rackwright.inventory import build
from rackwright_lab.inventory import hosts

globals().update(build(__file__, {"lab": hosts()}))
"""
DEPLOY = """\
from tasks import firewall

firewall()
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1.5).recv(0)"
PROBING = """
import select, socket, sys, time
port, addresses, under_way, tries, made = int(sys.argv[1]), sys.argv[2:], [], 0, 0
while not select.select([sys.stdin], [], [], 0.05)[0]:
    for address in addresses:
        one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        one.setblocking(False)
        one.connect_ex((address, port))
        under_way.append((time.monotonic(), one))
        tries += 1
    done = select.select([], [one for _, one in under_way], [], 0)[1]
    made += sum(one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 for one in done)
    under_way = [(since, one) for since, one in under_way if one not in done and time.monotonic() - since < 2]
print(tries, made)
"""
SERVER = "/usr/bin/python3 -m http.server --bind {} {}"


@dataclass(frozen=True)
class Client:
    """A machine beside the host: a network namespace on the lab's bridge, with addresses of its own."""

    name: str
    address: str
    own6: str = ""

    @property
    def address6(self) -> str:
        return self.own6 or network.address6(self.address)

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
        return self.probe(address, port).wait() == 0

    def probe(self, address: str, port: int) -> subprocess.Popen[bytes]:
        """Try to connect; the exit status says whether a connection was made."""
        argv = ["ip", "netns", "exec", self.name, sys.executable, "-I", "-S", "-c", CONNECT, address, str(port)]
        return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @contextmanager
    def probing(self, port: int, *addresses: str) -> Iterator[list[int]]:
        """Try to connect twenty times a second; afterwards the list has the tries, and the connections."""
        argv = ["ip", "netns", "exec", self.name, sys.executable, "-I", "-S", "-c", PROBING, str(port), *addresses]
        found: list[int] = []
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield found
            finally:
                found += map(int, process.communicate("")[0].split())

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
    outsider: Client
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

    def rackwright(self, *words: str) -> Run:
        """Run `rackwright` on this site."""
        run = Site(self.lab).command(str(BIN / "rackwright"), *words, cwd=self.folder)
        print(run.output)
        return run

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Pause the host's watch: what was moved stays so until a deploy finds it."""
        assert (
            self.rackwright("firewall", "pause", "inventory/lab.py", "--limit", self.host.name, "--for", "1h").status
            == 0
        )
        try:
            yield
        finally:
            assert self.rackwright("firewall", "resume", "inventory/lab.py", "--limit", self.host.name).status == 0

    def environment(self) -> dict[str, str]:
        """Return the environment of a deploy."""
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
        """Friend and outsider, over both families, all at once: who is dropped waits until it gives up."""
        probes = {
            "friend": self.friend.probe(self.host.address, port),
            "friend over IPv6": self.friend.probe(self.host.address6, port),
            "outsider": self.outsider.probe(self.host.address, port),
            "outsider over IPv6": self.outsider.probe(self.host.address6, port),
        }
        return {name: probe.wait() == 0 for name, probe in probes.items()}

    def foreign(self) -> list[str]:
        """Everybody else's rules of both families, in order, apart from those that Docker makes for containers."""
        docker = ("DOCKER", "DOCKER-ISOLATION-STAGE-1", "DOCKER-ISOLATION-STAGE-2")
        found = [rule for rule in self._rules() if not rule.ours and "172.17." not in rule.text]
        return [f"{rule.chain} {rule.text}" for rule in found if rule.chain not in docker]

    def ours(self) -> list[str]:
        """Our rules of both families, and what keeps others out."""
        rules = [f"{rule.chain} {rule.text}" for rule in self._rules() if rule.ours]
        return [*rules, *self.ours_by_nft()]

    def ours_by_nft(self) -> list[str]:
        """Return what keeps others out."""
        shown = self.host.run("nft -s list table inet rackwright", check=False)
        return [row for row in shown.stdout.splitlines() if "rackwright:" in row]

    def _rules(self) -> list[Any]:
        tables = [parse_save(self.host.run(f"{name}-save -t filter").stdout) for name in ("iptables", "ip6tables")]
        return [rule for table in tables for rules in table.chains.values() for rule in rules]


FRIEND_ONLY = {"friend": True, "friend over IPv6": True, "outsider": False, "outsider over IPv6": False}
EVERYBODY = dict.fromkeys(FRIEND_ONLY, True)


def kill_when(scene: Scene, reached: Callable[[], bool], **settings: Any) -> None:
    """Begin a deploy with these settings, and kill the control process once something is so."""
    process = subprocess.Popen(
        scene.command(**settings),
        cwd=scene.folder,
        env=scene.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    scene.wait_for(reached)
    process.kill()
    process.wait()


@contextmanager
def raised(worker_id: str, folder: Path) -> Iterator[Scene]:
    """Start a lab of its own: one lived-in host, and two clients."""
    lab = Lab.open(f"fw{worker_id.removeprefix('gw').removeprefix('master')}")
    lab.down()
    (host,) = lab.up(hosts=1, bare=0, short_lists=True, in_memory=True)
    prefix = host.address.rpartition(".")[0]
    clients = [Client(f"{lab.paths.id}-{name}", f"{prefix}.{last}") for name, last in (("in", 201), ("out", 202))]
    for client in clients:
        client.plug_in(lab.paths.bridge)
    found = Scene(lab, host, clients[0], clients[1], _site(folder))
    host.run(
        "mkdir /tmp/e && cd /tmp/e && ln -s usr/lib lib && ln -s usr/lib64 lib64 && tar -c . | docker import - empty"
    )
    found.serve("--publish 8000:8000")
    found.wait_for(lambda: clients[0].reaches(host.address, 8000))
    yield found
    for client in clients:
        client.unplug()
    lab.down()


def _site(folder: Path) -> Path:
    for name in ("inventory", "group_vars"):
        (folder / name).mkdir()
    (folder / "inventory/lab.py").write_text(INVENTORY)
    (folder / "deploy.py").write_text(DEPLOY)
    shutil.copytree(ROOT / "tasks", folder / "tasks")
    return folder
