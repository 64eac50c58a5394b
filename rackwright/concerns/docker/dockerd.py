"""The daemon: daemon.json and its proxy, restarted only where that is needed, and never under a serving endpoint."""

from __future__ import annotations

import base64

from rackwright.change import Change, Guarded, Owned, Refuse, Shell, Step
from rackwright.concerns.daemon import (
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
from rackwright.hostside import host_script

RESTART_SECONDS = 60
"""Longest time that a restart of dockerd takes before its guard may doubt it."""


def not_while_serving(seen: SeenDocker, what: str) -> str:
    """The refusal's text: what would stop the serving endpoints, and the commands that allow it."""
    units = " ".join(f"rackwright-{name}.service" for name in seen.serving)
    return (
        f"{what}, which would stop {', '.join(seen.serving)} under its clients. When that is all right, "
        f"on this host run: systemctl stop {units}; then run the same command again: it starts and proves them"
    )


def daemon_changes(asked: WantedDocker, seen: SeenDocker) -> list[Change]:
    """daemon.json and the daemon's proxy, as one guarded change; a refusal where it would stop a serving endpoint."""
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
        return [Change("restart dockerd", reason, (Refuse(not_while_serving(seen, reason)),))]
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


def start_changes(seen: SeenDocker) -> list[Change]:
    """A daemon that is installed and does not answer is started."""
    if seen.daemon != "down":
        return []
    return [Change("start dockerd", "it is installed but does not answer", (Shell(_START, timeout=180),))]


def enable_changes(seen: SeenDocker) -> list[Change]:
    """The daemon's unit is enabled at boot."""
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
