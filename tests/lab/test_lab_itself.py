"""The lab keeps its promises: real hosts, strict keys, disks that last, faults by switch, and nothing left behind."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright_lab import Host, Lab, LabError, inventory
from rackwright_lab.gpu import pose
from rackwright_lab.machine import cgroups
from rackwright_lab.servers.image import SGLANG, VLLM
from tests import foreign_texts
from tests.lab import tutorial
from tests.lab.conftest import Site, own_lab

pytestmark = pytest.mark.lab

IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0"
NVIDIA = "/usr/share/keyrings/nvidia.asc"


@pytest.fixture(scope="module")
def worker_lab() -> Iterator[Lab]:
    """Boot two hosts for this file alone, which resets them."""
    with own_lab("l", hosts=2, bare=1) as lab:
        yield lab


@pytest.fixture
def bare(worker_lab: Lab) -> Host:
    return next(host for host in worker_lab.hosts if host.kind == "bare")


@pytest.fixture
def lived(worker_lab: Lab) -> Host:
    return next(host for host in worker_lab.hosts if host.kind == "lived")


@pytest.fixture(scope="module")
def engine_host(worker_lab: Lab) -> Host:
    """Return a fresh lived-in host with NVIDIA's toolkit from the lab's apt repository, and the serving image."""
    host = next(host for host in worker_lab.hosts if host.kind == "lived")
    host.reset()
    source = f"deb [signed-by={NVIDIA}] https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /"
    host.run(f"curl -fsS https://nvidia.github.io/libnvidia-container/gpgkey -o {NVIDIA}")
    host.run("cat > /etc/apt/sources.list.d/nvidia.list", stdin=source + "\n")
    host.run("apt-get update -q && apt-get install -y -q nvidia-container-toolkit=1.18.1-1", timeout=300)
    host.run("nvidia-ctk runtime configure --runtime=docker && systemctl restart docker")
    host.run("docker login nvcr.io -u '$oauthtoken' --password-stdin", stdin=worker_lab.secrets()["registry-key"])
    host.run(f"docker pull -q {IMAGE}", timeout=300)
    return host


def in_container(host: Host, devices: str, command: str = "nvidia-smi -L") -> subprocess.CompletedProcess[str]:
    flags = f"--rm --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES={devices} --ulimit memlock=-1"
    return host.run(f"docker run {flags} {IMAGE} {command}", check=False)


def controllers(host: Host) -> set[str]:
    """Those that a host's systemd may use; they come while it boots."""
    return set(host.run("cat /sys/fs/cgroup/cgroup.controllers").stdout.split())


