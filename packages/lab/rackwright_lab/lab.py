"""A lab: hosts on a bridge, with the servers they need. Several can be up at once; each has its id."""

from __future__ import annotations

import ipaddress
import json
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from rackwright.messages import counted
from rackwright.processes import module
from rackwright_lab import faults
from rackwright_lab.gpu import host as host_gpus
from rackwright_lab.hosts import base, dress
from rackwright_lab.hosts import short_lists as lists
from rackwright_lab.hosts.host import Host
from rackwright_lab.machine import cgroups, locks, memory, network, prerequisites
from rackwright_lab.machine.paths import STATE_ROOT, Paths, cache_root, default_id
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import LabError, run
from rackwright_lab.real import builds, gpu, sglang, vllm
from rackwright_lab.servers import aptrepo, certificates, debianrepo, dockerrepo, driver, image, names, proxy, toolkit
from rackwright_lab.servers.registry import DOCKER_HUB, HOST, MIRROR, USER, Registry
from rackwright_lab.servers.server import Server
from rackwright_lab.servers.web import WEB_HOSTS
from rackwright_lab.standins.hub import OWN_FOLDER
from rackwright_lab.standins.own_models import put_own_models

# 60 hosts booted at the same moment left some of them broken.
BOOT_AT_ONCE = 8
MOST_HOSTS = 200
REGISTRY = "nvcr.io"
POSED_GPUS, HOST_GPUS = "posed", "host"
"""Where the GPUs of a lab's hosts come from: they pose, or they have those of this machine."""


