"""Questions that an endpoint must answer, as data rows, and the judging of what came back. Pure.

It imports Python's own library and the two modules below alone: hosts judge by these very files, in the serving image.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

from rackwright.concerns.endpoint.proof.final_answer import has_number, why_no_answer
from rackwright.concerns.endpoint.proof.gibberish import loops, nonsense

THREADS = "threads in the container"
FULL = 0.8
"""Part of the pids limit from which on a peak is worth a warning."""
GPU_ERRORS = "GPU errors since the switch"
RELEASE = "the release that runs"
GPUS_INSIDE = "GPUs inside the container"
TRANSPORT = "network between the hosts"


class Severity(Enum):
    """Meaning of a wrong answer."""

    REFUSE = "refuse"
    WARN = "warn"
    NO_WORSE = "no worse"
    """Refuses only when the release before passed, or was better; otherwise it warns."""


@dataclass(frozen=True)
class Answer:
    """The answer: HTTP status (or exit status of a command), body, seconds."""

    status: int
    body: str
    seconds: float

    def json(self) -> Any:
        """Return the body as JSON. Raises ValueError when it is not JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Verdict:
    """Passed or not, with what was seen, in a sentence. `measured` is False when there was nothing to judge."""

    passed: bool
    text: str
    figure: float | None = None
    """The measurement."""
    measured: bool = True
    warns: bool = False
    """True where an answer that has not passed is worth a warning and refuses nothing, whatever its row's severity."""
    detail: Any = None
    """The parts of the figure, where the row compares it with the release before's."""
    taken: bool = False
    """True where another process listens in the endpoint's place: the host's fault, not the answer's."""


@dataclass(frozen=True)
class Question:
    """One row of the proof: what is asked, and how the answer is judged.

    `script` runs on the host and prints the body, then a last line `STATUS SECONDS`; `stdin` is the request's
    body. `needs` names abilities that the profile must have for the row to apply.
    """

    name: str
    script: str
    judge: Callable[[Answer], Verdict]
    stdin: str | None = None
    timeout: int = 120
    severity: Severity = Severity.REFUSE
    needs: frozenset[str] = frozenset()
    compare: Callable[[Verdict, Verdict], Verdict] | None = None
    """The verdict on this release beside that of the release before, both measured; None: the two are not compared."""
    before: str = ""
    """Lines of the shell that stand before `script`, the same for all rows of an endpoint."""
    rule: RowRule | None = None
    """How to build this row again; None: only the control machine asks it."""
    endpoint: str = ""
    """Whom it asks, where one step switches several endpoints."""

    @property
    def label(self) -> str:
        """Its name, distinct from the same question to another endpoint."""
        return f"{self.endpoint}: {self.name}" if self.endpoint else self.name


@dataclass(frozen=True)
class RowRule:
    """A row as plain data, to tell a host which rows to judge: a name in RULES, and its arguments."""

    name: str
    arguments: Mapping[str, Any]


RULES: dict[str, Callable[..., Question]] = {}
Words = ParamSpec("Words")


def host_rule(build: Callable[Words, Question]) -> Callable[Words, Question]:
    """Make the rows that a function builds known to hosts, by the function's name."""

    @wraps(build)
    def built(*args: Words.args, **kwargs: Words.kwargs) -> Question:
        given = signature(build).bind(*args, **kwargs).arguments
        return replace(build(*args, **kwargs), rule=RowRule(build.__name__, dict(given)))

    RULES[build.__name__] = built
    return built


def is_refused(question: Question, verdict: Verdict) -> bool:
    """Return True if a verdict stops the switch on its own, without anything to compare it with."""
    failed = verdict.measured and not verdict.passed and not verdict.warns
    return failed and question.severity is Severity.REFUSE


def mark_of(verdict: Verdict, refusing: bool) -> str:
    """Return the label in front of a row: proved, refused, warning or not measured."""
    if not verdict.measured:
        return "not measured"
    return "proved" if verdict.passed else ("refused" if refusing else "warning")


def refusal(rows: Mapping[str, str]) -> str:
    """Return the sentence on refused rows, with what was seen of each."""
    return "the endpoint did not prove itself: " + "; ".join(f"{name}: {text}" for name, text in rows.items())


def parse_answer(lines: Sequence[str]) -> Answer:
    """Return the answer that a question's script printed. Raises ValueError when its last line is missing."""
    status, seconds = lines[-1].split(" ")
    return Answer(int(status), "\n".join(lines[:-1]).strip("\n"), float(seconds))


def judge_safely(question: Question, answer: Answer) -> Verdict:
    """Return the verdict on an answer; a body of the wrong shape is a failed row, not a crash."""
    unasked = UNASKED.fullmatch(answer.body) or BETWEEN.fullmatch(answer.body.rpartition("\n")[2])
    if answer.status == 0 and unasked:
        return Verdict(False, unasked["why"], taken=unasked["how"] != "not asked")
    try:
        return question.judge(answer)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        return Verdict(
            False, f"status {answer.status}, and a body that makes no sense ({error!r}): {answer.body[:200]}"
        )


