"""The profiles that hosts name, and what a site's lock file has of them: an upgrade changes nothing before `pin`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rackwright.loading.merge import merge
from rackwright.loading.profiles import layer_of
from rackwright.loading.validate import leaves
from rackwright.messages import RackwrightError, coded, counted, printable
from rackwright.one_writer import one_writer
from rackwright.profiles import catalog
from rackwright.profiles.content import Files
from rackwright.profiles.locked import LockedProfile, locked_profiles
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.lockfile import load_lock, write_lock
from rackwright_engines.key_path import dotted

SHOWN = 12
"""Changed keys that are listed; `pin` prints all."""
ABSENT = object()


@dataclass(frozen=True)
class NamedProfile:
    """A profile that hosts name: what the lock file has of it, and what this version ships."""

    name: str
    lock_file: str
    locked: LockedProfile | None
    shipped: LockedProfile | None

    @property
    def changes(self) -> list[str]:
        """Return the keys in which the shipped one differs from the locked one, each with both values."""
        if self.locked is None or self.shipped is None:
            return []
        return changed_keys(self.locked.files, self.shipped.files)


def named_profiles(root: Path, settings: Iterable[HostSettings]) -> list[NamedProfile]:
    """Return the profiles that hosts name, each once. root: the site's folder."""
    named = dict.fromkeys((one.paths.lock_file, one.profile) for one in settings if one.profile)
    return [
        NamedProfile(name, lock_file, locked_profiles(root / lock_file).get(name), _shipped(name))
        for lock_file, name in named
        if name
    ]


def _shipped(name: str) -> LockedProfile | None:
    return LockedProfile.of(catalog.profile(name).files) if name in catalog.names() else None


def changed_keys(before: Files, after: Files) -> list[str]:
    """Return `KEY: OLD -> NEW` for each setting in which two versions of a profile differ, in the new one's order."""
    old, new = _values(before), _values(after)
    keys = dict.fromkeys([*new, *old])
    return [
        f"{key}: {_shown(old, key)} -> {_shown(new, key)}"
        for key in keys
        if old.get(key, ABSENT) != new.get(key, ABSENT)
    ]


def _values(files: Files) -> dict[str, Any]:
    whole = merge(layer_of(file, text) for file, text in files.items()).values
    return {dotted(path): value for path, value in leaves(whole, ())}


def _shown(values: Mapping[str, Any], key: str) -> str:
    return printable(str(values[key])) if key in values else "(none)"


def waiting_lines(profiles: Iterable[NamedProfile], pin: str) -> Iterator[str]:
    """Yield a line for each profile of which this version ships other settings, and its keys below it.

    pin: the command that takes them.
    """
    for one in profiles:
        if changes := one.changes:
            head = f"profile {one.name}: this version ships other settings; hosts keep those of {one.lock_file}"
            yield "\n".join([f"{head} until: {pin}", *_some(changes)])


def unlocked_lines(profiles: Iterable[NamedProfile]) -> Iterator[str]:
    """Yield a line for each profile that the next deploy adds to the lock file."""
    for one in profiles:
        if one.locked is None:
            yield f"profile {one.name}: the next deploy writes it into {one.lock_file}, so that no upgrade changes it"


def gone_lines(profiles: Iterable[NamedProfile]) -> Iterator[str]:
    """Yield a line for each profile that the lock file alone still has."""
    for one in profiles:
        if one.locked and one.shipped is None:
            yield (
                f"profile {one.name}: this version no longer ships it, and the text in {one.lock_file} counts; to own "
                f"it: rackwright profiles add {one.name}"
            )


def _some(changes: list[str]) -> Iterator[str]:
    yield from (f"  {text}" for text in changes[:SHOWN])
    if len(changes) > SHOWN:
        yield f"  and {counted(len(changes) - SHOWN, 'more key')}"


def lock_profiles(root: Path, settings: Iterable[HostSettings]) -> list[str]:
    """Write the profiles that hosts name into their lock files, where these have none; returns a line for each.

    A profile that is there already stays as it is. A file that cannot be written is a warning.
    """
    missing = [one for one in named_profiles(root, settings) if one.locked is None and one.shipped]
    files = dict.fromkeys(one.lock_file for one in missing)
    return [text for file in files for text in _lock(root, file, [one for one in missing if one.lock_file == file])]


def _lock(root: Path, file: str, missing: list[NamedProfile]) -> list[str]:
    try:
        with one_writer((root / file).resolve().parent):
            before = load_lock(root, file)
            added = {one.name: one.shipped for one in missing if one.shipped and one.name not in before.profiles}
            if added:
                write_lock(root, replace(before, profiles={**before.profiles, **added}), file)
    except (OSError, RackwrightError) as error:
        names = ", ".join(one.name for one in missing)
        text = f"{file} cannot keep profile {names}, and an upgrade may change it: {error}"
        return [coded("RW0921", text)]
    return [f"profile {name}: kept in {file} from now on; put that file under version control" for name in added]
