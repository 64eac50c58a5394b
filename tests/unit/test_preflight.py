"""Preflight's rows: what stops a host, what only warns, and what `N/A` never does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.docker import Package
from rackwright.concerns.gpus import SeenGpus
from rackwright.concerns.gpus import parse as parse_gpus
from rackwright.concerns.preflight.concern import PREFLIGHT, WantedHost, changes, details, joined, parse, report
from rackwright.concerns.preflight.row import DRAIN, UNDRAIN, Case, CheckRow, Disk, Fetch, Listener, Reach
from rackwright.concerns.preflight.table import render, summary
from rackwright.plan.answers import Answers, ListedContainer
from rackwright.plan.change import Owned, Refuse
from rackwright.profiles import catalog
from rackwright.settings.sections import Releases
from rackwright_engines.quick_yaml import load_yaml
from tests import texts
from tests.unit.machines import BOOKWORM, DGX_B200, case, docker, gpu_output, gpus, machine, settings

GROUP_VARS = Path(__file__).parents[2] / "group_vars"


def judged(found: Case) -> dict[str, list[CheckRow]]:
    table: dict[str, list[CheckRow]] = {}
    for row in WantedHost(found).rows:
        table.setdefault(row.name, []).append(row)
    return table


def stops(found: Case) -> set[str]:
    return {row.name for row in WantedHost(found).rows if row.stops}


def warns(found: Case) -> set[str]:
    return {row.name for row in WantedHost(found).rows if row.warns}


def test_a_healthy_dgx_b200_is_all_good() -> None:
    found = WantedHost(case()).rows
    assert [row for row in found if not row.ok] == []
    assert len(found) > 24
    assert changes(WantedHost(case()), machine()) == []
    assert report(WantedHost(case()), machine()) == f"preflight: {len(found)} checks, all good"


@pytest.mark.parametrize(
    ("name", "hardware", "architecture"),
    [
        (
            "gb200",
            {"architecture": "aarch64", "gpu_models": ["GB200"], "gpu_count": 4, "compute_capability": ["10.0"]},
            "aarch64",
        ),
        (
            "gb10",
            {"architecture": "aarch64", "gpu_models": ["GB10"], "gpu_count": 1, "unified_memory": True},
            "aarch64",
        ),
        ("rtx_pro_6000", {"gpu_models": ["RTX PRO 6000"], "compute_capability": ["12.0"]}, "x86_64"),
        ("h200", {"gpu_models": ["H200"], "gpu_count": 1}, "x86_64"),
    ],
)
def test_other_machines_pass_with_their_own_hardware(name: str, hardware: dict[str, Any], architecture: str) -> None:
    found = case(settings=settings(hardware=hardware), machine=machine(architecture), gpus=gpus(name))
    assert [row for row in WantedHost(found).rows if not row.ok] == []


def test_a_gb200_tray_is_no_dgx_b200() -> None:
    found = case(machine=machine("aarch64"), gpus=gpus("gb200"))
    assert stops(found) == {"architecture", "GPU model", "GPU count"}


def refused(found: Case) -> Refuse:
    """Return preflight's refusal of a host."""
    (change,) = changes(WantedHost(found), machine())
    (step,) = change.steps
    assert isinstance(step, Refuse)
    return step


def test_another_machine_is_helped_by_a_profile_that_fits_it_and_not_by_a_resume_text() -> None:
    tray = refused(case(machine=machine("aarch64"), gpus=gpus("gb200")))
    fit, _, remaining = tray.mistake.removeprefix("give the host a profile that fits it, as ").partition(" ")
    assert catalog.profile(fit).gpu_models == ("GB200",)
    assert remaining == "(rackwright profiles list --gpu GB200), or set `hardware` as it is"


def test_gpus_that_a_host_does_not_have_are_a_mistake_of_the_settings_text() -> None:
    assert refused(case(settings=settings(gpus=[9]))).mistake == "fix the settings as the errors above say"


def test_a_host_that_can_be_repaired_has_no_mistake() -> None:
    assert (
        refused(
            case(gpus=replace(gpus(), driver="570.1"), settings=settings(hardware={"driver_minimum": "999"}))
        ).mistake
        == ""
    )


