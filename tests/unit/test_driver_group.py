"""The driver of hosts that serve together: switched in one turn, their IMEX domain after it, and back together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.adapter.host import Host
from rackwright.concerns.driver import follow
from rackwright.concerns.driver.step import DriverReturn
from rackwright.concerns.driver.switch import driver_changes
from rackwright.concerns.endpoint.switch import restart_and_wait
from rackwright.concerns.endpoint.switch.follow import NothingServesError, RolledBackError
from rackwright.concerns.endpoint.switch.restart_and_wait import NotBackError
from rackwright.concerns.endpoint.switch.steps import HostRestart
from rackwright.operations import group_driver
from rackwright.operations.group_turn import MemberTurn
from rackwright.plan.change import Change
from rackwright.remote.errors import LeaseLostError, StepFailedError
from rackwright.settings.group import Group, GroupMember
from rackwright.settings.host_settings import HostSettings
from tests.unit.machines import settings
from tests.unit.test_driver import NEW
from tests.unit.test_driver_switch import BACK, FAILED, UNDO, followed, host, wanting
from tests.unit.test_maintenance import together


def over_nvlink(rank: int) -> HostSettings:
    """Return the settings of a host whose GPUs are reached from another one."""
    alone = settings(driver={"version": NEW}, group_transport="nvlink")
    return alone.in_group(Group("llm", (GroupMember("h1", "10.9.0.1"), GroupMember("h2", "10.9.0.2")), rank))


def test_the_head_waits_for_the_imex_domain_that_the_others_have_joined() -> None:
    found = {rank: driver_changes(over_nvlink(rank), host(), 600, None)[1].steps[0] for rank in (0, 1)}
    assert all(isinstance(step, DriverReturn) and step.together for step in found.values())
    scripts = [found[rank].domain.script for rank in (0, 1)]  # type: ignore[attr-defined]
    assert [script.partition("\n")[0] for script in scripts] == ["seconds=180", "seconds=0"]
    plain = together(1).model_copy(update={"driver": wanting().driver})
    assert driver_changes(plain, host(), 600, None)[1].steps[0].domain is None  # type: ignore[attr-defined]


TOGETHER = replace(BACK, together=True)


def group_of(monkeypatch: pytest.MonkeyPatch, failing: str = "") -> tuple[list[str], list[tuple[Host, DriverReturn]]]:
    """Return two hosts of an endpoint that restart, and a list of what is done to them; one may stay away."""
    done = list[str]()

    def returns(host: Host, back: DriverReturn, _: Callable[[], None] = lambda: None) -> None:
        done.append(f"{host.name} after boot {back.boot}{back.proofs or ''}")
        if failing == f"{host.name} {back.boot}":
            raise NotBackError("away")

    monkeypatch.setattr(follow, "return_and_prove", returns)
    monkeypatch.setattr(follow, "order_restart", lambda host, job: done.append(f"{host.name}: {job.title}"))
    monkeypatch.setattr(follow, "boot_of", lambda _: "two")
    monkeypatch.setattr(follow, "forget", lambda _: None)
    monkeypatch.setattr(follow, "say", lambda *_: None)
    names, head = ("h1", "h2"), replace(TOGETHER, proofs=("llm",))  # type: ignore[arg-type]
    hosts: list[Any] = [SimpleNamespace(name=name, state=SimpleNamespace()) for name in names]
    return done, [(hosts[0], head), (hosts[1], TOGETHER)]


def test_hosts_that_serve_together_go_back_together_and_the_head_is_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    done, restarted = group_of(monkeypatch)
    error = follow.taken_back(restarted, FAILED)
    assert isinstance(error, RolledBackError)
    assert "h1, h2 serve with" in error.text
    assert done == [
        "h1 after boot one",
        "h2 after boot one",
        f"h1: {UNDO.title}",
        f"h2: {UNDO.title}",
        "h2 after boot two",
        "h1 after boot two('llm',)",
    ]


@pytest.mark.parametrize("failing", ["h2 one", "h2 two"])
def test_one_that_does_not_return_is_named(monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    done, restarted = group_of(monkeypatch, failing)
    error = follow.taken_back(restarted, FAILED)
    assert isinstance(error, NothingServesError)
    assert "h2: away" in error.text
    assert (f"h1: {UNDO.title}" in done) == (failing == "h2 two"), "with one away, none is restarted again"


def test_none_of_several_goes_back_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StepFailedError) as error:
        followed(monkeypatch, FAILED, step=TOGETHER)
    assert error.value is FAILED


def turn_of(monkeypatch: pytest.MonkeyPatch, error: StepFailedError, ordered: set[str]) -> list[str]:
    """Let the turn of two hosts fail; returns the hosts that are taken back."""
    taken = list[str]()
    part = restart_and_wait.Restarted(ordered=ordered)
    monkeypatch.setattr(group_driver, "part_of", lambda *_: part)

    def take(restarted: list[tuple[Host, DriverReturn]], error: StepFailedError) -> StepFailedError:
        taken.extend(host.name for host, _ in restarted)
        return error

    monkeypatch.setattr(group_driver, "taken_back", take)
    _, hosts = group_of(monkeypatch)
    restart = HostRestart(UNDO, (), serving=True, boot="one")
    head, member = ((one, (Change("restart", "", (restart,)), Change("wait", "", (step,)))) for one, step in hosts)
    with pytest.raises(StepFailedError), group_driver.one_driver(*head, [MemberTurn(*member, {})]):
        raise error
    return taken


@pytest.mark.parametrize(
    ("error", "ordered", "taken"),
    [
        (FAILED, {"h1", "h2"}, ["h1", "h2"]),
        (FAILED, {"h1"}, ["h1"]),
        (FAILED, set(), []),
        (NotBackError("away"), {"h1", "h2"}, []),
        (LeaseLostError("lost"), {"h1", "h2"}, []),
    ],
)
def test_of_a_failed_turn_those_go_back_that_were_restarted(
    monkeypatch: pytest.MonkeyPatch, error: StepFailedError, ordered: set[str], taken: list[str]
) -> None:
    assert turn_of(monkeypatch, error, ordered) == taken
