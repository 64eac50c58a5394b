"""Hosts outside a run: which are asked, whose lease is taken, and how long it is held."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.seen import SeenEndpoints
from rackwright.concerns.lease import LEASED, parse_seen
from rackwright.concerns.models import MODELS
from rackwright.concerns.models.fleet import Fleet, chains_of
from rackwright.concerns.models.neighbours import Link
from rackwright.messages import RackwrightError
from rackwright.operations import outside_hosts
from rackwright.operations.handed_kinds import HANDED_IMAGES, HANDED_MODELS, HandedKind
from rackwright.operations.outside_hosts import AGAIN, PAUSE, OutsideHost, found_outside, hand_on
from rackwright.plan.change import Job
from rackwright.plan.concern import HostReading
from rackwright.plan.hand_on import HandsOn, Sharer
from rackwright.remote.job_scripts import Ended
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret
from tests.unit import test_handed_images as images
from tests.unit.test_neighbours import TOKEN, complete, reading, settings

HELD = "its lease is taken"
ALSO_READ = {ENDPOINT.name: SeenEndpoints(True, {}, {}, True), LEASED.name: parse_seen([])}


def of_host(number: int, has: bool, busy: bool = False) -> HostReading:
    """Return what is read of a host that has the model, or not. busy: it hands it on to another run."""
    read = reading(*([complete()] if has else []), links=(Link("bond1", f"10.0.0.{number}", 10_000),))
    models = replace(read[MODELS], handing_on=frozenset({7461} if busy else ()))
    return replace(read, by_concern={**read.by_concern, MODELS.name: models, **ALSO_READ})


def with_image(number: int, has: bool, busy: bool = False) -> HostReading:
    """Return the same of an image."""
    read = images.reading(*([images.HAS] if has else []), number=number, store="/x" if has else "")
    models = replace(read[MODELS], handing_on=frozenset({7462} if busy else ()))
    return replace(read, by_concern={**read.by_concern, MODELS.name: models, **ALSO_READ})


@dataclass
class Site:
    """An inventory of h1 to h9, of which a run is for some; what was done to the others, in order."""

    chosen: set[str]
    having: set[str]
    busy: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    given: Mapping[str, HostSettings] = field(default_factory=dict)
    kind: HandedKind = HANDED_MODELS
    hands_on_already: set[str] = field(default_factory=set)
    """Hosts that hand it on to another run."""

    def __post_init__(self) -> None:
        hosts = [SimpleNamespace(name=f"h{number}") for number in range(1, 10)]
        by_name = {host.name: host for host in hosts}
        inventory: Any = SimpleNamespace(get_host=by_name.get)
        self.state: Any = SimpleNamespace(
            inventory=_Listed(hosts, inventory), is_host_in_limit=lambda one: one.name in self.chosen
        )
        for host in hosts:
            host.state = self.state
        self.hosts: dict[str, Any] = by_name

    def settings_of(self, host: Any) -> HostSettings:
        return self.given.get(host.name, settings() if self.kind is HANDED_MODELS else images.settings())

    def read(self, name: str) -> HostReading:
        look = of_host if self.kind is HANDED_MODELS else with_image
        return look(int(name[1:]), name in self.having, name in self.hands_on_already)

    def fleet(self) -> Fleet:
        found = {}
        for name in sorted(self.chosen):
            given = self.settings_of(self.hosts[name])
            found[name] = dict(self.kind.sharers(name, given, self.read(name), False))
        return found

    def take(self, host: Any, _reading: Any, outside: bool) -> None:
        assert outside
        if host.name in self.busy:
            raise RackwrightError(HELD, code="RW0705")
        self.done.append(f"lease {host.name}")

    def names(self) -> list[str]:
        host = self.hosts[min(self.chosen)]
        return [one.host.name for one in found_outside(host, self.fleet(), self.kind)]


class _Listed(list[Any]):
    def __init__(self, hosts: list[Any], inventory: Any) -> None:
        super().__init__(hosts)
        self.get_host = inventory.get_host


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Site]:
    def make(chosen: set[str], having: set[str], **more: Any) -> Site:
        made = Site(chosen, having, **more)

        def note(what: str) -> Callable[..., None]:
            return lambda host, *_, **__: made.done.append(f"{what} {host.name}")

        def read(host: Any, _settings: Any, _concerns: Any) -> HostReading:
            return made.read(host.name)

        fakes: dict[str, Any] = {
            "settings_of": made.settings_of,
            "settings_beside": lambda hosts: {one.name: made.settings_of(one) for one in hosts},
            "connect": note("connect"),
            "close": note("close"),
            "read_concerns": read,
            "take": made.take,
            "hold_of": lambda host: host.name,
            "give_back": note("free"),
            "say": lambda _host, text, *_: made.output.append(text),
        }
        for name, fake in fakes.items():
            monkeypatch.setattr(outside_hosts, name, fake)
        return made

    return make


def test_the_nearest_hosts_that_have_it_are_found_and_the_others_let_go(site: Callable[..., Site]) -> None:
    run = site({"h5"}, {"h3", "h4", "h9"})
    assert run.names() == ["h4", "h3"]
    assert sorted(run.done) == sorted(
        ["connect h4", "connect h6", "connect h3", "connect h7", "lease h4", "lease h3", "close h6", "close h7"]
    )
    assert run.output[0].endswith("asking h4, h6, h3 and 5 more")


def test_no_other_host_is_asked_where_one_of_the_run_has_it_or_none_lacks_it(site: Callable[..., Site]) -> None:
    assert site({"h5", "h6"}, {"h6", "h1"}).names() == []
    run = site({"h5"}, {"h5", "h4"})
    assert (run.names(), run.done, run.output) == ([], [], [])


def test_one_that_another_run_writes_to_is_left_alone_and_the_next_one_gives(site: Callable[..., Site]) -> None:
    run = site({"h5"}, {"h4", "h6"}, busy={"h4"})
    assert run.names() == ["h6"]
    assert "close h4" in run.done
    assert any(HELD in text for text in run.output)


def test_further_hosts_are_asked_until_enough_have_it_and_not_all_of_a_fleet(site: Callable[..., Site]) -> None:
    run = site({"h1"}, {"h9"})
    assert run.names() == ["h9"]
    assert len([text for text in run.done if text.startswith("connect")]) == 8


@pytest.mark.parametrize("of", ["h5", "h4"])
def test_a_setting_keeps_a_run_to_its_own_hosts_and_a_host_to_its_own_runs(site: Callable[..., Site], of: str) -> None:
    alone = settings(hand_on={"neighbours": False})
    run = site({"h5"}, {"h4"}, given={of: alone})
    assert (run.names(), "lease h4" in run.done) == ([], False)


@pytest.mark.parametrize("kind", [HANDED_MODELS, HANDED_IMAGES], ids=["models", "images"])
def test_the_lease_is_held_until_the_job_runs_and_no_longer(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, kind: HandedKind
) -> None:
    run, jobs = site({"h5"}, {"h4"}, kind=kind), list[Job]()
    freed, over = threading.Event(), threading.Event()
    [one] = found_outside(run.hosts["h5"], run.fleet(), run.kind)

    def show_job(_host: Any, job: Job, _show: Any, begun: Callable[[], None]) -> Ended:
        jobs.append(job)
        run.done.append("begin h4")
        begun()
        assert freed.wait(10)
        run.done.append("end h4")
        return Ended(0)

    def give_back(*_: Any) -> None:
        run.done.append("free h4")
        freed.set()

    def close(*_: Any) -> None:
        run.done.append("close h4")
        over.set()

    for name, fake in {"show_job": show_job, "give_back": give_back, "close": close}.items():
        monkeypatch.setattr(outside_hosts, name, fake)
    hand_on(one, parts_of(run, one))
    assert over.wait(10)
    assert run.done[-4:] == ["begin h4", "free h4", "end h4", "close h4"]
    [job] = jobs
    assert (job.waits, job.outside, job.helps) == (True, True, True)
    assert job.name.startswith("hand-on-")


def parts_of(run: Site, one: OutsideHost) -> HandsOn:
    fleet = {name: {**run.fleet().get(name, {}), **(one.has if name == one.host.name else {})} for name in run.hosts}
    return HandsOn(chains_of(fleet, lambda _: None)[one.host.name], {"run_token": Secret(TOKEN)})


def test_an_image_is_asked_of_hosts_outside_the_run_too(site: Callable[..., Site]) -> None:
    run = site({"h5"}, {"h4", "h9"}, kind=HANDED_IMAGES)
    assert run.names() == ["h4", "h9"]
    assert run.output[0].startswith("  nvcr.io/nvidia/tensorrt-llm/release at sha256:1")


def test_more_hosts_are_asked_where_the_nearest_hand_it_on_to_another_run(site: Callable[..., Site]) -> None:
    run = site({"h5"}, {"h4", "h6", "h9"}, hands_on_already={"h4", "h6"})
    assert run.names() == ["h4", "h6", "h9"]
    fleet = {name: {**run.fleet().get(name, {}), **busy_or_free(run, name)} for name in run.hosts}
    [part] = chains_of(fleet, lambda _: None)["h5"].values()
    assert [one.host for one in part.sources] == ["h9", "h4"], "one that is free comes first"
    assert not part.waits


def busy_or_free(run: Site, name: str) -> Mapping[str, Sharer]:
    found = run.kind.sharers(name, run.settings_of(run.hosts[name]), run.read(name), False)
    return {model: replace(one, outside=True) for model, one in found.items() if one.has}


def test_two_kinds_share_a_connection_and_the_last_one_closes_it(site: Callable[..., Site]) -> None:
    run = site({"h5"}, {"h4"}, kind=HANDED_IMAGES)
    [first] = found_outside(run.hosts["h5"], run.fleet(), HANDED_IMAGES)
    run.kind = HANDED_MODELS
    [second] = found_outside(run.hosts["h5"], run.fleet(), HANDED_MODELS)
    outside_hosts.leave(first)
    assert run.done.count("connect h4") == 1
    assert "close h4" not in run.done
    outside_hosts.leave(second)
    assert run.done.count("close h4") == 1


def test_hosts_that_another_run_writes_to_are_asked_again_where_no_other_has_it(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, pauses = site({"h5"}, {"h4"}, busy={"h4"}), list[float]()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            run.busy.clear()

    monkeypatch.setattr(outside_hosts, "sleep", sleep)
    assert run.names() == ["h4"]
    assert pauses == [PAUSE, PAUSE]
    assert run.done.count("connect h4") == 3
    assert run.done.count("close h4") == 2
    alone = site({"h5"}, {"h4"}, busy={"h4"})
    monkeypatch.setattr(outside_hosts, "sleep", pauses.append)
    assert alone.names() == []
    assert len(pauses) == 2 + AGAIN, "and not for ever"