def test_an_endpoint_of_other_hosts_is_refused_before_anything_is_written_text() -> None:
    step = refused(case(elsewhere=("llm",)))
    assert "RW3191: hosts of endpoints: endpoint llm: other hosts than before are to serve it" in step.text
    assert step.mistake == "rackwright teardown INVENTORY with --limit for each of its hosts"


def test_a_profile_for_eight_gpus_refuses_a_tray_of_four_with_the_way_out() -> None:
    profile = load_yaml((GROUP_VARS / "gb200.yml").read_text())
    found = case(settings=settings(**profile), machine=machine("aarch64"), gpus=gpus("gb200"))
    (row,) = judged(found)["GPU count"]
    assert stops(found) == {"GPU count"}
    assert row.reading == "4"
    assert "profile: gb200_tray" in row.fix
    tray = settings(**{**profile, "hardware": load_yaml((GROUP_VARS / "gb200_tray.yml").read_text())["hardware"]})
    assert stops(case(settings=tray, machine=machine("aarch64"), gpus=gpus("gb200"))) == set()


def test_b200_is_a_word_and_not_a_part_of_gb200() -> None:
    assert "GPU model" in stops(case(gpus=gpus("b200", product_name="NVIDIA GB200")))


@pytest.mark.parametrize(
    ("tags", "row", "words"),
    [
        ({"mig_mode__current_mig": "Enabled"}, "MIG", "-i 0 -mig 0"),
        ({"ecc_errors__volatile__dram_uncorrectable": "2"}, "ECC uncorrectable", "--gpu-reset -i 0"),
        ({"remapped_rows__remapped_row_pending": "Yes"}, "row remap", "--gpu-reset -i 0"),
        ({"remapped_rows__remapped_row_failure": "Yes"}, "GPU memory health", "out of service"),
        ({"ecc_errors__aggregate__sram_threshold_exceeded": "Yes"}, "GPU memory health", "out of service"),
        ({"gpu_recovery_action": "Reboot"}, "recovery action", "nvidia-smi"),
        ({"fabric__state": "In Progress", "fabric__status": "N/A"}, "fabric", "nvidia-fabricmanager"),
        ({"fabric__status": "Failure"}, "fabric", "nvidia-fabricmanager"),
        ({"process": "42,C,python,2048 MiB"}, "GPU processes", "ps -fp 42"),
    ],
)
def test_what_stops_on_a_gpu(tags: dict[str, str], row: str, words: str) -> None:
    found = case(gpus=gpus("b200", **tags))
    assert stops(found) == {row}
    assert words in judged(found)[row][0].fix


def test_corrected_errors_warn() -> None:
    found = case(gpus=gpus("b200", ecc_errors__volatile__dram_correctable="17"))
    assert (stops(found), warns(found)) == (set(), {"ECC corrected"})
    assert "GPU 0: 17" in judged(found)["ECC corrected"][0].reading


def test_a_bad_gpu_that_no_endpoint_uses_stops_nothing() -> None:
    bad = gpus("b200", ecc_errors__volatile__dram_uncorrectable="2")
    assert stops(case(gpus=bad, settings=settings(hardware=DGX_B200, gpus=[4, 5]))) == set()


def test_an_endpoint_names_a_gpu_that_is_not_there() -> None:
    found = case(settings=settings(hardware=DGX_B200, gpus=[6, 9]))
    assert "no GPU 9" in judged(found)["GPUs of endpoints"][0].fix


def test_a_stranger_on_a_gpu_is_named() -> None:
    lines = "process 42 eve -"
    reading = parse_gpus(gpu_output("b200", processes=lines, process="42,C,python,2048 MiB"))
    text = judged(case(gpus=reading))["GPU processes"][0].reading
    assert text == "pid 42 python of eve, 2.0 GiB"