UNASKED = re.compile(r"(?P<how>stranger|not asked): (?P<why>.+)")
"""Output of a script instead of an answer where it is not the endpoint's container that listens (known_curl.sh).

After anything that a server has sent comes a line of curl's.
"""
BETWEEN = re.compile(r"(?P<how>curl): \(7\) not asked: (?P<why>port \d+ is taken by .+)")
"""The line of one who took the port between two requests, which is the last one only where no server has sent any."""
LOGIN = '${rackwright_login:+--header "@$rackwright_login"}'
"""Headers of every request of a row: curl reads them from a file, so that `ps` shows no key."""


def login_script(home: str) -> str:
    """Shell lines before a row's own: which key the endpoint of this folder asks for now, if any."""
    return (
        f"rackwright_login={home}/keys/$(sed -n 's/^KEY=//p' {home}/binding 2>/dev/null)\n"
        '[ -f "$rackwright_login" ] || rackwright_login=\n'
    )


def http(url: str, timeout: int, post: bool) -> str:
    """Shell line that asks over HTTP on the host itself; without an answer, curl's own words and status 0."""
    body = "--header 'Content-Type: application/json' --data-binary @- " if post else ""
    return (
        f"curl --silent --show-error --noproxy '*' --max-time {timeout} {LOGIN} {body}"
        f"--write-out '\\n%{{http_code}} %{{time_total}}' {shlex.quote(url)} 2>&1 || printf '\\n0 0'"
    )


def answered(judge: Callable[[Answer], Verdict]) -> Callable[[Answer], Verdict]:
    """Judge what an HTTP server answered; when none did, say so in curl's words."""

    def judge_answer(answer: Answer) -> Verdict:
        if answer.status == 0:
            messages = (row for row in answer.body.splitlines() if row.startswith("curl: "))
            return Verdict(False, f"no answer ({next(messages, 'nothing came back')})")
        return judge(answer)

    return judge_answer


@host_rule
def model_name(base: str, expected: str) -> Question:
    """/v1/models must answer the directory's name (facts on TensorRT-LLM's server, part 2)."""

    def judge(answer: Answer) -> Verdict:
        names = [entry["id"] for entry in answer.json()["data"]]
        return Verdict(expected in names, f"/v1/models answers {', '.join(names) or 'nothing'}, expected {expected}")

    return Question("the model's name", http(f"{base}/v1/models", 30, post=False), answered(judge), timeout=40)


@host_rule
def asks_for_key(base: str) -> Question:
    """Check that an endpoint that is to ask for a key refuses requests without one."""

    def judge(answer: Answer) -> Verdict:
        refused = answer.status in (401, 403)
        text = f"without it /v1/models answers {answer.status}"
        return Verdict(refused, text if refused else f"{text}, expected 401: anybody is let in")

    script = "rackwright_login=\n" + http(f"{base}/v1/models", 30, post=False)
    return Question("its key is asked for", script, answered(judge), timeout=40)


@host_rule
def version(base: str, expected: str) -> Question:
    """/version is the cheapest proof of which image serves."""

    def judge(answer: Answer) -> Verdict:
        served = str(answer.json()["version"])
        return Verdict(served == expected, f"/version answers {served}, the image's tag says {expected}")

    script = http(f"{base}/version", 30, post=False)
    return Question("the engine's version", script, answered(judge), timeout=40, severity=Severity.WARN)


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


HARDWARE_XIDS = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140})
"""Errors of memory, links, firmware or the bus, which no other release cures (docs.nvidia.com/deploy/xid-errors).

Others may be the program's own, or its end (45 follows every kill): they are shown and refuse nothing.
"""


FALLEN = "NVRM: .*fallen off the bus"
"""The driver's messages about a GPU that is gone; not always with an Xid (NVIDIA/NVSentinel#155)."""
HARDWARE = rf"NVRM: Xid \([^)]*\): ({'|'.join(map(str, sorted(HARDWARE_XIDS)))})([^0-9]|$)|{FALLEN}"
"""Lines of the kernel that tell of broken hardware, as `grep -E` and Python both read it."""


@host_rule
def gpu_errors(home: str) -> Question:
    """Ask for the kernel's messages about GPUs since the last switch of the endpoint with folder `home` (DECISIONS 29).

    home: its `switched-at` has the boot and the time since it, by the monotonic clock.
    """

    def judge(answer: Answer) -> Verdict:
        lines = [row for row in answer.body.splitlines() if row.strip()]
        broken = [row for row in lines if re.search(HARDWARE, row)]
        return Verdict(not broken, (broken or lines or ["none"])[-1])

    script = (
        f"at=$(tr '\\n' ' ' <{home}/switched-at 2>/dev/null)\n"
        "read -r boot </proc/sys/kernel/random/boot_id\n"
        # After a reboot all messages of this boot came later.
        'case $at in "$boot "*) from=${at#* } ;; *) from=0 ;; esac\n'
        "journalctl --boot --identifier kernel --no-pager --output short-monotonic 2>/dev/null |"
        " awk -v from=\"$from\" 'substr($0, 2) + 0 >= from' |"
        f" sed 's/.* NVRM: /NVRM: /' | grep -E 'NVRM: Xid|{FALLEN}' | tail -n 20\nprintf '\\n0 0'"
    )
    return Question(GPU_ERRORS, script, judge, timeout=60)


