"""The catalogue: every profile that this version ships, with its files and what a reader chooses by.

rackwright/data/profiles.yaml lists each profile's files; machine, model and engine are read from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from rackwright.messages import RackwrightError
from rackwright.profiles.content import Files, sha256_of
from rackwright_engines.advice import Load, advise
from rackwright_engines.data import PRODUCTS, table
from rackwright_engines.fit.gpu import gpu_type
from rackwright_engines.quick_yaml import load_yaml

PACKAGE = Path(__file__).parent.parent
FOLDERS = (PACKAGE / "site" / "group_vars", PACKAGE.parent / "group_vars")
"""Folders of the shipped files: in a wheel, and in a checkout."""
DEFAULT_ENGINE = "tensorrt-llm"
URL = re.compile(r"^#.*?(https://\S+)", re.MULTILINE)
USUAL = Load(context=8192, concurrency=32)
"""The load by which profiles are ordered without another one."""
NOTHING = "nothing"
"""Of `seen_on`."""


@dataclass(frozen=True)
class Profile:
    """One shipped profile. Texts are as people write them; the files are those of group_vars."""

    name: str
    machine: str
    gpu_models: tuple[str, ...]
    gpu_count: int
    """GPUs that a host must have."""
    architecture: str
    """`x86_64` or `aarch64`; empty where it is for both."""
    hosts: int
    """Hosts that serve one endpoint together."""
    model: str
    engine: str
    """TensorRT-LLM, vLLM or SGLang."""
    image: str
    version: str
    drafting: str
    """Draft and its tokens; empty without drafting."""
    source: str
    """The address where its options are published, or a sentence where the source has none."""
    seen_on: str
    """Real hardware on which it has answered, or `nothing`."""
    inventory: str
    """Stem of the shipped inventory for its machine: `gb200` for inventory/gb200.py."""
    files: Files
    sha256: str


def names() -> tuple[str, ...]:
    """Return the names of all profiles, machine by machine, what serves gpt-oss-120b first."""
    return tuple(_rows())


def group_names() -> frozenset[str]:
    """Return the names of all groups that have a shipped file: the profiles, and the parents of some."""
    return frozenset(stem for row in _rows().values() for stem in row["files"])


@cache
def profile(name: str) -> Profile:
    """Return a profile. Raises KeyError for an unknown name, RackwrightError where its files are missing."""
    row = _rows()[name]
    texts = {f"{stem}.yml": _text(f"{stem}.yml") for stem in row["files"]}
    values = topmost(texts.values())
    hardware, published = values.get("hardware", {}), _published(name)
    gpus = tuple(hardware.get("gpu_models", ())) or tuple(dict.fromkeys(one["gpu"] for one in published))
    return Profile(
        name=name,
        machine=hardware.get("machine", "any host"),
        gpu_models=gpus,
        gpu_count=hardware.get("gpu_count") or max((one["gpus"] for one in published), default=1),
        architecture=hardware.get("architecture", ""),
        hosts=values.get("hosts", 1),
        model=values["model"]["repository"],
        engine=PRODUCTS[values.get("engine_kind", DEFAULT_ENGINE)],
        image=str(values["image"]),
        version=str(values["image"]).rpartition(":")[2].removeprefix("v"),
        drafting=row.get("drafting", ""),
        source=_source(texts, published),
        seen_on=row.get("seen_on", NOTHING),
        inventory=row["inventory"],
        files=texts,
        sha256=sha256_of(texts),
    )


def fitting(gpu_model: str, gpu_count: int, architecture: str) -> tuple[str, ...]:
    """Return the profiles that fit a host, best first: what `rackwright advise` says for a usual load.

    Those for one host come first, those that are known not to run are left out. gpu_model: as nvidia-smi names it.
    """
    gpu = gpu_type(gpu_model)
    if gpu is None:
        return ()
    fit = [name for name in names() if _fits(profile(name), gpu.name, gpu_count, architecture)]
    advised = [one.profile for one in advise(gpu.name, USUAL)]
    failing = {one["name"] for one in table("measured")["profiles"] if one["gpu"] == gpu.name and "fails" in one}
    ranked = [*(name for name in advised if name in fit), *(name for name in fit if name not in advised)]
    return tuple(sorted((name for name in ranked if name not in failing), key=lambda name: profile(name).hosts))


def for_gpu(gpu_model: str) -> tuple[str, ...]:
    """Return the profiles for a GPU, whatever the host. Empty for a GPU that none is for."""
    gpu = gpu_type(gpu_model)
    return tuple(name for name in names() if gpu and gpu.name in profile(name).gpu_models)


def _fits(one: Profile, gpu: str, count: int, architecture: str) -> bool:
    return gpu in one.gpu_models and one.gpu_count <= count and one.architecture in ("", architecture)


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = load_yaml((files("rackwright") / "data" / "profiles.yaml").read_text())
    return found


def _published(name: str) -> list[Mapping[str, Any]]:
    return [row for row in table("measured")["profiles"] if row["name"] == name]


def _text(file: str) -> str:
    for folder in FOLDERS:
        if (folder / file).is_file():
            return (folder / file).read_text(encoding="utf-8")
    text = "this installation has no site files; next: pip install --force-reinstall CHECKOUT, or its wheel"
    raise RackwrightError(text, code="RW1005")


def topmost(texts: Iterable[str]) -> dict[str, Any]:
    """Return the strongest value of each key at the top; `hardware` is merged key by key, as in the settings."""
    found: dict[str, Any] = {}
    for text in texts:
        values = load_yaml(text) or {}
        hardware = {**found.get("hardware", {}), **values.get("hardware", {})}
        found |= values | ({"hardware": hardware} if hardware else {})
    return found


def _source(texts: Files, published: Iterable[Mapping[str, Any]]) -> str:
    """Return the address in the head of the strongest file that has one, or what the figures' table says."""
    addresses = [address for text in reversed([*texts.values()]) for address in URL.findall(text)[:1]]
    named = [str(table("measured")["sources"][one["from"]]) for one in published]
    return next(iter([*addresses, *named]), "")