def test_our_own_container_and_a_desktop_are_no_strangers() -> None:
    inside = "b" * 64
    lines = f"process 42 root {inside}\ncontainer {inside} rackwright-llm"
    assert stops(case(gpus=parse_gpus(gpu_output("b200", processes=lines, process="42,C,python,9 MiB")))) == set()
    assert stops(case(gpus=gpus("b200", process="42,G,Xorg,9 MiB"))) == set()


def test_while_dockerd_is_down_a_container_is_not_called_a_stranger() -> None:
    reading = parse_gpus(gpu_output("b200", processes=f"process 42 root {'b' * 64}", process="42,C,python,9 MiB"))
    assert "GPU processes" in stops(case(gpus=reading))
    assert stops(case(gpus=reading, docker=docker(daemon="down", info={}))) == set()


@pytest.mark.parametrize(
    ("reading", "row", "fix"),
    [
        (SeenGpus(error="nvidia-smi is not installed"), "driver", "install NVIDIA's driver"),
        (SeenGpus((), "580.159", "575.57", "Driver/library version mismatch"), "driver", "reboot"),
        (replace(gpus(), module="575.57.08"), "driver module", "reboot"),
        (replace(gpus(), driver="570.1", module="570.1"), "driver version", "driver"),
    ],
)
def test_drivers(reading: SeenGpus, row: str, fix: str) -> None:
    found = case(gpus=reading)
    assert row in stops(found)
    assert fix in next(entry for entry in judged(found)[row] if not entry.ok).fix


def test_on_ubuntu_the_drivers_fix_is_the_exact_command() -> None:
    ubuntu = replace(BOOKWORM, id="ubuntu", version="24.04")
    found = case(gpus=SeenGpus(error="nvidia-smi is not installed"), docker=docker(system=ubuntu))
    assert judged(found)["driver"][0].fix == "apt-get install -y nvidia-driver-575-server-open && reboot"


@pytest.mark.parametrize(
    ("version", "good"),
    [("575", True), ("575.57.08", True), ("580.1", True), ("574.99", False), ("1000.1", True), ("99.9", False)],
)
def test_the_minimum_is_compared_number_by_number(version: str, good: bool) -> None:
    found = case(gpus=replace(gpus(), driver=version, module=version), machine=machine(**{"fabric.version": version}))
    assert ("driver version" not in stops(found)) is good


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ({"fabric.ActiveState": "failed"}, "fabric manager"),
        ({"fabric.LoadState": "not-found"}, "fabric manager"),
        ({"fabric.version": "575.57.08"}, "fabric manager"),
        ({"init": "sh"}, "systemd"),
        ({"uid": "1000"}, "root rights"),
    ],
)
def test_what_stops_on_a_machine(values: dict[str, str], row: str) -> None:
    assert stops(case(machine=machine(**values))) == {row}


def test_no_fabric_manager_is_asked_of_other_machines() -> None:
    plain = {**DGX_B200, "fabric_manager": False}
    found = case(settings=settings(hardware=plain), machine=machine(**{"fabric.LoadState": "not-found"}))
    assert stops(found) == set()


@pytest.mark.parametrize(("system", "good"), [("debian", True), ("ubuntu", True), ("fedora", False), ("", False)])
def test_operating_systems(system: str, good: bool) -> None:
    found = case(docker=docker(system=replace(BOOKWORM, id=system)))
    assert ("operating system" not in stops(found)) is good


def test_another_system_than_the_settings_name_stops() -> None:
    noble = docker(system=replace(BOOKWORM, id="ubuntu", version="24.04"))
    for named, good in (("ubuntu-24.04", True), ("ubuntu-22.04", False), ("debian-12", False)):
        found = case(settings=settings(hardware={"system": named}), docker=noble)
        assert ("operating system" not in stops(found)) is good, named


def test_a_descendant_of_ubuntu_is_accepted() -> None:
    assert stops(case(docker=docker(system=replace(BOOKWORM, id="dgxos", like=("ubuntu", "debian"))))) == set()


def test_time_matters_only_while_something_must_be_fetched() -> None:
    late = machine(synchronized="no")
    fetches = (Fetch("pull x", "image", 1, True),)
    assert warns(case(machine=late)) == set()
    assert warns(case(machine=late, fetches=fetches)) == {"time"}


