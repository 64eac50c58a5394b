"""The options of `aiperf profile` that Rackwright gives, as strict as aiperf 0.13.0 is: an unknown one ends it."""

from __future__ import annotations

import argparse
from pathlib import Path

WORDS = (
    "--model",
    "--url",
    "--tokenizer",
    "--extra-inputs",
    "--goodput",
    "--api-key",
)
NUMBERS = (
    "--random-seed",
    "--synthetic-input-tokens-mean",
    "--synthetic-input-tokens-stddev",
    "--output-tokens-mean",
    "--output-tokens-stddev",
    "--num-dataset-entries",
    "--request-count",
    "--concurrency",
    "--warmup-request-count",
    "--warmup-concurrency",
)
FRACTIONS = ("--request-timeout-seconds", "--request-rate", "--vllm-burstiness")
SWITCHES = ("--streaming", "--use-server-token-count", "--no-server-metrics", "--no-gpu-telemetry")


def options() -> argparse.Namespace:
    """Parse the options. Ends the process, as aiperf does, for what it has no option for or cannot combine."""
    parser = argparse.ArgumentParser(prog="aiperf", allow_abbrev=False)
    profile = parser.add_subparsers(dest="command", required=True).add_parser("profile", allow_abbrev=False)
    for names, kind in ((WORDS, str), (NUMBERS, int), (FRACTIONS, float)):
        for name in names:
            profile.add_argument(name, type=kind)
    for name in SWITCHES:
        profile.add_argument(name, action="store_true")
    profile.add_argument("--ui", choices=("none", "simple", "dashboard"))
    profile.add_argument("--endpoint-type", choices=("chat", "completions"), required=True)
    profile.add_argument("--custom-dataset-type", choices=("single-turn", "multi-turn", "mooncake-trace"))
    profile.add_argument("--dataset-sampling-strategy", choices=("sequential", "random", "shuffle"))
    profile.add_argument("--arrival-pattern", choices=("constant", "poisson", "gamma", "concurrency_burst"))
    for name in ("--artifact-dir", "--input-file"):
        profile.add_argument(name, type=Path)
    return _combined(profile, parser.parse_args())


def _combined(parser: argparse.ArgumentParser, options: argparse.Namespace) -> argparse.Namespace:
    for name in ("model", "url", "tokenizer", "request_count", "concurrency", "artifact_dir"):
        if getattr(options, name) is None:
            parser.error(f"--{name.replace('_', '-')} is missing")
    if options.concurrency > options.request_count:
        parser.error("--concurrency must not be more than --request-count")
    if options.vllm_burstiness is not None and options.arrival_pattern != "gamma":
        parser.error("--vllm-burstiness can only be used with --arrival-pattern gamma")
    if options.arrival_pattern is not None and options.request_rate is None:
        parser.error("--arrival-pattern needs --request-rate")
    if options.input_file is not None and not options.input_file.is_file():
        parser.error(f"--input-file {options.input_file}: no such file")
    if options.input_file is None and not (options.synthetic_input_tokens_mean and options.output_tokens_mean):
        parser.error("neither --input-file nor lengths of synthetic prompts")
    return options
