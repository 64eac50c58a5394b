"""Gateways in status, and in a reboot: one after the other, each asked before the next."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rackwright.adapter.run.poll import Reply
from rackwright.cli.reboot import headline
from rackwright.concerns.endpoint.switch.rest_and_return import reboot_changes
from rackwright.concerns.endpoint.switch.steps import HostRestart
from rackwright.concerns.gateway.answer import health_url
from rackwright.concerns.lease import SeenLease
from rackwright.inspect.status.output import rows_on
from rackwright.inspect.status.reading import Asked, HostStatus
from rackwright.inspect.status.rows import rows_of
from rackwright.inspect.status.table import sums
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError
from rackwright.plan.change import Shell
from rackwright.record.cause import Cause, Reason
from rackwright.rollout.last_gateway import refuse_last_gateway
from rackwright.rollout.run_hosts import RunHost, limits_of, may_still_serve
from rackwright.rollout.turn_queue import Outcome, TurnQueue
from rackwright.rollout.waves import Node, Turn
from rackwright.settings.backend import GatewayHost
from rackwright.settings.host_settings import HostSettings
from tests.unit.test_maintenance import serving

NOW = datetime(2026, 11, 27, 7, 0, tzinfo=UTC)


def gateway(**section: object) -> HostSettings:
    return HostSettings.model_validate(
        {"gateway": {"tls": False, "port": 80, **section}, "rollout": {"max_unavailable": "100%"}}
    ).with_gateways((), ())


def test_two_gateways_are_never_down_together_whatever_the_settings_say() -> None:
    hosts = [RunHost(name, n, ("gateway", "rack:1"), True, gateway()) for n, name in enumerate("ab")]
    assert limits_of(hosts, rollout=True).down == {"gateway": 1, "rack:1": 2}


def test_a_gateway_that_restarts_takes_capacity_and_must_answer() -> None:
    [change] = reboot_changes(gateway(), serving(), 600, None)
    restart, last = change.steps[0], change.steps[-1]
    assert isinstance(restart, HostRestart)
    assert restart.serving
    assert isinstance(last, Shell)
    assert last.code == "RW3654"
    [again] = reboot_changes(gateway(), serving(boot="two"), 600, "one")
    assert again.steps == (last,)


@pytest.mark.parametrize("gateway_settings", [True, False])
def test_a_gateway_whose_restart_failed_is_down_whatever_failed(gateway_settings: bool) -> None:
    settings = gateway() if gateway_settings else HostSettings.model_validate({})
    assert may_still_serve(True, "boot", settings) is not gateway_settings
    assert may_still_serve(True, "", settings), "it was not restarted"
    assert not may_still_serve(False, "", settings)


def test_no_error_budget_lets_the_other_gateway_go_when_the_first_is_down() -> None:
    hosts = [RunHost(name, n, ("gateway",), True, gateway()) for n, name in enumerate("ab")]
    turns = TurnQueue(replace(limits_of(hosts, rollout=True), budget=2))
    broken = Outcome((Reason(Cause.DOCKER, "dockerd"),), serves=may_still_serve(True, "boot", gateway()))
    turns.announce(Node("a", 0, True, "x", ("gateway",)), lambda: broken)
    turns.announce(Node("b", 1, True, "y", ("gateway",)), Outcome)
    assert not turns.pass_through("b")
    assert [turns.entries[name].turn for name in "ab"] == [Turn.FAILED, Turn.STOPPED]


@pytest.mark.parametrize(
    ("answering", "restarts", "refused"),
    [
        ({"a", "b"}, ["a", "b"], False),
        ({"a"}, ["a"], True),
        ({"a"}, ["a", "b"], True),
        ({"a"}, ["b"], False),
        (set(), ["a", "b"], False),
    ],
)
def test_the_last_gateway_that_answers_is_not_restarted(
    answering: set[str], restarts: list[str], refused: bool
) -> None:
    with pytest.raises(RackwrightError) if refused else nullcontext() as error:
        refuse_last_gateway("i.py", ["a", "b"], answering, restarts)
    assert error is None or error.value.code == "RW3664"


def test_the_only_gateway_may_restart_and_that_is_said() -> None:
    refuse_last_gateway("i.py", ["a"], {"a"}, ["a"])
    alone = gateway().with_gateways((GatewayHost("a"),), ())
    both = gateway().with_gateways((GatewayHost("a"), GatewayHost("b")), ())
    texts = [headline([InventoryHost("a", ("gateway",), {}, one, {})]) for one in (alone, both)]
    assert texts[0] != texts[1]
    assert "  " not in texts[0] + texts[1]


@pytest.mark.parametrize(
    ("bind", "tls", "url"),
    [
        ("::", False, "http://127.0.0.1:80/healthz"),
        ("0.0.0.0", True, "https://127.0.0.1:80/healthz"),
        ("192.0.2.1", False, "http://192.0.2.1:80/healthz"),
        ("2001:db8::1", False, "http://[2001:db8::1]:80/healthz"),
    ],
)
def test_a_gateway_is_asked_where_it_listens(bind: str, tls: bool, url: str) -> None:
    assert health_url(gateway(bind=bind, tls=tls)) == url
    assert health_url(HostSettings.model_validate({})) == ""


@pytest.mark.parametrize(
    ("printed", "health"),
    [
        ("active 200", "serving"),
        ("active 503", "no host"),
        ("active 000", "no answer"),
        ("failed 000", "stopped"),
        ("inactive 200", "stopped"),
    ],
)
def test_a_gateway_has_a_row_and_is_not_counted_as_an_endpoint(printed: str, health: str) -> None:
    [row] = rows_of("g", Asked(gateway()), HostStatus(9, SeenLease(0, 9, None), (), (), {}, gateway=printed), NOW)
    assert (row.endpoint, row.health, row.gpus) == ("gateway", health, 0)
    assert sums([row]) == "0 endpoints"


def test_a_gateway_that_cannot_be_read_is_not_counted_as_an_endpoint() -> None:
    [row] = rows_on("g", Asked(gateway()), Reply((), "no connection"), NOW)
    assert (row.endpoint, row.health, sums([row])) == ("gateway", "no connection", "0 endpoints")