class TestHosts:
    def test_they_boot_to_a_whole_system_of_their_own(self, worker_lab: Lab) -> None:
        for host in worker_lab.hosts:
            assert host.wait_up() == "running"
            assert host.run("cat /proc/1/comm; hostname").stdout.split() == ["systemd", host.name]
            assert host.run("readlink /proc/1/ns/net").stdout.strip() != str(Path("/proc/self/ns/net").readlink())

    def test_they_have_the_controllers_of_this_machine_after_a_reboot_too(self, bare: Host) -> None:
        has = set((cgroups.unified_root() / "cgroup.controllers").read_text().split())
        assert controllers(bare) == has
        bare.reboot()
        assert controllers(bare) == has

    def test_a_bare_host_lacks_what_a_bare_system_lacks(self, bare: Host) -> None:
        bare.reset()
        found = bare.run("for c in docker curl python3 iptables jq; do command -v $c; done; true").stdout
        assert found == ""
        assert bare.run("command -v nvidia-smi").stdout == "/usr/bin/nvidia-smi\n"

    def test_a_lived_in_host_has_its_past(self, lived: Host) -> None:
        lived.reset()
        assert lived.run("docker info -f '{{.Driver}} {{.CgroupVersion}}'").stdout == "overlay2 2\n"
        assert "--dport 2375 -j DROP" in lived.run("iptables -S DOCKER-USER").stdout
        assert "2001:db8:7::/48 -j DROP" in lived.run("ip6tables -S INPUT").stdout
        assert {"video", "adm", "audio"} <= set(lived.run("id -nG alice").stdout.split())
        assert "ghcr.io" in lived.run("cat ~/.docker/config.json", user="ops").stdout
        assert lived.run("ls /srv/models/gpt-oss-120b/.cache/huggingface/download | grep -c incomplete").stdout == "1\n"

    def test_foreign_rules_come_back_with_docker_and_with_a_reboot(self, lived: Host) -> None:
        lived.run("systemctl restart docker")
        rules = lived.run("iptables -S").stdout
        assert rules.count("--dport 2375 -j DROP") == 1
        assert rules.count("198.51.100.7/32 -j DROP") == 1
        lived.reboot()
        assert sorted(lived.run("iptables -S").stdout.splitlines()) == sorted(rules.splitlines())

    def test_apt_is_real(self, bare: Host) -> None:
        bare.run("apt-get update -q && apt-get install -y -q --no-install-recommends tree", timeout=300)
        assert bare.run("dpkg-query -W -f '${Status}' tree").stdout == "install ok installed"

    def test_a_reboot_keeps_the_disk(self, bare: Host) -> None:
        bare.run("echo kept > /var/lib/kept; touch /run/lost")
        booted = bare.run("cat /proc/sys/kernel/random/boot_id").stdout
        bare.reboot()
        assert bare.run("cat /var/lib/kept").stdout == "kept\n"
        assert bare.run("test -e /run/lost", check=False).returncode == 1
        assert bare.run("cat /proc/sys/kernel/random/boot_id").stdout != booted

    def test_a_lost_power_supply_keeps_what_was_synced(self, bare: Host) -> None:
        bare.run("echo kept > /var/lib/synced; sync")
        bare.kill_power()
        with pytest.raises(LabError, match="is off"):
            bare.run("true")
        bare.start()
        assert bare.run("cat /var/lib/synced").stdout == "kept\n"

    def test_power_off_and_on(self, bare: Host) -> None:
        bare.power_off()
        assert bare.machine.is_off()
        bare.start()
        assert bare.ssh("true").returncode == 0

    def test_a_denied_device_is_neither_made_nor_opened_by_root(self, bare: Host) -> None:
        bare.power_off()
        other = replace(bare, denied=(Path("/dev/loop-control"),))
        other.start()
        done = other.ssh("sudo mknod /run/denied c 10 237; sudo mknod /run/other c 1 3 && echo made")
        assert (done.stdout, done.stderr.endswith(f"/run/denied: {os.strerror(errno.EPERM)}\n")) == ("made\n", True)
        bare.power_off()
        bare.start()

    def test_a_disk_runs_full_and_empties_again(self, bare: Host) -> None:
        bare.run("mkdir -p /srv/small && echo kept > /srv/small/kept")
        bare.fill_disk("/srv/small", free_mib=4)
        full = bare.run("cat /srv/small/kept; head -c 8M /dev/zero > /srv/small/big", check=False)
        assert full.stdout == "kept\n"
        assert "No space left on device" in full.stderr
        bare.free_disk("/srv/small")
        bare.run("head -c 8M /dev/zero > /srv/small/big")

    def test_a_reset_gives_a_fresh_disk_and_an_empty_docker_in_seconds(self, lived: Host) -> None:
        lived.run("touch /etc/mine; docker volume create mine")
        key = lived.public_host_key()
        begun = time.monotonic()
        lived.reset()
        assert time.monotonic() - begun < 30
        assert lived.run("test -e /etc/mine", check=False).returncode == 1
        assert lived.run("docker volume ls -q").stdout == ""
        assert lived.public_host_key() == key
        assert lived.ssh("true").returncode == 0


