"""A driver switch: asked before anything stops, installed at rest, judged after the restart, taken back on failure."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.cli import drivers
from rackwright.cli.drivers import due_hosts, headline, mixed_racks, refuse_cut_off, table, with_drivers
from rackwright.cli.gateway_hosts import Gateways
from rackwright.concerns.deploy_steps import Declared
from rackwright.concerns.diagnosis.seen import SeenDiagnosis
from rackwright.concerns.docker import DOCKER
from rackwright.concerns.drained import DRAINED, SeenDrained
from rackwright.concerns.driver import DRIVER, SeenDriver, follow
from rackwright.concerns.driver.seen import Staged
from rackwright.concerns.driver.step import DriverReturn
from rackwright.concerns.driver.switch import CHOICE, driver_changes, gpu_checks
from rackwright.concerns.endpoint.group.members import Stage, stage_of
from rackwright.concerns.endpoint.switch.follow import NothingServesError, RolledBackError
from rackwright.concerns.endpoint.switch.restart_and_wait import NotBackError
from rackwright.concerns.endpoint.switch.steps import HostRestart
from rackwright.concerns.gpus import GPUS
from rackwright.concerns.lease.take_lease import LeaseHeldError
from rackwright.exit_codes import ExitCode
from rackwright.inspect.read_hosts import Surveyed
from rackwright.loading.host import InventoryHost
from rackwright.plan.change import Job, Owned, Refuse, Shell
from rackwright.plan.concern import HostReading
from rackwright.record.ending import Result, end_of_drivers
from rackwright.record.states import RunState
from rackwright.remote.errors import ConnectionLostError, LeaseLostError, StepFailedError
from rackwright.rollout.maintenance.cut_off import refuse_jump_hosts, refuse_this_machine
from rackwright.rollout.resumable_runs import candidates
from rackwright.rollout.resuming import rest_of
from rackwright.settings.host_settings import HostSettings
from tests import texts
from tests.refused import refusal, refused
from tests.unit.machines import docker, gpus, settings
from tests.unit.test_candidates import run
from tests.unit.test_driver import NEW, NOW, STAGED, driver_now
from tests.unit.test_maintenance import together
from tests.unit.test_plan import recorded


def wanting(version: str = NEW, **more: Any) -> HostSettings:
    return settings(driver={"version": version}, **more)


def host(driver: SeenDriver | None = None, boot: str = "one") -> HostReading:
    """Return a host that serves, with a driver of packages."""
    reading = recorded("converged")
    more: dict[str, Any] = {DRIVER.name: driver or driver_now(staged=STAGED), DRAINED.name: SeenDrained(None, boot)}
    more |= {GPUS.name: gpus(), DOCKER.name: docker()}
    return replace(reading, by_concern={**reading.by_concern, **more})


def test_apt_is_asked_first_and_the_packages_come_while_the_endpoints_rest() -> None:
    [change] = driver_changes(wanting(), host(), 600, None)
    restart, back = change.steps
    assert isinstance(restart, HostRestart)
    assert restart.serving
    script = restart.job.script
    question, stopped = (
        script.index("apt would not install the staged packages"),
        script.index('systemctl stop "$unit"'),
    )
    installed, restarted = script.index("installing NVIDIA's driver $version"), script.index("systemctl reboot")
    assert question < stopped < installed < restarted
    assert isinstance(back, DriverReturn)
    assert (back.version, back.old, back.gpus, back.boot) == (NEW, NOW, 8, "one")
    assert [proof.endpoint for proof in back.proofs] == ["llm"]


def test_the_way_back_stops_the_endpoints_and_restarts_once_more() -> None:
    [change] = driver_changes(wanting(), host(), 600, None)
    undo = change.steps[1].undo  # type: ignore[attr-defined]
    assert isinstance(undo, Job)
    stopped, put_back = undo.script.index('systemctl stop "$unit"'), undo.script.index("there was no driver before")
    assert stopped < put_back < undo.script.index("systemctl reboot")


def test_a_switch_records_the_holds_that_it_adds() -> None:
    staged = replace(STAGED, holds=("libcuda1", "nvidia-driver-cuda"))
    now = driver_now(staged=staged)
    held = replace(now, packages=tuple(replace(one, held=one.name == "libcuda1") for one in now.packages))
    [change] = driver_changes(wanting(), host(held), 600, None)
    assert change.owns == (Owned("hold", "nvidia-driver-cuda"),), "the operator's hold stays at a teardown"
    first, *_ = driver_changes(together(0).model_copy(update={"driver": wanting().driver}), host(held), 600, None)
    assert first.owns == change.owns


@pytest.mark.parametrize("version", [NOW, None])
def test_a_host_that_has_its_driver_is_left_alone(version: str | None) -> None:
    assert driver_changes(settings(driver={"version": version} if version else {}), host(), 600, None) == []


def test_one_that_has_its_driver_restarts_with_those_that_serve_with_it() -> None:
    pair = together(0).model_copy(update={"driver": wanting(NOW).driver})
    restart, back, *_ = [step for change in driver_changes(pair, host(), 600, None) for step in change.steps]
    assert isinstance(restart, HostRestart)
    assert "apt" not in restart.job.script
    assert isinstance(back, DriverReturn)
    found = [Surveyed(name, wanting(NOW), Declared((DRIVER.name,)), host()) for name in ("h1", "h2", "h3")]
    assert [one.name for one in drivers.with_peers(found[1:2], found, {"h1": ("h1", "h2"), "h2": ("h1", "h2")})] == [
        "h1",
        "h2",
    ]
    assert f"h1: {NOW}, {texts.RESTARTS_WITH}" in headline(found[:1])


def test_one_that_is_installed_and_not_loaded_is_only_restarted() -> None:
    [change] = driver_changes(wanting(), host(driver_now(NEW)), 600, None)
    restart, back = change.steps
    assert isinstance(restart, HostRestart)
    assert "apt" not in restart.job.script
    assert back.undo is None  # type: ignore[attr-defined]


def test_one_that_was_restarted_is_proven_and_not_restarted_again() -> None:
    [change] = driver_changes(wanting(), host(driver_now(NEW, STAGED), boot="two"), 600, "one")
    [back] = change.steps
    assert isinstance(back, DriverReturn)
    assert (back.boot, back.undo is not None) == ("one", True)
    assert isinstance(driver_changes(wanting(), host(), 600, "one")[0].steps[0], HostRestart), "it was not restarted"


@pytest.mark.parametrize(
    ("driver", "code"),
    [(driver_now(), "RW4116"), (driver_now(staged=STAGED, nouveau="yes"), "RW4036"), (SeenDriver(), "RW4026")],
)
def test_what_is_not_staged_or_refused_is_not_switched(driver: SeenDriver, code: str) -> None:
    [change] = driver_changes(wanting(), host(driver), 600, None)
    [step] = change.steps
    assert isinstance(step, Refuse)
    assert step.code == code


def test_hosts_that_serve_together_restart_beside_each_other() -> None:
    member = together(1).model_copy(update={"driver": wanting().driver})
    found = driver_changes(member, host(), 600, None)
    assert [stage_of(change) for change in found] == [Stage.BEFORE, Stage.BACK, Stage.AFTER]


def test_a_seam_for_what_looks_at_the_gpus_before_the_endpoints_are_asked() -> None:
    diagnosis = Job("diagnose", "diagnose the GPUs", "true")
    [change] = driver_changes(wanting(), host(), 600, None, lambda *_: (diagnosis,))
    assert change.steps[1].checks == (diagnosis,)  # type: ignore[attr-defined]


def test_gpus_are_diagnosed_where_dcgm_is() -> None:
    plain = host()
    with_dcgm = replace(gpus(), diagnosis=SeenDiagnosis(installed=True))
    reading = replace(plain, by_concern={**plain.by_concern, GPUS.name: with_dcgm})
    [job] = gpu_checks(wanting(), reading)
    assert job.script.index('systemctl stop "$unit"') < job.script.index("dcgmi diag")
    assert gpu_checks(wanting(), plain) == ()


def test_a_member_that_was_diagnosed_waits_for_its_head_again_whatever_was_found() -> None:
    plain = host()
    with_dcgm = replace(gpus(), diagnosis=SeenDiagnosis(installed=True))
    reading = replace(plain, by_concern={**plain.by_concern, GPUS.name: with_dcgm})
    [head], [member] = (gpu_checks(together(rank), reading) for rank in (0, 1))
    assert "--no-block" not in head.script, "its proof starts it"
    tested, waits = member.script.index("dcgmi diag"), member.script.index("systemctl start --no-block rackwright-llm")
    assert tested < member.script.index("ended=$?") < waits < member.script.index("exit $ended")


@pytest.mark.parametrize(("verdict", "fails"), [("pass", False), ("fail", True)])
def test_a_broken_gpu_is_found_before_the_endpoints_are_asked(
    monkeypatch: pytest.MonkeyPatch, verdict: str, fails: bool
) -> None:
    last = SimpleNamespace(verdict=verdict, reason="dcgmi diag -r 1: GPU 3 memory", report=SimpleNamespace(error=""))
    monkeypatch.setattr(follow, "remote", lambda *_, **__: (True, SimpleNamespace(stdout_lines=[])))
    monkeypatch.setattr(follow, "parse_kept", lambda _: last)
    expected: AbstractContextManager[object] = refused("RW2657", "GPU 3") if fails else nullcontext()
    with expected:
        follow._refuse_broken_gpus(SimpleNamespace(name="h1"))  # type: ignore[arg-type]


UNDO = Job("restart-host", f"go back to NVIDIA's driver {NOW}", "true")
BACK = DriverReturn((), "one", 600, NEW, NOW, 8, UNDO)
Ended = Callable[[], None]


def followed(monkeypatch: pytest.MonkeyPatch, *ends: StepFailedError | None, step: DriverReturn = BACK) -> list[str]:
    """Follow a host whose returns end so, one after the other; returns what was done and said."""
    done, remaining = list[str](), list(ends)

    def returns(_: object, back: DriverReturn, __: Ended) -> None:
        done.append(f"wait for the end of boot {back.boot}")
        if error := remaining.pop(0):
            raise error

    monkeypatch.setattr(follow, "return_and_prove", returns)
    monkeypatch.setattr(follow, "order_restart", lambda _, job: done.append(job.title))
    monkeypatch.setattr(follow, "boot_of", lambda _: "two")
    monkeypatch.setattr(follow, "forget", lambda _: None)
    monkeypatch.setattr(follow, "say", lambda _, text, *__: done.append(text.strip()))
    follow.return_with_driver(SimpleNamespace(name="h1"), step)  # type: ignore[arg-type]
    return done


FAILED = StepFailedError(f"NVIDIA's driver {NEW} does not run: the loaded module is absent", code="RW4136")


def test_a_driver_that_runs_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert followed(monkeypatch, None) == ["wait for the end of boot one", f"NVIDIA's driver is {NEW}"]


def test_one_that_does_not_run_is_taken_back_by_another_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RolledBackError, match="module is absent"):
        followed(monkeypatch, FAILED, None)


@pytest.mark.parametrize(
    ("ends", "step"),
    [((FAILED, StepFailedError("it does not answer", code="RW0701")), BACK), ((FAILED,), replace(BACK, undo=None))],
)
def test_where_there_is_no_way_back_hands_are_needed(
    monkeypatch: pytest.MonkeyPatch, ends: tuple[StepFailedError, ...], step: DriverReturn
) -> None:
    with pytest.raises(NothingServesError) as error:
        followed(monkeypatch, *ends, step=step)
    assert error.value.code == "RW4146"


@pytest.mark.parametrize(
    "error", [NotBackError("away"), ConnectionLostError("cut"), LeaseLostError("lost"), LeaseHeldError("held")]
)
def test_a_host_that_is_away_is_not_taken_back(monkeypatch: pytest.MonkeyPatch, error: StepFailedError) -> None:
    with pytest.raises(type(error)):
        followed(monkeypatch, error)


@pytest.mark.parametrize(
    ("states", "status", "code"),
    [
        ({"h1": RunState.SWITCHED, "h2": RunState.UNCHANGED}, 0, ExitCode.DONE),
        ({"h1": RunState.ROLLED_BACK, "h2": RunState.NOT_SWITCHED}, 1, ExitCode.ROLLED_BACK),
        ({"h1": RunState.SWITCHED, "h2": RunState.ROLLED_BACK}, 1, ExitCode.MIXED),
        ({"h1": RunState.NOTHING_SERVES, "h2": RunState.NOT_SWITCHED}, 1, ExitCode.MANUAL_ACTION),
        ({"h1": RunState.REFUSED}, 1, ExitCode.ERROR),
        ({}, 1, ExitCode.ERROR),
    ],
)
def test_the_end_of_a_switch(states: dict[str, RunState], status: int, code: ExitCode) -> None:
    found, text = end_of_drivers(["h1", "h2"], status, Result(states))
    assert found == code, text
    assert ("next: " in text) == (code != ExitCode.DONE)


def test_a_cut_switch_is_resumed_as_one_and_takes_over_a_reboot() -> None:
    event = {"kind": "host", "host": "h1", "state": "switching", "boot": "a"}
    cut = run("cut", "drivers", event)
    assert (rest_of(cut).kind, rest_of(cut).first) == ("drivers", ("h1",))
    reboot = run("reboot", "reboot", event)
    later = run(
        "later", "drivers", *({"kind": "host", "host": name, "state": "switched"} for name in ("h1", "h2", "h3"))
    )
    assert candidates([reboot, later]) == []


def surveyed(name: str, driver: SeenDriver, declared: tuple[str, ...] = ("driver",), version: str = NEW) -> Surveyed:
    return Surveyed(name, wanting(version), Declared(declared), host(driver))


def test_the_table_has_each_host_and_its_next_step() -> None:
    text = table([surveyed("a", driver_now(staged=STAGED)), surveyed("b", driver_now(nouveau="yes"))])
    assert "staged: pending" in text
    refusal(text, "RW4036")
    assert f"a: {NOW} -> {NEW}" in headline([surveyed("a", driver_now(staged=STAGED))])


@pytest.mark.parametrize(
    ("hosts", "code"),
    [
        ([surveyed("a", driver_now(staged=STAGED), ("docker",))], "RW4176"),
        ([surveyed("a", driver_now(staged=STAGED)), surveyed("b", driver_now(dgx="yes"))], "RW4006"),
        ([surveyed("a", driver_now(), version=NOW)], "RW4196"),
    ],
)
def test_nothing_is_begun_where_a_host_is_refused(hosts: list[Surveyed], code: str) -> None:
    with refused(code):
        due_hosts("i.py", hosts)


def test_hosts_without_the_step_are_said_and_mere_gateways_are_left_out() -> None:
    without = replace(surveyed("a", driver_now(), ("docker",)), reading=replace(host(driver_now()), by_concern={}))
    assert texts.NO_DRIVER_STEP in table([without])
    assert mixed_racks([replace(without, settings=wanting(hardware={"rack": "r1"}))]) == []
    mere = replace(without, name="g", declared=Declared(("gateway",), silent=frozenset({"driver"})))
    assert [one.name for one in with_drivers([without, mere])] == ["a"]


def test_hosts_that_are_as_wanted_do_not_take_part() -> None:
    found = due_hosts(
        "i.py", [surveyed("a", driver_now(), version=NOW), surveyed("b", driver_now(staged=Staged(NEW, NOW)))]
    )
    assert [one.name for one in found] == ["b"]


def test_a_rack_with_several_drivers_is_named() -> None:
    one, two = surveyed("a", driver_now()), surveyed("b", driver_now())
    racked = [replace(each, settings=wanting(hardware={"rack": "r1"})) for each in (one, two)]
    assert mixed_racks(racked) == mixed_racks([one, two]) == []
    other = host(driver_now(NEW))
    newer = replace(other, by_concern={**other.by_concern, GPUS.name: replace(gpus(), module=NEW)})
    [text] = mixed_racks([racked[0], replace(racked[1], reading=newer)])
    assert text.endswith(f": {NOW} on a; {NEW} on b")
    assert "rack r1" in text


def inventory_host(name: str, **data: str) -> InventoryHost:
    return InventoryHost(name, ("all",), data, settings(), {})


def test_the_machine_of_the_command_is_refused() -> None:
    refuse_this_machine({"a": "one", "b": "two"}, "three")
    with refused("RW4156", "b is this machine itself"):
        refuse_this_machine({"a": "one", "b": "two"}, "two")


def test_the_jump_host_to_others_is_refused(tmp_path: Any) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host gpu02\n  ProxyJump ops@10.0.0.1\n")
    jump = inventory_host("gpu01", ssh_hostname="10.0.0.1", ssh_config_file=str(config))
    behind = inventory_host("gpu02", ssh_config_file=str(config))
    refuse_jump_hosts([jump, behind], [behind])
    with refused("RW4166", "gpu01", "gpu02"):
        refuse_jump_hosts([jump, behind], [jump])


def gateway(name: str) -> InventoryHost:
    return InventoryHost(name, ("gateway",), {}, settings().with_gateways((), ()), {})


@pytest.mark.parametrize(
    ("names", "answer", "code"),
    [(["g1"], {"g1"}, "RW3606"), (["g1", "g2"], {"g1"}, "RW3664"), (["g1", "g2"], {"g1", "g2"}, "")],
)
def test_the_gateway_that_clients_need_is_refused(
    monkeypatch: pytest.MonkeyPatch, names: list[str], answer: set[str], code: str
) -> None:
    found = [gateway(name) for name in names]
    monkeypatch.setattr(drivers, "gateways_of", lambda _: Gateways("i.py", tuple(found)))
    monkeypatch.setattr(drivers, "answering", lambda _: answer)
    expected: AbstractContextManager[object] = refused(code, "g1") if code else nullcontext()
    with expected:
        refuse_cut_off("i.py", found, found[:1], [])


def test_a_fabric_manager_that_comes_with_a_driver_starts_with_the_host() -> None:
    for hardware, fabric in (({"fabric_manager": True}, "yes"), ({}, "''")):
        [change] = driver_changes(wanting(hardware=hardware), host(), 600, None)
        restart = change.steps[0]
        assert isinstance(restart, HostRestart)
        assert f"\nfabric={fabric}\n" in restart.job.script
        assert restart.job.script.index("  start_at_boot\n") < restart.job.script.index("systemctl reboot")


def test_a_kernel_that_comes_with_the_driver_is_booted_once_and_is_the_default_when_it_is_proven() -> None:
    staged = replace(STAGED, kernel="6.8.0-87-generic")
    [change] = driver_changes(wanting(), host(driver_now(staged=staged)), 600, None)
    restart, back, default = change.steps
    assert isinstance(restart, HostRestart)
    script = restart.job.script
    assert script.index('keep_kernel "$kernel" &&') < script.index('boot_once "$kernel"; then')
    assert isinstance(back, DriverReturn)
    assert isinstance(default, Shell)
    assert "kernel=6.8.0-87-generic\n" in default.script
    assert CHOICE in change.owns
    assert change.disowns == (CHOICE,)
    again = driver_changes(wanting(), host(driver_now(NEW, staged), boot="two"), 600, "one")
    assert [type(step) for step in again[-1].steps] == [DriverReturn, Shell]
    assert len(driver_changes(wanting(), host(), 600, None)[0].steps) == 2
