"""Probe, as a non-member, the ports by which the hosts of one endpoint talk to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rackwright.adapter.command_output import tail
from rackwright.adapter.concurrency import side_by_side
from rackwright.adapter.host import Host, say
from rackwright.concerns.endpoint.group.open_ports import CODE, Listening, in_words, listening
from rackwright.concerns.endpoint.switch.events import COLOURS
from rackwright.hostside import host_script
from rackwright.messages import ReadingError
from rackwright.paths import container_name, unit_name
from rackwright.plan.change import Shell
from rackwright.plan.reach import HERE, SECONDS, why_probe_failed
from rackwright.record.cause import Cause, Reason
from rackwright.record.journal import note
from rackwright.remote.commands import command_of, remote
from rackwright.remote.errors import StepFailedError
from rackwright.remote.local_probe import probe
from rackwright.settings.group import Group

ROW = "closed to non-members"
AT_ONCE = 16
"""The most ports that are probed side by side."""
CLOSE = (
    "let firewall() run on all of them, or give them a network of their own by fabric_address; then the same command"
)


def refuse_non_members(head: Host, group: Group, port: int) -> None:
    """Probe from this machine and from one host of the run that is not a member.

    port: the one for clients, on the head. Raises StepFailedError when one of the other ports answers: rolling back
    would close none of them, so what serves is left as it is.
    """
    places = [listener for host in group.hosts for listener in _places(head, host, group, port)]
    probers = [HERE, *_outsider(head, group)]
    opened = [(listener, who) for who in probers for listener in _answering(head, who, places)]
    text = in_words(opened, len(places), probers)
    mark = "refused" if opened else "proved"
    say(head, f"  {mark}: {ROW}: {text}", COLOURS[mark])
    note("row", host=head.name, endpoint=group.endpoint, row=ROW, mark=mark, seen=text)
    if opened:
        raise StepFailedError(f"{ROW}: {text}; next: {CLOSE}", (Reason(Cause.CHECK, ROW),), code=CODE)


def _places(head: Host, name: str, group: Group, port: int) -> Iterator[Listening]:
    script = host_script("member_listeners", unit=unit_name(group.endpoint), container=container_name(group.endpoint))
    lines = _on(head, name, script)
    host = head.state.inventory.get_host(name)
    address = next(member.address for member in group.members if member.host == name)
    addresses = dict.fromkeys((address, str(host.data.get("ssh_hostname") or name)))
    yield from listening(name, lines, tuple(addresses), port if name == group.head.host else None)


def _on(head: Host, name: str, script: str) -> list[str]:
    ok, output = remote(head.state.inventory.get_host(name), command_of(Shell(script, timeout=60)))
    if not ok:
        raise StepFailedError(f"{name} could not be asked where it listens: {tail(output)}", code="RW0709")
    return list(output.stdout_lines)


def _outsider(head: Host, group: Group) -> list[str]:
    """One other host of the run, the first that is connected."""
    others = [one.name for one in head.state.inventory if one.connected and one.name not in group.hosts]
    return others[:1]


def _answering(head: Host, who: str, places: Sequence[Listening]) -> list[Listening]:
    if who == HERE:
        found = side_by_side(lambda listener: not probe(listener.address, listener.port), places, AT_ONCE)
    else:
        found = [_lets_in(head, who, listener) for listener in places]
    return [listener for listener, answers in zip(places, found, strict=True) if answers]


def _lets_in(head: Host, who: str, listener: Listening) -> bool:
    script = host_script("port_probe", address=listener.address, port=listener.port, seconds=SECONDS)
    try:
        return not why_probe_failed(_on(head, who, script))
    except ReadingError as error:
        raise StepFailedError(f"{who} could not be asked: {error}", code="RW0709") from error