def test_half_configured_dpkg_stops_only_who_must_install() -> None:
    broken = ("less half-configured",)
    assert stops(case(docker=docker(broken=broken))) == set()
    bare = docker(broken=broken, has=frozenset({"apt", "curl", "iptables", "nft"}))
    assert stops(case(docker=bare)) == {"packages"}
    assert judged(case(docker=bare))["packages"][0].fix == "dpkg --configure -a"
    busy = case(docker=bare, machine=machine(locked="77 (apt-get)"))
    assert (stops(busy), warns(busy)) == (set(), {"package lock"}), "another process is at it right now"


def test_a_bare_host_is_able_when_it_has_apt() -> None:
    bare = docker(daemon="absent", has=frozenset({"apt"}), info={}, enabled=False, load_state="not-found", packages={})
    assert stops(case(docker=bare)) == set()
    assert "Docker" in stops(case(docker=replace(bare, has=frozenset())))


def test_toolkit_versions_and_modes() -> None:
    old = case(machine=machine(toolkit="1.17.8"))
    assert (stops(old), warns(old)) == (set(), {"container toolkit"})
    legacy = replace(machine(), toolkit_config='[nvidia-container-runtime]\nmode = "legacy"\n')
    assert stops(case(machine=legacy)) == {"toolkit mode"}
    by_package = docker(packages={"nvidia-container-toolkit": Package(True, True, "1.18.0-1")})
    assert warns(case(machine=machine(toolkit=""), docker=by_package)) == set()


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        ({"memlock": "8388608", "capabilities": "000001fffeffffff"}, {"locked memory"}),
        ({"memlock": "8388608", "capabilities": "000001ffffffffff"}, set()),
        ({"memlock": "8388608", "capabilities": "none"}, {"locked memory"}),
        ({"memlock": "8388608", "capabilities": ""}, {"locked memory"}),
        ({"nofile": "1024"}, {"open files"}),
        ({"nofile": "9" * 5000}, set()),
        ({"MemTotal": "9" * 5000}, set()),
        ({"toolkit": f"{'9' * 5000}.1"}, {"container toolkit"}),
    ],
)
def test_limits_are_those_of_containers(values: dict[str, str], warned: set[str]) -> None:
    assert warns(case(machine=machine(**values))) == warned


OUTAGES = {
    "locked memory": case(machine=machine(memlock="8388608", capabilities="none")),
    "open files": case(machine=machine(nofile="1024")),
    "driver": case(gpus=replace(gpus(), error="Driver/library version mismatch", module="570.1")),
}


@pytest.mark.parametrize("name", OUTAGES)
def test_no_way_out_stops_what_serves(name: str) -> None:
    (row,) = (row for rows in judged(OUTAGES[name]).values() for row in rows if row.fix)
    assert DRAIN not in row.fix
    serving = replace(OUTAGES[name], docker=docker(serving=("llm",)))
    (found,) = (row for rows in judged(serving).values() for row in rows if row.fix)
    assert found.fix.startswith(DRAIN)
    assert row.fix in found.fix
    assert found.fix.endswith(UNDRAIN)


def test_a_port_is_free_or_ours_or_somebodys() -> None:
    ours = replace(machine(), listeners=(Listener(8000, 9, "docker-proxy", "rackwright-llm"),))
    assert judged(case(machine=ours))["port"][0].reading == "8000 is ours"
    taken = replace(machine(), listeners=(Listener(8000, 9, "nginx", ""),))
    row = judged(case(machine=taken))["port"][0]
    assert row.stops
    text = texts.TAKEN.format(port=8000, by="nginx, pid 9, user root").removeprefix("port ")
    assert (row.reading, row.fix.endswith("ps -fp 9")) == (text, True)
    foreign = replace(machine(), listeners=(Listener(8000, 9, "docker-proxy", "web"),))
    row = judged(case(machine=foreign))["port"][0]
    assert row.stops
    assert (row.reading, row.fix.endswith("docker ps --filter name=web")) == (
        texts.TAKEN.format(port=8000, by="container web, pid 9, user root").removeprefix("port "),
        True,
    )


