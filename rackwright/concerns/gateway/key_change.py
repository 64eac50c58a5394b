"""A change of clients' keys on a gateway between two deploys: its rows, its script, and what that prints. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rackwright.concerns.gateway.files import LEFT
from rackwright.concerns.gateway.key_maps import FOLDER, MAPS, REVOKED, client_rows
from rackwright.hostside import durable_script, host_text
from rackwright.paths import RUN
from rackwright.plan.change import Shell
from rackwright.settings.gateway import Gateway
from rackwright.settings.gateway_keys import GatewayKey

UNIT = "rackwright-gateway.service"
ADMIN = "/run/rackwright-gateway/admin.sock"
MASTER = "/run/rackwright-gateway/master.sock"
"""Socket of HAProxy's master, by which the processes from before a reload are reached."""
JOURNAL = f"{RUN}/key-changes"
"""Changes of keys since the host's boot, for deploys that run at the same time: `NUMBER ROW`."""
KEY_PROGRAM = "keys_change.awk"
Rows = Sequence[str]
_ANSWER = re.compile(r"(took|stopped|absent) (\d{1,6})")
SENTENCES = {
    "took": "has taken it",
    "stopped": "has it in its files, and its HAProxy does not run; next, on it: systemctl status rackwright-gateway",
    "absent": "has no gateway yet; it gets its keys with the first: pyinfra INVENTORY deploy.py",
}


@dataclass(frozen=True)
class KeyAnswer:
    """The end of a change on a gateway that took it."""

    state: str
    """took, stopped, absent"""
    had: int
    """Keys that it had of those that were revoked."""

    @property
    def sentence(self) -> str:
        """The same for people, after the host's name."""
        return SENTENCES[self.state]


def revoked_rows(clients: Iterable[str], hashes: Iterable[str]) -> Rows:
    """Return the rows that end all keys of clients, and those of these hashes."""
    return [*(f"revoke {client}" for client in clients), *(f"gone {sha256}" for sha256 in hashes)]


def put_rows(gateway: Gateway, *keys: GatewayKey) -> Rows:
    """Return the rows by which a gateway knows a client with these keys; the last says its limits and models."""
    newest = keys[-1]
    rows = [f"put keys {key.sha256} {key.name}" for key in keys]
    rows += [f"put expiries {key.sha256} {int(key.expires.timestamp())}" for key in keys if key.expires]
    of_client = client_rows(gateway, newest)
    limits = [f"put {name} {key} {value}" for name, pairs in of_client.items() for key, value in pairs]
    return [f"client {newest.name}", *rows, *limits]


def change_script(rows: Rows) -> Shell:
    """Return the script that carries rows out on a gateway."""
    script = durable_script(
        "keys_change",
        folder=FOLDER,
        maps=" ".join(MAPS),
        revoked=REVOKED,
        left=LEFT,
        admin=ADMIN,
        master=MASTER,
        unit=UNIT,
        program=host_text(KEY_PROGRAM),
        journal=JOURNAL,
    )
    return Shell(script, stdin="".join(f"{row}\n" for row in rows), timeout=120)


def parse_answer(lines: Sequence[str]) -> KeyAnswer | None:
    """Return what the script has printed; None for anything else."""
    found = _ANSWER.fullmatch(lines[-1].strip()) if lines else None
    return KeyAnswer(found[1], int(found[2])) if found else None
