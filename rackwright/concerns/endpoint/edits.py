"""Edits by hand that a release's own files do not show: drop-ins, a unit file in its place, another command. Pure.

systemd runs a unit with all of its fragments, and a container runs what its `docker run` was given, so both are held
against the release. The settings list an owner's drop-ins in `releases.drop_ins`, and the record keeps its SHA-256.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from pathlib import PurePosixPath

from rackwright.paths import OWN_DROP_INS, UNITS, unit_name
from rackwright.plan.change import Change, Owned, Refuse
from rackwright.plan.directives import RUNNING

KIND = "drop_in"
"""Kind of the record's entries for accepted drop-ins: `PATH SHA256`."""
STARTS = re.compile(
    r"(Exec\w+|Environment\w*|PassEnvironment|UnsetEnvironment|Type|User|Group|DynamicUser|Root\w+|WorkingDirectory|"
    r"Bind\w*Paths|Mount\w+|TemporaryFileSystem|KillMode|KillSignal|Restart\w*|Timeout\w+|RemainAfterExit|PIDFile)\Z"
)
"""Directives that change what runs, or when it starts and stops: a switch would not prove the release alone."""
EVERY = "service"
"""The unit of a drop-in for all services: `/etc/systemd/system/service.d/`."""
_DIRECTIVE = re.compile(r"^[ \t]*(\w+)[ \t]*=", re.MULTILINE)
_DOCKER_RUN = ("docker", "run")
MOST_NAMED = 6


@dataclass(frozen=True)
class DropIn:
    """A drop-in of a Rackwright unit that Rackwright did not write."""

    path: str
    sha256: str
    directives: tuple[str, ...]

    @property
    def unit(self) -> str:
        """The unit, or the beginning of the units' names, that it applies to."""
        return PurePosixPath(self.path).parent.name.removesuffix(".d")

    @property
    def entry(self) -> Owned:
        """The record's entry for a drop-in that was accepted as is."""
        return Owned(KIND, f"{self.path} {self.sha256}")

    def applies_to(self, unit: str) -> bool:
        """Return True if systemd reads it for a unit: `rackwright-.service.d` is for all whose names begin so."""
        stem, dot, kind = self.unit.rpartition(".")
        if self.unit == EVERY:
            return unit.endswith(".service")
        return self.unit == unit or (stem.endswith("-") and unit.startswith(stem) and unit.endswith(f"{dot}{kind}"))

    @property
    def starts(self) -> tuple[str, ...]:
        """Its directives that change what is started."""
        counts = re.compile(RUNNING) if self.unit == EVERY else STARTS
        return tuple(name for name in self.directives if counts.fullmatch(name))

    @property
    def way_out(self) -> str:
        """The two ways to end the difference."""
        name = PurePosixPath(self.path).name
        return (
            f"next: rm {self.path} && systemctl daemon-reload on the host; or keep it: "
            f"releases: {{drop_ins: [{name}]}} in group_vars"
        )


def is_named(path: str, names: Collection[str]) -> bool:
    """Return True if the settings name a drop-in, by its file name or its path."""
    return path in names or PurePosixPath(path).name in names


def foreign_drop_ins(paths: str) -> Iterator[str]:
    """Drop-ins of Rackwright's units alone that Rackwright did not write, from systemd's DropInPaths."""
    for path in map(PurePosixPath, paths.split()):
        if path.parent.name.startswith("rackwright") and path.name not in OWN_DROP_INS:
            yield str(path)


@dataclass(frozen=True)
class SeenEdits:
    """Drop-ins of Rackwright's units by path, and unit files that systemd reads instead of Rackwright's, by unit."""

    drop_ins: Mapping[str, DropIn] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)


def is_meant(reading: SeenEdits, names: Collection[str], unit: str) -> bool:
    """Return True if an owner's drop-in decides what a unit starts, so its release alone does not say what runs."""
    return any(one.applies_to(unit) and is_named(one.path, names) and one.starts for one in reading.drop_ins.values())