def test_one_beside_our_own_listener_is_seen_with_his_user_and_all_his_addresses_text() -> None:
    """A process of the same user may listen beside the endpoint with SO_REUSEPORT, at the same address too."""
    both = (Listener(8000, 9, "python3", "rackwright-llm"), *_python("127.0.0.1", "::1"))
    row = judged(case(machine=replace(machine(), listeners=both)))["port"][0]
    assert row.stops
    assert row.reading == "8000 is taken by python3, pid 12, user mallory, at 127.0.0.1 and ::1"


def _python(*addresses: str) -> list[Listener]:
    return [Listener(8000, 12, "python3", "", "", "mallory", address) for address in addresses]


def test_a_process_that_calls_itself_docker_proxy_is_a_stranger() -> None:
    for name in ("docker-proxy", "dockerd"):
        fake = replace(machine(), listeners=(Listener(8000, 9, name, "", "", "mallory", "0.0.0.0"),))
        assert judged(case(machine=fake))["port"][0].stops
        held = replace(machine(), listeners=(Listener(8000, 9, name, ""),))
        assert not judged(case(machine=held))["port"][0].stops


def test_a_server_of_the_kernels_own_has_no_process_to_stop() -> None:
    kernel = replace(machine(), listeners=(Listener(8000, 0, "kernel", "", "", "root", "0.0.0.0"),))
    row = judged(case(machine=kernel))["port"][0]
    assert row.stops
    assert row.fix.endswith("ss -ltnp 'sport = :8000'")


def listed(name: str, *at: tuple[str, int]) -> ListedContainer:
    return ListedContainer(
        name * 64, f"rackwright-{name}", "", True, {}, frozenset(port for _, port in at), frozenset(at)
    )


def test_a_published_port_names_its_container_only_where_docker_listens() -> None:
    containers = (listed("a", ("10.0.0.5", 8000)), listed("b", ("127.0.0.1", 8000)))
    lines = (
        "port 8000 17 docker-proxy - - root 127.0.0.1\n"
        "port 8000 18 docker-proxy - - root 10.0.0.5\n"
        "port 8000 19 docker-proxy - - mallory 0.0.0.0\n"
        "port 8000 20 python3 - - root [::]\n"
        f"port 8000 21 python3 {'b' * 64} - root *"
    )
    reading = parse(joined(lines, Answers(containers=containers)))
    assert [one.container for one in reading.listeners] == ["rackwright-b", "rackwright-a", "", "", "rackwright-b"]


def test_a_port_of_docker_is_nobodys_as_long_as_docker_does_not_answer() -> None:
    nameless = replace(machine(), listeners=(Listener(8000, 9, "docker-proxy", ""),))
    row = judged(case(machine=nameless))["port"][0]
    assert not row.stops
    assert "Docker does not name now" in row.reading


def test_two_endpoints_on_one_port() -> None:
    two = settings(hardware=DGX_B200, endpoints={"a": {"gpus": [0]}, "b": {"gpus": [1]}})
    assert stops(case(settings=two)) == {"shared port"}


def test_an_open_port_warns() -> None:
    assert warns(case(settings=settings(hardware=DGX_B200, allow_from="any"))) == {"open port"}
    assert warns(case(settings=settings(hardware=DGX_B200, allow_from=None))) == set()
    assert warns(case(settings=settings(hardware=DGX_B200, allow_from=None, network="host"))) == set()


def test_disk_counts_what_shares_a_file_system_together() -> None:
    fetches = (Fetch("a", "model", 600 * 10**9, True), Fetch("b", "image", 500 * 10**9, True))
    assert stops(case(fetches=fetches)) == {"disk"}
    assert stops(case(fetches=fetches[:1])) == set()
    apart = replace(
        machine(), disks=(*machine().disks[:3], Disk("/var/lib/docker", 10**12, None, "xfs", "/dev/sdb", "/var"))
    )
    assert stops(case(fetches=fetches, machine=apart)) == set()


