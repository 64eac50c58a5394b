"""An endpoint of several hosts: which hosts they are, what is refused, and what each of them gets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rackwright.adapter.run.inventories import load_inventory, refuse_half_groups
from rackwright.cli.resume import still_there
from rackwright.concerns.drained import Drained
from rackwright.concerns.endpoint.binding import Binding, parse_binding
from rackwright.concerns.endpoint.group.members import Stage, is_elsewhere, is_join, member_changes, stage_of
from rackwright.concerns.endpoint.group.other_hosts import on_other_hosts
from rackwright.concerns.endpoint.release.concern import bound_to, release_of, unseen
from rackwright.concerns.endpoint.release.files import Release
from rackwright.concerns.endpoint.seen import SeenEndpoint, SeenEndpoints
from rackwright.concerns.endpoint.wanted import WantedEndpoint
from rackwright.concerns.firewall.iptables_rules import member_rules
from rackwright.concerns.firewall.nft_drops import drops
from rackwright.concerns.firewall.older import as_nft
from rackwright.concerns.firewall.place import listeners
from rackwright.loading.group import mates_of
from rackwright.loading.host import InventoryHost
from rackwright.loading.notes import notes
from rackwright.messages import RackwrightError, SettingsError
from rackwright.record.record import record_of
from rackwright.rollout.forward_and_back import of_all
from rackwright.rollout.maintenance.capacity import HostCapacity, as_ones, heads, refuse_halves, too_many_down
from rackwright.rollout.participants import choose_participants
from rackwright.rollout.resuming import Rest
from tests import texts
from tests.nft_model import Packet, verdict
from tests.older_drops import older_drops
from tests.refused import refused

PAIR = """
hosts: 2
network: host
engine_kind: vllm
image: vllm/vllm-openai:v0.14.1
harmony: false
hardware: {gpu_count: 1}
model: {repository: openai/gpt-oss-20b, mount: /config/models/gpt-oss-20b}
engine: {tensor-parallel-size: 2}
"""

SGLANG = PAIR.replace("engine_kind: vllm", "engine_kind: sglang").replace(
    "vllm/vllm-openai:v0.14.1", "lmsysorg/sglang:v0.5.8"
)
TRTLLM = {
    "engine_kind: vllm": "engine_kind: tensorrt-llm",
    "vllm/vllm-openai:v0.14.1": "nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
    "tensor-parallel-size": "tensor_parallel_size",
}
TWO = """
hardware: {gpu_count: 2}
endpoints:
  llm: {gpus: [0]}
  second: {hosts: 1, gpus: [1], port: 8009, engine: {tensor-parallel-size: 1}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "host_vars").mkdir()
    return tmp_path


def of_groups(settings: Any) -> list[str]:
    """Return the problems of the settings, but for the encodings, which these do without."""
    return [note for note in notes(settings) if not note.startswith("RW0344")]


def loaded(site: Path, settings: str = PAIR, hosts: int = 2, **overrides: str) -> list[InventoryHost]:
    """Load the hosts h1, h2, ...; overrides: their host_vars."""
    entries = ", ".join(f"('h{at}', {{'ssh_hostname': '10.9.0.{at}'}})" for at in range(1, hosts + 1))
    text = f"from rackwright.inventory import build\nglobals().update(build(__file__, {{'pair': [{entries}]}}))\n"
    (site / "inventory/x.py").write_text(text)
    (site / "group_vars/pair.yml").write_text(settings)
    for name, lines in overrides.items():
        (site / f"host_vars/{name}.yml").write_text(lines)
    return load_inventory(site / "inventory/x.py")


def release_for(host: InventoryHost) -> Release:
    endpoint = host.settings.all_endpoints["llm"]
    return release_of("llm", endpoint, host.settings, unseen(endpoint, host.settings))


def binding_for(host: InventoryHost) -> Binding:
    return bound_to(host.settings.all_endpoints["llm"], {0: f"GPU-{host.name}"}, host.settings.group)


def membership(host: InventoryHost) -> tuple[tuple[str, ...], int]:
    assert host.settings.group is not None
    return host.settings.group.hosts, host.settings.group.rank


def test_a_number_takes_neighbours_in_the_inventorys_order(site: Path) -> None:
    found = [membership(host) for host in loaded(site, hosts=4)]
    assert found == [(("h1", "h2"), 0), (("h1", "h2"), 1), (("h3", "h4"), 0), (("h3", "h4"), 1)]


def test_names_take_these_hosts_and_ranks_follow_the_inventory(site: Path) -> None:
    found = [membership(host) for host in loaded(site, PAIR.replace("hosts: 2", "hosts: [h2, h1]"))]
    assert found == [(("h1", "h2"), 0), (("h1", "h2"), 1)]


