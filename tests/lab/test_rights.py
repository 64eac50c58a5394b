"""A container with fewer rights than usual serves anyway: another user, no capabilities, a read-only root."""

from __future__ import annotations

import json

import pytest

from tests.lab.profiles.groups import ONE
from tests.lab.test_profiles import HOME, Bench, bench

pytestmark = pytest.mark.lab
__all__ = ["bench"]

LEAST = {"capabilities": "none", "user": "4242:4242", "read_only": True, "shm_size": "64m", "pids_limit": 2048}


def test_an_endpoint_serves_with_the_least_rights(bench: Bench) -> None:
    run = bench.deploy("rtx_pro_6000_vllm", **ONE, container=LEAST, api_key="sk-lab-3b77c0de51f8a92d46aa")
    assert run.status == 0, run.output
    assert "proved: a chat answer" in run.output
    [container] = json.loads(bench.host.run("docker inspect rackwright-llm").stdout)
    host = container["HostConfig"]
    assert (host["CapDrop"], host["CapAdd"], container["Config"]["User"]) == (["ALL"], None, "4242:4242")
    assert (host["ReadonlyRootfs"], host["ShmSize"], host["IpcMode"]) == (True, 64 * 2**20, "private")
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert bench.host.run(f"stat -c %a:%u {HOME}/keyed/*.yaml").stdout.strip() == "600:4242"
    digest = container["Config"]["Image"].rpartition(":")[2][:12]
    cache = f"{HOME}/caches/{digest}"
    assert bench.host.run(f"readlink {HOME}/scratch; ls -d {cache}").stdout.split() == [cache, cache]
    assert (
        bench.deploy("rtx_pro_6000_vllm", **ONE, container=LEAST, api_key="sk-lab-3b77c0de51f8a92d46aa").changed == []
    )

    usual = bench.deploy("rtx_pro_6000_vllm", **ONE)
    assert usual.status == 0, usual.output
    [container] = json.loads(bench.host.run("docker inspect rackwright-llm").stdout)
    assert sorted(container["HostConfig"]["CapDrop"]) == ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP"]
    assert container["HostConfig"]["IpcMode"] == "host"
