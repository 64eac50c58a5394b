"""The playbook's tasks by pyinfra's own operations and facts: run it beside state.json."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from pyinfra import config, host
from pyinfra.facts.server import Command
from pyinfra.operations import apt, docker, files, iptables, server, systemd

config.SUDO = True
STATE: dict[str, Any] = json.loads(Path("state.json").read_text())


def unless(command: str, otherwise: str) -> None:
    """Do what pyinfra has no operation for: a fact says whether it holds, and only then nothing is done."""
    if host.get_fact(Command, f"if {command} >/dev/null 2>&1; then echo well; fi") != "well":
        server.shell(name=otherwise, commands=["false"])


def put(topic: str) -> None:
    """Put the files of a topic."""
    for file in STATE["files"][topic]:
        files.put(name=file["dest"], src=file["src"], dest=file["dest"], mode=file["mode"], user="root", group="root")


def rule(one: dict[str, Any]) -> None:
    """One rule of iptables."""
    iptables.rule(
        name=one["comment"],
        version=6 if one["ip_version"] == "ipv6" else 4,
        chain=one["chain"],
        jump=one["jump"],
        protocol=one.get("protocol"),
        source=one.get("source"),
        in_interface=one.get("in_interface"),
        destination_port=one.get("port"),
        extras=f'-m comment --comment "{one["comment"]}"',
    )


unless(f"test $(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l) = {STATE['gpu_count']}", "GPUs")
put("repositories")
apt.packages(name="packages", packages=STATE["packages"])
put("docker")
systemd.service(name="Docker", service="docker.service", running=True, enabled=True)
for user in STATE["docker_users"]:
    server.user(name=f"{user} may use Docker", user=user, groups=["docker"], append=True, ensure_home=False)
for wanted in STATE["rules"]:
    rule(wanted)
put("firewall")
docker.image(name="image", image=STATE["image"])
for sums in STATE["checksums"]:
    inside = f"cd {shlex.quote(sums['folder'])} && printf %s {shlex.quote(sums['sums'])} | sha256sum --check --quiet -"
    unless(inside, sums["folder"])
put("release")
files.link(name="current release", path=STATE["current"]["path"], target=STATE["current"]["target"])
put("units")
for service in STATE["services"]:
    systemd.service(name=service, service=service, running=True, enabled=True)
unless(f"curl -fsS {STATE['health']}", "health")
