"""The daemon: daemon.json and its proxy, restarted only where that is needed.

Under an endpoint that serves, a restart is no matter of this concern: it is left to the host's turn to switch.
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
"""Longest time that a restart of dockerd takes before its guard may doubt it."""
SNAPSHOTTER = "containerd-snapshotter"
STORES = frozenset({"containerd", "containerd-namespace", "data-root", "graph", "storage-driver", "userns-remap"})
"""Top-level keys that give dockerd another store: the images that it has now would be left behind."""
CHAINS = frozenset({"firewall-backend", "ip6tables", "iptables"})
"""Top-level keys by which dockerd makes other chains: the firewall's rules, set before any switch, stand in them."""


def not_while_serving(seen: SeenDocker, what: str) -> str:
    """The refusal's text: what would stop the serving endpoints, and the commands that allow it."""
    units = " ".join(unit_name(name) for name in seen.serving)
    return (
        f"{what}, which would stop {', '.join(seen.serving)} under its clients. When that is all right, "
        f"on this host run: systemctl stop {units}; then run the same command again: it starts and proves them"
    )


@dataclass(frozen=True)
class Configuration:
    """dockerd's two files; None where there is none."""

    daemon_json: str | None
    dropin: str | None

    @property
    def valid_script(self) -> str:
        """Ends well unless dockerd knows already that it cannot start with it."""
        return compact(host_script("docker_valid", daemon_json=DAEMON_JSON, daemon_text=_b64(self.daemon_json))) + "\n"

    def apply_script(self, action: str, runtime: str = "") -> str:
        """Put it in place and have dockerd take it.

        action: reload, restart or start. runtime: one that dockerd must know afterwards.
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
        """What puts it back, files alone, when the change that tries another one is cut.

        owner: unit of that change. endpoints: names of those that stand on dockerd, to be started with it.
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
        """A short name of its content."""
        return hashlib.sha256(f"{_b64(self.daemon_json)} {_b64(self.dropin)}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Reconfiguration:
    """dockerd's configuration as it is and as it should be, why, and what makes dockerd take it."""

    before: Configuration
    after: Configuration
    action: str
    """reload, restart or start"""
    why: str
    unfit: str
    """Why it cannot wait for the host's turn to switch; empty when it can."""
    owns: tuple[Owned, ...]
    disowns: tuple[Owned, ...]
    only_repairs: bool = False
    """True when its configuration stays as it is, and a restart alone makes the chains that are gone."""

    @property
    def what(self) -> str:
        """The change as a sentence."""
        return "restart dockerd" if self.only_repairs else f"configure dockerd and {self.action} it"

    @property
    def valid_script(self) -> str:
        """Ends well unless a restart is known to fail, or to be needless; changes nothing."""
        still_gone = f"(\n{still_gone_script()})\n[ $? = 0 ] || exit 1\n" if self.only_repairs else ""
        return still_gone + self.able_script + self.after.valid_script

    @property
    def able_script(self) -> str:
        """Ends well unless a dockerd that starts would wait without a limit, or could not make its chains."""
        if self.action == "reload":
            return ""
        filters = parse_daemon_json(self.after.daemon_json)
        makes = filters.get("iptables") is not False and filters.get("firewall-backend") != "nftables"
        return can_restart_script() + (f"(\n{can_be_made_script()})\n[ $? = 0 ] || exit 1\n" if makes else "")

    @property
    def diff(self) -> str:
        """Unified diff of daemon.json."""
        return diff(self.before.daemon_json, self.after.daemon_json or "")


def reconfiguration(asked: WantedDocker, seen: SeenDocker) -> Reconfiguration | None:
    """What differs of dockerd's configuration; None when nothing does. Raises BrokenDaemonJsonError."""
    before_text, dropin = seen.files.get(DAEMON_JSON), dropin_text(asked.settings)
    before = parse_daemon_json(before_text)
    after = merged(before, asked.settings.docker.daemon, asked.names("daemon_key"))
    stale = seen.daemon == "up" and "nvidia" not in seen.runtimes
    moved = changed_keys(before, after)
    proxy = _dropin_differs(asked, seen, dropin)
    repairs, differs = to_repair(asked.settings, seen), bool(moved or stale or proxy)
    if not differs and not repairs:
        return None
    stores = tuple(dict.fromkeys([*_stores(before, after, moved), *seen.other_store]))
    restart = proxy or bool(stores or moved - RELOADABLE or repairs)
    owns, disowns = _ownership(asked, before, dropin) if differs else ((), ())
    return Reconfiguration(
        before=Configuration(before_text, seen.files.get(DROPIN)),
        after=Configuration(
            render_daemon_json(after, before_text) if moved else before_text,
            dropin if _decides_dropin(asked, dropin) else seen.files.get(DROPIN),
        ),
        action="start" if seen.daemon == "down" else "restart" if restart else "reload",
        why="; ".join(filter(None, [_why(seen, moved, stale, proxy, restart), _why_repair(repairs)])),
        unfit=_unfit(stores, tuple(sorted(moved & CHAINS))),
        owns=owns,
        disowns=disowns,
        only_repairs=not differs,
    )


def daemon_changes(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    """daemon.json and the daemon's proxy, as one guarded change; none that must wait for the host's turn to switch."""
    found = reconfiguration(asked, seen)
    if found is None or seen.restarting:
        return []
    if found.action == "restart" and seen.serving:
        return [_refused(found, seen)] if found.unfit else []
    if seen.waits and found.action != "reload":
        return [waiting(found, seen)]
    guarded = Guarded(
        "docker",
        found.after.apply_script(found.action, "nvidia"),
        found.before.apply_script("restart" if found.action == "start" else found.action),
        asked.settings.firewall.confirm_timeout + (RESTART_SECONDS if found.action != "reload" else 0),
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


def forget_changes(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    """What the record still names and is gone: a removal was cut before it was struck from the record.

    Kept there, it would have Rackwright take out what somebody else writes under the same key later.
    """
    before = parse_daemon_json(seen.files.get(DAEMON_JSON))
    there = {*leaves(before), *leaves(with_runtime(asked.settings.docker.daemon, {}))}
    gone = [Owned("daemon_key", path) for path in sorted(asked.names("daemon_key") - there)]
    dropin = Owned("file", DROPIN)
    if dropin in asked.owned and not seen.files.get(DROPIN) and not dropin_text(asked.settings):
        gone.append(dropin)
    return [Change(f"forget {one.kind} {one.name}", "it is gone from the host", (), disowns=(one,)) for one in gone]


def deferred(asked: WantedDocker, seen: SeenDocker) -> Reconfiguration | None:
    """What takes a restart of dockerd under endpoints that serve, and so the host's turn; None when nothing does."""
    found = reconfiguration(asked, seen)
    if found is None or found.action != "restart" or found.unfit or not seen.serving:
        return None
    return found


def waiting(change: Reconfiguration, docker: SeenDocker) -> Change:
    """Return the change that is refused as long as dockerd would not come up again."""
    text = f"dockerd is not stopped, since it would not come up again: {docker.waits[0]}"
    return Change(change.what, change.why, (Refuse(text, code="RW2112"),), by_itself=change.only_repairs)


def _refused(found: Reconfiguration, seen: SeenDocker) -> Change:
    text = not_while_serving(seen, f"{found.unfit}: it takes a restart of dockerd")
    return Change("restart dockerd", found.unfit, (Refuse(text, code="RW2104"),))


def _unfit(stores: tuple[str, ...], chains: tuple[str, ...]) -> str:
    if stores:
        return f"{', '.join(stores)} gives dockerd another store, so the images of now would be missing there"
    if chains:
        return f"{', '.join(chains)} gives dockerd other chains, and the firewall's rules come before any switch"
    return ""


def _dropin_differs(asked: WantedDocker, seen: SeenDocker, dropin: str | None) -> bool:
    if seen.daemon == "absent" or seen.files.get(DROPIN) == dropin:
        return False
    return _decides_dropin(asked, dropin)


def _decides_dropin(asked: WantedDocker, dropin: str | None) -> bool:
    """True if the settings say what the drop-in holds, or that it goes.

    On a host without dockerd the drop-in is written, or removed, before dockerd comes: the reading is older.
    """
    return dropin is not None or Owned("file", DROPIN) in asked.owned


def _stores(before: Mapping[str, Any], after: Mapping[str, Any], moved: set[str]) -> tuple[str, ...]:
    """Changed keys by which dockerd would look for its images elsewhere."""
    old, new = (tree.get("features") for tree in (before, after))
    was, will = ((value.get(SNAPSHOTTER) if isinstance(value, dict) else None) for value in (old, new))
    return (*sorted(moved & STORES), *([f"features.{SNAPSHOTTER}"] if was != will else []))


def _why(seen: SeenDocker, moved: set[str], stale: bool, proxy: bool, restart: bool) -> str:
    reasons = [f"{DAEMON_JSON}: {', '.join(sorted(moved))}"] if moved else []
    reasons += ["its proxy differs"] if proxy else []
    reasons += ["the running dockerd does not know the runtime nvidia"] if stale and not moved else []
    if seen.others_running and restart:
        reasons.append(f"{seen.others_running} other containers run and may stop with it")
    return "; ".join(reasons)


def _why_repair(repairs: str) -> str:
    return f"{repairs}, so no container that publishes a port can start" if repairs else ""


def _ownership(
    asked: WantedDocker, before: Mapping[str, Any], dropin: str | None
) -> tuple[tuple[Owned, ...], tuple[Owned, ...]]:
    """What becomes ours, and what is ours no longer."""
    mine, had = asked.names("daemon_key"), set(leaves(before))
    ours = set(leaves(with_runtime(asked.settings.docker.daemon, before)))
    keys = {path for path in ours if path not in had or path in mine}
    gone = mine - set(leaves(with_runtime(asked.settings.docker.daemon, {})))
    file = {Owned("file", DROPIN)}
    added = file if dropin else set()
    owns = {Owned("daemon_key", path) for path in keys} | added
    return tuple(owns), tuple({Owned("daemon_key", path) for path in gone} | (file - added))


def _b64(text: str | None) -> str:
    return base64.b64encode((text or "").encode()).decode()


def start_changes(seen: SeenDocker) -> list[Change]:
    """A daemon that is installed and does not answer is started; one that is being restarted is waited for."""
    if seen.daemon != "down":
        return []
    if seen.restarting:
        why = "an earlier run has left its restart under way"
        return [Change("wait for dockerd", why, (Shell(_WAIT, timeout=240),))]
    step = Refuse(f"dockerd cannot start: {seen.waits[0]}", code="RW2112") if seen.waits else Shell(_START, timeout=240)
    return [Change("start dockerd", "it is installed but does not answer", (step,))]


def enable_changes(seen: SeenDocker) -> list[Change]:
    """The daemon's unit is enabled at boot."""
    if seen.daemon == "absent" or seen.enabled:
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