class TestSsh:
    def test_the_user_logs_in_by_key_and_may_sudo(self, worker_lab: Lab) -> None:
        for host in worker_lab.hosts:
            assert host.ssh("id -un; sudo -n id -un").stdout.split() == ["ops", "root"]

    def test_root_and_passwords_are_refused(self, bare: Host) -> None:
        argv = [argument.replace("ops@", "root@") for argument in bare.ssh_argv("true")]
        refused = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
        assert refused.returncode == 255
        assert "Permission denied (publickey)" in refused.stderr

    def test_a_new_host_key_is_refused_until_it_is_trusted(self, worker_lab: Lab, bare: Host) -> None:
        bare.new_host_key()
        refused = bare.ssh("true")
        assert refused.returncode == 255
        assert "HOST IDENTIFICATION HAS CHANGED" in refused.stderr
        worker_lab.trust(bare)
        assert bare.ssh("true").returncode == 0

    def test_sessions_can_be_counted_in_the_journal(self, bare: Host) -> None:
        before = bare.journal("-u", "ssh").count("Starting session: command")
        bare.ssh("true")
        bare.ssh("true")
        assert bare.journal("-u", "ssh").count("Starting session: command") == before + 2

    def test_a_cut_cable_cuts_ssh_and_heals(self, bare: Host) -> None:
        bare.cut_network()
        try:
            assert bare.run("true").returncode == 0
            assert bare.ssh("true").returncode == 255
        finally:
            bare.restore_network()
        assert bare.ssh("true").returncode == 0

    def test_the_inventory_names_the_hosts_and_checks_their_keys_strictly(self, worker_lab: Lab) -> None:
        found = dict(inventory.hosts(worker_lab.paths.id))
        assert list(found) == [host.name for host in worker_lab.hosts]
        for data in found.values():
            assert data["ssh_strict_host_key_checking"] == "yes"
            assert data["ssh_hostname"] in Path(data["ssh_known_hosts_file"]).read_text()

    def test_without_a_lab_the_inventory_says_what_to_type(self) -> None:
        with pytest.raises(LabError) as caught:
            inventory.hosts("never")
        assert str(caught.value).split(": ") == ["no lab is up", "rackwright lab up --hosts 2"]


class TestGpus:
    def test_a_host_shows_eight_b200(self, bare: Host) -> None:
        bare.gpu.set()
        rows = bare.ssh("nvidia-smi --query-gpu=uuid,name,fabric.state --format=csv,noheader").stdout.splitlines()
        assert rows == [f"{uuid}, NVIDIA B200, Completed" for uuid in bare.gpu.uuids()]
        assert "580.159.04" in bare.run("cat /proc/driver/nvidia/version /sys/module/nvidia/version").stdout
        assert bare.run("systemctl is-active nvidia-fabricmanager").stdout == "active\n"

    def test_switches_break_them(self, bare: Host) -> None:
        bare.gpu.set(module="580.95.05")
        failed = bare.run("nvidia-smi", check=False)
        assert failed.returncode == 18
        assert failed.stdout.startswith(foreign_texts.NVML_MISMATCH)
        assert "580.95.05" in bare.run("cat /proc/driver/nvidia/version").stdout
        bare.gpu.set(gpus=7, mig="Enabled", remap_pending="Yes", faulty_gpu=3)
        assert len(bare.run("nvidia-smi -L").stdout.splitlines()) == 7
        query = "nvidia-smi --query-gpu=mig.mode.current,remapped_rows.pending --format=csv,noheader -i 3"
        assert bare.run(query).stdout == "Enabled, Yes\n"
        bare.gpu.set()
        assert len(bare.run("nvidia-smi -L").stdout.splitlines()) == 8

    def test_a_stranger_on_a_gpu_is_seen(self, bare: Host) -> None:
        pid = bare.gpu.start_foreign_process(index=2, memory_mib=5000)
        query = "nvidia-smi --query-compute-apps=pid,gpu_uuid,used_memory --format=csv,noheader,nounits"
        try:
            assert bare.run(query).stdout == f"{pid}, {bare.gpu.uuids()[2]}, 5000\n"
        finally:
            bare.gpu.stop_foreign_process(index=2)
        assert bare.run(query).stdout == ""

    def test_a_container_sees_the_faults_of_its_host_as_they_change(self, engine_host: Host) -> None:
        flags = "--name sees --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all"
        engine_host.run(f"docker run -d {flags} {IMAGE} sleep 300")
        try:
            engine_host.set_engine_faults({"fault": "never_ready"})
            faults = engine_host.run("docker exec sees cat /etc/rackwright-lab/faults.json").stdout
            assert json.loads(faults) == {"engine": [{"fault": "never_ready"}]}
        finally:
            engine_host.set_engine_faults()
            engine_host.run("docker rm -f sees")

    def test_a_container_gets_the_gpus_that_it_asked_for(self, engine_host: Host) -> None:
        wanted = engine_host.gpu.uuids()[2:4]
        listed = in_container(engine_host, ",".join(wanted)).stdout
        assert [row.partition("UUID: ")[2].rstrip(")") for row in listed.splitlines()] == wanted

    def test_unknown_gpus_and_a_broken_driver_are_refused(self, engine_host: Host) -> None:
        refused = in_container(engine_host, "GPU-nowhere")
        assert refused.returncode == 125
        assert "unresolvable CDI devices runtime.nvidia.com/gpu=GPU-nowhere" in refused.stderr
        engine_host.gpu.set(module="580.95.05")
        try:
            assert "failed to initialize NVML" in in_container(engine_host, "all").stderr
        finally:
            engine_host.gpu.set()

    def test_limits_asked_for_are_shown_and_do_not_stop_the_container(self, engine_host: Host) -> None:
        flags = "--name asked --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all --ulimit memlock=-1"
        engine_host.run(f"docker run -d {flags} {IMAGE} sleep 300")
        try:
            assert engine_host.run("docker inspect -f '{{json .HostConfig.Ulimits}}' asked").stdout == (
                '[{"Name":"memlock","Hard":-1,"Soft":-1}]\n'
            )
            assert len(engine_host.run("docker exec asked nvidia-smi -L").stdout.splitlines()) == 8
        finally:
            engine_host.run("docker rm -f asked")


