"""The hand-on program as processes on loopback: one copy from the hub, all hosts whole, nothing wrong after a fault."""

from __future__ import annotations

from tests.programs.hand_on_hosts import HUB_TOKEN, MIB, Fleets, content, fleets, program

__all__ = ["fleets", "program"]


def test_the_hub_is_asked_for_one_copy_and_every_host_has_all(fleets: Fleets) -> None:
    files = {"a/model.safetensors": content(9 * MIB + 77), "empty": b"", "b c/%41.json": b"{}", "one": content(MIB)}
    fleet = fleets(4, files)
    for host in fleet.hosts:
        host.start()
    for host in fleet.hosts:
        assert host.wait() == 0, host.text()
        assert host.is_whole()
    assert sum(fleet.hub.sent.values()) == sum(map(len, files.values()))
    assert {token for _, _, token in fleet.hub.asked} == {f"Bearer {HUB_TOKEN}"}
    assert not fleet.listening()
