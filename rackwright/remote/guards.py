"""Changes that could lock us out: the host undoes them unless a new connection confirms them in time."""

from __future__ import annotations

import hashlib
import time

from rackwright.adapter.command_output import tail
from rackwright.adapter.concurrency import sleep
from rackwright.adapter.connection import LOST, command, over_new_connection
from rackwright.adapter.host import Host
from rackwright.hostside import DOCKER_ENVIRONMENT, durable_script
from rackwright.paths import guard_file, guard_trial, guard_unit
from rackwright.plan.change import Guarded, Shell
from rackwright.remote.commands import under_lease
from rackwright.remote.errors import StepFailedError, TakenBackError


def run_guarded(host: Host, step: Guarded) -> None:
    """Make a change that the host takes back unless a new connection confirms it. Raises StepFailedError."""
    arm = Shell(_arm(step), stdin=undo_script(step), timeout=step.seconds + 60, unseen=True)
    ok, output = under_lease(host, arm)
    if not ok and GUARD_BEGAN not in output.stdout_lines:
        raise StepFailedError(f"{step.name}: could not begin, so nothing was changed: {tail(output)}", code="RW0740")
    if not ok:
        raise TakenBackError(f"{step.name}: the change failed and was taken back: {tail(output)}", code="RW0716")
    if not _confirm(host, step):
        raise StepFailedError(
            f"{step.name}: no new SSH connection could confirm the change within {step.seconds} s; "
            "the host undoes it on its own",
            code="RW0717",
        )


GUARD_BEGAN = "the change begins"
"""The output of guard_arm.sh when the way back is armed."""


def undo_script(step: Guarded) -> str:
    """Return what a timer of systemd runs on the host to undo a guarded change."""
    # pyinfra ends standard input with a line break, which counts for the digest.
    return f"{DOCKER_ENVIRONMENT}{step.undo.rstrip()}\n"


def _arm(step: Guarded) -> str:
    unit, undo = guard_unit(step.name), guard_file(step.name)
    digest = hashlib.sha256(undo_script(step).encode()).hexdigest()
    words = {"unit": unit, "folder": undo.rpartition("/")[0], "undo": undo, "sum": digest}
    trial = {"trial": guard_trial(step.name), "trying": step.trial}
    before = f"(\n{step.before}) </dev/null || exit 1\n" if step.before else ""
    return before + durable_script("guard_arm", **words, **trial, seconds=step.seconds, change=step.script)


def _confirm(host: Host, step: Guarded) -> bool:
    confirm = durable_script("guard_confirm", unit=guard_unit(step.name), trial=guard_trial(step.name))
    disarm = command("sh", "-c", script=confirm)
    deadline = time.monotonic() + step.seconds
    while time.monotonic() < deadline:
        try:
            return over_new_connection(host, disarm, step.seconds)
        except LOST:
            sleep(0.5)
    return False
