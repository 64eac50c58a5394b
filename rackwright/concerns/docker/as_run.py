"""daemon.json compared with the running dockerd: only this shows an edit without a reload. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rackwright.concerns.docker.chains import REJECTED
from rackwright.concerns.docker.daemon import DAEMON_JSON, RELOADABLE, BrokenDaemonJsonError, parse_daemon_json
from rackwright.concerns.docker.seen import SeenDocker
from rackwright.paths import unit_name

Reader = Callable[[Mapping[str, Any]], Any]


def _info(key: str) -> Reader:
    return lambda info: info.get(key)


def _mirrors(info: Mapping[str, Any]) -> Any:
    registry = info.get("RegistryConfig")
    return registry.get("Mirrors") if isinstance(registry, dict) else None


SAYS: Mapping[str, Reader] = {
    "debug": _info("Debug"),
    "default-runtime": _info("DefaultRuntime"),
    "labels": _info("Labels"),
    "live-restore": _info("LiveRestoreEnabled"),
    "log-driver": _info("LoggingDriver"),
    "registry-mirrors": _mirrors,
}
"""Keys of daemon.json that `docker info` reports, each with how to read it. Source: moby, daemon/info.go."""
_CGROUPS = "native.cgroupdriver="


def not_taken(reading: SeenDocker) -> Iterator[str]:
    """Yield a sentence for each key of daemon.json that the running dockerd does not apply, where both are known."""
    try:
        wanted = parse_daemon_json(reading.files.get(DAEMON_JSON))
    except BrokenDaemonJsonError:
        return  # the deploy refuses with the reason
    odd = sorted(key for key, in_info in SAYS.items() if key in wanted and _differs(wanted[key], in_info(reading.info)))
    odd += ["runtimes"] if _unknown_runtimes(wanted, reading) else []
    odd += ["exec-opts"] if _other_cgroups(wanted, reading.info) else []
    if reading.other_store:
        yield _store_text(reading)
    if odd:
        way = "reload" if set(odd) <= RELOADABLE else "restart"
        careful = "" if way == "reload" or not reading.serving else "rackwright drain its host first, then "
        yield (
            f"{DAEMON_JSON} was edited, and dockerd runs without it ({', '.join(odd)}); next: {careful}"
            f"systemctl {way} docker on the host, or take the edit back"
        )


def lost_programs(docker: SeenDocker) -> Iterator[str]:
    """Yield a sentence for each program that started containers and is now missing."""
    for path in docker.lost:
        package = "docker.io or docker-ce" if path.endswith("/docker-proxy") else "containerd or containerd.io"
        yield (
            f"{path}, by which Docker starts containers, is no longer on this host, so none would start again; "
            f"next, on it: apt-get install --reinstall {package}"
        )


def waits_at_start(docker: SeenDocker) -> Iterator[str]:
    """Yield a sentence for each thing that a start of dockerd or of a container would wait for."""
    yield from docker.waits


def rejected_clients(docker: SeenDocker) -> Iterator[str]:
    """Yield the sentence on a firewalld that rejects clients of published ports, if it does."""
    if docker.rejects and docker.serving:
        yield f"{REJECTED}; next: pyinfra INVENTORY deploy.py"


def _store_text(docker: SeenDocker) -> str:
    units = " ".join(map(unit_name, docker.serving))
    stop = f"systemctl stop {units}, " if units else ""
    return (
        f"{DAEMON_JSON} gives dockerd another store at its next start ({', '.join(docker.other_store)}), where the "
        f"images of now are missing; next: take the edit back; or on the host: {stop}systemctl restart docker, then "
        "pyinfra INVENTORY deploy.py"
    )


def _other_cgroups(wanted: Mapping[str, Any], info: Mapping[str, Any]) -> bool:
    options, running = wanted.get("exec-opts"), info.get("CgroupDriver")
    named = [str(one) for one in options if str(one).startswith(_CGROUPS)] if isinstance(options, list) else []
    return bool(running and named) and named[-1] != f"{_CGROUPS}{running}"


def _differs(wanted: Any, current: Any) -> bool:
    if current is None:
        return False
    return bool(_plain(wanted) != _plain(current))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(str(one).rstrip("/") for one in value)
    return value


def _unknown_runtimes(wanted: Mapping[str, Any], reading: SeenDocker) -> bool:
    named = wanted.get("runtimes")
    # `nvidia` has its own change.
    return (
        bool(reading.runtimes)
        and isinstance(named, dict)
        and not reading.runtimes.issuperset(named.keys() - {"nvidia"})
    )
