"""The shape that advice is asked for: by words of the command line, or as a host of an inventory has it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from rackwright.adapter.run.session import chosen_hosts, connected
from rackwright.cli.runs import root_of
from rackwright.inspect.gpu_facts import GpuFacts, gpu_facts
from rackwright.loading.files import site_root
from rackwright.loading.host import InventoryHost
from rackwright.messages import SettingsError
from rackwright.profiles.offers import Shape
from rackwright.profiles.presets import PRESETS_FILE
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.version import bare


@dataclass(frozen=True)
class WantedShape:
    """A shape, the site that it is asked in, and whose it is."""

    shape: Shape
    root: Path
    presets_file: str = PRESETS_FILE
    of: str = ""
    """`HOST ENDPOINT`; empty for one by words."""


def add_shape(parser: argparse.ArgumentParser) -> None:
    """Add what a shape is said by."""
    parser.add_argument("--gpu", metavar="NAME", help="the GPU's name, for example B200 or 'RTX PRO 6000'")
    model = "only presets of this model: its repository, or the last part of it"
    parser.add_argument("--model", default="", metavar="NAME", help=model)
    parser.add_argument("--gpus", type=int, metavar="N", help="only presets for so many GPUs")
    inventory = (
        "take model, GPUs, engine and driver from a host of this inventory, over SSH: the first one that --limit "
        "chooses"
    )
    parser.add_argument("-i", "--inventory", dest="from_hosts", metavar="INVENTORY", help=inventory)


def wanted_shape(args: argparse.Namespace) -> WantedShape:
    """Return the shape. Raises SettingsError where nothing says the GPU."""
    if not args.from_hosts:
        if not args.gpu:
            raise SettingsError(
                "advise needs --gpu NAME, or -i INVENTORY whose host has the GPU; next: rackwright advise --gpu B200 "
                "--context 8k --concurrency 32",
                code="RW1064",
            )
        return WantedShape(Shape(args.gpu, args.model, args.gpus), root_of(args))
    entry = chosen_hosts(args.from_hosts, args.limit)[0]
    with connected([entry]) as (one,):
        facts = gpu_facts(one)
    name, endpoint = _endpoint(entry)
    shape = shape_of(entry, endpoint, facts, args)
    root = site_root(Path(args.from_hosts)).absolute()
    return WantedShape(shape, root, entry.settings.paths.presets_file, f"{entry.name} {name}")


def presets_path(args: argparse.Namespace) -> Path:
    """Return the file of presets of the site, or of the inventory's host with `-i`."""
    if not args.from_hosts:
        return root_of(args) / PRESETS_FILE
    entry = chosen_hosts(args.from_hosts, args.limit)[0]
    return site_root(Path(args.from_hosts)).absolute() / entry.settings.paths.presets_file


def _endpoint(entry: InventoryHost) -> tuple[str, EndpointSettings]:
    found = entry.settings.all_endpoints
    if not found:
        raise SettingsError(
            f"{entry.name} serves no endpoint: its shape is not known; next: --limit with a host that does",
            code="RW1094",
        )
    return next(iter(found.items()))


def shape_of(entry: InventoryHost, endpoint: EndpointSettings, facts: GpuFacts, args: argparse.Namespace) -> Shape:
    """Return the shape of an endpoint. Words of the command line count before what host and settings say."""
    listed = entry.settings.hardware.gpu_models
    gpu = args.gpu or next(iter(facts.products or listed), "")
    if not gpu:
        raise SettingsError(
            f"{entry.name}: nvidia-smi does not answer there: its shape is not known; next: the same command with "
            "--gpu NAME",
            code="RW1094",
        )
    here = len(facts.products) or entry.settings.hardware.gpu_count or 1
    count = (here if endpoint.gpus == "all" else len(endpoint.gpus)) * endpoint.size
    model = endpoint.model.repository if endpoint.model else ""
    version = bare(endpoint.version)
    return Shape(gpu, args.model or model, args.gpus or count, endpoint.engine_kind, version, facts.driver)
