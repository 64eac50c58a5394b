"""`python3 -m sglang.launch_server --model-path MODEL [FLAGS]`: loads, listens, warms up.

In 0.5.8 `launch_server` (entrypoints/http_server.py:1698) has `_launch_subprocesses` wait for the model
(`_wait_for_scheduler_ready`, entrypoints/engine.py:1013) and binds its port only then, in `uvicorn.run` (:1795); until
its own first request is answered (`_wait_and_warmup`, :1649) /health says 503 (:466), while all else is answered.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import sys
import threading
import time
import traceback
from typing import Any

import uvicorn

from ..common.counting import CountingEngine
from ..engine import gpus, log
from ..engine.checkpoint import Checkpoint, open_checkpoint, resolve
from ..engine.dialects import Harmony, Plain
from ..engine.faults import Faults
from ..engine.loading import exit_at_once, load_weights, open_draft, take_time
from ..engine.serve import listen
from . import __version__, nodes
from .app import SglangServer, application
from .server_args import prepare_server_args

_STAGES = ("Load weight begin", "Capture cuda graph begin", "Warm up")
_WARM_UP_SECONDS = 1


def _form(text: str, level: str) -> str:
    mark = {"I": "", "W": "WARNING ", "E": "ERROR "}[level]
    return f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {mark}{text}"


def _faults(options: dict[str, Any]) -> Faults:
    facts = {f"option.{key}": value for key, value in options.items()}
    drafting = options["speculative_algorithm"] is not None
    return Faults(
        facts | {"version": __version__, "port": options["port"], "model": _name(options), "drafting": drafting}
    )


def _name(options: dict[str, Any]) -> str:
    return str(options["served_model_name"] or options["model_path"])


def _engine(options: dict[str, Any], base: Checkpoint, faults: Faults) -> CountingEngine:
    algorithm = options["speculative_algorithm"]
    drafted = {"max_draft_len": _draft_length(options), "decoding_type": algorithm} if algorithm else {}
    settings = {
        "max_batch_size": options["max_running_requests"] or 256,
        "max_seq_len": options["context_length"] or base.config.get("max_position_embeddings"),
        "stream_interval": options["stream_interval"],
        "speculative_config": drafted,
    }
    dialect = Harmony() if base.is_gpt_oss else Plain()
    return CountingEngine(_name(options), settings, dialect, faults, served=options)


def _draft_length(options: dict[str, Any]) -> int:
    """Return how many tokens are drafted at a time: the steps of a chain, or a block without its first token."""
    block = options["speculative_num_draft_tokens"]
    return int(options["speculative_num_steps"] or (block - 1 if block else 3))


def _load(base: Checkpoint, options: dict[str, Any], faults: Faults) -> None:
    models = [base]
    if options["speculative_draft_model_path"]:
        eagle = options["speculative_algorithm"].startswith("EAGLE")
        models.append(open_draft(options["speculative_draft_model_path"], base, eagle))
    for checkpoint in models:
        load_weights(checkpoint)
    take_time(base.bytes_on_disk(), faults, _STAGES)


def _load_or_die(base: Checkpoint, options: dict[str, Any], faults: Faults) -> None:
    """Load as the real one's scheduler does: a process of its own, whose end ends the server."""
    try:
        _load(base, options, faults)
    except Exception:
        log.emit(f"Scheduler hit an exception: {traceback.format_exc()}", "E")
        log.emit("Received sigquit from a child process. It usually means the child failed.", "E")
        os._exit(1)


def _warm_up(server: SglangServer, web: uvicorn.Server) -> None:
    """Be ready once it listens and has answered a request of its own, unless an option skips that."""
    if not server.engine.served["skip_server_warmup"]:
        while not web.started:
            time.sleep(0.1)
        time.sleep(_WARM_UP_SECONDS)
    server.ready = True
    log.emit("The server is fired up and ready to roll!")


def _check_gpus(options: dict[str, Any]) -> None:
    visible, world = gpus.count(), options["tp_size"] * options["pp_size"] // options["nnodes"]
    if visible == 0:
        raise RuntimeError("No accelerator (CUDA, XPU, HPU, NPU, MUSA) is available.")
    if world > visible:
        raise RuntimeError(f"CUDA error: invalid device ordinal (world size {world}, but {visible} GPU(s) are visible)")


def _bound(args: Any) -> socket.socket:
    return listen.bound(args.host, args.port, socket.SO_REUSEADDR)  # as uvicorn.run's event loop does


def main() -> None:
    """Start from the shell; SIGTERM and SIGINT end it with 0 at any time, as PID 1 too."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, exit_at_once)
    log.use(_form)
    log.configure(os.environ.get("SGLANG_LOGGING_CONFIG_PATH"))
    args = prepare_server_args(sys.argv[1:])
    # The real one writes its key there too (sgl-project/sglang#37457).
    log.named_line("sglang.srt.entrypoints.engine", f"server_args={args}")
    options = dataclasses.asdict(args)
    nodes.check(options)
    _check_gpus(options)
    base = open_checkpoint(resolve(args.model_path))
    faults = _faults(options)
    nodes.meet(options)
    _load_or_die(base, options, faults)
    if nodes.rank_of(options) > 0:
        listen.server(nodes.health_alone()).run(sockets=[_bound(args)])
        return
    server = SglangServer(_engine(options, base, faults))
    listen.arm_death(server.engine)
    web = listen.server(application(server))
    threading.Thread(target=_warm_up, args=(server, web), daemon=True).start()
    web.run(sockets=[_bound(args)])
