"""`rackwright rollout INVENTORY --drivers`: switch NVIDIA's driver in waves, by hand alone, with a way back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rackwright.adapter.prompt import answer_to
from rackwright.adapter.run.session import loaded_for
from rackwright.cli.gateway_hosts import gateways_of
from rackwright.concerns.drained import DRAINED
from rackwright.concerns.driver import DRIVER, DriverState, refusals
from rackwright.exit_codes import ExitCode
from rackwright.inspect.read_hosts import Surveyed, survey
from rackwright.loading.files import site_root
from rackwright.loading.group import mates_of
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError, counted, paragraph, printable
from rackwright.record.record import DRIVERS
from rackwright.rollout.last_gateway import answering, refuse_last_gateway
from rackwright.rollout.launch import begin
from rackwright.rollout.maintenance.capacity import refuse_halves
from rackwright.rollout.maintenance.cut_off import refuse_jump_hosts, refuse_this_machine
from rackwright.rollout.maintenance.host_marks import drained_in, marks_of
from rackwright.rollout.maintenance.in_waves import switch_drivers
from rackwright.rollout.maintenance.quarantine_marks import quarantined_by
from rackwright.rollout.participants import Participants, choose_participants
from rackwright.tables import Column, drawn, shown_width

COLUMNS = (Column("host"), Column("driver now"), Column("wanted"), Column("state", 2))


Agree = Callable[[str], bool]
"""Asks the operator before something is done to a fleet."""


def switch(args: argparse.Namespace, data: Mapping[str, Any], agree: Agree) -> int:
    """Look at all hosts, refuse what must not restart, ask, switch; returns the exit status. Raises RackwrightError.

    data: settings that the command line overrides.
    """
    everybody, entries = loaded_for(args.inventory, args.limit, args.only)
    refuse_halves(entries, "rollout --drivers")
    found = with_drivers(survey(args.inventory, args.limit, only=args.only))
    print(paragraph("\n".join([table(found, shown_width()), *mixed_racks(found)])))
    due = with_peers(due_hosts(args.inventory, found), found, mates_of(entries))
    restarting = [entry for entry in entries if entry.name in {one.name for one in due}]
    refuse_cut_off(args.inventory, everybody, restarting, due)
    root = site_root(Path(args.inventory)).absolute()
    present = _present(args, root, restarting)
    for text in present.reasons:
        print(f"rackwright: {printable(text)}")
    if not _agreed(args, [one for one in due if one.name in present.hosts], agree):
        print("nothing was done", file=sys.stderr)
        return ExitCode.ERROR
    options = {"data": data, "skip_offline": args.skip_offline, "back_within": args.timeout}
    started = begin(args.inventory, root, restarting, DRIVERS, not args.plain, **options)
    started = started.with_only(present.hosts, present.events)
    if why := started.vetoed():
        return started.end(ExitCode.ERROR, f"{why}; nothing was done")
    return started.end(*switch_drivers(started, data, args.timeout))


def _present(args: argparse.Namespace, root: Path, entries: Sequence[InventoryHost]) -> Participants:
    """Return the hosts that take part: those in quarantine and those that an operator has drained do not."""
    path, marks, names = Path(args.inventory).absolute(), marks_of(entries), [entry.name for entry in entries]
    listed, drained, peers = quarantined_by(marks, root, entries), drained_in(marks), mates_of(entries)
    return choose_participants(path, names, root, listed, args.skip_offline, drained=drained, peers=peers)


def with_drivers(found: Sequence[Surveyed]) -> list[Surveyed]:
    """Return the hosts that can have a driver: one that is a gateway and serves nothing itself has none."""
    return [one for one in found if DRIVER.name not in one.declared.silent]


def row_of(one: Surveyed) -> tuple[str, str, str, str]:
    """Return a host's row: its driver, the wanted one, and how far it is, or what refuses it."""
    if one.reading is None:
        return one.name, "?", one.settings.driver.version or "-", printable(one.trouble)
    if DRIVER.name not in one.declared:
        return one.name, "?", one.settings.driver.version or "-", "deploy.py does not call driver() for it"
    wanted, reading = DRIVER.wanted(one.settings, one.reading), one.reading[DRIVER]
    rows = refusals(wanted, reading)
    state = "; ".join(row.message for row in rows) or wanted.state(reading)
    return one.name, wanted.now(reading) or "none", wanted.version or "-", state


def table(found: Sequence[Surveyed], width: int | None = None) -> str:
    """Return the hosts with their drivers as a table."""
    return drawn(COLUMNS, [tuple(map(printable, row_of(one))) for one in found], width)


def mixed_racks(found: Sequence[Surveyed]) -> list[str]:
    """Return a sentence for each rack whose hosts have several drivers: no endpoint starts over such hosts."""
    racks = dict.fromkeys(one.settings.hardware.rack for one in found if one.reading and one.settings.hardware.rack)
    return [text for rack in racks if rack and (text := _mixed(rack, found))]


