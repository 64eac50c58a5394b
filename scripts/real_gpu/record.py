"""The record of a story: versions, steps with their seconds, the gate's rows, as JSON and as a page."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rackwright import __version__
from rackwright.hardware.page import page, values
from rackwright_lab.real.gpu import ENVIRONMENT, IMAGE, TORCH, VERSION
from scripts.real_gpu.story import HARDWARE, Done

ROWS = re.compile(r"\b(proved|refused|not measurable|skipped): (.+?)\s*$", re.MULTILINE)
DIFFERS = (
    "One machine is the host and the control side: the host is booted by systemd-nspawn on it, and shares its kernel.",
    "The container runtime `nvidia` is the lab's: it binds this machine's devices and driver files into containers.",
    f"The image {IMAGE} was put together by the lab, without FlashInfer and FlashAttention 2; nothing was pulled "
    "from Docker Hub.",
    "The model has 0.86 million parameters: nothing is said here about speed or memory of a real one.",
)
"""What was not as in production, in every such run."""
DIFFERS_FOR_A_PAIR = (
    *DIFFERS,
    "Both hosts are on one machine, each with GPUs of its own: what passes between them is TCP over that machine's "
    "bridge, and no network card took part.",
)
"""The same where two hosts serve together."""


def record(found: Sequence[Done], differs: Sequence[str]) -> dict[str, Any]:
    """Everything that is known of a run, as plain values. differs: what was not as in production."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": versions(),
        "differs": list(differs),
        "environment": {key: value for key, value in ENVIRONMENT.items() if key.startswith(("VLLM", "TORCH"))},
        "steps": [
            {
                "name": one.step.name,
                "ok": one.ok,
                "status": one.status,
                "seconds": round(one.took, 1),
                "rows": rows(one),
            }
            for one in found
        ],
    }


def rows(one: Done) -> list[str]:
    """Return what the gate reported, one line a row."""
    return list(dict.fromkeys(f"{verdict}: {text}" for verdict, text in ROWS.findall(one.output)))


def versions() -> dict[str, str]:
    """Return the versions of what took part."""
    smi = ("nvidia-smi", "--query-gpu=name,driver_version,vbios_version,memory.total", "--format=csv,noheader")
    return {
        "rackwright": __version__,
        "vllm": VERSION,
        "torch": TORCH,
        "kernel": platform.release(),
        "gpu": _output(*smi),
        "machine": f"{platform.machine()}, {_output('nproc')} cores",
    }


def _output(*words: str) -> str:
    path = "/usr/local/nvidia/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment = {"PATH": path, "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"}
    try:
        return (
            subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60, check=False)
            .stdout.strip()
            .replace("\n", "; ")
        )
    except (OSError, subprocess.TimeoutExpired):
        return "not known"


def write(found: Sequence[Done], into: Path, differs: Sequence[str] = DIFFERS) -> Path:
    """Write record.json and record.md, over what they said of the same steps; returns the page."""
    document = record(found, differs)
    path = into / "record.json"
    before = json.loads(path.read_text())["steps"] if path.exists() else []
    new = [step["name"] for step in document["steps"]]
    document["hardware"] = hardware(into)
    document["steps"] = [*(step for step in before if step["name"] not in new), *document["steps"]]
    path.write_text(json.dumps(document, indent=1) + "\n")
    target = into / "record.md"
    target.write_text(as_page(document))
    return target


def hardware(into: Path) -> dict[str, Any] | None:
    """Return what the newest run proved of its hardware, as `rackwright report --hardware` has it; None without one."""
    found = sorted((into / "runs").glob(f"*{HARDWARE}"))
    return values(found[-1].read_text()) if found else None


def as_page(document: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    lines = [f"# A deploy on a real GPU, {document['at']}", ""]
    lines += [f"- {name}: {value}" for name, value in document["versions"].items()]
    lines += ["", "| step | | seconds |", "|---|---|---|"]
    lines += [f"| {one['name']} | {'ok' if one['ok'] else 'NOT OK'} | {one['seconds']} |" for one in document["steps"]]
    for one in document["steps"]:
        if one["rows"]:
            lines += ["", f"## {one['name']}: what the gate said", "", *(f"- {row}" for row in one["rows"])]
    lines += ["", "## What was not as in production", "", *(f"- {difference}" for difference in document["differs"])]
    if document.get("hardware"):
        lines += ["", page(document["hardware"])]
    return "\n".join(lines) + "\n"
