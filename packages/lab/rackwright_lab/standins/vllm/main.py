"""`vllm serve MODEL [FLAGS]`: binds at once, loads, and only then listens."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from typing import Any

from ..common.counting import CountingEngine
from ..engine import log
from ..engine.checkpoint import Checkpoint
from ..engine.dialects import Dialect, Harmony, Plain
from ..engine.faults import Faults
from ..engine.loading import exit_at_once, load_weights, take_time
from ..engine.serve import listen
from . import __version__
from .app import application
from .arg_utils import AsyncEngineArgs, VllmConfig
from .arguments import FlexibleArgumentParser, make_arg_parser, validate_parsed_serve_args
from .nodes import Nodes, run_headless

_STAGES = ("Starting to load model", "torch.compile takes a while", "Capturing CUDA graphs")
_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR"}


def _form(text: str, level: str) -> str:
    return f"(APIServer pid={os.getpid()}) {_LEVELS[level]} {time.strftime('%m-%d %H:%M:%S')} [serve.py] {text}"


def _facts(args: argparse.Namespace, config: VllmConfig) -> dict[str, Any]:
    facts = {f"option.{name}": value for name, value in config.options.items()}
    drafting = config.speculative is not None
    return facts | {"version": __version__, "port": args.port, "model": args.model, "drafting": drafting}


def _engine_options(config: VllmConfig) -> dict[str, Any]:
    section = config.speculative
    drafted = {"max_draft_len": section.num_speculative_tokens, "decoding_type": section.method} if section else {}
    return {
        "max_batch_size": config.options["max_num_seqs"] or 256,
        "max_seq_len": config.longest,
        "stream_interval": config.options["stream_interval"],
        "speculative_config": drafted,
        "temperature": (config.options["override_generation_config"] or {}).get("temperature", 1.0),
    }


def _load(config: VllmConfig, faults: Faults) -> None:
    for checkpoint in filter(None, (config.base, config.draft)):
        load_weights(checkpoint)
    if config.draft is not None:
        _check_draft(config.draft)
    take_time(config.base.bytes_on_disk(), faults, _STAGES)


def _check_draft(draft: Checkpoint) -> None:
    """Refuse the draft for long contexts, which this version was measured not to start with."""
    if draft.config.get("rope_scaling"):
        log.emit("EngineCore failed to start: the draft model's rope_scaling is not supported.", "E")
        raise RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {}")


def _dialect(base: Checkpoint) -> Dialect:
    if not base.is_gpt_oss:
        return Plain()
    harmony = Harmony()
    # The real server asks for the vocabulary's stop tokens before it listens: without it, it does not start.
    harmony.prompt_tokens({"messages": [{"role": "user", "content": ""}]})
    return harmony


def serve(args: argparse.Namespace) -> None:
    """Serve until a signal ends it. Raises what a start-up fails with."""
    log.emit(f"vLLM API server version {__version__}")
    if args.headless:
        run_headless(AsyncEngineArgs.from_cli_args(args).create_engine_config(headless=True).options)
    # vllm/entrypoints/openai/api_server.py, create_server_socket
    bound = listen.bound(args.host or "0.0.0.0", args.port, socket.SO_REUSEADDR, socket.SO_REUSEPORT)
    config = AsyncEngineArgs.from_cli_args(args).create_engine_config()
    # Up to 0.29 the real one writes its key there too (vllm-project/vllm#52523).
    shown = {**config.options, **({"api_key": args.api_key} if args.api_key else {})}
    log.named_line("vllm.entrypoints.utils", f"non-default args: {shown}")
    faults = Faults(_facts(args, config))
    nodes = Nodes()
    nodes.meet(config.options)
    _load(config, faults)
    served = {**vars(args), "model": args.model}
    name = (args.served_model_name or [args.model])[0]
    engine = CountingEngine(name, _engine_options(config), _dialect(config.base), faults, served=served)
    listen.arm_death(engine)
    listen.server(application(engine, nodes)).run(sockets=[bound])


def main() -> None:
    """Start from the shell; SIGTERM and SIGINT end it with 0 at any time, as PID 1 too."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, exit_at_once)
    log.use(_form)
    log.configure(os.environ.get("VLLM_LOGGING_CONFIG_PATH"))
    if sys.argv[1:2] != ["serve"]:
        sys.exit("usage: vllm serve [model_tag] [options]")
    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
    args = parser.parse_args(sys.argv[2:])
    args.model = args.model_tag or args.model
    validate_parsed_serve_args(args)
    serve(args)