def test_an_estimate_only_warns() -> None:
    fetches = (Fetch("pull", "image", 2 * 10**12, False),)
    assert (stops(case(fetches=fetches)), warns(case(fetches=fetches))) == (set(), {"disk estimate"})


def test_a_full_disk_stops_even_when_nothing_is_fetched() -> None:
    full = replace(machine(), disks=(Disk("/srv/models", 10**6, 10**6, "ext4", "/dev/sda1", "/"),))
    assert stops(case(machine=full)) == {"disk"}


@pytest.mark.parametrize(
    ("path", "elsewhere"),
    [
        ("/srv/models", ", or set models.folder to another disk"),
        ("/var/lib/rackwright", ""),
        ("/var/lib/docker", ""),
    ],
)
def test_a_full_disk_offers_the_setting_of_what_is_on_it_alone(path: str, elsewhere: str) -> None:
    disks = tuple(disk for disk in machine().disks if disk.path != path)
    full = Disk(path, 10**6, 10**6, "ext4", "/dev/sdf", "/mnt")
    [row] = [row for row in judged(case(machine=replace(machine(), disks=(*disks, full))))["disk"] if row.stops]
    assert row.code == "RW3143"
    assert row.fix.startswith(f"make room{elsewhere}; ")
    assert "du -xh -d2 /mnt " in row.fix


def test_a_store_that_cannot_be_written_to_may_be_full() -> None:
    share = Disk("/srv/models", 0, 0, "nfs4", "nas:/models", "/srv/models")
    full = replace(machine(), disks=(*(disk for disk in machine().disks if disk.path != "/srv/models"), share))
    fetches = (Fetch("a", "model", 600 * 10**9, True),)
    assert stops(case(machine=full, fetches=fetches)) == {"disk"}
    assert stops(case(machine=full, fetches=fetches, read_only_models=True)) == set()


def test_images_lie_in_containerds_store_when_docker_says_so() -> None:
    status = [["driver-type", "io.containerd.snapshotter.v1"]]
    small = Disk("/var/lib/containerd", 2 * 2**30, 10**6, "ext4", "/dev/sdc", "/c")
    apart = replace(machine(), disks=(*machine().disks[:4], small))
    fetches = (Fetch("pull", "image", 5 * 2**30, True),)
    assert stops(case(machine=apart, fetches=fetches)) == set()
    store = docker(info={**docker().info, "DriverStatus": status})
    assert stops(case(machine=apart, fetches=fetches, docker=store)) == {"disk"}


def test_reachability_is_judged_only_for_what_is_needed() -> None:
    away = replace(
        machine(), reached=(Reach("hub", 28, 0, "https://huggingface.co"), Reach("registry", 60, 0, "https://r/v2/"))
    )
    assert warns(case(machine=away)) == set()
    assert len(judged(case(machine=away, fetches=(Fetch("m", "model", 1, True),)))["reachable"]) == 1
    row = judged(case(machine=away, fetches=(Fetch("i", "image", 1, True),)))["reachable"][0]
    assert row.warns
    assert "private_ca" in row.fix


def test_a_401_means_that_the_registry_is_there() -> None:
    reachable = replace(machine(), reached=(Reach("registry", 0, 401, "https://nvcr.io/v2/"),))
    assert warns(case(machine=reachable, fetches=(Fetch("i", "image", 1, True),))) == set()


def test_a_stopping_row_is_one_refusal_with_its_fix() -> None:
    found = WantedHost(case(gpus=gpus("b200", mig_mode__current_mig="Enabled")))
    (change,) = changes(found, machine())
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert step.final
    assert "MIG: GPU 0: on\n  fix: nvidia-smi -i 0 -mig 0" in step.text
    assert "architecture" not in step.text, "rows that are ok are not in the refusal"


