"""The flags of `sglang.launch_server` and the file that `--config` names.

Those of 0.5.8 that guides and profiles use are by hand; a version with a table has them all.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ..common import flags as data
from ..common import tables
from ..common.flags import Flag, flags
from . import __version__

KV_CACHE_DTYPES = ("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16", "fp4_e2m1")
ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM")

_FLAGS = (
    Flag(("--host",), default="127.0.0.1"),
    Flag(("--port",), "int", 30000),
    Flag(("--dtype",), default="auto", choices=("auto", "half", "float16", "bfloat16", "float", "float32")),
    Flag(("--kv-cache-dtype",), default="auto", choices=KV_CACHE_DTYPES),
    Flag(("--speculative-algorithm",), choices=ALGORITHMS),
    Flag(("--stream-interval",), "int", 1),
    Flag(("--log-level",), default="info"),
    Flag(("--mem-fraction-static",), "float"),
    Flag(("--watchdog-timeout",), "float", 300),
    *flags("int", "--tp-size=--tensor-parallel-size --pp-size=--pipeline-parallel-size", default=1),
    *flags("int", "--dp-size=--data-parallel-size --ep-size=--expert-parallel-size=--ep --nnodes", default=1),
    *flags("int", "--context-length --max-running-requests --max-queued-requests --max-total-tokens --page-size"),
    *flags("int", "--chunked-prefill-size --max-prefill-tokens --random-seed --nccl-port --cuda-graph-max-bs"),
    *flags("int", "--speculative-num-steps --speculative-eagle-topk --speculative-num-draft-tokens --node-rank"),
    *flags("int", "--num-continuous-decode-steps"),
    *flags("numbers", "--cuda-graph-bs"),
    *flags("text", "--served-model-name --tokenizer-path --revision --quantization --download-dir --device --api-key"),
    *flags("text", "--tokenizer-mode --load-format", default="auto"),
    *flags("text", "--chat-template --reasoning-parser --tool-call-parser --sampling-backend --grammar-backend"),
    *flags("text", "--attention-backend --prefill-attention-backend --decode-attention-backend --moe-runner-backend"),
    *flags("text", "--moe-a2a-backend --schedule-policy --dist-init-addr --weight-version --sampling-defaults"),
    *flags("text", "--speculative-draft-model-path=--speculative-draft-model --speculative-attention-mode"),
    *flags("text", "--speculative-draft-model-revision --json-model-override-args --preferred-sampling-params"),
    *flags("switch", "--trust-remote-code --enable-metrics --skip-server-warmup --skip-tokenizer-init", default=False),
    *flags("switch", "--disable-radix-cache --disable-cuda-graph --disable-overlap-schedule", default=False),
    *flags("switch", "--disable-custom-all-reduce --enable-torch-compile --enable-mixed-chunk", default=False),
    *flags("switch", "--enable-dp-attention --enable-p2p-check --enable-cache-report --log-requests", default=False),
    *flags("switch", "--stream-output --enable-hierarchical-cache --enable-deterministic-inference", default=False),
)
TABLE = tables.of_version(Path(__file__).parent / "tables", __version__, _FLAGS, "switch")
"""What this version has by its own source; None for the one that is written down here."""
FLAGS = TABLE.flags if TABLE else _FLAGS
ABSENT = tables.absent(FLAGS, _FLAGS)
"""Flags that another version has: no option of this one, and they keep their defaults."""


class _Made:
    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> None:
        """Give a parser the server's flags."""
        parser.add_argument("--model-path", "--model", dest="model_path", required=True)
        parser.add_argument("--config")
        data.add(parser, FLAGS)

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace) -> Any:
        """Return the options that a command line sets."""
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        return cls(**{name: getattr(args, name) for name in names if hasattr(args, name)})

    def __post_init__(self) -> None:
        """Refuse values that do not fit. Raises ValueError."""
        values = vars(self)
        for flag in FLAGS:
            if flag.choices and values[flag.field] not in (None, *flag.choices):
                raise ValueError(f"{flag.field} must be one of {', '.join(flag.choices)}, not {values[flag.field]!r}")
        if values["tp_size"] % values["ep_size"]:
            raise ValueError(f"tp_size {values['tp_size']} is not divisible by ep_size {values['ep_size']}")
        if values["speculative_algorithm"] in ("EAGLE3", "STANDALONE") and not values["speculative_draft_model_path"]:
            raise ValueError(f"{values['speculative_algorithm']} needs speculative_draft_model_path")


ServerArgs: Any = dataclasses.make_dataclass(
    "ServerArgs",
    [("model_path", str), *((flag.field, Any, dataclasses.field(default=flag.default)) for flag in (*FLAGS, *ABSENT))],
    bases=(_Made,),
)


def prepare_server_args(words: Sequence[str]) -> Any:
    """Return the options of a command line; what it says wins over the file that --config names.

    Raises ValueError for a malformed file and for options that do not fit; argparse ends the process with 2.
    """
    parser = argparse.ArgumentParser(prog="launch_server.py", allow_abbrev=False)
    ServerArgs.add_cli_args(parser)
    return ServerArgs.from_cli_args(parser.parse_args(_with_file(list(words))))


def _with_file(words: list[str]) -> list[str]:
    if "--config" not in words:
        return words
    at = words.index("--config")
    if words.count("--config") > 1 or at == len(words) - 1:
        raise ValueError("--config is given once, with one file.")
    return [*config_words(Path(words[at + 1])), *words[:at], *words[at + 2 :]]


def config_words(file: Path) -> list[str]:
    """Return a file's keys as flags. Raises ValueError when it is missing, no YAML file or no mapping."""
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise ValueError(f"Config file must be YAML format, got: {file.suffix}")
    if not file.exists():
        raise ValueError(f"Config file not found: {file}")
    options = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    if not isinstance(options, dict):
        raise ValueError("Config file must contain a dictionary at root level")
    return [argument for key, value in options.items() for argument in _words(key, value)]


def _words(key: str, value: Any) -> list[str]:
    if value is False or value == []:
        return []
    items = [] if value is True else value if isinstance(value, list) else [value]
    return [f"--{key}", *(str(item) for item in items)]
