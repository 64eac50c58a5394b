"""Preflight's rows between the hosts of one endpoint. RDMA and IMEX are seen by fixtures alone: no lab has them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.preflight.concern import parse, read
from rackwright.concerns.preflight.members import common, members_read
from rackwright.concerns.preflight.row import Case, MemberSeen
from rackwright.settings.group import Group, GroupMember
from rackwright.settings.host_settings import HostSettings
from tests.unit.machines import DGX_B200, DRIVER, case, docker, gpus, machine, settings
from tests.unit.test_preflight import judged, stops

ROWS = {"other hosts", "large packets", "equal hosts", "RDMA", "IMEX"}
PAIR = Group("llm", (GroupMember("h1", "10.9.0.1"), GroupMember("h2", "10.9.0.2")), 0)
WELL = (MemberSeen("10.9.0.2", "yes", "yes"),)
HERE = {"members.interface": "eth1", "members.mtu": "9000"}
IMEX = {"imex.state": "UP", "imex.channels": "yes", "imex.nodes": "a" * 64, "imex.version": DRIVER}


def grouped(**values: Any) -> HostSettings:
    host_settings = settings(hardware=DGX_B200, engine_kind="vllm", image="vllm/vllm-openai:v0.14.1", hosts=2, **values)
    return host_settings.in_group(PAIR)


def member(transport: str = "any", others: dict[str, dict[str, str]] | None = None, **changed: Any) -> Case:
    """Return the head of a pair, on a healthy machine."""
    values, more = {**HERE, **changed.pop("values", {})}, {"members": WELL, **changed}
    head = replace(machine(**values), **more)
    return case(settings=grouped(group_transport=transport), machine=head, others=others or {})


def test_a_host_that_serves_alone_has_none_of_these_rows() -> None:
    assert not ROWS & set(judged(case()))
    assert members_read(settings(hardware=DGX_B200)) == ""


def launched(**values: str) -> Case:
    """Return the same pair, served by TensorRT-LLM: mpirun starts its ranks."""
    host_settings = settings(hardware=DGX_B200, image="nvcr.io/nvidia/tensorrt-llm/release:1.2.1", hosts=2).in_group(
        PAIR
    )
    return replace(member(values=values), settings=host_settings)


def test_where_mpirun_starts_ranks_openssh_must_be_there() -> None:
    assert "SSH between hosts" not in judged(member())
    assert judged(launched())["SSH between hosts"][0].reading == "ssh, sshd, ssh-keygen there"
    found = judged(launched(**{"members.lacking": "sshd"}))["SSH between hosts"][0]
    assert (found.reading, found.fix) == ("sshd missing", "install OpenSSH: apt-get install openssh-server")
    assert stops(launched(**{"members.lacking": "sshd"})) == {"SSH between hosts"}
    assert "launch='ssh sshd ssh-keygen'" in members_read(launched().settings)
    assert "launch=''" in members_read(grouped())


def test_a_pair_that_is_well_stops_nothing_text() -> None:
    assert stops(member()) == set()
    assert judged(member())["other hosts"][0].reading == "h2 (10.9.0.2) answers"
    assert judged(member())["large packets"][0].reading == "h2 (10.9.0.2): packets of 9000 bytes arrive"
    assert not {"RDMA", "IMEX"} & set(judged(member())), "they are asked for by group_transport alone"


@pytest.mark.parametrize(
    ("values", "row", "says"),
    [
        ({"members": (MemberSeen("10.9.0.2", "no", "no"),)}, "other hosts", "h2 (10.9.0.2) does not answer"),
        ({"values": {"members.interface": ""}}, "other hosts", "no interface of this host has 10.9.0.1"),
        ({"members": (MemberSeen("10.9.0.2", "yes", "no"),)}, "large packets", "packets of 9000 bytes do not arrive"),
    ],
)
def test_what_keeps_members_from_each_other_stops_the_host(values: dict[str, Any], row: str, says: str) -> None:
    found = member(**values)
    assert stops(found) == {row}
    assert any(says in one.reading for one in judged(found)[row])


def test_a_network_without_pings_is_no_fault_of_the_members() -> None:
    found = member(members=(MemberSeen("10.9.0.2", "tcp", "no"),))
    assert stops(found) == set()
    assert "large packets" not in judged(found)


@pytest.mark.parametrize(
    ("theirs", "says"),
    [
        ({"the NVIDIA driver": "570.1"}, f"the NVIDIA driver is {DRIVER} here and 570.1 on h2"),
        ({"the NVIDIA Container Toolkit": "1.17.0"}, "the NVIDIA Container Toolkit is 1.18.1 here and 1.17.0 on h2"),
        ({"the set of GPUs": "1 NVIDIA H200"}, "the set of GPUs is 8 NVIDIA B200 here and 1 NVIDIA H200 on h2"),
        ({"the MTU towards the others": "1500"}, "the MTU towards the others is 9000 here and 1500 on h2"),
    ],
)
def test_members_that_differ_stop_the_last_one_that_is_read(theirs: dict[str, str], says: str) -> None:
    facts = dict(common(machine(**HERE), gpus()))
    assert stops(member(others={"h2": facts})) == set()
    found = member(others={"h2": {**facts, **theirs}})
    assert stops(found) == {"equal hosts"}
    assert judged(found)["equal hosts"][0].reading == says


@pytest.mark.parametrize(
    ("reading", "says"),
    [
        ({}, "this host has no RDMA device"),
        ({"rdma": {"mlx5_0/1": "DOWN"}}, "no RDMA port is active: mlx5_0/1 DOWN"),
        ({"rdma": {"mlx5_0/1": "ACTIVE"}}, "/dev/infiniband/uverbs0 is missing"),
    ],
)
def test_rdma_that_is_asked_for_and_not_there_stops_the_host(reading: dict[str, Any], says: str) -> None:
    found = member("rdma", **reading)
    assert stops(found) == {"RDMA"}
    assert judged(found)["RDMA"][0].reading == says
    assert stops(member("rdma", rdma={"rocep1s0f1/1": "ACTIVE"}, values={"rdma.verbs": "yes"})) == set()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"imex.state": "missing"}, "nvidia-imex is not installed"),
        ({"imex.state": "DEGRADED"}, "its domain is DEGRADED"),
        ({"imex.version": "570.1"}, f"nvidia-imex is 570.1 and the driver {DRIVER}"),
        ({"imex.channels": ""}, "no channel: /dev/nvidia-caps-imex-channels is empty"),
        ({"imex.nodes": None}, "/etc/nvidia-imex/nodes_config.cfg is missing"),
    ],
)
def test_imex_that_is_asked_for_and_not_there_stops_the_host(change: dict[str, Any], says: str) -> None:
    values = {key: value for key, value in {**IMEX, **change}.items() if value is not None}
    found = member("nvlink", values=values)
    assert stops(found) == {"IMEX"}
    assert judged(found)["IMEX"][0].reading == says
    assert stops(member("nvlink", values=IMEX)) == set()


def test_other_nodes_of_imex_are_another_domain() -> None:
    facts = dict(common(machine(**HERE, **IMEX), gpus()))
    found = member("nvlink", {"h2": {**facts, "/etc/nvidia-imex/nodes_config.cfg": "b" * 12}}, values=IMEX)
    assert stops(found) == {"equal hosts"}


def test_what_the_script_prints_is_read(tmp_path: Path) -> None:
    """The script itself, with programs that answer as a pair of an NVL72 does."""
    answers = {
        "ip": "echo '2: eth1    inet 10.9.0.1/24 brd 10.9.0.255 scope global eth1'",
        # Small packets arrive, those of full size do not.
        "ping": 'case "$*" in *"-M do"*) exit 1 ;; esac',
        "nvidia-imex-ctl": "echo 'Nodes From\\To  0   1'; echo '       0       C   C'; echo 'Domain State: UP'",
    }
    for name, text in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    host_settings = grouped(group_transport="nvlink")
    script = 'have() { command -v "$1" >/dev/null 2>&1; }\n' + members_read(host_settings)
    done = subprocess.run(
        ["sh", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    found = parse(done.stdout)
    assert found.members == (MemberSeen("10.9.0.2", "yes", "no"),)
    assert found.values["members.interface"] == "eth1"
    assert found.values["imex.state"] == "UP"
    assert members_read(host_settings) in read(host_settings)


def test_a_fix_that_stops_what_serves_drains_all_hosts_of_the_endpoint_text() -> None:
    low = {"memlock": "8388608", "capabilities": "none"}
    found = judged(replace(member(values=low), docker=docker(serving=("rackwright-llm",))))["locked memory"][0]
    assert found.fix.startswith("rackwright drain INVENTORY --limit h1 --limit h2; then ")
    assert found.fix.endswith("; then rackwright undrain INVENTORY --limit h1 --limit h2")
