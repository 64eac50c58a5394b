"""The readings of all hosts, and the next request to each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rackwright.adapter.run.poll import Reply
from rackwright.adapter.run.readings import Reading
from rackwright.inspect.status.output import rows_on, with_owners
from rackwright.inspect.status.reading import Asked
from rackwright.inspect.top.fleet import HostNow, needs_status
from rackwright.inspect.top.host_sample import parse_sample
from rackwright.inspect.top.script import LOOK, STATUS
from rackwright.messages import ReadingError
from rackwright.settings.host_settings import HostSettings

END = "end"
"""The last line of what `rackwright status` reads."""


@dataclass
class TopFleet:
    """The hosts in the inventory's order, and what their settings ask for."""

    settings: Mapping[str, HostSettings]
    quarantine: Mapping[str, str] = field(default_factory=dict)
    """Reasons for which rollouts leave a host out, by host."""

    def __post_init__(self) -> None:
        """Compute once what hosts with equal settings share."""
        made = {id(one): Asked(one) for one in self.settings.values()}
        self._asked = {name: made[id(one)] for name, one in self.settings.items()}
        self._hosts = {name: HostNow(name, quarantine=self.quarantine.get(name, "")) for name in self.settings}

    @property
    def hosts(self) -> Sequence[HostNow]:
        """All of them."""
        return list(self._hosts.values())

    def next_request(self, name: str, last: Reading | None) -> str:
        """Return what to ask a host for, after its last reading."""
        return STATUS if last is None or needs_status(self._hosts[name], last.at) else LOOK

    def take(self, readings: Iterable[tuple[str, Reading]]) -> None:
        """Add readings, in the order in which they came."""
        for name, reading in readings:
            if reading.trouble:
                self._hosts[name].lose(reading.trouble)
            else:
                self._add(name, reading)

    def _add(self, name: str, reading: Reading) -> None:
        lines = list(reading.lines)
        split = lines.index(END) + 1 if reading.request == STATUS and END in lines else 0
        try:
            look = parse_sample(lines[split:])
        except ReadingError as error:
            self._hosts[name].lose(str(error))
            return
        now = datetime.now(UTC).astimezone()
        rows = rows_on(name, self._asked[name], Reply(tuple(lines[:split])), now) if reading.request == STATUS else None
        self._hosts[name].add(look, rows, reading.at)
        if self.settings[name].is_gateway and rows is not None:
            self._note_owners()

    def _note_owners(self) -> None:
        """Note on each gateway where not exactly one of them has the common address."""
        rows = with_owners([row for host in self.hosts for row in host.rows], self.settings)
        for host in self.hosts:
            host.rows = [row for row in rows if row.host == host.name]

    def is_complete(self, looks: int) -> bool:
        """Return True once every host has been read so many times, or is lost."""
        return all(host.trouble or len(host.looks) >= looks for host in self.hosts)
