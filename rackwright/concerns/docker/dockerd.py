"""The daemon: daemon.json and its proxy, restarted only where that is needed.

While an endpoint serves, this concern does not restart dockerd: the restart waits for the host's turn to switch.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rackwright.concerns.docker.chains import (
    can_be_made_script,
    can_restart_script,
    still_gone_script,
    to_repair,
)
from rackwright.concerns.docker.daemon import (
    DAEMON_JSON,
    RELOADABLE,
    changed_keys,
    diff,
    leaves,
    merged,
    parse_daemon_json,
    render_daemon_json,
    with_runtime,
)
from rackwright.concerns.docker.files import DROPIN, dropin_text
from rackwright.concerns.docker.seen import SeenDocker
from rackwright.concerns.docker.wanted import WantedDocker
from rackwright.hostside import compact, host_script, host_text, trial_script
from rackwright.paths import guard_unit, unit_name
from rackwright.plan.change import Change, Guarded, Owned, Refuse, Shell

RESTART_SECONDS = 60
"""Longest time that a restart of dockerd takes before its guard may act."""
SNAPSHOTTER = "containerd-snapshotter"
STORES = frozenset({"containerd", "containerd-namespace", "data-root", "graph", "storage-driver", "userns-remap"})
"""Top-level keys that give dockerd another store: its current images would no longer be available."""
CHAINS = frozenset({"firewall-backend", "ip6tables", "iptables"})
"""Top-level keys by which dockerd makes other chains: they hold the firewall's rules, set before any switch."""


def not_while_serving(reading: SeenDocker, what: str) -> str:
    """Return the refusal's text: the change that would stop the serving endpoints, and the commands that allow it."""
    units = " ".join(unit_name(name) for name in reading.serving)
    return (
        f"{what}, which would stop {', '.join(reading.serving)} under its clients. When that is all right, "
        f"on this host run: systemctl stop {units}; then run the same command again: it starts and proves them"
    )


