"""A gateway takes new files over, or has the old ones again: the real script, and Debian's HAProxy."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.concerns.gateway.key_change import KEY_PROGRAM, revoked_rows
from rackwright.concerns.gateway.key_maps import MAPS
from rackwright.hostside import host_script, host_text
from rackwright.settings.gateway_keys import sha256_of
from tests.programs.test_gateway_keys import SHELL, GatewayStandin, added, engine

__all__ = ["engine"]
FIRST_RULE = "  http-request set-var(txn.hash)"
HEALTH = "  http-request return status 200 hdr X-Gateway-Revision r1 if { path /healthz }"
SYSTEMCTL = """#!/bin/sh
[ "$1" != reload ] || [ -e "{root}/deaf" ] || kill -USR2 {pid}
exit 0
"""


@pytest.fixture
def gateway(tmp_path: Path, haproxy: Path, engine: int) -> Iterator[GatewayStandin]:
    """Run a gateway without clients that answers /healthz, and that systemctl reloads unless it is deaf."""
    found = GatewayStandin(tmp_path, haproxy, engine)
    config = found.root / "etc/haproxy.cfg"
    config.write_text(config.read_text().replace(FIRST_RULE, f"{HEALTH}\n{FIRST_RULE}"))
    found.start()
    assert found.process
    (found.root / "bin/systemctl").write_text(SYSTEMCTL.format(root=found.root, pid=found.process.pid))
    yield found
    found.stop()


def apply(gateway: GatewayStandin, keys: str, last_read: str = "0") -> subprocess.CompletedProcess[str]:
    """Let a gateway take another map of keys, by the script of a deploy; nothing else differs.

    last_read: the last change of keys when the deploy has read the host.
    """
    new = gateway.root / "etc/next"
    (new / "certificates").mkdir(parents=True)
    (new / "keys.map").write_text(keys)
    script = host_script(
        "gateway_apply",
        folder=f"{gateway.root}/etc",
        new=f"{new}",
        surplus="",
        unit="gateway.service",
        units=f"{gateway.root}",
        servers=f"{gateway.root}/servers",
        url=f"http://127.0.0.1:{gateway.port}/healthz",
        revision="r1",
        admin=f"{gateway.root}/run/admin.sock",
        maps=" ".join(MAPS),
        program=host_text(KEY_PROGRAM),
        journal=f"{gateway.root}/run/key-changes",
        seen=last_read,
    )
    path = f"{gateway.root}/bin:{os.environ['PATH']}"
    return subprocess.run([SHELL, "-c", script], env={"PATH": path}, text=True, capture_output=True, check=False)


def test_keys_alone_are_another_configuration_though_the_revision_is_the_same(gateway: GatewayStandin) -> None:
    run = apply(gateway, f"{sha256_of('k1')} alice\n")
    assert run.returncode == 0, run.stderr
    assert gateway.ask("k1")[0] == 200


def test_keys_that_a_reload_did_not_bring_are_noticed_and_taken_back(gateway: GatewayStandin) -> None:
    (gateway.root / "deaf").touch()
    assert apply(gateway, f"{sha256_of('k1')} alice\n").returncode == 1
    assert gateway.lines("keys.map") == []
    assert gateway.ask("k1")[0] == 401


def test_a_key_that_is_revoked_during_a_deploy_stays_revoked(gateway: GatewayStandin) -> None:
    (gateway.root / "etc/revoked").write_text(f"{sha256_of('k1')}\n")
    run = apply(gateway, f"{sha256_of('k1')} alice\n{sha256_of('k2')} bob\n")
    assert run.returncode == 0, run.stderr
    assert gateway.ask("k1")[0] == 401
    assert gateway.ask("k2")[0] == 200


def last_change(gateway: GatewayStandin) -> str:
    return (gateway.root / "run/key-changes").read_text().splitlines()[-1].partition(" ")[0]


def test_keys_that_change_during_a_deploy_hold_after_it(gateway: GatewayStandin) -> None:
    gateway.change(added("early", "k0"))
    before = last_change(gateway)
    gateway.change(added("bob", "k2", requests_per_minute=7))
    gateway.change(revoked_rows(("carol",), [sha256_of("k3")]))
    gateway.change(added("dora", "k4"))
    gateway.change(revoked_rows(("dora",), [sha256_of("k4")]))
    gateway.change(added("dora", "k5"))
    run = apply(gateway, f"{sha256_of('k1')} alice\n{sha256_of('k3')} carol\n", before)
    assert run.returncode == 0, run.stderr
    assert gateway.ask("k1") == (200, "alice 0")
    assert gateway.ask("k2") == (200, "bob 7")
    assert [gateway.ask(key)[0] for key in ("k3", "k4")] == [401, 401]
    assert gateway.ask("k5") == (200, "dora 0")
    assert gateway.ask("k0")[0] == 401, "the site's file no longer had it when the deploy began"


def test_a_key_that_is_added_during_the_first_deploy_comes_with_it(gateway: GatewayStandin) -> None:
    (gateway.root / "etc/keys.map").unlink()
    assert gateway.change(added("bob", "k2")).stdout == "absent 0\n"
    (gateway.root / "etc/keys.map").write_text("")
    assert apply(gateway, f"{sha256_of('k1')} alice\n").returncode == 0
    assert [gateway.ask(key)[0] for key in ("k1", "k2")] == [200, 200]
