"""The record of a pyinfra run, kept from inside: a plain `pyinfra INVENTORY deploy.py` begins and ends its own.

Below `rackwright rollout` and its kin the record is there already; then only what became of each host is added.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from rackwright.adapter.host import logger
from rackwright.adapter.run.current_run import current_state, has_executed, last_words
from rackwright.adapter.run.inventories import settings_of
from rackwright.exit_codes import ExitCode
from rackwright.messages import RackwrightError, coded
from rackwright.processes import this_process
from rackwright.record.ending import REPAIR, remedy
from rackwright.record.handover import VARIABLE, received
from rackwright.record.journal import new_record, note, read_record
from rackwright.record.quarantine import remarks, update_quarantine
from rackwright.record.record import Record, record_of
from rackwright.record.states import ENDED_WELL, SKIPPED_HOSTS, RunState
from rackwright.rollout.begin_event import beginning
from rackwright.rollout.last_lines import ServingHost, as_wide, closing_lines
from rackwright.rollout.maintenance.quarantine_marks import follow_list
from rackwright.rollout.resuming import AGAIN, NEXT, RESUME, checked
from rackwright.tables import shown_width

STOPPED = "RW3101"
"""Code of preflight's refusal of a host."""


def keep_record(
    inventory: Path, root: Path, addresses: Mapping[str, str], deploy: Path, data: Mapping[str, Any]
) -> None:
    """Keep the record of the pyinfra command that runs now; it ends with the command, however that ends.

    addresses: where SSH reaches each of its hosts, by name.
    """
    hosts = list(addresses)
    ours = not received().record
    if ours:
        try:
            os.environ[VARIABLE] = replace(received(), record=str(new_record(root, deploy.stem))).text
        except RackwrightError as error:
            logger.warning(f"this run leaves no record: {error.__cause__}")
            return
        request = {"deploy": str(deploy.absolute()), "data": data, "plain": True, "addresses": addresses}
        note("begin", **beginning(inventory.absolute(), root, hosts, deploy.stem, request))
        _tell_quarantine(root, hosts)
    else:
        note("process", process=this_process())
    context = click.get_current_context()
    prints_json = bool(context.params.get("json_output"))
    context.with_resource(_Ending(Path(received().record), root, ours, prints_json))


def _tell_quarantine(root: Path, hosts: Sequence[str]) -> None:
    """Report the hosts that a rollout would skip: a plain run takes every host it was given."""
    try:
        warnings = remarks(root, hosts)
    except RackwrightError as error:
        warnings = [str(error)]
    for text in warnings:
        logger.warning(text)


class _Ending:
    """Writes what became of each host when pyinfra's command ends, and, for a record of its own, how it ended."""

    def __init__(self, path: Path, root: Path, ours: bool, prints_json: bool) -> None:
        self.path, self.root, self.ours = path, root, ours
        self.prints_json = prints_json
        """True where the output is one JSON value, and no other line belongs to it."""
        self.shown: click.ClickException | None = None
        """pyinfra's last error, once it has been shown."""

    def __enter__(self) -> None:
        """Nothing: the record has begun already."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the record, which fails no run. Raises click's Exit in place of an error that it has shown."""
        try:
            self._end(exit_status(error), error)
        except (OSError, ValueError, KeyError, RackwrightError) as trouble:
            logger.warning(f"{self.path}: the record of this run has no end: {trouble}")
        finally:
            if self.ours:
                del os.environ[VARIABLE]
        if self.shown is not None:
            raise click.exceptions.Exit(self.shown.exit_code)

    def _end(self, status: int, error: BaseException | None) -> None:
        state = current_state()
        for host, last_state in last_words(state, self._states()):
            note("host", host=host, state=last_state)
        if self.ours:
            executed = has_executed(state)
            text = sentence(self._record(), status, executed)
            note("end", status=status, text=text, executed=executed or None)
            record = self._record()
            # A run that deploy.py or a template ended has no inventory yet.
            hosts = [_run_host(host) for host in state.inventory if host.name in record.states] if status == 0 else ()
            changed = update_quarantine(self.root, record)
            for warning in changed:
                logger.warning(warning)
            if changed:
                follow_list(record.begin["inventory"], record.hosts)
            if isinstance(error, click.ClickException) and NEXT in text:
                # click shows it after this, and the next command would not be the last line.
                error.show()
                self.shown = error
            for message in ["", *last] if (last := closing_lines(record, text, hosts)) else []:
                click.echo(as_wide(message, shown_width()), err=self.prints_json)

    def _record(self) -> Record:
        return record_of(self.path.stem, read_record(self.path))

    def _states(self) -> Mapping[str, str]:
        """Each host's state in the phase that runs now."""
        phases = list(self._record().phases.values())
        return phases[-1] if phases else {}


def _run_host(host: Any) -> ServingHost:
    """Return a host of pyinfra's as its last lines name it."""
    return ServingHost(host.name, str(host.data.get("ssh_hostname") or host.name), settings_of(host))


def exit_status(error: BaseException | None) -> int:
    """Exit status that this exception ends a command with."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    return int(error is not None)


def sentence(record: Record, status: int, executed: bool) -> str:
    """Return how a plain run ended, in words."""
    code, text = _ending(record, status, executed)
    next_step = _next_step(record) if status != ExitCode.INTERRUPTED else f"rackwright resume {record.id}"
    ended = replace(record, end={"status": status, "text": text, "executed": executed})
    return coded(code, checked(ended, f"{text}; next: {next_step}")) if code else text


def _next_step(record: Record) -> str:
    """Return what to do after a run that failed: a resume alone cures neither wrong settings nor a host's own fault."""
    if record.mistaken:
        return f"{remedy(record.fixes)}, then {AGAIN}"
    resume = f"rackwright resume {record.id}"
    bad = {host: state for host, state in record.states.items() if state not in ENDED_WELL | SKIPPED_HOSTS}
    if bad and set(bad.values()) == {RunState.UNREACHABLE}:
        return f"make SSH reach {'it' if len(bad) == 1 else 'them'}, then {resume}"
    stopped = any(_says_what_helps(record.errors.get(host, "")) for host in bad)
    return f"{REPAIR}, then {resume}" if stopped else resume


def _says_what_helps(error: str) -> bool:
    """Return True for an error with a next step that is not this run's resume."""
    return error.startswith(f"{STOPPED}: ") or ("; next" in error and not any(one in error for one in (RESUME, AGAIN)))


def _ending(record: Record, status: int, executed: bool) -> tuple[str, str]:
    """Return the code and the words; without a code, nothing remains to do."""
    if status == ExitCode.INTERRUPTED:
        return "RW0822", f"stopped from outside, {record.counts()}"
    well = ENDED_WELL | SKIPPED_HOSTS
    bad = [host for host in record.hosts if record.states.get(host, RunState.DONE) not in well]
    if bad:
        return "RW0823", _failed(record, bad)
    if not executed:
        return "", "ended before anything was done"
    if status == 0:
        return "", f"done: {record.counts()}"
    return "RW0823", f"not everything was done, {record.counts()}"


def _failed(record: Record, bad: Sequence[str]) -> str:
    """Return on which hosts it failed, where nothing serves since, and which waited for them in vain."""
    waited = [host for host in bad if record.states[host] is RunState.NOT_SWITCHED]
    failed = [host for host in bad if host not in waited]
    down = [host for host in failed if record.states[host] is RunState.NOTHING_SERVES]
    parts = (("failed on {}", failed), ("nothing serves on {}", down), ("{} not switched", waited))
    return "; ".join(text.format(", ".join(hosts)) for text, hosts in parts if hosts)
