"""Gateways that no longer ask a host: who is missing, and what a rollout says then."""

from __future__ import annotations

import pytest

from rackwright.loading.gateways import with_gateways
from rackwright.loading.host import InventoryHost
from rackwright.messages import RackwrightError
from rackwright.rollout.maintenance.host_marks import HostMarks, marks_in
from rackwright.rollout.silent_gateways import refuse_silent_gateways, silent_gateways
from rackwright.settings.host_settings import HostSettings


def entries(*gateways: str) -> list[InventoryHost]:
    plain = {"tls": False, "port": 80}
    serving = HostSettings.model_validate({"model": {"repository": "m/a", "mount": "/models/m/a"}})
    ways = [
        InventoryHost(name, ("gateway",), {}, HostSettings.model_validate({"gateway": plain}), {}) for name in gateways
    ]
    return with_gateways([*(InventoryHost(name, (), {}, serving, {}) for name in ("a", "b")), *ways])


def marks_of(*rows: str) -> HostMarks:
    return marks_in(["marks", *rows])


def test_one_that_asked_and_no_longer_does_is_missing() -> None:
    marks = {"a": marks_of("asked gw1 llm 1", "asked gw2 llm 40"), "b": marks_of("asked gw1 llm 2", "asked gw2 llm 7")}
    assert silent_gateways(entries("gw1", "gw2"), marks) == {"gw2": {"a": 40, "b": 7}}


def test_the_inventory_says_which_gateways_count_and_a_first_deploy_has_none() -> None:
    marks = {"a": marks_of("asked gone llm 900"), "b": marks_of()}
    assert silent_gateways(entries("gw1"), marks) == {}
    assert silent_gateways(entries(), {"a": marks_of("asked gw1 llm 900")}) == {}
    assert silent_gateways(entries("gw1"), {}) == {}


def test_a_rollout_is_refused_for_its_own_hosts_alone() -> None:
    marks = {"a": marks_of("asked gw1 llm 1"), "b": marks_of("asked gw1 llm 40")}
    refuse_silent_gateways("i.py", entries("gw1"), marks, ["a"])
    with pytest.raises(RackwrightError) as error:
        refuse_silent_gateways("i.py", entries("gw1"), marks, ["a", "b"])
    assert (error.value.code, "gw1" in str(error.value), "b (since 40 s)" in str(error.value)) == ("RW0827", True, True)


@pytest.mark.parametrize("row", ["asked gw1 llm", "asked gw1 llm x", "asked gw1 llm -1", "asked", "asked a b 1 2", "x"])
def test_other_lines_are_no_questions(row: str) -> None:
    assert marks_of(row).questions == ()
