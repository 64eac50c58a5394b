"""One question that is sent several times, and what of a server's counters a row reads before and after. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackwright.concerns.endpoint.proof.proof_row import LOGIN, Answer

COUNTER = re.compile(r"^(before|after) ([\w:]+?)(?:_total)?(?:\{.*\})? ([\d.e+]+)$", re.MULTILINE)


def post_several(url: str, times: int, seconds: int, within: int = 0) -> str:
    """Shell line that sends $body so often, for at most `seconds` each; after each answer a line `STATUS SECONDS`.

    within: seconds after which no other one is sent; 0: all are sent.
    """
    # By the clock that no time service steps.
    begins = f"until=$(($(cut -d. -f1 /proc/uptime) + {within})); " if within else ""
    ends = '[ "$(cut -d. -f1 /proc/uptime)" -lt "$until" ] || break; ' if within else ""
    return f"{begins}for i in $(seq {times}); do {ends}printf '%s' \"$body\" | {_curl(url, seconds)}; done"


def post_each(url: str, seconds: int) -> str:
    """Shell line that sends each line of $body separately, for at most `seconds` each, and prints as `post_several`."""
    each = f"while IFS= read -r line; do printf '%s' \"$line\" | {_curl(url, seconds)}; done"
    return f"printf '%s\\n' \"$body\" | {each}"


def _curl(url: str, seconds: int) -> str:
    return (
        f"curl --silent --noproxy '*' --max-time {seconds} {LOGIN} "
        "--header 'Content-Type: application/json' --data-binary @- "
        f"--write-out '\\n%{{http_code}} %{{time_total}}\\n' {shlex.quote(url)}"
    )


def counters(base: str, names: str, when: str) -> str:
    """Shell line that prints the counters of /metrics whose names match, each with a word in front of it."""
    curl = f"curl --silent --noproxy '*' --max-time 20 {LOGIN} {shlex.quote(f'{base}/metrics')}"
    return f"{curl} | grep -E {shlex.quote(f'^({names})')} | sed 's/^/{when} /'"


def row_script(*lines: str) -> str:
    """Return the lines of a row that asks more than once: the body is read first, and a status of its own is last."""
    return "\n".join(("body=$(cat)", *lines, "printf '\\n200 0'"))


@dataclass(frozen=True)
class TimedReply:
    """One answer of several: its HTTP status (0: none came), its seconds and its body, {} where that is not JSON."""

    status: int
    seconds: float
    body: Mapping[str, Any]


def replies(answer: Answer) -> list[TimedReply]:
    """Return the answers of `post_several`, in their order."""
    found, body = list[TimedReply](), ""
    for row in answer.body.split("\n"):
        if ends := re.fullmatch(r"(\d{3}) ([\d.]+)", row):
            found.append(TimedReply(int(ends[1]), float(ends[2]), _mapping(body)))
            body = ""
        else:
            body = row or body
    return found


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def grown(answer: Answer) -> dict[str, float]:
    """By how much each counter grew, over all of its labels; a counter that was not read both times is left out."""
    sums: dict[str, dict[str, float]] = {"before": {}, "after": {}}
    for when, name, value in COUNTER.findall(answer.body):
        sums[when][name] = sums[when].get(name, 0.0) + float(value)
    return {name: sums["after"][name] - old for name, old in sums["before"].items() if name in sums["after"]}


def grown_by_label(answer: Answer, name: str, label: str) -> dict[int, float]:
    """By how much a counter grew, by the number that one of its labels has, in order; empty where it was not read."""
    pattern = rf"^(before|after) {re.escape(name)}(?:_total)?\{{[^}}]*\b{label}=\"(\d+)\"[^}}]*\}} ([\d.e+]+)$"
    sums: dict[int, float] = {}
    for when, number, value in re.findall(pattern, answer.body, re.MULTILINE):
        sums[int(number)] = sums.get(int(number), 0.0) + float(value) * (1 if when == "after" else -1)
    return dict(sorted(sums.items()))
