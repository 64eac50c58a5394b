"""Send a message to the receivers that the hosts' settings name, within seconds, even where one does not answer."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from rackwright.messages import RackwrightError, coded, printable
from rackwright.notify.message import Message
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.message_formats import filled
from rackwright.settings.notify import Notify
from rackwright.settings.secret import Secret, without_secrets
from rackwright.site_command import run_site_command
from rackwright.sources.http import Client
from rackwright.sources.opener import host_of, within

SECONDS = 10.0
"""For one message."""
WHOLE = 20.0
"""For all messages of one event."""
SHOWN = 300
"""Characters of an answer that are shown."""


@dataclass(frozen=True)
class Delivery:
    """The receiver's answer, or why it is missing. target: the receiver, without a secret."""

    target: str
    ok: bool
    text: str


def send(message: Message, to: Iterable[HostSettings]) -> list[Delivery]:
    """Send a message to each target; it takes `WHOLE` seconds at most."""
    deadline = time.monotonic() + WHOLE
    return [_sent(message, one, min(SECONDS, max(1.0, deadline - time.monotonic()))) for one in to]


def notify(message: Message, to: Iterable[HostSettings]) -> None:
    """Send a message, and print each target that was not reached: that changes nothing else."""
    for answer in send(message, to):
        if not answer.ok:
            lost = f"{answer.target} was not notified: {answer.text}; next: rackwright notify --test INVENTORY"
            print(f"rackwright: {coded('RW0834', lost)}", file=sys.stderr, flush=True)


def _sent(message: Message, settings: HostSettings, seconds: float) -> Delivery:
    target = settings.notify
    values = message.values(platform.node() or "control machine", datetime.now(UTC))
    body = filled(target.form, values)
    if target.url is None:
        return _commanded(target, settings, values, body, seconds)
    return _posted(target, target.url, settings, body, seconds)


def _posted(notify: Notify, url: Secret, settings: HostSettings, body: str, seconds: float) -> Delivery:
    target = host_of(url.unmask())
    try:
        work = partial(Client(settings).post, url, notify.header, body.encode(), seconds)
        answer = within(seconds, work)
    except (RackwrightError, OSError) as error:
        return Delivery(target, False, _shown(str(error)))
    text = answer.body[:SHOWN].decode(errors="replace")
    return Delivery(target, 200 <= answer.status < 300, _shown(f"HTTP {answer.status}: {text}"))


def _commanded(notify: Notify, settings: HostSettings, values: dict[str, str], body: str, seconds: float) -> Delivery:
    """Run the command in the site's folder, as hooks are; its whole group is ended when the time is over."""
    names = ("kind", "key", "state", "hosts", "title", "text")
    environment = {**os.environ, **{f"RACKWRIGHT_{name.upper()}": values[name] for name in names}}
    ended = run_site_command(notify.command, body, seconds, settings.site, environment)
    if isinstance(ended.status, str):
        return Delivery(notify.command[0], False, ended.status)
    text = f"exit status {ended.status}: {ended.output[:SHOWN]}"
    return Delivery(notify.command[0], ended.status == 0, _shown(text))


def _shown(text: str) -> str:
    return printable(without_secrets(" ".join(text.split())))
