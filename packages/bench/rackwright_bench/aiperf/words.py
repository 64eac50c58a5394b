"""The words of aiperf's command for one cell. Pure.

Two of them are there for the engines' sake: it reads no metrics of the server (reading TensorRT-LLM's drains them), and
every answer has its full length, since one that ends early makes rates incomparable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rackwright_bench.aiperf import launcher
from rackwright_bench.suites.suite import Cell, Suite

LAUNCHER = Path(launcher.__file__)
METRICS = {"ttft": "time_to_first_token", "itl": "inter_token_latency", "latency": "request_latency"}
"""aiperf's names for the latencies, by ours."""
GRACE = 30
"""Seconds for what is under way when a cell's time is up."""


@dataclass(frozen=True)
class Target:
    """The subject of a measurement: its URL, the model's name there, and what counts its prompts' tokens."""

    url: str
    model: str
    tokenizer: str


def profile_words(python: Path, target: Target, suite: Suite, cell: Cell, prompts: Path | None, out: Path) -> list[str]:
    """Return the command, which waits for a line on standard input.

    prompts: the file of a set that is not made by aiperf; out: a folder for what it writes.
    """
    words = [str(python), "-P", str(LAUNCHER), "profile", "--ui", "none"]
    words += ["--model", target.model, "--url", target.url, "--tokenizer", target.tokenizer]
    words += ["--endpoint-type", "chat", "--streaming", "--use-server-token-count"]
    words += ["--no-server-metrics", "--no-gpu-telemetry", "--artifact-dir", str(out)]
    words += ["--random-seed", str(suite.seed), "--extra-inputs", json.dumps({"ignore_eos": True})]
    words += ["--request-timeout-seconds", str(suite.timeout), *_requests(cell, prompts), *_pattern(suite, cell)]
    goals = [f"{METRICS[name]}:{value:g}" for name, value in suite.slo if value is not None]
    return [*words, "--goodput", " ".join(goals)] if goals else words


def _requests(cell: Cell, prompts: Path | None) -> Iterator[str]:
    if prompts is not None:
        yield from ("--input-file", str(prompts), "--custom-dataset-type", "single-turn")
        yield from ("--dataset-sampling-strategy", "sequential")
        return
    for side, tokens in (("synthetic-input", cell.data.input), ("output", cell.data.output)):
        yield from (f"--{side}-tokens-mean", str(tokens), f"--{side}-tokens-stddev", "0")
    # As many prompts as requests: a prompt that comes again is answered out of the prefix cache.
    yield from ("--num-dataset-entries", str(cell.pattern.requests))


def _pattern(suite: Suite, cell: Cell) -> Iterator[str]:
    pattern = cell.pattern
    yield from ("--request-count", str(pattern.requests), "--concurrency", str(pattern.concurrency))
    if suite.warmup:
        yield from ("--warmup-request-count", str(suite.warmup))
        yield from ("--warmup-concurrency", str(min(suite.warmup, pattern.concurrency)))
    if pattern.rate is not None:
        yield from ("--request-rate", f"{pattern.rate:g}", "--arrival-pattern", "gamma")
        yield from ("--vllm-burstiness", f"{pattern.burstiness or 1.0:g}")


def surroundings(environment: Mapping[str, str], vocabularies: Path) -> dict[str, str]:
    """Return the environment of the command: it downloads nothing on its own.

    vocabularies: folder of tiktoken's files, and a cache as Hugging Face has it.
    """
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    # A proxy on the way would be measured with the endpoint.
    without_proxy = {"no_proxy": "*", "NO_PROXY": "*", "COLUMNS": "120"}
    found = {"TIKTOKEN_CACHE_DIR": str(vocabularies), "HF_HUB_CACHE": str(vocabularies)}
    return {**environment, **quiet, **without_proxy, **found}
