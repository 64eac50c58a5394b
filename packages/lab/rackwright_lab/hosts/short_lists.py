"""Package lists that name what lab hosts install, and nothing else of Debian: a layer over a base system.

apt reads all of its lists at each call. With Debian's 63,000 packages a call takes half a second of a core, and a
changed source a whole one; a run of all tests calls it a thousand times. `apt-get update` finds the lists up to date,
and fetches whole ones when its archive has changed. The larger packages are in the layer without compression.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rackwright_lab.hosts.base import FETCHED
from rackwright_lab.hosts.plain_packages import as_stored, store
from rackwright_lab.machine import locks
from rackwright_lab.machine.trees import remove_tree

GATEWAYS = ("haproxy", "curl", "keepalived", "nftables", "uacme", "openssl")
WANTED = (*FETCHED, "tree", "ufw", "firewalld", "iptables-persistent", "grub2-common", *GATEWAYS)
"""What lab hosts install in addition to what is there, or what tests install on them."""
LISTS = "var/lib/apt/lists"
ARCHIVE = "var/cache/apt/archives"
STATUS = "var/lib/dpkg/status"
# Raise it when the making of the layer changes in a way that WANTED does not show.
FORMAT = 2
_NAME = r"(?:^|[,|] )([a-z0-9][a-z0-9+.-]*)"


@dataclass
class Packages:
    """What lists say of all packages, by name."""

    needs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    providers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Of a name that belongs to no real package."""

    def add(self, stanza: str) -> None:
        """Take in one package's entry."""
        name = name_of(stanza)
        self.needs[name] |= _named(r"(?:Pre-)?Depends", stanza)
        for provided in _named("Provides", stanza):
            self.providers[provided].add(name)

    def closure(self, names: Iterable[str]) -> set[str]:
        """Return these packages and all that they may need, with every alternative."""
        found, todo = set[str](), list(names)
        while todo:
            if (name := todo.pop()) not in found:
                found.add(name)
                todo.extend(self.needs.get(name) or self.providers.get(name, set()))
        return found


def over(lower: str, cache: Path) -> str:
    """Return the layers of a base system, as overlay's lowerdir, with short lists above; the cache keeps those."""
    layers = [Path(layer) for layer in lower.split(":")]
    contents = json.dumps([FORMAT, [layer.name for layer in layers], WANTED])
    folder = cache / "base" / f"lists-{hashlib.sha256(contents.encode()).hexdigest()[:12]}"
    with locks.only_one(folder.name):
        if not folder.exists():
            _make(layers, folder)
    return f"{folder}:{lower}"


def _make(layers: list[Path], folder: Path) -> None:
    lists = {file.name: file.read_text() for file in (layers[-1] / LISTS).iterdir() if file.name.endswith("_Packages")}
    names = kept_of(lists, _installed(layers))
    partial = folder.with_suffix(".partial")
    remove_tree(partial)
    target = partial / LISTS
    target.mkdir(parents=True)
    sums = store(layers[-1] / ARCHIVE, partial / ARCHIVE)
    for name, text in shortened(lists, names, sums).items():
        (target / name).write_text(text)
    for file in (layers[-1] / LISTS).glob("*_Translation-*"):
        (target / file.name).write_text("")
    partial.rename(folder)


def _installed(layers: list[Path]) -> set[str]:
    status = next(file for layer in layers if (file := layer / STATUS).exists())
    return {name_of(stanza) for stanza in stanzas(status.read_text())}


def kept_of(lists: Mapping[str, str], installed: Iterable[str]) -> set[str]:
    """Names of the packages that stay in lists, by file."""
    packages = Packages()
    for text in lists.values():
        for stanza in stanzas(text):
            packages.add(stanza)
    return packages.closure({*WANTED, *installed})


def shortened(lists: Mapping[str, str], names: set[str], sums: Mapping[str, str]) -> dict[str, str]:
    """Return the lists with these packages alone, by file; sums: of packages that are stored otherwise."""
    return {
        file: "".join(f"{as_stored(stanza, sums)}\n\n" for stanza in stanzas(text) if name_of(stanza) in names)
        for file, text in lists.items()
    }


def stanzas(text: str) -> Iterator[str]:
    """Return the entries of a list."""
    return (stanza for stanza in text.strip("\n").split("\n\n") if stanza)


def name_of(stanza: str) -> str:
    """Return the name of an entry's package."""
    found = re.search(r"^Package: (\S+)", stanza, re.MULTILINE)
    return found[1] if found else ""


def _named(key: str, stanza: str) -> set[str]:
    return {name for value in re.findall(rf"^{key}: (.*)$", stanza, re.MULTILINE) for name in re.findall(_NAME, value)}
