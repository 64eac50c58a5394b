"""A host under load and noise for a long time: its watch, which may restart, finds nothing (`make soak`)."""

from __future__ import annotations

import os
import time
from itertools import cycle
from pathlib import Path

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.lab import Lab
from tests.lab.conftest import Site
from tests.lab.fleet.watching import loading
from tests.lab.profiles.groups import ONE
from tests.lab.test_profiles import Bench

MINUTES = float(os.environ.get("RACKWRIGHT_SOAK_MINUTES", "60"))
pytestmark = [pytest.mark.lab, pytest.mark.timeout(60 * MINUTES + 3600)]

RATE = 2.0
"""Requests a second, one at a time."""
STREAM = """
body='{"model": "gpt-oss-120b", "prompt": "Describe the sea.", "max_tokens": 4000, "stream": true, "ignore_eos": true}'
curl -sSN -o /dev/null --max-time 60 -H 'Content-Type: application/json' -d "$body" http://127.0.0.1:8000/v1/completions
"""
IDLE = "for i in $(seq 100); do exec {fd}<>/dev/tcp/127.0.0.1/8000; done; sleep 20"
NOISES = {
    "fifty busy processes": "for i in $(seq 50); do timeout 20 sh -c 'while :; do :; done' & done; wait",
    "a hundred idle connections": f"timeout 30 bash -c '{IDLE}'",
    "twenty streams": f"for i in $(seq 20); do ( {STREAM} ) & done; wait",
    "an empty page cache": "sync; echo 3 >/proc/sys/vm/drop_caches",
    "quiet": "sleep 40",
}
FINDINGS = "sed -n 's/^state=//p; s/^signs=/  /p' /run/rackwright/watch/llm"
AGE = "read -r up _ </proc/uptime; echo $((${up%%.*} - $(sed -n 's/^looked=//p' /run/rackwright/watch/llm)))"
"""Seconds since the last look."""
OLDEST = 180
ALARMS = r"""
cat /var/lib/rackwright/watch/acts-llm 2>/dev/null
grep -lE '^kind=(hang|dead|restart|would-restart|sick)$' /var/lib/rackwright/events/* 2>/dev/null
grep -lE '^kind=(hang|dead|restart|would-restart|sick)$' /run/rackwright/events/* 2>/dev/null
ls /var/lib/rackwright/marks 2>/dev/null
true
"""
"""Prints nothing as long as nothing was found: acts, events of the engine, marks."""


@pytest.fixture
def watched(site: Site, worker_lab: Lab) -> Host:
    """Return a host whose vLLM has a counter of steps, and whose watch restarts, from its first minute on."""
    bench = Bench(site, worker_lab.host("lived2"))
    run = bench.deploy("rtx_pro_6000_vllm", **ONE, watch={"act": "restart"})
    assert run.status == 0, run.output
    bench.host.run("sed -i 's/^fresh=.*/fresh=0/' /etc/rackwright/watched/llm")
    return bench.host


def test_the_watch_raises_no_false_alarm(watched: Host, tmp_path: Path) -> None:
    ends, states = time.monotonic() + 60 * MINUTES, set[str]()
    with loading([watched], RATE, tmp_path / "load.jsonl"):
        for name, noise in cycle(NOISES.items()):
            watched.run(noise, check=False)
            found = watched.run(FINDINGS, check=False).stdout.strip()
            assert watched.run(ALARMS).stdout == "", f"during {name}: {found}"
            assert int(watched.run(AGE).stdout) < OLDEST, f"no look during {name}"
            states.add(found.partition("\n")[0])
            print(f"{name}: {found}", flush=True)
            if time.monotonic() > ends:
                break
    assert states & {"serving", "idle"}, states
    assert "restart" not in watched.run("cat /run/rackwright/watch/llm").stdout
