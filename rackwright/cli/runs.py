"""`rackwright runs [RUN]`: what was done to the fleet, by whom, and how it ended."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from rackwright.cli.inventories import add_columns
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import site_root
from rackwright.messages import paragraph, printable
from rackwright.record.journal import Event, chosen_record, folder_of, read_record, records
from rackwright.record.record import Record, record_of
from rackwright.rollout.last_lines import as_typed_here
from rackwright.rollout.resumable_runs import overtaken_runs
from rackwright.rollout.resuming import shown_outcome
from rackwright.tables import Column, drawn, folded, only, shown_width

QUIET = frozenset({"process", "progress", "waves", "stage"})
"""Kinds that only programs want one by one."""
COLUMNS = (Column("run"), Column("who", 3), Column("what", 2), Column("hosts", 4, 12), Column("end", 1, 40))
HEAD = ("time", "kind", "host", "text", "process", "hosts", "diff", "measured", "settings")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser("runs", help="list the runs of this site, or show one")
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run's name, or `last`")
    parser.add_argument("-n", "--newest", type=int, default=20, metavar="N", help="how many to list")
    add_site(parser)
    add_columns(parser, COLUMNS)
    parser.set_defaults(handler=run)


def add_site(parser: argparse.ArgumentParser) -> None:
    """Add `--site` to a command that needs no inventory."""
    parser.add_argument("--site", default=".", metavar="DIR", help="the site's folder (default: here)")


def root_of(args: argparse.Namespace) -> Path:
    """Return the site that `--site` names."""
    return site_root(Path(args.site) / "site").absolute()


def run(args: argparse.Namespace) -> int:
    """Print the runs, the newest last, or the events of one; returns the exit status. Raises RackwrightError."""
    root = root_of(args)
    if args.run is None:
        every = all_records(root)
        found = every[-max(1, args.newest) :]
        text = (
            table(found, overtaken_runs(every), shown_width(), args.columns)
            if found
            else f"no run has left a record in {folder_of(root)} yet"
        )
        print(json.dumps([values(one) for one in found], indent=1) if args.json else paragraph(text))
        return ExitCode.DONE
    path = chosen_record(root, args.run)
    events, overtaken = read_record(path), path.stem in overtaken_runs(all_records(root))
    if args.json:
        print(json.dumps({**values(record_of(path.stem, events)), "events": events}, indent=1))
    else:
        print(folded(paragraph("\n".join(lines(record_of(path.stem, events), events, overtaken))), shown_width()))
    return ExitCode.DONE


def values(record: Record) -> dict[str, Any]:
    """Return one run for `--json`; docs/reference/run-record.md describes it."""
    begin, end = record.begin, record.end or {}
    return {
        "run": record.id,
        "time": begin.get("time"),
        "who": begin.get("who"),
        "what": begin.get("what"),
        "hosts": {host: record.states.get(host) for host in record.hosts},
        "lives": record.lives,
        "status": end.get("status"),
        "text": end.get("text"),
        "resumed_by": record.resumed_by,
    }


def all_records(root: Path) -> list[Record]:
    """Return every run of a site, the oldest first."""
    return [record_of(path.stem, read_record(path)) for path in records(root)]


def table(
    found: Sequence[Record],
    overtaken: Collection[str] = (),
    width: int | None = None,
    columns: Sequence[str] = (),
) -> str:
    """Return the runs as aligned columns. overtaken: those whose hosts later ones took over. width: the terminal's."""
    ends = [as_typed_here(one, shown_outcome(one, one.id in overtaken)) for one in found]
    rows = [
        (one.id, one.begin.get("who", "?"), one.begin.get("what", "?"), one.counts(), end)
        for one, end in zip(found, ends, strict=True)
    ]
    return drawn(*only(COLUMNS, [tuple(map(printable, row)) for row in rows], columns), width)


def lines(record: Record, events: Sequence[Event], overtaken: bool = False) -> Iterator[str]:
    """Yield one run for a person: its head, its events, its end."""
    begin = record.begin
    yield f"{record.id}: {begin.get('what', '?')}, by {begin.get('who', '?')}"
    yield f"hosts: {', '.join(record.hosts) or 'none'}"
    for event in events:
        if event["kind"] not in QUIET | {"begin", "end"}:
            yield _row(event)
    yield f"{record.counts()}; {as_typed_here(record, shown_outcome(record, overtaken))}"


def _row(event: Event) -> str:
    words = [_field(key, value) for key, value in event.items() if key not in HEAD]
    text = " | ".join(str(event.get("text", "")).splitlines())
    columns = [event["time"][11:19], event.get("host", "-"), event["kind"], *words, text]
    return "  ".join(text for text in columns if text)


def _field(key: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{key}: {', '.join(map(str, value))}"
    if isinstance(value, dict):
        return f"{key}: {', '.join(f'{name} {inner}' for name, inner in value.items())}"
    if isinstance(value, float):
        return f"{key} {value:.4g}"
    return str(value) if key in ("state", "job", "mark", "row", "seen", "name", "title") else f"{key} {value}"
