"""The rows that are asked of the container: its release, its GPUs, its threads. Pure."""

from __future__ import annotations

import re
import shlex

from rackwright.concerns.endpoint.proof.proof_row import Answer, Question, Severity, Verdict, host_rule

THREADS = "threads in the container"


FULL = 0.8
"""Part of the pids limit from which on a peak is worth a warning."""


RELEASE = "the release that runs"


GPUS_INSIDE = "GPUs inside the container"


@host_rule
def release_runs(container: str, release: str, binding: str) -> Question:
    """Check the release and the GPUs that answer: answers from others count for nothing."""

    def judge(answer: Answer) -> Verdict:
        words = answer.body.split()
        running = words[0] if words else "nothing"
        if words[:1] == [release] and words != [release, binding]:
            return Verdict(False, f"the container runs {running} with other GPUs than expected")
        return Verdict(words == [release, binding], f"the container runs {running}, expected {release}")

    labels = '{{index .Config.Labels "rackwright.release"}} {{index .Config.Labels "rackwright.binding"}}'
    shown = f"{{{{if .State.Running}}}}{labels}{{{{end}}}}"
    script = f"docker inspect --format {shlex.quote(shown)} {container} 2>/dev/null; printf '\n0 0'"
    return Question(RELEASE, script, judge, timeout=60)


@host_rule
def gpus_inside(container: str, count: int) -> Question:
    """Ask in the container for its GPUs: a daemon-reload can take them away from a running one."""

    def judge(answer: Answer) -> Verdict:
        if answer.status != 0:
            return Verdict(False, f"nvidia-smi -L inside ends with status {answer.status}: {answer.body[-300:]}")
        listed = re.findall(r"^GPU \d+: ", answer.body, re.MULTILINE)
        return Verdict(len(listed) == count, f"nvidia-smi -L inside lists {len(listed)} of {count} GPUs")

    script = f"o=$(docker exec {container} nvidia-smi -L 2>&1); r=$?; printf '%s\\n%s 0' \"$o\" $r"
    return Question(GPUS_INSIDE, script, judge, timeout=60)


@host_rule
def threads(container: str, limit: int) -> Question:
    """Compare the most processes and threads that the container has had with its limit: past it nothing new starts."""

    def judge(answer: Answer) -> Verdict:
        found = re.findall(r"^(\d+) (\d+)$", answer.body, re.MULTILINE)
        if not found:
            return Verdict(False, "not measurable on this host: its control group has no pids", measured=False)
        most, refused = map(int, found[-1])
        text = f"{most} at most of {limit}" + (f", and {refused} were refused" if refused else "")
        way_out = "" if most < FULL * limit and not refused else "; raise container.pids_limit"
        return Verdict(not way_out, text + way_out, figure=float(most))

    # The kernel counts the peak from 6.1 on; before, the present number has to do.
    script = (
        f"p=$(docker inspect --format '{{{{.State.Pid}}}}' {container} 2>/dev/null)\n"
        "v2=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/$p/cgroup 2>/dev/null)\n"
        "v1=/sys/fs/cgroup/pids$(sed -n 's/^[0-9]*:pids://p' /proc/$p/cgroup 2>/dev/null)\n"
        'for g in "$v2" "$v1"; do\n'
        '  [ -n "$p" ] && [ -r "$g/pids.max" ] || continue\n'
        '  n=$(cat "$g/pids.peak" 2>/dev/null || cat "$g/pids.current")\n'
        '  printf \'%s %s\\n\' "$n" "$(sed -n \'s/^max //p\' "$g/pids.events" 2>/dev/null | grep . || echo 0)"\n'
        "  break\ndone\nprintf '\\n0 0'"
    )
    return Question(THREADS, script, judge, timeout=60, severity=Severity.WARN)
