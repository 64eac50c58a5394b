"""A fleet's run from outside: start pyinfra on a site, keep the record, and say from the record how it ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import rackwright
from rackwright.adapter.run.inventories import refuse_broken_locks
from rackwright.adapter.run.options import data_given, data_words
from rackwright.exit_codes import ExitCode
from rackwright.loading.files import is_python
from rackwright.loading.group import mates_of
from rackwright.loading.host import InventoryHost
from rackwright.loading.load import nested
from rackwright.messages import RackwrightError, SettingsError, coded
from rackwright.notify.message import message_of
from rackwright.notify.targets import targets
from rackwright.processes import ReportedInterrupt, module
from rackwright.record.ending import Result, result
from rackwright.record.handover import Handover
from rackwright.record.journal import append, new_record, read_record
from rackwright.record.quarantine import update_quarantine
from rackwright.record.record import SILENT, TEARDOWN, record_of
from rackwright.record.view.live_run import follow, is_terminal
from rackwright.rollout.begin_event import beginning
from rackwright.rollout.last_lines import ServingHost, as_wide, closing_lines
from rackwright.rollout.maintenance.quarantine_marks import follow_list
from rackwright.rollout.resuming import checked
from rackwright.rollout.run_hooks import FINISH, PLAN, merged, run_hooks
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import Hooks
from rackwright.sources.lockfile import Locks
from rackwright.tables import shown_width

FINISHING = "hosts finish what they have begun; next: rackwright resume"
NOTHING_BEGUN = "nothing was begun on any host; next: the same command again"
DONE_IN_PART = "what was done on hosts stays done; next: the same command again, which does what remains"


def what_remains(events: Sequence[Mapping[str, Any]]) -> str:
    """Return what a run that was stopped leaves behind, by its record, and the next command."""
    kinds = {event["kind"] for event in events}
    if "job" in kinds:
        return FINISHING
    silent = any(event.get("purpose") in SILENT for event in events)
    return DONE_IN_PART if "stage" in kinds or (silent and "process" in kinds) else NOTHING_BEGUN


@dataclass(frozen=True)
class Run:
    """One run: its inventory, its hosts, and its record."""

    inventory: Path
    root: Path
    hosts: tuple[str, ...]
    record: Path
    hooks: Hooks = field(default_factory=Hooks)
    peers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By host, all that serve its endpoint together: nothing is done to some of them alone."""
    in_waves: bool = True
    """False: as a plain deploy, without waves and bakes."""
    view: bool = False
    """True: the terminal shows where each host stands, instead of what pyinfra prints."""
    members: tuple[InventoryHost, ...] = ()
    """Its hosts with their settings, for its last lines."""
    notified: tuple[HostSettings, ...] = ()
    """One host's settings for each command or webhook to which a bad end is sent."""

    def pyinfra(self, deploy: Path, hosts: Sequence[str], data: Mapping[str, Any], **fields: Any) -> int:
        """Run a deploy on some hosts; returns pyinfra's own exit status, which alone proves nothing.

        fields: what its handover contains in addition to the record.
        """
        words = [*module("pyinfra"), read_by_pyinfra(self.inventory), str(deploy), "-y"]
        words += [argument for name in hosts for argument in ("--limit", name)]
        words += data_words(data)
        handover = Handover(
            record=str(self.record),
            inventory=str(self.inventory),
            in_waves=self.in_waves,
            parent=os.getpid(),
            **fields,
        )
        try:
            return follow(words, self.root, handover.environment, self.record, self.view)
        except KeyboardInterrupt as error:
            self.end(ExitCode.INTERRUPTED, f"stopped from outside: {what_remains(read_record(self.record))}")
            raise ReportedInterrupt from error

    def as_plain(self) -> Run:
        """Return the same run, without waves and bakes."""
        return replace(self, in_waves=False)

    def with_only(self, hosts: Sequence[str], others: Iterable[Mapping[str, str]]) -> Run:
        """Return the run with only the hosts that take part; `others`: what the record says of the others."""
        for event in others:
            self.note("host", **event)
        return replace(self, hosts=tuple(hosts))

    def note(self, kind: str, **fields: Any) -> None:
        """Add an event to the record."""
        append(self.record, kind, **fields)

    def end(self, status: int, text: str) -> int:
        """Write and print how the run ended, its next step last; returns the exit status."""
        record = record_of(self.record.stem, read_record(self.record))
        text = checked(replace(record, end={"status": status, "text": text}), text)
        self.note("end", status=status, text=text)
        self._hook(FINISH, status=status, text=text)
        quarantine = self._update_quarantine()
        print(f"rackwright: the record of this run: {self.record}", flush=True)
        self._report()
        self._notify(status, text, quarantine)
        ended = record_of(self.record.stem, read_record(self.record))
        serving = () if ended.begin.get("purpose") in SILENT else tuple(self._serving())
        print("\n".join(as_wide(row, shown_width()) for row in closing_lines(ended, text, serving)), flush=True)
        return status

    def _serving(self) -> Iterator[ServingHost]:
        """Yield its hosts as its last lines name them."""
        locks = Locks(self.root)
        for one in self.members:
            address = str(one.data.get("ssh_hostname") or one.name)
            settings = one.settings
            with suppress(SettingsError):  # the run is over: a lock file that broke in its course fails it no more
                settings = locks.pin(settings)
            yield ServingHost(one.name, address, settings)

    def vetoed(self) -> str:
        """Run the plan hooks; returns why one of them stops the run, or nothing."""
        why = self._hook(PLAN, hosts=list(self.hosts))
        return coded("RW0821", why) if why else ""

    def _hook(self, event: str, **more: Any) -> str:
        def say(text: str) -> None:
            print(f"rackwright: {text}", flush=True)

        return run_hooks(self.hooks, event, self.record, self.root, say, **more)

    def _report(self) -> None:
        """Write the report of the run. Without one the run has ended no worse."""
        from rackwright.record.view.report import write  # noqa: PLC0415 - Jinja2 is for the end

        try:
            print(f"rackwright: its report: {write(self.record)}", flush=True)
        except RackwrightError as error:
            print(f"rackwright: {error}", file=sys.stderr, flush=True)

    def _update_quarantine(self) -> list[str]:
        try:
            texts = update_quarantine(self.root, record_of(self.record.stem, read_record(self.record)))
        except RackwrightError as error:
            print(f"rackwright: {error}", file=sys.stderr)
            return []
        for text in texts:
            print(f"rackwright: {text}", flush=True)
        if texts:
            follow_list(str(self.inventory), self.hosts)
        return texts

    def _notify(self, status: int, text: str, quarantine: Sequence[str]) -> None:
        """Send how the run ended, where that is a message. A message that is lost has ended no run worse."""
        if not self.notified:
            return
        from rackwright.notify.send import notify  # noqa: PLC0415 - TLS and HTTP are for the end

        message = message_of(record_of(self.record.stem, read_record(self.record)), status, text, quarantine)
        if message:
            notify(message, self.notified)


