"""Jinja in the variables of an Ansible inventory by which a host is reached, as kubespray's own have it."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.loading.ansible import bounded
from rackwright.loading.ansible.command import first_error
from rackwright.messages import SettingsError
from rackwright.processes import module
from rackwright.settings.connection import RENAMED
from rackwright.settings.origin import Origin
from rackwright.settings.problems import Problem
from rackwright.settings.secret import Secret
from rackwright.settings.ssh import args as ssh_args

MARKS = (("{{", "}}"), ("{%", "%}"), ("{#", "#}"))
"""The marks that begin and end expressions, statements and comments."""
KEYS = frozenset({*RENAMED.values(), *ssh_args.KEYS})
"""What is evaluated, in our words; Jinja in a setting is refused, since no setting depends on another one."""
SECONDS = 60
"""For all hosts of an inventory."""
EACH = 5
"""For one host."""
IN_A_ROW = 3
"""Hosts whose texts end the process one after the other: then the others' are as endless."""
MEMORY = 512 << 20
"""Bytes for what Jinja makes."""
PLAIN = (str, int, float, bool, type(None))


NEXT = "next: write the value itself, then: rackwright check INVENTORY"


@dataclass(frozen=True)
class HostJinja:
    """The values of a host in our words, and what they may refer to."""

    host: str
    groups: Sequence[str]
    values: Mapping[str, Any]
    variables: Mapping[str, Any]
    """All variables of the host in Ansible's words; secrets among them count as not defined."""

    @property
    def texts(self) -> dict[str, str]:
        """Return the text to be evaluated."""
        return {key: str(self.values[key]) for key in sorted(KEYS) if _holds(self.values.get(key))}

    @property
    def context(self) -> dict[str, Any]:
        """The variables, as plain values."""
        plain = {key: _plain(value) for key, value in self.variables.items() if not isinstance(value, Secret)}
        return {**plain, "inventory_hostname": self.host, "group_names": list(self.groups)}


def holds_jinja(text: str) -> bool:
    """Return True for a text with Jinja in it, or begun as such. Its time grows with the text alone."""
    return text.lstrip().startswith("{{") or any(0 <= text.find(begin) < text.rfind(end) for begin, end in MARKS)


def has_jinja(values: Mapping[str, Any]) -> bool:
    """Return True if a variable for the way to a host holds any."""
    return any(_holds(values.get(key)) for key in KEYS)


def _holds(value: Any) -> bool:
    return isinstance(value, str) and holds_jinja(value)


Made = tuple[dict[str, Any], list[Problem]]
"""The values of a host with the texts that Jinja makes, without those that are endless or huge, which are problems."""


def evaluated(inventory: Path, hosts: Sequence[HostJinja]) -> list[Made]:
    """Evaluate the texts of each host, by a process with limits for all of them, and another one after each endless.

    A text that it makes nothing of stays, and is refused as Jinja. Raises SettingsError where none can be evaluated.
    """
    made: list[Made] = []
    until, in_a_row = time.monotonic() + SECONDS, 0
    while len(made) < len(hosts):
        waiting = hosts[len(made) :]
        rows = _evaluated(inventory, waiting, max(until - time.monotonic(), 1))
        made += [_made(inventory, one, texts) for one, texts in zip(waiting, rows, strict=False)]
        if len(rows) == len(waiting):
            break
        in_a_row = 1 if rows else in_a_row + 1
        given_up = in_a_row == IN_A_ROW or time.monotonic() > until
        ended = waiting[len(rows) :] if given_up else [waiting[len(rows)]]
        made += [_made(inventory, one, dict.fromkeys(one.texts)) for one in ended]
    return made


def _evaluated(inventory: Path, hosts: Sequence[HostJinja], seconds: float) -> list[dict[str, str | None]]:
    """Return what one process makes, up to the first host whose texts end it."""
    words = [*module("rackwright.loading.ansible.evaluating"), str(EACH)]
    given = pickle.dumps([(one.texts, one.context) for one in hosts])
    answer = bounded.run_bounded(words, seconds, given, memory=MEMORY)
    if answer.status > 0 and not answer.past:
        why = first_error(answer.errors)
        raise SettingsError(f"{inventory}: its Jinja could not be evaluated: {why}; {NEXT} {inventory}", code="RW0234")
    whole, _, _cut = answer.output.rpartition(b"\n")
    return [json.loads(row) for row in whole.splitlines()]


def _made(inventory: Path, one: HostJinja, texts: Mapping[str, str | None]) -> Made:
    wrong = [key for key, text in texts.items() if text is None]
    values = {key: value for key, value in {**one.values, **texts}.items() if key not in wrong}
    return values, [_endless(inventory, one.host, key) for key in wrong]


def _endless(inventory: Path, host: str, key: str) -> Problem:
    names = {ours: theirs for theirs, ours in reversed(RENAMED.items())}
    why = f"its Jinja takes more than {EACH} s or {MEMORY >> 20} MiB, or makes a text longer than any address"
    where = Origin(str(inventory))
    return Problem(where, (names.get(key, key),), f"{why}: write the value itself", host, code="RW0234", of_host=True)


def _plain(value: Any) -> Any:
    """Return a value of YAML's as built-in types, which the other process has too."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(below) for key, below in value.items() if not isinstance(below, Secret)}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(below) for below in value if not isinstance(below, Secret)]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value if isinstance(value, PLAIN) else str(value)
    return next(kind(value) for kind in (int, float, str) if isinstance(value, kind))
