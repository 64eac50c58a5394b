"""daemon.json as the running dockerd has taken it: an edit without a reload shows only here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os.path import normpath
from typing import Any

from rackwright.concerns.docker.daemon import DAEMON_JSON, RELOADABLE, BrokenDaemonJsonError, parse_daemon_json
from rackwright.concerns.docker.seen import SeenDocker

Reader = Callable[[Mapping[str, Any]], Any]


def _info(key: str) -> Reader:
    return lambda info: info.get(key)


def _mirrors(info: Mapping[str, Any]) -> Any:
    registry = info.get("RegistryConfig")
    return registry.get("Mirrors") if isinstance(registry, dict) else None


SAYS: Mapping[str, Reader] = {
    "data-root": _info("DockerRootDir"),
    "debug": _info("Debug"),
    "default-runtime": _info("DefaultRuntime"),
    "labels": _info("Labels"),
    "live-restore": _info("LiveRestoreEnabled"),
    "log-driver": _info("LoggingDriver"),
    "registry-mirrors": _mirrors,
    "storage-driver": _info("Driver"),
}
"""Keys of daemon.json that `docker info` tells, and where. Source: moby, daemon/info.go."""


def not_taken(seen: SeenDocker) -> Iterator[str]:
    """A sentence for what daemon.json says and the running dockerd does not do; none where either is unknown."""
    try:
        wanted = parse_daemon_json(seen.files.get(DAEMON_JSON))
    except BrokenDaemonJsonError:
        return  # the deploy's own refusal names it
    odd = sorted(key for key, told in SAYS.items() if key in wanted and _differs(key, wanted[key], told(seen.info)))
    odd += ["runtimes"] if _unknown_runtimes(wanted, seen) else []
    if odd:
        way = "reload" if set(odd) <= RELOADABLE else "restart"
        careful = "" if way == "reload" or not seen.serving else "rackwright drain its host first, then "
        yield (
            f"{DAEMON_JSON} was edited, and dockerd runs without it ({', '.join(odd)}); next: {careful}"
            f"systemctl {way} docker on the host, or take the edit back"
        )


def lost_programs(docker: SeenDocker) -> Iterator[str]:
    """Yield a sentence for each program by which containers were started, and that is gone."""
    for path in docker.lost:
        package = "docker.io or docker-ce" if path.endswith("/docker-proxy") else "containerd or containerd.io"
        yield (
            f"{path}, by which Docker starts containers, is no longer on this host, so none would start again; "
            f"next, on it: apt-get install --reinstall {package}"
        )


def _differs(key: str, wanted: Any, there: Any) -> bool:
    if there is None:
        return False
    return bool(_plain(key, wanted) != _plain(key, there))


def _plain(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return sorted(str(one).rstrip("/") for one in value)
    return normpath(value) if key == "data-root" and isinstance(value, str) else value


def _unknown_runtimes(wanted: Mapping[str, Any], seen: SeenDocker) -> bool:
    named = wanted.get("runtimes")
    # `nvidia` has a change of its own.
    return bool(seen.runtimes) and isinstance(named, dict) and not seen.runtimes.issuperset(named.keys() - {"nvidia"})
