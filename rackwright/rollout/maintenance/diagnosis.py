"""A diagnosis of hosts from its control process: one phase, no waves, the hosts' results, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

from rackwright.exit_codes import ExitCode
from rackwright.messages import coded, counted, printable
from rackwright.record.journal import Event, read_record
from rackwright.record.record import DIAGNOSE
from rackwright.record.states import RunState
from rackwright.rollout.launch import Run, phase
from rackwright.tables import Column, drawn

COLUMNS = (
    Column("host"),
    Column("level", 3),
    Column("result"),
    Column("where", 2, 8),
    Column("test"),
    Column("DCGM says", 1, 24),
)


@dataclass(frozen=True)
class RecordedDiagnosis:
    """The diagnosis of one host, as a record has it."""

    host: str
    level: int
    verdict: str
    rows: tuple[tuple[str, ...], ...]
    """Verdict, GPUs, test and message of each result that is not good."""
    summary: str
    """The tests, the DCGM that made them, and the time they took."""
    error: str = ""

    @property
    def cells(self) -> Iterator[tuple[str, ...]]:
        """Yield its rows of the table: one that sums up, then one for each result that is not good."""
        yield (
            self.host,
            str(self.level),
            "not run" if self.error else self.verdict,
            "",
            "",
            self.error or self.summary,
        )
        yield from ((self.host, str(self.level), *row) for row in self.rows)


def diagnose_hosts(run: Run, level: int) -> tuple[int, str]:
    """Let DCGM test the GPUs of the run's hosts; returns the exit status and what to say."""
    started = run.as_plain()
    started.note("phase", name=DIAGNOSE)
    with as_file(files("rackwright.operations.deploys") / "diagnose.py") as deploy:
        status = started.pyinfra(deploy, started.hosts, {}, level=level)
    found = {one.host: one for one in diagnoses_in(read_record(started.record))}
    ended = phase(started, DIAGNOSE).states
    failed = [host for host in started.hosts if host in found and found[host].verdict == "fail"]
    undone = [host for host in started.hosts if host not in failed and ended.get(host) != RunState.DONE]
    if failed or undone or status != ExitCode.DONE:
        return ExitCode.ERROR, _trouble(failed, undone or ([] if failed else ["some hosts"]))
    return (
        ExitCode.DONE,
        f"done: the GPUs of {counted(len(started.hosts), 'host')} are well, as far as DCGM tested them",
    )


def _trouble(failed: Sequence[str], undone: Sequence[str]) -> str:
    texts = [f"a GPU has failed on {', '.join(failed)}"] * bool(failed)
    texts += [f"not tested: {', '.join(undone)}, see above"] * bool(undone)
    if not failed:
        first = "next: what the lines above say of each host, then the same command again"
        return coded("RW0847", f"{'; '.join(texts)}; {first}")
    after = "next: repair it, the same command again, then rackwright quarantine INVENTORY --release --limit HOST"
    return coded("RW0857", printable(f"{'; '.join(texts)}; {after}"))


def diagnoses_in(events: Iterable[Event]) -> list[RecordedDiagnosis]:
    """Return the diagnoses of a record, the last one of each host."""
    found = {str(event["host"]): _diagnosis(event) for event in events if event["kind"] == "diagnosis"}
    return list(found.values())


def _diagnosis(event: Mapping[str, Any]) -> RecordedDiagnosis:
    dcgm, seconds = event.get("dcgm"), event.get("seconds", 0)
    parts = [str(event.get("summary", "")), f"DCGM {dcgm}" if dcgm else "", f"{seconds} s"]
    rows = tuple(tuple(map(str, row)) for row in event.get("rows", ()))
    summary, error = ", ".join(filter(None, parts)), str(event.get("error", ""))
    return RecordedDiagnosis(
        str(event["host"]), int(event.get("level", 0)), str(event.get("verdict", "")), rows, summary, error
    )


def table(found: Sequence[RecordedDiagnosis], width: int | None) -> str:
    """Return the diagnoses as a table."""
    rows = [[printable(cell) for cell in row] for one in found for row in one.cells]
    return drawn(COLUMNS, rows, width)
