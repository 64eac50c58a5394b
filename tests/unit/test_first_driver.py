"""The first driver of a host: installed by a deploy where the settings let it, and judged by preflight afterwards."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.driver import DRIVER, SeenDriver, WantedDriver, installs_first, notes, refusals, stage_changes
from rackwright.concerns.driver.packages import others
from rackwright.concerns.gpus import GPUS, SeenGpus
from rackwright.concerns.preflight.concern import PREFLIGHT
from rackwright.concerns.preflight.software import fabric_manager
from rackwright.hostside import host_script, job_script
from rackwright.operations import concerns
from rackwright.plan.change import Job, Refuse
from rackwright.plan.concern import HostReading
from tests.unit.machines import BOOKWORM, DGX_B200, case, gpus, machine, settings
from tests.unit.test_driver import NEW, NOW, STAGED, driver_now
from tests.unit.test_plan import recorded
from tests.unit.test_preflight import judged, stops

NONE = SeenGpus(error="nvidia-smi is not installed")
BARE = SeenDriver(values={"headers": "yes"})


def wanting(first: bool = True, found: SeenGpus = NONE, **more: Any) -> WantedDriver:
    return WantedDriver(settings(driver={"version": NEW, "first_by_deploy": first}, **more), BOOKWORM, found)


def test_a_host_without_a_driver_gets_it_by_a_deploy_that_may() -> None:
    stage, install = DRIVER.changes(wanting(hardware={"fabric_manager": True}), BARE)
    assert install.what == f"install NVIDIA's driver {NEW} and load it"
    [job] = install.steps
    assert isinstance(job, Job)
    assert "modprobe nvidia" in job.script
    assert "fabric=yes" in job.script
    assert "systemctl reboot" not in job.script, "a deploy restarts no host"
    assert stage_changes(wanting(), BARE)[0].what == stage.what
    assert notes(wanting(), BARE) == []


@pytest.mark.parametrize(
    ("want", "host"),
    [
        (wanting(first=False), BARE),
        (wanting(), replace(BARE, values={"headers": "yes", "nouveau": "yes"})),
        (wanting(found=gpus()), driver_now()),
        (wanting(found=gpus()), driver_now(staged=STAGED)),
        (wanting(), driver_now(NEW)),
        (wanting(), driver_now(NOW)),
        (wanting(found=replace(NONE, module=NOW)), BARE),
    ],
)
def test_no_other_host_gets_a_driver_by_a_deploy(want: WantedDriver, host: SeenDriver) -> None:
    assert not installs_first(want, host)
    assert not any("install" in change.what for change in DRIVER.changes(want, host))


def test_without_a_driver_the_profile_says_what_the_machine_is() -> None:
    assert others(wanting(hardware={"fabric_manager": True, "compute_capability": ["10.0"]})) == (
        "nvlsm",
        "infiniband-diags",
    )
    assert others(wanting(hardware={"fabric_manager": True, "compute_capability": ["9.0"]})) == ()
    [row] = refusals(wanting(hardware={"gpu_models": ["GB10"]}), BARE)
    assert row.code == "RW4006"


def test_ubuntus_modules_are_signed_and_come_for_the_newest_kernel() -> None:
    values = {"driver": {"version": NEW, "source": "distribution"}}
    ubuntu = replace(BOOKWORM, id="ubuntu", version="24.04")
    first = WantedDriver(settings(**values), ubuntu, NONE)
    assert refusals(first, SeenDriver(values={"secureboot": "1"})) == []
    [row] = refusals(first, SeenDriver(held_kernels=("linux-image-generic",)))
    assert row.code == "RW4066"


def host(driver: SeenDriver, found: SeenGpus, managed: frozenset[str] | None = None) -> HostReading:
    reading = recorded("bare")
    return HostReading({**reading.by_concern, DRIVER.name: driver, GPUS.name: found}, managed)


def wanted_by_preflight(first: bool, driver: SeenDriver, managed: frozenset[str] | None = None) -> Any:
    values = {"driver": {"version": NEW, "first_by_deploy": first}, "hardware": DGX_B200}
    return PREFLIGHT.wanted(settings(**values), host(driver, NONE, managed))


def test_preflight_lets_a_host_pass_whose_driver_comes_in_the_same_deploy() -> None:
    found = wanted_by_preflight(True, BARE).case
    assert "driver" not in stops(found)
    [row] = judged(found)["driver"]
    assert row.reading == f"none yet; driver() installs {NEW}"


def test_no_fabric_manager_of_an_unknown_version_is_advised() -> None:
    gone = machine(**{"fabric.LoadState": "not-found", "fabric.ActiveState": "inactive"})
    for wanted, fix in (({}, "the driver first"), ({"version": NEW}, "comes with the driver")):
        found = case(settings=settings(hardware=DGX_B200, driver=wanted), gpus=NONE, machine=gone)
        [text] = [verdict[2] for verdict in fabric_manager(found) if not verdict[0]]
        assert fix in text
        assert "nvidia-fabricmanager-;" not in text


def test_a_fabric_manager_that_comes_with_the_driver_is_not_missed() -> None:
    bare = case(gpus=NONE, machine=machine(**{"fabric.LoadState": "not-found", "fabric.ActiveState": "inactive"}))
    assert {"driver", "fabric manager"} <= stops(bare)
    assert stops(replace(bare, first_driver=NEW)) == set()


@pytest.mark.parametrize(
    ("first", "driver", "managed", "fix"),
    [
        (False, BARE, None, "rackwright rollout INVENTORY --drivers"),
        (True, BARE, frozenset({"preflight"}), "rackwright rollout INVENTORY --drivers"),
        (True, replace(BARE, values={"headers": "yes", "nouveau": "yes"}), None, "blacklist nouveau"),
        (True, SeenDriver(), None, "apt-get install linux-headers-"),
    ],
)
def test_preflight_names_what_is_in_the_way_of_a_first_driver(
    first: bool, driver: SeenDriver, managed: frozenset[str] | None, fix: str
) -> None:
    found = wanted_by_preflight(first, driver, managed).case
    assert "driver" in stops(found)
    assert fix in judged(found)["driver"][0].fix


def test_what_stops_a_host_after_its_driver_came_does_not_say_that_nothing_was_written() -> None:
    driver = SeenDriver(driver_now(NEW).packages, values={"headers": "yes"})
    found = wanted_by_preflight(True, driver)
    [change] = PREFLIGHT.changes(found, found.case.machine)
    [refusal] = change.steps
    assert isinstance(refusal, Refuse)
    assert "nothing more is written to it" in refusal.text
    assert "nothing was written" in wanted_text(wanted_by_preflight(False, driver))


def wanted_text(found: Any) -> str:
    [change] = PREFLIGHT.changes(found, found.case.machine)
    return str(change.steps[0].text)  # type: ignore[attr-defined]


# -- the job, with stand-ins of apt, dpkg and modprobe

STUBS = {
    "apt-get": 'echo "apt-get $*" >>"$CALLS"; case "$*" in *" install "*) exit "${APT:-0}" ;; esac',
    "apt-mark": 'echo "apt-mark $*" >>"$CALLS"',
    "dpkg": "exit 0",
    "dpkg-deb": "echo nvidia-open",
    "dpkg-query": "echo half-configured",
    "modprobe": 'echo "modprobe $*" >>"$CALLS"; [ "$1" != nvidia ] || { echo "no such module"; exit "${LOAD:-0}"; }',
    "nvidia-smi": "echo GPU 0",
    "systemctl": 'echo "systemctl $*" >>"$CALLS"',
    "cloud-init": "exit 0",
}


ENABLED = "systemctl enable --quiet nvidia-fabricmanager"
STARTED = "systemctl start nvidia-fabricmanager"


def install(tmp_path: Path, **environment: str) -> tuple[int, str, str]:
    """Run the job on a host with these programs; returns its exit status, its output, and what it called."""
    home, programs, job = tmp_path / "driver", tmp_path / "bin", tmp_path / "job"
    for folder in (home / NEW / "new", programs, job):
        folder.mkdir(parents=True)
    (home / "staged").write_text(f"version={NEW}\nold=\nremove=nvidia-open\n")
    (home / NEW / "new" / "nvidia-open_1.deb").write_text("x")
    (home / NEW / "sums").write_text("")
    for name in ("nonce", "log"):
        (job / name).write_text("n\n")
    for name, text in STUBS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    script = host_script("apt") + host_script(
        "driver_packages", home=str(home), bundle="", http_proxy="", https_proxy="", no_proxy=""
    )
    script += job_script("driver_first", version=NEW, fabric="yes")
    script = script.replace("/usr/local/sbin:", f"{programs}:/usr/local/sbin:").replace(
        "/run/rackwright", str(tmp_path / "run")
    )
    script = script.replace("sha256sum --status --check sums", "true")
    calls = tmp_path / "calls"
    calls.write_text("")
    done = subprocess.run(
        ["sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "JOB": str(job), "CALLS": str(calls), **environment},
    )
    return done.returncode, done.stdout + done.stderr, calls.read_text()


def test_the_job_installs_holds_loads_and_starts_the_fabric_manager(tmp_path: Path) -> None:
    status, output, calls = install(tmp_path)
    assert status == 0, output
    steps = (" install ", "apt-mark hold nvidia-open", ENABLED, "modprobe nvidia\n", STARTED)
    order = [calls.index(text) for text in steps]
    assert order == sorted(order)
    assert "purge" not in calls


def test_what_cannot_be_installed_is_taken_away_again(tmp_path: Path) -> None:
    status, output, calls = install(tmp_path, APT="100")
    assert status == 1
    assert "was taken away again" in output
    assert "purge nvidia-open" in calls
    assert "modprobe" not in calls


def test_a_module_that_does_not_load_names_the_restart(tmp_path: Path) -> None:
    status, output, calls = install(tmp_path, LOAD="1")
    assert status == 1
    assert "rackwright rollout INVENTORY --drivers --limit HOST" in output
    assert "no such module" in output
    assert "purge" not in calls
    assert ENABLED in calls, "it starts with that restart"


def test_the_step_stages_first_and_checks_the_host_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    called = list[str]()
    monkeypatch.setattr(concerns, "apply_concern", lambda concern, name: called.append(f"{concern}: {name}"))
    monkeypatch.setattr(concerns, "judge_first_driver", lambda *, name: called.append(name))
    concerns.driver()
    assert [text.partition(":")[0] for text in called] == ["driver", called[1]]
