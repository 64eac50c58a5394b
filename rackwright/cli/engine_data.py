"""`rackwright engine-data INVENTORY`: what the hosts' own images accept, read out of them and kept in the site."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.adapter.run.session import Connected, chosen_hosts, connected
from rackwright.cli.inventories import add_hosts, add_inventory
from rackwright.concerns.options import LIMIT, WantedOptions, schema_script, walk_script
from rackwright.concerns.options import wanted as wanted_options
from rackwright.concerns.read_host import read_host
from rackwright.engines.exported import write
from rackwright.exit_codes import done_if
from rackwright.inspect.read_hosts import in_parallel
from rackwright.loading.files import site_root
from rackwright.masks import without_logins
from rackwright.messages import ReadingError, coded, paragraph, printable
from rackwright.plan.change import Shell
from rackwright.remote.commands import command_of as command
from rackwright.remote.commands import remote
from rackwright.remote.errors import StepFailedError
from rackwright.settings.host_settings import HostSettings
from rackwright.sources.lockfile import Locks
from rackwright_engines.options.json_schema import SpoiltSchemaError, data_of, version_of
from rackwright_engines.version import parse_version

VERSION = re.compile(r"[0-9][0-9A-Za-z.+]{0,59}")


@dataclass(frozen=True)
class Walked:
    """The data of one image, or the reason for their absence."""

    image: str
    digest: str
    engine: str
    options: Mapping[str, Any]
    why: str = ""


def add_parser(subparsers: Any) -> None:
    """Add `engine-data` to the command line."""
    parser = subparsers.add_parser("engine-data", help="keep what the hosts' own images accept, for `check`")
    add_inventory(parser)
    add_hosts(parser)
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Ask each image once, on the first host that has it; 1 when one says nothing or a host cannot be reached.

    Raises RackwrightError for a wrong inventory, and when no host can be reached.
    """
    entries = chosen_hosts(args.inventory, args.limit)
    root = site_root(Path(args.inventory).expanduser())
    locks = Locks(root)
    with connected(entries) as hosts:
        answers = in_parallel(hosts, lambda one: _host(one, locks.pin(one.entry.settings)))
    well = True
    for entry in entries:
        lines, good = _host_lines(root, answers.get(entry.name, "cannot be reached"))
        well = well and good
        print(paragraph("\n".join(f"{entry.name}: {text}" for text in lines)))
    return done_if(well)


def _host(one: Connected, settings: HostSettings) -> list[Walked] | str:
    try:
        reading, _ = read_host(one.host, settings)
        return [
            _walk(one, options, settings)
            for options in {
                options.release.spec.image: options for options in wanted_options(settings, reading)
            }.values()
        ]
    except (ReadingError, StepFailedError) as error:
        return str(error)


def _walk(one: Connected, wanted: WantedOptions, settings: HostSettings) -> Walked:
    """Take the image's own schema where it ships one; else walk its classes, which needs a GPU."""
    spec = wanted.release.spec
    named = settings.all_endpoints[spec.name].image
    digest = spec.image.rpartition("@")[2]
    if wanted.engine_kind == "tensorrt-llm":
        found = read(named, digest, _printed(one, schema_script(wanted))[0])
        if found:
            return found
    if wanted.crowded:
        return Walked(named, digest, wanted.engine_kind, {}, "this host serves, and shares its memory with the GPU")
    return walked(named, digest, wanted.engine_kind, *_printed(one, walk_script(wanted)))


def _printed(one: Connected, script: str) -> tuple[str, str]:
    """Return what an image printed, and what went wrong."""
    ok, output = remote(one.host, command(Shell(script, timeout=LIMIT + 60)), quiet=True)
    return "".join(output.stdout_lines) if ok else "", " ".join(output.stderr_lines)


def read(image: str, digest: str, printed: str) -> Walked | None:
    """Return the schema of an image as data, or why it is not taken; None where it ships none or could not be asked."""
    try:
        answer = json.loads(printed)
        text, why = answer.get("schema"), str(answer.get("why", ""))
    except (ValueError, AttributeError):
        return None
    if not why and not isinstance(text, str):
        return None
    try:
        options = _schema_options(str(text), str(answer.get("version")), why)
    except SpoiltSchemaError as error:
        return Walked(image, digest, "tensorrt-llm", {}, _unused(error))
    return Walked(image, digest, "tensorrt-llm", options)


def _schema_options(text: str, version: str, why: str) -> dict[str, Any]:
    if why:
        raise SpoiltSchemaError(why)
    named = version if VERSION.fullmatch(version) and parse_version(version) else version_of(text)
    if not named:
        raise SpoiltSchemaError("neither it nor the package names a version")
    return {"version": named, "source": "its own schema", **data_of(text)}


def _unused(error: SpoiltSchemaError) -> str:
    text = (
        f"the schema that it ships cannot be used: {without_logins(paragraph(str(error)))}; "
        "what is known of its version counts as before; "
        "next: rackwright check INVENTORY --in-image"
    )
    return coded(error.code, text)


def walked(image: str, digest: str, engine: str, output: str, errors: str = "") -> Walked:
    """Return the answer of an image, or why it is missing. output: what it printed, as a line of JSON."""
    try:
        options = json.loads(output)
        if "why" in options:
            return Walked(image, digest, engine, {}, str(options["why"]))
        if not options["version"] or not options["sections"]:
            raise KeyError("sections")
    except (ValueError, KeyError, TypeError):
        return Walked(image, digest, engine, {}, printable(errors, longest=500) or "its answer could not be read")
    return Walked(image, digest, engine, options)


def _host_lines(root: Path, found: Sequence[Walked] | str) -> tuple[list[str], bool]:
    """Return the lines for one host, and whether all of its images have answered; what they said is kept."""
    if isinstance(found, str):
        return [found], False
    if not found:
        return ["no image is here yet; next: deploy, or rackwright plan INVENTORY"], False
    return [_store(root, one) for one in found], not any(one.why for one in found)


def _store(root: Path, one: Walked) -> str:
    if one.why:
        return f"{one.image}: its options could not be read: {printable(one.why)}"
    path = write(root, one.image, one.digest, one.engine, dict(one.options))
    count = sum(map(len, one.options["sections"].values()))
    source = f" from {one.options['source']}" if "source" in one.options else ""
    return f"{one.image}: {count} options of {one.engine} {one.options['version']}{source} in {path.relative_to(root)}"