def test_rows_that_pass_fold_into_one_line_also_for_a_new_host() -> None:
    new = machine(synchronized="no")
    wanted = WantedHost(case(machine=new, fetches=(Fetch("pull x", "image", 1, True),)))
    first, *remaining = report(wanted, new).splitlines()
    assert first.startswith("preflight: ")
    assert remaining
    assert all(row.startswith(("warn RW", "  fix: ")) for row in remaining), remaining
    whole = details(wanted, new)
    assert "architecture" in whole
    assert "GPU model" in whole
    assert PREFLIGHT.details is details


@pytest.mark.parametrize("width", [80, 118, None])
def test_no_word_of_a_table_is_broken(width: int | None) -> None:
    digest, command = f"sha256:{'0123456789abcdef' * 4}", "docker.io/a-registry/with/a/long/path/of/an/image:1.2.3"
    row = CheckRow("image", "warn", False, f"{digest} is not what {command} names now", f"docker pull {command} again")
    text = render([row], width)
    assert text.count(digest) == 1
    assert text.count(command) == 2


def test_the_table_keeps_its_width_and_takes_no_control_characters() -> None:
    wild = CheckRow("GPU processes", "stop", False, "pid 1 \x1b[31m" + "x " * 300, "ps " + "y " * 300)
    *table, fix = render([wild], 118).splitlines()
    text = "\n".join([*table, fix])
    assert max(map(len, table)) <= 118
    assert fix.strip() == f"fix: {wild.fix}".strip()
    assert "\x1b" not in text
    assert summary([wild]).startswith("preflight: 1 check, 1 stops")


def test_the_reading_is_parsed() -> None:
    output = (
        "architecture=x86_64\ninit=systemd\nlocked=12 (apt-get)\ntoolkit=1.18.1\n"
        "disk /srv/models  80081576 16314612 overlay overlay /\n"
        "disk /var/lib/docker 100 - btrfs /dev/sdb1 /var/lib/docker\n"
        "port 8000 4242 docker-proxy rackwright-llm - root *\nport 8001 17 nginx - - www ::1\n"
        "reach registry 0 401 https://nvcr.io/v2/\nreach hub 28 000 https://huggingface.co\n"
        "none /etc/nvidia-container-runtime/config.toml\n"
    )
    reading = parse(output)
    assert reading.values["locked"] == "12 (apt-get)"
    assert reading.disks[0] == Disk("/srv/models", 80081576 * 1024, 16314612, "overlay", "overlay", "/")
    assert reading.disks[1].inodes is None
    assert reading.listeners == (
        Listener(8000, 4242, "docker-proxy", "rackwright-llm", "", "root", "*"),
        Listener(8001, 17, "nginx", "", "", "www", "::1"),
    )
    assert reading.reached == (
        Reach("registry", 0, 401, "https://nvcr.io/v2/"),
        Reach("hub", 28, 0, "https://huggingface.co"),
    )
    assert reading.toolkit_config is None


def test_our_own_cut_installation_is_finished_and_not_refused() -> None:
    bare = docker(broken=("docker.io half-configured",), daemon="down", info={})
    owned = frozenset({Owned("package", "docker.io")})
    assert stops(case(docker=bare)) == {"packages"}
    assert stops(case(docker=bare, owned=owned)) == set()


def test_weights_that_cannot_fit_warn() -> None:
    one = settings(hardware={**DGX_B200, "gpu_count": 1}, gpus=[0])
    small = case(settings=one, gpus=gpus("b200", fb_memory_usage__total="40000 MiB"))
    assert (stops(small), warns(small)) == (set(), {"memory for weights"})
    assert warns(case(settings=one)) == set()
    assert warns(replace(small, docker=docker(serving=("llm",)))) == set()


def test_unified_memory_is_the_hosts() -> None:
    spark = settings(hardware={"gpu_models": ["GB10"], "unified_memory": True})
    full = machine("aarch64", MemAvailable=str(30 * 2**20))
    assert warns(case(settings=spark, gpus=gpus("gb10"), machine=full)) == {"memory for weights"}


def test_without_ss_the_port_is_not_judged() -> None:
    assert "not checked" in judged(case(machine=machine(ss="missing")))["port"][0].reading


FOREIGN = {"rackwright-llm.service": ["/etc/systemd/system/rackwright-llm.service was not written by Rackwright"]}


