"""What dockerd needs in the kernel to start a container that publishes a port: the real script among stand-ins.

tests/fixtures/iptables-save: `iptables-save` of a healthy host by Docker's version; the synthetic ones say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright.concerns.docker.chains import gone
from rackwright.hostside import host_text

FIXTURES = Path(__file__).parents[1] / "fixtures" / "iptables-save"
HEALTHY = {path.stem: path.read_text() for path in sorted(FIXTURES.glob("*.txt"))}
SHELLS = [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)]
ALL_GONE = ["nat DOCKER", "filter DOCKER", "filter DOCKER-USER"]
FLUSHED = "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"
Look = Callable[..., list[str]]


@pytest.fixture(params=SHELLS)
def look(request: pytest.FixtureRequest, tmp_path: Path) -> Look:
    """Run the script on a host where `docker0` is up, unless the arguments say otherwise."""
    shell = [request.param, "sh"] if request.param == "busybox" else [request.param]

    def looked(
        save: str = FLUSHED,
        info: str = '{"ServerVersion":"20.10.24+dfsg1"}',
        daemon: str = "",
        words: str = "dockerd -H fd://",
        flags: str | None = "0x1003",
        bridge: str = "docker0",
        same_network: bool = True,
        nft: str = "exit 1",
        save6: str = "",
        ipv6: str = "",
        status: int = 0,
    ) -> list[str]:
        put(tmp_path / "bin" / "iptables-save", f"#!/bin/sh\ncat <<'END'\n{save}END\nexit {status}\n")
        put(tmp_path / "bin" / "ip6tables-save", f"#!/bin/sh\ncat <<'END'\n{save6}END\n")
        put(tmp_path / "bin" / "nft", f"#!/bin/sh\n{nft}\n")
        words = words.replace("/etc/", f"{tmp_path}/etc/")
        put(tmp_path / "proc/7/cmdline", words.replace(" ", "\0") + "\0")
        put(tmp_path / "proc/7/ns/net", "")
        put(tmp_path / "proc/net/if_inet6", ipv6)
        put(tmp_path / "etc/docker/daemon.json", daemon)
        put(tmp_path / "etc/other.json", daemon)
        namespace = tmp_path / "proc/self/ns/net"
        namespace.parent.mkdir(parents=True, exist_ok=True)
        namespace.unlink(missing_ok=True)
        namespace.symlink_to(tmp_path / ("proc/7/ns/net" if same_network else "proc/7/cmdline"))
        shutil.rmtree(tmp_path / "sys", ignore_errors=True)
        if flags is not None:
            put(tmp_path / f"sys/class/net/{bridge}/flags", f"{flags}\n")
        text = host_text("docker_lacks.sh")
        for root in ("/proc/", "/sys/", "/etc/"):
            text = text.replace(root, f"{tmp_path}{root}")
        path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        command = [*shell, "-c", f'{text}\ndocker_lacks "$1" 7', "sh", info]
        run = subprocess.run(
            command, env={**os.environ, **path}, capture_output=True, text=True, check=True, timeout=30
        )
        assert run.stderr == ""
        return run.stdout.splitlines()

    return looked


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def without(text: str, *words: str) -> str:
    """Remove the rows that hold all of the words."""
    return "".join(row for row in text.splitlines(keepends=True) if not all(term in row for term in words))


def table_gone(text: str, table: str) -> str:
    blocks = text.split("*")
    return "*".join(block for block in blocks if not block.startswith(f"{table}\n"))


@pytest.mark.parametrize("version", HEALTHY)
def test_a_healthy_host_lacks_nothing(look: Look, version: str) -> None:
    assert look(HEALTHY[version]) == []


@pytest.mark.parametrize("version", HEALTHY)
def test_whatever_is_flushed_is_named(look: Look, version: str) -> None:
    rules = HEALTHY[version]
    assert look(FLUSHED) == ALL_GONE
    assert look("") == ALL_GONE
    assert look(table_gone(rules, "nat")) == ["nat DOCKER"]
    assert look(table_gone(rules, "filter")) == ["filter DOCKER", "filter DOCKER-USER"]
    assert look(without(rules, "-A ")) == [
        "nat PREROUTING to DOCKER",
        "filter FORWARD to DOCKER",
        "filter FORWARD to DOCKER-USER",
    ]
    assert look(without(rules, "-A PREROUTING", "-j DOCKER")) == ["nat PREROUTING to DOCKER"]
    assert look(without(rules, "-A FORWARD", "-j DOCKER-USER")) == ["filter FORWARD to DOCKER-USER"]


def test_a_jump_by_way_of_a_chain_of_another_tool_counts(look: Look) -> None:
    rules = HEALTHY["28.1-synthetic"].replace("-A FORWARD -j DOCKER", "-A site-forward -j DOCKER")
    assert look(rules.replace(":DOCKER-CT", ":site-forward - [0:0]\n-A FORWARD -g site-forward\n:DOCKER-CT")) == []
    assert "filter FORWARD to DOCKER" in look(rules)


def test_a_circle_of_chains_ends(look: Look) -> None:
    circle = ":a - [0:0]\n:b - [0:0]\n:DOCKER - [0:0]\n-A FORWARD -j a\n-A a -j b\n-A b -j a\n"
    assert "filter FORWARD to DOCKER" in look(FLUSHED.replace(":FORWARD ACCEPT [0:0]\n", circle))


@pytest.mark.parametrize(
    "state",
    [
        {"daemon": '{\n  "iptables" : false\n}'},
        {"words": "dockerd --iptables=false -H fd://"},
        {"words": "/usr/bin/dockerd --config-file /etc/other.json", "daemon": '{"iptables":false}'},
        {"words": "/usr/bin/dockerd --config-file=/etc/other.json", "daemon": '{"iptables":false}'},
        {"daemon": '{"bridge": "none"}', "flags": None},
        {"words": "dockerd -b none", "flags": None},
        {"same_network": False, "flags": None},
        {"status": 1},
        {"save": "# Table `nat' is incompatible, use 'nft' tool.\n"},
        {"info": '{"FirewallBackend":{"Driver":"something-new"}}'},
    ],
)
def test_what_dockerd_does_not_look_after_or_nobody_can_tell_is_no_fault(look: Look, state: dict[str, str]) -> None:
    assert look(**state) == []


def test_a_bridge_that_is_gone_or_down_is_named(look: Look) -> None:
    healthy = HEALTHY["20.10.24-debian-12"]
    assert look(healthy, flags=None) == ["interface docker0"]
    assert look(healthy, flags="0x1002") == ["interface docker0 down"]
    for given in ({"daemon": '{"bridge": "br0"}'}, {"words": "dockerd --bridge=br0"}, {"words": "dockerd -b br0"}):
        assert look(healthy, bridge="br0", **given) == []
        assert look(healthy, flags=None, **given) == ["interface br0"]


def test_dockers_other_backend_needs_its_table_and_nothing_of_iptables(look: Look) -> None:
    info = '{"FirewallBackend":{"Driver":"nftables+firewalld"}}'
    tables = "printf 'table inet firewalld\\ntable ip docker-bridges\\ntable ip6 docker-bridges\\n'"
    assert look("", info=info, nft=tables) == []
    assert look("", info=info, nft="echo table inet firewalld") == ["nft table ip docker-bridges"]
    assert look("", info=info, nft="true") == ["nft table ip docker-bridges"]
    assert look("", info=info, nft="exit 127") == []


BRIDGE6 = "fd000000000000000000000000000001 03 40 00 80  docker0\n"


@pytest.mark.parametrize(
    ("state", "lacks"),
    [
        ({"ipv6": "fe800000000000000042aafffe000001 03 40 20 80  docker0\n"}, []),
        ({"ipv6": BRIDGE6.replace("docker0", "eth0")}, []),
        ({"ipv6": BRIDGE6}, ["nat DOCKER (IPv6)", "filter DOCKER (IPv6)"]),
        ({"ipv6": BRIDGE6, "save6": HEALTHY["29.1-synthetic"]}, []),
        ({"ipv6": BRIDGE6, "daemon": '{"ip6tables": false}'}, []),
        ({"ipv6": BRIDGE6, "info": '{"ServerVersion":"26.1.0"}'}, []),
        (
            {"ipv6": BRIDGE6, "info": '{"ServerVersion":"26.1.0"}', "daemon": '{"ip6tables": true}'},
            ["nat DOCKER (IPv6)", "filter DOCKER (IPv6)"],
        ),
    ],
)
def test_ip6tables_counts_where_the_bridge_has_ipv6_and_dockerd_looks_after_it(
    look: Look, state: dict[str, str], lacks: list[str]
) -> None:
    assert look(HEALTHY["29.1-synthetic"], **{"info": '{"ServerVersion":"29.1.3"}', **state}) == lacks


def test_its_text() -> None:
    assert gone([]) == ""
    assert gone(["nat DOCKER", "filter DOCKER"]) == "Docker's chains are gone (nat DOCKER, filter DOCKER)"
    assert gone(["interface docker0"]) == "Docker's bridge docker0 is gone"
    assert gone(["interface docker0 down", "nat DOCKER"]) == (
        "Docker's bridge docker0 is down and Docker's chains are gone (nat DOCKER)"
    )