def drop_in(path: str, sha256: str, text: str) -> DropIn:
    """Return a drop-in as it was read."""
    return DropIn(path, sha256, tuple(dict.fromkeys(_DIRECTIVE.findall(text))))


def unnamed(reading: SeenEdits, names: Collection[str]) -> list[DropIn]:
    """Return the drop-ins that the settings do not name."""
    return [
        one for one in reading.drop_ins.values() if not is_named(one.path, names) and (one.unit != EVERY or one.starts)
    ]


def hand_edits(reading: SeenEdits, names: Collection[str], record: frozenset[Owned]) -> Iterator[str]:
    """Return sentences for drift: unlisted or changed drop-ins, and units that systemd reads elsewhere."""
    for one in unnamed(reading, names):
        what = ", ".join(one.directives[:MOST_NAMED]) or "nothing"
        yield f"{one.path} is not Rackwright's and sets {what} of {one.unit}; {one.way_out}"
    for one in reading.drop_ins.values():
        if is_named(one.path, names) and one.entry not in record and _accepted(one.path, record):
            yield f"{one.path} was changed since the deploy that accepted it (releases.drop_ins)"
    for path in sorted(_accepted_paths(record) - reading.drop_ins.keys()):
        yield f"{path}, which releases.drop_ins names, is gone"
    for unit, path in reading.elsewhere.items():
        yield f"systemd reads {path} in place of {UNITS}/{unit}; {_unshadow(unit, path)}"


def edit_changes(
    reading: SeenEdits, names: Collection[str], record: frozenset[Owned], endpoints: Iterable[str]
) -> list[Change]:
    """Return refusals of what would start in place of a release, and drop-ins to accept into the record."""
    units = {unit_name(name) for name in endpoints}
    found = [
        _refused(one.unit, f"{one.path} is not Rackwright's and sets {', '.join(one.starts)}: {one.way_out}")
        for one in unnamed(reading, names)
        if one.starts and any(map(one.applies_to, units))
    ]
    found += [
        _refused(unit, f"systemd reads {path} in place of {UNITS}/{unit}; {_unshadow(unit, path)}")
        for unit, path in reading.elsewhere.items()
        if unit in units
    ]
    return found or _accepting(reading, names, record)


def _accepting(reading: SeenEdits, names: Collection[str], record: frozenset[Owned]) -> list[Change]:
    new = [one for one in reading.drop_ins.values() if is_named(one.path, names) and one.entry not in record]
    accepted = {one.entry for one in reading.drop_ins.values() if is_named(one.path, names)}
    old = {entry for entry in record if entry.kind == KIND} - accepted
    changes = [
        Change(f"accept {one.path} as it is now", "releases.drop_ins names it", (), owns=(one.entry,)) for one in new
    ]
    gone = tuple(sorted(old))
    return changes + (
        [Change("forget drop-ins that are gone or changed", _paths(gone), (), disowns=gone)] if gone else []
    )


def _paths(entries: Iterable[Owned]) -> str:
    return ", ".join(entry.name.rpartition(" ")[0] for entry in entries)


def _accepted(path: str, record: frozenset[Owned]) -> bool:
    return path in _accepted_paths(record)


def _accepted_paths(record: frozenset[Owned]) -> set[str]:
    return {entry.name.rpartition(" ")[0] for entry in record if entry.kind == KIND}


def _refused(unit: str, text: str) -> Change:
    return Change(f"leave {unit} alone", "it was edited by hand", (Refuse(text, code="RW2467"),))


def _unshadow(unit: str, path: str) -> str:
    if path == "/dev/null":
        return f"next: systemctl unmask {unit} on the host"
    return f"next: rm {path} && systemctl daemon-reload on the host"


