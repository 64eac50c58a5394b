"""Preflight and Docker on real hosts: what stops a host before anything is written, how Docker is set up and fixed."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from rackwright_lab.servers.web import MIRROR_HOST
from tests import texts
from tests.lab.conftest import BIN, ROOT, Run, Site, own_lab
from tests.lab.products import in_proof, with_proof
from tests.lab.running import deploying
from tests.refused import refusal

pytestmark = pytest.mark.lab

DEPLOY = "tests/lab/deploys/host.py"
DAEMON_JSON = "/etc/docker/daemon.json"
# As dpkg and apt hold it; a bare host has perl and no Python.
HOLD_LOCK = """\
use Fcntl;
open(my $file, '>>', '/var/lib/dpkg/lock-frontend') or die;
my $lock = pack('ssx4qqix4', F_WRLCK, 0, 0, 0, 0);
fcntl($file, F_SETLK, $lock) or die;
sleep 1 until -e '/run/let-go';
"""


def given(**data: Any) -> list[str]:
    """Return settings as arguments of a command line."""
    return [argument for key, value in data.items() for argument in ("--data", f"{key}={json.dumps(value)}")]


def settle(site: Site, host: Host, **data: Any) -> Run:
    """Preflight and Docker on one host, with settings given on the command line."""
    return site.command(BIN / "pyinfra", "inventory/lab.py", DEPLOY, "--limit", host.name, "-y", *given(**data))


def docker_changed(run: Run) -> bool:
    return any(name.startswith("Docker") for name in run.changed)


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    """Boot two hosts for this file alone, as they were made: none of them ever serves."""
    with own_lab("h", hosts=2, bare=1) as lab:
        yield lab


@pytest.fixture
def bare(worker_lab: Lab) -> Host:
    return worker_lab.host("bare1")


@pytest.fixture
def lived(worker_lab: Lab) -> Host:
    """Return the lived-in host after one run: everything is set up."""
    host = worker_lab.host("lived2")
    if "nvidia" not in host.run("docker info").stdout:
        run = settle(Site(worker_lab), host)
        assert run.status == 0, run.output
    return host


# -- preflight, on a host to which nothing was written yet


def untouched(host: Host) -> bool:
    return host.run("[ ! -e /var/lib/rackwright ] && ! command -v dockerd").returncode == 0


GPU_FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "too few": ({"gpus": 7}, "GPU count", "lspci"),
    "another module": ({"module": "575.57.08"}, "driver", "reboot"),
    "an old driver": ({"driver": "570.10", "module": "570.10"}, "driver version", "driver-installation-guide"),
    "MIG": ({"mig": "Enabled"}, "MIG", "-mig 0"),
    "uncorrected errors": ({"ecc_uncorrected": 3}, "ECC uncorrectable", "--gpu-reset"),
    "a pending remap": ({"remap_pending": "Yes"}, "row remap", "--gpu-reset"),
    "no fabric": ({"fabric_state": "In Progress", "fabric_status": "N/A"}, "fabric", "nvidia-fabricmanager"),
}


@pytest.mark.parametrize(
    "fault", with_proof(GPU_FAULTS, {"too few", "uncorrected errors", "no fabric"}, "each is one row of preflight")
)
def test_gpus_that_stop_a_host(site: Site, bare: Host, fault: str) -> None:
    switches, row, fix = GPU_FAULTS[fault]
    bare.gpu.set(**switches)
    try:
        run = settle(site, bare)
    finally:
        bare.gpu.set()
    assert run.status == 1, run.output
    assert f"preflight: {row}" in run.output or f", {row}" in run.output
    assert fix in run.output
    assert untouched(bare)


def test_another_gpu_is_refused(site: Site, bare: Host) -> None:
    bare.gpu.pose_as("h200")
    try:
        run = settle(site, bare)
    finally:
        bare.gpu.pose_as("b200")
    assert run.status == 1
    assert "8 x NVIDIA H200" in run.output
    assert untouched(bare)


def test_a_gpu_that_dcgm_finds_broken_keeps_its_host_out(site: Site, bare: Host) -> None:
    words = ("inventory/lab.py", "--limit", bare.name)
    bare.gpu.install_dcgm(faults="3 software 52")
    try:
        first = settle(site, bare)
        assert first.status == 1, first.output
        assert texts.DIAGNOSES.format(level=1) in first.output
        refusal(first.output, "RW3107", "GPU 3", "faulty memory")
        assert "holds this host's lease" not in first.output, "the lease is this run's own"
        bare.run("! command -v dockerd")
        found = site.rackwright("diagnose", *words)
        assert found.status == 1, found.output
        refusal(found.output, "RW2657", "dcgmi diag -r 2: GPU 3: software")
        status = site.rackwright("status", *words).output
        assert "in quarantine" in status
        assert "GPU 3: software" in status
        bare.gpu.install_dcgm()
        again = site.rackwright("diagnose", *words)
        assert again.status == 0, again.output
        assert "RW3107" not in site.rackwright("plan", *words).output
    finally:
        site.rackwright("quarantine", words[0], "--release", "--limit", bare.name)
        bare.gpu.remove_dcgm()
        bare.run("rm -rf /var/lib/rackwright /run/rackwright")
    assert untouched(bare)


def test_a_stranger_on_the_port_is_named(site: Site, bare: Host) -> None:
    bare.run("systemd-run --unit=squatter --collect sh -c 'exec openssl s_server -nocert -accept 8000'")
    try:
        wait_for(bare, "ss -Hltn 'sport = :8000' | grep -q .")
        run = settle(site, bare)
    finally:
        bare.run("systemctl stop squatter")
    assert run.status == 1
    assert "8000 is taken by openssl, pid" in run.output
    assert untouched(bare)


def test_a_stranger_on_the_gpus_is_named(site: Site, bare: Host) -> None:
    bare.run("systemd-run --unit=other-process --collect --uid=ops sleep 600")
    records = "/run/rackwright-lab/gpu-processes"
    bare.run(
        "pid=$(systemctl show other-process --property=MainPID --value); started=$(cut -d' ' -f22 /proc/$pid/stat); "
        f'mkdir -p {records} && echo "$pid $started 2048 {bare.gpu.uuids()[3]}" >{records}/other-process'
    )
    try:
        run = settle(site, bare)
    finally:
        bare.run(f"systemctl stop other-process; rm {records}/other-process")
    assert run.status == 1
    assert "sleep of ops, 2.0 GiB" in run.output
    assert untouched(bare)


def test_half_configured_dpkg_is_named_with_its_command(site: Site, bare: Host) -> None:
    status = "/var/lib/dpkg/status"
    bare.run(f"cp {status} /root/status && sed -i '/^Package: less$/,/^$/s/ok installed/ok half-configured/' {status}")
    try:
        run = settle(site, bare)
    finally:
        bare.run(f"cp /root/status {status}")
    assert run.status == 1
    assert "less half-configured" in run.output
    assert "dpkg --configure -a" in run.output
    assert untouched(bare)


def test_a_user_who_does_not_exist_is_named(site: Site, lived: Host) -> None:
    run = settle(site, lived, docker={"users": ["ghost"]})
    assert run.status == 1
    refusal(run.output, "RW2103", "ghost")


# -- a bare host


def test_a_bare_host_waits_for_the_lock_and_gets_docker_behind_its_proxy(site: Site, bare: Host) -> None:
    bare.run("cat >/root/lock.pl", stdin=HOLD_LOCK)
    bare.run("systemd-run --unit=locker --collect perl /root/lock.pl")
    wait_for(bare, "find /proc/[0-9]*/fd -lname /var/lib/dpkg/lock-frontend 2>/dev/null | grep -q .")
    wanted: dict[str, Any] = {"docker": {"users": ["ops"]}, "proxy": {"http": site.lab.proxy.url}}
    with deploying(site, bare.name, *given(**wanted), program=DEPLOY) as running:
        assert running.until(texts.APT_LOCK.format(lock="/var/lib/dpkg/lock-frontend")), running.output
        bare.run("touch /run/let-go")
        run = running.end()
    assert run.status == 0, run.output
    assert "nvidia" in bare.run("docker info --format '{{json .Runtimes}}'").stdout
    assert bare.run("docker ps", user="ops").returncode == 0
    held = bare.run("apt-mark showhold").stdout.split()
    assert {"docker.io", "nvidia-container-toolkit"} <= set(held)
    assert "curl" not in held
    dockerd = started(bare)
    assert settle(site, bare, **wanted).changed == []
    assert started(bare) == dockerd
    proxies = bare.run("systemctl cat docker.service; docker info --format '{{.HTTPSProxy}}'").stdout
    assert proxies.count(site.lab.proxy.url) == 3, "its drop-in has both, and dockerd the one for its pulls"


def test_it_owns_what_it_brought(bare: Host) -> None:
    record = json.loads(bare.run("cat /var/lib/rackwright/owned.json").stdout)["owned"]
    owned = {(entry["kind"], entry["name"]) for entry in record}
    assert {("package", "docker.io"), ("daemon_key", "runtimes.nvidia"), ("group_member", "docker:ops")} <= owned


@in_proof("test_cuts.py cuts a fresh host where it is worst")
def test_a_power_cut_in_the_middle_of_the_installation_heals(site: Site, bare: Host) -> None:
    bare.reset()
    command: list[str | Path] = [BIN / "pyinfra", "inventory/lab.py", DEPLOY, "--limit", bare.name, "-y"]
    with subprocess.Popen(
        command, cwd=ROOT, env=site.environment(), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
    ) as run:
        wait_for(bare, "grep -q 'configure containerd' /var/log/dpkg.log", seconds=120)
        bare.kill_power()
        assert run.wait(60) == 1
    bare.start()
    assert bare.run("dpkg --audit").stdout != "", "the cut came in time"
    healed = settle(site, bare)
    assert healed.status == 0, healed.output
    assert texts.APT_CUT in healed.output
    assert bare.run("dpkg --audit").stdout == ""
    assert "nvidia" in bare.run("docker info --format '{{json .Runtimes}}'").stdout
    assert settle(site, bare).changed == []


def test_dockers_own_packages_come_from_its_repository_and_nvidias_from_a_mirror(site: Site, bare: Host) -> None:
    bare.reset()
    toolkit = f"https://{MIRROR_HOST}/libnvidia-container"
    wanted = {"docker": {"source": "docker"}, "mirrors": {"container_toolkit": toolkit}}
    run = settle(site, bare, **wanted)
    assert run.status == 0, run.output
    lists = bare.run("cat /etc/apt/sources.list.d/rackwright-*.list").stdout
    assert "https://download.docker.com/linux/debian bookworm stable" in lists
    assert toolkit in lists
    for name in ("docker-ce", "docker-ce-cli", "containerd.io"):
        assert bare.run(f"apt-mark showhold {name}").stdout.strip() == name
    assert bare.run("dpkg-query -W -f '${Status}' docker.io", check=False).stdout != "install ok installed"
    assert "nvidia" in bare.run("docker info --format '{{json .Runtimes}}'").stdout
    assert settle(site, bare, **wanted).changed == []


# -- a host with Docker


def test_foreign_keys_and_groups_stay(site: Site, lived: Host) -> None:
    lived.run("usermod -aG adm,audio ops")
    before: dict[str, Any] = {"mtu": 1450, "runtimes": {"crun": {"path": "/usr/bin/runc"}}, "labels": ["a=b"]}
    lived.run(f"mkdir -p /srv/managed; ln -sfn /srv/managed/daemon.json {DAEMON_JSON}")
    lived.run(f"cat >{DAEMON_JSON}", stdin=json.dumps(before, indent=2))
    run = settle(site, lived, docker={"users": ["ops"], "daemon": {"max-concurrent-downloads": 6}})
    assert run.status == 0, run.output
    assert lived.run(f"readlink {DAEMON_JSON}").stdout.strip() == "/srv/managed/daemon.json"
    after = json.loads(lived.run(f"cat {DAEMON_JSON}").stdout)
    assert list(after) == ["mtu", "runtimes", "labels", "max-concurrent-downloads"]
    assert after["runtimes"]["crun"] == before["runtimes"]["crun"]
    assert "nvidia" in after["runtimes"]
    assert {"adm", "audio", "docker", "ops"} <= set(lived.run("id -nG ops").stdout.split())
    assert settle(site, lived, docker={"users": ["ops"], "daemon": {"max-concurrent-downloads": 6}}).changed == []


def test_a_reload_does_not_restart_dockerd(site: Site, lived: Host) -> None:
    before = started(lived)
    run = settle(site, lived, docker={"daemon": {"max-concurrent-uploads": 3}})
    assert docker_changed(run), run.output
    assert started(lived) == before


def test_a_broken_daemon_json_is_an_error_that_says_where(site: Site, lived: Host) -> None:
    good = lived.run(f"cat {DAEMON_JSON}").stdout
    lived.run(f"cat >{DAEMON_JSON}", stdin='{\n "debug": tru\n}\n')
    run = settle(site, lived)
    assert run.status == 1
    assert "line 2, column 11" in run.output
    assert lived.run(f"cat {DAEMON_JSON}").stdout == '{\n "debug": tru\n}\n'
    lived.run(f"cat >{DAEMON_JSON}", stdin=good)
    assert settle(site, lived).status == 0


def test_a_configuration_that_dockerd_cannot_start_with_is_taken_back(site: Site, lived: Host) -> None:
    good = lived.run(f"cat {DAEMON_JSON}").stdout
    run = settle(site, lived, docker={"daemon": {"bip": "not-an-address"}})
    assert run.status == 1
    assert "taken back" in run.output
    assert lived.run(f"cat {DAEMON_JSON}").stdout == good
    assert lived.run("docker info").returncode == 0
    assert settle(site, lived).status == 0


def test_a_restart_is_left_to_the_turn_of_a_host_that_serves(site: Site, lived: Host) -> None:
    lived.run("systemd-run --unit=rackwright-llm --collect sleep 600")
    before = started(lived)
    try:
        run = settle(site, lived, docker={"daemon": {"log-level": "warn"}})
        assert run.status == 0, run.output
        assert not docker_changed(run)
        run = settle(site, lived, docker={"daemon": {"data-root": "/srv/docker"}})
        assert run.status == 1
        assert "systemctl stop rackwright-llm.service" in run.output
        assert started(lived) == before
        assert "log-level" not in lived.run(f"cat {DAEMON_JSON}").stdout
    finally:
        lived.run("systemctl stop rackwright-llm")
    run = settle(site, lived, docker={"daemon": {"log-level": "warn"}})
    assert run.status == 0, run.output
    assert started(lived) != before
    taken_out = settle(site, lived)
    assert docker_changed(taken_out)
    assert "log-level" not in lived.run(f"cat {DAEMON_JSON}").stdout


def test_dockerd_down_is_started(site: Site, lived: Host) -> None:
    lived.run("systemctl stop docker.service docker.socket && systemctl disable docker.service")
    run = settle(site, lived)
    assert run.status == 0, run.output
    assert f"start dockerd ({texts.DOCKERD_DOWN})" in run.output
    assert lived.run("systemctl is-enabled docker.service").stdout.strip() == "enabled"


def test_a_proxy_reaches_dockerd_and_leaves_it_again(site: Site, lived: Host) -> None:
    run = settle(site, lived, proxy={"http": "http://192.0.2.1:3128"})
    assert run.status == 0, run.output
    assert "192.0.2.1" in lived.run("docker info --format '{{.HTTPSProxy}}'").stdout
    assert "192.0.2.1" in lived.run("apt-config dump Acquire::http::Proxy").stdout
    assert settle(site, lived, proxy={"http": "http://192.0.2.1:3128"}).changed == []
    assert settle(site, lived).status == 0
    assert lived.run("docker info --format '{{.HTTPSProxy}}'").stdout.strip() == ""


def test_a_member_of_ours_leaves_and_others_stay(site: Site, lived: Host) -> None:
    lived.run("id ann >/dev/null 2>&1 || useradd --create-home ann; gpasswd -a ann docker")
    assert settle(site, lived, docker={"users": ["ops", "ann"]}).status == 0
    assert settle(site, lived).status == 0
    members = lived.run("getent group docker | cut -d: -f4").stdout.strip().split(",")
    assert "ann" in members, "she was a member before"
    assert "ops" not in members


def test_a_released_hold_comes_back(site: Site, lived: Host) -> None:
    lived.run("apt-mark unhold nvidia-container-toolkit")
    run = settle(site, lived)
    assert "hold nvidia-container-toolkit" in run.output
    assert "nvidia-container-toolkit" in lived.run("apt-mark showhold").stdout


@in_proof("tests/unit/test_docker.py plans the pin; a pinned version of NVIDIA's mirror is installed below")
def test_the_toolkit_follows_its_pin(site: Site, lived: Host) -> None:
    installed = "dpkg-query -W -f '${Version}' nvidia-container-toolkit"
    newest = lived.run(installed).stdout
    run = settle(site, lived, docker={"toolkit_version": "1.17.8-1"})
    assert run.status == 0, run.output
    assert lived.run(installed).stdout == "1.17.8-1"
    again = settle(site, lived, docker={"toolkit_version": "1.17.8-1"})
    assert again.changed == []
    assert re.search(r"warn RW\d+: container toolkit", again.output)
    run = settle(site, lived, docker={"toolkit_version": "9.9-1"})
    assert run.status == 1
    assert f"{texts.WRONG_PIN.format(version='9.9-1')} 1.17.8-1" in run.output
    assert settle(site, lived, docker={"toolkit_version": newest}).status == 0
    assert lived.run(installed).stdout == newest
    assert settle(site, lived).status == 0
    assert lived.run("ls /etc/apt/preferences.d").stdout == ""


def test_a_half_written_configuration_heals(site: Site, lived: Host) -> None:
    """Cut between the write and the reload: the file has the runtime, the running dockerd does not."""
    without = base64.b64encode(b"{}").decode()
    text = lived.run(f"cat {DAEMON_JSON}").stdout
    lived.run(
        f"echo {without} | base64 -d >{DAEMON_JSON} && systemctl restart docker && cat >{DAEMON_JSON}", stdin=text
    )
    assert "nvidia" not in lived.run("docker info --format '{{json .Runtimes}}'").stdout
    run = settle(site, lived)
    assert run.status == 0, run.output
    assert "nvidia" in lived.run("docker info --format '{{json .Runtimes}}'").stdout


def started(host: Host) -> str:
    """When dockerd was started."""
    return host.run("systemctl show docker.service --property=ExecMainStartTimestampMonotonic").stdout


def wait_for(host: Host, command: str, seconds: float = 10) -> None:
    """Until a command on the host ends well."""
    deadline = time.monotonic() + seconds
    while host.run(command, check=False).returncode != 0:
        assert time.monotonic() < deadline, f"{command}: not within {seconds} s"
        time.sleep(0.1)
