"""Systems whose packages a bundle has: by the settings, by what hosts say, by --system."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from rackwright.adapter.run.poll import Reply
from rackwright.bundle.apt_root import CODENAMES
from rackwright.bundle.systems import systems_of
from rackwright.cli.bundle import about_packages
from rackwright.hostside import host_script
from rackwright.inspect.systems import systems_in
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.sections import System
from tests.refused import refused
from tests.unit.test_image import MODEL

MACHINES = ("amd64", "arm64")


def host(**hardware: Any) -> HostSettings:
    return HostSettings.model_validate({"model": MODEL, "image": "nvcr.io/x/y:1", "hardware": hardware})


NOBLE, SPARK = host(system="ubuntu-24.04", architecture="x86_64"), host(system="ubuntu-24.04", architecture="aarch64")
EITHER, UNKNOWN = host(system="debian-12"), host()


def test_settings_name_every_system_that_can_be_bundled_and_no_other() -> None:
    assert set(get_args(System)) == CODENAMES.keys()


def test_systems_come_from_the_settings_each_with_the_hosts_that_may_have_it() -> None:
    found = systems_of({"a": NOBLE, "b": SPARK, "c": EITHER, "d": UNKNOWN}, (), MACHINES, {})
    assert found.hosts == {
        "ubuntu-24.04-amd64": [NOBLE, UNKNOWN],
        "ubuntu-24.04-arm64": [SPARK, UNKNOWN],
        "debian-12-amd64": [EITHER, UNKNOWN],
        "debian-12-arm64": [EITHER, UNKNOWN],
    }
    assert found.unknown == ["d"]


def test_what_hosts_have_said_counts_for_those_whose_settings_are_silent() -> None:
    found = systems_of({"a": NOBLE, "d": UNKNOWN}, (), MACHINES, {"d": "debian-13-arm64"})
    assert found.hosts == {"ubuntu-24.04-amd64": [NOBLE], "debian-13-arm64": [UNKNOWN]}
    assert found.unknown == []


def test_a_system_by_name_is_for_hosts_without_one_and_else_for_all() -> None:
    found = systems_of({"a": NOBLE, "d": UNKNOWN}, ("debian-12-amd64",), MACHINES, {})
    assert found.hosts["debian-12-amd64"] == [UNKNOWN]
    assert found.unknown == []
    assert systems_of({"a": NOBLE}, ("debian-12-amd64",), MACHINES, {}).hosts["debian-12-amd64"] == [NOBLE]


def test_hosts_whose_system_is_not_known_are_named_text() -> None:
    assert [*about_packages(["debian-12-amd64"], [])] == ["packages for debian-12-amd64"]
    (text,) = about_packages([], ["gpu01", "gpu02"])
    assert text.startswith("without packages for gpu01, gpu02, whose system is not known")
    assert text.endswith("or --system debian-12-amd64")


def test_the_hosts_script_says_what_its_bundle_is_named_by() -> None:
    replies = {name: Reply((f"system {name}",)) for name in ("debian-12-amd64", "ubuntu-24.04-arm64")}
    assert systems_in(replies) == {name: name for name in replies}
    assert "$ID-$VERSION_ID-$(dpkg --print-architecture)" in host_script("apt"), "as apt.sh asks for it"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Reply(trouble="cannot be reached: refused", reached=False), "gpu02: cannot be reached: refused"),
        (Reply(("system fedora-40-",)), "gpu02: no packages can be bundled for fedora-40-"),
        (Reply(("system debian-11-amd64\x1b[2J",)), "gpu02: no packages can be bundled for debian-11-amd64"),
        (Reply(("Welcome!",)), "gpu02: it said nothing"),
    ],
)
def test_a_host_that_names_no_system_stops_the_bundle_before_it_is_begun(reply: Reply, text: str) -> None:
    with refused("RW3902", "1 of 2 hosts", text) as error:
        systems_in({"gpu01": Reply(("system debian-12-amd64",)), "gpu02": reply})
    assert "\x1b" not in str(error.value)