def read_by_pyinfra(inventory: Path) -> str:
    """Return the inventory for pyinfra: for one of Ansible's, the Python that reads what the handover names."""
    return str(inventory if is_python(inventory) else Path(rackwright.__file__).with_name("ansible_inventory.py"))


def begin(
    inventory: str, root: Path, hosts: Sequence[InventoryHost], purpose: str, view: bool = False, **options: Any
) -> Run:
    """Open the record of a run. Raises RackwrightError when none can be written.

    hosts: those that it is for, in inventory order; their hooks are the run's.
    view: show where each host stands, instead of what pyinfra prints, where this is a terminal.
    options: whatever `rackwright resume` needs in order to continue: `deploy`, `data`, options of the verb.
    """
    if purpose != TEARDOWN:
        refuse_broken_locks()
    path = Path(inventory).expanduser().absolute()
    if data := data_given():
        options = {"data": data, **options}
    names = [host.name for host in hosts]
    hooks = hooks_for(hosts, options.get("data", {}))
    run = Run(
        path,
        root,
        tuple(names),
        new_record(root, "resume" if options.get("resumes") else purpose),
        hooks,
        mates_of(hosts),
        view=view and is_terminal(),
        members=tuple(hosts),
        notified=tuple(targets(host.settings for host in hosts)),
    )
    addresses = {host.name: host.address for host in hosts}
    run.note("begin", **beginning(path, root, names, purpose, {"addresses": addresses, **options}))
    return run


def hooks_for(hosts: Iterable[InventoryHost], data: Mapping[str, Any]) -> Hooks:
    """Return the hooks of a run: its hosts', or those that `--data` sets in their place. Raises RackwrightError."""
    overrides = nested(data).get("rollout", {})
    if "hooks" not in overrides:
        return merged(host.settings.rollout.hooks for host in hosts)
    try:
        return Hooks.model_validate(overrides["hooks"])
    except ValidationError as error:
        raise RackwrightError(
            f"--data rollout.hooks: {error.errors()[0]['msg']}; nothing was done", code="RW0806"
        ) from None


def phase(run: Run, name: str) -> Result:
    """Return the record's entry of this run for a phase."""
    return result(read_record(run.record), name)
