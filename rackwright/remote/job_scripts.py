"""Shell lines of a job: a script that the host runs on its own, as a transient systemd unit.

Pure text. A job outlives the connection that started it; a second run with the same script joins it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from rackwright.hostside import DOCKER_ENVIRONMENT, host_script
from rackwright.hostside.hand_on.spec import RELEASED
from rackwright.messages import ReadingError
from rackwright.paths import RUN, job_folder, job_unit
from rackwright.plan.change import Job
from rackwright.plan.jobstream import PROGRESS

BUSY = 75
"""Exit status (EX_TEMPFAIL) when a different job of the same name is under way."""

AT_FIRST = 5
"""Seconds of a job in which its first output is awaited."""
PATIENCE = 50
"""Tenths of a second that one look at a job lasts when it says nothing."""
SHOWN = (PROGRESS, "row", "kept", "end")
"""Events that are only shown, so they are gathered as lines are: nothing waits for them."""

MISTAKE = 78
"""Exit status (EX_CONFIG) of a job that only other settings help."""


def payload(job: Job) -> str:
    """Return the start script's standard input: the job's script, then its secrets, all in base64, and `end`."""
    lines = [f"script - {_b64(DOCKER_ENVIRONMENT + job.script)}"]
    lines += [f"secret {key} {_b64(value.unmask())}" for key, value in sorted(job.secrets.items())]
    return "\n".join([*lines, "end"]) + "\n"


def start_script(job: Job) -> str:
    """Start the job, or join it when it runs already. Its payload comes by standard input."""
    return host_script(
        "job_start",
        unit=job_unit(job.name),
        folder=job_folder(job.name),
        secrets=f"{RUN}/secrets/{job.name}",
        trial=job.trial,
        ended=host_script("job_ended"),
        digest=_digest(job),
        timeout=job.timeout,
        after=" ".join(map(job_folder, job.after)),
        busy=BUSY,
    )


def parse_started(lines: Sequence[str]) -> Started:
    """Parse what `start_script` printed. Raises ReadingError when it is not that."""
    state, _, nonce = (lines[-1] if lines else "").partition(" ")
    if state not in ("started", "joined"):
        raise ReadingError("the job was neither started nor joined", code="RW0706")
    return Started(state == "joined", nonce)


def _digest(job: Job) -> str:
    return hashlib.sha256((job.aim or job.script).encode()).hexdigest()


def other_script(job: Job) -> str:
    """Ask for a job of the same name that another run has begun, and that is after something else."""
    return host_script("job_other", unit=job_unit(job.name), folder=job_folder(job.name), digest=_digest(job))


def parse_other(lines: Sequence[str]) -> OtherJob | None:
    """Parse what `other_script` printed. Raises ReadingError when it is not that."""
    if not lines:
        return None
    first, _, values = lines[-1].partition(" ")
    nonce, seconds, limit = [*values.split(" ", 2), "", "", ""][:3]
    if first != "other" or not seconds.isdecimal():
        raise ReadingError("the state of an earlier job could not be read", code="RW0706")
    return OtherJob(nonce, int(seconds), limit)


def follow_script(name: str, nonce: str, log: int, events: int, seconds: float) -> str:
    """Wait for news, and print the job's state, and its log and events from these bytes on.

    seconds: how long it has been followed. What is only shown is gathered for a second at first, later for three.
    """
    job = {"unit": job_unit(name), "folder": job_folder(name), "nonce": nonce}
    gather = 10 if seconds < AT_FIRST else 30
    shown = f" {' '.join(SHOWN)} "
    return host_script("job_follow", **job, log=log, events=events, gather=gather, patience=PATIENCE, shown=shown)


def release_script(name: str, nonce: str) -> str:
    """Tell a job that no other host of the run will take from it: hostside/hand_on looks for the file."""
    job = {"folder": job_folder(name), "nonce": nonce, "secrets": f"{RUN}/secrets/{name}"}
    return host_script("job_release", **job, released=RELEASED)


@dataclass(frozen=True)
class Started:
    """A job that runs now. `nonce`: what its events carry; `joined`: it ran already."""

    joined: bool
    nonce: str


@dataclass(frozen=True)
class OtherJob:
    """A job that another run has begun: its nonce, the seconds since then, and systemd's limit for all of it."""

    nonce: str
    seconds: int
    limit: str

    @property
    def text(self) -> str:
        """Since when it runs and how long it may, to follow its unit's name."""
        return f"begun {self.seconds} s ago by another run, ended by systemd after {self.limit or 'its limit'}"


@dataclass(frozen=True)
class JobUpdate:
    """A job's output since the last look. `status` is None as long as it has not ended on its own."""

    running: bool
    status: int | None
    log: bytes
    events: bytes
    cut: str = ""
    """Its end, as `RESULT SECONDS`, when it did not end on its own."""


@dataclass(frozen=True)
class Ended:
    """The end of a job. `status`: its own; None when it was ended by its time limit, or from outside."""

    status: int | None
    cut: str = ""

    @property
    def text(self) -> str:
        """Return the way in which it ended, to follow the job's title."""
        if self.status is not None:
            return f"ended with status {self.status}"
        result, _, seconds = self.cut.partition(" ")
        if not seconds:
            return "is gone: the host went down, or everything of it was killed"
        return (
            f"took longer than it may: {seconds} s"
            if result == "timeout"
            else f"was ended from outside after {seconds} s"
        )


def parse_update(lines: Sequence[str]) -> JobUpdate:
    """Parse what `follow_script` printed. Raises ReadingError when it is not that, or of another job."""
    values = dict(row.split("=", 1) for row in lines if "=" in row)
    if "other" in values:
        raise ReadingError(
            "it has ended, and another run has begun one of the same name since; run the command again", code="RW0707"
        )
    try:
        log, events = (base64.b64decode(values[key], validate=True) for key in ("log", "events"))
        status = int(values["status"]) if values["status"] else None
    except (KeyError, ValueError) as error:
        raise ReadingError("the job's state could not be read", code="RW0706") from error
    return JobUpdate(values.get("running") == "yes", status, log, events, values.get("ended", ""))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
