"""Recorded looks of lab hosts (tests/lab/signs.py), replayed through the look itself: none of them may be an alarm.

Only what reads the host is replaced, by what it had read. For a new sample, run lab tests: `artefacts/signs-*.jsonl`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pytest

from rackwright.concerns.watch.engine_check import engine_check_script

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLE, HANG = FIXTURES / "watch_signs.jsonl", FIXTURES / "watch_hang.jsonl"
FIRST = 'for file in "$watched"/*; do\n  [ -f "$file" ] || continue\n  look_at'
ENDED = "its unit has failed"
"""Signs of an engine that has truly ended: what tests do to engines, and no alarm is false then."""
Look = Mapping[str, str]
READS = """
belongs() { inside=$r_id unit=; }
systemctl() {
  printf '%s\\n' "ActiveState=$r_unit" SubState=x Restart=always "ActiveEnterTimestampMonotonic=${r_ready}000000"
}
listener_container() { running=true label=llm id=$r_id pid=1 said=yes; }
in_hand() { why=$r_why; [ -n "$why" ]; }
scrape() { code=$r_code http=$r_http connect=connected steps=${r_steps:--} pulse=${r_pulse:--} asleep=$r_asleep; }
count() { open=$r_open streams=$r_streams bytes=$r_bytes; }
probe() { echo "$r_answer"; }
ask() { echo "$r_health"; }
compiling() { return 1; }
gpus_idle() { return 0; }
tell() { :; }
tell_resolved() { :; }
replay() { now=$r_looked; look_at llm; cat "$states/llm"; echo end; }
"""


def reading(look: Look) -> Look:
    """Return what the host had read at a look, as variables of the shell."""
    state, signs = look["state"], look["signs"]
    streams = re.search(r"arrive on (\d+)", signs)
    status = re.search(r"answered with (\d+)", signs)
    late = look["unanswered_since"] or "no probe is answered" in signs
    refused = "refuses connections" in signs
    unread = look["unread_since"]
    return {
        "looked": look["looked"],
        "id": look["id"] or "0",
        "ready": look["ready"] or "1",
        "unit": "failed" if ENDED in signs else "activating" if state == "loading" else "active",
        "why": signs if state == "skipped" else "",
        "code": "7" if refused else "0",
        "http": "500" if unread else "200" if look["steps"] else "404",
        "steps": look["steps"],
        "pulse": look["pulse"],
        "asleep": "yes" if "sleeps" in signs else "no",
        "open": look["open"] or "0",
        "streams": streams[1] if streams else "0",
        "bytes": look["bytes"] or "0",
        "answer": "late" if late else status[1] if status else "200",
        "health": "503" if look["unavailable_since"] else "200",
    }


def replayed(looks: Sequence[Look], folder: Path) -> list[str]:
    """Return the states that the look finds for these readings, one after the other."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("states", "watched"):
        (folder / name).mkdir(parents=True)
    limits = {key: looks[0][key] for key in ("after", "full_after", "load", "fresh", "batch") if key in looks[0]}
    (folder / "watched" / "llm").write_text(
        "".join(f"{key}={value}\n" for key, value in limits.items()) + "metrics=/m\n"
    )
    whole = engine_check_script()
    for path, name in (("/etc/rackwright/watched", "watched"), ("/run/rackwright/watch", "states")):
        assert path in whole
        whole = whole.replace(path, str(folder / name))
    head, mark, _ = whole.partition(FIRST)
    assert mark
    calls = [
        " ".join(f"r_{key}={_quoted(value)}" for key, value in reading(look).items()) + "; replay" for look in looks
    ]
    script = "\n".join([head, READS, *calls, ""])
    run = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=False, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
    return re.findall(r"^state=(\w+)", run.stdout, re.MULTILINE)


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "") + "'"


def recordings(file: Path = SAMPLE) -> list[list[Look]]:
    """Return the looks of a file, by test and endpoint."""
    rows = [defaultdict(str, json.loads(row)) for row in file.read_text().splitlines()]
    key = lambda row: (row["test"], row["endpoint"])  # noqa: E731
    return [list(group) for _, group in groupby(sorted(rows, key=key), key=key)]


def test_no_recorded_look_is_an_alarm(tmp_path: Path) -> None:
    assert sum(len(looks) for looks in recordings()) > 50
    for looks in recordings():
        states = replayed(looks, tmp_path)
        ended = ["dead" if ENDED in look["signs"] else "" for look in looks]
        false = [state for state, end in zip(states, ended, strict=True) if state in ("hung", "dead") and not end]
        assert false == [], looks[0]["test"]
        # The replay is a faithful one.
        assert states == [look["state"] for look in looks], looks[0]["test"]


@pytest.mark.parametrize(("steps", "seconds"), [("100.000000", 180), ("", 660)])
def test_an_engine_that_stands_still_in_a_recording_is_an_alarm(tmp_path: Path, steps: str, seconds: int) -> None:
    last = next(looks[-1] for looks in recordings() if looks[-1]["state"] == "idle")
    start = int(last["looked"])
    still = {**last, "steps": steps, "ready": str(start - 700), "after": "120"}
    silent = [{**still, "looked": str(start + at), "unanswered_since": "1"} for at in range(30, seconds, 30)]
    looks = [defaultdict(str, look) for look in [still, *silent]]
    assert replayed(looks, tmp_path)[-2:] == ["stalled", "hung"]


def test_the_recorded_hang_of_a_real_vllm_is_an_alarm(tmp_path: Path) -> None:
    [looks] = recordings(HANG)
    # The first look of a recording has no earlier one to compare its steps with.
    assert replayed(looks, tmp_path)[1:] == [look["state"] for look in looks[1:]] == ["stalled"] * 4 + ["hung"]
