"""`python -m aiperf profile ...`: sends what was asked for, and writes what Rackwright reads of it."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

from .options import options
from .sending import HISTOGRAM, Row, sent

POOLED = "pooled_spec_decode_acceptance_histogram"
VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""tiktoken's name of gpt-oss's vocabulary, without which `builtin` would ask the network."""


def main() -> int:
    arguments = options()
    if why := no_tokenizer(arguments.tokenizer):
        print(f"error: {why}", file=sys.stderr)
        return 1
    prompts = bodies(arguments)
    warm = [next(prompts) for _ in range(arguments.warmup_request_count or 0)]
    rows = _sent(arguments, warm, arguments.warmup_concurrency or 1, "warmup", (0.0 for _ in warm))
    counted = [next(prompts) for _ in range(arguments.request_count)]
    began = time.monotonic()
    profiled = _sent(arguments, counted, arguments.concurrency, "profiling", _pauses(arguments))
    write(arguments.artifact_dir, [*rows, *profiled], profiled, time.monotonic() - began, arguments)
    return 0 if any(not row["error"] for row in profiled) else 1


def no_tokenizer(name: str) -> str:
    """Why it has none, without a network (aiperf 0.13.0, common/tokenizer.py: offline it takes no folder)."""
    if name == "builtin":
        present = (Path(os.environ["TIKTOKEN_CACHE_DIR"]) / VOCABULARY).is_file()
        return "" if present else "the vocabulary is not in TIKTOKEN_CACHE_DIR, and nothing is fetched"
    if name.count("/") > 1:
        return f"HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': {name}"
    path = Path(os.environ["HF_HUB_CACHE"]) / f"models--{name.replace('/', '--')}"
    main = path / "refs" / "main"
    present = main.is_file() and (path / "snapshots" / main.read_text() / "tokenizer.json").is_file()
    return "" if present else f"Tokenizer '{name}' is not present in the HuggingFace cache"


def bodies(options: argparse.Namespace) -> Iterator[Row]:
    """Make the requests, the same ones for the same seed."""
    more = json.loads(options.extra_inputs or "{}")
    head = {"model": options.model, "stream": True, "stream_options": {"include_usage": True}, **more}
    for prompt, tokens in _prompts(options):
        yield {**head, "messages": [{"role": "user", "content": prompt}], "max_completion_tokens": tokens}


def _prompts(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    drawn = random.Random(options.random_seed)
    rows = (
        [json.loads(text_line) for text_line in options.input_file.read_text().splitlines()]
        if options.input_file
        else []
    )
    while True:
        yield from ((row["text"], row["output_length"]) for row in rows)
        words = (f"w{drawn.randrange(10**6)}" for _ in range(options.synthetic_input_tokens_mean or 0))
        if not rows:
            yield " ".join(words), options.output_tokens_mean


def _pauses(options: argparse.Namespace) -> Iterator[float]:
    drawn, shape = random.Random(options.random_seed), options.vllm_burstiness or 1.0
    while True:
        yield drawn.gammavariate(shape, 1 / (options.request_rate * shape)) if options.request_rate else 0.0


def _sent(
    options: argparse.Namespace, bodies: list[Row], at_once: int, phase: str, pauses: Iterator[float]
) -> list[Row]:
    with ThreadPoolExecutor(at_once) as pool:
        under_way = []
        for body in bodies:
            time.sleep(next(pauses))
            under_way.append(
                pool.submit(sent, options.url, body, options.request_timeout_seconds, phase, options.api_key)
            )
        return [one.result() for one in under_way]


def write(folder: Path, rows: list[Row], profiled: list[Row], seconds: float, options: argparse.Namespace) -> None:
    """profile_export.jsonl with every request; profile_export_aiperf.json where any was answered."""
    folder.mkdir(parents=True, exist_ok=True)
    pooled: Counter[str] = Counter()
    for row in profiled:
        pooled.update({str(won): count for won, count in enumerate(row[HISTOGRAM]) if count})
    rows = [{key: value for key, value in row.items() if key != HISTOGRAM} for row in rows]
    (folder / "profile_export.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    good = [row["metrics"] for row in profiled if not row["error"]]
    if good:
        (folder / "profile_export_aiperf.json").write_text(
            json.dumps({**_whole(good, seconds, options), **({POOLED: dict(pooled)} if pooled else {})})
        )


def _whole(good: list[Row], seconds: float, options: argparse.Namespace) -> dict[str, Any]:
    names = {"request_throughput": len(good) / seconds, "request_count": len(good)}
    names["usage_prompt_tokens"] = mean(row["usage_prompt_tokens"]["value"] for row in good)
    wanted = options.output_tokens_mean or 0
    names["osl_mismatch_count"] = sum(row["usage_completion_tokens"]["value"] < wanted for row in good)
    if options.goodput:
        names["goodput"] = sum(_keeps(row, options.goodput) for row in good) / seconds
    return {name: {"avg": value} for name, value in names.items()}


def _keeps(row: Row, goals: str) -> bool:
    pairs = (goal.split(":") for goal in goals.split())
    return all(row[name]["value"] <= float(value) for name, value in pairs)


sys.exit(main())
