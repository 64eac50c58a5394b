"""The record of a pyinfra run, kept from inside: a plain `pyinfra INVENTORY deploy.py` begins and ends its own.

Below `rackwright rollout` and its kin the record is there already; then only what became of each host is added.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from rackwright.adapter.host import logger
from rackwright.adapter.run.current_run import current_state, has_executed, last_words
from rackwright.adapter.run.inventories import settings_of
from rackwright.concerns.endpoint.container import served_name
from rackwright.exit_codes import ExitCode
from rackwright.messages import NAMED, RackwrightError, coded, shortest
from rackwright.plan.reach import in_url
from rackwright.processes import this_process
from rackwright.record.ending import FIX
from rackwright.record.handover import VARIABLE, received
from rackwright.record.journal import new_record, note, read_record
from rackwright.record.quarantine import remarks, update_quarantine
from rackwright.record.record import Record, record_of
from rackwright.record.states import ENDED_WELL, SKIPPED_HOSTS, WELL, RunState
from rackwright.rollout.begin_event import beginning
from rackwright.rollout.maintenance.quarantine_marks import follow_list
from rackwright.rollout.resuming import AGAIN, checked
from rackwright.settings.gateway_urls import gateway_urls
from rackwright.settings.host_settings import EndpointSettings


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
    click.get_current_context().with_resource(_Ending(Path(received().record), root, ours))


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

    def __init__(self, path: Path, root: Path, ours: bool) -> None:
        self.path, self.root, self.ours = path, root, ours

    def __enter__(self) -> None:
        """Nothing: the record has begun already."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Never raises: a record fails no run."""
        try:
            self._end(exit_status(error))
        except (OSError, ValueError, KeyError, RackwrightError) as trouble:
            logger.warning(f"{self.path}: the record of this run has no end: {trouble}")
        finally:
            if self.ours:
                del os.environ[VARIABLE]

    def _end(self, status: int) -> None:
        state = current_state()
        for host, last_state in last_words(state, self._states()):
            note("host", host=host, state=last_state)
        if self.ours:
            executed = has_executed(state)
            text = sentence(self._record(), status, executed)
            note("end", status=status, text=text, executed=executed or None)
            record = self._record()
            # A run that deploy.py or a template ended has no inventory yet.
            hosts = state.inventory if status == 0 else ()
            direct = urls(host for host in hosts if record.states.get(host.name) in WELL)
            through = through_gateways(host for host in hosts if record.states.get(host.name) in ENDED_WELL)
            for message in closing_lines(record, text, direct, through):
                click.echo(message)
            changed = update_quarantine(self.root, self._record())
            for text in changed:
                logger.warning(text)
            if changed:
                follow_list(record.begin["inventory"], record.hosts)

    def _record(self) -> Record:
        return record_of(self.path.stem, read_record(self.path))

    def _states(self) -> Mapping[str, str]:
        """Each host's state in the phase that runs now."""
        phases = list(self._record().phases.values())
        return phases[-1] if phases else {}


def closing_lines(record: Record, text: str, direct: Sequence[str] = (), through: Sequence[str] = ()) -> list[str]:
    """Return the end of a plain run: how it ended, and how to ask what it has proven.

    A run that was stopped has printed that already. direct: URLs of its endpoints. through: of its gateways.
    """
    status, inventory = (record.end or {}).get("status"), record.begin["inventory"]
    if status == ExitCode.INTERRUPTED:
        return []
    served = any(state in WELL for state in record.states.values())
    if status != 0 or not (served or through):
        return [f"rackwright: {text}"]
    ask = f"rackwright: {text}; ask it: rackwright chat {shortest(inventory)}" if served else f"rackwright: {text}"
    reached = [*(f"{url}: through the gateway, with a client's key" for url in through), *direct]
    more = [f"  and {len(reached) - NAMED} more: rackwright status {shortest(inventory)}"] if reached[NAMED:] else []
    key = [f"  a client's key: rackwright keys add {shortest(inventory)} NAME"] if through else []
    return [ask, *(f"  {text}" for text in reached[:NAMED]), *more, *key]


def urls(hosts: Iterable[Any]) -> list[str]:
    """Return where clients reach each endpoint of these hosts, which are pyinfra's, and the model that they ask for.

    Ports that are closed to all but gateways are left out.
    """
    return [
        f"{url_for(endpoint, _address(host))}/v1, model {served_name(endpoint)}"
        for host in hosts
        if not (settings_of(host).follows or settings_of(host).direct_is_closed)
        for endpoint in settings_of(host).all_endpoints.values()
    ]


def through_gateways(hosts: Iterable[Any]) -> list[str]:
    """Return where clients reach each model through the gateways among these hosts, which are pyinfra's."""
    gateways = [(settings_of(host), _address(host)) for host in hosts if settings_of(host).is_gateway]
    found = (
        gateway_urls(settings.gateway, [one.model for one in settings.backends], address)
        for settings, address in gateways
    )
    return list(dict.fromkeys(chain.from_iterable(found)))


def _address(host: Any) -> str:
    return str(host.data.get("ssh_hostname") or host.name)


def url_for(endpoint: EndpointSettings, address: str) -> str:
    """Return an endpoint's URL where its host has this address: that, or the one it is bound to."""
    every = endpoint.address in ("0.0.0.0", "::")
    return f"http://{in_url(address if every else endpoint.address)}:{endpoint.port}"


def exit_status(error: BaseException | None) -> int:
    """Exit status that this exception ends a command with."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    return int(error is not None)


def sentence(record: Record, status: int, executed: bool) -> str:
    """Return how a plain run ended, in words."""
    next_step = f"{FIX}, then {AGAIN}" if record.mistaken else f"rackwright resume {record.id}"
    code, text = _ending(record, status, executed)
    ended = replace(record, end={"status": status, "text": text, "executed": executed})
    return coded(code, checked(ended, f"{text}; next: {next_step}")) if code else text


def _ending(record: Record, status: int, executed: bool) -> tuple[str, str]:
    """Return the code and the words; without a code, nothing remains to do."""
    if status == ExitCode.INTERRUPTED:
        return "RW0822", f"stopped from outside, {record.counts()}"
    well = ENDED_WELL | SKIPPED_HOSTS
    bad = [host for host in record.hosts if record.states.get(host, RunState.DONE) not in well]
    if bad:
        return "RW0823", f"failed on {', '.join(bad)}"
    if not executed:
        return "", "ended before anything was done"
    if status == 0:
        return "", f"done: {record.counts()}"
    return "RW0823", f"not everything was done, {record.counts()}"