CARRIERS = {"Using network Socket": "plain TCP (Socket)", "MNNVL 1": "NVLink between hosts (MNNVL)"}
"""Meanings of NCCL's terms, where NCCL does not explain them."""
NO_RDMA = r"Failed to open libibverbs[^ ]*|NET/IB : No device found"
"""Why NCCL has not taken RDMA: the image has no library for it, or the container no device."""


@host_rule
def transport(unit: str, container: str, wanted: str) -> Question:
    """Check which network NCCL has chosen between the hosts of an endpoint, by its own log: it takes TCP silently.

    unit, container: of the endpoint on this host. wanted: `rdma`, `nvlink`, or `any`, which is well with all.
    """

    def judge(answer: Answer) -> Verdict:
        notices = [row.strip().partition(" ")[::2] for row in answer.body.splitlines() if row.strip()]
        chosen = [(number, words) for number, words in notices if not re.match(NO_RDMA, words)]
        if not chosen:
            return Verdict(wanted == "any", "its log says nothing of NCCL's networks", measured=False)
        sockets = any(re.search(r"NET/Socket|network Socket", words) for _, words in chosen)
        nvlink = any("MNNVL" in words for _, words in chosen)
        if {"rdma": not sockets, "nvlink": nvlink}.get(wanted, True):
            return Verdict(True, _carried(chosen))
        why = [words for _, words in notices if re.match(NO_RDMA, words)] if wanted == "rdma" else []
        also = f"; NCCL says: {', '.join(why)}" if why else ""
        return Verdict(False, f"{_carried(chosen)}, and {wanted} was asked for{also}")

    script = (
        f"since=$(docker inspect --format '{{{{.State.StartedAt}}}}' {container}) || exit 1\n"
        f'journalctl --unit {unit} --since "$(date -d "$since" \'+%F %T\')" --no-pager --output cat 2>/dev/null |'
        " grep -aoE 'NCCL INFO (Using network [A-Za-z]+|MNNVL 1|"
        f"{NO_RDMA})|via NET/[A-Za-z]+|via P2P/MNNVL' |"
        " sed 's/^NCCL INFO //' | LC_ALL=C sort | uniq -c | awk '{ $1 = $1; print }' | tail -n 20\nprintf '\\n0 0'"
    )
    return Question(TRANSPORT, script, judge, timeout=60)


def _carried(chosen: Sequence[tuple[str, str]]) -> str:
    """Return counted phrases of NCCL's log as a sentence: `plain TCP (Socket): 8 channels via NET/Socket`."""
    channels = [
        f"{number} channel{'s' * (number != '1')} {words}" for number, words in chosen if words.startswith("via ")
    ]
    networks = [words for _, words in chosen if not words.startswith("via ")]
    named = [CARRIERS.get(words, words.removeprefix("Using network ")) for words in networks]
    return ": ".join(", ".join(part) for part in (named, channels) if part)[:300]


@host_rule
def chat(base: str, model: str) -> Question:
    """Ask for a chat completion with a checkable answer; only chat notices a missing vocabulary.

    512 tokens, because gpt-oss thinks first and would otherwise end with empty content (DECISIONS 28).
    """
    request: Mapping[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": "What is 17 + 25? Answer with the number only."}],
        "max_tokens": 512,
        "stream": False,
    }

    def judge(answer: Answer) -> Verdict:
        if answer.status != 200:
            return Verdict(False, f"chat answers {answer.status}: {answer.body[:300]}")
        message = answer.json()["choices"][0]["message"]
        content = str(message["content"] or "")
        if loops(content):
            return Verdict(False, f"chat repeats one token: {content[:60]!r}")
        text = f"17 + 25 is answered with {content.strip()[:80]!r} in {answer.seconds:.1f} s"
        if not has_number(content):
            return Verdict(False, text)
        why = why_no_answer(content) or spoilt_thoughts(message)
        return Verdict(not why, f"{text}: {why}" if why else text)

    script = http(f"{base}/v1/chat/completions", 110, post=True)
    return Question("a chat answer", script, answered(judge), json.dumps(request))


def spoilt_thoughts(message: Mapping[str, Any]) -> str:
    """Return why the thoughts beside an answer make no sense; empty when they do, or when it has none."""
    texts = (str(message.get(key) or "") for key in ("reasoning_content", "reasoning"))
    return next((f"its thoughts make no sense: {why}" for why in map(nonsense, texts) if why), "")
