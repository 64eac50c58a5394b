"""What deploy.py declares: run once a host without a connection, and refused before anything is connected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.adapter.run.declaring import check_steps, declare
from rackwright.cli.rollback import own_operations
from rackwright.concerns.catalog import ALL, managed
from rackwright.concerns.deploy_steps import FOLLOWS, NEEDS, Declared, left_behind, left_of, problems_of
from rackwright.concerns.firewall.changes import OWNS
from rackwright.loading.host import InventoryHost
from rackwright.messages import SettingsError
from rackwright.plan.change import Owned
from tests import texts
from tests.refused import refused
from tests.unit.machines import settings

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "deploy.py"
ALL_STEPS = (
    "preflight", "docker", "driver", "firewall", "registry", "image", "encodings", "models", "release", "options",
    "dockerd", "endpoint", "watch", "gateway", "close_direct", "retention", "converged",
)  # fmt: skip


def host(name: str = "h1", data: dict[str, Any] | None = None, **values: Any) -> InventoryHost:
    return InventoryHost(name, ("all",), data or {}, settings(**values), {})


def pairs(*hosts: InventoryHost) -> list[tuple[str, dict[str, Any]]]:
    """As `declare` takes them."""
    return [(one.name, one.data) for one in hosts]


def deploy(folder: Path, *lines: str) -> Path:
    """Write a deploy file that imports the shipped steps."""
    imports = ["from tasks import *"]
    file = folder / "deploy.py"
    file.write_text("\n".join([*imports, *lines]) + "\n")
    return file


def called(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}()" for name in names)


def test_the_shipped_deploy_declares_every_concern_in_an_order_that_works() -> None:
    found = declare(SHIPPED, pairs(host()))["h1"]
    assert found == Declared(ALL_STEPS)
    assert problems_of(found, settings()) == []
    always = {"lease", "ownership", "drained", "gpus"}
    assert {concern.name for concern in ALL} - always == {*ALL_STEPS} - {"converged", "close_direct"}


def test_what_is_not_called_is_not_managed(tmp_path: Path) -> None:
    steps = [name for name in ALL_STEPS if name != "firewall"]
    found = declare(deploy(tmp_path, *called(*steps)), pairs(host(allow_from=None)))["h1"]
    assert "firewall" not in found
    assert "firewall" not in [concern.name for concern in managed(found.steps)]


def test_each_host_declares_its_own_steps(tmp_path: Path) -> None:
    file = deploy(tmp_path, "from pyinfra import host", "docker()", "if host.data.get('edge'): firewall()")
    found = declare(file, pairs(host("a", {"edge": True}), host("b")))
    assert (found["a"].steps, found["b"].steps) == (("docker", "firewall"), ("docker",))


def test_the_sites_own_operations_are_listed_by_name_and_not_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    file = deploy(
        tmp_path,
        "from pyinfra.operations import python, server",
        "docker()",
        "server.shell(name='Tune the kernel', commands=['false'])",
        f"python.call(name='Note it', function=lambda: open({str(ran)!r}, 'w'))",
        "firewall()",
    )
    assert declare(file, pairs(host()))["h1"] == Declared(("docker", "firewall"), ("Tune the kernel", "Note it"))
    assert not ran.exists()


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (("docker", "docker"), "RW2003: docker() is called twice for one host"),
        (("preflight", "image", "release", "endpoint"), "RW2006: endpoint() needs models(), or model.path"),
        (("docker", "preflight"), "RW2004: docker() stands before preflight(); next: move preflight() above docker()"),
        (("image", "models", "endpoint", "release"), "RW2004: endpoint() stands before release()"),
        (("image", "models", "release", "dockerd"), "RW2005: dockerd() needs docker(), which is not called"),
    ],
)
def test_steps_that_cannot_be_carried_out_are_refused_with_the_next_step(
    tmp_path: Path, steps: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        check_steps(deploy(tmp_path, *called(*steps)), [host("a", allow_from=None), host("b", allow_from=None)])
    assert sentence in str(refused.value)
    assert "(a, b)" in str(refused.value)
    assert "next: " in str(refused.value)


def test_nobody_thinks_that_a_port_is_closed_when_no_step_closes_it(tmp_path: Path) -> None:
    steps = [name for name in ALL_STEPS if name != "firewall"]
    with refused("RW2008", "allow_from ", "firewall()", error=SettingsError):
        check_steps(deploy(tmp_path, *called(*steps)), [host(allow_from=["10.0.0.0/8"])])


def test_a_host_needs_a_model_only_where_endpoint_is_called(tmp_path: Path) -> None:
    bare = host(model=None, allow_from=None)
    assert bare.settings.all_endpoints == {}
    assert check_steps(deploy(tmp_path, *called("preflight", "docker")), [bare])["h1"].steps == ("preflight", "docker")
    with refused("RW2007", "endpoint", "; next: ", "set `model:`", error=SettingsError):
        check_steps(SHIPPED, [bare])


def test_a_fact_asked_while_declaring_is_refused_without_a_connection(tmp_path: Path) -> None:
    file = deploy(
        tmp_path, "from pyinfra import host", "from pyinfra.facts.server import Kernel", "host.get_fact(Kernel)"
    )
    with refused("RW1301", "deploy.py: h1: ", error=SettingsError):
        declare(file, pairs(host()))


def test_a_broken_deploy_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"deploy\.py:2: .*no such thing"):
        declare(deploy(tmp_path, "no such thing"), pairs(host()))
    (tmp_path / "nul.py").write_bytes(b"docker()\0")
    with pytest.raises(SettingsError, match=r"nul\.py"):
        declare(tmp_path / "nul.py", pairs(host()))
    with pytest.raises(SettingsError, match=r"deploy\.py:2: h1: .*'dokcer'"):
        declare(deploy(tmp_path, "dokcer()"), pairs(host()))


@given(st.permutations(ALL_STEPS))
def test_any_order_is_refused_exactly_when_a_step_stands_before_one_that_it_must_follow(steps: list[str]) -> None:
    wrong = any(steps.index(earlier) > steps.index(step) for step, before in FOLLOWS.items() for earlier in before)
    assert bool(problems_of(Declared(tuple(steps)), settings())) == wrong


@given(st.sets(st.sampled_from(ALL_STEPS)))
def test_any_choice_of_steps_is_refused_exactly_when_a_need_is_missing(steps: set[str]) -> None:
    declared = Declared(tuple(step for step in ALL_STEPS if step in steps))
    wrong = any(need not in steps for step in steps for need in NEEDS.get(step, ()))
    wrong |= "models" not in steps and bool(steps & {"release", "endpoint"})
    assert bool(problems_of(declared, settings(allow_from=None))) == wrong


def test_a_rollback_says_which_operations_it_does_not_run(tmp_path: Path) -> None:
    operation = "from pyinfra.operations import server", "server.shell(name='Tune the kernel', commands=['true'])"
    deploy(tmp_path, "docker()", *operation)
    assert own_operations(tmp_path, [host()]) == [f"{texts.OPERATIONS_NOT_RUN}Tune the kernel"]
    deploy(tmp_path, "docker()")
    assert own_operations(tmp_path, [host()]) == []
    deploy(tmp_path, "no such thing")
    assert own_operations(tmp_path, [host()]) == []


def test_what_an_earlier_run_left_is_named_when_its_step_is_gone() -> None:
    declared = Declared(tuple(step for step in ALL_STEPS if step != "firewall"))
    assert left_behind(declared, [Owned("package", "docker.io"), Owned("rule", "rackwright:*")]) == [
        texts.LEFT_BEHIND.format(kinds="rule", step="firewall")
    ]
    everything = [Owned(kind, "x") for kind in ("package", "rule", "model", "file", "unit")]
    assert left_behind(Declared(ALL_STEPS), everything) == []


def test_what_the_firewall_left_is_its_file_and_unit_too() -> None:
    declared = Declared(tuple(step for step in ALL_STEPS if step not in ("firewall", "watch")))
    record = [*OWNS, Owned("unit", "rackwright-llm.service"), Owned("file", "/etc/docker/certs.d/x/ca.crt")]
    assert left_of(declared, record) == {"firewall": sorted(OWNS)}
