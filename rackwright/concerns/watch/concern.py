"""The watch of a host's endpoints between two deploys: its files and its units, as wanted and as seen. Pure.

A site whose deploy.py does not call watch() is not managed here, and its hosts work as before.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rackwright.concerns.watch.act_questions import missing_questions, store_questions
from rackwright.concerns.watch.files import LEFT, all_files, enabled_units
from rackwright.concerns.watch.units import CHECKS, RUNNER, WATCHED
from rackwright.concerns.watch.word import WORD_FILES, refusals
from rackwright.hostside import host_script, host_text
from rackwright.messages import few
from rackwright.paths import (
    ACTS,
    ENGINE_STATES,
    ETC,
    EVENTS_SENT,
    MARKS,
    NOTIFY_UNIT,
    UNITS,
    WATCH_UNITS,
    WORD_UNITS,
    act_unit,
    word_unit,
)
from rackwright.plan.answers import Answers
from rackwright.plan.change import Change, Owned, Shell, Step, WriteFile
from rackwright.plan.concern import Concern, HostReading
from rackwright.plan.reading import files, lines_of
from rackwright.settings.host_settings import ENDPOINTS, HostSettings
from rackwright.settings.secret import Secret

READ_UNITS = (*WATCH_UNITS, WORD_UNITS[0], NOTIFY_UNIT, word_unit("0"), act_unit("0"))
"""Units whose state and drop-ins are read; systemd shows those of a template for one of its instances alone."""
IPV6_DIGITS = 32
OWN_FOLDERS = (WATCHED,)
"""Folders in which nothing but the wanted files stays."""


@dataclass(frozen=True)
class WatchFile:
    """A file on the host: its SHA-256, its mode and its owner."""

    sha256: str
    mode: str


@dataclass(frozen=True)
class SeenWatch:
    """The watch's files on the host by path, and the units that are enabled and active."""

    files: Mapping[str, WatchFile] = field(default_factory=dict)
    last_sums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by path, as the last deploy wrote the files."""
    running: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    """The host's own, without loopback."""

    @property
    def edited(self) -> list[str]:
        """Paths that are not as the last deploy left them."""
        return [path for path, sha256 in self.last_sums.items() if self._sha256(path) != sha256]

    @property
    def stopped(self) -> list[str]:
        """Units that the last deploy enabled, and that are no longer enabled and active."""
        return [unit for unit in enabled_units(self.last_sums) if unit not in self.running]

    def _sha256(self, path: str) -> str:
        return self.files[path].sha256 if path in self.files else ""


def read(_: HostSettings) -> str:
    """Print SHA-256, mode and path of each file, and what the last deploy left."""
    return host_script("watch_files_read", etc=ETC, units=UNITS, left=LEFT)


def joined(output: str, answers: Answers) -> str:
    """Return the lines with the units that are enabled and active."""
    up = [unit for unit in READ_UNITS if answers.is_active(unit) and answers.unit(unit, "UnitFileState") == "enabled"]
    return "\n".join([output, *(f"running {unit}" for unit in up)])


def parse(output: str) -> SeenWatch:
    """Parse the lines."""
    rows = [row.split(" ") for row in lines_of(output)]
    listed = [row.split(" ", 1) for row in (files(output).get(LEFT) or "").splitlines()]
    return SeenWatch(
        {row[3]: WatchFile(row[1], row[2]) for row in rows if row[0] == "watched"},
        {row[1]: row[0] for row in listed if len(row) > 1},
        frozenset(row[1] for row in rows if row[0] == "running"),
        frozenset(_address(row[1]) for row in rows if row[0] == "address"),
    )


def _address(text: str) -> str:
    """Return an address as it is written; the kernel lists those of IPv6 as 32 hexadecimal digits."""
    return str(ipaddress.IPv6Address(int(text, 16))) if len(text) == IPV6_DIGITS else text


@dataclass(frozen=True)
class WantedWatch:
    """The wanted files by path."""

    files: Mapping[str, str | Secret]
    questions: Mapping[str, Secret] = field(default_factory=dict)
    """Questions of proven releases that are not on the host."""
    refusals: tuple[Change, ...] = ()
    """The reason for which the word cannot have its port."""

    @property
    def sums(self) -> dict[str, str]:
        """SHA-256 of each file."""
        return {path: hashlib.sha256(_plain(text).encode()).hexdigest() for path, text in self.files.items()}

    @property
    def sums_list(self) -> str:
        """The list that stays on the host."""
        return "".join(f"{sha256} {path}\n" for path, sha256 in sorted(self.sums.items()))


def _plain(text: str | Secret) -> str:
    return text.unmask() if isinstance(text, Secret) else text


