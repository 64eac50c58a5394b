"""Operations through the real pyinfra on hosts that answer from recorded readings, one data file a case.

A case says which concern is settled, on which recorded reading (with sections replaced where it matters), and
which commands must reach the host, in order, and what the user must see. Every part of a command named is a
substring, and `first` and `then` come in this order; a case with no commands is a host on which nothing may run.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all, disconnect_all
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.api.state import StateStage
from pyinfra.connectors.fake import FakeConnector
from pyinfra.context import ctx_config, ctx_inventory, ctx_state

from rackwright.adapter.run.declaring import remember
from rackwright.concerns.deploy_steps import Declared
from rackwright.concerns.lease.own_leases import LOST
from rackwright.operations.steps import apply_concern
from rackwright.plan.reading import HEAD
from rackwright.remote.downloads import under_way

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*/*.yaml"))
BASE: dict[str, Any] = yaml.safe_load((HERE / "settings.yaml").read_text())
LEASES = {"unless another one lives": "lease taken 4.3fa9c1d2 fresh", "once none of its commands is running": ""}
ENDED_JOB = ["running=no", "status=0", "log=", "events="]
NONCE = "3f1c0a52-6f6e-4a53-9d5b-0d8a1f5c7b11"
"""Of the recorded readings."""


class Sent(list[str]):
    """Commands that reached the host, as pyinfra masks them."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    commands = Sent()
    answer = FakeConnector.run_shell_command

    def record(self: FakeConnector, command: Any, *args: Any, **kwargs: Any) -> Any:
        # A script that travels by standard input comes first in it.
        script, whole, _ = "".join(kwargs.get("_stdin") or "").partition("\n# whole")
        commands.append(f"{command}\n{script}" if whole else str(command))
        return answer(self, command, *args, **kwargs)

    monkeypatch.setattr(FakeConnector, "run_shell_command", record)
    return commands


def reading_of(case: dict[str, Any]) -> str:
    """Return the recorded reading with the case's own sections in place of the recorded ones."""
    text = (HERE / "readings" / f"{case['reading']}.txt").read_text()
    for name, body in case.get("sections", {}).items():
        head, remaining = text.split(f"{NONCE} begin {name}\n", 1)
        after = remaining.split(f"{NONCE} end ", 1)[1].split("\n", 1)[1]
        text = f"{head}{NONCE} begin {name}\n{body}\n{NONCE} end 0 \n{after}"
    return text


def run_case(case: dict[str, Any], name: str, steps: tuple[str, ...] = (), **arguments: Any) -> State:
    """Settle the case's concern on a host that answers from its reading. steps: those that deploy.py calls."""
    responses = {HEAD.strip(): reading_of(case).splitlines(), **{**LEASES, **case.get("answers", {})}}
    responses |= {"patience=": ENDED_JOB, "Start a job": f"started {NONCE}"}
    data = {"fake_responses": responses, "fake_delay": 0, "fake_delay_jitter": 0}
    inventory = Inventory(([(f"@fake/{name}", data)], {}))
    state = State(inventory, Config())
    with ctx_state.use(state), ctx_inventory.use(inventory), ctx_config.use(state.config):
        remember({f"@fake/{name}": Declared(steps, arguments={**BASE, **case.get("settings", {})})})
        connect_all(state)
        state.set_stage(StateStage.Prepare)
        add_op(state, apply_concern, name="Apply", concern=case["concern"], **arguments)
        state.set_stage(StateStage.Execute)
        run_ops(state)
        # As release() does, before the run ends and its lease with it.
        assert all(download.ended.wait(5) for host in inventory for download in under_way(host))
        state.set_stage(StateStage.Disconnect)
        disconnect_all(state)
    return state


@pytest.mark.parametrize("path", CASES, ids=[f"{path.parent.name}/{path.stem}" for path in CASES])
def test_case(path: Path, sent: Sent, caplog: pytest.LogCaptureFixture) -> None:
    case = yaml.safe_load(path.read_text().replace("{LOST}", LOST))
    with caplog.at_level(logging.INFO, logger="pyinfra"):
        logging.getLogger("pyinfra").propagate = True
        try:
            failed = bool(run_case(case, f"{path.parent.name}-{path.stem}").failed_hosts)
        except PyinfraError:  # "No hosts remaining!": a run of one host that failed ends so
            failed = True
    commands = [command for command in sent if not any(text in command for text in (HEAD.strip(), *LEASES))]
    if "readings" in case:
        assert sum(HEAD.strip() in command for command in sent) == case["readings"]
    leases = [text for text in LEASES for command in sent if text in command]
    assert leases == case.get("leases", list(LEASES) if commands else []), "leased exactly when it is changed"
    assert all("id=4.3fa9c1d2" in command for command in commands if "Disarm a guard" not in command)
    assert failed == case.get("fails", False), caplog.text
    assert len(commands) == len(case.get("commands", [])), "\n".join(commands)
    for command, parts in zip(commands, case.get("commands", []), strict=True):
        wanted = parts.values() if isinstance(parts, dict) else [parts] if isinstance(parts, str) else parts
        found = [command.find(part) for part in wanted]
        assert -1 not in found, command
        assert not isinstance(parts, dict) or found == sorted(found), "its steps in their order"
    for text in case.get("says", []):
        assert text in caplog.text
    for text in case.get("never", []):
        assert text not in caplog.text
        assert not [command for command in sent if text in command]


@pytest.mark.parametrize(
    ("steps", "wait", "begun"),
    [
        (("image", "release"), False, 1),
        (("image", "release"), True, 0),
        (("image",), False, 0),
    ],
    ids=["collected by release()", "asked to wait", "no step would collect it"],
)
def test_a_download_is_only_begun_where_that_is_asked_for_and_somebody_collects_it(
    sent: Sent, steps: tuple[str, ...], wait: bool, begun: int
) -> None:
    case = yaml.safe_load((HERE / "cases/image/pulls.yaml").read_text())
    state = run_case(case, "h1", steps, wait=wait)
    (host,) = state.inventory
    assert len(under_way(host)) == begun
    assert [command for command in sent if "Start a job" in command], "the host got the command in any case"
