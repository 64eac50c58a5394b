"""The composite reading of a host: the one command that reads all concerns, and the parser of its output."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rackwright.adapter.command_output import tail
from rackwright.adapter.connection import Command, command
from rackwright.adapter.host import Host
from rackwright.adapter.timeouts import FrozenHostError, SilentHostError, tune
from rackwright.concerns.catalog import read_for
from rackwright.concerns.composite import composite, parse_composite, sections_of
from rackwright.messages import ReadingError
from rackwright.plan import reading
from rackwright.plan.concern import Concern, HostReading, parse_all
from rackwright.plan.reading import Section
from rackwright.remote.commands import remote
from rackwright.remote.errors import StepFailedError
from rackwright.remote.stdin_payload import framed, receiver
from rackwright.remote.sudo_errors import why_unread
from rackwright.settings.host_settings import HostSettings

TITLE = f"{reading.HEAD.strip()} what Rackwright reads of a host"
"""Title of a reading in the output of `ps` on a host."""
SECONDS = 120
"""Time limit of a host's reading."""


def reading_command(
    settings: HostSettings, steps: Collection[str] = (), more: Mapping[str, str] | None = None
) -> Command:
    """Return the command that reads all that the steps of a deploy.py need, then sections of `more` by name."""
    script = reading_script(settings, steps, more)
    return command("sh", "-c", script=receiver(script, TITLE), stdin=framed(script))


def reading_script(settings: HostSettings, steps: Collection[str] = (), more: Mapping[str, str] | None = None) -> str:
    """Return the script of the command."""
    return composite(read_for(steps), settings, more)


def parse_reading(lines: Sequence[str], steps: Collection[str] = ()) -> HostReading:
    """Parse the command's output. Raises ReadingError when it is cut short or invalid."""
    return parse_composite(lines, read_for(steps), frozenset(steps) if steps else None)


def read_host(
    host: Host,
    settings: HostSettings,
    more: Mapping[str, str] | None = None,
    steps: Collection[str] = (),
) -> tuple[HostReading, Mapping[str, Section]]:
    """Read a connected host; return its reading, and all raw sections, those of `more` included.

    Raises ReadingError when it cannot be read: it is then unknown, never "as if empty".
    """
    tune(host)
    try:
        ok, output = remote(host, reading_command(settings, steps, more), timeout=SECONDS, twice=True)
    except StepFailedError as error:
        if error.code == SilentHostError.code and not isinstance(error.__cause__, FrozenHostError):
            raise ReadingError(f"it did not read itself within {SECONDS} s", code="RW0711") from error
        raise ReadingError(error.text, code=error.code) from error
    lines = list(output.stdout_lines)
    if why := why_unread(ok, lines, output.stderr_lines):
        raise ReadingError(why[1], code=why[0])
    if not ok:
        raise ReadingError(f"it could not be read: {tail(output)}", code="RW0710")
    sections = sections_of(lines, read_for(steps), more or ())
    return parse_all(read_for(steps), sections, frozenset(steps) if steps else None), sections


def read_concerns(host: Host, settings: HostSettings, concerns: Sequence[Concern[Any, Any]]) -> HostReading:
    """Read only some concerns of a connected host. Raises ReadingError."""
    reading = command("sh", "-c", script=composite(concerns, settings))
    ok, output = remote(host, reading, timeout=SECONDS)
    if not ok:
        raise ReadingError(f"{host.name} could not be read: {tail(output)}", code="RW0710")
    return parse_composite(output.stdout_lines, concerns)
