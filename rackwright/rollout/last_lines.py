"""The last lines of a run: what serves where, how to ask it, what is left to do; or why it failed, and what to type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from rackwright.addresses import is_loopback
from rackwright.concerns.endpoint.container import served_name
from rackwright.concerns.models import sources_of
from rackwright.exit_codes import ExitCode
from rackwright.messages import NAMED, shortest
from rackwright.plan.reach import in_url
from rackwright.record.record import Record
from rackwright.record.states import ENDED_WELL, OPEN, SKIPPED_HOSTS, UNTOUCHED, WELL, RunState
from rackwright.rollout.resuming import NEXT
from rackwright.settings.gateway_urls import gateway_urls
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.tables import folded

SERVES, ASK, LEFT = "serves:", "ask it:", "left:"
CAUSE, STEP = "cause:", "next:"
SERVING = WELL | {RunState.TAKEN_BACK}
"""States in which a run that ended well leaves a host that answers."""
HEAD = 9
MARGIN = 2 + HEAD
"""Columns before what a line with a head says."""
WITH_KEY = "through the gateway, with a client's key"
NOTHING_LEFT = "nothing"

_CODED = re.compile(r"\s*RW\d{4}: ")


@dataclass(frozen=True)
class ServingHost:
    """A host of a run: where clients reach it, and its settings, the lock file's digests and commits included."""

    name: str
    address: str
    settings: HostSettings


def closing_lines(record: Record, text: str, hosts: Sequence[ServingHost] = ()) -> list[str]:
    """Return the end of a run. A plain run that was stopped has printed that already.

    text: how it ended. hosts: those that it was for.
    """
    status, text = (record.end or {}).get("status"), as_typed_here(record, text)
    if status == ExitCode.INTERRUPTED:
        return [] if record.begin.get("plain") else [*_with_next(text)]
    if status != ExitCode.DONE:
        return [*_after_failure(record, text)]
    return [f"rackwright: {text}", *_after_success(record, hosts)]


def as_typed_here(record: Record, text: str) -> str:
    """Return a text with the paths of its commands as they are typed from here; the record keeps them whole."""
    for key in ("inventory", "deploy"):
        if path := record.begin.get(key):
            text = text.replace(str(path), shortest(str(path)))
    return text


# -- after success


def _after_success(record: Record, hosts: Sequence[ServingHost]) -> Iterator[str]:
    inventory = shortest(record.begin["inventory"])
    direct = urls(host for host in hosts if record.states.get(host.name) in SERVING)
    through = through_gateways(host for host in hosts if record.states.get(host.name) in ENDED_WELL)
    reached = [*(f"{url}: {WITH_KEY}" for url in through), *direct]
    if reached:
        more = len(reached) - NAMED
        others = [f"and {more} more: rackwright status {inventory}"] if more > 0 else []
        yield from _headed(SERVES, [*reached[:NAMED], *others])
    served = any(state in SERVING for state in record.states.values())
    ask = [f'rackwright chat {inventory} -- "What is the capital of France?"'] if served else []
    keys = [f"a client's key: rackwright keys add {inventory} NAME"] if through else []
    yield from _headed(ASK, [*ask, *keys])
    if reached:
        yield from _headed(LEFT, [*left_to_do(record, hosts)] or [NOTHING_LEFT])


