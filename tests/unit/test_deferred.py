"""A wanted release that serves the same as what runs waits for the next switch, and nothing counts that as drift."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rackwright.cli.rollout import add_parser, given
from rackwright.concerns.endpoint.binding import Binding
from rackwright.concerns.endpoint.concern import ENDPOINT, adopted_later, changes
from rackwright.concerns.endpoint.release.concern import RELEASE, SeenReleases, binding_of, wanted_release
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoints
from rackwright.concerns.endpoint.wanted import WantedEndpoints
from rackwright.concerns.endpoint.why_switch import Aim, why_switch
from rackwright.concerns.gpus import GPUS
from rackwright.inspect.drift import drift_of
from rackwright.inspect.grouping import exit_code
from rackwright.inspect.plan import plan_host
from rackwright.inspect.plan_text import plan_text, plan_values
from rackwright.inspect.status.reading import Asked, parse
from rackwright.inspect.status.rows import StatusRow, rows_of
from rackwright.inspect.status.table import render
from rackwright.loading.load import nested
from rackwright.plan.change import Shell
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import HostSettings
from tests import texts
from tests.unit.machines import EVERYTHING
from tests.unit.test_endpoint_changes import AT_REST, BOOT, BOUND, EDITED, WANTED, assigned, pending, proved, wanting
from tests.unit.test_plan import recorded, serving, settings
from tests.unit.test_status import NOW, at_rest, printed, release_drift

LOADING: dict[str, Any] = {"active": "activating", "sub": "start-post", "health": None}


def test_what_differs_in_the_unit_alone_restarts_nothing_text() -> None:
    assert EDITED.hash != WANTED.hash
    assert pending(AT_REST, EDITED) == []
    host = SeenEndpoints(True, {"llm": AT_REST}, dict(BOOT), True)
    [text] = adopted_later(WantedEndpoints({"llm": wanting(EDITED)}, BOOT), host)
    assert text.startswith(f"release {EDITED.hash} of endpoint llm is adopted at the next switch")
    assert adopted_later(WantedEndpoints({"llm": wanting(WANTED)}, BOOT), host) == []


@pytest.mark.parametrize("running", [AT_REST.running, None])
def test_nor_while_it_loads_as_after_a_reboot(running: Any) -> None:
    """Before its container is there nothing carries a label, and the pointer must stay where it is."""
    assert pending(replace(AT_REST, **LOADING, running=running), EDITED) == []


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"running": None, "active": "failed", "result": "exit-code"}, "it gave up (exit-code)"),
        ({"health": 500}, "it runs, but /health answers 500"),
        ({"proven": None}, f"release {WANTED.hash} was never proven"),
        ({"files_whole": False}, f"files of release {WANTED.hash} were changed by hand"),
        ({"current": None}, f"it runs release {WANTED.hash}, and `current` points to nothing"),
        ({**LOADING, "running": None, "unit_same": False}, "it should run, but is activating (start-post)"),
        ({**LOADING, "running": None, "binding": None}, "it should run, but is activating (start-post)"),
    ],
)
def test_a_switch_that_is_due_anyway_adopts_it(changed: Mapping[str, Any], why: str) -> None:
    (change,) = pending(replace(AT_REST, **changed), EDITED)
    assert change.why == why
    assert proved(change).release == EDITED.hash


def test_it_is_adopted_when_that_is_asked_for_and_rolls_back_when_it_fails() -> None:
    wanted = WantedEndpoints({"llm": wanting(EDITED, adopt=True)}, BOOT)
    (change,) = changes(wanted, SeenEndpoints(True, {"llm": AT_REST}, dict(BOOT), True))
    assert change.why == texts.ADOPTS
    step = proved(change)
    assert (step.release, step.restarts, step.serving) == (EDITED.hash, True, True)
    assert assigned(step, "previous") == f"release {WANTED.hash}"
    assert why_switch(Aim(WANTED, BOUND, adopt=True), AT_REST) is None, "nothing waits"


@pytest.mark.parametrize(("words", "adopt"), [(["--adopt"], {"rollout.adopt": True}), ([], {})])
def test_the_rollouts_option_is_a_setting_of_its_hosts(words: list[str], adopt: dict[str, Any]) -> None:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    options = given(parser.parse_args(["rollout", "hosts.py", *words]))
    assert options == {"gate.level": "full", **adopt}
    host_settings = settings(**nested(options))
    assert ENDPOINT.wanted(host_settings, at_rest()).endpoints["llm"].adopt == bool(adopt)


@pytest.mark.parametrize(
    ("changed", "found"),
    [({"unit_same": False}, "its text differs"), ({"enabled": False}, "it is not enabled at boot")],
)
def test_what_is_put_back_meanwhile_is_the_running_release(changed: Mapping[str, Any], found: str) -> None:
    (change,) = pending(replace(AT_REST, **changed), EDITED)
    assert change.why == found
    (step,) = change.steps
    assert isinstance(step, Shell)
    assert WANTED.path in step.script
    assert EDITED.hash not in step.script


# -- what people see of it


def edited_host() -> tuple[HostSettings, HostReading, Release]:
    """Return a serving host, and settings that differ from its release in a limit alone."""
    host_settings = settings(stop_timeout=61)
    release = wanted_release("llm", host_settings, host_settings, at_rest())
    assert isinstance(release, Release)
    return host_settings, at_rest(), release


def staged(reading: HostReading, release: Release) -> HostReading:
    """Return the same host with that release staged."""
    sums = {**reading[RELEASE].sums["llm"], release.hash: release.sums}
    return HostReading({**reading.by_concern, RELEASE.name: SeenReleases({"llm": sums})})


def test_a_plan_stages_it_and_then_has_nothing_to_do() -> None:
    host_settings, reading, release = edited_host()
    before = plan_host("h", host_settings, reading, EVERYTHING)
    [staging] = [one for one in before.changes if one.concern in ("release", "endpoint")]
    assert staging.concern == "release"
    assert staging.restarts == ""
    assert "+TimeoutStopSec=76" in staging.diff, "people see what will differ"
    after = plan_host("h", host_settings, staged(reading, release), EVERYTHING)
    assert not [one for one in after.changes if one.concern in ("release", "endpoint")]
    quiet = replace(after, state="converged", changes=())
    assert exit_code([quiet]) == 0
    message = f"release {release.hash} of endpoint llm is adopted at the next switch"
    assert message in plan_text([quiet])
    assert [text[: len(message)] for text in plan_values([quiet])["hosts"][0]["notes"]] == [message]


def test_it_is_no_drift() -> None:
    host_settings, reading, release = edited_host()
    assert release_drift(reading, host_settings) == []
    assert release_drift(staged(reading, release), host_settings) == []
    assert "endpoint" not in {one.concern for one in drift_of("h", host_settings, reading, EVERYTHING).findings}


def test_status_says_so_and_counts_nobody_as_behind_text() -> None:
    host_settings, _, release = edited_host()
    rows: list[StatusRow] = [
        row for host in ("a", "b") for row in rows_of(host, Asked(host_settings), parse(printed()), NOW)
    ]
    assert [(row.wanted, row.drift, row.adopts) for row in rows] == [(True, False, release.hash)] * 2
    text = render(rows)
    assert "behind" not in text
    assert f"llm: release {release.hash} is adopted at the next switch by 2 hosts (a, b)" in text


def test_status_groups_hosts_by_release_where_there_are_several() -> None:
    [row] = rows_of("a", Asked(settings()), parse(printed()), NOW)
    same = [row, replace(row, host="b")]
    assert f"release {row.release} on" not in render(same), "the table says it"
    text = render([*same, replace(row, host="c", release="0123456789ab")])
    assert f"llm: release {row.release} on 2 hosts (a, b)" in text
    assert "llm: release 0123456789ab on c" in text


# -- GPUs


def swapped(reading: HostReading) -> HostReading:
    """Return the host with another GPU in place of its first."""
    gpu_reading = reading[GPUS]
    first = replace(gpu_reading.gpus[0], uuid="GPU-from-the-shelf")
    return HostReading({**reading.by_concern, GPUS.name: replace(gpu_reading, gpus=(first, *gpu_reading.gpus[1:]))})


def test_hosts_with_other_gpus_have_the_same_release() -> None:
    host_settings, one, other = settings(), recorded("converged"), swapped(recorded("converged"))
    first, second = (wanted_release("llm", host_settings, host_settings, reading) for reading in (one, other))
    assert isinstance(first, Release)
    assert first == second
    assert binding_of(host_settings, one, host_settings) != binding_of(host_settings, other, host_settings)


def test_a_swapped_gpu_restarts_the_same_release_with_the_new_binding() -> None:
    reading = swapped(serving(recorded("converged"), settings()))
    (change,) = ENDPOINT.pending(settings(), reading)
    assert change.why == "its GPUs changed"
    step = proved(change)
    assert step.release == reading[ENDPOINT].endpoints["llm"].current
    assert binding_of(settings(), reading, settings()).text in assigned(step, "forward")
    assert assigned(step, "previous") == "", "the old GPU is gone"


def test_one_that_gave_up_for_it_says_so_text() -> None:
    failed: dict[str, Any] = {
        "running": None,
        "active": "failed",
        "result": "exit-code",
        "binding": Binding(("GPU-gone",)),
    }
    (change,) = pending(replace(AT_REST, **failed))
    assert change.why == "it gave up (exit-code), and its GPUs changed"


def test_other_gpus_that_fail_roll_back_to_those_of_before_which_are_still_there() -> None:
    old = Binding(("GPU-3", "GPU-4"))
    reading = replace(AT_REST, running=replace(AT_REST.running, binding=old.hash), binding=old, proven_binding=old)  # type: ignore[type-var]
    wanted = WantedEndpoints({"llm": wanting(gpus={*old.gpus, *BOUND.gpus})}, BOOT)
    (change,) = changes(wanted, SeenEndpoints(True, {"llm": reading}, dict(BOOT), True))
    step = proved(change)
    assert assigned(step, "previous") == f"release {WANTED.hash}"
    assert old.text in assigned(step, "back")
    assert BOUND.text in assigned(step, "forward")
    assert BOUND.text in assigned(step, "commit")
    assert assigned(step, "known") == "no", "it was never proven with these GPUs"


@pytest.mark.parametrize(("gpus", "found"), [("all", 8), ([0, 3], 2), ([0, 8], 0)])
def test_an_endpoint_is_bound_to_all_gpus_that_are_asked_for_or_to_none(gpus: Any, found: int) -> None:
    assert len(binding_of(settings(gpus=gpus), recorded("converged"), settings(gpus=gpus)).gpus) == found
