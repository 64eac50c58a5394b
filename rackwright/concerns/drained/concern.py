"""The mark of a host that an operator has drained for maintenance, and the host's boot ID. Pure.

The mark is a file on the host itself, so that every machine and every operator sees it. While it exists, no run
switches an endpoint of the host, and none starts at boot: a drop-in of the boot unit, which only drained hosts have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rackwright.concerns.marks import AT_WORK, MARKS, TRIAL, Mark, parse_mark_file
from rackwright.concerns.marks import read_script as read_marks
from rackwright.messages import printable
from rackwright.paths import BOOT_UNIT, STATE, UNITS, WRITTEN
from rackwright.plan.concern import Concern
from rackwright.plan.reading import files, pairs
from rackwright.settings.host_settings import HostSettings

MARK = f"{STATE}/drained"
NO_BOOT = f"{UNITS}/{BOOT_UNIT}.d/rackwright-drained.conf"
NO_BOOT_TEXT = f"""\
# {WRITTEN}: of a drained host nothing starts at boot; `rackwright undrain` takes this away.
[Unit]
ConditionPathExists=!{MARK}
"""
LONGEST = 300


@dataclass(frozen=True)
class Drained:
    """Reason, operator and start (UTC) of a host's drain."""

    reason: str
    who: str
    since: str

    def __str__(self) -> str:
        return f"drained since {self.since} UTC by {self.who}: {self.reason}"

    @property
    def text(self) -> str:
        """The file on the host: a line for each of them."""
        rows = {"since": self.since, "who": self.who, "reason": self.reason}
        return "".join(f"{key}={_line(value)}\n" for key, value in rows.items())


def _line(text: str) -> str:
    return printable(" ".join(text.split()))[:LONGEST]


@dataclass(frozen=True)
class SeenDrained:
    """State of a host as a whole."""

    drained: Drained | None = None
    boot: str = ""
    """Equal until the host is restarted."""
    marks: tuple[Mark, ...] = ()
    """Marks of all other writers."""
    at_work: frozenset[str] = frozenset()
    """Jobs behind them that still run."""

    def of_ended_runs(self, lease: str) -> list[Mark]:
        """Return the marks of runs that have ended. lease: id of the lease that a run has now; empty without one."""
        return [
            mark
            for mark in self.marks
            if mark.kind == TRIAL and mark.job not in self.at_work and not (lease and mark.lease == lease)
        ]


def read_script() -> str:
    """Return the script that prints the mark, if any, as `show` does, and the boot; it changes nothing."""
    return f'show {MARK}\n{read_marks()}\nread -r boot </proc/sys/kernel/random/boot_id\nprintf "boot=%s\\n" "$boot"'


def parse_mark(text: str | None) -> Drained | None:
    """Parse the mark's content; None without one. An invalid mark still counts as a mark."""
    if text is None:
        return None
    values: Mapping[str, str] = pairs(text)
    fields = {key: _line(values.get(key, "")) for key in ("reason", "who", "since")}
    return Drained(
        fields["reason"] or "no reason given", fields["who"] or "an unknown user", fields["since"] or "an unknown time"
    )


def _read(_: HostSettings) -> str:
    return read_script()


def _parse(output: str) -> SeenDrained:
    found, values = files(output), pairs(output)
    marks = tuple(
        parse_mark_file(path.rpartition("/")[2], text)
        for path, text in found.items()
        if path.startswith(f"{MARKS}/") and text is not None
    )
    at_work = frozenset(key.removeprefix(AT_WORK) for key in values if key.startswith(AT_WORK))
    return SeenDrained(parse_mark(found.get(MARK)), values.get("boot", ""), marks, at_work)


DRAINED: Concern[None, SeenDrained] = Concern(
    name="drained",
    read=_read,
    parse=_parse,
    wanted=lambda _settings, _reading: None,
    changes=lambda _wanted, _seen: [],
    takes=frozenset(),
)