def _headed(head: str, texts: Sequence[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"  {head if number == 0 else '':<{HEAD}}{text}"


def as_wide(row: str, width: int | None) -> str:
    """Return a last line broken at the terminal's width, below where it begins; a command to type stays in one line."""
    margin = MARGIN if row.startswith("  ") else 0
    head, text = row[:margin], row[margin:]
    mark = "next: " if head.strip() == STEP else ""
    parts = folded(f"{mark}{text}", width and width - margin).removeprefix(mark).split("\n")
    return "\n".join([f"{head}{parts[0]}", *(f"{' ' * margin}{part}" for part in parts[1:])])


def left_to_do(record: Record, hosts: Sequence[ServingHost]) -> Iterator[str]:
    """Yield what a run that ended well leaves to its operator, each with the command."""
    inventory = shortest(record.begin["inventory"])
    if drained := _in(record, RunState.DRAINED):
        yield f"{', '.join(drained)} stays drained: rackwright undrain {inventory}{_limits(drained)}"
    if skipped := [host for state in SKIPPED_HOSTS - {RunState.DRAINED} for host in _in(record, state)]:
        yield f"{', '.join(skipped)} was skipped: rackwright resume {record.id}, when that is repaired"
    if any(not is_pinned(host.settings) for host in hosts if record.states.get(host.name) in SERVING):
        yield f"tags and branches are not pinned yet: rackwright pin {inventory}"


def _in(record: Record, state: RunState) -> list[str]:
    return [host for host, found in record.states.items() if found is state]


def _limits(hosts: Iterable[str]) -> str:
    return "".join(f" --limit {host}" for host in hosts)


def is_pinned(settings: HostSettings) -> bool:
    """Return whether a host gets the same bytes as any other: its images by digest, its models by commit."""
    images = all(endpoint.image_digest for endpoint in settings.all_endpoints.values())
    return images and all(source.commit for source in sources_of(settings))


def urls(hosts: Iterable[ServingHost]) -> list[str]:
    """Return where clients reach each endpoint of these hosts, and the model that they ask for.

    Ports that are closed to all but gateways are left out.
    """
    return [
        f"{url_for(endpoint, host.address)}/v1, model {served_name(endpoint)}{_for_itself(endpoint, host.name)}"
        for host in hosts
        if not (host.settings.follows or host.settings.direct_is_closed)
        for endpoint in host.settings.all_endpoints.values()
    ]


def _for_itself(endpoint: EndpointSettings, host: str) -> str:
    """Return the note on an endpoint that answers its own host alone."""
    return f", for {host} itself alone: allow_from opens it" if is_loopback(endpoint.address) else ""


def through_gateways(hosts: Iterable[ServingHost]) -> list[str]:
    """Return where clients reach each model through the gateways among these hosts."""
    found = (
        gateway_urls(host.settings.gateway, [one.model for one in host.settings.backends], host.address)
        for host in hosts
        if host.settings.is_gateway
    )
    return list(dict.fromkeys(chain.from_iterable(found)))


def url_for(endpoint: EndpointSettings, address: str) -> str:
    """Return an endpoint's URL where its host has this address: that, or the one it is bound to."""
    every = endpoint.address in ("0.0.0.0", "::")
    return f"http://{in_url(address if every else endpoint.address)}:{endpoint.port}"


# -- after a failure


def _after_failure(record: Record, text: str) -> Iterator[str]:
    how, *step = _with_next(text)
    yield how
    yield from _headed(CAUSE, causes(record))
    yield from step


def _with_next(text: str) -> Iterator[str]:
    """Yield how a run ended, and below it the command to type."""
    how, _, step = text.partition(NEXT)
    yield f"rackwright: {how}"
    yield from _headed(STEP, [step] if step else [])


def causes(record: Record) -> list[str]:
    """Return why hosts failed, a line for hosts that failed alike; of many, the first few."""
    alike: dict[str, list[str]] = {}
    for host, cause in _cause_by_host(record).items():
        alike.setdefault(cause, []).append(host)
    lines = [f"{_named(hosts)}: {cause}" for cause, hosts in alike.items()]
    return [*lines[:NAMED], *([f"and {len(lines) - NAMED} more: rackwright runs {record.id}"] if lines[NAMED:] else [])]


def _named(hosts: Sequence[str]) -> str:
    return ", ".join(hosts) if len(hosts) <= NAMED else f"{', '.join(hosts[:NAMED])} and {len(hosts) - NAMED} more"


def _cause_by_host(record: Record) -> Mapping[str, str]:
    no_cause = ENDED_WELL | UNTOUCHED | OPEN | {RunState.TAKEN_BACK}
    bad = {host: state for host, state in record.states.items() if state not in no_cause}
    return {host: _cause(record, host, state) for host, state in bad.items()}


def _cause(record: Record, host: str, state: RunState) -> str:
    if row := record.refused.get(host):
        return row
    text = record.errors.get(host) or record.texts.get(host)
    return _most_precise(text.splitlines()) if text else _of_state(state)


def _most_precise(rows: Sequence[str]) -> str:
    """Return the first row below the first one that has a code of its own, such as a check of preflight."""
    return next((row.strip() for row in rows[1:] if _CODED.match(row)), rows[0])


def _of_state(state: RunState) -> str:
    return "no SSH connection, see above" if state is RunState.UNREACHABLE else str(state)
