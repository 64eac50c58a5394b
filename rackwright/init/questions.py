"""Questions of `rackwright init` on a terminal: the hosts, and a profile for each kind of machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rackwright.init.typed_host import TypedHost, typed_host
from rackwright.messages import RackwrightError, counted
from rackwright.profiles import catalog
from rackwright.profiles.catalog import Profile
from rackwright.tables import Column, aligned, shown_width
from rackwright_engines.nearest import nearest

Ask = Callable[[str], str]
HOSTS = "Hosts (USER@ADDRESS ..., Enter for none yet): "
MACHINES = "What are your hosts?"
COLUMNS = [Column(head) for head in ("PROFILE", "MODEL", "ENGINE", "DRAFTING")]
INDENT, WIDTH = 2, 100
"""Of a row, and of a page where no terminal says its own."""


def ask_hosts(ask: Ask) -> list[TypedHost]:
    """Ask for hosts until each that is typed can be one."""
    while True:
        try:
            return [typed_host(text) for text in ask(HOSTS).split()]
        except RackwrightError as error:
            print(error.text)


def ask_machine(ask: Ask) -> tuple[str, ...]:
    """Ask what the hosts are; returns the profiles for such a machine."""
    found: dict[str, list[str]] = {}
    for name in catalog.names():
        found.setdefault(catalog.profile(name).inventory, []).append(name)
    stems = list(found)
    print(f"\n{MACHINES}")
    for number, stem in enumerate(stems, 1):
        print(f"  {number}  {catalog.profile(found[stem][0]).machine}")
    return _by_hosts(found[stems[_number(ask, "Number: ", stems, default=None)]])


def _by_hosts(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: catalog.profile(name).hosts))


def ask_profile(ask: Ask, names: Sequence[str], machine: str) -> str:
    """Ask which of some profiles a kind of machine is to serve; the first one is the default."""
    print(f"\nProfiles for {machine}, the advised one first:")
    print("\n".join(rows_of([catalog.profile(name) for name in names])))
    return names[_number(ask, "Number or name [1]: ", names, default=0)]


def rows_of(profiles: Sequence[Profile]) -> Iterator[str]:
    """Yield a table of profiles with their numbers; what the width has no room for is left out."""
    width = (shown_width() or WIDTH) - INDENT
    tables = [_table(profiles, cells) for cells in (_whole, _without_draft, _engine_alone)]
    table = next((rows for rows in tables if max(map(len, rows)) <= width), tables[-1])
    hosts = 1
    for one, row in zip(profiles, table, strict=True):
        if one.hosts != hosts:
            yield f"  {counted(one.hosts, 'host')} that serve one model together:"
        hosts = one.hosts
        yield f"  {row}"


def _table(profiles: Sequence[Profile], cells: Callable[[Profile], list[str]]) -> list[str]:
    rows = [[f"{number:2}  {one.name}", *cells(one)] for number, one in enumerate(profiles, 1)]
    return aligned(COLUMNS[: len(rows[0])], rows, None)


def _whole(one: Profile) -> list[str]:
    return [*_without_draft(one), _drafting(one)]


def _without_draft(one: Profile) -> list[str]:
    return [_model(one), f"{one.engine} {one.version}"]


def _engine_alone(one: Profile) -> list[str]:
    return [_model(one), one.engine]


def _model(one: Profile) -> str:
    return one.model.rpartition("/")[2]


def _drafting(one: Profile) -> str:
    """Return the draft without its tokens."""
    return one.drafting.partition(",")[0] or "-"


def _number(ask: Ask, question: str, names: Sequence[str], default: int | None) -> int:
    """Ask for one of some names, by number or name, until it is one."""
    while True:
        text = ask(question).strip()
        if not text and default is not None:
            return default
        if text in names:
            return names.index(text)
        if text.isdecimal() and 1 <= int(text) <= len(names):
            return int(text) - 1
        print(f"a number from 1 to {len(names)}{nearest(text, names)}")
