"""Input and result of a check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

from rackwright.concerns.docker import SeenDocker
from rackwright.concerns.gateway.concern import SeenGateway
from rackwright.concerns.gpus import Gpu, SeenGpus
from rackwright.plan.change import Owned
from rackwright.plan.reading import whole_number
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright_engines.quick_yaml import load_yaml

Severity = Literal["stop", "warn", "info"]
Kind = Literal["image", "model", "encoding"]
DRAIN = "rackwright drain INVENTORY --limit HOST"
UNDRAIN = "rackwright undrain INVENTORY --limit HOST"
STOPS_WHAT_SERVES = re.compile(r"\breboot\b|restart docker|--gpu-reset")
"""Text in a fix that stops every container of the host."""


@dataclass(frozen=True)
class CheckRow:
    """One row of the table. `fix` is the next command, or sentence, when it is not ok."""

    name: str
    severity: Severity
    ok: bool
    reading: str
    fix: str = ""
    code: str = ""
    """Argument of `rackwright explain`; its text is the fix for every row of this check."""

    @property
    def stops(self) -> bool:
        """True when the host must not be touched."""
        return self.severity == "stop" and not self.ok

    @property
    def warns(self) -> bool:
        """True when the operator should know, but the host can continue."""
        return self.severity == "warn" and not self.ok


@dataclass(frozen=True)
class Disk:
    """The file system under a path: free bytes, free inodes (None: it has none), its mount point."""

    path: str
    free: int
    inodes: int | None
    kind: str
    source: str
    mount: str


@dataclass(frozen=True)
class Above:
    """A folder, who owns it, and its mode in octal digits."""

    path: str
    owner: str
    mode: str


@dataclass(frozen=True)
class Listener:
    """A process that listens on a port. `container` is Docker's name, empty outside of containers."""

    port: int
    pid: int
    name: str
    container: str
    unit: str = ""
    """Its systemd unit when that has a name like Rackwright's; empty for others."""
    user: str = "root"
    """User that it runs as."""
    address: str = ""
    """Address at which it listens."""

    @property
    def is_dockers(self) -> bool:
        """True for a port that Docker holds for a container. A name alone proves nothing: anyone may choose it."""
        return self.name in ("docker-proxy", "dockerd") and self.user == "root"

    @property
    def ours(self) -> bool:
        """True when it is Rackwright's endpoint."""
        return self.container.startswith("rackwright-")

    @property
    def nameless(self) -> bool:
        """True for Docker's port without a container's name: Docker is down, or is just stopping the container."""
        return self.is_dockers and not self.container


@dataclass(frozen=True)
class Reach:
    """The answer of a server: curl's exit status and the HTTP status (0: none)."""

    name: str
    curl: int
    status: int
    url: str


@dataclass(frozen=True)
class MemberSeen:
    """The answer of another host of the endpoint: `small` is yes, tcp (a connection alone) or no, `whole` yes or no."""

    address: str
    small: str
    whole: str

    @property
    def reached(self) -> bool:
        """True if it answered at all."""
        return self.small in ("yes", "tcp")

    @property
    def pinged(self) -> bool:
        """True if it answers pings, so that one of full size is meaningful."""
        return self.small == "yes"

    @property
    def large(self) -> bool:
        """True if a packet of full size arrived undivided."""
        return self.whole == "yes"


@dataclass(frozen=True)
class SeenMachine:
    """The part of a host's reading that only preflight uses."""

    values: Mapping[str, str] = field(default_factory=dict)
    disks: tuple[Disk, ...] = ()
    listeners: tuple[Listener, ...] = ()
    reached: tuple[Reach, ...] = ()
    toolkit_config: str | None = None
    readonly: frozenset[str] = frozenset()
    """Folders that are read-only."""
    hung: tuple[str, ...] = ()
    """Folders on a file system that does not answer."""
    odd_units: tuple[tuple[str, str], ...] = ()
    """Entries other than files where systemd reads units and drop-ins: type as `find` prints it, and path."""
    above: tuple[Above, ...] = ()
    """Folders of models and encodings, and folders above these, in which users other than root may rename something."""
    rootless: tuple[str, ...] = ()
    """Users who run their own dockerd."""
    members: tuple[MemberSeen, ...] = ()
    """The other hosts of its endpoint."""
    rdma: Mapping[str, str] = field(default_factory=dict)
    """State by RDMA port, where RDMA is requested."""

    def number(self, key: str) -> int | None:
        """Return a value as a number; None when it is absent or not a number."""
        return whole_number(self.values.get(key))