def test_a_unit_made_by_hand_stops_the_host_unless_it_is_to_be_kept_aside() -> None:
    listening = replace(machine(), listeners=(Listener(8000, 9, "python3", "", "rackwright-llm.service"),))
    found = replace(case(machine=listening), foreign=FOREIGN)
    assert judged(found)["foreign units"][0].stops
    assert "releases: {foreign_units: aside}" in judged(found)["foreign units"][0].fix
    assert judged(found)["port"][0].stops
    moved = replace(found, settings=found.settings.model_copy(update={"releases": Releases(foreign_units="aside")}))
    assert not any(judged(moved)[row][0].stops for row in ("foreign units", "port"))


def test_the_unit_of_a_listener_is_read() -> None:
    reading = parse(
        "port 8000 17 python3 - rackwright-llm.service root 0.0.0.0\nport 8001 18 nginx - - www [fe80::1]%lo\n"
    )
    assert reading.listeners == (
        Listener(8000, 17, "python3", "", "rackwright-llm.service", "root", "0.0.0.0"),
        Listener(8001, 18, "nginx", "", "", "www", "fe80::1"),
    )


def chains_gone(
    serving: tuple[str, ...] = ("llm",), others: int = 0, live_restore: bool = False, **values: Any
) -> Case:
    info = {**docker().info, "LiveRestoreEnabled": live_restore}
    return case(docker=docker(lacks=("nat DOCKER",), serving=serving, info=info, foreign_running=others), **values)


def test_chains_that_are_gone_stop_a_host_where_the_run_may_not_restart_dockerd() -> None:
    assert stops(chains_gone()) == set(), "the run restarts dockerd in the host's turn"
    for found in (chains_gone(others=2), chains_gone(restarts_dockerd=False)):
        (row,) = judged(found)["Docker's chains"]
        assert (row.stops, row.code) == (True, "RW3182")
        assert texts.CHAINS_GONE.format(chains="nat DOCKER") in row.reading
        assert row.fix.startswith("rackwright drain "), "a bare restart of dockerd would be the outage itself"
        assert row.fix.index("systemctl restart docker") < row.fix.index("rackwright undrain ")
    assert "2 other containers run" in judged(chains_gone(others=2))["Docker's chains"][0].reading
    (row,) = judged(chains_gone(serving=(), restarts_dockerd=False))["Docker's chains"]
    assert row.fix == "systemctl restart docker"


def test_no_chain_is_missed_where_none_is_needed() -> None:
    host = settings(hardware=DGX_B200, network="host")
    assert stops(chains_gone(restarts_dockerd=False, settings=host)) == set()
    assert stops(chains_gone(others=2, live_restore=True)) == set()
    assert "Docker's chains" not in judged(case())


@pytest.mark.parametrize(("commit", "stopped"), [({"ID": "N/A"}, True), ({"ID": "1.7.2"}, False), (None, False)])
def test_without_containerd_nothing_is_begun(commit: object, stopped: bool) -> None:
    rows = judged(case(docker=docker(info={**docker().info, "ContainerdCommit": commit}))).get("containerd", [])
    assert [(row.stops, row.code) for row in rows] == [(True, "RW3192")] * stopped


def test_a_firewalld_that_does_not_answer_stops_a_host_before_anything_is_stopped() -> None:
    fix = "on it: systemctl restart firewalld"
    waits = (f"firewalld does not answer; next, {fix}",)
    (row,) = judged(case(docker=docker(waits=waits)))["Docker's next start"]
    assert (row.stops, row.code, row.reading) == (True, "RW3102", "firewalld does not answer")
    assert row.fix == fix
    way = f"on it, drained ({DRAIN} --reason firewalld): systemctl restart docker"
    serving = docker(waits=(f"firewalld does not answer; next, {way}",), serving=("llm",))
    assert judged(case(docker=serving))["Docker's next start"][0].fix == way, "it names the drain already"
    alone = settings(hardware=DGX_B200, network="host")
    assert "Docker's next start" not in judged(case(docker=docker(waits=waits), settings=alone))
