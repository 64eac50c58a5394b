"""A site in a closed network: its bundle, hosts without a route, and a control machine that reaches them alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright_lab import faults
from rackwright_lab.hosts.host import Host
from rackwright_lab.machine import network
from rackwright_lab.servers.registry import HOST
from tests.lab.conftest import BIN, ROOT, Run, Site

MODEL = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/base", "exclude": ["original/*", "metal/*"]}
IMAGE = f"{HOST}/nvidia/tensorrt-llm/release:1.1.0rc0"
NOWHERE = {"http": "http://127.0.0.1:9"}
"""A proxy that does not answer: the control machine's way out is gone."""
SERVERS = r"^10\.79\.[0-9]+\.[2-5]\s"
INVENTORY = "tests/lab/staging/inventory.py"
FETCHES = "../staging/deploy"
"""Steps that fetch, and neither look at the host nor set Docker up."""


@contextmanager
def walled(site: Site, host: Host) -> Iterator[None]:
    """Let a host resolve no name, and its packets reach this machine's sshd clients alone."""
    host.run("cp /etc/hosts /etc/resolv.conf /root")
    host.run(f"sed -i -E '/{SERVERS}/d' /etc/hosts && echo 'nameserver 127.0.0.1' >/etc/resolv.conf")
    faults.forget_requests(site.lab.paths.web)
    network.wall_in(site.lab.paths, host.address, "127.0.0.1", 9)
    try:
        yield
    finally:
        host.let_out()
        host.run("cp /root/hosts /root/resolv.conf /etc")


@dataclass
class ClosedSite:
    """Hosts that a bundle is for, and the commands of their site."""

    site: Site
    hosts: Sequence[Host]
    folder: Path
    """The bundle's."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the test, over those of the lab."""
    before: tuple[str, ...] = ()
    """What stands before each command: the machine that it runs on."""
    inventory: str = INVENTORY
    wanted: dict[str, Any] = field(default_factory=lambda: {"model": MODEL, "image": IMAGE})

    def words(self, **settings: Any) -> tuple[str, ...]:
        """Return what stands before each command, so that it goes by the test's inventory."""
        paths = self.site.lab.paths
        lock = {"lock_file": self.lock_file.name, "private_ca": str(paths.pki / "ca.crt")}
        key = self.site.lab.secrets()["registry-key"]
        wanted = {**self.wanted, "paths": lock, "hardware": {"architecture": "x86_64"}}
        values = json.dumps({"registry_key": key, **wanted, **self.settings, **settings})
        names = " ".join(host.name for host in self.hosts)
        return *self.before, "env", f"STAGING_HOST={names}", f"STAGING_SETTINGS={values}", f"PYTHONPATH={ROOT}"

    @property
    def lock_file(self) -> Path:
        """Its lock file; each lab has its own."""
        folder = ROOT / "tests/lab/staging" if self.inventory == INVENTORY else ROOT
        return folder / f"rackwright.lock.{self.site.lab.paths.id}.yml"

    def rackwright(self, *words: str, **settings: Any) -> Run:
        """Run a verb on the test's inventory, with the way out of the lab's control machine."""
        verb, *options = words
        return self.site.command(*self.words(**settings), str(BIN / "rackwright"), verb, self.inventory, *options)

    def bundled(self, *options: str) -> Run:
        """Write the bundle of what the hosts need."""
        assert self.rackwright("pin").status == 0
        made = self.rackwright("bundle", "--out", str(self.folder), "--without-tool", *options)
        assert made.status == 0, made.output
        return made

    def closed(self, **bundle: Any) -> dict[str, Any]:
        """Return the settings of the closed network."""
        return {"bundle": {"folder": str(self.folder), **bundle}, "control_proxy": NOWHERE}

    def deploy(self, steps: str = "stage", **bundle: Any) -> Run:
        """Fetch what the steps of a deploy fetch, with no way out. bundle: keys of its settings."""
        return self.site.command(*self.deploying(steps, **bundle))

    def deploying(self, steps: str = "stage", **bundle: Any) -> tuple[str, ...]:
        """Return the words of that command."""
        command = (str(BIN / "pyinfra"), self.inventory, f"tests/lab/deploys/{steps}.py", "-y")
        return *self.words(**self.closed(**bundle)), *command

    @contextmanager
    def without_a_route(self) -> Iterator[None]:
        """Wall all hosts in."""
        with ExitStack() as stack:
            for host in self.hosts:
                stack.enter_context(walled(self.site, host))
            yield

    def requests(self) -> list[str]:
        """Return the requests of the hosts at the lab's web servers."""
        addresses = {host.address for host in self.hosts}
        return [row["path"] for row in faults.requests(self.site.lab.paths.web) if row["client"] in addresses]