def _mode(text: str | Secret) -> str:
    return "0600" if isinstance(text, Secret) else "0644"


def wanted(settings: HostSettings, reading: HostReading) -> WantedWatch:
    """Return the wanted files; without the firewall's rules everybody could ask for the word, so it is left out."""
    closes = reading.managed is None or "firewall" in reading.managed
    on_host: SeenWatch = reading.by_concern.get("watch", SeenWatch())
    files = all_files(settings, on_host.addresses)
    stay = files if closes else {path: text for path, text in files.items() if path not in WORD_FILES}
    return WantedWatch(stay, missing_questions(settings, reading), tuple(refusals(settings) if closes else ()))


def changes(wanted: WantedWatch, reading: SeenWatch) -> list[Change]:
    """Write what differs, remove what is not wanted, and let timers and sockets run."""
    return list(wanted.refusals) or [*store_questions(wanted.questions), *_files(wanted, reading)]


def _files(wanted: WantedWatch, reading: SeenWatch) -> list[Change]:
    differing = [path for path, sha256 in wanted.sums.items() if not _is_there(path, sha256, wanted, reading)]
    surplus = sorted(_surplus(wanted, reading))
    idle = [unit for unit in enabled_units(wanted.files) if unit not in reading.running]
    if not (differing or surplus or idle or reading.last_sums != wanted.sums):
        return []
    steps: list[Step] = [Shell(_removal(path)) for path in surplus]
    steps += [WriteFile(path, wanted.files[path], _mode(wanted.files[path])) for path in differing]
    steps.append(WriteFile(LEFT, wanted.sums_list, "0600"))
    restarted = [path.removeprefix(f"{UNITS}/") for path in differing if path.endswith((".timer", ".socket"))]
    starts = {"enabled": " ".join(enabled_units(wanted.files)), "restarted": " ".join(restarted)}
    steps.append(Shell(host_script("watch_start", **starts)))
    return [
        Change(
            "let the host look at its endpoints between two deploys",
            _why(differing, surplus, idle),
            tuple(steps),
            owns=tuple(_entry(path) for path in wanted.files if path not in _FOREIGN),
            disowns=tuple(_entry(path) for path in surplus),
            by_itself=bool(reading.edited or reading.stopped),
        )
    ]


def _removal(path: str) -> str:
    folder, _, name = path.rpartition("/")
    remove = host_script("watch_unit_remove", path=path, units=UNITS)
    if folder != WATCHED:
        return remove
    folders = {"states": ENGINE_STATES, "acts": ACTS, "marks": MARKS, "sent": EVENTS_SENT}
    return host_text("tell.sh") + host_script("watch_forget", endpoint=name, **folders) + remove


_FOREIGN = (RUNNER, f"{CHECKS}/kept-port")
"""Files that the firewall has as well, and that go with the folder."""


def _entry(path: str) -> Owned:
    name = path.removeprefix(f"{UNITS}/")
    return Owned("file", path) if name == path or "/" in name else Owned("unit", name)


def _is_there(path: str, sha256: str, wanted: WantedWatch, reading: SeenWatch) -> bool:
    mode = f"{int(_mode(wanted.files[path]), 8):o}:root"
    return reading.files.get(path) == WatchFile(sha256, mode)


def _surplus(wanted: WantedWatch, reading: SeenWatch) -> Iterator[str]:
    """Yield what an earlier deploy wrote and is no longer wanted, and what else is in a folder of the watch's own."""
    for path in reading.files:
        ours = path in reading.last_sums or path.startswith(tuple(f"{folder}/" for folder in OWN_FOLDERS))
        if ours and path not in wanted.files:
            yield path


def _why(differing: list[str], surplus: list[str], idle: list[str]) -> str:
    if differing:
        return f"{few(differing)} differ or are missing"
    if surplus:
        return f"{', '.join(surplus)} belong to nothing that is looked at now"
    return f"{', '.join(idle)} is not enabled and active" if idle else "the list of its files is not as it was left"


def as_left(reading: SeenWatch) -> bool:
    """Return True if files and units are as the last deploy left them."""
    return not (reading.edited or reading.stopped)


TAKES = frozenset({ENDPOINTS, "watch", "rollout", "notify", "proxy", "word"})
"""Sections of the settings that it is handed."""
WATCH: Concern[WantedWatch, SeenWatch] = Concern(
    "watch",
    read,
    parse,
    wanted,
    changes,
    files=lambda settings: {path: str(text) for path, text in all_files(settings).items()},
    alone=True,
    takes=TAKES,
    units=READ_UNITS,
    joined=joined,
)
