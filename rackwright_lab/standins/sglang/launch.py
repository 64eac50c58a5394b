"""`python3 -m sglang.launch_server --model-path MODEL [FLAGS]`: listens at once and says 503 until it has loaded."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any

from ..common.counting import CountingEngine
from ..engine import gpus, log
from ..engine.checkpoint import Checkpoint, open_checkpoint, resolve
from ..engine.dialects import Harmony, Plain
from ..engine.faults import Faults
from ..engine.loading import exit_at_once, load_weights, open_draft, take_time
from ..engine.serve import listen
from . import __version__
from .app import SglangServer, application
from .server_args import prepare_server_args

_STAGES = ("Load weight begin", "Capture cuda graph begin", "Warm up")


def _form(text: str, level: str) -> str:
    mark = {"I": "", "W": "WARNING ", "E": "ERROR "}[level]
    return f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {mark}{text}"


def _engine(options: dict[str, Any], base: Checkpoint) -> CountingEngine:
    algorithm = options["speculative_algorithm"]
    drafted = {"max_draft_len": options["speculative_num_steps"] or 3, "decoding_type": algorithm} if algorithm else {}
    settings = {
        "max_batch_size": options["max_running_requests"] or 256,
        "max_seq_len": options["context_length"] or base.config.get("max_position_embeddings"),
        "stream_interval": options["stream_interval"],
        "speculative_config": drafted,
    }
    name = options["served_model_name"] or options["model_path"]
    facts = {f"option.{key}": value for key, value in options.items()}
    drafting = algorithm is not None
    facts |= {"version": __version__, "port": options["port"], "model": name, "drafting": drafting}
    dialect = Harmony() if base.is_gpt_oss else Plain()
    return CountingEngine(name, settings, dialect, Faults(facts), served=options)


def _load(server: SglangServer, base: Checkpoint, options: dict[str, Any]) -> None:
    models = [base]
    if options["speculative_draft_model_path"]:
        eagle = options["speculative_algorithm"].startswith("EAGLE")
        models.append(open_draft(options["speculative_draft_model_path"], base, eagle))
    for checkpoint in models:
        load_weights(checkpoint)
    take_time(base.bytes_on_disk(), server.engine.faults, _STAGES)
    log.line("The server is fired up and ready to roll!")
    server.ready = True


def _load_or_die(server: SglangServer, base: Checkpoint, options: dict[str, Any]) -> None:
    """Load in a thread of its own: the real one's scheduler is a process, whose end ends the server."""
    try:
        _load(server, base, options)
    except Exception:
        log.line(f"Scheduler hit an exception: {traceback.format_exc()}", "E")
        log.line("Received sigquit from a child process. It usually means the child failed.", "E")
        os._exit(1)


def _check_gpus(options: dict[str, Any]) -> None:
    seen, world = gpus.count(), options["tp_size"] * options["pp_size"]
    if seen == 0:
        raise RuntimeError("No accelerator (CUDA, XPU, HPU, NPU, MUSA) is available.")
    if world > seen:
        raise RuntimeError(f"CUDA error: invalid device ordinal (world size {world}, but {seen} GPU(s) are visible)")


def main() -> None:
    """Start from the shell; SIGTERM and SIGINT end it with 0 at any time, as PID 1 too."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, exit_at_once)
    log.use(_form)
    args = prepare_server_args(sys.argv[1:])
    log.line(f"server_args={args}")
    options = dataclasses.asdict(args)
    _check_gpus(options)
    base = open_checkpoint(resolve(args.model_path))
    server = SglangServer(_engine(options, base))
    bound = listen.bound(args.host, args.port)
    listen.arm_death(server.engine)
    threading.Thread(target=_load_or_die, args=(server, base, options), daemon=True).start()
    listen.server(application(server)).run(sockets=[bound])
