"""A bench's run in its record: what was measured, with what, cell by cell. What is there stays, whatever comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.messages import RackwrightError
from rackwright.record.journal import Event, append, chosen_record, folder_of, read_record, records
from rackwright_bench.figures.figures import Measured, as_json, measured_of
from rackwright_bench.figures.rounds import pooled

BENCH = "bench"
"""The purpose of such a run."""
LAST = "last"
ROUND, CELL, TRIAL = "measuring", "cell", "trial"
"""Kinds of events."""


@dataclass(frozen=True)
class Bench:
    """One run, as its record tells it."""

    id: str
    begin: Mapping[str, Any]
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """Host, endpoint, release, image, engine, switches, suite: what the cells were measured with."""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The same of each variant by its name, where several were compared."""
    cells: Mapping[str, Measured] = field(default_factory=dict)
    """By name, all rounds of each as one."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Cells of which nothing came out, and why."""
    verdicts: tuple[str, ...] = ()
    """Of a comparison: which variant wins where."""
    text: str = ""
    """Its end, in words."""

    @property
    def against(self) -> str:
        """The variant that the others are compared with; empty where none were."""
        return str(self.begin.get("compare", "")).partition(",")[0].strip()


def note_conditions(record: Path, **conditions: Any) -> None:
    """Write what is measured, and with what."""
    append(record, ROUND, **conditions)


def note_cell(record: Path, host: str, name: str, text: str, measured: Measured | None, number: int = 1) -> None:
    """Write a cell. text: a sentence on it; measured: None where nothing came out; number: of its round."""
    values = None if measured is None else as_json(measured)
    append(record, CELL, host=host, name=name, text=text, round=number, measured=values)


def last_text(record: Path, variant: str) -> str:
    """Return the sentence on the newest cell of a variant; empty without one."""
    named = f"{variant}:"
    texts = (
        event["text"] for event in read_record(record) if event["kind"] == CELL and event["name"].startswith(named)
    )
    return next(reversed(list(texts)), "")


def called(cell: str, variant: str = "") -> str:
    """Return a cell's name in the record: with its variant before it, where several are compared."""
    return f"{variant}:{cell}" if variant else cell


def parted(name: str) -> tuple[str, str]:
    """Variant and cell of such a name; no variant where none was compared."""
    variant, _, cell = name.rpartition(":")
    return variant, cell


def bench_of(run: str, events: Iterable[Event]) -> Bench:
    """Return the run that events describe. Raises RackwrightError when they are not a bench's."""
    begin: Mapping[str, Any] = {}
    conditions: Mapping[str, Any] = {}
    variants = dict[str, Mapping[str, Any]]()
    verdicts = list[str]()
    cells, lost, text = dict[str, list[Measured]](), dict[str, str](), ""
    for event in events:
        match event["kind"]:
            case "begin":
                begin = event
            case "measuring":
                conditions = event
                variants[event.get("variant", "")] = event
            case "cell" if "measured" in event:
                cells.setdefault(event["name"], []).append(measured_of(event["measured"]))
            case "cell":
                lost[event["name"]] = event["text"]
            case "verdict":
                verdicts.append(event["text"])
            case "end":
                text = event["text"]
    if begin.get("purpose") != BENCH:
        raise RackwrightError(
            f"run {run} is not a bench ({begin.get('what', 'unknown')}); next: rackwright runs", code="RW1513"
        )
    variants.pop("", None)
    pools = {name: pooled(rounds) for name, rounds in cells.items()}
    return Bench(run, begin, conditions, variants, pools, lost, tuple(verdicts), text)


def bench_record(root: Path, name: str) -> Path:
    """Return the record of a run by its name, or of the newest bench for `last`. Raises RackwrightError."""
    if name != LAST:
        return chosen_record(root, name)
    found = [path for path in records(root) if f"{path.stem}-".partition(f"-{BENCH}-")[1]]
    if not found:
        raise RackwrightError(
            f"{folder_of(root)} has no bench yet; next: rackwright bench INVENTORY --limit HOST", code="RW0603"
        )
    return found[-1]


def read_bench(root: Path, name: str) -> Bench:
    """Return a bench of a site by its run's name, or the newest one for `last`. Raises RackwrightError."""
    path = bench_record(root, name)
    try:
        return bench_of(path.stem, read_record(path))
    except (KeyError, TypeError, ValueError) as error:
        raise RackwrightError(
            f"the record of run {path.stem} is damaged: {error!r}; next: rackwright runs", code="RW1513"
        ) from error