def _mixed(rack: str, found: Sequence[Surveyed]) -> str:
    drivers: dict[str, list[str]] = {}
    for one in found:
        if one.settings.hardware.rack == rack and one.reading is not None and DRIVER.name in one.declared:
            drivers.setdefault(row_of(one)[1], []).append(one.name)
    each = "; ".join(f"{version} on {', '.join(hosts)}" for version, hosts in drivers.items())
    return (
        f"rack {rack} has several drivers, and no endpoint starts over such hosts: {each}" if len(drivers) > 1 else ""
    )


def due_hosts(inventory: str, found: Sequence[Surveyed]) -> list[Surveyed]:
    """Return the hosts whose driver is to be switched. Raises RackwrightError where one cannot be, or none is."""
    calls = [one.name for one in found if one.settings.driver.version and DRIVER.name not in one.declared]
    if calls:
        raise RackwrightError(
            f"deploy.py does not call driver() for {', '.join(calls)}; nothing was done; next: call driver() below "
            "docker() there",
            code="RW4176",
        )
    if unread := [one for one in found if one.reading is None]:
        raise RackwrightError(f"{unread[0].name}: {unread[0].trouble}; nothing was done", code="RW1316")
    managed = [one for one in found if one.reading is not None and one.settings.driver.version]
    for one in managed:
        assert one.reading is not None
        for row in refusals(DRIVER.wanted(one.settings, one.reading), one.reading[DRIVER]):
            text = f"{one.name}: {row.text}; nothing was done; next: {row.fix}; or the other hosts by --limit"
            raise RackwrightError(text, code=row.code)
    due = [one for one in managed if _state(one) is not DriverState.SETTLED]
    if not due:
        raise RackwrightError(
            "no host has a driver to switch: each has the one that its settings name, or they name none; nothing was "
            f"done; next: driver.version in group_vars, then rackwright plan {inventory}",
            code="RW4196",
        )
    return due


def with_peers(
    due: Sequence[Surveyed], found: Sequence[Surveyed], peers: Mapping[str, Sequence[str]]
) -> list[Surveyed]:
    """Return hosts whose driver is due, and those that serve with them: an endpoint over several restarts whole.

    peers: by host, all that serve its endpoint together.
    """
    names = {one.name for one in due}
    return [one for one in found if one.name in names or names & {*peers.get(one.name, ())}]


def _state(one: Surveyed) -> DriverState:
    assert one.reading is not None
    return DRIVER.wanted(one.settings, one.reading).state(one.reading[DRIVER])


def refuse_cut_off(
    inventory: str, everybody: Sequence[InventoryHost], restarting: Sequence[InventoryHost], due: Sequence[Surveyed]
) -> None:
    """Raise RackwrightError where a restart would end the run, or cut hosts or clients off."""
    refuse_this_machine({one.name: one.reading[DRAINED].boot for one in due if one.reading is not None})
    refuse_jump_hosts(everybody, restarting)
    if restarts := [entry.name for entry in restarting if entry.settings.is_gateway]:
        gateways = gateways_of(inventory).hosts
        refuse_last_gateway(inventory, [one.name for one in gateways], answering(gateways), restarts)
        if len(gateways) == 1:
            raise RackwrightError(
                f"{restarts[0]} is the only gateway, so its restart would leave clients no gateway; nothing was done; "
                "next: the other hosts by --limit; this one when the inventory has another gateway",
                code="RW3606",
            )


def _agreed(args: argparse.Namespace, chosen: Sequence[Surveyed], agree: Agree) -> bool:
    """Ask for all, and by its name for each host without a console. Raises RackwrightError where none can answer."""
    without = [one.name for one in chosen if one.settings.driver.console == "none"]
    if without and args.yes:
        raise RackwrightError(
            f"{', '.join(without)} has no console (driver.console: none), so what does not come back is lost until "
            "someone goes there; nothing was done; next: driver.console: bmc or serial where there is one; or the same "
            "command without -y, which asks for each",
            code="RW4186",
        )
    if not args.yes and not agree(headline(chosen)):
        return False
    return all(
        answer_to(f"{name} has no console: type its name to switch it anyway: ").strip() == name for name in without
    )


def headline(chosen: Sequence[Surveyed]) -> str:
    """Return what is going to happen, before the operator is asked for yes."""
    moves = "\n  ".join(f"{name}: {_move(now, wanted)}" for name, now, wanted, _ in map(row_of, chosen))
    return (
        f"This switches NVIDIA's driver on {counted(len(chosen), 'host')}, one after the other in waves: each is "
        f"drained, gets the packages, restarts, and must answer before the next one goes; the first failure goes back "
        f"and stops all.\n  {moves}"
    )


def _move(now: str, wanted: str) -> str:
    return f"{now} -> {wanted}" if now != wanted else f"{now}, restarts with the others of its endpoint"
