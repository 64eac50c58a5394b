"""Docker Engine and NVIDIA's container toolkit: installed where missing, configured by merging, never restarted
under an endpoint that serves."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rackwright.change import Change, Guarded, Job, Owned, Refuse, Shell, Step, WriteFile
from rackwright.concern import Concern, HostReading
from rackwright.concerns import apt
from rackwright.concerns.apt import OperatingSystem
from rackwright.concerns.daemon import (
    DAEMON_JSON,
    RELOADABLE,
    BrokenDaemonJsonError,
    changed_keys,
    diff,
    leaves,
    merged,
    parse_daemon_json,
    render_daemon_json,
    with_runtime,
)
from rackwright.errors import SettingsError
from rackwright.hostside import host_script
from rackwright.ownership import RECORD
from rackwright.paths import STATE
from rackwright.reading import decode, files, pairs
from rackwright.settings.files import site_root
from rackwright.settings.model import HostSettings

DROPIN = "/etc/systemd/system/docker.service.d/rackwright-proxy.conf"
AUTHORITY = "/usr/local/share/ca-certificates/rackwright-site.crt"
RESTART_SECONDS = 60
"""Longest time that a restart of dockerd takes before its guard may doubt it."""


@dataclass(frozen=True)
class Package:
    """A package as dpkg has it."""

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
    """Which of apt, curl, iptables, toolkit are there."""
    packages: Mapping[str, Package] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    """Packages that dpkg has not finished, each as `NAME STATE`."""
    enabled: bool = False
    load_state: str = "not-found"
    needs_reload: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    """What `docker info` says; empty unless the daemon is up."""
    files: Mapping[str, str | None] = field(default_factory=dict)
    users: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Groups of each wanted user that exists."""
    serving: tuple[str, ...] = ()
    """Endpoints of ours whose units are active."""
    apparmor_missing: bool = False
    authority_trusted: bool = False
    """True when the system's trust store is not older than the site's authority."""

    @property
    def root_dir(self) -> str:
        """Docker's data root."""
        return str(self.info.get("DockerRootDir") or "/var/lib/docker")

    @property
    def runtimes(self) -> frozenset[str]:
        """Container runtimes that the running daemon knows."""
        return frozenset(self.info.get("Runtimes") or {})

    @property
    def others_running(self) -> int:
        """Running containers that are none of our serving endpoints."""
        return max(0, int(self.info.get("ContainersRunning") or 0) - len(self.serving))


@dataclass(frozen=True)
class WantedDocker:
    """What the settings ask for, and what of it is ours already."""

    settings: HostSettings
    authority: str | None
    """PEM text of the site's own certificate authority."""
    owned: frozenset[Owned]

    def names(self, kind: str) -> set[str]:
        """Names in the ownership record of one kind."""
        return {entry.name for entry in self.owned if entry.kind == kind}


# -- read


def _certs_d(settings: HostSettings) -> str:
    return f"/etc/docker/certs.d/{settings.registry.host}/ca.crt"


def _paths(settings: HostSettings) -> tuple[str, ...]:
    return (DAEMON_JSON, DROPIN, apt.PROXY_FILE, apt.PIN_FILE, AUTHORITY, _certs_d(settings))


def read(settings: HostSettings) -> str:
    """State of packages, daemon, files and users."""
    return host_script(
        "docker_read",
        packages=" ".join(apt.PACKAGES),
        endpoints=" ".join(settings.all_endpoints),
        users=" ".join(settings.docker_users),
        state=STATE,
        authority=AUTHORITY,
        paths=" ".join(_paths(settings)),
    )


def parse(output: str) -> SeenDocker:
    """Parse the reading."""
    values = pairs(output)
    lines = [line.split(" ") for line in output.splitlines()]
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
        has=frozenset(name for name in ("apt", "curl", "iptables", "toolkit") if name in values),
        packages={w[1]: Package(w[2] == "hold", w[3] == "installed", w[4]) for w in lines if w[0] == "package"},
        broken=tuple(" ".join(words[1:]) for words in lines if words[0] == "broken"),
        enabled=values.get("unit.UnitFileState") == "enabled",
        load_state=values.get("unit.LoadState", "not-found"),
        needs_reload=values.get("unit.NeedDaemonReload") == "yes",
        info=info if answers else {},
        files=files(output),
        users={words[1]: frozenset(words[2:]) for words in lines if words[0] == "user"},
        serving=tuple(sorted({words[1] for words in lines if words[0] == "serving"})),
        apparmor_missing=values.get("apparmor") == "missing",
        authority_trusted=values.get("authority") == "trusted",
    )