@dataclass(frozen=True)
class Configuration:
    """dockerd's two files; None where a file is missing."""

    daemon_json: str | None
    dropin: str | None

    @property
    def valid_script(self) -> str:
        """A script that fails when dockerd can tell that it cannot start with this configuration."""
        return compact(host_script("docker_valid", daemon_json=DAEMON_JSON, daemon_text=_b64(self.daemon_json))) + "\n"

    def apply_script(self, action: str, runtime: str = "") -> str:
        """Return the script that writes the files and makes dockerd use them.

        action: reload, restart or start. runtime: one that dockerd must list afterwards.
        """
        apply = host_script(
            "docker_apply",
            daemon_json=DAEMON_JSON,
            daemon_text=_b64(self.daemon_json),
            dropin=DROPIN,
            dropin_text=_b64(self.dropin),
            action=action,
            runtime=runtime,
        )
        return f"{self.valid_script}{compact(host_text('docker_start.sh'))}\n{compact(apply)}\n"

    def trial(self, owner: str, endpoints: Sequence[str] = ()) -> str:
        """Return the script that restores these files when a change to another configuration is interrupted.

        owner: unit of that change. endpoints: names of those that depend on dockerd, to be started with it.
        """
        return trial_script(
            "dockerd",
            owner=owner,
            held="",
            daemon_json=DAEMON_JSON,
            daemon_text=_b64(self.daemon_json),
            dropin=DROPIN,
            dropin_text=_b64(self.dropin),
            endpoints=" ".join(map(unit_name, endpoints)),
        )

    @property
    def digest(self) -> str:
        """Short digest of its content."""
        return hashlib.sha256(f"{_b64(self.daemon_json)} {_b64(self.dropin)}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Reconfiguration:
    """dockerd's current and wanted configuration, the reason, and the action that applies it."""

    before: Configuration
    after: Configuration
    action: str
    """reload, restart or start"""
    why: str
    unfit: str
    """Reason why it cannot wait for the host's turn to switch; empty when it can."""
    owns: tuple[Owned, ...]
    disowns: tuple[Owned, ...]
    only_repairs: bool = False
    """True when the configuration stays unchanged and a restart alone makes the missing chains."""

    @property
    def what(self) -> str:
        """The change as a sentence."""
        return "restart dockerd" if self.only_repairs else f"configure dockerd and {self.action} it"

    @property
    def valid_script(self) -> str:
        """A script that fails when a restart would fail or is not needed; it changes nothing."""
        still_gone = f"(\n{still_gone_script()})\n[ $? = 0 ] || exit 1\n" if self.only_repairs else ""
        return still_gone + self.able_script + self.after.valid_script

    @property
    def able_script(self) -> str:
        """A script that fails when a starting dockerd would wait without a limit, or could not make its chains."""
        if self.action == "reload":
            return ""
        filters = parse_daemon_json(self.after.daemon_json)
        makes = filters.get("iptables") is not False and filters.get("firewall-backend") != "nftables"
        return can_restart_script() + (f"(\n{can_be_made_script()})\n[ $? = 0 ] || exit 1\n" if makes else "")

    @property
    def diff(self) -> str:
        """Unified diff of daemon.json."""
        return diff(self.before.daemon_json, self.after.daemon_json or "")


def reconfiguration(wanted: WantedDocker, reading: SeenDocker) -> Reconfiguration | None:
    """Return the change of dockerd's configuration; None when nothing differs. Raises BrokenDaemonJsonError."""
    before_text, dropin = reading.files.get(DAEMON_JSON), dropin_text(wanted.settings)
    before = parse_daemon_json(before_text)
    after = merged(before, wanted.settings.docker.daemon, wanted.names("daemon_key"))
    stale = reading.daemon == "up" and "nvidia" not in reading.runtimes
    moved = changed_keys(before, after)
    proxy = _dropin_differs(wanted, reading, dropin)
    repairs, differs = to_repair(wanted.settings, reading), bool(moved or stale or proxy)
    if not differs and not repairs:
        return None
    stores = tuple(dict.fromkeys([*_stores(before, after, moved), *reading.other_store]))
    restart = proxy or bool(stores or moved - RELOADABLE or repairs)
    owns, disowns = _ownership(wanted, before, dropin) if differs else ((), ())
    return Reconfiguration(
        before=Configuration(before_text, reading.files.get(DROPIN)),
        after=Configuration(
            render_daemon_json(after, before_text) if moved else before_text,
            dropin if _decides_dropin(wanted, dropin) else reading.files.get(DROPIN),
        ),
        action="start" if reading.daemon == "down" else "restart" if restart else "reload",
        why="; ".join(filter(None, [_why(reading, moved, stale, proxy, restart), _why_repair(repairs)])),
        unfit=_unfit(stores, tuple(sorted(moved & CHAINS))),
        owns=owns,
        disowns=disowns,
        only_repairs=not differs,
    )


def daemon_changes(wanted: WantedDocker, reading: SeenDocker) -> list[Change]:
    """Return one guarded change of daemon.json and the daemon's proxy; none when it must wait for the host's turn."""
    found = reconfiguration(wanted, reading)
    if found is None or reading.restarting:
        return []
    if found.action == "restart" and reading.serving:
        return [_refused(found, reading)] if found.unfit else []
    if reading.waits and found.action != "reload":
        return [waiting(found, reading)]
    guarded = Guarded(
        "docker",
        found.after.apply_script(found.action, "nvidia"),
        found.before.apply_script("restart" if found.action == "start" else found.action),
        wanted.settings.firewall.confirm_timeout + (RESTART_SECONDS if found.action != "reload" else 0),
        found.before.trial(f"{guard_unit('docker')}.timer"),
        found.able_script,
    )
    change = Change(
        found.what,
        found.why,
        (guarded,),
        owns=found.owns,
        disowns=found.disowns,
        diff=found.diff,
        by_itself=found.only_repairs,
    )
    return [replace(change, restarts="dockerd") if found.action == "restart" else change]


def forget_changes(wanted: WantedDocker, reading: SeenDocker) -> list[Change]:
    """Return changes for recorded entries that no longer exist: a removal was interrupted before the record changed.

    A stale entry would make Rackwright remove a key that an operator or another tool writes later.
    """
    before = parse_daemon_json(reading.files.get(DAEMON_JSON))
    present = {*leaves(before), *leaves(with_runtime(wanted.settings.docker.daemon, {}))}
    gone = [Owned("daemon_key", path) for path in sorted(wanted.names("daemon_key") - present)]
    dropin = Owned("file", DROPIN)
    if dropin in wanted.owned and not reading.files.get(DROPIN) and not dropin_text(wanted.settings):
        gone.append(dropin)
    return [Change(f"forget {one.kind} {one.name}", "it is gone from the host", (), disowns=(one,)) for one in gone]


def deferred(wanted: WantedDocker, reading: SeenDocker) -> Reconfiguration | None:
    """Return the change that needs a restart while endpoints serve, and so the host's turn; None without one."""
    found = reconfiguration(wanted, reading)
    if found is None or found.action != "restart" or found.unfit or not reading.serving:
        return None
    return found


def waiting(change: Reconfiguration, docker: SeenDocker) -> Change:
    """Return the change that is refused as long as dockerd would not come up again."""
    text = f"dockerd is not stopped, since it would not come up again: {docker.waits[0]}"
    return Change(change.what, change.why, (Refuse(text, code="RW2112"),), by_itself=change.only_repairs)


def _refused(found: Reconfiguration, reading: SeenDocker) -> Change:
    text = not_while_serving(reading, f"{found.unfit}: it takes a restart of dockerd")
    return Change("restart dockerd", found.unfit, (Refuse(text, code="RW2104"),))


def _unfit(stores: tuple[str, ...], chains: tuple[str, ...]) -> str:
    if stores:
        return f"{', '.join(stores)} gives dockerd another store, so the images of now would be missing there"
    if chains:
        return f"{', '.join(chains)} gives dockerd other chains, and the firewall's rules come before any switch"
    return ""


def _dropin_differs(wanted: WantedDocker, reading: SeenDocker, dropin: str | None) -> bool:
    if reading.daemon == "absent" or reading.files.get(DROPIN) == dropin:
        return False
    return _decides_dropin(wanted, dropin)


def _decides_dropin(wanted: WantedDocker, dropin: str | None) -> bool:
    """Return True if the settings define the drop-in's content, or its removal.

    On a host without dockerd the drop-in is written or removed before dockerd is installed: the reading is older.
    """
    return dropin is not None or Owned("file", DROPIN) in wanted.owned


def _stores(before: Mapping[str, Any], after: Mapping[str, Any], moved: set[str]) -> tuple[str, ...]:
    """Return the changed keys that make dockerd look for its images elsewhere."""
    old, new = (tree.get("features") for tree in (before, after))
    was, will = ((value.get(SNAPSHOTTER) if isinstance(value, dict) else None) for value in (old, new))
    return (*sorted(moved & STORES), *([f"features.{SNAPSHOTTER}"] if was != will else []))


def _why(reading: SeenDocker, moved: set[str], stale: bool, proxy: bool, restart: bool) -> str:
    reasons = [f"{DAEMON_JSON}: {', '.join(sorted(moved))}"] if moved else []
    reasons += ["its proxy differs"] if proxy else []
    reasons += ["the running dockerd does not know the runtime nvidia"] if stale and not moved else []
    if reading.others_running and restart:
        reasons.append(f"{reading.others_running} other containers run and may stop with it")
    return "; ".join(reasons)


def _why_repair(repairs: str) -> str:
    return f"{repairs}, so no container that publishes a port can start" if repairs else ""


def _ownership(
    wanted: WantedDocker, before: Mapping[str, Any], dropin: str | None
) -> tuple[tuple[Owned, ...], tuple[Owned, ...]]:
    """Return the entries that the record gains, and those that it loses."""
    mine, had = wanted.names("daemon_key"), set(leaves(before))
    ours = set(leaves(with_runtime(wanted.settings.docker.daemon, before)))
    keys = {path for path in ours if path not in had or path in mine}
    gone = mine - set(leaves(with_runtime(wanted.settings.docker.daemon, {})))
    file = {Owned("file", DROPIN)}
    added = file if dropin else set()
    owns = {Owned("daemon_key", path) for path in keys} | added
    return tuple(owns), tuple({Owned("daemon_key", path) for path in gone} | (file - added))


def _b64(text: str | None) -> str:
    return base64.b64encode((text or "").encode()).decode()


def start_changes(reading: SeenDocker) -> list[Change]:
    """Start an installed daemon that does not answer; wait for one that is being restarted."""
    if reading.daemon != "down":
        return []
    if reading.restarting:
        why = "an earlier run has left its restart under way"
        return [Change("wait for dockerd", why, (Shell(_WAIT, timeout=240),))]
    step = (
        Refuse(f"dockerd cannot start: {reading.waits[0]}", code="RW2112")
        if reading.waits
        else Shell(_START, timeout=240)
    )
    return [Change("start dockerd", "it is installed but does not answer", (step,))]


def enable_changes(reading: SeenDocker) -> list[Change]:
    """Enable the daemon's unit at boot."""
    if reading.daemon == "absent" or reading.enabled:
        return []
    step = Shell("systemctl enable --quiet docker.service")
    return [Change("start dockerd at boot", "its unit is not enabled", (step,))]


_START = """\
systemctl reset-failed docker.service docker.socket 2>/dev/null
timeout 180 systemctl start docker.service && timeout 25 docker info >/dev/null && exit 0
echo 'dockerd does not start; its last words:' >&2
systemctl status --no-pager --lines=0 docker.service | sed 6q >&2
journalctl --unit=docker.service --lines=15 --no-pager --output=cat >&2
exit 1
"""
_WAIT = """\
for i in $(seq 200); do
  systemctl is-active --quiet docker.service && docker info >/dev/null 2>&1 && exit 0
  sleep 1
done
echo 'dockerd does not answer; next: journalctl -u docker --lines 50' >&2
exit 1
"""
