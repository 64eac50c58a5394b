"""What a lived-in host has already: users, logins, foreign Docker settings and firewall rules, half a model."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import time
from pathlib import Path

from rackwright_lab.machine.shell import run
from rackwright_lab.standins.hub_content import REPOSITORIES, HubFile, Store

USERS = {"alice": ("adm", "video", "audio", "plugdev"), "bob": ("staff", "video"), "ops": ("adm", "video")}
LOGINS = {
    "registry.site.example:5000": "robot$lab:kept-as-it-is",
    "ghcr.io": "deploy:also-kept",
}
DAEMON = {
    "log-driver": "json-file",
    "log-opts": {"max-size": "100m", "max-file": "3"},
    "insecure-registries": ["registry.site.example:5000"],
}
# Rules of the site's own, in each family: none of them is Rackwright's business.
RULES = (
    "iptables INPUT -s 198.51.100.7/32 -j DROP",
    "iptables INPUT -p tcp -m tcp --dport 9100 -j ACCEPT",
    "iptables FORWARD -s 198.51.100.0/24 -j DROP",
    "iptables DOCKER-USER -p tcp -m tcp --dport 2375 -j DROP",
    "ip6tables INPUT -s 2001:db8:7::/48 -j DROP",
    "ip6tables FORWARD -s 2001:db8:8::/48 -j DROP",
)
FIREWALL = """[Unit]
Description=Firewall rules of this site
After=docker.service
PartOf=docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/site-firewall

[Install]
WantedBy=multi-user.target docker.service
"""
MODEL = "openai/gpt-oss-120b"
MODEL_FOLDER = "srv/models/gpt-oss-120b"


def write(root: Path, web_state: Path) -> None:
    """Give a mounted disk its past. The half model's bytes are those that the lab's hub would have sent."""
    _users(root)
    for home, owner in (("root", "root"), ("home/ops", "ops")):
        _logins(root, home, owner)
    _json(root / "etc/docker/daemon.json", DAEMON)
    _firewall(root)
    _half_model(root / MODEL_FOLDER, Store(web_state / "hub").files(REPOSITORIES[MODEL], 1))
    run("chroot", root, "chown", "-R", "ops:ops", "/srv/models")


def _users(root: Path) -> None:
    for name, groups in USERS.items():
        if name != "ops":
            run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", name)
        run("chroot", root, "usermod", "--append", "--groups", ",".join(groups), name)


def _logins(root: Path, home: str, owner: str) -> None:
    folder = root / home / ".docker"
    folder.mkdir(mode=0o700)
    auths = {host: {"auth": base64.b64encode(login.encode()).decode()} for host, login in LOGINS.items()}
    path = folder / "config.json"
    _json(path, {"auths": auths})
    path.chmod(0o600)
    run("chroot", root, "chown", "-R", f"{owner}:{owner}", f"/{home}/.docker")


def _json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent="\t") + "\n")


def _firewall(root: Path) -> None:
    lines = ["#!/bin/sh", "# Adds each rule once."]
    for rule in RULES:
        command, chain, match = rule.split(" ", 2)
        lines.append(f"{command} -w -C {chain} {match} 2>/dev/null || {command} -w -I {chain} {match}")
    script = root / "usr/local/sbin/site-firewall"
    script.write_text("\n".join(lines) + "\n")
    script.chmod(0o755)
    (root / "etc/systemd/system/site-firewall.service").write_text(FIREWALL)
    run("chroot", root, "systemctl", "enable", "--quiet", "site-firewall.service")


def _half_model(folder: Path, files: dict[str, HubFile]) -> None:
    """Write what an interrupted `hf download --local-dir` leaves: small files whole, half of one shard, no others."""
    notes = folder / ".cache/huggingface/download"
    notes.mkdir(parents=True)
    commit = REPOSITORIES[MODEL].commit(1)
    for file in files.values():
        if not file.large and "/" not in file.name:
            shutil.copy(file.path, folder / file.name)
            (notes / f"{file.name}.metadata").write_text(f"{commit}\n{file.blob}\n{time.time()}\n")
    shard = next(file for file in files.values() if file.large and "/" not in file.name)
    # The name that huggingface_hub gives to a file on its way into a local folder.
    label = base64.urlsafe_b64encode(hashlib.sha1(f"{shard.name}.metadata".encode()).digest()).decode()
    (notes / f"{label}.{shard.sha256}.incomplete").write_bytes(shard.path.read_bytes()[: shard.size // 2])
