"""Which hosts' ports a teardown of gateways opens first, and that no gateway goes while one of them stays closed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli import direct_ports
from rackwright.cli.direct_ports import closed_behind
from rackwright.cli.teardown import tear_down
from rackwright.exit_codes import ExitCode
from rackwright.inspect.run_script import HostOutput
from rackwright.loading.gateways import with_gateways
from rackwright.loading.host import InventoryHost
from rackwright.rollout.launch import Run
from tests.unit.test_gateways import gateway, host, settings

CLOSES: dict[str, Any] = {"gateway": {"tls": False, "port": 80, "close_direct": True}}
Answers = dict[str, str]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """By host, what it prints on its ports; the others cannot be asked."""
    found: Answers = {}

    def spread(_: str, hosts: Sequence[str], __: object) -> dict[str, HostOutput]:
        return {name: HostOutput(name in found, (found.get(name, ""),)) for name in hosts}

    monkeypatch.setattr(direct_ports, "spread", spread)
    return found


def inventory() -> dict[str, InventoryHost]:
    hosts = [host("a", "192.0.2.1", settings(**CLOSES)), host("b", "192.0.2.2", settings(**CLOSES))]
    hosts += [gateway("g1", "192.0.2.8", **CLOSES), gateway("g2", "192.0.2.9", **CLOSES)]
    return {one.name: one for one in with_gateways(hosts)}


@pytest.mark.parametrize(
    ("torn", "steps", "wanted"),
    [
        (("g1", "g2"), None, ["a"]),
        (("g1",), None, []),
        (("a", "g1", "g2"), None, []),
        (("a", "b"), None, []),
        (("a", "g1", "g2"), {"g1": ("docker",), "g2": ("docker",)}, ["a"]),
        (("g1", "g2"), {"g1": ("gateway",), "g2": ("gateway",)}, []),
    ],
)
def test_ports_that_no_gateway_would_reach_are_found(
    answers: Answers, torn: tuple[str, ...], steps: dict[str, tuple[str, ...]] | None, wanted: list[str]
) -> None:
    answers |= {"a": "closed", "b": ""}
    hosts = inventory()
    assert closed_behind("i.py", [hosts[name] for name in torn], steps) == wanted


def test_a_host_that_cannot_be_asked_is_as_the_settings_say(answers: Answers) -> None:
    hosts = inventory()
    answers["a"] = ""
    assert closed_behind("i.py", [hosts["g1"], hosts["g2"]], None) == ["b"]


class StandinRun:
    """A run that notes each deploy, with its hosts."""

    inventory = Path("i.py")
    hosts = ("g1", "g2")

    def __init__(self, answers: Answers, opens: bool) -> None:
        self.answers, self.opens = answers, opens
        self.deploys: list[tuple[str, list[str]]] = []

    def as_plain(self) -> StandinRun:
        return self

    def note(self, *_: object, **__: object) -> None:
        raise InterruptedError

    def pyinfra(self, deploy: Path, hosts: Sequence[str], _: object, **__: Any) -> int:
        self.deploys.append((deploy.name, list(hosts)))
        if self.opens:
            self.answers.update(dict.fromkeys(hosts, ""))
        return 0


def torn_down(run: Any, opens: Sequence[str]) -> tuple[int, str]:
    one: Run = run
    return tear_down(one, Path("teardown.py"), False, None, opens)


def test_no_gateway_goes_while_a_port_stays_closed(answers: Answers) -> None:
    answers["a"] = "closed"
    run = StandinRun(answers, opens=False)
    status, text = torn_down(run, ["a"])
    assert (status, text.partition(":")[0], run.deploys) == (ExitCode.ERROR, "RW3509", [("open_direct.py", ["a"])])


@pytest.mark.parametrize("opens", [["a"], []])
def test_the_teardown_follows_once_the_ports_are_open(answers: Answers, opens: list[str]) -> None:
    answers["a"] = "closed"
    run = StandinRun(answers, opens=True)
    with pytest.raises(InterruptedError):
        torn_down(run, opens)
    assert run.deploys == ([("open_direct.py", opens)] if opens else [])