def command_edits(release: Sequence[str], started: Sequence[str]) -> str:
    """Return the options in which the `docker run` that was started differs from a release's, by name; empty when none.

    Values are not shown: an edit by hand may hold a key. Also empty where either is not a `docker run`: then it cannot
    be judged.
    """
    wanted, running = _docker_run(release), _docker_run(started)
    if not wanted or not running or _matches(wanted, running):
        return ""
    plain = [argument for argument in wanted if "${" not in argument and not argument.startswith(SPLIT)]
    remaining = Counter(running)
    remaining.subtract(plain)
    patterns = [re.compile(_pattern(argument), re.DOTALL) for argument in wanted if argument not in plain]
    more = [
        argument
        for argument in running
        if remaining[argument] > 0 and not any(pattern.fullmatch(f"{argument}\n") for pattern in patterns)
    ]
    fewer = [argument for argument in plain if remaining[argument] < 0]
    parts = [f"{sign} {names}" for sign, names in (("with", _named(more)), ("without", _named(fewer))) if names]
    return ", ".join(parts) or "with its options in another order"


def _docker_run(words: Sequence[str]) -> list[str]:
    """Return the arguments from `docker run` on; what precedes them, such as a shell, does not reach Docker."""
    for index, pair in enumerate(pairwise(words)):
        if (PurePosixPath(pair[0]).name, pair[1]) == _DOCKER_RUN:
            return list(words[index + 2 :])
    return []


def _matches(wanted: Sequence[str], running: Sequence[str]) -> bool:
    text = "".join(f"{argument}\n" for argument in running)
    return re.fullmatch("".join(map(_pattern, wanted)), text) is not None


def _pattern(argument: str) -> str:
    """Return a pattern for an argument of a unit: `${NAME}` is any value, a splitting one any number of arguments."""
    if argument.startswith(SPLIT):
        return r"(?:[^\n]*\n)*"
    return r"[^\n]*".join(map(re.escape, re.split(r"\$\{\w+\}", argument))) + r"\n"


def _named(words: Sequence[str]) -> str:
    """Return options and names of variables among some arguments, never a value."""
    names = dict.fromkeys(filter(None, map(_name, words)))
    shown = list(names)[:MOST_NAMED]
    return ", ".join(shown) + (
        " and more" if len(names) > MOST_NAMED else "" if names else "other values" * bool(words)
    )


def _name(argument: str) -> str:
    if argument.startswith("-"):
        return "" if argument == "--env" else argument.partition("=")[0]  # the variable says more
    variable = re.match(r"([A-Z_][A-Z0-9_]*)=", argument)
    return variable[1] if variable else ""


def exec_words(unit: str) -> list[str]:
    """Return the arguments of a unit's ExecStart as systemd reads them, variables replaced; empty where it has none."""
    text = unit.replace("\\\n", " ")
    lines = [row.removeprefix("ExecStart=") for row in text.split("\n") if row.startswith("ExecStart=")]
    return [_word(found) for found in _WORD.findall(lines[-1])] if lines else []


SPLIT = "\0"
"""Begins an argument that is `$NAME` alone: systemd splits its value into arguments, and omits an empty one."""
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]+')
_ESCAPED = re.compile(r"\\(.)")


def _word(text: str) -> str:
    if re.fullmatch(r"\$[A-Za-z_]\w*", text):
        return f"{SPLIT}{text[1:]}"
    if text.startswith('"'):
        text = _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text[1:-1])
    return text.replace("%%", "%").replace("$$", "$")


LIMITS = ("Memory", "MemorySwap", "MemoryReservation", "NanoCpus", "CpuShares", "CpuQuota", "CpusetCpus", "PidsLimit")
"""Settings of a running container that `docker update` changes."""
_UNSET = (None, 0, -1, "")
_FLAGS = {"PidsLimit": "--pids-limit"}


def limit_edits(release: Sequence[str], limits: Mapping[str, object]) -> str:
    """Return limits of a running container that its release does not set, by name."""
    words = list(_docker_run(release))
    wanted = {name: _after(words, flag) for name, flag in _FLAGS.items()}
    expected = {"Memory", "MemorySwap"} if "--memory" in words else set[str]()
    odd = [
        name
        for name, value in limits.items()
        if name not in expected and value not in _UNSET and str(value) != wanted.get(name)
    ]
    return ", ".join(odd)


def _after(words: Sequence[str], flag: str) -> str | None:
    before = len(list(takewhile(lambda argument: argument != flag, words)))
    return words[before + 1] if before + 1 < len(words) else None
