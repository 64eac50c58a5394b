"""Merged values to typed settings: every problem at once, each with its origin and the nearest right name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rackwright.engines.problems import engine_problems
from rackwright.loading.ansible.templates import templates
from rackwright.loading.wording import SECRET_PLACES, explain, is_secret, misplaced, path_of
from rackwright.loading.yaml_file import OddNumber
from rackwright.settings import connection
from rackwright.settings.connection import Connection
from rackwright.settings.host_settings import NOWHERE, SITE, EndpointSettings, HostSettings, overlay
from rackwright.settings.misfit import MisfitError
from rackwright.settings.origin import Origin, Origins, origin_of
from rackwright.settings.problems import Problem
from rackwright.settings.secret import Secret, tells_secret
from rackwright.settings.ssh import args as ssh_args
from rackwright_engines.key_path import KeyPath, is_key
from rackwright_engines.nearest import nearest

OWN_KEYS = "own_keys"
ENDPOINTS = "endpoints"
IN_CLEAR = frozenset({"environment", "arguments", "engine", "drain_hook", "ready_hook", "rollout"})
"""Sections in which the engines' own check looks for secrets (RW0324)."""
UNKNOWN, ENGINE_KEY = "RW0210", "RW0301"
"""The codes of a key that the settings do not know, and of one that the engine does not know."""
DECIDES = ("engine_kind", "engine_version", "image", "profile", "endpoints")
"""Keys by which it follows what an engine knows."""
LONGEST = 64
"""Bits of a whole number."""
PASSWORD = re.compile(r"\bsshpass\s+(?:-\w+\s+)*-p")
UNDERSTOOD = (*connection.RENAMED, *ssh_args.KEYS)
"""Variables of Ansible's that count here."""
WAY = (*connection.KEYS, *connection.METHODS, *ssh_args.KEYS)
"""Keys for the way to a host."""


class Known:
    """Settings of a site that were found right: a rack's hosts mostly share theirs, and checking takes milliseconds."""

    def __init__(self, site: Path = NOWHERE) -> None:
        self.site = site
        self._pairs: dict[str, list[tuple[Mapping[str, Any], HostSettings]]] = {}
        """By their text, in which secrets are masks: else a host whose settings are its own is compared with all."""

    def find(self, values: Mapping[str, Any]) -> HostSettings | None:
        """Return the settings of these values, if they were checked before."""
        return next(
            (settings for checked, settings in self._pairs.get(repr(values), ()) if _same(checked, values)), None
        )

    def add(self, values: Mapping[str, Any], settings: HostSettings) -> None:
        """Keep what has no problem."""
        self._pairs.setdefault(repr(values), []).append((values, settings))


def _same(one: Any, other: Any) -> bool:
    """Equal, and of equal types: 1 and true are equal in Python. What hosts have from one file is one object."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def validate(
    host: str, values: Mapping[str, Any], origins: Origins, checked: Known | None = None
) -> tuple[HostSettings | None, list[Problem]]:
    """Return the typed settings of a host, and what is wrong; the settings are None when anything is."""
    checked = checked or Known()
    wanted = settings_values(values)
    judged = {**wanted, OWN_KEYS: values.get(OWN_KEYS)}
    earlier = checked.find(judged)
    new = values if earlier is None else {key: value for key, value in values.items() if _is_hosts(key)}
    found = [*_keys(new), *_connection(new), *_jinja(new), *_secrets(new), *_odd_numbers(new), *_no_json(new)]
    if earlier is not None and not found:
        return earlier, []
    settings, invalid = _settings(wanted, checked.site)
    problems_found = [*found, *_unless(found, invalid)]
    problems = [_problem(host, origin_of(origins, one.path), one) for one in problems_found]
    if settings is not None and not problems:
        problems = engine_problems(host, settings, origins)
    elif problems_found and all(one.code == UNKNOWN for one in problems_found):
        problems += _engine_typos(host, wanted, problems_found, origins, checked.site)
    if settings is not None and not problems:
        checked.add(judged, settings)
    return (None if problems else settings), problems


def _engine_typos(
    host: str, values: Mapping[str, Any], unknown: Sequence[Found], origins: Origins, site: Path
) -> list[Problem]:
    """Return the keys that the engine does not know either, where nothing but unknown keys is wrong.

    Nothing where one of them may be meant to say which engine it is: another one knows other keys.
    """
    if any(nearest(str(one.path[-1]), DECIDES) for one in unknown):
        return []
    settings, invalid = _settings(_without(values, [one.path for one in unknown]), site)
    found = engine_problems(host, settings, origins) if settings is not None and not invalid else []
    return [problem for problem in found if problem.code == ENGINE_KEY]


def _without(values: Mapping[str, Any], paths: Sequence[KeyPath]) -> dict[str, Any]:
    """Return values without those at some paths."""
    below: dict[str, list[KeyPath]] = {}
    for path in paths:
        below.setdefault(str(path[0]), []).append(tuple(path[1:]))
    remaining = {key: value for key, value in values.items() if () not in below.get(key, ())}
    return {
        key: _without(value, below[key]) if key in below and isinstance(value, Mapping) else value
        for key, value in remaining.items()
    }


def _is_hosts(key: str) -> bool:
    """Return True if a key is looked at for each host: connection data, and keys other than settings."""
    return key not in HostSettings.model_fields or key in connection.KEYS


def settings_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of host data that is settings; the rest is connection data and keys of the site's own."""
    return {key: value for key, value in values.items() if key in HostSettings.model_fields}


