"""The story of an endpoint on a real GPU, command by command, as a user would type it: here on one host.

Every step runs, whatever became of the one before, so that one run shows as much as it can.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rackwright_lab.real.gpu import SETTINGS

ROOT = Path(__file__).parents[2]
INVENTORY = "inventory/lab_gpu.py"
HARDWARE = ".hardware.md"
"""Suffix of the file that says what the deploy proved of its hardware; it is stored with the run's record."""
LATE = 124
"""The status of a step that was ended for its time, as `timeout` has it."""
WHEELS = "wheels"
"""Beside the project's folder, where it was packed: aiperf's packages."""
QUESTION = "What is the capital of France?"
SUITE = "bench/one_cell.yml"
"""Each round of a comparison loads the model twice for each variant."""
METRICS = "curl -sS http://127.0.0.1:8000/metrics | grep -E '^vllm:(spec_decode|generation_tokens_total|iteration)'"


@dataclass(frozen=True)
class Step:
    """One command: its name in the record, its words, the exit statuses that are right, and its seconds at most."""

    name: str
    words: tuple[str, ...]
    right: tuple[int, ...] = (0,)
    seconds: int = 100
    says: str = ""
    """What its output must contain."""


@dataclass(frozen=True)
class Done:
    """What became of a step."""

    step: Step
    status: int
    took: float
    output: str

    @property
    def ok(self) -> bool:
        """Whether it ended as it should."""
        return self.status in self.step.right and self.step.says in self.output


def rackwright(*words: str) -> tuple[str, ...]:
    """Return the argv of a Rackwright command, by the Python that runs this."""
    return (sys.executable, "-P", "-m", "rackwright", *words)


def pyinfra(*words: str) -> tuple[str, ...]:
    """Return the argv of pyinfra's command."""
    return (sys.executable, "-P", "-m", "pyinfra", *words)


def rollout(inventory: str, *words: str) -> tuple[str, ...]:
    """Return the argv of a rollout over all hosts, with a short time to watch."""
    return rackwright("rollout", inventory, "-y", "--plain", "--bake", "1", *words)


def lab_up(lab: str, hosts: int, offline: bool, engine: str = "vllm", models: str = "") -> Step:
    """So many bare hosts that share this machine's GPUs. models: a folder of more models that the hub serves."""
    words = ("--hosts", str(hosts), "--bare", str(hosts), "--gpus", "host", "--engine", engine)
    more = (*(["--models", models] if models else []), *(["--offline"] if offline else []))
    return Step("lab up", rackwright("lab", "up", "--id", lab, *words, *more), seconds=480)


def data(**settings: object) -> tuple[str, ...]:
    """Return settings for one run, as --data has them."""
    return tuple(argument for key, value in settings.items() for argument in ("--data", f"{key}={json.dumps(value)}"))


def revision(name: str) -> dict[str, object]:
    """Return the model's settings with another revision."""
    return {**SETTINGS["model"], "revision": name}


def steps(lab: str, offline: bool) -> Iterator[Step]:
    """Every step in order; offline: the lab's host installs packages from what was packed."""
    yield lab_up(lab, 1, offline)
    name = f"{lab}-bare1"
    on_host = ("lab", "ssh", "--id", lab, name)
    look = "nvidia-smi -L; nvidia-smi; ls -l /dev/nvidia*; cat /proc/driver/nvidia/version"
    yield Step("GPU on the host", rackwright(*on_host, look), says="GPU 0: ")
    yield Step(
        "deploy",
        pyinfra(INVENTORY, "deploy.py", "-y", "--data", "gate.level=full"),
        seconds=480,
        says="proved: a chat answer",
    )
    yield Step("deploy again", pyinfra(INVENTORY, "deploy.py", "-y"))
    yield Step("chat", rackwright("chat", INVENTORY, "--", QUESTION), says="Paris")
    container = "sudo docker exec rackwright-llm nvidia-smi; sudo docker inspect rackwright-llm"
    yield Step("GPU in the container", rackwright(*on_host, container))
    yield Step("drafts and tokens as vLLM counts them", rackwright(*on_host, METRICS), says="spec_decode")
    yield Step("status", rackwright("status", INVENTORY))
    yield Step("drift", rackwright("drift", INVENTORY))
    yield Step("hardware record", rackwright("report", "--hardware"), says=HARDWARE)
    bench = ("bench", INVENTORY, "--limit", name, "-y")
    yield Step("bench", rackwright(*bench), seconds=400, says="3 of 3 cells have figures")
    engines_bench = (sys.executable, "-P", "-m", "bench.engines_own", INVENTORY, "--limit", name)
    yield Step("bench beside vLLM's own", engines_bench, seconds=500, says="tokens a second")
    both = ("--compare", "baseline,ngram", "--suite", SUITE, "--rounds", "5", "--timeout", "720")
    yield Step("drafting on and off", rackwright(*bench, *both), seconds=900, says="against baseline")
    yield Step("chat after the comparison", rackwright("chat", INVENTORY, "--", QUESTION), says="Paris")
    good = data(model=revision("v2"), engine={"max-num-seqs": 8})
    yield Step("a good change", rollout(INVENTORY, *good), seconds=300)
    yield Step("drafts after the gate", rackwright(*on_host, METRICS), says="spec_decode")
    bad = data(model=revision("v3"), engine={"max-num-seqs": 8})
    yield Step("a bad change rolls back", rollout(INVENTORY, *bad), right=(3,), seconds=400, says="refused: ")
    yield Step("chat after rolling back", rackwright("chat", INVENTORY, "--", QUESTION), says="Paris")
    yield Step("status after rolling back", rackwright("status", INVENTORY))
    yield Step("journal", rackwright(*on_host, "sudo journalctl --no-pager --lines 400 --unit rackwright-llm"))
    yield Step("teardown", rackwright("teardown", INVENTORY, "--all", "-y", "--purge"))
    yield Step("lab down", rackwright("lab", "down", "--id", lab))


def environment(lab: str, into: Path, offline: bool) -> dict[str, str]:
    """Return what the commands run with."""
    lab_variables = {"RACKWRIGHT_LAB_ID": lab, "RACKWRIGHT_RUNS": str(into / "runs"), "PYINFRA_PROGRESS": "off"}
    packed = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(ROOT.parent / WHEELS)} if offline else {}
    return {**os.environ, **lab_variables, **packed, "COLUMNS": "160"}


def run(step: Step, lab: str, into: Path, offline: bool) -> Done:
    """Run one step; its whole output is written to `into` under its name."""
    log = into / f"{step.name.replace(' ', '-')}.log"
    begun = time.monotonic()
    with log.open("wb") as file:
        try:
            status = subprocess.run(
                step.words, cwd=ROOT, env=environment(lab, into, offline), stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, timeout=step.seconds, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            status = LATE
    return Done(step, status, time.monotonic() - begun, log.read_text(errors="replace"))


def tell(
    story: Iterable[Step], chosen: list[str], lab: str, into: Path, offline: bool, say: Callable[[str], None]
) -> list[Done]:
    """Run the steps of a story that are chosen by name, or all when none is; returns what became of each."""
    into.mkdir(parents=True, exist_ok=True)
    found = []
    for step in story:
        if chosen and step.name not in chosen:
            continue
        say(f"-- {step.name}")
        done = run(step, lab, into, offline)
        found.append(done)
        say(f"   {'ok' if done.ok else 'NOT OK'}: status {done.status}, {done.took:.0f} s")
        if not done.ok:
            say("\n".join(f"   | {row}" for row in done.output.splitlines()[-25:]))
    return found