@dataclass(frozen=True)
class Fetch:
    """A pending download. `size` is bytes; `exact` False means that it is an estimate."""

    what: str
    kind: Kind
    size: int
    exact: bool
    unpacked: int = 0
    """Bytes that it takes on the disk where these are more: an image is unpacked there."""

    @property
    def room(self) -> int:
        """Bytes that it takes on the disk."""
        return max(self.size, self.unpacked)


@dataclass(frozen=True)
class Case:
    """Input of the checks: the settings, and the reading."""

    settings: HostSettings
    machine: SeenMachine
    gpus: SeenGpus
    docker: SeenDocker
    fetches: tuple[Fetch, ...] = ()
    owned: frozenset[Owned] = frozenset()
    foreign: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Units with Rackwright's names that an operator made by hand, each with sentences about it."""
    formats: Mapping[str, int] = field(default_factory=dict)
    """Format of spec.json by name, for the endpoints on the host."""
    restarts_dockerd: bool = True
    """True if deploy.py calls the step that restarts dockerd when due, in the host's turn where endpoints serve."""
    closes_ports: bool = True
    """True if deploy.py calls firewall() for the host."""
    read_only_models: bool = False
    """True if the folder of all models is a read-only store: nothing is written there."""
    open_models: tuple[str, ...] = ()
    """Folders of models in which users other than root may change something."""
    others: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Values that must be the same on all hosts of a group, by host, as far as the others have been read."""
    gateway: SeenGateway = field(default_factory=SeenGateway)
    first_driver: str = ""
    """Version of the driver that this deploy installs on the host, which has none; empty otherwise."""
    driver_fixes: tuple[str, ...] = ()
    """Obstacles to the wanted driver, each with its fix."""
    elsewhere: tuple[str, ...] = ()
    """Endpoints that other hosts serve than the settings want, or at other ranks."""

    @cached_property
    def used_gpus(self) -> tuple[Gpu, ...]:
        """GPUs that an endpoint of this host uses."""
        return tuple(gpu for gpu in self.gpus.gpus if any(uses(endpoint, gpu) for endpoint in self.endpoints.values()))

    @property
    def sets_apart(self) -> bool:
        """True when such units are to be moved out of the way."""
        return self.settings.releases.foreign_units == "aside"

    @cached_property
    def endpoints(self) -> dict[str, EndpointSettings]:
        """The host's endpoints by name."""
        return self.settings.all_endpoints


Judge = Callable[[Case], Iterable[CheckRow]]


@dataclass(frozen=True)
class Check:
    """A check as data: its name in the table, the severity of a failure, and the function that judges.

    The function yields a tuple (ok, finding, fix) for each row; none when there is nothing to judge.
    """

    name: str
    severity: Severity
    judge: Callable[[Case], Iterable[tuple[bool, str, str]]]
    code: str

    def rows(self, case: Case) -> list[CheckRow]:
        """Return the rows of this check."""
        return [
            CheckRow(self.name, self.severity, ok, reading, "" if ok else _out_of_service(case, fix), self.code)
            for ok, reading, fix in self.judge(case)
        ]


def uses(endpoint: EndpointSettings, gpu: Gpu) -> bool:
    """Return True if an endpoint uses this GPU."""
    return endpoint.gpus == "all" or gpu.index in endpoint.gpus


@cache
def figures() -> Mapping[str, Any]:
    """Return the expected figures: data/preflight_figures.yaml."""
    found: Mapping[str, Any] = load_yaml((files("rackwright") / "data" / "preflight_figures.yaml").read_text())
    return found


def version_tuple(text: str) -> tuple[int, ...]:
    """Return the numbers of a dotted version, as far as they are numbers."""
    numbers = map(whole_number, text.split("-", maxsplit=1)[0].split("."))
    return tuple(number for number in numbers if number is not None)


def gib(size: float) -> str:
    """Return bytes as text for people."""
    return f"{size / 2**30:.1f} GiB" if size < 10 * 2**30 else f"{size / 2**30:.0f} GiB"


def _out_of_service(case: Case, fix: str) -> str:
    """Return `fix`, between a drain and its end if it would stop endpoints: a fix must not cause an outage."""
    if not case.docker.serving or not STOPS_WHAT_SERVES.search(fix) or DRAIN in fix:
        return fix
    drain, undrain = (command.replace("--limit HOST", _limits(case)) for command in (DRAIN, UNDRAIN))
    return f"{drain}; then {fix}; then {undrain}"


def _limits(case: Case) -> str:
    """Return the options that name a host to drain: with all that serve its endpoint, since none is drained alone."""
    group = case.settings.group
    return " ".join(f"--limit {name}" for name in (group.hosts if group else ("HOST",)))