class Found(NamedTuple):
    """A problem at a key, and the code of its kind."""

    path: KeyPath
    text: str
    code: str


def _problem(host: str, origin: Origin | None, one: Found) -> Problem:
    """With the hosts, where a file says it of several: the way to a host, and what an inventory has without a line."""
    of_host = one.path[:1] != () and (one.path[0] in WAY or (origin is not None and not origin.line_number))
    return Problem(origin, one.path, one.text, host, code=one.code, of_host=of_host)


def _invalid(path: KeyPath, model: type[BaseModel], detail: ErrorDetails) -> Found:
    """Return what pydantic says of a value, in our words."""
    return Found(path, explain(model, detail), _code(detail))


def _code(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        return UNKNOWN
    if isinstance(detail.get("input"), Secret) and not is_secret(path_of(detail)):
        return "RW0216"
    error = detail.get("ctx", {}).get("error")
    return error.code if isinstance(error, MisfitError) else "RW0212"


def _unless(reported: list[Found], more: list[Found]) -> list[Found]:
    """Return problems at places that no earlier check has reported."""
    return [one for one in more if not any(one.path[: len(earlier.path)] == earlier.path for earlier in reported)]


def _keys(values: Mapping[str, Any]) -> Iterator[Found]:
    keys = [*HostSettings.model_fields, *connection.KEYS]
    yield from _ssh_words(values)
    yield from _other_methods(values)
    for key in values:
        if key in connection.REFUSED:
            yield Found((key,), connection.REFUSED[key], "RW0211")
        elif key not in keys and not key.startswith("ansible_") and not _is_own(key, values):
            yield Found((key,), f"unknown key{nearest(key, keys)}", UNKNOWN)


def _other_methods(values: Mapping[str, Any]) -> Iterator[Found]:
    """Yield the ways to a host, and to root on it, that Ansible has and we have not."""
    for key, methods in connection.METHODS.items():
        if values.get(key) is not None and str(values[key]).strip().lower() not in methods:
            yield Found((key,), f"{values[key]} {connection.WHY_ELSE[key]}", "RW0211")


def _ssh_words(values: Mapping[str, Any]) -> Iterator[Found]:
    """Yield the arguments for ssh that say more than how a host is reached, or that were never tried here."""
    for key in (key for key in ssh_args.KEYS if key in values):
        try:
            ssh_args.options({name: value for name, value in values.items() if name in (key, "ssh_config_file")})
        except ssh_args.ConfigFileError as error:
            yield Found((key,), str(error), "RW0211")
        except ValueError as error:
            text = f"{error} is not understood here: write the same into ~/.ssh/config, which Ansible reads too"
            yield Found((key,), text, "RW0211")
        if PASSWORD.search(str(values[key])) or tells_secret(str(values[key])):
            yield Found((key,), "a password in it shows in the process list: use an SSH key or an agent", "RW0211")


def _is_own(key: str, values: Mapping[str, Any]) -> bool:
    patterns = values.get(OWN_KEYS)
    return isinstance(patterns, list | tuple) and connection.is_own(key, patterns)


def _connection(values: Mapping[str, Any]) -> Iterator[Found]:
    try:
        Connection.model_validate({key: value for key, value in values.items() if key in connection.KEYS})
    except ValidationError as error:
        for detail in error.errors():
            found = _invalid(tuple(detail["loc"]), Connection, detail)
            brackets = found.path == ("ssh_hostname",) and str(values["ssh_hostname"]).startswith("[")
            yield found._replace(text=f"{found.text}: write it without brackets") if brackets else found


def _settings(values: Mapping[str, Any], site: Path) -> tuple[HostSettings | None, list[Found]]:
    problems = _endpoints(values)
    if problems:
        values = {**values, ENDPOINTS: {}}
    try:
        return HostSettings.model_validate(values, context={SITE: site}), problems
    except ValidationError as error:
        details = [detail for detail in error.errors() if detail["loc"] or not problems]
        return None, [*(_invalid(path_of(detail), HostSettings, detail) for detail in details), *problems]


def _endpoints(values: Mapping[str, Any]) -> list[Found]:
    """Return problems within `endpoints.NAME`, reported at their own lines rather than at the host's."""
    endpoints = values.get(ENDPOINTS)
    if not isinstance(endpoints, Mapping):
        return []
    base = {key: value for key, value in values.items() if key in EndpointSettings.model_fields}
    found: list[Found] = []
    for name, overrides in endpoints.items():
        if isinstance(overrides, Mapping):
            found += [one._replace(path=(ENDPOINTS, str(name), *one.path)) for one in _endpoint(base, overrides)]
    return found


def _endpoint(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> Iterator[Found]:
    try:
        EndpointSettings.model_validate(_over(base, overrides))
    except ValidationError as error:
        for detail in error.errors():
            if detail["loc"] and detail["loc"][0] in overrides:
                yield _invalid(path_of(detail), EndpointSettings, detail)


def _over(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return `overrides` over `base`, also when an `engine` that is not a mapping cannot be merged."""
    mergeable = all(isinstance(values.get("engine", {}), dict) for values in (base, overrides))
    return overlay(dict(base), dict(overrides)) if mergeable else {**base, **overrides}


def _jinja(values: Mapping[str, Any]) -> Iterator[Found]:
    for key, value in values.items():
        if _is_own(key, values) or (key.startswith("ansible_") and key not in UNDERSTOOD):
            continue
        yield from (Found(path, text, "RW0215") for path, text in templates(key, value))


def _odd_numbers(values: Mapping[str, Any]) -> Iterator[Found]:
    """Yield the numbers of the settings that YAML reads as other ones than people do."""
    for key, value in values.items():
        for path, leaf in leaves(value, (key,)) if not _is_own(key, values) else ():
            if isinstance(leaf, OddNumber):
                text = f"{leaf.written} is read as {int(leaf)} by YAML: write {int(leaf)}, or put it in quotes"
                yield Found(path, text, "RW0227")


def _no_json(values: Mapping[str, Any]) -> Iterator[Found]:
    """Yield the values of engines and of dockerd that YAML has and JSON has not: both are handed on as JSON."""
    for key, value in values.items():
        for path, leaf in leaves(value, (key,)) if key in HostSettings.model_fields else ():
            if set(path) & {"engine", "daemon"} and (text := _beyond_json(leaf)):
                yield Found(path, text, "RW0228")


def _beyond_json(leaf: Any) -> str:
    """Return why a value cannot be JSON that every program reads; nothing where it can."""
    match leaf:
        case date():
            return f"{leaf} is a date to YAML: put it in quotes"
        case float() if not isfinite(leaf):
            return f"must be a finite number, not {leaf}"
        case int() if leaf.bit_length() >= LONGEST:
            return f"must be a number of {LONGEST} bits at most"
        case bytes():
            return "must be text, not !!binary"
        case set() | frozenset():
            return "must be a list, not !!set"
    return ""


def _secrets(values: Mapping[str, Any]) -> Iterator[Found]:
    """Yield the vault values where the setting is shown in clear."""
    for key, value in values.items():
        if key not in HostSettings.model_fields and key not in connection.KEYS:
            continue
        for path, leaf in leaves(value, (key,)):
            if isinstance(leaf, Secret) and not is_secret(path):
                yield Found(path, misplaced(path), "RW0216")
            elif not is_secret(path) and not set(path) & IN_CLEAR and any(map(is_key, _words(leaf, *path))):
                yield Found(path, f"looks like a secret, and is shown in messages: {SECRET_PLACES}", "RW0265")


def _words(*values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Yield all scalars below a value, with their paths."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from leaves(below, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, below in enumerate(value):
            yield from leaves(below, (*path, index))
    else:
        yield path, value
