"""A profile on the lab's hosts: they look like DGX B200, so a site says what its profile cannot have there. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rackwright.profiles.catalog import Profile, profile, topmost
from rackwright_lab.servers.image import MPI_APART, REPOSITORY

INVENTORY, VARIABLES = Path("inventory/lab.py"), Path("group_vars/lab.yml")
POSED = "b200"
"""The profile of the machines that the lab's hosts look like."""
GPUS = 8
ABSENT = {"unified_memory": False, "memory_minimum_gib": None, "system": None}
"""Fields of `hardware` that the hosts lack, as a site says them."""
PLAIN = ("architecture", "gpu_models", "compute_capability")
"""Keys of `hardware` that the hosts have otherwise."""
PLAIN_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9_]*( [A-Za-z0-9]+)*")
"""Texts that YAML reads as such without quotes."""
FABRIC = re.compile(r"NCCL_(IB|MNNVL|NVLS|CUMEM|NET_PLUGIN)|UCX_")
"""Environment of RDMA and of NVLink between hosts."""


def lab_site(shipped: Mapping[Path, str], name: str, group: str) -> dict[Path, str]:
    """Return the lab's inventory and variables for a profile, from the shipped ones.

    name: the profile's. group: the site's group that has it.
    """
    chosen = profile(name)
    inventory = shipped[INVENTORY].replace(f'"{POSED}": [', f"{json.dumps(group)}: [")
    if chosen.hosts > 1:
        inventory = inventory.replace("hosts()", f"hosts(together={chosen.hosts})")
    variables = shipped[VARIABLES].replace(f"group_vars/{POSED}.yml", f"group_vars/{group}.yml")
    rows = [*differences(chosen)]
    head = f"\n# Profile {name} on these hosts, which look like DGX B200; real ones need none of this.\n"
    more = head + "".join(f"{row}\n" for row in rows) if rows else ""
    return {INVENTORY: inventory, VARIABLES: variables + more}


def differences(chosen: Profile) -> Iterator[str]:
    """Yield the rows of YAML that a profile needs on the lab's hosts, each below its reason."""
    values = topmost(chosen.files.values())
    if changed := hardware(values.get("hardware", {})):
        yield f"# The profile is for {chosen.machine}."
        yield f"hardware: {_flow(changed)}"
    if "gpus" not in values and chosen.gpu_count < GPUS:
        yield f"gpus: {_flow([*range(chosen.gpu_count)])} # of the 8 here, as many as the profile's machine has"
    if values.get("group_transport", "any") != "any":
        yield f"group_transport: any # the profile says {values['group_transport']}; these hosts have plain TCP alone"
    yield from _environment(values.get("environment", {}))
    if chosen.hosts > 1 and (image := _with_mpi(chosen.image)):
        yield f"image: {image} # that version with Open MPI, which starts the ranks"


def hardware(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of `hardware` that must be others on the lab's hosts. wanted: the profile's."""
    here = topmost(profile(POSED).files.values())["hardware"]
    changed = {key: here[key] for key in PLAIN if key in wanted and wanted[key] != here[key]}
    changed |= {key: value for key, value in ABSENT.items() if wanted.get(key, value) != value}
    return {"machine": f"{here['machine']} of the lab", **changed} if changed else {}


def _environment(wanted: Mapping[str, str]) -> Iterator[str]:
    fabric = [name for name in wanted if FABRIC.match(name)]
    if fabric:
        others = {name: value for name, value in wanted.items() if name not in fabric}
        yield f"# There is no RDMA and no NVLink between these hosts, so without {', '.join(fabric)}."
        yield f"environment: {_flow(others)}"


def _with_mpi(image: str) -> str:
    """Return the tag of the same version with Open MPI, where the lab's registry has that apart; empty otherwise."""
    repository, _, version = image.rpartition(":")
    tag = MPI_APART.get(version) if repository.endswith(f"/{REPOSITORY}") else None
    return f"{repository}:{tag}" if tag else ""


def _flow(value: Any) -> str:
    """Return a value in YAML's flow style, in one line."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key}: {_flow(one)}" for key, one in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return value if isinstance(value, str) and PLAIN_WORDS.fullmatch(value) else json.dumps(value)
