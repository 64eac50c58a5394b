"""Hosts as they are in the field: Docker elsewhere, small SSH limits, bastions, logins that run nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.calm import needs_preparing
from tests.lab.conftest import BIN, Run, Site
from tests.lab.products import in_proof, with_proof
from tests.lab.running import deploying
from tests.lab.test_plan import inventory
from tests.lab.test_rebuild import fingerprint
from tests.refused import refusal

pytestmark = pytest.mark.lab

UNIT = "rackwright-llm.service"


@pytest.fixture
def host(site: Site, request: pytest.FixtureRequest) -> Host:
    """Return a serving host: each test that switches it has a port of its own."""
    found = site.lab.host("lived2")
    if needs_preparing(request):
        run = site.deploy("-y", limit=[found.name])
        assert run.status == 0, run.output
    return found


def switched(site: Site, host: Host, port: int = 8001) -> Run:
    """Deploy, and check that it switches the endpoint."""
    return site.deploy("-y", "--data", f"port={port}", limit=[host.name])


def planned(site: Site, host: Host) -> str:
    """Return the plan of a host."""
    return site.rackwright("plan", "inventory/lab.py", "--limit", host.name).output


# -- Docker

ELSEWHERE = """
docker context create elsewhere --docker host=tcp://192.0.2.1:2375 >/dev/null && docker context use elsewhere
echo DOCKER_HOST=tcp://192.0.2.1:2375 >>/etc/environment
mkdir -p /etc/systemd/system.conf.d
printf '[Manager]\nDefaultEnvironment=DOCKER_HOST=tcp://192.0.2.1:2375 DOCKER_TLS_VERIFY=1\n' \\
  >/etc/systemd/system.conf.d/elsewhere.conf
