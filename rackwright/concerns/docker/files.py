"""Files around Docker: apt's proxy and pin, the site's authority, dockerd's proxy."""

from __future__ import annotations

from rackwright.concerns.docker import apt
from rackwright.concerns.docker.daemon import DAEMON_JSON
from rackwright.concerns.docker.seen import SeenDocker
from rackwright.concerns.docker.wanted import WantedDocker
from rackwright.concerns.proxy_values import proxy_values
from rackwright.hostside import host_script
from rackwright.plan.change import Change, Owned, Shell, Step, WriteFile
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.image_reference import HUB, registry_of

DROPIN = "/etc/systemd/system/docker.service.d/rackwright-proxy.conf"
AUTHORITY = "/usr/local/share/ca-certificates/rackwright-site.crt"


def certs_d(settings: HostSettings) -> tuple[str, ...]:
    """Return the paths where dockerd finds each registry's authority without a restart.

    Docker Hub has no such file: dockerd contacts it by another name, and uses the system's trust store.
    """
    images = (endpoint.image for endpoint in settings.all_endpoints.values())
    hosts = dict.fromkeys([settings.registry.host, *map(registry_of, images)])
    return tuple(f"/etc/docker/certs.d/{host}/ca.crt" for host in hosts if host != HUB)


def paths(settings: HostSettings) -> tuple[str, ...]:
    """Return the paths of all files whose text is read."""
    return (DAEMON_JSON, DROPIN, apt.PROXY_FILE, apt.PIN_FILE, AUTHORITY, *certs_d(settings))


def file_changes(wanted: WantedDocker, reading: SeenDocker) -> list[Change]:
    """Return changes for files that differ, and for Rackwright's files that are no longer wanted."""
    found = [_file(reading, apt.PROXY_FILE, apt.proxy_text(wanted.settings.proxy), "apt's proxy", wanted)]
    pin = apt.pin_text(wanted.settings.docker.toolkit_version)
    found.append(_file(reading, apt.PIN_FILE, pin, "the container toolkit's pin", wanted))
    found.append(_file(reading, AUTHORITY, wanted.authority, "the site's certificate authority", wanted))
    for path in certs_d(wanted.settings):
        found.append(_file(reading, path, wanted.authority, "the registry's certificate authority", wanted))
    if reading.daemon == "absent":
        found.append(_file(reading, DROPIN, dropin_text(wanted.settings), "Docker's proxy", wanted))
    return [change for change in found if change]


def _file(reading: SeenDocker, path: str, text: str | None, what: str, wanted: WantedDocker) -> Change | None:
    current, owned = reading.files.get(path), Owned("file", path)
    stored = path == AUTHORITY and reading.installed("ca-certificates")
    after = (Shell("update-ca-certificates >/dev/null", timeout=120),) if stored else ()
    if text is None:
        if owned not in wanted.owned:
            return None
        if current is None:  # a removal was cut before the record changed; a later file may be the operator's
            return Change(f"forget {path}", "it is gone from the host", (), disowns=(owned,))
        gone = Shell(host_script("remove_file", path=path, folder=""), timeout=120)
        return Change(f"remove {path}", f"{what} is no longer set", (gone,), disowns=(owned,))
    if current == text:
        return _trust(reading, after) if path == AUTHORITY and after else None
    mode = "0600" if path == apt.PROXY_FILE and "@" in text else "0644"
    why = f"{what} is missing there" if current is None else f"{what} differs"
    return Change(f"write {path}", why, (WriteFile(path, text, mode), *after), owns=(owned,))


def _trust(reading: SeenDocker, steps: tuple[Step, ...]) -> Change | None:
    if reading.authority_trusted:
        return None
    return Change("trust the site's certificate authority", "the system's trust store is older", steps)


def dropin_text(settings: HostSettings) -> str | None:
    """Return the systemd drop-in that gives dockerd its proxy; None without one."""
    values = proxy_values(settings)
    if not values["http_proxy"]:
        return None
    lines = [f'Environment="{key.upper()}={value.replace("%", "%%")}"' for key, value in values.items() if value]
    return "\n".join(["[Service]", *lines]) + "\n"
