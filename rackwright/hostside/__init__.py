"""Scripts that run on a host, as real files: POSIX sh, with their parameters assigned in front of them, and Python.

Shared scripts are in this folder, a concern's own scripts in its folder `host`. Each name is unique.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from rackwright.paths import DOCKER_HOST, DOCKER_MISLEADING, HELPER_LABEL

DOCKER_ENVIRONMENT = f"export DOCKER_HOST={DOCKER_HOST}\nunset {' '.join(DOCKER_MISLEADING)}\n"
"""Prefix of every script on a host: the environment of a login, and systemd's, may point to another Docker."""


NEEDS = {"await_start": "own_error.sh", "status_read": "own_error.sh"}
"""Prefix of each script: functions that several concerns share."""


def host_script(name: str, **values: str | int) -> str:
    """Return the text of `NAME.sh` after its parameters, quoted, and the functions that it needs.

    Parameters are part of the text, so they must not be secrets. Raises FileNotFoundError for an unknown name.
    """
    assigned = "".join(f"{key}={_quoted(str(value))}\n" for key, value in sorted(values.items()))
    needed = _text(NEEDS[name]) if name in NEEDS else ""
    return assigned + needed + _text(f"{name}.sh")


@lru_cache(1024)
def _quoted(text: str) -> str:
    """Quote a text for the shell; cached, since it may be a whole program, the same for each host of a fleet."""
    return shlex.quote(text)


def durable_script(name: str, **values: str | int) -> str:
    """Return a `host_script` whose files must survive a power cut whole: it has the functions of durable.sh."""
    return _text("durable.sh") + host_script(name, **values)


def trial_of_several(owner: str, held: Sequence[str], parts: Sequence[str]) -> str:
    """Return a trial script for several endpoints at once. parts: scripts that define `restore` and `restart`."""
    functions = "".join(f'part_{number}() {{ (\n{part}\n"$@"\n) }}\n' for number, part in enumerate(parts))
    named = f"owner={shlex.quote(owner)}\nheld={shlex.quote(' '.join(held))}\n"
    return (
        _text("durable.sh")
        + functions
        + _each("restore", len(parts))
        + _each("restart", len(parts))
        + named
        + _text("trial.sh")
    )


def _each(function: str, parts: int) -> str:
    lines = "".join(f'  part_{number} {function} "$@" || return 1\n' for number in range(parts))
    return f"{function}() {{\n{lines}}}\n"


def job_script(name: str, **values: str | int) -> str:
    """Return a `host_script` that runs in a job and reports to it: it has the function `event WORD TEXT`."""
    return _text("event.sh") + durable_script(name, **values)


def store_functions() -> str:
    """Return functions that name a folder's file system: reading and download must use the same name."""
    return _text("store.sh")


def trial_script(name: str, **values: str | int) -> str:
    """Return the script that is on the host during a trial, and takes it back (hostside/trial.sh)."""
    return durable_script(f"trial_{name}", **values) + _text("trial.sh")


def helper_script(name: str, container: str, **values: str | int) -> str:
    """Return a `job_script` that runs a short-lived container; `remove_helper` removes an earlier one.

    The script finds the container's name in `$container`, and the label that it must have in `$label`.
    """
    return job_script("remove_helper", container=container, label=HELPER_LABEL) + host_script(name, **values)


def host_program(name: str) -> str:
    """Return the text of `NAME.py`, a program of one file. Raises FileNotFoundError for an unknown name."""
    return _text(f"{name}.py")


def host_text(file: str) -> str:
    """Return the text of a script without parameters. Raises FileNotFoundError for an unknown name."""
    return _text(file)


INCLUDE = re.compile(r"^#include (\S+)$", re.MULTILINE)
"""A line of a script that is replaced by another script: a function that several need."""


@cache
def _text(file: str) -> str:
    return INCLUDE.sub(lambda match: compact(_text(match[1])), _places()[file].read_text())


def compact(text: str) -> str:
    """Return a script without comment lines and indentation, since it is quoted within scripts within scripts.

    It must not contain text of several lines.
    """
    return "\n".join(row.strip() for row in text.splitlines() if not row.lstrip().startswith("#"))


@cache
def _places() -> dict[str, Path]:
    """Return the path of each script, by its name."""
    return {path.name: path for folder in script_folders() for path in folder.glob("*.*")}


@cache
def script_folders() -> tuple[Path, ...]:
    """Return the folders with scripts and templates for hosts: this one, and one for each concern."""
    here = Path(__file__).parent
    return (here, *sorted(path for depth in ("*", "*/*", "*/*/*") for path in here.parent.glob(f"{depth}/host")))
