"""Findings of the checks, as problems and notes of the settings: with the host, the file and the line."""

from __future__ import annotations

from rackwright.engines.host import check_host
from rackwright.messages import coded
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.origin import Origins, origin_of
from rackwright.settings.problems import Problem
from rackwright_engines.finding import Finding, Level, refused
from rackwright_engines.key_path import dotted


def engine_problems(host: str, settings: HostSettings, origins: Origins) -> list[Problem]:
    """Return what stops a deployment, each where it is written, without secrets: `engine` takes none."""
    found = refused(check_host(settings))
    return [
        Problem(origin_of(origins, one.path), one.path, one.sentence, host, code=one.code, of_host=True)
        for one in found
    ]


def engine_notes(settings: HostSettings, level: Level) -> list[str]:
    """Return what is allowed and still worth saying, as sentences."""
    return [_note(found) for found in check_host(settings) if found.level is level]


def _note(found: Finding) -> str:
    return coded(found.code, f"{dotted(found.path)}: {found.sentence}")
