"""A run's bundle: verified once, served by a process of its own until the run ends, and led to from each host."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.adapter.concurrency import new_lock
from rackwright.adapter.host import Host
from rackwright.adapter.run_context import part_of
from rackwright.adapter.ssh.way_back import NoWayBackError, lead_back
from rackwright.bundle.catalog import Catalog
from rackwright.bundle.checking import opened, refuse_other_lock
from rackwright.bundle.contents import contents_of
from rackwright.messages import RackwrightError, printable
from rackwright.processes import module
from rackwright.settings.host_settings import HostSettings

SERVER = "rackwright.bundle.serve"


@dataclass
class ServedBundle:
    """One bundle of a run."""

    catalog: Catalog
    process: subprocess.Popen[str]
    port: int


@dataclass
class Bundles:
    """Those of a run, by folder and key. Their processes end with this one, whose pipes they read."""

    served: dict[tuple[Path, str | None], ServedBundle | RackwrightError] = field(default_factory=dict)
    fitting: dict[int, HostSettings] = field(default_factory=dict)
    """Settings of which the bundle holds everything, by identity: hosts have theirs for the whole run."""
    lock: Any = field(default_factory=new_lock)


def lead_to_bundle(host: Host, settings: HostSettings, fetches: bool = True) -> None:
    """Let a host reach the bundle of its settings, if it has one. Raises RackwrightError saying why it cannot.

    fetches: False for a command that only looks: a run that is under way has the host's port, and is looked at so.
    """
    if not settings.bundle.folder:
        return
    bundles = part_of(host.state, Bundles)
    with bundles.lock:
        served = _served(bundles, settings)
        if id(settings) not in bundles.fitting:
            refuse_other_lock(folder_of(settings), served.catalog, contents_of({host.name: settings}, ()))
            bundles.fitting[id(settings)] = settings
    try:
        lead_back(host, settings.bundle.port, served.port)
    except NoWayBackError:
        if fetches:
            raise


def folder_of(settings: HostSettings) -> Path:
    """Return the folder of a host's bundle on this machine."""
    return (settings.site / Path(settings.bundle.folder or "").expanduser()).resolve()


def _served(bundles: Bundles, settings: HostSettings) -> ServedBundle:
    key = folder_of(settings), settings.bundle.public_key
    if key not in bundles.served:
        try:
            bundles.served[key] = _serve(*key)
        except RackwrightError as error:
            bundles.served[key] = error
    found = bundles.served[key]
    if isinstance(found, RackwrightError):
        raise found
    return found


def _serve(folder: Path, public_key: str | None) -> ServedBundle:
    catalog = opened(folder, public_key)
    if public_key is None:
        text = f"the bundle in {folder} is used without a look at its signature: bundle.public_key is not set"
        print(printable(f"rackwright: {text}"), file=sys.stderr, flush=True)
    words = [*module(SERVER), str(folder)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    if not port.isdecimal():
        text = f"the bundle's server ended at once, with {process.wait()}"
        raise RackwrightError(f"{text}; next: rackwright bundle INVENTORY --verify {folder}", code="RW3883")
    return ServedBundle(catalog, process, int(port))
