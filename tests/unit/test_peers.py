"""What a group serves, and whether a host that comes back would get the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rackwright.inspect.peers import EndpointOfPeers, differences, lock_of, place_of
from rackwright.inspect.status.reading import Asked, EndpointStatus, HostStatus, parse
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.lockfile import Lock, pinned
from tests.unit.test_plan import settings
from tests.unit.test_status import printed

UNPINNED: dict[str, Any] = {"image_digest": None}


def glance() -> HostStatus:
    return parse(printed())


def with_spec(status: HostStatus, **changed: Any) -> HostStatus:
    endpoint = status.endpoints["llm"]
    spec = {**endpoint.observed.spec, **changed}
    return replace(status, endpoints={"llm": EndpointStatus(replace(endpoint.observed, spec=spec))})


def back(settings: HostSettings, peers: dict[str, HostStatus]) -> list[str]:
    """Why the host would get something else than its peers serve."""
    places = {name: place_of(name, peers) for name in settings.all_endpoints}
    lock = lock_of(settings.all_endpoints, places)
    return differences(Asked(pinned(settings, lock)), places)


def test_the_groups_bytes_fill_what_the_settings_leave_open() -> None:
    host_settings, status = settings(**UNPINNED), glance()
    assert back(host_settings, {"a": status, "b": with_spec(status, hash="0123456789ab")}) == [], (
        "its unit is an older one"
    )
    lock = lock_of(host_settings.all_endpoints, {"llm": place_of("llm", {"a": status})})
    assert lock.images == {host_settings.image: status.pins[host_settings.image]}
    assert differences(Asked(host_settings), {"llm": place_of("llm", {"a": status})}) != []


def test_other_options_than_the_groups_are_held_with_their_names() -> None:
    [text] = back(settings(engine={"max_batch_size": 77}), {"a": glance()})
    assert "max_batch_size changed" in text


def test_a_group_in_the_middle_of_a_rollout_has_no_one_release() -> None:
    status = glance()
    [text] = back(settings(), {"a": status, "b": with_spec(status, serving="0123456789ab"), "c": status})
    release = status.endpoints["llm"].observed.proven
    assert f"2 different releases (a, c: {release}; b: {release})" in text


def test_peers_that_do_not_serve_what_they_have_proven_do_not_count() -> None:
    status = glance()
    endpoint = status.endpoints["llm"]
    changes: tuple[dict[str, Any], ...] = ({"health": 503}, {"active": "failed"}, {"proven": "0123456789ab"})
    for changed in changes:
        other = replace(status, endpoints={"llm": replace(endpoint, observed=replace(endpoint.observed, **changed))})
        assert place_of("llm", {"a": other}) == EndpointOfPeers()
    assert back(settings(engine={"max_batch_size": 77}), {}) == []
    assert lock_of(settings().all_endpoints, {"llm": EndpointOfPeers()}) == Lock()


def test_who_serves_with_it_counts_though_it_waits_for_the_host_that_comes_back() -> None:
    status = glance()
    endpoint = replace(status.endpoints["llm"].observed, active="activating", health=None, running=None)
    waits = replace(status, endpoints={"llm": EndpointStatus(endpoint)})
    assert place_of("llm", {"a": waits}).served == ()
    [group] = place_of("llm", {"a": waits}, together=("a", "b")).served
    assert group.hosts == ("a",)
    unproven = replace(status, endpoints={"llm": EndpointStatus(replace(endpoint, current="0123456789ab"))})
    assert place_of("llm", {"a": unproven}, together=("a", "b")).served == ()
