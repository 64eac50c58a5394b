"""When a host is read again: after what others decide by, at the end, and not for what concerns no other host."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyinfra
import pytest
from pyinfra.context import ctx_host

import rackwright
from rackwright.adapter.ssh.way_back import NoWayBackError
from rackwright.concerns.catalog import ALL
from rackwright.concerns.lease import LEASED, Lease, LeaseHolder, SeenLease
from rackwright.concerns.lease.take_lease import Taken
from rackwright.operations import hostrun
from rackwright.operations.hostrun import lease_for_others, mark_changed, reading_of, was_changed
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD
from rackwright.remote.errors import StepFailedError
from rackwright.settings.host_settings import HostSettings
from tests.refused import refused


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a host that counts how often it is read."""
    found = SimpleNamespace(name="h", state=SimpleNamespace(is_executing=True), readings=0)

    def read(_: Any) -> HostReading:
        found.readings += 1
        return HostReading({RECORD.name: frozenset(), LEASED.name: None})

    monkeypatch.setattr(hostrun, "_read", read)
    monkeypatch.setattr(hostrun, "settings_of", lambda _: HostSettings())
    return found


def test_a_host_that_nothing_changed_is_read_once_a_stage(host: Any) -> None:
    host.state.is_executing = False
    reading_of(host)
    reading_of(host, whole=True)
    assert host.readings == 1
    host.state.is_executing = True
    reading_of(host)
    reading_of(host, whole=True)
    assert host.readings == 2
    assert not was_changed(host)


def test_a_change_makes_the_reading_stale(host: Any) -> None:
    reading_of(host)
    mark_changed(host)
    reading_of(host)
    assert (host.readings, was_changed(host)) == (2, True)


def test_what_no_other_concern_decides_by_is_read_at_the_end_only(host: Any) -> None:
    reading_of(host)
    mark_changed(host, alone=True)
    reading_of(host)
    assert host.readings == 1
    reading_of(host, whole=True)
    reading_of(host, whole=True)
    assert (host.readings, was_changed(host)) == (2, True)


def test_a_change_that_others_see_is_not_forgotten_for_a_later_one_that_they_do_not(host: Any) -> None:
    reading_of(host)
    mark_changed(host)
    mark_changed(host, alone=True)
    reading_of(host)
    assert host.readings == 2


