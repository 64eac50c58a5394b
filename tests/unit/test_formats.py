"""Two versions of Rackwright on one host: another format is refused by name before anything is written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.release.files import NEEDS
from rackwright.concerns.endpoint.seen import SeenEndpoints, parse
from rackwright.concerns.preflight.concern import PREFLIGHT
from rackwright.concerns.retention import KeptRelease
from rackwright.concerns.retention import parse as parse_kept
from rackwright.concerns.teardown.marks import Marks
from rackwright.concerns.teardown.teardown import plan_teardown
from rackwright.inspect.plan import plan_host
from rackwright.messages import ReadingError
from rackwright.paths import OWNED
from rackwright.plan.change import Owned, Refuse, WriteFile
from rackwright.plan.concern import HostReading
from rackwright.plan.ownership import RECORD, parse_record, render_record
from tests.refused import refused
from tests.unit.machines import EVERYTHING
from tests.unit.test_endpoint_changes import AT_REST, BOOT, WANTED, block, encoded, pending, printed
from tests.unit.test_plan import recorded, settings
from tests.unit.test_status import at_rest, release_drift, with_endpoint

NEWER = "a newer Rackwright wrote its release: spec.json has format 3, this one reads 2"
REFUSED = f"{NEWER}; next: pip install --upgrade CHECKOUT, the newer one or its wheel"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"format": 3, "whatever": "a newer one says"}, 3),
        (WANTED.facts, 2),
        ({"hash": "spoilt"}, 2),
        ({"format": "spoilt"}, 2),
        ({"format": 1}, 2),
    ],
)
def test_the_format_is_read_of_the_current_and_of_the_proven_release(spec: dict[str, Any], found: int) -> None:
    current = printed(block()).replace(encoded(WANTED.files["spec.json"]), encoded(json.dumps(spec)))
    assert parse(current).endpoints["llm"].format == found
    proven = f"{printed(block(proven='0123456789ab'))}proven_spec {encoded(json.dumps(spec))}\n"
    assert parse(proven).endpoints["llm"].format == found


def test_its_endpoint_is_left_alone() -> None:
    (change,) = pending(replace(AT_REST, format=3))
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert step.final
    assert step.text == f"endpoint llm: {REFUSED}"


def test_it_is_refused_before_anything_is_written() -> None:
    plan = plan_host("h", settings(), with_endpoint(at_rest(), format=3), EVERYTHING)
    assert plan.state == "refused"
    assert "nothing was written to it" in plan.refusals[0]
    reading = with_endpoint(recorded("converged"), format=3)
    (change,) = PREFLIGHT.pending(settings(), reading)
    assert "Rackwright" in change.why


def test_not_even_one_that_is_no_longer_wanted_is_removed() -> None:
    host = SeenEndpoints(True, {"old": replace(AT_REST, format=3)}, dict(BOOT), True)
    reading = HostReading({**recorded("converged").by_concern, ENDPOINT.name: host})
    assert [change.what for change in ENDPOINT.pending(settings(), reading)] == ["leave endpoint old alone"]


def test_drift_says_who_wrote_it() -> None:
    assert f"endpoint llm: {NEWER}" in [one.text for one in release_drift(with_endpoint(at_rest(), format=3))]


def test_a_host_of_another_format_is_torn_down() -> None:
    text = printed(block(running="f941040613a5")).replace(
        encoded(WANTED.files["spec.json"]), encoded(json.dumps({"format": 3}))
    )
    record = frozenset({Owned("unit", "rackwright-llm.service")})
    reading = HostReading({**recorded("converged").by_concern, ENDPOINT.name: parse(text), RECORD.name: record})
    found = plan_teardown(reading, Marks(), purge=False)
    assert any("rackwright-llm.service" in change.what for change in found.changes)


# -- what a release needs


def test_what_a_release_needs_is_read_from_its_own_list() -> None:
    output = f"{WANTED.hash} {encoded(WANTED.files[NEEDS])}\nf941040613a5 \n"
    assert parse_kept(output).releases == (
        KeptRelease(WANTED.hash, WANTED.spec.image, frozenset({"/srv/models/base", "/srv/encodings"})),
        KeptRelease("f941040613a5", "", frozenset()),
    )


# -- the ownership record


def test_the_record_says_its_format_and_another_one_is_refused_by_name() -> None:
    step = render_record([Owned("package", "curl")])
    assert isinstance(step, WriteFile)
    assert parse_record(f"file {OWNED} {encoded(str(step.content))}") == {Owned("package", "curl")}
    with refused("RW0503", "owned.json ", "format 2, ", "reads 1; next: pip install", error=ReadingError):
        parse_record(in_format("2"))


@pytest.mark.parametrize("found", ['"two"', "true", "null", "[1]", "1.5", "0"])
def test_a_format_that_no_version_wrote_is_a_damaged_record(found: str) -> None:
    with pytest.raises(ReadingError, match=r"^RW0504: "):
        parse_record(in_format(found))


def in_format(found: str) -> str:
    """Return a record as it is read from a host. found: its format, as JSON."""
    step = render_record([Owned("package", "curl")])
    assert isinstance(step, WriteFile)
    return f"file {OWNED} {encoded(str(step.content).replace('1,', f'{found},', 1))}"
