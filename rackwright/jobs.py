"""Shell lines of a job: a script that the host runs by itself, as a transient systemd unit.

Pure text. A job outlives the connection that started it; a second run with the same script joins it.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

from rackwright.change import Job
from rackwright.errors import ReadingError
from rackwright.hostside import host_script
from rackwright.paths import RUN, job_folder, job_unit

BUSY = 75
"""Exit status (EX_TEMPFAIL) when a different job of the same name is under way."""


def payload(job: Job) -> str:
    """What the start script reads on standard input: the job's script, then its secrets, all in base64, and `end`."""
    lines = [f"script - {_b64(job.script)}"]
    lines += [f"secret {key} {_b64(value.unmask())}" for key, value in sorted(job.secrets.items())]
    return "\n".join([*lines, "end"]) + "\n"


def start_script(job: Job) -> str:
    """Start the job, or join it when it runs already. Its payload comes by standard input."""
    return host_script(
        "job_start",
        unit=job_unit(job.name),
        folder=job_folder(job.name),
        secrets=f"{RUN}/secrets/{job.name}",
        digest=hashlib.sha256((job.aim or job.script).encode()).hexdigest(),
        timeout=job.timeout,
        busy=BUSY,
    )


def follow_script(name: str, offset: int, patience: int = 5) -> str:
    """Print the job's state and its output from byte `offset` on, waiting up to `patience` seconds for news."""
    return host_script("job_follow", unit=job_unit(name), folder=job_folder(name), offset=offset, patience=patience * 5)


@dataclass(frozen=True)
class JobNews:
    """What a job has said since the last look. `status` is None as long as it has not ended by itself."""

    running: bool
    status: int | None
    log: bytes


def parse_news(output: str) -> JobNews:
    """Parse what `follow_script` printed. Raises ReadingError when it is not that."""
    values = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    if "running" not in values:
        raise ReadingError("the job's state could not be read")
    status = values.get("status", "")
    return JobNews(values["running"] == "yes", int(status) if status else None, base64.b64decode(values.get("log", "")))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
