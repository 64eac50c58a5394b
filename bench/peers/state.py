"""The state of a converged lab host as a playbook needs it: files, packages, rules, checksums; all in one folder."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rackwright_lab import Host

CURRENT = "/var/lib/rackwright/endpoints/llm/current"
UNITS = "/etc/systemd/system"
TOPICS = {
    "repositories": "/etc/apt/keyrings/rackwright-*.asc /etc/apt/sources.list.d/rackwright-*.list",
    "docker": "/etc/docker/daemon.json",
    "firewall": f"/etc/rackwright/firewall {UNITS}/rackwright-firewall.service {UNITS}/rackwright-watch.*",
    "release": f"$(readlink -f {CURRENT})/*",
    "units": f"{UNITS}/rackwright-llm.service {UNITS}/rackwright.target",
}
"""Globs of the files that are compared, by the playbook's tasks; the binding differs by host, and is left out."""
PACKAGES = ("docker.io", "docker-ce", "docker-ce-cli", "containerd.io", "nvidia-container-toolkit", "curl", "iptables")
SERVICES = ["rackwright-llm.service", "rackwright-watch.timer"]
PYTHON = "command -v python3 >/dev/null && python3 -c 'import apt' || apt-get -qq install -y python3 python3-apt"
"""Ansible's modules need it; nothing else here does."""


def written(host: Host, folder: Path) -> None:
    """Write state.json and the files that it names. Raises LabError on a host that serves nothing."""
    spec = json.loads(host.run(f"cat {CURRENT}/spec.json").stdout)
    found = {
        "gpu_count": len(host.run("nvidia-smi -L").stdout.splitlines()),
        "packages": _packages(host),
        "files": {topic: _files(host, globs, folder) for topic, globs in TOPICS.items()},
        "docker_users": _names(host.run("getent group docker").stdout.strip().rpartition(":")[2]),
        "rules": _rules(host),
        "image": spec["image"],
        "checksums": [_sums(host, path) for path in _folders(spec)],
        "current": {"path": CURRENT, "target": host.run(f"readlink {CURRENT}").stdout.strip()},
        "services": SERVICES,
        "health": host.run(f"cat {CURRENT}/health-url").stdout.strip(),
    }
    (folder / "state.json").write_text(json.dumps(found, indent=1))


def tasks_of(state: dict[str, Any]) -> int:
    """How many tasks a host carries out: each item of a loop is one."""
    loops = [*state["files"].values(), state["docker_users"], state["rules"], state["checksums"], state["services"]]
    alone = ("GPUs", "packages", "Docker's service", "image", "current release", "health")
    return len(alone) + sum(map(len, loops))


def _names(listed: str) -> list[str]:
    return [name for name in listed.split(",") if name]


def _packages(host: Host) -> list[str]:
    query = "dpkg-query -W -f '${db:Status-Status} ${Package}\\n' " + " ".join(PACKAGES)
    lines = host.run(query, check=False).stdout.splitlines()
    return [row.partition(" ")[2] for row in lines if row.startswith("installed ")]


def _files(host: Host, globs: str, folder: Path) -> list[dict[str, str]]:
    listed = host.run(f"stat -c '%a %n' {globs}").stdout.splitlines()
    return [_file(host, mode.zfill(4), path, folder) for mode, path in (row.split(" ", 1) for row in listed)]


def _file(host: Host, mode: str, path: str, folder: Path) -> dict[str, str]:
    source = folder / "files" / path.lstrip("/")
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(host.run(f"cat {shlex.quote(path)}").stdout)
    return {"src": str(source), "dest": path, "mode": mode}


def _rules(host: Host) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for version, program in (("ipv4", "iptables-save"), ("ipv6", "ip6tables-save")):
        lines = host.run(f"{program} -t filter | grep -e '--comment.*rackwright'", check=False).stdout.splitlines()
        found += [{"ip_version": version, **rule} for rule in map(rule_of, lines) if rule]
    return found


def rule_of(rule: str) -> dict[str, Any] | None:
    """Return a rule of iptables-save as arguments of Ansible's module; None for one that it cannot express."""
    words = shlex.split(rule)
    parameters = {
        "-A": "chain",
        "-i": "in_interface",
        "-s": "source",
        "-p": "protocol",
        "--dport": "port",
        "--comment": "comment",
        "-j": "jump",
    }
    options = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not set(options) <= {*parameters, "-m"} or not {"-A", "-j", "--comment"} <= set(options):
        return None
    named = {parameters[option]: value for option, value in options.items() if option in parameters}
    return {**named, "port": int(named["port"])} if "port" in named else named


def _folders(spec: dict[str, Any]) -> Sequence[str]:
    """Return the encodings and the models, as the release mounts them."""
    sources = [mount["source"] for mount in spec["mounts"] if not mount["writable"]]
    return [path for path in dict.fromkeys(sources) if re.match(r"/srv/", path)]


def _sums(host: Host, folder: str) -> dict[str, str]:
    inside = (
        f"cd {shlex.quote(folder)} && find . -type f ! -name .rackwright.json -print0 | sort -z | xargs -0 sha256sum"
    )
    return {"folder": folder, "sums": host.run(inside).stdout}
