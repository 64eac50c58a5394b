"""Engine, toolkit and their dependencies: the missing packages, and the job that installs them."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.concerns.docker import apt
from rackwright.concerns.docker.apt import OperatingSystem
from rackwright.concerns.docker.dockerd import not_while_serving
from rackwright.concerns.docker.files import AUTHORITY
from rackwright.concerns.docker.seen import SeenDocker
from rackwright.concerns.docker.wanted import WantedDocker
from rackwright.concerns.proxy_values import proxy_values
from rackwright.hostside import host_script
from rackwright.plan.change import Change, Job, Owned
from rackwright.settings.from_bundle import packages_address
from rackwright.settings.host_settings import HostSettings


@dataclass(frozen=True)
class InstallPlan:
    """Missing packages in the order of their installation."""

    basics: tuple[str, ...]
    toolkit: tuple[str, ...]
    engine: tuple[str, ...]

    @property
    def packages(self) -> tuple[str, ...]:
        """All missing packages."""
        return (*self.basics, *self.toolkit, *self.engine)

    @property
    def nothing(self) -> bool:
        """True when no package is missing."""
        return not self.packages


def install_plan(wanted: WantedDocker, reading: SeenDocker) -> InstallPlan:
    """Return the packages to install."""
    programs = _programs(wanted)
    basics = [name for program, name in programs.items() if program not in reading.has or reading.unfinished(name)]
    if not reading.installed("ca-certificates"):
        basics.append("ca-certificates")
    if reading.apparmor_missing:
        basics.append("apparmor")
    engine = apt.engine_packages(wanted.settings.docker.source, reading.system)
    missing = reading.daemon == "absent" or any(reading.unfinished(name) for name in engine)
    return InstallPlan(tuple(basics), _toolkit(wanted, reading), engine if missing else ())


def _programs(wanted: WantedDocker) -> dict[str, str]:
    """Return the programs that a host must have, each with its package."""
    hand_on = wanted.settings.downloads.hand_on
    closes = wanted.closes_ports or hand_on is not None
    found = {program: name for program, name in apt.PROGRAMS.items() if program != "nft" or closes}
    return {**found, apt.PYTHON: apt.PYTHON} if hand_on and hand_on.images else found


def was_cut(wanted: WantedDocker, reading: SeenDocker) -> bool:
    """Return True if Rackwright's installation stopped half-way (a power cut): it may then finish unasked."""
    ours = wanted.names("package")
    return bool(reading.broken) and any(name in ours for name in install_plan(wanted, reading).packages)


def _toolkit(wanted: WantedDocker, reading: SeenDocker) -> tuple[str, ...]:
    version, package = wanted.settings.docker.toolkit_version, reading.packages.get(apt.TOOLKIT)
    if "toolkit" not in reading.has or reading.unfinished(apt.TOOLKIT):
        return (apt.TOOLKIT,)
    differs = version is not None and package is not None and package.installed and package.version != version
    # apt leaves a held part unchanged unless it is an argument.
    return tuple(name for name in apt.TOOLKIT_FAMILY if reading.installed(name)) if differs else ()


def cannot_install(wanted: WantedDocker, reading: SeenDocker) -> list[str]:
    """Return the reasons why missing packages cannot be installed here; empty when they can, or none is missing."""
    plan = install_plan(wanted, reading)
    if plan.nothing:
        return []
    if reading.system.family is None or "apt" not in reading.has:
        name = reading.system.id or "unknown"
        return [
            f"{' '.join(plan.packages)} are missing, and this is {name}, not Debian or Ubuntu: install them by hand"
        ]
    if plan.toolkit and "toolkit" in reading.has and reading.serving:
        return [not_while_serving(reading, "the container toolkit's version changes")]
    return []


def install_changes(wanted: WantedDocker, reading: SeenDocker) -> list[Change]:
    """Return one job that installs all missing packages."""
    plan = install_plan(wanted, reading)
    if plan.nothing:
        return []
    what = f"install {', '.join(plan.packages)}"
    script = install_script(wanted.settings, reading.system, plan, was_cut(wanted, reading))
    job = Job("docker-install", what, script, timeout=3600, code="RW2110")
    why = "the host has none of them" if reading.daemon == "absent" else "missing, unfinished, or of another version"
    return [Change(what, why, (job,), owns=tuple(_install_owns(wanted.settings, reading, plan)))]


def _install_owns(settings: HostSettings, reading: SeenDocker, plan: InstallPlan) -> list[Owned]:
    owns = [Owned("package", name) for name in plan.packages if not reading.installed(name)]
    repositories = [apt.toolkit_repository(settings)] if plan.toolkit else []
    if packages_address(settings):
        return [*owns, *(Owned("hold", name) for name in _to_hold(settings, plan))]
    if plan.engine and settings.docker.source == "docker":
        repositories.append(apt.docker_repository(settings, reading.system))
    owns += [Owned("apt_source", path) for repository in repositories for path in repository.files]
    return owns + [Owned("hold", name) for name in _to_hold(settings, plan)]


def _to_hold(settings: HostSettings, plan: InstallPlan) -> tuple[str, ...]:
    if not settings.docker.hold_packages:
        return ()
    parts = {"docker.io": ("containerd", "runc")}
    engine = [name for package in plan.engine for name in (package, *parts.get(package, ()))]
    return (*engine, *(apt.TOOLKIT_FAMILY if plan.toolkit else ()))


def install_script(settings: HostSettings, system: OperatingSystem, plan: InstallPlan, finish: bool = False) -> str:
    """Return the job that installs a plan. `finish`: first let dpkg complete what a power cut interrupted."""
    toolkit, docker = apt.toolkit_repository(settings), apt.docker_repository(settings, system)
    other = settings.docker.source == "docker"
    return host_script("apt") + host_script(
        "docker_install",
        basics=" ".join(plan.basics),
        toolkit=" ".join(plan.toolkit),
        toolkit_key=toolkit.key,
        toolkit_source=toolkit.source,
        toolkit_fingerprints=" ".join(toolkit.fingerprints),
        toolkit_pin=settings.docker.toolkit_version or "",
        engine=" ".join(plan.engine),
        engine_key=docker.key if other else "",
        engine_source=docker.source if other else "",
        engine_fingerprints=" ".join(docker.fingerprints),
        hold=" ".join(_to_hold(settings, plan)),
        trust=AUTHORITY,
        finish="yes" if finish else "",
        bundle=packages_address(settings),
        **proxy_values(settings),
    )
