"""Removal of each kind of owned object from a host: the changes of a teardown, by kind. Pure.

Each script fails when its object still exists, so that nothing is removed from the record too early.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rackwright.concerns import firewall, image, models, registry
from rackwright.concerns.docker import DOCKER
from rackwright.concerns.docker.daemon import (
    DAEMON_JSON,
    BrokenDaemonJsonError,
    merged,
    parse_daemon_json,
    render_daemon_json,
)
from rackwright.concerns.endpoint.switch.foreign_units import put_back_script
from rackwright.concerns.endpoint.switch.job import remove_script
from rackwright.hostside import host_script
from rackwright.paths import ENDPOINT_LABEL, HELPER_LABEL, KEEPALIVED_UNIT, STATE, UNITS, endpoint_of, is_drop_ins
from rackwright.plan.change import Change, Owned, Refuse, Shell, Step, WriteFile
from rackwright.plan.concern import HostReading

Changes = Callable[[list[str], HostReading], list[Change]]
AUTHORITIES = "/usr/local/share/ca-certificates/"
THEIRS = ("/etc/apt", UNITS, "/usr/local")
"""Folders that stay even when they are empty afterwards."""


def _change(what: str, kind: str, names: Iterable[str], *steps: Step) -> Change:
    return Change(what, "", steps, disowns=tuple(Owned(kind, name) for name in names))


def _each(kind: str, what: str, script: Callable[[str], str]) -> Changes:
    def changes(names: list[str], _: HostReading) -> list[Change]:
        return [_change(f"{what} {name}", kind, [name], Shell(script(name), timeout=900)) for name in names]

    return changes


def _jobs(names: list[str], _: HostReading) -> list[Change]:
    step = Shell(host_script("stop_jobs", units=" ".join(names)), timeout=1800)
    return [_change(f"end what is under way: {', '.join(names)}", "job", names, step)]


def _unit(name: str) -> str:
    endpoint = endpoint_of(name)
    return remove_script(endpoint) if endpoint else host_script("remove_unit", unit=name, units=UNITS)


def _units(names: list[str], reading: HostReading) -> list[Change]:
    """Remove units, first the one by which a gateway hands its common address over: it answers until then."""
    first = [name for name in names if name == KEEPALIVED_UNIT]
    others = [name for name in names if name != KEEPALIVED_UNIT]
    return _each("unit", "stop and remove", _unit)([*first, *others], reading)


def _rules(names: list[str], _: HostReading) -> list[Change]:
    return [_change("remove our firewall rules", "rule", names, Shell(firewall.remove_script()))]


def _daemon_keys(names: list[str], reading: HostReading) -> list[Change]:
    text = reading[DOCKER].files.get(DAEMON_JSON)
    if text is None:
        return [_change(f"forget our keys in {DAEMON_JSON}", "daemon_key", names)]
    try:
        tree = without(parse_daemon_json(text), names)
    except BrokenDaemonJsonError as error:
        return [
            _change(
                f"take {', '.join(names)} out of {DAEMON_JSON}",
                "daemon_key",
                names,
                Refuse(error.text, code=error.code),
            )
        ]
    write = WriteFile(DAEMON_JSON, render_daemon_json(tree, text)) if tree else _emptied(DAEMON_JSON)
    reload = Shell("systemctl is-active --quiet docker.service && systemctl reload docker.service; exit 0")
    return [_change(f"take {', '.join(names)} out of {DAEMON_JSON}", "daemon_key", names, write, reload)]


def _emptied(path: str) -> Shell:
    """Remove a configuration with only Rackwright's content; if it is a link, its target stays, and is empty."""
    write = host_script("write_file", path=path, mode="0644", owner="root:root")
    return Shell(f"[ -L {path} ] || {{ rm -f {path}; exit; }}\nprintf '{{}}\\n' | base64 | (\n{write})\n")


def without(tree: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return dockerd's configuration without Rackwright's keys, given as dotted paths."""
    result = merged(tree, {}, paths)
    runtimes = dict(result.pop("runtimes", {}))
    if "runtimes.nvidia" in set(paths):
        runtimes.pop("nvidia", None)
    return {**result, "runtimes": runtimes} if runtimes else result


def _packages(names: list[str], _: HostReading) -> list[Change]:
    script = host_script("remove_packages", packages=" ".join(names), brought=f"{STATE}/packages")
    return [_change(f"remove the packages {', '.join(names)}", "package", names, Shell(script, timeout=1200))]


def _holds(names: list[str], _: HostReading) -> list[Change]:
    step = Shell(host_script("release_holds", packages=" ".join(names)))
    return [_change(f"release the packages {', '.join(names)}", "hold", names, step)]


def _group_member(name: str) -> str:
    group, user = name.split(":", 1)
    member = f"id -nG {shlex.quote(user)} 2>/dev/null | grep -qw {group}"
    return f"if {member}; then gpasswd --delete {shlex.quote(user)} {group} >/dev/null; fi"


def _file(path: str) -> str:
    folder = path.rsplit("/", 1)[0]
    stays = folder.startswith(THEIRS) and not is_drop_ins(folder)
    return host_script("remove_file", path=path, folder="" if stays else folder)


def _directory(path: str) -> str:
    if path.startswith(f"{STATE}/"):
        return f"rm -rf {shlex.quote(path)}"
    return f"rmdir {shlex.quote(path)} 2>/dev/null; exit 0"


def _image(name: str) -> str:
    return host_script("remove_image", images=name)


def _scratch(path: str) -> str:
    return f"rm -rf {shlex.quote(path)}"


def _container(name: str) -> str:
    labels = {"endpoint_label": ENDPOINT_LABEL, "helper_label": HELPER_LABEL}
    return host_script("remove_container", container=name, **labels)


ORDER: Mapping[str, Changes] = {
    "job": _jobs,
    "names": _each("names", "take a registry's name out of", lambda _: image.remove_names_script()),
    "unit": _units,
    "link": _each("link", "remove", _file),
    "container": _each("container", "remove the container", _container),
    "rule": _rules,
    "login": _each("login", "remove the login at", registry.remove_script),
    "scratch": _each("scratch", "remove", _scratch),
    "model": _each("model", "remove the model", models.remove_script),
    "image": _each("image", "remove the image", _image),
    "daemon_key": _daemon_keys,
    "aside": _each("aside", "put back what was moved away:", put_back_script),
    "group_member": _each("group_member", "take out of its group", _group_member),
    "hold": _holds,
    "package": _packages,
    "apt_source": _each("apt_source", "remove", _file),
    "file": _each("file", "remove", _file),
    "directory": _each("directory", "remove", _directory),
}
"""Kinds in the order of their removal: endpoints first, their dependencies last."""


def removals(owned: Iterable[Owned], reading: HostReading) -> list[Change]:
    """Return the changes that remove owned objects, in their order."""
    names: dict[str, list[str]] = {kind: [] for kind in ORDER}
    for one in sorted(owned):
        if one.kind in names:
            names[one.kind].append(one.name)
    return [change for kind, changes in ORDER.items() if names[kind] for change in changes(names[kind], reading)]


def unknown_kinds(owned: Iterable[Owned]) -> Sequence[Owned]:
    """Return owned objects of a kind that this version cannot remove."""
    return [one for one in sorted(owned) if one.kind not in ORDER]