class TestServers:
    def test_the_registry_wants_the_key(self, worker_lab: Lab, engine_host: Host) -> None:
        login = "docker --config /tmp/empty login nvcr.io -u '$oauthtoken' --password-stdin"
        refused = engine_host.run(login, stdin="nvapi-wrong", check=False)
        assert refused.returncode != 0
        assert "401" in refused.stderr
        worker_lab.registry.accept_key("nvapi-rotated")
        try:
            assert engine_host.run(login, stdin="nvapi-rotated").returncode == 0
        finally:
            worker_lab.registry.heal()

    def test_the_registry_fails_by_switch(self, worker_lab: Lab, engine_host: Host) -> None:
        worker_lab.registry.answer(503)
        try:
            failed = engine_host.run(f"docker pull {IMAGE}", check=False)
            assert failed.returncode != 0
        finally:
            worker_lab.registry.heal()
        assert engine_host.run(f"docker pull -q {IMAGE}").returncode == 0

    @pytest.mark.parametrize(
        ("name", "options"),
        [
            (VLLM, "from vllm.engine.arg_utils import EngineArgs as Options"),
            (SGLANG, "from sglang.srt.server_args import ServerArgs as Options"),
        ],
    )
    def test_docker_hub_needs_no_key_and_its_images_check_options_offline(
        self, engine_host: Host, name: str, options: str
    ) -> None:
        engine_host.run(f"docker --config /tmp/empty pull -q docker.io/{name}")
        code = f"{options}; print(Options('m', stream_interval=20).stream_interval)"
        answer = engine_host.run(f'docker run --rm --network none --entrypoint python3 {name} -c "{code}"')
        assert answer.stdout.strip() == "20"

    def test_docker_hub_fails_by_switch_and_nvcr_does_not(self, worker_lab: Lab, engine_host: Host) -> None:
        worker_lab.docker_hub.answer(429)
        try:
            assert engine_host.run(f"docker pull {VLLM}", check=False).returncode != 0
            assert engine_host.run(f"docker pull -q {IMAGE}").returncode == 0
        finally:
            worker_lab.docker_hub.heal()
        assert engine_host.run(f"docker pull -q {VLLM}").returncode == 0

    def test_containers_find_the_lab_by_its_real_names(self, worker_lab: Lab, engine_host: Host) -> None:
        found = engine_host.run(f"docker run --rm {IMAGE} getent hosts huggingface.co").stdout
        assert found.split()[0] == worker_lab.names()["huggingface.co"]

    def test_secrets_are_for_their_owner_only(self, worker_lab: Lab) -> None:
        assert set(worker_lab.secrets()) == {"registry-key", "hub-token"}
        for path in worker_lab.paths.secrets.iterdir():
            assert path.stat().st_mode & 0o777 == 0o600


