"""Jinja in the variables of an Ansible inventory by which a host is reached, as kubespray's own have it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.loading.ansible import bounded
from rackwright.loading.ansible.command import first_error
from rackwright.messages import SettingsError
from rackwright.processes import module
from rackwright.settings.connection import RENAMED
from rackwright.settings.secret import Secret
from rackwright.settings.ssh import args as ssh_args

MARKS = (("{{", "}}"), ("{%", "%}"), ("{#", "#}"))
"""How expressions, statements and comments begin and end."""
KEYS = frozenset({*RENAMED.values(), *ssh_args.KEYS})
"""What is evaluated, in our words; Jinja in a setting is refused, since no setting depends on another one."""
SECONDS = 60
"""For all hosts of an inventory."""
EACH = 5
"""For one host."""
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
    said: Mapping[str, Any]
    """All variables of the host in Ansible's words; secrets among them count as not defined."""

    @property
    def texts(self) -> dict[str, str]:
        """What is to be evaluated."""
        return {key: str(self.values[key]) for key in sorted(KEYS) if _holds(self.values.get(key))}

    @property
    def context(self) -> dict[str, Any]:
        """The variables, as plain values."""
        known = {key: _plain(value) for key, value in self.said.items() if not isinstance(value, Secret)}
        return {**known, "inventory_hostname": self.host, "group_names": list(self.groups)}


def holds_jinja(text: str) -> bool:
    """True for a text with Jinja in it, or begun as such. Its time grows with the text alone."""
    return text.lstrip().startswith("{{") or any(0 <= text.find(begin) < text.rfind(end) for begin, end in MARKS)


def has_jinja(values: Mapping[str, Any]) -> bool:
    """Whether a variable for the way to a host holds any."""
    return any(_holds(values.get(key)) for key in KEYS)


def _holds(value: Any) -> bool:
    return isinstance(value, str) and holds_jinja(value)


def evaluated(inventory: Path, asked: Sequence[HostJinja]) -> list[dict[str, Any]]:
    """The values of each host with the text that Jinja makes, by one process with limits for all hosts.

    A text that it makes nothing of stays, and is refused as Jinja. Raises SettingsError for an endless or huge one.
    """
    pairs = [(one.texts, one.context) for one in asked]
    words = [*module("rackwright.loading.ansible.evaluating"), str(EACH)]
    answer = bounded.asked(words, SECONDS, pickle.dumps(pairs), memory=MEMORY)
    if answer.status > 0 and not answer.past:
        why = first_error(answer.errors)
        raise SettingsError(f"{inventory}: its Jinja could not be evaluated: {why}; {NEXT} {inventory}", code="RW0234")
    made = [json.loads(line) for line in answer.output.splitlines()]
    for index, one in enumerate(asked):
        if index >= len(made):
            raise _endless(inventory, one.host, one.texts)
        if wrong := {key: text for key, text in made[index].items() if text is None}:
            raise _endless(inventory, one.host, wrong)
    return [{**one.values, **texts} for one, texts in zip(asked, made, strict=True)]


def _endless(inventory: Path, host: str, keys: Iterable[str]) -> SettingsError:
    names = {ours: theirs for theirs, ours in reversed(RENAMED.items())}
    what = ", ".join(names.get(key, key) for key in keys)
    why = f"its Jinja takes more than {EACH} s or {MEMORY >> 20} MiB, or makes a text longer than any address"
    return SettingsError(f"{inventory}: {host}: {what}: {why}; {NEXT} {inventory}", code="RW0234")


def _plain(value: Any) -> Any:
    """A value of YAML's as built-in types, which the other process has too."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(below) for key, below in value.items() if not isinstance(below, Secret)}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(below) for below in value if not isinstance(below, Secret)]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value if isinstance(value, PLAIN) else str(value)
    return next(kind(value) for kind in (int, float, str) if isinstance(value, kind))
