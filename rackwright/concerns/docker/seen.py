"""Docker's state on a host, and the parser of its reading. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rackwright.concerns.docker.apt import PROGRAMS, PYTHON, OperatingSystem
from rackwright.concerns.dockerd.restart_job import JOB
from rackwright.paths import endpoint_of, job_unit
from rackwright.plan.answers import Answers
from rackwright.plan.reading import decode, files, lines_of, pairs, whole_number

SERVICE = "docker.service"
READ_UNITS = (SERVICE, job_unit(JOB))
"""Units whose state is read."""


@dataclass(frozen=True)
class Package:
    """A package as dpkg lists it."""

    held: bool
    installed: bool
    version: str


@dataclass(frozen=True)
class SeenDocker:
    """Docker on a host. `daemon` is `down` whenever an installed dockerd does not answer, never `absent`."""

    system: OperatingSystem
    daemon: Literal["absent", "down", "up"]
    version: tuple[int, ...] = ()
    has: frozenset[str] = frozenset()
    """Those of apt, curl, iptables, nft, python3 and toolkit that are installed."""
    packages: Mapping[str, Package] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    """Packages that dpkg has not finished, each as `NAME STATE`."""
    enabled: bool = False
    load_state: str = "not-found"
    needs_reload: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    """Output of `docker info`; empty unless the daemon is up."""
    files: Mapping[str, str | None] = field(default_factory=dict)
    users: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Groups of each wanted user that exists."""
    serving: tuple[str, ...] = ()
    """Rackwright's endpoints whose units are active."""
    restarting: bool = False
    """True while a restart of dockerd that an earlier run started is under way with its endpoints."""
    apparmor_missing: bool = False
    unattended: bool = False
    """True when unattended-upgrades runs automatically."""
    authority_trusted: bool = False
    """True when the system's trust store is not older than the site's authority."""
    foreign_running: int = 0
    """Running containers whose names are not Rackwright's."""
    lacks: tuple[str, ...] = ()
    """Missing kernel objects of dockerd's that the start of a container with a published port needs: `nat DOCKER`."""
    lost: tuple[str, ...] = ()
    """Programs that started containers and are missing for their next start."""
    waits: tuple[str, ...] = ()
    """Dependencies that dockerd would wait for without a limit at its start, each with the next command."""
    rejects: bool = False
    """True if firewalld was started after dockerd, and so rejects the clients of published ports."""
    other_store: tuple[str, ...] = ()
    """Keys of its file that give dockerd another store at its next start: an edit that it has not applied yet."""

    @property
    def root_dir(self) -> str:
        """Docker's data root."""
        return str(self.info.get("DockerRootDir") or "/var/lib/docker")

    @property
    def runtimes(self) -> frozenset[str]:
        """Container runtimes that the running daemon lists."""
        found = self.info.get("Runtimes")
        return frozenset(found if isinstance(found, dict) else ())

    @property
    def others_running(self) -> int:
        """Running containers other than Rackwright's serving endpoints."""
        return max(0, (whole_number(self.info.get("ContainersRunning")) or 0) - len(self.serving))

    @property
    def others_stop(self) -> bool:
        """True if a restart of dockerd would stop containers that are not Rackwright's."""
        return self.foreign_running > 0 and self.info.get("LiveRestoreEnabled") is not True

    def installed(self, name: str) -> bool:
        """Return True if dpkg lists that package as configured."""
        return name in self.packages and self.packages[name].installed

    def unfinished(self, name: str) -> bool:
        """Return True if dpkg was interrupted while it handled that package."""
        return any(entry.split(" ")[0] == name for entry in self.broken)


def joined(output: str, answers: Answers) -> str:
    """Return the reading's lines, Docker's information, and systemd's state of Docker and the endpoints."""
    keys = ("LoadState", "ActiveState", "UnitFileState", "NeedDaemonReload")
    found = [f"unit.{key}={answers.unit(SERVICE, key)}" for key in keys]
    if answers.is_active(job_unit(JOB)):
        found.append("restarting=yes")
    if answers.info is not None:
        found.append(f"info {base64.b64encode(json.dumps(answers.info).encode()).decode()}")
    running = [container for container in answers.containers or () if container.running]
    foreign = [container for container in running if not container.name.startswith("rackwright-")]
    found.append(f"foreign={len(foreign)}")
    serving = (endpoint_of(unit) for unit in answers.units if answers.is_active(unit))
    return "\n".join([output, *found, *(f"serving {name}" for name in serving if name)])


def parse(output: str) -> SeenDocker:
    """Parse the reading."""
    values = pairs(output)
    lines = [row.split(" ") for row in lines_of(output)]
    info = _info(next((words[1] for words in lines if words[0] == "info" and len(words) > 1), ""))
    answers = bool(info.get("ServerVersion"))
    return SeenDocker(
        system=OperatingSystem(
            values.get("os", ""),
            tuple(values.get("like", "").split()),
            values.get("codename", ""),
            values.get("os_version", ""),
            values.get("arch", ""),
        ),
        daemon="up" if answers else "down" if "engine" in values else "absent",
        version=_version(str(info.get("ServerVersion", ""))),
        has=frozenset(name for name in ("apt", *PROGRAMS, PYTHON, "toolkit") if name in values),
        packages={w[1]: Package(w[2] == "hold", w[3] == "installed", w[4]) for w in lines if w[0] == "package"},
        broken=tuple(" ".join(words[1:]) for words in lines if words[0] == "broken"),
        enabled=values.get("unit.UnitFileState") == "enabled",
        load_state=values.get("unit.LoadState", "not-found"),
        needs_reload=values.get("unit.NeedDaemonReload") == "yes",
        info=info if answers else {},
        files=files(output),
        users={words[1]: frozenset(words[2:]) for words in lines if words[0] == "user"},
        serving=tuple(sorted({words[1] for words in lines if words[0] == "serving"})),
        restarting=values.get("restarting") == "yes",
        apparmor_missing=values.get("apparmor") == "missing",
        unattended=values.get("unattended") == "yes",
        authority_trusted=values.get("authority") == "trusted",
        foreign_running=whole_number(values.get("foreign")) or 0,
        lacks=tuple(" ".join(words[1:]) for words in lines if words[0] == "lacks") if answers else (),
        lost=tuple(dict.fromkeys(words[1] for words in lines if words[0] == "lost")),
        waits=tuple(" ".join(words[1:]) for words in lines if words[0] == "waits"),
        rejects=values.get("rejects") == "yes",
        other_store=tuple(words[1] for words in lines if words[0] == "store") if answers else (),
    )


def _info(encoded: str) -> dict[str, Any]:
    text = decode(encoded).strip()
    found = json.loads(text) if text.startswith("{") else {}
    return found if isinstance(found, dict) else {}


def _version(text: str) -> tuple[int, ...]:
    numbers = map(whole_number, text.split("+", maxsplit=1)[0].split("-", maxsplit=1)[0].split("."))
    return tuple(number for number in numbers if number is not None)
