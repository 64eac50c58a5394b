"""The caches of chosen hosts, read side by side; as a table, as lines below it, and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from rackwright.concerns.caches import seen
from rackwright.concerns.caches.entries import ENCODING, HUB, OURS, CacheEntry, entries_of
from rackwright.concerns.caches.spare import SpareOfHost, spare_of
from rackwright.inspect.plan_text import bytes_text
from rackwright.inspect.read_hosts import Surveyed, survey
from rackwright.messages import counted, paragraph
from rackwright.plan.answers import image_sizes
from rackwright.plan.concern import SHARED
from rackwright.tables import Column, drawn, only

COLUMNS = (
    Column("host"),
    Column("kind", 4),
    Column("what"),
    Column("size"),
    Column("for", 2, 12),
    Column("verified", 3),
    Column("whose", 5),
    Column("path", 1),
)
AT_EACH_READING = "at each reading"
"""The time of verification of an encoding that no fetch of Rackwright's has left a note of."""
_ENGINE = SHARED[1]


@dataclass(frozen=True)
class HostCaches:
    """The caches of one host, or why they are not known."""

    host: str
    entries: tuple[CacheEntry, ...] = ()
    spare: SpareOfHost = field(default_factory=SpareOfHost)
    error: str = ""


def caches_of(inventory: str, limit: Sequence[str], only: Sequence[str] = ()) -> list[HostCaches]:
    """Read every chosen host. Raises RackwrightError as `survey` does."""
    found = survey(inventory, limit, lambda settings: {seen.SECTION: seen.read(settings)}, only, whole=True)
    return [_of(one) for one in found]


def _of(one: Surveyed) -> HostCaches:
    if one.reading is None:
        return HostCaches(one.name, error=one.trouble)
    caches = seen.parse(one.sections[seen.SECTION].output)
    sizes = image_sizes(one.sections[_ENGINE].output)
    named = {f"{repository}@{digest}": size for (repository, digest), size in sizes.items()}
    return HostCaches(
        one.name,
        entries_of(one.settings, one.reading, caches, sizes),
        spare_of(one.settings, one.reading, caches.unfinished, named),
    )


def table(hosts: Sequence[HostCaches], width: int | None, names: Sequence[str] = ()) -> str:
    """Return a row an entry. width: the terminal's. names: of the columns; none for all."""
    rows = [_cells(host.host, entry) for host in hosts for entry in host.entries]
    return drawn(*only(COLUMNS, rows, names), width)


def _cells(host: str, entry: CacheEntry) -> list[str]:
    size = "?" if entry.size is None else bytes_text(entry.size)
    needed = ", ".join(entry.needed_by) or "-"
    cells = (host, entry.kind, entry.name, size, needed, when(entry), entry.whose, entry.path)
    return [paragraph(cell).replace("\n", " ") for cell in cells]


def when(entry: CacheEntry) -> str:
    """Return when an entry was verified last, in UTC."""
    if entry.trouble:
        return "no"
    if entry.verified is None:
        return AT_EACH_READING if entry.kind == ENCODING else "-"
    return f"{datetime.fromtimestamp(entry.verified, UTC):%Y-%m-%d %H:%M}"


def lines(hosts: Sequence[HostCaches]) -> Iterator[str]:
    """Yield what is not as it should be, and sums."""
    for host in hosts:
        if host.error:
            yield f"{host.host}: {host.error}"
        broken = [entry for entry in host.entries if entry.trouble]
        yield from (f"{host.host}: {entry.path}: {entry.trouble}" for entry in broken)
        yield from (f"{host.host}: {text}" for text in host.spare.held)
    yield summed_up(hosts)


def summed_up(hosts: Sequence[HostCaches]) -> str:
    """Return the bytes of all hosts, those that can go, and the next commands."""
    read = [host for host in hosts if not host.error]
    entries = _once(entry for host in read for entry in host.entries)
    parts = [f"{counted(len(read), 'host')}: {total(entry.size for entry in entries)}"]
    if hub := [entry for entry in entries if entry.kind == HUB]:
        parts.append(f"of these {total(entry.size for entry in hub)} in users' hub caches, which are left alone")
    if spare := [one for host in read for one in host.spare.spare]:
        parts.append(f"{total(one.size for one in spare)} that nothing needs; next: rackwright cache prune INVENTORY")
    if any(entry.trouble for entry in entries if entry.whose == OURS):
        parts.append("files that are not as verified; next: rackwright cache repair INVENTORY")
    return "; ".join(parts)


def _once(entries: Iterable[CacheEntry]) -> list[CacheEntry]:
    """Return entries, one on a share once, whatever the number of hosts that have it mounted."""
    found: list[CacheEntry] = []
    paths = set[str]()
    for entry in entries:
        if not (entry.shared and entry.path in paths):
            found.append(entry)
        if entry.shared:
            paths.add(entry.path)
    return found


def total(sizes: Iterable[int | None]) -> str:
    """Return a sum of bytes for people; of what could not be counted it is less than there is."""
    counted_sizes = list(sizes)
    least = "at least " if None in counted_sizes else ""
    return f"{least}{bytes_text(sum(size or 0 for size in counted_sizes))}"


def cache_values(hosts: Sequence[HostCaches]) -> dict[str, Any]:
    """Return the same for `--json`."""
    return {"version": 1, "hosts": [_values(host) for host in hosts]}


def _values(host: HostCaches) -> dict[str, Any]:
    spare = [{"name": one.name, "size": one.size, "what": one.change.what} for one in host.spare.spare]
    entries = [asdict(entry) for entry in host.entries]
    return {"host": host.host, "error": host.error, "entries": entries, "spare": spare, "held": list(host.spare.held)}
