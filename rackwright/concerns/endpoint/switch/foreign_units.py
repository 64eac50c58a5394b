"""Units and containers with Rackwright's names that were made by hand: found, and moved away when asked to. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence

from rackwright.hostside import host_script
from rackwright.paths import ENDPOINT_LABEL, MOVED_UNITS, UNITS, WRITTEN, aside_job, container_name, endpoint_of
from rackwright.plan.change import Change, Job, Owned, Refuse

SETTING = "releases: {foreign_units: aside}"


def is_foreign(unit: str, text: str | None, record: Container[Owned]) -> bool:
    """Return True if a unit with Rackwright's name was made by hand: it has no mark, and is not in the record."""
    return text is not None and WRITTEN not in text and Owned("unit", unit) not in record


def foreigners(unit: str, text: str | None, foreign_container: bool, record: Container[Owned]) -> list[str]:
    """Return what has Rackwright's name and was made by hand, as sentences for people: the unit, its container."""
    found = [f"{UNITS}/{unit} was not written by Rackwright"] if is_foreign(unit, text, record) else []
    if foreign_container:
        container = _container(unit)
        found.append(f"the container {container} is not Rackwright's (it lacks the label {ENDPOINT_LABEL})")
    return found


def next_step(unit: str) -> str:
    """Return the next step for the owner of a unit that is in the way."""
    return (
        f"set {SETTING} in group_vars, which stops it and keeps it in {MOVED_UNITS} until a teardown puts it back; "
        f"or move it away yourself: systemctl disable --now {unit}"
    )


def refusal(unit: str, found: Sequence[str]) -> Refuse:
    """Refuse to replace what was made by hand."""
    return Refuse(f"{' and '.join(found)}, and would be replaced; next: {next_step(unit)}", code="RW2405")


def set_apart(unit: str, found: Sequence[str], before: str = "", seconds: int = 0) -> Change:
    """Return the change that stops it and keeps it where a teardown finds it.

    before: a script that goes first, and may fail, within `seconds` seconds: the drain of its clients.
    """
    script = f"(\n{before}\n) || exit 1\n" if before else ""
    container = _container(unit)
    script += host_script(
        "keep_aside", unit=unit, units=UNITS, folder=MOVED_UNITS, container=container, label=ENDPOINT_LABEL
    )
    step = Job(aside_job(unit), f"move {unit} away", script, timeout=600 + seconds, code="RW2410")
    return Change(f"move {unit} away to {MOVED_UNITS}", " and ".join(found), (step,), owns=(Owned("aside", unit),))


def put_back_script(unit: str) -> str:
    """Shell lines that put a unit and its container back as they were found, for teardown."""
    return host_script("put_back", unit=unit, units=UNITS, folder=MOVED_UNITS, container=_container(unit))


def _container(unit: str) -> str:
    endpoint = endpoint_of(unit)
    return container_name(endpoint) if endpoint else ""
