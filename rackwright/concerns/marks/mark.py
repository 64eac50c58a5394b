"""One mark: its name, its word, its writer, and its text on the host. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast, get_args

from rackwright.hostside import durable_script, host_text
from rackwright.messages import printable
from rackwright.paths import MARKS
from rackwright.plan.reading import pairs

QUARANTINE = "quarantine"
TRIAL = "trial"
"""Kind of mark that a run's job writes while it drains, tries and proves an endpoint."""
AT_WORK = "at_work_"
"""Prefix of what a reading prints of each job behind a mark that still runs."""
LONGEST = 300

MarkState = Literal["up", "drain", "down"]
"""Readiness of an endpoint for requests: `down` is worse than `drain`, and `drain` worse than `up`."""


@dataclass(frozen=True)
class Mark:
    """A mark of one writer. `lease`: the run's; `job`: the host's job that wrote it; empty without one."""

    name: str
    state: MarkState = "down"
    since: str = ""
    who: str = ""
    reason: str = ""
    lease: str = ""
    job: str = ""

    @property
    def kind(self) -> str:
        """Name of its kind: trial, watch, sick or quarantine."""
        return self.name.partition("-")[0]

    @property
    def endpoint(self) -> str:
        """The endpoint that it takes out of service; empty for one of the whole host."""
        return self.name.partition("-")[2]

    def __str__(self) -> str:
        return f"{self.name} ({self.state}) since {self.since} UTC by {self.who}: {self.reason}"


def trial_mark(endpoint: str) -> str:
    """Return the name of the mark that a run's job has for an endpoint."""
    return f"{TRIAL}-{endpoint}"


def parse_mark_file(name: str, text: str) -> Mark:
    """Parse a mark's content. One that is invalid still takes its endpoint out of service."""
    values = {key: printable(value)[:LONGEST] for key, value in pairs(text).items()}
    return Mark(
        name,
        cast("MarkState", state) if (state := values.get("word", "")) in get_args(MarkState) else "down",
        values.get("since") or "an unknown time",
        values.get("who") or "an unknown user",
        values.get("reason") or "no reason given",
        values.get("lease", ""),
        values.get("job", ""),
    )


def read_script() -> str:
    """Return the lines of a reading that print all marks, and the jobs behind them that still run."""
    return (
        f'for mark in {MARKS}/*; do\n  [ -f "$mark" ] || continue\n  show "$mark"\n'
        '  job=$(sed -n "s/^job=//p" "$mark" | head -n 1 | tr -cd "A-Za-z0-9._-")\n'
        '  [ -z "$job" ] || ! systemctl is-active --quiet "rackwright-job-$job.service" || '
        f'printf "{AT_WORK}%s=yes\\n" "$job"\n'
        "done"
    )


def quarantine_script(who: str, reason: str) -> str:
    """Return the script that writes the host's mark `quarantine`: rollouts of every machine skip the host then.

    It does not touch the word: an endpoint that was proven serves on.
    """
    return _with_functions("mark_quarantine", who=who, reason=reason)


def release_script() -> str:
    """Return the script that removes the host's mark `quarantine`."""
    return _with_functions("unmark_quarantine")


def clear_script(names: Iterable[str]) -> str:
    """Return the script that removes the marks of runs that have ended."""
    return _with_functions("clear_marks", names=" ".join(names))


def _with_functions(name: str, **values: str) -> str:
    return host_text("mark.sh") + durable_script(name, **values)
