"""Profiles of two, three and four hosts: each is deployed by the stand-in of its version, and answers as one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.conftest import BIN, ROOT, Run, Site
from tests.lab.fleets import HOME, proven, running
from tests.lab.products import in_proof
from tests.lab.profiles.groups import CARRIED, GROUPS

pytestmark = [
    pytest.mark.lab,
    in_proof("group/ deploys two hosts by vLLM and group_engines/ by the others; tests/unit has these options taken"),
]

INVENTORY = ROOT / "tests" / "lab" / "profiles" / "inventory.py"


def run_on(site: Site, hosts: Sequence[Host], profile: str, *words: str) -> Run:
    """Run a command with these hosts in a profile's group."""
    chosen = ",".join(host.name for host in hosts)
    settings = json.dumps({**GROUPS[profile][1], **CARRIED})
    values = {"HOST": chosen, "PROFILE": profile, "SETTINGS": settings}
    return site.command("env", *(f"PROFILES_{name}={value}" for name, value in values.items()), *words)


def ask(host: Host, port: str, model: str) -> str:
    """Ask the head a sum."""
    question = [{"role": "user", "content": "What is 17 + 25? Answer with the number only."}]
    body = json.dumps({"model": model, "messages": question, "max_tokens": 512})
    command = (
        f"curl -sS --max-time 20 -H 'Content-Type: application/json' -d @- http://127.0.0.1:{port}/v1/chat/completions"
    )
    return str(json.loads(host.run(command, stdin=body).stdout)["choices"][0]["message"]["content"])


@pytest.mark.parametrize("profile", GROUPS)
def test_a_profile_of_several_hosts_deploys_and_answers_as_one(site: Site, profile: str) -> None:
    hosts = site.lab.hosts[: GROUPS[profile][0]]
    deploy = (str(BIN / "pyinfra"), str(INVENTORY), "deploy.py", "-y")
    run = run_on(site, hosts, profile, *deploy)
    assert run.status == 0, run.output
    releases = proven(hosts)
    assert len(set(releases)) == 1
    assert running(hosts) == releases
    spec = json.loads(hosts[0].run(f"cat {HOME}/proven/spec.json").stdout)
    assert "42" in ask(hosts[0], str(spec["port"]), spec["served_name"])
    assert run_on(site, hosts, profile, *deploy).changed == []
    ended = run_on(site, hosts, profile, str(BIN / "rackwright"), "teardown", str(INVENTORY), "--all", "-y")
    assert ended.status == 0, ended.output


def test_a_site_that_init_made_for_a_pair_serves_it_without_an_edit(site: Site, tmp_path: Path) -> None:
    profile, folder = "dgx_spark_pair_vllm_qwen38_27b", tmp_path / "site"
    pair = site.lab.hosts[:2]
    chosen = ("--limit", pair[0].name, "--limit", pair[1].name)
    made = site.command(BIN / "rackwright", "init", folder, "--lab", "--profile", profile)
    assert made.status == 0, made.output
    inventory = folder / "inventory" / "lab.py"
    deploy = (BIN / "pyinfra", inventory, folder / "deploy.py", "-y", *chosen)
    run = site.command(*deploy)
    assert run.status == 0, run.output
    assert "42" in ask(pair[0], "8000", "Qwen3.8-27B-NVFP4")
    assert site.command(*deploy).changed == []
    ended = site.command(BIN / "rackwright", "teardown", inventory, *chosen, "-y")
    assert ended.status == 0, ended.output
