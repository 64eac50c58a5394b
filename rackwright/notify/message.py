"""The message that a run sends when it ends otherwise than it was meant to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePath

from rackwright.exit_codes import ExitCode
from rackwright.messages import printable
from rackwright.record.record import Record
from rackwright.record.states import ENDED_WELL, SKIPPED_HOSTS
from rackwright.settings.secret import without_secrets

KINDS = {
    ExitCode.MANUAL_ACTION: "manual-action",
    ExitCode.ROLLED_BACK: "rolled-back",
    ExitCode.MIXED: "stopped",
    ExitCode.INTERRUPTED: "stopped",
    ExitCode.ERROR: "stopped",
}
"""Kinds of messages by how a run ended."""
LONGEST = 1000
"""Characters of a text."""
NAMED = 10
"""Hosts that are listed; of more, their number."""
LASTS = timedelta(hours=1)
"""Time for which an alert of it stays firing: no later run resolves it."""


@dataclass(frozen=True)
class Message:
    """An event for operators."""

    kind: str
    key: str
    hosts: str
    text: str
    state: str = "firing"
    """`resolved` for the end of what was sent before."""

    def values(self, host: str, now: datetime) -> dict[str, str]:
        """Return the values of a template's placeholders; `host` sends it."""
        severity = "critical" if self.kind == "manual-action" else "info" if self.kind == "test" else "warning"
        return {
            "kind": self.kind,
            "key": self.key,
            "state": self.state,
            "severity": severity,
            "time": _clock(now),
            "until": _clock(now if self.state == "resolved" else now + LASTS),
            "host": host,
            "hosts": self.hosts,
            "title": f"{'resolved: ' if self.state == 'resolved' else ''}{self.key} on {self.hosts}",
            "text": self.text,
        }


def _clock(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def message_of(record: Record, status: int, text: str, quarantine: Sequence[str]) -> Message | None:
    """Return the message of a run that has ended; None when all went well, or nothing was begun on any host.

    quarantine: sentences on hosts that the run has put on the list, or taken off it.
    """
    if status == ExitCode.DONE and not quarantine:
        return None
    if status in (ExitCode.ERROR, ExitCode.INTERRUPTED) and not (record.touched or quarantine):
        return None
    kind = "quarantine" if status == ExitCode.DONE else KINDS.get(ExitCode(status), "stopped")
    purpose, inventory = record.begin.get("purpose", "run"), PurePath(str(record.begin.get("inventory", ""))).stem
    return Message(kind, f"{kind}-{purpose}-{inventory}", _hosts(record), _text("; ".join([text, *quarantine])))


def quarantine_message(hosts: Sequence[str], inventory: str, user: str, reason: str) -> Message:
    """Return the message of hosts that a user has put on the list of quarantined hosts: by hand, with a reason."""
    text = f"{user} has quarantined {_named(hosts)} ({reason}): rollouts skip them"
    return Message("quarantine", f"quarantine-{PurePath(inventory).stem}", _named(hosts), _text(text))


def release_message(hosts: Sequence[str], inventory: str, user: str) -> Message:
    """Return the message of hosts that a user has taken off that list."""
    text = f"{user} has released {_named(hosts)} from quarantine"
    return Message("quarantine", f"quarantine-{PurePath(inventory).stem}", _named(hosts), _text(text), "resolved")


def _hosts(record: Record) -> str:
    failed = [host for host, state in record.states.items() if state not in ENDED_WELL | SKIPPED_HOSTS]
    return _named(failed or record.hosts)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _text(text: str) -> str:
    return printable(without_secrets(text), longest=LONGEST)
