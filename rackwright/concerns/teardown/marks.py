"""Objects on a host with Rackwright's mark, whatever its ownership record lists: the candidates of a teardown.

One command reads all of it, before a teardown and after it. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rackwright.concerns.firewall.rule_table import TAG
from rackwright.concerns.image import ADDRESS, NAMES_TAG
from rackwright.concerns.models import is_share
from rackwright.hostside import host_script, store_functions
from rackwright.messages import ReadingError
from rackwright.paths import ENDPOINT_LABEL, ETC, HELPER_LABEL, RUN, STATE, UNITS, WRITTEN
from rackwright.plan.change import Owned

RULES = Owned("rule", f"{TAG}*")
OURS = "ours"
APT_SOURCES = ("/etc/apt/keyrings/", "/etc/apt/sources.list.d/")


@dataclass(frozen=True)
class Marks:
    """Traces of Rackwright on a host."""

    record: bool = True
    """True if the ownership record exists."""
    docker: Literal["up", "down", "absent"] = "absent"
    marked: frozenset[Owned] = frozenset()
    """Objects that are certainly Rackwright's."""
    foreign: tuple[str, ...] = ()
    """Units and containers with a name like Rackwright's, and without a mark."""
    rules: Mapping[str, int] = field(default_factory=dict)
    """Number of Rackwright's rules that each command shows."""
    folders: tuple[str, ...] = ()
    """Rackwright's folders that contain more than a lease needs."""
    models: tuple[str, ...] = ()
    """Folders at the paths of models in the record."""
    shared: frozenset[str] = frozenset()
    """Those of them on a file system that several hosts may have mounted, unfinished downloads included."""
    images: frozenset[str] = frozenset()
    """Images in the record, as far as Docker has them."""
    manifests: tuple[str, ...] = ()
    """Folders with the manifest that Rackwright writes into a verified model."""
    data: bool = False
    """True if Docker's data exist without Docker."""
    unseen: tuple[str, ...] = ()
    """Objects that could not be read, and why."""

    @property
    def nothing(self) -> bool:
        """True if the host has no trace of Rackwright."""
        return not (self.marked or self.folders or self.record)


def read_script(record: Iterable[Owned], models_dir: str) -> str:
    """Return shell lines that print the marks; they change nothing.

    record: entries of the ownership record. models_dir: the settings' folder of models.
    """
    owned = sorted(record)
    return store_functions() + host_script(
        "marks_read",
        units=UNITS,
        state=STATE,
        etc=ETC,
        run=RUN,
        models=models_dir,
        written=WRITTEN,
        tag=TAG,
        names_tag=NAMES_TAG,
        address=ADDRESS,
        endpoint_label=ENDPOINT_LABEL,
        helper_label=HELPER_LABEL,
        places="\n".join(one.name for one in owned if one.kind == "model"),
        images="\n".join(one.name for one in owned if one.kind == "image"),
    )


def parse(lines: Iterable[str]) -> Marks:
    """Parse the script's output. Raises ReadingError when it is cut short or invalid."""
    rows = [row.split(" ") for row in lines if row.strip()]
    if ["end"] not in rows:
        raise ReadingError("the reading of Rackwright's marks broke off", code="RW3501")
    by_kind: dict[str, list[list[str]]] = defaultdict(list)
    for kind, *words in rows:
        by_kind[kind].append(words)
    try:
        return _marks_of(by_kind)
    except (ValueError, IndexError) as error:
        raise ReadingError(f"the reading of Rackwright's marks broke off: {error}", code="RW3501") from error


def _marks_of(by_kind: Mapping[str, list[list[str]]]) -> Marks:
    return Marks(
        record=["yes"] in by_kind["record"],
        docker=_docker(by_kind["docker"]),
        marked=frozenset(_marked(by_kind)),
        foreign=tuple(f"{kind} {name}" for kind, name in _named(by_kind, OURS, False)),
        rules={words[0]: int(words[1]) for words in by_kind["rules"]},
        folders=_firsts(by_kind["folder"]),
        models=_firsts(by_kind["model"]),
        shared=frozenset(path for path, *store in by_kind["model"] if not any(store) or is_share(store[0])),
        images=frozenset(_firsts(by_kind["image"])),
        manifests=_firsts(by_kind["manifest"]),
        data=bool(by_kind["data"]),
        unseen=tuple(" ".join(words) for words in by_kind["unseen"]),
    )


def _docker(rows: list[list[str]]) -> Literal["up", "down", "absent"]:
    state = rows[0][0] if rows else "absent"
    return "up" if state == "up" else "down" if state == "down" else "absent"


def _firsts(rows: Iterable[list[str]]) -> tuple[str, ...]:
    return tuple(words[0] for words in rows)


def _marked(by_kind: Mapping[str, list[list[str]]]) -> Iterable[Owned]:
    for kind in ("job", "names", "link", "scratch", "aside", "hold"):
        yield from (Owned(kind, words[0]) for words in by_kind[kind])
    for [path] in by_kind["file"]:
        yield Owned("apt_source" if path.startswith(APT_SOURCES) else "file", path)
    yield from (Owned(kind, name) for kind, name in _named(by_kind, OURS, True))
    if by_kind["rules"]:
        yield RULES


def _named(by_kind: Mapping[str, list[list[str]]], mark: str, marked: bool) -> Iterable[tuple[str, str]]:
    """Return units and containers by name that have the mark, or do not have it."""
    for unit, label in by_kind["unit"]:
        if (label == mark) == marked:
            yield "unit", unit
    for _, name, label in by_kind["container"]:
        if (label == mark) == marked:
            yield "container", name
