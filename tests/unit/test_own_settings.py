"""A concern is handed its own sections of the settings, and nothing that the others' say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackwright.concerns.catalog import ALL
from rackwright.plan.concern import Concern, HostReading
from rackwright.settings.host_settings import ENDPOINTS, HostSettings, UnlistedSectionError
from tests.unit.machines import settings

FULL = settings(
    port=8001,
    docker={"users": ["ann"]},
    firewall={"confirm_timeout": 11},
    registry={"user": "bob"},
    encodings={"folder": "/srv/tiktoken"},
    rollout={"wave": "3"},
)
NOTHING = HostReading({})


def test_every_concern_but_preflight_says_what_it_takes() -> None:
    assert [concern.name for concern in ALL if concern.takes is None] == ["preflight"]
    named = {section for concern in ALL for section in concern.takes or ()}
    assert named <= {*HostSettings.model_fields, ENDPOINTS}


def set_values(handed: HostSettings) -> Mapping[str, Any]:
    """Return the values that settings set beyond the defaults, in the sections that they have."""
    return {
        key: value
        for key, field in HostSettings.model_fields.items()
        if (value := getattr(handed, key, None)) != field.get_default(call_default_factory=True) and value is not None
    }


def test_a_section_that_a_concern_forgot_to_list_is_an_error() -> None:
    def wanted(handed: HostSettings, reading: HostReading) -> object:
        return handed.registry, handed.firewall.confirm_timeout

    takes = frozenset({"registry"})
    one: Concern[Any, None] = Concern("one", lambda _: "", lambda text: None, wanted, lambda *_: [], takes=takes)
    with pytest.raises(UnlistedSectionError, match="section firewall, "):
        one.wanted(FULL, NOTHING)
    with pytest.raises(UnlistedSectionError, match="section model"):
        FULL.only(takes).all_endpoints  # noqa: B018 - a property
    assert FULL.only(takes).registry == FULL.registry
    assert FULL.only(takes).only(takes | {"firewall"}).registry == FULL.registry
    assert FULL.only(takes).site == FULL.site


@pytest.mark.parametrize(
    ("takes", "remaining"),
    [
        (frozenset(), set()),
        (frozenset({"docker"}), {"docker"}),
        (frozenset({"firewall", ENDPOINTS}), {"firewall", "port", "model", "allow_from"}),
        (None, {"docker", "firewall", "registry", "encodings", "rollout", "port", "model", "allow_from"}),
    ],
)
def test_a_concern_that_is_handed_more_sees_its_own_alone(takes: frozenset[str] | None, remaining: set[str]) -> None:
    handed: dict[str, HostSettings] = {}

    def read(settings: HostSettings) -> str:
        handed["read"] = settings
        return ""

    def wanted(settings: HostSettings, reading: HostReading) -> None:
        handed["wanted"] = settings

    def files(settings: HostSettings) -> dict[str, str]:
        handed["files"] = settings
        return {}

    concern: Concern[None, None] = Concern(
        "one", read, lambda text: None, wanted, lambda target, found: [], files=files, takes=takes
    )
    assert concern.files is not None
    concern.read(FULL)
    concern.wanted(FULL, NOTHING)
    concern.files(FULL)
    assert {name: set(set_values(host_settings)) for name, host_settings in handed.items()} == dict.fromkeys(
        ("read", "wanted", "files"), remaining
    )
