"""Hosts that take a model from each other: what each is read for, its part in the chain, its program and its port."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rackwright.hostside import helper_script, host_script
from rackwright.hostside.packed import HAND_ON, packed
from rackwright.paths import HELPER_LABEL, job_container
from rackwright.plan.change import Job
from rackwright.plan.hand_on import ChainPart, HandsOn
from rackwright.plan.reading import lines_of, whole_number
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import FilePin, HandOn, ModelSource

INSIDE = "/run/rackwright"
"""Folder of the job's secrets and its programs in the container."""
FETCH_TIMEOUT = 24 * 3600
RUN_TOKEN = "run_token"
"""File of the run's secret in the job's folder."""
START, START_OF_BUSY = 300, 900
"""Seconds by which the hosts of a run begin one after the other, and where one hands on to another run first."""
LINGER = 60
"""Seconds without a request after which a host stops handing on to hosts that have not said that they are done."""

LONGEST_TURN = 600
"""Seconds after which every host asks hub or registry that may, where no host hands anything on."""


@dataclass(frozen=True)
class Link:
    """An address of the host's, and its interface."""

    interface: str
    address: str
    speed: int | None
    """Mbit/s; None where the interface does not say it."""


def read(hand_on: HandOn | None) -> str:
    """Print the host's addresses by interface and the ports at which it hands on now, where it is to take part."""
    return host_script("links_read") if hand_on else ""


def parse(output: str) -> tuple[Link, ...]:
    """Return the host's addresses, IPv4 first."""
    rows = [row.split(" ") for row in lines_of(output) if row.startswith("link ")]
    found = [Link(row[1], row[2].partition("/")[0], whole_number(row[3]) or None) for row in rows if len(row) == 4]
    return tuple(sorted(found, key=lambda link: ":" in link.address))


def parse_ports(output: str) -> frozenset[int]:
    """Return the ports at which the host hands something on now, for any run."""
    rows = (row.removeprefix("hands-on ") for row in lines_of(output) if row.startswith("hands-on "))
    return frozenset(int(row) for row in rows if row.isdecimal())


def handed_on_by(host: str) -> str:
    """Return the words for the host from which a model or an image is taken, to follow a reason."""
    return f"; {host} hands it on"


def own_link(hand_on: HandOn, links: Iterable[Link]) -> Link | None:
    """Return the address at which the host hands on; None when it has none on the named interface."""
    return next((link for link in links if link.interface == hand_on.interface), None)


def named(source: ModelSource, commit: str) -> str:
    """Return the name of a model in a run: hosts whose names are the same want the same files."""
    return json.dumps([source.repository, commit, sorted(source.include), sorted(source.exclude)])


def is_listed(pins: Mapping[str, FilePin]) -> bool:
    """Return True if the lock file lists a model's files with what each is verified by."""
    return bool(pins) and all(pin.sha256 or pin.blob for pin in pins.values())


def refusal(hand_on: HandOn, source: ModelSource, links: Iterable[Link]) -> tuple[str, str] | None:
    """Return why a host can neither take nor hand on a model, with the code; None where it can."""
    if own_link(hand_on, links) is None:
        others = ", ".join(f"{link.interface} ({link.address})" for link in links) or "none"
        text = (
            f"downloads.hand_on.interface is {hand_on.interface}, and this host has no address there; it has {others}; "
            "next: name one of these for this host in group_vars or host_vars"
        )
        return text, "RW2915"
    if not is_listed(source.pins):
        text = (
            f"{source.repository}: hosts hand files on by the hashes of the lock file, which does not list them; next: "
            "rackwright pin INVENTORY; or take downloads.hand_on out"
        )
        return text, "RW2925"
    return None


# -- jobs


