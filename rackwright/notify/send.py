"""Send a message to the receivers that the hosts' settings name, within seconds, even where one does not answer."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
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
    words = [str(settings.site / notify.command[0]) if "/" in notify.command[0] else notify.command[0]]
    names = ("kind", "key", "state", "hosts", "title", "text")
    environment = {**os.environ, **{f"RACKWRIGHT_{name.upper()}": values[name] for name in names}}
    try:
        process = subprocess.Popen(
            [*words, *notify.command[1:]],
            cwd=settings.site,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return Delivery(notify.command[0], False, f"cannot be run: {error.strerror}")
    try:
        output, _ = process.communicate(body.encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return Delivery(notify.command[0], False, f"was ended after {seconds:.0f} s")
    text = f"exit status {process.returncode}: {output[:SHOWN].decode(errors='replace')}"
    return Delivery(notify.command[0], process.returncode == 0, _shown(text))


def _shown(text: str) -> str:
    return printable(without_secrets(" ".join(text.split())))
