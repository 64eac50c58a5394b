"""Files by which a host sends its events: the sender, its unit, the check that starts it, and the webhook. Pure."""

from __future__ import annotations

import shlex

from rackwright.concerns.proxy_values import values_of
from rackwright.concerns.watch.units import NOTIFY_STARTER, check_file
from rackwright.hostside import host_text
from rackwright.paths import ETC, EVENTS_SENT, NOTIFY_UNIT, RUN, STATE, UNITS
from rackwright.plan.render import render_own
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.message_formats import PLACEHOLDERS
from rackwright.settings.notify import Notify
from rackwright.settings.secret import Secret
from rackwright.settings.sections import Proxy

SENDER = f"{ETC}/notify"
"""Script that sends the waiting events; with the argument `test`, one message."""
WEBHOOK = f"{ETC}/notify.curl"
"""Configuration of curl with the webhook's address, header and proxy; root's alone."""
PEERS = f"{ETC}/notify.peers"
"""The hosts that serve the same model, this one among them: endpoint, name, address, and the port of its word."""
EVENTS = f"{STATE}/events"
EVENTS_IN_MEMORY = f"{RUN}/events"
"""Folder of the events that a full disk had no room for."""
RUNTIME = "rackwright-notify"
"""Folder below /run with the keys that the host has sent, which its peers may ask for."""
NOTIFY_FOLDERS = (EVENTS, EVENTS_IN_MEMORY, f"{STATE}/notify", f"/run/{RUNTIME}")
"""Folders of events that wait, and of those that were sent."""


def notify_files(settings: HostSettings) -> dict[str, str | Secret]:
    """Return its files by path; none where no one is notified."""
    notify = settings.notify
    if not notify.is_set:
        return {}
    found: dict[str, str | Secret] = {
        SENDER: _sender(notify),
        check_file("drift"): render_own(
            "watch-drift.j2",
            tell=host_text("tell.sh").rstrip(),
            run=f"/run/{RUNTIME}",
            homes=f"{STATE}/endpoints",
            units=UNITS,
            left=f"{STATE}/watch/files",
            sent=EVENTS_SENT,
        ),
        NOTIFY_STARTER: render_own(
            "notify-start.j2", events=EVENTS, memory=EVENTS_IN_MEMORY, run=f"/run/{RUNTIME}", unit=NOTIFY_UNIT
        ),
        f"{UNITS}/{NOTIFY_UNIT}": render_own(
            f"{NOTIFY_UNIT}.j2",
            script=SENDER,
            command=bool(notify.command),
            state=STATE,
            memory=EVENTS_IN_MEMORY,
            runtime=RUNTIME,
        ),
    }
    if rows := _peers(settings):
        found[PEERS] = rows
    return found if notify.url is None else {**found, WEBHOOK: Secret(_webhook(notify, notify.url, settings.proxy))}


def _sender(notify: Notify) -> str:
    form = notify.form
    return render_own(
        "notify.j2",
        script=SENDER,
        config=WEBHOOK,
        events=EVENTS,
        memory=EVENTS_IN_MEMORY,
        state=STATE,
        run=f"/run/{RUNTIME}",
        peers=PEERS,
        drained=f"{STATE}/drained",
        template=shlex.quote(form.text),
        escape=form.escape,
        open=shlex.quote(form.brackets[0]),
        close=shlex.quote(form.brackets[1]),
        placeholders=" ".join(PLACEHOLDERS),
        per_hour=notify.per_hour,
        words=shlex.join(notify.command),
    )


def _peers(settings: HostSettings) -> str:
    return "".join(
        f"{endpoint} {peer.host} {peer.address} {peer.port}\n"
        for endpoint, peers in settings.peers.items()
        for peer in peers
        if peer.address
    )


def _webhook(notify: Notify, url: Secret, proxy: Proxy) -> str:
    """Return curl's configuration: nothing of it is ever an argument of a process."""
    address = url.unmask()
    values = {"url": address}
    if notify.header:
        values["header"] = notify.header.unmask()
    proxies = values_of(proxy)
    if through := proxies["https_proxy" if address.startswith("https:") else "http_proxy"]:
        values |= {"proxy": through, "noproxy": proxies["no_proxy"]}
    return "".join(f'{key} = "{_quoted(value)}"\n' for key, value in values.items())


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