def in_spec(settings: HostSettings, source: ModelSource, commit: str, part: ChainPart | None) -> dict[str, Any]:
    """Return the fetching program's arguments about other hosts; nothing where it asks the hub alone."""
    if part is None:
        return {}
    url = f"{settings.mirrors.hub.rstrip('/')}/{source.repository}/resolve/{commit}/"
    authorised, after = settings.models.hub_token is not None, hubs_turn(settings, part)
    origin = {"url": url, "authorised": authorised, "after": after} if part.from_hub else None
    return {"hand_on": {**terms(settings, part), "origin": origin, "rate_mib": settings.downloads.rate_mib}}


def hubs_turn(settings: HostSettings, part: ChainPart) -> float:
    """Return the seconds without a byte after which a host asks hub or registry: at first no more than may at once.

    The others take from these, once they have something; and one whose sources hand on to another run first waits.
    """
    stall, turn = settings.downloads.stall_timeout, part.index // settings.downloads.parallel
    longest = float(max(stall, LONGEST_TURN))
    return longest if part.waits else min(stall * (1 + turn), longest)


def terms(settings: HostSettings, part: ChainPart, secrets: str = INSIDE) -> dict[str, Any]:
    """Return the arguments of the program that hands on, apart from files, their folder and where they come from.

    secrets: the folder of the run's secrets, as the program sees it.
    """
    allow, listener = [peer.address for peer in part.takers], part.listener
    return {
        "address": listener.address,
        "listen": {"address": listener.address, "port": listener.port, "allow": allow} if allow else None,
        "sources": [{"name": peer.host, "address": peer.address, "port": peer.port} for peer in part.sources],
        "serve_mib": min(filter(None, (part.serve_mib, settings.downloads.rate_mib)), default=None),
        "stall": settings.downloads.stall_timeout,
        "start": START_OF_BUSY if part.waits else START,
        "linger": LINGER,
        "secrets": secrets,
        "tls": settings.downloads.hand_on is not None and settings.downloads.hand_on.tls,
    }


def program() -> str:
    """Return the program that takes files and hands them on, in base64."""
    return packed(*HAND_ON)


def opened(name: str, part: ChainPart | None) -> str:
    """Return lines of a job of this name that open the port to the hosts that take from it, for as long as it runs."""
    if part is None or not part.takers:
        return ""
    functions = host_script(
        "hand_on_port", port=part.listener.port, takers=" ".join(peer.address for peer in part.takers)
    )
    helper = host_script("remove_helper", container=job_container(name), label=HELPER_LABEL)
    undo = f"{functions}{helper}close_port\nremove_helper\nexit 0\n"
    return functions + host_script("hand_on_open", undo=undo)


def of_run(job: Job, name: str, part: ChainPart, hands_on: HandsOn) -> Job:
    """Return a job that knows the other hosts of its run, and no other run's: the next run waits for its end.

    A host that takes from another one does not wait for its turn at the hub, since the next one would wait for it.
    name: the model's or the image's in the run.
    """
    token = hashlib.sha256(f"aim {hands_on.secrets[RUN_TOKEN].unmask()}".encode()).hexdigest()
    at_once = None if part.sources else job.at_once
    secrets = {**job.secrets, **hands_on.secrets}
    takers = tuple(peer.host for peer in part.takers)
    aim = f"{job.script}\n{token[:16]}"
    return replace(job, secrets=secrets, aim=aim, at_once=at_once, transfer=name, takers=takers)


def keeper_job(settings: HostSettings, name: str, image: str, folder: str, source: ModelSource, part: ChainPart) -> Job:
    """Return the job by which a host that has a model hands it on."""
    files = [pin.model_dump() for _, pin in sorted(source.pins.items())]
    spec = {**terms(settings, part), "files": files, "folder": folder, "origin": None, "rate_mib": None}
    values = {"image": image, "folder": folder, "inside": INSIDE, "program": program()}
    text = helper_script("hand_on", job_container(name), **values, spec=json.dumps(spec, sort_keys=True))
    title = f"hand on {source.repository}"
    return Job(name, title, opened(name, part) + text, FETCH_TIMEOUT, code="RW2935", helps=True)
