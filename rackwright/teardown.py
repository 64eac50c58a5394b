"""What a teardown does: the ownership record, undone from the endpoints down to the packages. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackwright.change import Change, Owned, Shell, WriteFile
from rackwright.concern import HostReading
from rackwright.concerns import firewall, models, registry
from rackwright.concerns.daemon import DAEMON_JSON, merged, parse_daemon_json, render_daemon_json
from rackwright.concerns.docker import DOCKER
from rackwright.daemonjob import HOME as DOCKERD_HOME
from rackwright.hostside import host_script
from rackwright.lease import FENCE, LEASED, SeenLease
from rackwright.ownership import RECORD
from rackwright.paths import ETC, RUN, STATE, UNITS
from rackwright.switchjob import remove_script

AUTHORITIES = "/usr/local/share/ca-certificates/"
THEIRS = ("/etc/apt", "/etc/systemd/system", "/usr/local")
"""Folders that stay even when they are empty without us."""
PURGED = frozenset({"model", "image"})
"""Kinds that a teardown leaves unless it purges: they are large, and cost hours to fetch again."""


@dataclass(frozen=True)
class Teardown:
    """The changes of a teardown, in order, and what it leaves on the host, in sentences."""

    changes: tuple[Change, ...]
    left: tuple[str, ...]


def plan_teardown(reading: HostReading, purge: bool) -> Teardown:
    """Undo everything in the host's ownership record; models and images only with `purge`."""
    record: frozenset[Owned] = reading[RECORD]
    owned = sorted(record)
    by_kind = {kind: [entry.name for entry in owned if entry.kind == kind] for kind in ORDER}
    found = [
        change
        for kind in ORDER
        if by_kind[kind] and _due(kind, purge)
        for change in ORDER[kind](by_kind[kind], reading)
    ]
    left = [f"{entry.kind} {entry.name}" for entry in owned if entry.kind in PURGED and not purge]
    return Teardown((*found, *_last(owned, left, reading[LEASED])), (*left, *_kept_data(by_kind)))


def _due(kind: str, purge: bool) -> bool:
    return purge or kind not in PURGED


def _kept_data(by_kind: Mapping[str, Sequence[str]]) -> list[str]:
    return ["Docker's data (/var/lib/docker), which removing its packages does not touch"] if by_kind["package"] else []


def _last(owned: Iterable[Owned], left: Sequence[str], lease: SeenLease) -> list[Change]:
    """The rest of our folders, the lease with them; the record itself stays as long as it still names something."""
    if not owned and not lease.fence:
        return []
    spare = "" if left else f"rm -rf {STATE}\n"
    script = f"rm -rf {STATE}/endpoints {DOCKERD_HOME} {FENCE} {RUN} {ETC}\n{spare}"
    return [Change("remove what is left of Rackwright's own folders", "teardown", (Shell(script),))]


def _change(what: str, kind: str, names: Iterable[str], *steps: Shell | WriteFile) -> Change:
    return Change(what, "the ownership record names it", steps, disowns=tuple(Owned(kind, name) for name in names))


def _each(kind: str, what: str, script: Callable[[str], str]) -> Callable[[list[str], HostReading], list[Change]]:
    def changes(names: list[str], _: HostReading) -> list[Change]:
        return [_change(f"{what} {name}", kind, [name], Shell(script(name), timeout=600)) for name in names]

    return changes


def _unit(name: str) -> str:
    endpoint = name.removeprefix("rackwright-").removesuffix(".service")
    if name.endswith(".service") and name not in ("rackwright-boot.service", firewall.UNIT):
        return remove_script(endpoint)
    path = f"{UNITS}/{name}"
    return f"systemctl disable --now --quiet {name} 2>/dev/null; rm -f {path}; systemctl daemon-reload; exit 0"


def _rules(names: list[str], _: HostReading) -> list[Change]:
    return [_change("remove our firewall rules", "rule", names, Shell(firewall.remove_script()))]


def _daemon_keys(names: list[str], reading: HostReading) -> list[Change]:
    text = reading[DOCKER].files.get(DAEMON_JSON)
    if text is None:
        return [_change(f"forget our keys in {DAEMON_JSON}", "daemon_key", names)]
    tree = without(parse_daemon_json(text), names)
    write = WriteFile(DAEMON_JSON, render_daemon_json(tree, text)) if tree else Shell(f"rm -f {DAEMON_JSON}")
    reload = Shell("systemctl is-active --quiet docker.service && systemctl reload docker.service; exit 0")
    return [_change(f"take {', '.join(names)} out of {DAEMON_JSON}", "daemon_key", names, write, reload)]


def without(tree: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """dockerd's configuration without keys of ours, given as dotted paths."""
    result = merged(tree, {}, paths)
    runtimes = dict(result.pop("runtimes", {}))
    if "runtimes.nvidia" in set(paths):
        runtimes.pop("nvidia", None)
    return {**result, "runtimes": runtimes} if runtimes else result


def _packages(names: list[str], _: HostReading) -> list[Change]:
    script = host_script("remove_packages", packages=" ".join(names), brought=f"{STATE}/packages")
    return [_change(f"remove the packages {', '.join(names)}", "package", names, Shell(script, timeout=1200))]


def _holds(names: list[str], _: HostReading) -> list[Change]:
    script = f"apt-mark unhold {' '.join(names)} >/dev/null 2>&1; exit 0"
    return [_change(f"release the packages {', '.join(names)}", "hold", names, Shell(script))]


def _group_member(name: str) -> str:
    group, user = name.split(":", 1)
    member = f"id -nG {shlex.quote(user)} 2>/dev/null | grep -qw {group}"
    return f"if {member}; then gpasswd --delete {shlex.quote(user)} {group} >/dev/null; fi"


def _file(path: str) -> str:
    folder = path.rsplit("/", 1)[0]
    after = [
        "update-ca-certificates >/dev/null 2>&1" if path.startswith(AUTHORITIES) else "",
        "" if folder.startswith(THEIRS) else f"rmdir --ignore-fail-on-non-empty {shlex.quote(folder)} 2>/dev/null",
    ]
    return "; ".join([f"rm -f {shlex.quote(path)}", *filter(None, after), "exit 0"])


def _directory(path: str) -> str:
    if path.startswith(f"{STATE}/"):
        return f"rm -rf {shlex.quote(path)}"
    return f"rmdir {shlex.quote(path)} 2>/dev/null; exit 0"


def _image(name: str) -> str:
    return f"docker image rm {shlex.quote(name)} >/dev/null 2>&1; exit 0"


ORDER: Mapping[str, Callable[[list[str], HostReading], list[Change]]] = {
    "unit": _each("unit", "stop and remove", _unit),
    "rule": _rules,
    "login": _each("login", "remove the login at", registry.remove_script),
    "model": _each("model", "remove the model", models.remove_script),
    "image": _each("image", "remove the image", _image),
    "daemon_key": _daemon_keys,
    "group_member": _each("group_member", "take out of its group", _group_member),
    "hold": _holds,
    "package": _packages,
    "apt_source": _each("apt_source", "remove", _file),
    "file": _each("file", "remove", _file),
    "directory": _each("directory", "remove", _directory),
}
"""Kinds in the order in which they go: what serves first, what it stands on last."""
