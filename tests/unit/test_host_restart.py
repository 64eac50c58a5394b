"""A host that restarts before this run restarts it: an earlier run had, and was killed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rackwright.concerns.endpoint.switch import restart_and_wait
from rackwright.concerns.endpoint.switch.steps import HostRestart
from rackwright.plan.change import Job
from rackwright.remote.errors import ConnectionLostError, LeaseLostError, StepFailedError

STEP = HostRestart(Job("restart-host", "drain and restart the host", "true", 60), (), serving=False, boot="before")


def restarted(monkeypatch: pytest.MonkeyPatch, error: Exception, boot: str) -> list[str]:
    """Return the output when the restart meets an error, and the host is then in that boot."""
    messages = list[str]()

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(restart_and_wait, "order_restart", fails)
    monkeypatch.setattr(restart_and_wait, "boot_of", lambda *_: boot)
    monkeypatch.setattr(restart_and_wait, "say", lambda _, text: messages.append(text))
    restart_and_wait.restart_host(SimpleNamespace(name="b1", state=SimpleNamespace()), STEP)  # type: ignore[arg-type]
    return messages


@pytest.mark.parametrize("error", [LeaseLostError("gone"), ConnectionLostError("cut"), OSError("reset")])
def test_one_that_is_in_another_boot_was_restarted(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    assert "an earlier run" in restarted(monkeypatch, error, "after")[0]


@pytest.mark.parametrize(
    ("error", "boot"),
    [
        (LeaseLostError("another run writes"), "before"),
        (ConnectionLostError("cut"), ""),
        (StepFailedError("its drain failed"), "after"),
    ],
)
def test_any_other_failure_stays_one(monkeypatch: pytest.MonkeyPatch, error: Exception, boot: str) -> None:
    with pytest.raises(type(error)):
        restarted(monkeypatch, error, boot)
