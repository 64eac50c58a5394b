"""The way of a model or an image in a plan: from its source or from hosts that have it, and then from host to host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rackwright.concerns.deploy_steps import Declared
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.seen import SeenEndpoints
from rackwright.concerns.handed_images import handed_on, images_asked_for, label_of
from rackwright.concerns.image import IMAGE
from rackwright.concerns.models import MODELS
from rackwright.concerns.models.fleet import asked_for, nearest
from rackwright.concerns.models.neighbours import Link
from rackwright.inspect.handed_on import AT_MOST, SHOWN, HandedWay, with_ways
from rackwright.inspect.read_hosts import Surveyed
from rackwright.settings.host_settings import HostSettings
from tests.unit import test_handed_images as images
from tests.unit.test_neighbours import COMMIT, complete, reading, settings

LABEL = f"openai/gpt-oss-20b at {COMMIT[:12]}"


def surveyed(name: str, has: bool, given: HostSettings | None = None) -> Surveyed:
    link = Link("bond1", f"10.0.0.{int(name[1:])}", 10_000)
    read = reading(*([complete()] if has else []), links=(link,))
    read = replace(read, by_concern={**read.by_concern, ENDPOINT.name: SeenEndpoints(True, {}, {}, True)})
    return Surveyed(name, given or settings(), Declared(("models",)), read)


def ways(
    plan: Sequence[Surveyed], others: Sequence[Surveyed] = (), given: HostSettings | None = None
) -> tuple[list[Surveyed], list[HandedWay], list[str]]:
    """Return what a plan for some hosts says; others: hosts that are only looked at."""
    looked: list[str] = []

    def look(names: Sequence[str]) -> list[Surveyed]:
        looked.extend(names)
        return [one for one in others if one.name in names]

    names = sorted(one.name for one in [*plan, *others])
    return *with_ways(plan, dict.fromkeys(names, given or settings()), look), looked


def why(one: Surveyed) -> str:
    assert one.reading is not None
    [change] = MODELS.pending(one.settings, one.reading)
    return change.why


def test_a_plan_says_who_asks_the_hub_and_who_takes_from_whom() -> None:
    hosts, [way], looked = ways([surveyed(f"h{number}", has=False) for number in range(1, 4)])
    assert way.text == f"handed on: {LABEL}: the hub > h1 > h2 > h3"
    assert way.values == {"model": LABEL, "from": ["hub"], "hosts": ["h1", "h2", "h3"]}
    assert [why(one).partition("; ")[2] for one in hosts] == ["", "h1 hands it on", "h2 hands it on"]
    assert looked == []


def test_a_host_that_has_it_gives_it_and_has_nothing_to_change() -> None:
    hosts, [way], looked = ways([surveyed("h1", has=True), surveyed("h2", has=False)])
    assert way.text == f"handed on: {LABEL}: h1 > h2"
    assert hosts[0].reading is not None
    assert MODELS.pending(hosts[0].settings, hosts[0].reading) == []
    assert looked == []


def test_a_plan_for_one_host_looks_at_those_next_to_it_and_says_who_gives() -> None:
    others = [surveyed(f"h{number}", has=number in {3, 5, 9}) for number in (1, 2, 3, 5, 6, 7, 8, 9)]
    [host], [way], looked = ways([surveyed("h4", has=False)], others)
    assert looked == ["h3", "h5", "h2", "h6"]
    assert len(looked) == AT_MOST
    assert way.text == f"handed on: {LABEL}: h3 or h5 > h4"
    assert why(host).endswith("; h3 hands it on")


@pytest.mark.parametrize("off", [{"hand_on": {"neighbours": False}}, {"downloads": {}}])
def test_no_other_host_is_looked_at_where_the_settings_say_so(off: dict[str, object]) -> None:
    given = settings(**off)
    _, _, looked = ways([surveyed("h2", has=False, given=given)], [surveyed("h1", has=True)], given)
    assert looked == []
    assert asked_for(given) == frozenset()


def test_nothing_is_said_where_no_host_lacks_it() -> None:
    assert ways([surveyed("h1", has=True)])[1] == []


def test_a_long_way_is_one_line() -> None:
    way = HandedWay('["a/b", "' + "c" * 40 + '", [], []]', (), tuple(f"h{number}" for number in range(32)))
    assert way.text == f"handed on: a/b at {'c' * 12}: the hub > h0 > h1 > h2 > h3 > h4 > h5 > h6 > ... > h31"
    assert len(way.text.split(" > ")) == SHOWN + 2


def test_the_nearest_hosts_stand_next_to_a_host_in_the_inventory() -> None:
    assert nearest(["a", "b", "c", "d", "e"], "d") == ["c", "e", "b", "a"]


IMAGE_LABEL = "nvcr.io/nvidia/tensorrt-llm/release at sha256:111111111111 for amd64"


def with_image(name: str, has: bool) -> Surveyed:
    read = images.reading(*([images.HAS] if has else []), number=int(name[1:]), store="/x" if has else "")
    read = replace(read, by_concern={**read.by_concern, ENDPOINT.name: SeenEndpoints(True, {}, {}, True)})
    return Surveyed(name, images.settings(), Declared(("image",)), read)


def test_a_plan_says_who_asks_the_registry_for_an_image_and_who_takes_it_from_whom() -> None:
    hosts, [way], _ = ways([with_image(f"h{number}", has=False) for number in (1, 2)], given=images.settings())
    assert way.text == f"handed on: {IMAGE_LABEL}: the registry > h1 > h2"
    assert way.values == {"image": IMAGE_LABEL, "from": ["registry"], "hosts": ["h1", "h2"]}
    second = hosts[1]
    assert second.reading is not None
    [change] = handed_on(IMAGE.pending(second.settings, second.reading), second.settings, second.reading)
    assert change.why.endswith("; h1 hands it on")


def test_a_plan_for_one_host_finds_its_image_on_those_next_to_it() -> None:
    others = [with_image(f"h{number}", has=number == 3) for number in (1, 3, 4)]
    _, [way], looked = ways([with_image("h2", has=False)], others, images.settings())
    assert way.text == f"handed on: {IMAGE_LABEL}: h3 > h2"
    assert looked[0] in {"h1", "h3"}


@pytest.mark.parametrize("off", [{"neighbours": False}, {"images": False}])
def test_no_host_is_asked_for_an_image_where_the_settings_say_so(off: dict[str, object]) -> None:
    given = images.settings(downloads={"hand_on": {"interface": "bond1", "images": True, **off}})
    assert images_asked_for(given) == frozenset()


@pytest.mark.parametrize(("architecture", "machines"), [("x86_64", {"amd64"}), (None, {"amd64", "arm64"})])
def test_an_image_is_asked_of_hosts_that_may_have_its_architecture(
    architecture: str | None, machines: set[str]
) -> None:
    given = images.settings(hardware={"architecture": architecture})
    assert {label_of(name).rpartition(" ")[2] for name in images_asked_for(given)} == machines
