"""The pyinfra operations that close the endpoints' ports to all but the gateways, and open them again."""

from __future__ import annotations

from rackwright.adapter.host import Host, State, say, this_host
from rackwright.adapter.operation import FunctionCommand, operation
from rackwright.adapter.run.inventories import settings_of
from rackwright.concerns.firewall import closing_changes, reopening_changes
from rackwright.messages import coded, waiting
from rackwright.operations.gateway_probe import absent_gateways, refuse_unless_through
from rackwright.operations.hostrun import (
    Commands,
    Quiet,
    announce_changes,
    carry_out_all,
    decide_and_carry_out,
    leased_changes,
    mark_changed,
    reading_of,
    state_of,
)
from rackwright.plan.change import Change
from rackwright.remote.commands import complain
from rackwright.remote.errors import StepFailedError


@operation()
def close_direct_ports() -> Commands:
    """Close the endpoints' ports to all but the gateways; yields nothing where they are closed."""
    host = this_host()
    changes = yield from leased_changes(host, lambda reading: closing_changes(settings_of(host), reading))
    announce_changes(host, changes or ())
    absent = absent_gateways(host, settings_of(host)) if changes and host.state.is_executing else []
    if absent:
        text = f"the endpoints' ports stay open to direct clients: this run does not connect to {', '.join(absent)}"
        say(host, coded("RW3619", f"{text}, which must be seen to reach them; next: deploy without --limit"), "yellow")
    elif changes:
        mark_changed(host)
        yield FunctionCommand(_close, (Quiet(changes),), {})


@operation()
def open_direct_ports() -> Commands:
    """Open the endpoints' ports to those whom `allow_from` lets in; yields nothing where they are open."""
    host = this_host()
    yield from decide_and_carry_out(host, lambda reading: reopening_changes(settings_of(host), reading))


def _close(state: State, host: Host, changes: Quiet) -> bool:  # noqa: ARG001 - pyinfra passes both by name
    found: list[Change] = changes.value
    try:
        _see_through(host)
        carry_out_all(host, found)
    except StepFailedError as error:
        complain(host, str(error))
        return False
    try:
        _see_through(host)
    except StepFailedError as error:
        _open_again(host, error)
        return False
    return True


def _see_through(host: Host) -> None:
    with waiting(lambda: f"the gateways to reach {host.name}"):
        for text in refuse_unless_through(host, settings_of(host)):
            say(host, text)


def _open_again(host: Host, error: StepFailedError) -> None:
    """Open the ports again: otherwise its endpoint has no clients."""
    complain(host, str(error))
    state_of(host).stale = True
    try:
        reading = reading_of(host)
        if reading is not None:
            carry_out_all(host, reopening_changes(settings_of(host), reading))
            say(host, "the endpoints' ports are open to direct clients again", "yellow")
    except StepFailedError as failure:
        text = f"the ports could not be opened again: {failure.text}"
        again = f"rackwright firewall open INVENTORY --limit {host.name} --for 1h"
        complain(host, coded("RW2539", f"{text}; next: {again}"))
