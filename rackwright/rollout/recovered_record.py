"""A run without its record: read from the hosts that took part, and kept here as if it had begun here."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rackwright.adapter.command_output import tail
from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.concerns.lease import SeenLease, parse_seen, read_script, whose
from rackwright.concerns.lease.this_process import is_gone
from rackwright.hostside import host_script
from rackwright.inspect.read_hosts import in_parallel
from rackwright.messages import RackwrightError, ReadingError
from rackwright.paths import SLICE
from rackwright.plan.change import Shell
from rackwright.plan.reading import decode, pairs
from rackwright.record.journal import Event, adopt_record, folder_of, order_of, read_record, records
from rackwright.record.on_hosts.merging import merged
from rackwright.record.on_hosts.slices import MOST, Slice, parse_slice
from rackwright.record.record import Record, record_of
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError
from rackwright.rollout.resumable_runs import chosen

LIMITS = frozenset(
    {*(f"rollout.{key}" for key in ("wave", "bake", "max_unavailable", "error_budget", "adopt")), "gate.level"}
)
"""Options of `rackwright rollout` itself."""


@dataclass(frozen=True)
class FoundOnHost:
    """A host's data: its slice of the last run that changed it, and the run that writes to it now."""

    slice: Slice | None
    lease: SeenLease


def adopt(inventory: str, root: Path, run: str | None, data: Mapping[str, Any], asks: bool) -> str:
    """Keep the record of a run as the hosts of an inventory know it; returns the run's name.

    run: its name; None for the one that has hosts left. data: what it had as `--data`, as its operator gives it. asks:
    an operator sees what it had, and is asked. Raises RackwrightError when no host has a run, or when it is not for
    this machine to resume it.
    """
    hosts = _read_hosts(inventory)
    found = merged({host: one.slice for host, one in hosts.items() if one.slice is not None})
    if not found:
        raise RackwrightError(
            f"none of the {len(hosts)} hosts that were read keeps anything of a run; next: rackwright status "
            f"{inventory}, then rackwright rollout {inventory}, which leaves alone what has the change",
            code="RW0861",
        )
    record = _chosen(root, found, run)
    if record.id not in found or not _is_adoptable(root, record.id):
        return record.id
    refuse_while_held(record.id, hosts, inventory)
    begin, *others = found[record.id]
    events = [at_home(begin, inventory, root), *others]
    confirm_data(begin.get("data", {}), data, asks)
    adopt_record(root, record.id, events)
    _tell(record, events[0], hosts)
    return record.id


def _read_hosts(inventory: str) -> dict[str, FoundOnHost]:
    with connected(chosen_hosts(inventory, ())) as hosts:
        found = in_parallel(hosts, _ask)
    return {host: one for host, one in found.items() if one is not None}


def _ask(one: Connected) -> FoundOnHost | None:
    script = f"{read_script()}\n{host_script('slice_read', slice=SLICE, most=MOST)}"
    try:
        ok, output = remote(one.host, command_of(Shell(script, timeout=30)))
        if ok:
            text = decode(pairs("\n".join(output.stdout_lines)).get("slice", ""))
            return FoundOnHost(parse_slice(text, one.host.name), parse_seen(output.stdout_lines))
        why = tail(output)
    except (StepFailedError, ReadingError) as error:
        why = str(error)
    print(f"rackwright: {one.host.name}: what it keeps of a run could not be read: {why}")
    return None


def _chosen(root: Path, found: Mapping[str, Sequence[Event]], run: str | None) -> Record:
    """Return the run that is meant, among those of this machine's records and those in the hosts' records."""
    runs = {path.stem: record_of(path.stem, read_record(path)) for path in records(root)}
    runs |= {name: record_of(name, events) for name, events in found.items() if _is_adoptable(root, name)}
    ordered = [runs[name] for name in sorted(runs, key=order_of)]
    if run is None:
        return chosen(ordered)
    if run not in runs:
        raise RackwrightError(
            f"neither {folder_of(root)} nor any host knows of a run {run}; the hosts know of {', '.join(found)}",
            code="RW0862",
        )
    return runs[run]


def _is_adoptable(root: Path, run: str) -> bool:
    """Return True if the hosts' data counts: a record that was begun or resumed here has more."""
    path = folder_of(root) / f"{run}.jsonl"
    if not path.exists():
        return True
    record = record_of(run, read_record(path))
    return "adopted" in record.begin and record.resumed_by is None


def refuse_while_held(run: str, hosts: Mapping[str, FoundOnHost], inventory: str) -> None:
    """Refuse a run that still holds a lease: it lives on another machine, or its process here does."""
    for host, one in hosts.items():
        live = one.lease.live
        if live is not None and live.holder.purpose.endswith(f"run {run}") and not is_gone(live.holder):
            raise RackwrightError(
                f"run {run} is still under way, as the lease of {host} says: "
                f"{whose(one.lease, datetime.now().astimezone())}; next: wait, or, when that run is known to be dead: "
                f"rackwright lease break {inventory}",
                code="RW0863",
            )


def at_home(begin: Event, inventory: str, root: Path) -> Event:
    """Return the beginning of the run, with this machine's files. The hosts' data decides no path outside the site."""
    path = Path(inventory).expanduser().absolute()
    mine = {str(path.resolve().relative_to(root)) if path.resolve().is_relative_to(root) else str(path)}
    if begin["inventory"] not in mine:
        raise RackwrightError(
            f"the run was begun with {begin['inventory']}, not with {inventory}; next: rackwright resume -i "
            f"{begin['inventory']}",
            code="RW0864",
        )
    return {**begin, "inventory": str(path), **({"deploy": str(_deploy(begin, root))} if "deploy" in begin else {})}


def confirm_data(recorded: Mapping[str, Any], data: Mapping[str, Any], asks: bool) -> None:
    """Return the limits of a run from the hosts' data; any other `--data` is given again, or asked for.

    Hooks run on this machine, so they are always given again.
    """
    new = {key: value for key, value in recorded.items() if not _is_limit(key, value)}
    doubtful = [key for key, value in new.items() if data.get(key) != value]
    strange = [key for key in data if key not in recorded]
    if strange or (doubtful and (data or not asks or any(key.partition(".")[0] == "rollout" for key in doubtful))):
        words = " ".join(f"--data {shlex.quote(f'{key}={json.dumps(value)}')}" for key, value in new.items())
        raise RackwrightError(
            f"the run had {words or 'no --data'}, as its hosts say, and you have not said the same; nothing was done; "
            "next: if that is what was asked for, the same command with it",
            code="RW0865",
        )


def _is_limit(key: str, value: Any) -> bool:
    return key in LIMITS and isinstance(value, str | int)


def _deploy(begin: Event, root: Path) -> Path:
    file = (root / str(begin["deploy"])).resolve()
    if not file.is_relative_to(root.resolve()) or not file.is_file():
        raise RackwrightError(
            f"the run was begun with {begin['deploy']}, and {root} has no such file; next: the same state of the site "
            "as where it was begun, then the same command",
            code="RW0866",
        )
    return file


def _tell(record: Record, begin: Event, hosts: Mapping[str, FoundOnHost]) -> None:
    summary = f"{len(begin['adopted'])} of its {len(begin['hosts'])} hosts know it ({len(hosts)} were read)"
    print(f"rackwright: run {record.id} of {begin['who']}, begun {record.began} UTC: {summary}")
    for key, value in begin.get("data", {}).items():
        print(f"rackwright: it had --data {key}={json.dumps(value)}")
    print("rackwright: what is rolled out is what the settings of this machine say; compare by rackwright plan")