class Lab:
    """One lab. Get one by `Lab.open(id)`; `up` boots it, `down` leaves nothing of it."""

    def __init__(self, paths: Paths, progress: Progress | None = None) -> None:
        self.paths = paths
        self.progress = progress or Progress(quiet=True)

    @classmethod
    def open(cls, lab_id: str | None = None, progress: Progress | None = None) -> Lab:
        """Return the lab of that id (default: RACKWRIGHT_LAB_ID or "demo"), up or not; silent by default."""
        return cls(Paths(lab_id or default_id()), progress)

    @property
    def is_up(self) -> bool:
        """Whether it has been set up and not taken down."""
        return self.paths.record.exists()

    def record(self) -> dict[str, Any]:
        """Return what the lab wrote down of itself. Raises LabError when no such lab is up."""
        try:
            found: dict[str, Any] = json.loads(self.paths.record.read_text())
        except FileNotFoundError:
            raise LabError("no lab is up: rackwright lab up --hosts 2") from None
        return found

    @property
    def hosts(self) -> list[Host]:
        """Its hosts, in the order of their numbers."""
        record = self.record()
        return [self._host(row, record) for row in record["hosts"]]

    @property
    def real(self) -> str | None:
        """The version of the real vLLM that it offers; of several, the last. Raises LabError when no lab is up."""
        found: str | None = self.record().get("real")
        return found

    def host(self, name: str) -> Host:
        """Return one host by its name, or by the end of it ("bare1"). Raises LabError when it is missing."""
        for host in self.hosts:
            if name in (host.name, host.name.removeprefix(f"{self.paths.id}-")):
                return host
        names = " ".join(host.name for host in self.hosts)
        raise LabError(f"the lab {self.paths.id} has no host {name}; it has: {names}")

    def secrets(self) -> dict[str, str]:
        """Return the secrets that the lab made: "registry-key" (for $oauthtoken at nvcr.io) and "hub-token"."""
        return {path.name: path.read_text() for path in sorted(self.paths.secrets.iterdir())}

    def _host(self, row: dict[str, Any], record: dict[str, Any]) -> Host:
        lower = record["bases"][row["kind"]]
        return Host(
            self.paths,
            row["name"],
            row["kind"],
            row["address"],
            lower,
            self.paths.root / "layers" / row["kind"],
            devices=tuple(Path(node) for node in row.get("devices", ())),
            denied=tuple(Path(node) for node in row.get("denied", ())),
        )

    # -- up

    def up(
        self,
        hosts: int = 2,
        bare: int = 1,
        ubuntu: int = 0,
        real: str | None = None,
        gpus: str = POSED_GPUS,
        offline: bool = False,
        short_lists: bool = False,
        in_memory: bool = False,
        with_sglang: bool = False,
        own_models: Path | None = None,
        packages: Sequence[str] = (),
    ) -> list[Host]:
        """Boot `hosts` hosts, the first `bare` of them bare, the next `ubuntu` a bare Ubuntu; others are lived-in.

        Those that exist already stay as they are. With `real`, a version, its Docker Hub has that real vLLM and its hub
        a real model. With `gpus` HOST_GPUS its hosts share this machine's own GPUs evenly, the real vLLM is a build for
        them, and the stand-ins of engines are left out. `offline`: they install packages from what the cache holds.
        `short_lists`: they know the packages that lab hosts install, and no others, so that apt is quick. `in_memory`:
        their disks are in this machine's memory, where it has some to spare; a lab that is up keeps its own.
        `with_sglang`: beside that vLLM for GPUs, Docker Hub has a real SGLang. `own_models`: a folder of the user's,
        OWNER/NAME/v1/FILE, that the hub serves too. `packages`: packages that its hosts have from the start; their
        services do not start at boot.

        Returns the hosts. Raises LabError with what failed and what to type.
        """
        if not 0 < hosts <= MOST_HOSTS or min(bare, ubuntu) < 0 or bare + ubuntu > hosts:
            raise LabError(
                f"a lab has 1 to {MOST_HOSTS} hosts and no more bare ones than hosts, not {hosts} and {bare + ubuntu}"
            )
        makers = _makers(real, on_gpus=gpus == HOST_GPUS, with_sglang=with_sglang)
        found = host_gpus.find() if gpus == HOST_GPUS else None
        if found is not None:
            self.progress.say(host_gpus.described(found))
        prerequisites.ensure(self.progress)
        with locks.only_one(self.paths.id):
            rows = self._rows(hosts, {"bare": bare, "ubuntu": ubuntu})
            if found is not None:
                _hand_out(found, rows)
            bases = self._make_ready({row["kind"] for row in rows}, found is None, short_lists, packages)
            ways = {"offline": offline, "real": real or (self.real if self.is_up else None)}
            record = self._write_record(rows, bases, ways)
            self._set_up_network(record)
            self._serve(posed=found is None)
            for make in makers:
                self._offer_real_engine(make)
            if own_models is not None:
                put_own_models(own_models, self.paths.web / OWN_FOLDER)
            self._layers(record, found)
            if in_memory and not self.paths.hosts.exists() and memory.has_room(hosts):
                memory.lay(self.paths.hosts, self.paths.tag)
            self._boot([self._host(row, record) for row in rows])
        return self.hosts

    def _rows(self, hosts: int, wanted: Mapping[str, int]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.record()["hosts"] if self.is_up else []
        kinds = [kind for kind, count in wanted.items() for _ in range(count)]
        for row in rows:
            if row["kind"] in kinds:
                kinds.remove(row["kind"])
        for number in range(len(rows) + 1, hosts + 1):
            kind = kinds.pop(0) if kinds else "lived"
            rows.append({"name": f"{self.paths.id}-{kind}{number}", "kind": kind, "number": number})
        return rows

    def _make_ready(self, kinds: set[str], posed: bool, short_lists: bool, packages: Sequence[str]) -> dict[str, str]:
        """Fill the cache, in parallel: base systems, the serving image."""
        cache = cache_root()
        with ThreadPoolExecutor() as pool:
            making_image = pool.submit(image.build, cache, self.progress) if posed else None
            made = pool.map(lambda kind: (kind, base.ensure(kind, cache, self.progress)), sorted(kinds))
            bases = {kind: base.with_packages(lower, packages, cache, self.progress) for kind, lower in made}
            bases = {kind: lists.over(lower, cache) if short_lists else lower for kind, lower in bases.items()}
            if making_image is not None:
                making_image.result()
        # A disk that was laid over one base stays on that one.
        return {**bases, **(self.record()["bases"] if self.is_up else {})}

    def _write_record(self, rows: list[dict[str, Any]], bases: dict[str, str], ways: dict[str, Any]) -> dict[str, Any]:
        with locks.only_one("subnets"):
            subnet = self.record()["subnet"] if self.is_up else str(network.choose(self.paths.id))
            first = ipaddress.IPv4Network(subnet)[network.FIRST_HOST]
            for row in rows:
                row.setdefault("address", str(first + row["number"] - 1))
            record = {"id": self.paths.id, "subnet": subnet, "bases": bases, "hosts": rows, **ways}
            self.paths.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial = self.paths.record.with_suffix(".partial")
            partial.write_text(json.dumps(record, indent=2) + "\n")
            partial.rename(self.paths.record)
            network.up(self.paths, ipaddress.IPv4Network(subnet), self.servers())
        return record

    def servers(self) -> tuple[str, str, str, str]:
        """Return the addresses of the registry, of the web stand-ins, of Docker Hub and of the proxy."""
        subnet = ipaddress.IPv4Network(self.record()["subnet"])
        return str(subnet[2]), str(subnet[3]), str(subnet[4]), str(subnet[5])

    def names(self) -> dict[str, str]:
        """Return the public names that the lab answers for, and the address that each leads to."""
        registry, web, hub, _ = self.servers()
        return {HOST: registry, MIRROR: registry, **dict.fromkeys(WEB_HOSTS, web), **dict.fromkeys(DOCKER_HUB, hub)}

    def _set_up_network(self, record: dict[str, Any]) -> None:
        registry, web, hub, _ = self.servers()
        authority = certificates.make_authority(self.paths.pki, self.paths.id)
        certificates.issue(self.paths.pki, authority, "registry", (HOST, MIRROR), registry)
        certificates.issue(self.paths.pki, authority, "dockerhub", DOCKER_HUB, hub)
        certificates.issue(self.paths.pki, authority, "web", WEB_HOSTS, web)
        self._make_secret("registry-key", "nvapi-")
        self._make_secret("hub-token", "hf_")
        if not self.paths.user_key.exists():
            run(
                "ssh-keygen",
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-C",
                "rackwright-lab",
                "-f",
                self.paths.user_key,
            )
        self.progress.say(f"network {record['subnet']} on bridge {self.paths.bridge}")

    def _make_secret(self, name: str, prefix: str) -> None:
        path = self.paths.secrets / name
        if path.exists():
            return
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(prefix + secrets.token_hex(24))

    @property
    def registry(self) -> Registry:
        """Its nvcr.io, with the ways to make it fail."""
        pair = certificates.Pair(self.paths.pki / "registry.crt", self.paths.pki / "registry.key")
        server = Server("registry", self.paths.tag, self.servers()[0], self.paths.root / "logs/registry.log")
        storage = cache_root() / "registry"
        return Registry(server, self.paths.root / "registry", storage, pair, self.paths.secrets / "registry-key")

    @property
    def docker_hub(self) -> Registry:
        """Its Docker Hub, which asks for no key, with the ways to make it fail."""
        pair = certificates.Pair(self.paths.pki / "dockerhub.crt", self.paths.pki / "dockerhub.key")
        server = Server("dockerhub", self.paths.tag, self.servers()[2], self.paths.root / "logs/dockerhub.log")
        return Registry(server, self.paths.root / "dockerhub", cache_root() / "dockerhub", pair, None)

    @property
    def web(self) -> Server:
        """The server of all other names; its faults are set by rackwright_lab.faults on `paths.web`."""
        return Server("web", self.paths.tag, self.servers()[1], self.paths.root / "logs/web.log")

    @property
    def proxy(self) -> proxy.Proxy:
        """Its forward proxy."""
        server = Server("proxy", self.paths.tag, self.servers()[3], self.paths.root / "logs/proxy.log", proxy.PORT)
        return proxy.Proxy(server, self.paths.root / "proxy", self._gateway)

    @property
    def _gateway(self) -> str:
        return str(ipaddress.IPv4Network(self.record()["subnet"])[1])

    def _serve(self, posed: bool) -> None:
        gateway = self._gateway
        name_server = Server("names", self.paths.tag, gateway, self.paths.root / "logs/names.log", port=53)
        if not name_server.is_on:
            with self.progress.step("starting the name server"):
                names.start(name_server, self.names())
        if not self.registry.server.is_on:
            with self.progress.step(f"starting the registry {HOST}"):
                self.registry.start()
        if not self.docker_hub.server.is_on:
            with self.progress.step("starting Docker Hub"):
                self.docker_hub.start()
        if posed:
            self._push_images()
        if not self.web.is_on:
            with self.progress.step(
                "starting the hub, the encodings' host, and the apt repositories of NVIDIA and Docker"
            ):
                self._start_web()
        if not self.proxy.server.is_on:
            with self.progress.step("starting the proxy"):
                self.proxy.start()

    def _push_images(self) -> None:
        trust, key = self.paths.pki / "ca.crt", self.secrets()["registry-key"]
        layout = image.build(cache_root(), self.progress)
        ours, hub = (f"{one.server.address}:{one.server.port}" for one in (self.registry, self.docker_hub))
        with locks.only_one("registry"):
            login = image.Login(ours, trust, USER, key)
            image.ensure(layout, lambda name: not image.of_hub(name), login, self.progress)
            image.ensure(layout, image.of_hub, image.Login(hub, trust), self.progress)

    def _offer_real_engine(self, make: Callable[[Path, Progress], Path]) -> None:
        made = make(cache_root(), self.progress)
        server = self.docker_hub.server
        with locks.only_one("registry"):
            login = image.Login(f"{server.address}:{server.port}", self.paths.pki / "ca.crt")
            image.ensure(made / "layout", image.of_hub, login, self.progress)
        if (made / "models").exists():
            vllm.put_models(made, self.paths.web / OWN_FOLDER)

    def apt_keys(self) -> dict[str, tuple[str, ...]]:
        """Fingerprints of the keys that sign the lab's apt repositories: the lab makes keys of its own."""
        static = self.paths.web / "static"
        files = {
            "container_toolkit": static / "nvidia.github.io/libnvidia-container/gpgkey",
            "docker": static / "download.docker.com/linux/debian/gpg",
            "driver": static / driver.HOST / driver.KEY,
        }
        return {name: aptrepo.fingerprints(file) for name, file in files.items() if file.exists()}

    def _start_web(self) -> None:
        static = self.paths.web / "static"
        static.mkdir(parents=True, exist_ok=True)
        shutil.copytree(toolkit.repository(cache_root()), static / "nvidia.github.io", dirs_exist_ok=True)
        shutil.copytree(driver.repository(cache_root()), static / driver.HOST, dirs_exist_ok=True)
        bare = Path(base.ensure("bare", cache_root(), self.progress))
        docker = static / "download.docker.com"
        docker.unlink(missing_ok=True)
        docker.symlink_to(dockerrepo.repository(cache_root(), bare))
        if self.record()["offline"]:
            debianrepo.provide(static / "deb.debian.org/debian", bare)
        faults.set_tokens(self.paths.web, {self.secrets()["hub-token"]: True})
        pair = (self.paths.pki / "web.crt", self.paths.pki / "web.key")
        flags = ("--bind", f"{self.web.address}:{self.web.port}", "--cert", pair[0], "--key", pair[1])
        where = ("--state", self.paths.web, "--cache", cache_root())
        self.web.start(*module("rackwright_lab.servers.web"), *flags, *where)

    def _layers(self, record: dict[str, Any], gpus: host_gpus.HostGpus | None) -> None:
        gateway = self._gateway
        for kind, lower in record["bases"].items():
            layer, lowest = self.paths.root / "layers" / kind, Path(lower.rpartition(":")[2])
            if not layer.exists():
                layer.mkdir(parents=True)
                authority = self.paths.pki / "ca.crt"
                dress.common(layer, self.paths, kind, authority, self.names(), gateway, lowest, gpus)
                if record["offline"]:
                    debianrepo.use(layer)

    def _boot(self, hosts: list[Host]) -> None:
        new = [host for host in hosts if not host.is_made]
        for host in new:
            host.make()
        self.trust(*new)
        off = [host for host in hosts if host.machine.is_off()]
        with self.progress.step(f"booting {counted(len(off), 'host')}"), ThreadPoolExecutor(BOOT_AT_ONCE) as pool:
            for host, state in zip(off, pool.map(_start, off), strict=True):
                self.progress.say(f"{host.name} is up at {host.address} (systemd: {state})")

    def trust(self, *hosts: Host) -> None:
        """Write the present keys of these hosts into known_hosts, in place of those it has of them."""
        path = self.paths.known_hosts
        lines = path.read_text().splitlines() if path.exists() else []
        addresses = {host.address for host in hosts}
        others = [row for row in lines if row.split()[0] not in addresses]
        path.write_text("\n".join([*others, *(f"{host.address} {host.public_host_key()}" for host in hosts)]) + "\n")

    # -- down

    def down(self) -> None:
        """End the lab: hosts, servers, bridge, rules, files. Safe to run again, and on half a lab."""
        prerequisites.refuse_foreign_systems()
        with locks.only_one(self.paths.id):
            with self.progress.step(f"ending the lab {self.paths.id}"):
                self._kill_all()
                cgroups.remove_legacy(self.paths.tag)
                for root in self.paths.hosts.glob("*/root"):
                    run("umount", root, check=False)
                memory.lift(self.paths.hosts)
                network.down(self.paths)
                shutil.rmtree(self.paths.root, ignore_errors=True)
            if self.paths.root.exists():
                raise LabError(f"{self.paths.root} could not be removed: look for mounts with findmnt -R {STATE_ROOT}")
            locks.forget(self.paths.id)

    def _kill_all(self) -> None:
        top = cgroups.unified_root() / self.paths.tag
        for group in (*top.glob("*/machine"), top):
            cgroups.end(group)


def _makers(version: str | None, on_gpus: bool, with_sglang: bool) -> list[Callable[[Path, Progress], Path]]:
    """Return what makes the images of real engines. Raises LabError where that version has no build."""
    if version is None:
        return []
    if not on_gpus:
        return [partial(vllm.ensure, builds.named(version))]
    if version != gpu.VERSION:
        raise LabError(
            f"on this machine's own GPUs the vLLM is {gpu.VERSION}, not {version}: leave --engine-version out"
        )
    return [gpu.build, *([sglang.build] if with_sglang else [])]


def _hand_out(gpus: host_gpus.HostGpus, rows: list[dict[str, Any]]) -> None:
    """Write into each host's row which device nodes it has, and which are the other hosts'.

    Raises LabError when the GPUs cannot be shared, or hosts that are there already would have others.
    """
    nodes = [path for _, path in gpus.gpus]
    for row, granted in zip(rows, host_gpus.share(nodes, len(rows)), strict=True):
        has = [str(node) for node in (*granted, *gpus.control)]
        if row.setdefault("devices", has) != has:
            raise LabError(
                f"{row['name']} has other GPUs than it would have among {counted(len(rows), 'host')}: "
                "end this lab first: rackwright lab down"
            )
        row["denied"] = [str(node) for node in nodes if node not in granted]


def _start(host: Host) -> str:
    host.start(wait=False)
    return host.wait_up()