class TestLabs:
    @pytest.fixture
    def second(self, worker_lab: Lab) -> Iterator[Lab]:
        lab = Lab.open(f"{worker_lab.paths.id}b")
        lab.down()
        yield lab
        lab.down()

    def test_two_labs_at_once_and_one_goes_without_a_trace(self, worker_lab: Lab, second: Lab) -> None:
        up = Site(worker_lab).rackwright("lab", "up", "--hosts", "1", "--bare", "1", "--id", second.paths.id)
        assert up.status == 0, up.output
        [host] = second.hosts
        assert tutorial.missing(2, up.output, host.name) == []
        assert second.record()["subnet"] != worker_lab.record()["subnet"]
        assert all(each.ssh("true").returncode == 0 for each in (host, *worker_lab.hosts))
        second.down()
        assert traces(second) == []
        assert all(each.ssh("true").returncode == 0 for each in worker_lab.hosts)

    def test_down_ends_a_host_whose_nspawn_was_killed(self, second: Lab) -> None:
        host = second.up(hosts=1, bare=1, in_memory=True)[0]
        assert mount_of(host.folder).split() == [second.paths.tag, "tmpfs"]
        leader = host.machine.leader()
        assert leader is not None
        os.kill(parent_of(leader), signal.SIGKILL)
        time.sleep(0.5)
        second.down()
        assert traces(second) == []
        assert not is_alive(leader)

    def test_up_heals_after_it_was_killed_and_adds_hosts(self, second: Lab) -> None:
        command = [sys.executable, "-m", "rackwright_lab", "up", "--hosts", "2", "--id", second.paths.id]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert first.stderr is not None
        for row in first.stderr:
            if "booting" in row:
                break
        first.kill()
        first.wait()
        hosts = second.up(hosts=3, bare=1, short_lists=True)
        assert [host.kind for host in hosts] == ["bare", "lived", "lived"]
        assert all(host.ssh("true").returncode == 0 for host in hosts)

    def test_a_bad_id_is_refused(self) -> None:
        with pytest.raises(LabError, match="is not a lab id"):
            Lab.open("Not_An_Id")


def mount_of(folder: Path) -> str:
    """Return the source and the kind of the mount below a folder of this machine."""
    argv = ["findmnt", "--noheadings", "--output=SOURCE,FSTYPE", "--target", str(folder)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def parent_of(pid: int) -> int:
    return int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended may wait a moment for its parent to notice."""
    status = Path("/proc", str(pid), "status")
    return status.exists() and "State:\tZ" not in status.read_text()


def traces(lab: Lab) -> list[str]:
    """Whatever of a lab is left on this machine."""
    words = (
        f"/{lab.paths.id}/",
        f"-{lab.paths.id}.lock",
        lab.paths.bridge,
        lab.paths.tag,
        f"{lab.paths.id}-bare",
        f"{lab.paths.id}-lived",
    )
    listings = [
        subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        for argv in (["ip", "-br", "link"], ["iptables-save"], ["ps", "-eo", "args"], ["cat", "/proc/mounts"])
    ]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob("*/*")]
    files = [f"{path}/" for folder in (lab.paths.root.parent, Path("/run/lock")) for path in folder.iterdir()]
    lines = [row for text in listings for row in text.splitlines()] + groups + files
    return [row for row in lines if any(term in row for term in words)]


def test_uuids_are_each_hosts_own() -> None:
    assert len({pose.uuid(host, index) for host in ("a", "b") for index in range(8)}) == 16