def _info(encoded: str) -> dict[str, Any]:
    text = decode(encoded).strip()
    found = json.loads(text) if text.startswith("{") else {}
    return found if isinstance(found, dict) else {}


def _version(text: str) -> tuple[int, ...]:
    numbers = text.split("+", maxsplit=1)[0].split("-", maxsplit=1)[0].split(".")
    return tuple(int(number) for number in numbers if number.isdigit())


# -- wanted


def wanted(settings: HostSettings, reading: HostReading) -> WantedDocker:
    """The settings, the site's authority and what we own. Raises SettingsError for an unreadable authority."""
    return WantedDocker(settings, _authority(settings.private_ca), reading[RECORD])


def _authority(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        text = (site_root() / Path(path).expanduser()).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"private_ca: {path} cannot be read: {error}") from error
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise SettingsError(f"private_ca: {path} holds no PEM certificate")
    return text


# -- changes


def changes(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    """What differs, in the order in which it must be done; refusals alone when there are any."""
    refusals = _refusals(asked, seen)
    if refusals:
        return refusals
    daemon = _daemon(asked, seen)
    start = [] if daemon else _start(seen)
    return [
        *_files(asked, seen),
        *_install(asked, seen),
        *daemon,
        *start,
        *_enable(seen),
        *_holds(asked, seen),
        *_users(asked, seen),
    ]


def _refusals(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    try:
        parse_daemon_json(seen.files.get(DAEMON_JSON))
    except BrokenDaemonJsonError as error:
        return [Change("configure Docker", f"{DAEMON_JSON} is broken", (Refuse(str(error)),))]
    texts = [
        f"docker_users: there is no user {user} on this host; create it (adduser {user}) or take it out of the settings"
        for user in asked.settings.docker_users
        if user not in seen.users
    ]
    texts += _cannot_install(asked, seen)
    return [Change("set Docker up", "something is in the way", (Refuse(text),)) for text in texts]


def _cannot_install(asked: WantedDocker, seen: SeenDocker) -> list[str]:
    plan = install_plan(asked, seen)
    if plan.nothing:
        return []
    if seen.system.family is None or "apt" not in seen.has:
        name = seen.system.id or "unknown"
        return [
            f"{' '.join(plan.packages)} are missing, and this is {name}, not Debian or Ubuntu: install them by hand"
        ]
    if plan.toolkit and "toolkit" in seen.has and seen.serving:
        return [_not_while_serving(seen, "the container toolkit's version changes")]
    return []


def _not_while_serving(seen: SeenDocker, what: str) -> str:
    units = " ".join(f"rackwright-{name}.service" for name in seen.serving)
    return (
        f"{what}, which would stop {', '.join(seen.serving)} under its clients. When that is all right, "
        f"on this host run: systemctl stop {units}; then run the same command again: it starts and proves them"
    )


@dataclass(frozen=True)
class InstallPlan:
    """Packages that are missing, by the order of their installation."""

    basics: tuple[str, ...]
    toolkit: tuple[str, ...]
    engine: tuple[str, ...]

    @property
    def packages(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.basics, *self.toolkit, *self.engine)

    @property
    def nothing(self) -> bool:
        """True when all is there."""
        return not self.packages


def install_plan(asked: WantedDocker, seen: SeenDocker) -> InstallPlan:
    """What must be installed."""
    basics = [name for name in ("curl", "iptables") if name not in seen.has or _unfinished(seen, name)]
    if not _installed(seen, "ca-certificates"):
        basics.append("ca-certificates")
    if seen.apparmor_missing:
        basics.append("apparmor")
    engine = apt.engine_packages(asked.settings.docker_source, seen.system)
    missing = seen.daemon == "absent" or any(_unfinished(seen, name) for name in engine)
    return InstallPlan(tuple(basics), _toolkit(asked, seen), engine if missing else ())


def _unfinished(seen: SeenDocker, name: str) -> bool:
    return any(entry.split(" ")[0] == name for entry in seen.broken)


def was_cut(asked: WantedDocker, seen: SeenDocker) -> bool:
    """Whether an installation of ours ended half-way (a power cut): then it may be finished without asking."""
    ours = asked.names("package")
    return bool(seen.broken) and any(name in ours for name in install_plan(asked, seen).packages)


def _installed(seen: SeenDocker, name: str) -> bool:
    return name in seen.packages and seen.packages[name].installed


def _toolkit(asked: WantedDocker, seen: SeenDocker) -> tuple[str, ...]:
    version, there = asked.settings.container_toolkit.version, seen.packages.get(apt.TOOLKIT)
    if "toolkit" not in seen.has or _unfinished(seen, apt.TOOLKIT):
        return (apt.TOOLKIT,)
    differs = version is not None and there is not None and there.installed and there.version != version
    # apt leaves a held part as it is unless it is named.
    return tuple(name for name in apt.TOOLKIT_FAMILY if _installed(seen, name)) if differs else ()


def _files(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    found = [_file(seen, apt.PROXY_FILE, apt.proxy_text(asked.settings.proxy), "apt's proxy", asked)]
    pin = apt.pin_text(asked.settings.container_toolkit.version)
    found.append(_file(seen, apt.PIN_FILE, pin, "the container toolkit's pin", asked))
    found.append(_file(seen, AUTHORITY, asked.authority, "the site's certificate authority", asked))
    found.append(_file(seen, _certs_d(asked.settings), asked.authority, "the registry's certificate authority", asked))
    if seen.daemon == "absent":
        found.append(_file(seen, DROPIN, dropin_text(asked.settings), "Docker's proxy", asked))
    return [change for change in found if change]


def _file(seen: SeenDocker, path: str, text: str | None, what: str, asked: WantedDocker) -> Change | None:
    there, owned = seen.files.get(path), Owned("file", path)
    after = (Shell("update-ca-certificates >/dev/null", timeout=120),) if path == AUTHORITY and _has_store(seen) else ()
    if text is None:
        if there is None or owned not in asked.owned:
            return None
        return Change(f"remove {path}", f"{what} is no longer set", (Shell(f"rm -f {path}"), *after), disowns=(owned,))
    if there == text:
        return _trust(seen, after) if path == AUTHORITY and after else None
    mode = "0600" if path == apt.PROXY_FILE and "@" in text else "0644"
    why = f"{what} is missing there" if there is None else f"{what} differs"
    return Change(f"write {path}", why, (WriteFile(path, text, mode), *after), owns=(owned,))


def _trust(seen: SeenDocker, steps: tuple[Step, ...]) -> Change | None:
    if seen.authority_trusted:
        return None
    return Change("trust the site's certificate authority", "the system's trust store is older", steps)


def _has_store(seen: SeenDocker) -> bool:
    return _installed(seen, "ca-certificates")


def _install(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    plan = install_plan(asked, seen)
    if plan.nothing:
        return []
    what = f"install {', '.join(plan.packages)}"
    script = install_script(asked.settings, seen.system, plan, was_cut(asked, seen))
    job = Job("docker-install", what, script, timeout=3600)
    why = "the host has none of them" if seen.daemon == "absent" else "missing, unfinished, or of another version"
    return [Change(what, why, (job,), owns=tuple(_install_owns(asked.settings, seen, plan)))]


def _install_owns(settings: HostSettings, seen: SeenDocker, plan: InstallPlan) -> list[Owned]:
    owns = [Owned("package", name) for name in plan.packages if not _installed(seen, name)]
    repositories = [apt.toolkit_repository(settings)] if plan.toolkit else []
    if plan.engine and settings.docker_source == "docker":
        repositories.append(apt.docker_repository(settings, seen.system))
    owns += [Owned("apt_source", path) for repository in repositories for path in repository.files]
    return owns + [Owned("hold", name) for name in _to_hold(settings, plan)]


def _to_hold(settings: HostSettings, plan: InstallPlan) -> tuple[str, ...]:
    if not settings.hold_packages:
        return ()
    parts = {"docker.io": ("containerd", "runc")}
    engine = [name for package in plan.engine for name in (package, *parts.get(package, ()))]
    return (*engine, *(apt.TOOLKIT_FAMILY if plan.toolkit else ()))


def install_script(settings: HostSettings, system: OperatingSystem, plan: InstallPlan, finish: bool = False) -> str:
    """The job that installs a plan. `finish`: first let dpkg end what a power cut ended half-way."""
    toolkit, docker = apt.toolkit_repository(settings), apt.docker_repository(settings, system)
    other = settings.docker_source == "docker"
    return host_script("apt") + host_script(
        "docker_install",
        basics=" ".join(plan.basics),
        toolkit=" ".join(plan.toolkit),
        toolkit_key=toolkit.key,
        toolkit_source=toolkit.source,
        toolkit_pin=settings.container_toolkit.version or "",
        engine=" ".join(plan.engine),
        engine_key=docker.key if other else "",
        engine_source=docker.source if other else "",
        hold=" ".join(_to_hold(settings, plan)),
        trust=AUTHORITY,
        finish="yes" if finish else "",
        proxy_http=settings.proxy.http or "",
        proxy_https=settings.proxy.https or "",
        no_proxy=",".join(settings.proxy.no_proxy),
    )


def dropin_text(settings: HostSettings) -> str | None:
    """The systemd drop-in that gives dockerd its proxy; None without one."""
    proxy = settings.proxy
    if not (proxy.http or proxy.https):
        return None
    values = {"HTTP_PROXY": proxy.http, "HTTPS_PROXY": proxy.https or proxy.http, "NO_PROXY": ",".join(proxy.no_proxy)}
    lines = [f'Environment="{key}={value.replace("%", "%%")}"' for key, value in values.items() if value]
    return "\n".join(["[Service]", *lines]) + "\n"


def _daemon(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    before_text = seen.files.get(DAEMON_JSON)
    before = parse_daemon_json(before_text)
    after = merged(before, asked.settings.docker_daemon, asked.names("daemon_key"))
    dropin = dropin_text(asked.settings)
    stale = seen.daemon == "up" and "nvidia" not in seen.runtimes
    moved = changed_keys(before, after)
    proxy = _dropin_differs(asked, seen, dropin)
    if not moved and not stale and not proxy:
        return []
    text = render_daemon_json(after, before_text) if moved else before_text
    action = _action(seen, moved, proxy)
    if action == "restart" and seen.serving:
        reason = f"{', '.join(sorted(moved - RELOADABLE)) or 'its proxy'} takes a restart of dockerd"
        return [Change("restart dockerd", reason, (Refuse(_not_while_serving(seen, reason)),))]
    steps = (_guarded(asked, seen, text, dropin if proxy else seen.files.get(DROPIN), action),)
    return [_daemon_change(asked, seen, text, action, _why(seen, moved, stale, proxy), steps)]


def _dropin_differs(asked: WantedDocker, seen: SeenDocker, dropin: str | None) -> bool:
    there = seen.files.get(DROPIN)
    if seen.daemon == "absent" or there == dropin:
        return False
    return dropin is not None or Owned("file", DROPIN) in asked.owned


def _action(seen: SeenDocker, moved: set[str], proxy: bool) -> str:
    if seen.daemon == "down":
        return "start"
    return "restart" if proxy or moved - RELOADABLE else "reload"


def _why(seen: SeenDocker, moved: set[str], stale: bool, proxy: bool) -> str:
    reasons = [f"{DAEMON_JSON}: {', '.join(sorted(moved))}"] if moved else []
    reasons += ["its proxy differs"] if proxy else []
    reasons += ["the running dockerd does not know the runtime nvidia"] if stale and not moved else []
    if seen.others_running and (proxy or moved - RELOADABLE):
        reasons.append(f"{seen.others_running} other containers run and may stop with it")
    return "; ".join(reasons)


def _daemon_change(
    asked: WantedDocker, seen: SeenDocker, text: str | None, action: str, why: str, steps: tuple[Step, ...]
) -> Change:
    before, mine = parse_daemon_json(seen.files.get(DAEMON_JSON)), asked.names("daemon_key")
    had, ours = set(leaves(before)), leaves(with_runtime(asked.settings.docker_daemon, before))
    keys = {path for path in ours if path not in had or path in mine}
    gone = mine - set(leaves(with_runtime(asked.settings.docker_daemon, {})))
    dropin = {Owned("file", DROPIN)}
    set_dropin = dropin if dropin_text(asked.settings) else set()
    return Change(
        f"configure dockerd and {action} it",
        why,
        steps,
        owns=tuple({Owned("daemon_key", path) for path in keys} | set_dropin),
        disowns=tuple({Owned("daemon_key", path) for path in gone} | (dropin - set_dropin)),
        diff=diff(seen.files.get(DAEMON_JSON), text or ""),
    )


def _guarded(asked: WantedDocker, seen: SeenDocker, text: str | None, dropin: str | None, action: str) -> Guarded:
    seconds = asked.settings.firewall_confirm + (RESTART_SECONDS if action != "reload" else 0)
    return Guarded(
        "docker",
        _apply(text, dropin, action, "nvidia"),
        _apply(seen.files.get(DAEMON_JSON), seen.files.get(DROPIN), "restart" if action == "start" else action, ""),
        seconds,
    )


def _apply(text: str | None, dropin: str | None, action: str, runtime: str) -> str:
    return host_script(
        "docker_apply",
        daemon_json=DAEMON_JSON,
        daemon_text=_b64(text),
        dropin=DROPIN,
        dropin_text=_b64(dropin),
        action=action,
        runtime=runtime,
    )


def _b64(text: str | None) -> str:
    return base64.b64encode((text or "").encode()).decode()


def _start(seen: SeenDocker) -> list[Change]:
    if seen.daemon != "down":
        return []
    return [Change("start dockerd", "it is installed but does not answer", (Shell(_START, timeout=180),))]


def _enable(seen: SeenDocker) -> list[Change]:
    if seen.daemon == "absent" or seen.enabled:
        return []
    step = Shell("systemctl enable --quiet docker.service")
    return [Change("start dockerd at boot", "its unit is not enabled", (step,))]


_START = """\
systemctl reset-failed docker.service docker.socket 2>/dev/null
systemctl start docker.service && docker info >/dev/null && exit 0
echo 'dockerd does not start; its last words:' >&2
journalctl --unit=docker.service --lines=15 --no-pager --output=cat >&2
exit 1
"""


def _holds(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    """Packages of ours that somebody released again, and holds of ours that are no longer asked for."""
    ours = {name for name in asked.names("hold") if _installed(seen, name)}
    if not asked.settings.hold_packages:
        return [_unhold(sorted(ours))] if ours else []
    loose = sorted(name for name in ours if not seen.packages[name].held)
    if not loose:
        return []
    script = f"apt-mark hold {' '.join(loose)} >/dev/null"
    return [Change(f"hold {', '.join(loose)}", "unattended upgrades would move them", (Shell(script),))]


def _unhold(names: Sequence[str]) -> Change:
    script = f"apt-mark unhold {' '.join(names)} >/dev/null"
    owned = tuple(Owned("hold", name) for name in names)
    return Change(f"release {', '.join(names)}", "hold_packages is off", (Shell(script),), disowns=owned)


def _users(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    listed = asked.settings.docker_users
    found = [_join(user) for user in listed if "docker" not in seen.users.get(user, ())]
    ours = {name.removeprefix("docker:") for name in asked.names("group_member") if name.startswith("docker:")}
    return found + [_leave(user) for user in sorted(ours - set(listed))]


def _join(user: str) -> Change:
    script = host_script("docker_user", user=user)
    owned = (Owned("group_member", f"docker:{user}"),)
    return Change(f"add {user} to the group docker", "docker_users names it", (Shell(script),), owns=owned)


def _leave(user: str) -> Change:
    script = f"id -nG {user} 2>/dev/null | grep -qw docker || exit 0; gpasswd --delete {user} docker >/dev/null"
    owned = (Owned("group_member", f"docker:{user}"),)
    return Change(
        f"take {user} out of the group docker", "docker_users no longer names it", (Shell(script),), disowns=owned
    )


DOCKER: Concern[WantedDocker, SeenDocker] = Concern("docker", read, parse, wanted, changes)