def test_an_endpoint_of_one_host_is_in_no_group(site: Path) -> None:
    alone = PAIR.replace("hosts: 2\n", "").replace("size: 2", "size: 1")
    assert [host.settings.group for host in loaded(site, alone)] == [None, None]


@pytest.mark.parametrize(
    ("change", "overrides", "hosts", "says"),
    [
        ({}, {}, 3, "RW0230: group_vars/pair.yml:2: hosts: 2 hosts serve one endpoint together, and h3 is left over"),
        ({"hosts: 2": "hosts: [h1, h9]"}, {}, 2, "h9 is not a host of this inventory"),
        ({"hosts: 2": "hosts: [h1, h2]"}, {}, 3, "h3 has this list and is not in it"),
        ({"hosts: 2": "hosts: [h1, h1]"}, {}, 2, "names a host twice"),
        ({"hosts: 2": "hosts: 0"}, {}, 2, "must be a number of hosts"),
        ({}, {"h2": "port: 8001\n"}, 2, "port of llm differs between them"),
        ({}, {"h2": "hardware: {gpu_models: [GB10]}\n"}, 2, "hardware.gpu_models differs between them"),
        ({}, {"h2": TWO}, 2, "serve one endpoint together, and h2 also serves second"),
        ({}, {"h2": "fabric_address: 10.9.0.1\n"}, 2, "RW0231"),
        ({}, {"h2": "fabric_address: 127.0.0.1\n"}, 2, "must be an address that the other hosts reach"),
        ({}, {"h2": "ssh_hostname: no-such-host.invalid\n"}, 2, "h2 resolves to no IPv4 address"),
        ({"size: 2": "size: 3", "gpu_count: 1": "gpu_count: 8"}, {}, 2, "do not go evenly onto 2 hosts"),
        ({"size: 2": "size: 4"}, {}, 2, "on each of its hosts"),
        ({"network: host\n": ""}, {}, 2, "network: bridge keeps the members of a group from each other"),
        ({"network: host": "network: host\ncontainer: {shm_size: 1g}"}, {}, 2, "a host share its own /dev/shm"),
        ({"v0.14.1": "v0.10.0"}, {}, 2, "has no --nnodes"),
        ({"size: 2": "size: 2, data-parallel-size: 2"}, {}, 2, "data parallel over several hosts is not supported yet"),
        ({"size: 2": "size: 2, nnodes: 2"}, {}, 2, "follows from hosts: 2: leave it out"),
        ({"size: 2": "size: 2, kv-transfer-config: '{}'"}, {}, 2, "disaggregated serving over several hosts"),
        ({**TRTLLM, "hosts: 2": "hosts: 2\narguments: [--tp_size, '2']"}, {}, 2, "engine.tensor_parallel_size, from"),
        ({**TRTLLM, "hosts: 2": "hosts: 2\ncontainer: {user: '1000'}"}, {}, 2, "mpirun starts the ranks as root"),
        ({**TRTLLM, "hosts: 2": "hosts: 2\nport: 29502"}, {}, 2, "29500 to 29631 are the members' own"),
        ({**TRTLLM, "hosts: 2": "hosts: 2\ngroup_port: 65500"}, {}, 2, "ports end at 65535: lower it"),
        ({**TRTLLM, "size: 2": "size: 3", "gpu_count: 1": "gpu_count: 8"}, {}, 2, "do not go evenly onto 2 hosts"),
        ({**TRTLLM, "size: 2": "size: 4"}, {}, 2, "on each of its hosts"),
        ({"hosts: 2": "hosts: 2\nport: 29501"}, {}, 2, "29500 and the next one are the members' own"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_anything_is_connected(
    site: Path, change: dict[str, str], overrides: dict[str, str], hosts: int, says: str
) -> None:
    settings = PAIR
    for old, new in change.items():
        assert old in settings
        settings = settings.replace(old, new)
    with pytest.raises(SettingsError) as refused:
        loaded(site, settings, hosts, **overrides)
    assert says in str(refused.value)


def test_tensor_parallel_over_hosts_is_warned_of_and_pipeline_parallel_is_not(site: Path) -> None:
    [warning] = of_groups(loaded(site)[0].settings)
    assert "tensor parallel" in warning
    assert of_groups(loaded(site, PAIR + "group_transport: rdma\n")[0].settings) == []
    assert (
        of_groups(loaded(site, PAIR.replace("tensor-parallel-size: 2", "pipeline-parallel-size: 2"))[0].settings) == []
    )


def test_one_release_serves_all_and_ranks_are_in_each_binding(site: Path) -> None:
    head, member = loaded(site)
    assert release_for(head).hash == release_for(member).hash
    assert "--node-rank ${RANK} --master-addr ${HEAD}" in release_for(head).unit
    assert "backend mp $HEADLESS\n" in release_for(head).unit
    first, second = binding_for(head), binding_for(member)
    assert "RANK=0\nHEAD=10.9.0.1\nADDRESS=10.9.0.1\nMEMBERS=10.9.0.1,10.9.0.2\nHEADLESS=\n" in first.text
    assert "RANK=1\nHEAD=10.9.0.1\nADDRESS=10.9.0.2\nMEMBERS=10.9.0.1,10.9.0.2\nHEADLESS=--headless\n" in second.text
    assert [parse_binding(one.text) for one in (first, second)] == [first, second]
    assert parse_binding(second.text.replace("RANK=1", "RANK=7")) is None


def test_sglang_has_words_of_its_own_and_its_members_answer_their_own_host_alone(site: Path) -> None:
    head, member = loaded(site, SGLANG)
    assert release_for(head).hash == release_for(member).hash
    unit = release_for(head).unit
    assert "--nnodes 2 --node-rank ${RANK} --dist-init-addr ${HEAD}:29500 $HEADLESS\n" in unit
    assert "--env SGLANG_HOST_IP=${ADDRESS} --env GLOO_SOCKET_IFNAME" in unit
    assert "master-addr" not in unit
    assert "VLLM_HOST_IP" not in unit
    first, second = binding_for(head), binding_for(member)
    assert "HEADLESS=\n" in first.text
    assert "HEADLESS=--host=127.0.0.1\n" in second.text
    assert [parse_binding(one.text) for one in (first, second)] == [first, second]


def launched(site: Path, change: str = "") -> list[InventoryHost]:
    """Load a pair that serves by TensorRT-LLM: its ranks are mpirun's."""
    settings = PAIR
    for old, new in TRTLLM.items():
        settings = settings.replace(old, new)
    return loaded(site, settings + change)


def test_tensorrt_llms_ranks_are_started_by_mpirun_in_the_heads_container(site: Path) -> None:
    head, member = launched(site)
    assert release_for(head).hash == release_for(member).hash
    unit, files = release_for(head).unit, release_for(head).files
    assert (
        "/bin/bash /config/release/first-process ${RANK} ${MEMBERS} 1 29502 29631 trtllm-serve /config/models/" in unit
    )
    assert "--env UCX_NET_DEVICES --env OMPI_MCA_btl_tcp_if_include --env OMPI_MCA_oob_tcp_if_include" in unit
    assert "nnodes" not in unit
    assert {"launch", "start-ranks", "first-process", "serve-first", "ask-host"} <= set(files)
    assert "launch_port='29500'" in files["group"]
    ports = " or ".join(f"sport = :{port}" for port in (8000, 29502, 29503))
    assert f'connected "{ports}"' in files["before-start"]
    assert "RANK=1\nHEAD=10.9.0.1\nADDRESS=10.9.0.2\nMEMBERS=10.9.0.1,10.9.0.2\nHEADLESS=\n" in binding_for(member).text


def test_engines_that_meet_by_themselves_have_no_launcher(site: Path) -> None:
    files = release_for(loaded(site)[0]).files
    assert "launch" not in files
    assert "launch_port=''" in files["group"]


def test_no_key_is_in_a_release_nor_mounted_into_a_container(site: Path) -> None:
    release = release_for(launched(site)[0])
    assert "ssh" not in release.unit
    assert "/run/rackwright" not in release.unit
    assert not [name for name, text in release.files.items() if "PRIVATE KEY" in text]


def test_what_connects_the_hosts_is_warned_of_until_somebody_says_it(site: Path) -> None:
    [warning] = of_groups(launched(site)[0].settings)
    assert "write pipeline_parallel_size: 2" in warning
    assert of_groups(launched(site, "group_transport: nvlink\n")[0].settings) == []


def test_ports_of_mpiruns_ranks_are_closed_to_strangers_at_every_address(site: Path) -> None:
    group = launched(site)[1].settings.group
    assert group is not None
    lines = drops([], "docker0", group=group).splitlines()
    ranks, both = "fib daddr type local tcp dport 29502-29631", "ip saddr != { 10.9.0.1, 10.9.0.2 } drop"
    assert any(f"{ranks} {both}" in rule for rule in lines)
    assert any(f"meta nfproto ipv6 {ranks} drop" in rule for rule in lines)
    packets = [
        Packet(source, "10.9.0.2", port) for source in ("10.9.0.1", "10.9.0.3") for port in (29502, 29632, 40000)
    ]
    packets += [Packet("fd00::1", "fd00::2", port) for port in (29502, 29632)]
    closed = [verdict(drops([], "docker0", group=group), packet) for packet in packets]
    assert closed == ["accept"] * 3 + ["drop", "accept", "drop"] + ["drop", "accept"]
    older = drops([], "docker0", as_nft([group.endpoint], older_drops([], group=group)))
    assert [verdict(older, packet) for packet in packets] == closed, "as an earlier version closed them"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("dist-init-addr: '10.0.0.1:5000'", "follows from hosts: 2: leave it out"),
        ("nccl-init-addr: '10.0.0.1:5000'", "follows from hosts: 2: leave it out"),
        ("disaggregation-mode: prefill", "disaggregated serving over several hosts"),
        ("dp-size: 2, enable-dp-attention: true", "data parallel over several hosts is not supported yet"),
    ],
)  # fmt: skip
def test_what_sglang_would_be_given_twice_or_cannot_do_is_refused(site: Path, more: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        loaded(site, SGLANG.replace("size: 2", f"size: 2, {more}"))


def test_half_of_a_group_is_refused_with_the_right_limit(site: Path) -> None:
    hosts = loaded(site)
    refuse_half_groups(hosts, ["h1", "h2"])
    with pytest.raises(SettingsError, match="--limit h1 --limit h2"):
        refuse_half_groups(hosts, ["h2"])


def wanted(host: InventoryHost) -> WantedEndpoint:
    return WantedEndpoint(
        host.settings.all_endpoints["llm"], release_for(host), 2, binding_for(host), group=host.settings.group
    )


def served(host: InventoryHost, **more: Any) -> SeenEndpoint:
    """Return a member that runs the wanted release."""
    release, binding = release_for(host), binding_for(host)
    facts: dict[str, Any] = {
        "unit": release.unit,
        "unit_same": True,
        "active": "active",
        "enabled": True,
        "health": 200,
    }
    facts |= {"current": release.hash, "proven": release.hash, "spec": release.facts, "proven_spec": release.facts}
    return SeenEndpoint(**{**facts, "binding": binding, "proven_binding": binding, **more})


def changes_of(host: InventoryHost, reading: SeenEndpoint) -> list[tuple[str, bool]]:
    assert host.settings.group is not None
    found = member_changes(wanted(host), release_for(host), reading, host.settings.group)
    return [(change.what.split(" ")[0], stage_of(change) is Stage.AFTER) for change in found]


def test_a_member_takes_its_place_and_then_follows(site: Path) -> None:
    member = loaded(site)[1]
    assert changes_of(member, SeenEndpoint()) == [("let", False), ("follow", True)]
    assert changes_of(member, served(member)) == []
    other = {**release_for(member).facts, "serving": "0" * 12}
    assert changes_of(member, served(member, proven_spec=other)) == [("follow", True)]
    assert changes_of(member, served(member, active="failed", health=None)) == [("let", False), ("follow", True)]
    assert changes_of(member, served(member, active="activating", health=None)) == []


def test_a_member_in_line_gets_its_unit_back_without_a_restart(site: Path) -> None:
    member = loaded(site)[1]
    group = member.settings.group
    assert group is not None
    for differs in ({"enabled": False}, {"unit_same": False}):
        found = member_changes(wanted(member), release_for(member), served(member, **differs), group)
        [change] = found
        assert "without a restart" in change.what
        assert not is_join(change)
    joins = member_changes(wanted(member), release_for(member), SeenEndpoint(), group)
    assert [is_join(change) for change in joins] == [True, False]


def test_an_endpoint_is_found_on_other_hosts_by_its_place_or_its_name(site: Path) -> None:
    head, member = loaded(site)
    bindings = {"llm": wanted(member).binding}

    def found(bound: Mapping[str, Binding], together: bool = True, **endpoints: SeenEndpoint) -> list[str]:
        return on_other_hosts(bound, together, SeenEndpoints(True, endpoints, {}, boot_enabled=True))

    assert found(bindings, llm=served(member)) == []
    assert found(bindings, llm=SeenEndpoint()) == []
    assert found(bindings, llm=served(member, proven_binding=binding_for(head))) == ["llm"]
    assert found({"other": Binding(())}, together=False, llm=served(member, spec={"members": 2})) == ["llm"]
    assert found({"other": Binding(())}, together=False, llm=served(member, spec={})) == []


def test_other_hosts_or_other_places_are_no_single_switch(site: Path) -> None:
    head, member = loaded(site)
    assert not is_elsewhere(wanted(member).binding, served(member))
    assert is_elsewhere(wanted(member).binding, served(member, proven_binding=binding_for(head)))
    assert is_elsewhere(wanted(member).binding, served(member, proven_binding=Binding(("GPU-h2",))))


def test_only_members_come_in_where_they_meet(site: Path) -> None:
    _, member = loaded(site)
    found = {(one.address, one.port): one.networks for _, one in listeners(member.settings)}
    both = ("10.9.0.1/32", "10.9.0.2/32")
    assert found[("0.0.0.0", 29500)] == found[("0.0.0.0", 29501)] == both
    [rule] = member_rules(member.settings.group, 4)
    assert "-s 10.9.0.1/32 -d 10.9.0.2/32" in rule.text
    assert member_rules(None, 4) == member_rules(member.settings.group, 6) == ()


def test_ports_that_an_engine_takes_for_itself_are_closed_to_strangers(site: Path) -> None:
    _, member = loaded(site)
    [rule] = [one for one in drops([], "docker0", group=member.settings.group).splitlines() if "drop" in one]
    ports, both = "tcp dport 32768-60999", "ip saddr != { 10.9.0.1, 10.9.0.2 } drop"
    assert f"ip daddr 10.9.0.2 {ports} {both}" in rule
    assert drops([], "docker0").count("drop") == 0


def test_hosts_of_a_group_are_drained_together(site: Path) -> None:
    pair = loaded(site)
    refuse_halves(pair, "drain")
    with refused("RW0842", "h1, h2 ", "rackwright drain h1 h2"):
        refuse_halves(pair[1:], "drain")
    alone = {"hosts: 2\n": "", "tensor-parallel-size: 2": "tensor-parallel-size: 1"}
    text = PAIR
    for old, new in alone.items():
        text = text.replace(old, new)
    refuse_halves(loaded(site, text)[1:], "drain")


def test_hosts_of_a_group_count_as_one_that_is_down(site: Path) -> None:
    ones = {**heads(loaded(site)), "h3": "h3"}
    assert ones == {"h1": "h1", "h2": "h1", "h3": "h3"}
    places = {name: HostCapacity(("all", f"rack:{name}"), serves=True, max_unavailable="1") for name in ones}
    found = as_ones(places, ones)
    assert found["h1"].domains == ("all", "rack:h1", "rack:h2")
    assert too_many_down(found, {"h1"}) == []
    assert too_many_down(found, {"h1", "h3"}) != []


def test_hosts_of_a_group_take_part_together_or_not_at_all(site: Path) -> None:
    peers = mates_of(loaded(site))
    chosen = partial(choose_participants, Path("i.py"), root=Path(), peers=peers)
    found = chosen(["h1", "h2", "h3"], quarantine={}, drained={"h2": Drained("a", "b", "c")})
    assert found.hosts == ("h3",)
    assert texts.SKIPPED.format(host="h1", why="it serves together with h2, which does not take part") in found.reasons
    assert {"h1", "h2"} == {event["host"] for event in found.events}
    away = chosen(["h1", "h2", "h3"], quarantine={}, quorum="1", probe=lambda *_: ["h1"])
    assert (away.hosts, away.skipped, [*away.incomplete]) == (("h3",), ("h1",), ["h2"])
    with pytest.raises(RackwrightError, match="RW0846"):
        chosen(["h1", "h2"], quarantine={}, quorum="1", probe=lambda *_: ["h1"])


def test_hosts_of_a_group_roll_back_together_even_where_one_of_them_had_nothing_before() -> None:
    peers = {"h1": ("h1", "h2"), "h2": ("h1", "h2")}
    assert of_all({"h1": {"llm": "old"}, "h3": {"llm": "x"}}, peers) == {
        "h1": {"llm": "old"},
        "h2": {"llm": "old"},
        "h3": {"llm": "x"},
    }
    assert of_all({"h2": {"llm": "old"}}, peers) == {"h1": {"llm": "old"}, "h2": {"llm": "old"}}
    assert of_all({}, peers) == {}


def test_what_is_left_of_a_run_is_left_of_all_hosts_of_a_group(site: Path) -> None:
    loaded(site, hosts=4)
    begun = {"kind": "begin", "purpose": "rollout", "inventory": str(site / "inventory/x.py"), "hosts": ["h1", "h2"]}
    remaining, hosts = still_there(record_of("20260131-235959-rollout", [begun]), Rest("rollout", ("h2",)))
    assert [host.name for host in hosts] == ["h1", "h2"]
    assert set(remaining.hosts) == {"h1", "h2"}
