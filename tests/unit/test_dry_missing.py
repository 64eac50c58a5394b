"""A --dry of what registry or hub do not have ends as a plan does."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from threading import Thread
from types import SimpleNamespace
from typing import Any

import click
import pytest

from rackwright.adapter.run.current_run import current_state
from rackwright.adapter.run.options import Flags, is_dry, is_verbose, keep_flags
from rackwright.adapter.run_context import part_of
from rackwright.concerns.image import IMAGE
from rackwright.operations import steps
from rackwright.plan.change import Change
from rackwright.plan.concern import HostReading, ResolvedNames
from tests.unit.test_plan import recorded, settings

GONE = "RW0914: nvcr.io has no r:9.9.9 (404)"


def made_up_host() -> Any:
    state = SimpleNamespace(is_executing=False, failed_hosts=set(), active_hosts=set())
    host = type("Host", (), {"name": "h1", "state": state})()
    state.active_hosts.add(host)
    return host


def run(host: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Prepare the images of a host whose tag is missing; returns what is printed."""
    printed: list[str] = []

    reading = recorded("converged")
    images = replace(reading[IMAGE], images=(), pins={})
    names = {IMAGE.name: ResolvedNames(absent={"r:9.9.9": GONE})}

    def changes(_: Any, decide: Callable[[HostReading], list[Change]]) -> Generator[Any, None, list[Change]]:
        yield from ()
        return decide(HostReading({**reading.by_concern, IMAGE.name: images}, names=names))

    monkeypatch.setattr(steps, "leased_changes", changes)
    monkeypatch.setattr(steps, "settings_of", lambda _: settings(image="r:9.9.9"))
    monkeypatch.setattr(steps, "complain", lambda _, text: printed.append(text))
    monkeypatch.setattr(steps, "announce_changes", lambda _, found: printed.extend(one.what for one in found))
    monkeypatch.setattr(steps, "mark_changed", lambda *_: None)
    monkeypatch.setattr(steps, "commands", lambda _: iter(()))
    monkeypatch.setattr(steps, "_report", lambda *_: printed.append("report"))
    list(steps._apply(host, IMAGE, begins=False))
    return printed


def test_a_dry_run_says_what_is_missing_and_nothing_that_it_would_do_then(monkeypatch: pytest.MonkeyPatch) -> None:
    host = made_up_host()
    part_of(host.state, Flags).dry = True
    assert run(host, monkeypatch) == [GONE]
    assert (host in host.state.failed_hosts, host in host.state.active_hosts) == (True, False)
    assert run(host, monkeypatch) == []


def test_a_deploy_asks_from_the_host_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    host = made_up_host()
    assert run(host, monkeypatch) == ["report", "pull r:9.9.9"]
    assert not host.state.failed_hosts


def test_flags_hold_where_click_knows_no_command() -> None:
    """Pyinfra prepares each host in a greenlet of its own; click keeps its command by thread."""
    found: list[tuple[bool, bool]] = []
    with click.Context(click.Command("pyinfra")) as context:
        context.params = {"dry": True, "verbosity": 1}
        keep_flags()
        thread = Thread(target=lambda: found.append((is_dry(current_state()), is_verbose(current_state()))))
        thread.start()
        thread.join()
        context.params = {}
        keep_flags()
    assert found == [(True, True)]
