"""What the kernel and the host's files say about our rules: read, and parsed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rackwright.concerns.endpoint.formats import readable
from rackwright.concerns.firewall.drops import Drops, Means
from rackwright.concerns.firewall.iptables import Table, parse_save
from rackwright.concerns.firewall.kept import CHECK, GUARD, LEFT, SCRIPT, UNIT, UNIT_FILE
from rackwright.concerns.firewall.place import Place
from rackwright.concerns.firewall.rules import FAMILIES
from rackwright.concerns.watch import WATCH_FILES, WATCH_TIMER, repairs_file
from rackwright.hostside import host_script
from rackwright.paths import STATE, UNITS, guard_unit
from rackwright.plan.reading import decode, files, lines_of, pairs
from rackwright.settings.model import HostSettings


@dataclass(frozen=True)
class SeenFirewall:
    """The host's filter tables by command (`iptables-legacy` and the like: the backend that is not in use)."""

    tables: Mapping[str, Table]
    files: Mapping[str, str | None]
    backend: str = ""
    """What `iptables -V` says; empty without iptables."""
    ipv6: bool = False
    enabled: bool = False
    active: bool = False
    watched: bool = False
    """Whether the host looks after its rules by itself."""
    unconfirmed: bool = False
    """True while the guard of an earlier run waits to take its rules back."""
    means: Means = "nft"
    """By what drops are made here."""
    drops: Drops = field(default_factory=dict)
    """The drops as they were put into the kernel last, as far as they still stand so."""
    subnets: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Networks of Docker's bridge, by IP version."""
    repairs: tuple[tuple[int, str], ...] = ()
    """What the host had to put back by itself: seconds ago, and what it found."""
    current: Mapping[str, Place] = field(default_factory=dict)
    """Where each endpoint listens now, by name."""
    proven: Mapping[str, Place] = field(default_factory=dict)
    """Where each would listen if it went back to what was proven last."""

    def table(self, command: str) -> Table:
        """A table; an empty one when the command is not there."""
        return self.tables.get(command, Table())

    @property
    def elsewhere(self) -> dict[str, Table]:
        """Tables with rules in the backend that `iptables` does not show."""
        return {
            name: table for name, table in self.tables.items() if name not in FAMILIES and any(table.chains.values())
        }


def read(_: HostSettings) -> str:
    """The filter tables, the drops, and the files that put both back."""
    paths = " ".join((SCRIPT, UNIT_FILE, CHECK, *WATCH_FILES))
    return host_script(
        "firewall_read",
        paths=paths,
        unit=UNIT,
        timer=WATCH_TIMER,
        guard=f"{guard_unit(GUARD)}.timer",
        home=f"{STATE}/endpoints",
        units=UNITS,
        left=LEFT,
        repairs=repairs_file(GUARD),
    )


def parse(output: str) -> SeenFirewall:
    """Parse the reading."""
    words = [line.split(" ", 2) for line in lines_of(output) if line.startswith("table ")]
    values = pairs(output)
    return SeenFirewall(
        {name: parse_save(decode(text)) for _, name, text in words},
        files(output),
        backend=values.get("backend", ""),
        ipv6=values.get("ipv6") == "yes",
        enabled=values["enabled"] == "enabled",
        active=values["active"] == "active",
        watched=values.get("watched") == "active",
        unconfirmed=values["guard"] == "active",
        means="mangle" if values.get("nft") == "no" else "nft",
        drops={command: decode(text) for command, text in _rows(output, "drops")},
        subnets=_subnets(output),
        repairs=tuple((int(ago), decode(text)) for ago, text in _rows(output, "repair")),
        current=_places(output, "current"),
        proven=_places(output, "proven"),
    )


def _rows(output: str, word: str) -> list[tuple[str, str]]:
    rows = [line.split(" ", 2) for line in lines_of(output) if line.startswith(f"{word} ")]
    return [(first, rest) for _, first, rest in rows]


def _subnets(output: str) -> dict[int, tuple[str, ...]]:
    rows = _rows(output, "subnet")
    return {version: tuple(net for number, net in rows if number == str(version)) for version in (4, 6)}


def _places(output: str, pointer: str) -> dict[str, Place]:
    specs = ((name, _spec(decode(text))) for name, text in _rows(output, pointer))
    return {name: Place.of(spec) for name, spec in specs if spec}


def _spec(text: str) -> Mapping[str, Any]:
    """A spec.json, or nothing when it was spoilt by hand: the release is put back, and read again."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return readable(found) if isinstance(found, dict) else {}