def test_a_host_that_takes_part_for_others_is_leased_once_and_read_anew_when_somebody_wrote(
    host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []

    def take(*_: Any) -> Taken:
        taken.append(not taken)
        return Taken("1.a", fresh=not taken[-1])

    monkeypatch.setattr(hostrun, "take", take)
    monkeypatch.setattr(hostrun, "real_host", lambda inner: inner)
    monkeypatch.setattr(hostrun, "was_leased", lambda _host: len(taken) == 2)
    reading_of(host)
    assert lease_for_others(host) is not None
    assert host.readings == 2, "another run had written"
    assert lease_for_others(host) is not None
    assert host.readings == 2
    assert lease_for_others(host) is None
    assert len(taken) == 2


def test_looking_ahead_changes_nothing(host: Any) -> None:
    host.state.is_executing = False
    reading_of(host)
    mark_changed(host)
    reading_of(host, whole=True)
    assert (host.readings, was_changed(host)) == (1, False)


def test_a_host_is_read_by_its_own_settings_whoever_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SimpleNamespace(name="h1")
    monkeypatch.setattr(hostrun, "settings_of", lambda _: HostSettings())
    other: Any = SimpleNamespace(name="h2", state=SimpleNamespace(is_executing=True))
    monkeypatch.setattr(hostrun, "real_host", lambda host: host)
    monkeypatch.setattr(hostrun, "steps_known", lambda _: ())
    read_by: list[str] = []

    def read_host(*_: Any, **__: Any) -> tuple[HostReading, dict[str, Any]]:
        read_by.append(pyinfra.host.name)
        return HostReading({RECORD.name: frozenset()}), {}

    monkeypatch.setattr(hostrun, "read_host", read_host)
    with ctx_host.use(real):
        reading_of(other)
        assert pyinfra.host.name == "h1"
    thread = threading.Thread(target=reading_of, args=(other,))
    del other.state.rackwright
    thread.start()
    thread.join()
    assert read_by == ["h2", "h2"]


HELD = SeenLease(3, 50, Lease(3, "a", LeaseHolder("ops", "control", "deploy"), taken=10, expires=130))


@pytest.mark.parametrize(
    ("lease", "is_leased", "is_read"),
    [(HELD, False, True), (HELD, True, False), (SeenLease(3, 50), False, False)],
)
def test_a_host_whose_bundle_port_a_run_with_its_lease_has_is_read_and_any_other_refused(
    monkeypatch: pytest.MonkeyPatch, lease: SeenLease, is_leased: bool, is_read: bool
) -> None:
    def no_way(*_: Any) -> None:
        raise NoWayBackError("its sshd does not let port 7460 lead to the bundle")

    messages: list[str] = []
    found: Any = SimpleNamespace(name="h", state=SimpleNamespace(is_executing=True))
    monkeypatch.setattr(hostrun, "lead_to_bundle", no_way)
    monkeypatch.setattr(hostrun, "settings_of", lambda _: HostSettings())
    monkeypatch.setattr(hostrun, "real_host", lambda host: host)
    monkeypatch.setattr(hostrun, "steps_known", lambda _: ())
    monkeypatch.setattr(hostrun, "was_leased", lambda _: is_leased)
    monkeypatch.setattr(hostrun, "complain", lambda _, text: messages.append(text))
    reading = HostReading({RECORD.name: frozenset(), LEASED.name: lease})
    monkeypatch.setattr(hostrun, "read_host", lambda *_, **__: (reading, {}))
    assert (reading_of(found) is not None) is is_read
    assert ["RW3813" in text for text in messages] == ([] if is_read else [True])


def test_no_lease_is_taken_in_vain_where_a_run_still_has_the_bundles_port(
    host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_way(*_: Any) -> None:
        raise NoWayBackError("its sshd does not let port 7460 lead to the bundle")

    monkeypatch.setattr(hostrun, "take", lambda *_: Taken("1.a", fresh=True))
    monkeypatch.setattr(hostrun, "real_host", lambda inner: inner)
    monkeypatch.setattr(hostrun, "was_leased", lambda _: False)
    monkeypatch.setattr(hostrun, "lead_to_bundle", no_way)
    with refused("RW3813", error=StepFailedError):
        lease_for_others(host)


PACKAGE = Path(rackwright.__file__).parent
USED = re.compile(r"\b(?:reading|seen)\[([A-Z]+)\]")
AT_OTHER_TIMES = {"drift.py", "plan.py", "teardown.py", "lockfile.py"}
"""Of commands that read hosts for themselves."""
UNCHANGED = {("registry", Path("concerns/image/concern.py"))}
"""By a part of the reading that no change of the concern's touches: the helper that keeps root's logins."""
AT_THE_END = {("gateway", Path("operations/steps.py"))}
"""By a whole reading, after the last step."""
OF_CACHES = {("encodings", Path("concerns/caches") / name) for name in ("entries.py", "spare.py", "damage.py")}
"""In runs of `rackwright cache`, which decide once, by a reading that no step has changed."""


def test_no_other_concern_decides_by_those_that_stand_alone() -> None:
    alone = {concern.name for concern in ALL if concern.alone}
    assert alone == {"firewall", "registry", "encodings", "release", "options", "watch", "gateway"}
    sources = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    found = {
        (name.lower(), path.relative_to(PACKAGE))
        for path, text in sources.items()
        for name in USED.findall(text)
        if path.name not in AT_OTHER_TIMES
    }
    assert found, "readings are looked up by their concern's constant"
    theirs = {(name, path) for name, path in found if name in alone and name not in (path.stem, path.parent.name)}
    assert theirs == UNCHANGED | AT_THE_END | OF_CACHES
