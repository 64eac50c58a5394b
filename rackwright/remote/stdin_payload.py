"""Parts of a step that travel by standard input: secrets, contents, and scripts too long or too telling for argv. Pure.

Several simple steps go as one command: an SSH session, a sudo and a look at the lease cost more than most steps.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rackwright.hostside import DOCKER_ENVIRONMENT, host_script
from rackwright.plan.change import Shell
from rackwright.settings.secret import Secret

MOST = 32 * 1024
"""Bytes of a script that go as an argument. Linux takes 128 KiB, of which each shell on the way quotes a part."""
WHOLE = "# whole"
"""Ends a script: of one that was cut nothing must run."""
_MARK = "rackwright: failed at step"
"""Begins the last line of a batch that failed; the number follows."""


def receiver(script: str, title: str) -> str:
    """Return the line that runs on the host; it reads the script and leaves the rest of standard input to it.

    title: one line that says in `ps` what it is.
    """
    size = len(framed(script).encode())
    return (
        f"# {title}\n"
        f'rackwright_script=$(head -c {size}) && case $rackwright_script in *"{WHOLE}") eval "$rackwright_script" ;; '
        '*) echo "the connection was cut while a script arrived, so nothing was done" >&2; exit 1 ;; esac'
    )


def framed(script: str) -> str:
    """Return what is sent before anything else."""
    return f"{script}\n{WHOLE}"


def closed(step: Shell) -> str | None:
    """Return the step's standard input, ending with a line break as pyinfra would send it; None if it has none."""
    text = step.stdin.unmask() if isinstance(step.stdin, Secret) else step.stdin
    return text if text is None or text.endswith("\n") else f"{text}\n"


def sent(step: Shell) -> tuple[str, str | None]:
    """Split a step into its argv script and its standard input, which takes secrets, and long or unseen scripts."""
    text, script = closed(step), DOCKER_ENVIRONMENT + step.script
    if step.unseen or len(script.encode()) > MOST:
        return receiver(script, "a script of Rackwright's, by standard input"), f"{framed(script)}{text or ''}"
    return script, text


def as_one(steps: Sequence[Shell]) -> Shell:
    """Return one step that runs these one after the other, up to the first that fails; its limit is their sum."""
    lines, inputs = [host_script("steps_run", whole=f"\n{WHOLE}", mark=_MARK)], []
    for number, step in enumerate(steps):
        text = closed(step)
        whole = "" if text is None else framed(text)
        lines.append(f"rackwright_step {number} {len(whole.encode())} {shlex.quote(step.script)}")
        inputs.append(whole)
    seconds, unseen = sum(step.timeout for step in steps), any(step.unseen for step in steps)
    return Shell("\n".join(lines), stdin=Secret("".join(inputs)), timeout=seconds, unseen=unseen)


def failed_of(errors: Sequence[str]) -> tuple[int, list[str]]:
    """Tell which step of a batch failed, from its standard error. Returns the number, and the lines without the mark.

    The number is 0 when the batch failed before its first step.
    """
    *lines, last = errors or [""]
    text, mark, number = last.rpartition(_MARK)
    if not mark:
        return 0, list(errors)
    return int(number), [*lines, text] if text else lines
