"""The profile that a host names: a layer of settings that is weaker than every file of the site.

Its text is the lock file's where that has it, else the one that this version ships (rackwright/profiles).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rackwright.loading.ansible.templates import templates
from rackwright.loading.merge import Layer
from rackwright.loading.yaml_file import Document, parse
from rackwright.profiles import catalog
from rackwright.profiles.content import Files
from rackwright.profiles.locked import LOCK_FILE, locked_profiles
from rackwright.settings.origin import Origin
from rackwright.settings.problems import Problem
from rackwright.settings.sections import YAML_FILE
from rackwright_engines.nearest import nearest

KEY = "profile"
LIST = "next: rackwright profiles list"


@dataclass(frozen=True)
class ProfileChoice:
    """The profile of a host, and the lock file that counts for it; an empty name for none."""

    name: str = ""
    lock_file: str = LOCK_FILE
    problems: tuple[Problem, ...] = ()


class SiteProfiles:
    """The profiles that hosts of a site name, each read once.

    as_shipped: take what this version ships, whatever the lock file has: for `pin`, which replaces that.
    finish: makes layers of documents as of all other files.
    """

    def __init__(
        self, root: Path, as_shipped: bool, finish: Callable[[Mapping[Path, Document]], Mapping[Path, Document]]
    ) -> None:
        self._root, self._as_shipped, self._finish = root, as_shipped, finish
        self._documents: dict[tuple[str, str], Sequence[Document]] = {}
        self._choices: dict[tuple[str, str, Origin | None], ProfileChoice] = {}

    def names(self, lock_file: str = LOCK_FILE) -> set[str]:
        """Return every name that may be written: the shipped ones, and those of the lock file."""
        return {*catalog.names(), *locked_profiles(self._root / lock_file)}

    def choose(self, layers: Sequence[Layer]) -> ProfileChoice:
        """Return the profile that the layers of a host name, the weakest first, and what is wrong with it."""
        named = [(layer.values[KEY], _where(layer)) for layer in layers if KEY in layer.values]
        if not named:
            return ProfileChoice()
        lock_file, (name, where) = _lock_file(layers), named[-1]
        other = next(((value, origin) for value, origin in named if value != name), None)
        if other:
            return ProfileChoice(problems=(_two(name, where, *other),))
        if not isinstance(name, str):  # the types say what is wrong with it
            return ProfileChoice()
        if (name, lock_file, where) not in self._choices:  # a rack's hosts mostly name one, in one place
            self._choices[name, lock_file, where] = self._choice(name, lock_file, where)
        return self._choices[name, lock_file, where]

    def _choice(self, name: str, lock_file: str, where: Origin | None) -> ProfileChoice:
        if any(templates(KEY, name)):  # reported for every setting
            return ProfileChoice()
        if name not in (names := self.names(lock_file)):
            text = f"no such profile as {name!r}{nearest(name, names)}; {LIST}"
            return ProfileChoice(problems=(Problem(where, (KEY,), text, code="RW0241"),))
        problems = [problem for one in self._read(name, lock_file) for problem in one.problems]
        return ProfileChoice(name, lock_file, tuple(problems))

    def layers(self, choice: ProfileChoice) -> list[Layer]:
        """Return the layers of a profile, the weakest first."""
        return [Layer(one.values, one.origins) for one in self._read(choice.name, choice.lock_file)]

    def advised(self, problem: Problem, choice: ProfileChoice) -> Problem:
        """Return a problem; where the lock file's text of the profile has it, with the command that replaces that."""
        file = problem.where.file if problem.where else ""
        if not choice.name or not file.startswith(_called(choice.name, "")) or not self._is_outdated(choice):
            return problem
        text = f"{problem.text}; this version ships another text: rackwright pin INVENTORY --profiles"
        return replace(problem, text=text)

    def _is_outdated(self, choice: ProfileChoice) -> bool:
        shipped = catalog.profile(choice.name).files if choice.name in catalog.names() else None
        return shipped is not None and dict(shipped) != dict(self._files(choice.name, choice.lock_file))

    def _read(self, name: str, lock_file: str) -> Sequence[Document]:
        if not name:
            return ()
        if (name, lock_file) not in self._documents:
            files = self._files(name, lock_file)
            documents = {Path(file): parse(text, _called(name, file)) for file, text in files.items()}
            finished = self._finish(documents)
            self._documents[name, lock_file] = [finished[path] for path in documents]
        return self._documents[name, lock_file]

    def _files(self, name: str, lock_file: str) -> Files:
        locked = locked_profiles(self._root / lock_file).get(name)
        if locked and not (self._as_shipped and name in catalog.names()):
            return locked.files
        return catalog.profile(name).files


def _called(name: str, file: str) -> str:
    """Return what origins call a file of a profile."""
    return f"profile {name}, {file}"


def layer_of(file: str, text: str) -> Layer:
    """Return the settings of one file of a profile, as far as they can be read."""
    document = parse(text, file)
    return Layer(document.values, document.origins)


def _where(layer: Layer) -> Origin | None:
    return layer.origins.get((KEY,))


def _two(name: Any, where: Origin | None, other: Any, elsewhere: Origin | None) -> Problem:
    text = f"is {name!r} here and {other!r} in {elsewhere}: a host has one profile; remove one of the two"
    return Problem(where, (KEY,), text, code="RW0251")


def _lock_file(layers: Iterable[Layer]) -> str:
    """Return the name of the lock file; a wrong one is reported with the other settings."""
    paths = [layer.values.get("paths") for layer in layers]
    names = [one["lock_file"] for one in paths if isinstance(one, Mapping) and "lock_file" in one]
    name = names[-1] if names else LOCK_FILE
    return name if isinstance(name, str) and re.match(YAML_FILE, name) else LOCK_FILE


def refused_argument(host: str, arguments: Mapping[str, Any], origin: Origin) -> list[Problem]:
    """Return the problem of a deploy file that names a profile: it is weaker than the files, which are read before.

    origin: the deploy file.
    """
    text = "write it in group_vars, host_vars or the inventory, not in the deploy file"
    return [Problem(origin, (KEY,), text, host, code="RW0261")] if KEY in arguments else []
