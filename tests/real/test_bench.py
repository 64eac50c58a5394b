"""The whole suite of seed 003, a sixteenth as long, against a real vLLM: aiperf itself; one cell may lack figures."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rackwright_bench.record import read_bench
from rackwright_bench.suites.loading import load_suite
from rackwright_bench.suites.prompts import WORDS
from rackwright_bench.suites.suite import cells
from tests.lab.conftest import BIN, ROOT, Site
from tests.real.test_vllm import PATIENCE

pytestmark = pytest.mark.lab

INVENTORY = "inventory/lab_vllm.py"
SHORTER = 16
"""The model takes 1024 tokens, and the guide's longest request has 12288."""
REQUESTS, AT_ONCE = 16, 8
NO_CONTENT = "No responses with actual content"


def talk(words: int, turns: int) -> Iterator[str]:
    """Make turns of so many words."""
    chosen = random.Random(3)
    return (" ".join(chosen.choices(WORDS, k=words)) for _ in range(turns))


def files(folder: Path) -> dict[str, Path]:
    """Synthetic files of the three published forms, by kind: nothing of the real ones may be fetched here."""
    places = {name: folder / name for name in ("sharegpt", "spec_bench", "burstgpt")}
    conversation = list(talk(20, 64))
    chats = [
        {"conversations": [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]}
        for question, answer in zip(conversation[::2], conversation[1::2], strict=True)
    ]
    places["sharegpt"].write_text(json.dumps(chats))
    places["spec_bench"].write_text("".join(f"{json.dumps({'turns': [text]})}\n" for text in conversation))
    lines = ["Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"]
    lines += [f"{number},GPT-4,{20 + number},{10 + number},{30 + 2 * number},API log" for number in range(32)]
    places["burstgpt"].write_text("\n".join(lines))
    return places


def short_suite(folder: Path) -> Path:
    """Seed 003's suite with its sets, patterns and rates; lengths and numbers of requests are fewer."""
    suite = load_suite("seed003").model_dump(exclude_none=True)
    folder_of = files(folder)
    for data in suite["datasets"].values():
        data.update({key: data[key] // SHORTER for key in ("input", "output") if key in data})
        if data["kind"] in folder_of:
            data["path"] = str(folder_of[data["kind"]])
    for pattern in suite["arrivals"].values():
        pattern["concurrency"] = min(pattern["concurrency"], AT_ONCE)
        pattern["requests"] = REQUESTS
    path = folder / "bench.yml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps(suite))))
    return path


def test_the_seeds_whole_suite_is_measured_but_for_one_cell_at_most(site: Site, tmp_path: Path) -> None:
    host = site.lab.hosts[-1].name
    words = (INVENTORY, "deploy.py", "-y", "--limit", host)
    deployed = site.command(BIN / "pyinfra", *words, timeout=PATIENCE)
    assert deployed.status == 0, deployed.output
    suite = short_suite(tmp_path)
    lock = ROOT / "rackwright.bench.lock.yml"
    assert not lock.exists(), "this test writes it, and takes it away again"
    try:
        run = site.rackwright("bench", INVENTORY, "-y", "--limit", host, "--suite", str(suite), timeout=3600)
    finally:
        lock.unlink(missing_ok=True)
    measured = read_bench(site.lab.paths.root, "last")
    assert len(measured.cells) == len(list(cells(load_suite("seed003")))) == 35
    failed = {cell: found.errors for cell, found in measured.cells.items() if found.failed}
    # Answers are sampled: in one of 560, with vLLM 0.14.1, aiperf found no content. Why was not looked into.
    assert len(failed) <= 1, run.output
    assert all(NO_CONTENT in text for errors in failed.values() for text in errors), run.output
    assert run.status == (1 if failed else 0), run.output
    assert f"{35 - len(failed)} of 35 cells have figures" in run.output
    for cell, found in measured.cells.items():
        assert len(found.requests) == REQUESTS - found.failed, cell