systemctl daemon-reexec
"""
BACK = """
docker context use default; docker context rm elsewhere
sed -i /DOCKER_HOST/d /etc/environment
rm -f /etc/systemd/system.conf.d/elsewhere.conf
systemctl daemon-reexec
"""


@in_proof("fixtures hold the clean environment; one deploy of its own takes three minutes")
def test_another_docker_that_the_environment_names_is_not_asked(site: Site, host: Host) -> None:
    assert site.deploy("-y", limit=[host.name]).status == 0
    host.run(ELSEWHERE)
    try:
        assert "nothing to change" in planned(site, host)
        run = switched(site, host)
        assert run.status == 0, run.output
        assert host.run(f"systemctl is-active {UNIT}").stdout == "active\n"
        assert "DOCKER_HOST=unix:///var/run/docker.sock" in host.run(f"systemctl show -p Environment {UNIT}").stdout
    finally:
        host.run(BACK)


DROPIN = "/etc/systemd/system/docker.service.d/field.conf"
TCP_ONLY = f"""
mkdir -p {DROPIN.rpartition("/")[0]}
printf '[Service]\nExecStart=\nExecStart=/usr/sbin/dockerd -H tcp://127.0.0.1:2375\n' >{DROPIN}
systemctl daemon-reload && systemctl stop docker.socket docker && systemctl start docker
"""


@in_proof("tests/unit/test_preflight_hosts.py has the row; the socket's environment is tried above")
def test_a_dockerd_on_tcp_alone_stops_the_host_by_name(site: Site, host: Host) -> None:
    host.run(TCP_ONLY)
    try:
        run = site.deploy("-y", limit=[host.name])
        assert run.status == 1, run.output
        refusal(run.output, "RW3152", "tcp://127.0.0.1:2375")
    finally:
        host.run(f"rm {DROPIN}; systemctl daemon-reload; systemctl stop docker docker.socket; systemctl start docker")


@in_proof("a whole install of its own; tests/unit/test_spec.py has the words of `docker run`")
def test_a_dockerd_that_maps_users_serves(site: Site) -> None:
    bare = site.lab.host("bare1")
    bare.reset()
    bare.run('mkdir -p /etc/docker; echo \'{"userns-remap": "default"}\' >/etc/docker/daemon.json')
    run = site.deploy("-y", limit=[bare.name])
    assert run.status == 0, run.output
    assert "name=userns" in bare.run("docker info --format '{{.SecurityOptions}}'").stdout


SNAP = "mkdir -p /snap/docker/current", "rm -r /snap/docker"
ROOTLESS = (
    "mkdir -p /run/user/1000 && perl -MIO::Socket::UNIX -e "
    "'IO::Socket::UNIX->new(Local => \"/run/user/1000/docker.sock\", Listen => 1)' "
    "&& chown ops /run/user/1000/docker.sock",
    "rm /run/user/1000/docker.sock",
)


@in_proof("tests/unit/test_preflight_hosts.py has both rows; here the host's own lines are tried")
@pytest.mark.parametrize(
    ("shape", "message"),
    [(SNAP, "RW3150: Docker as a snap: "), (ROOTLESS, "RW3151: rootless Docker: Docker is rootless (of user ops)")],
    ids=["snap", "rootless"],
)
def test_a_docker_of_another_shape_stops_a_bare_host_by_name(site: Site, shape: tuple[str, str], message: str) -> None:
    bare = site.lab.host("bare1")
    bare.reset()
    bare.run(shape[0])
    try:
        run = site.deploy("-y", limit=[bare.name])
    finally:
        bare.run(shape[1])
    assert run.status == 1, run.output
    assert message in run.output
    assert bare.run("command -v dockerd", check=False).stdout == "", "nothing was installed beside it"


@contextmanager
def hanging(host: Host, folder: str) -> Iterator[None]:
    """Mount a folder that never answers: the kernel asks an automounter that stays silent."""
    read, write = os.pipe()
    leader = str(host.machine.leader())
    options = f"fd={write},pgrp=1,minproto=5,maxproto=5,direct"
    words = ["nsenter", "--target", leader, "--mount", "mount", "-t", "autofs", "-o", options, "none", folder]
    try:
        subprocess.run(words, pass_fds=[write], check=True)
        yield
    finally:
        host.run(f"umount -l {folder}", check=False)
        os.close(read)
        os.close(write)


def test_a_share_that_hangs_is_named_and_holds_up_no_reading(site: Site, host: Host) -> None:
    with hanging(host, "/srv/models"):
        run = site.deploy("-y", limit=[host.name])
    assert run.status == 1, run.output
    # A reading that is held up ends with RW0711.
    refusal(run.output, "RW3158", "/srv/models")
    assert "fetch" not in run.output.partition("RW3158")[0]
    assert host.run(f"systemctl is-active {UNIT}").stdout == "active\n"


# -- SSH


def limited(host: Host, setting: str) -> None:
    """One more line for sshd."""
    host.run(f"echo '{setting}' >/etc/ssh/sshd_config.d/000-field.conf; systemctl restart ssh")


def unlimited(host: Host) -> None:
    """Remove the setting again."""
    host.run("rm -f /etc/ssh/sshd_config.d/000-field.conf; systemctl restart ssh")


def test_one_session_at_a_time_is_enough(site: Site, host: Host) -> None:
    limited(host, "MaxSessions 1")
    try:
        run = switched(site, host, 8002)
        assert run.status == 0, run.output
        assert "connection was lost" not in run.output
    finally:
        unlimited(host)


def test_a_connection_that_is_lost_in_a_switch_is_made_anew_and_nobody_is_blamed(site: Site, host: Host) -> None:
    host.set_engine_faults({"fault": "load_seconds", "value": 12})
    with deploying(site, host.name, "--data", "port=8004") as running:
        assert running.until("loading, 5 s") is not None, running.output
        host.run("pkill -f '^sshd: ops'", check=False)
        run = running.end()
    assert run.status == 0, run.output
    assert "quarantined" not in run.output


SHUT = "iptables {} INPUT -p tcp --dport 22 ! -s {} -j DROP"


@dataclass(frozen=True)
class Behind:
    """A host that is reached only through another one."""

    site: Site
    bastion: Host
    host: Host
    inventory: str

    def deploy(self, *more: str) -> Run:
        """Deploy the host, by way of the bastion."""
        words = (self.inventory, "deploy.py", "-y", "--limit", self.host.name, *more)
        return self.site.command(BIN / "pyinfra", *words)


@pytest.fixture
def behind(site: Site, host: Host, tmp_path: Path) -> Iterator[Behind]:
    """Return the serving host behind the other one, which is its bastion."""
    bastion = site.lab.host("bare1")
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Host {host.address}\n  ProxyJump {bastion.user}@{bastion.address}\n"
        f"Host {bastion.address}\n  IdentityFile {bastion.key}\n"
    )
    host.run(SHUT.format("-I", bastion.address))
    try:
        yield Behind(site, bastion, host, inventory(tmp_path, {"ssh_config_file": str(config)}))
    finally:
        host.run(SHUT.format("-D", bastion.address), check=False)


def test_a_host_behind_a_bastion_that_refuses_for_now_is_deployed(behind: Behind) -> None:
    limited(behind.bastion, "MaxStartups 1")
    held = [socket.create_connection((behind.bastion.address, 22)) for _ in range(2)]
    time.sleep(0.5)
    for one in held:
        threading.Timer(4, one.close).start()
    try:
        run = behind.deploy("--data", "port=8005")
    finally:
        unlimited(behind.bastion)
    assert run.status == 0, run.output


@in_proof("a bastion is gone through above; tests/unit/test_ssh_client.py refuses such keys")
def test_a_bastion_whose_key_is_unknown_or_another_one_is_refused(behind: Behind) -> None:
    known_hosts = behind.site.lab.paths.known_hosts
    before = known_hosts.read_text()
    lines = before.splitlines(keepends=True)
    try:
        known_hosts.write_text("".join(entry for entry in lines if not entry.startswith(f"{behind.bastion.address} ")))
        unknown = behind.deploy()
        assert unknown.status == 1, unknown.output
        assert f"No host key for {behind.bastion.address} found in known_hosts" in unknown.output
        behind.bastion.new_host_key()
        known_hosts.write_text(before)
        changed = behind.deploy()
        assert changed.status == 1, changed.output
        assert "does not match" in changed.output
    finally:
        known_hosts.write_text(before)
        behind.site.lab.trust(behind.bastion)


@in_proof("test_rebuild.py rebuilds a host; the bastion's way to its keys is that of the deploys above")
def test_a_host_behind_a_bastion_is_rebuilt(behind: Behind) -> None:
    behind.host.reset()
    behind.host.new_host_key()
    behind.host.run(SHUT.format("-I", behind.bastion.address))
    words = ("rebuild", behind.inventory, "--limit", behind.host.name, "-y", "--fingerprint")
    run = behind.site.rackwright(*words, fingerprint(behind.host))
    assert run.status == 0, run.output
    assert "is back in its place" in run.output


# -- logins and file systems

SUDOERS = "echo 'Defaults:ops {}' >/etc/sudoers.d/zz-field"
UNDONE = "rm /etc/sudoers.d/zz-field"
FOUND = {
    "requiretty": (SUDOERS.format("requiretty"), UNDONE, "RW0733: sudo on this host wants a terminal"),
    "noexec": (SUDOERS.format("noexec"), UNDONE, "RW0734: sudo on this host lets no program start another one"),
    "shell": (
        "sed -i '1i exec cat' /home/ops/.bashrc",
        "sed -i '1d' /home/ops/.bashrc",
        "RW0735: the login's shell did not run what it was sent",
    ),
    "read-only": (
        "mount --bind /etc/systemd/system /etc/systemd/system && mount -o remount,bind,ro /etc/systemd/system",
        "umount /etc/systemd/system",
        "RW3153: read-only: read-only: /etc/systemd/system",
    ),
}
FEW = ("requiretty", "read-only")


@pytest.mark.parametrize("kind", with_proof(FOUND, FEW, "tests/unit/test_login.py has each sentence"))
def test_what_keeps_a_host_from_being_deployed_is_one_sentence(site: Site, host: Host, kind: str) -> None:
    strike, fix, message = FOUND[kind]
    host.run(strike)
    try:
        run = switched(site, host, 8009)
    finally:
        host.run(fix)
    assert run.status == 1, run.output
    assert message in run.output
    assert "Traceback" not in run.output
    assert host.run(f"systemctl is-active {UNIT}").stdout == "active\n"
