"""`rackwright.presets.yml` at the site's root: settings that a measurement on hosts of the site proved, with figures.

People read and commit it, so it has no key for a host, an endpoint's name, an address or a secret; the bench decides
which settings it may hold. An entry that is proved again takes the place of the former one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rackwright.messages import SettingsError, writing
from rackwright.one_writer import one_writer
from rackwright_engines.quick_yaml import load_foreign_yaml

PRESETS_FILE = "rackwright.presets.yml"
PRESET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
MOST_BYTES = 4 << 20
HEAD = """\
# Written by `rackwright bench` after `--compare` or `--tune`: settings that were measured on hosts of this site and
# proved the better ones, with their figures. Keep it under version control; remove an entry that no longer counts.
# For a load of yours: rackwright advise; an entry's settings alone: rackwright advise --preset NAME
"""
STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)
Text = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else str(value))]
"""YAML reads `2026-11-27` and `0.10` as something else, where a person has written them without quotes."""


class PresetCell(BaseModel):
    """The figures of one cell of the suite. Milliseconds, tokens, tokens a second."""

    model_config = STRICT
    input: int = Field(ge=1)
    """Of a prompt, on average, as the server counted them."""
    output: int = Field(ge=1)
    concurrency: int = Field(ge=1)
    rate: float | None = None
    """Requests a second, where they waited for one."""
    output_rate: float = Field(ge=0)
    total_rate: float = Field(ge=0)
    ttft_p50: float
    ttft_p95: float
    itl_p50: float
    against: str | None = None
    """The variant beside which `share` was measured."""
    share: float | None = None
    """Of that one's tokens a second, and the 95 % interval of it."""
    low: float | None = None
    high: float | None = None
    proven: bool = False
    """True where its settings are the ones to take for such a load."""


class Preset(BaseModel):
    """Settings of an endpoint, on what they were measured, and their proof."""

    model_config = STRICT
    model: str
    gpu: str
    """Its name, as nvidia-smi has it."""
    gpus: int = Field(ge=1)
    """GPUs that serve one endpoint."""
    engine: str
    version: Text
    driver: Text
    date: Text
    run: str
    """Its record's name, on the machine that measured."""
    suite: str
    rounds: int = Field(ge=1)
    variant: str
    proof: str
    bounds: list[str] = []
    """Bounds that each round of each cell kept."""
    context: int | None = None
    """Tokens that its settings hold; none: not known."""
    cells: dict[str, PresetCell]
    settings: dict[str, Any]
    """As group_vars have them."""
    left_out: list[str] = []
    """Keys of the settings that were measured with, whose values are private: without them it is not the same."""


class _Document(BaseModel):
    model_config = STRICT
    version: int
    presets: dict[str, Preset] = {}


def load_presets(path: Path) -> dict[str, Preset]:
    """Return the presets of a file by name; none without a file. Raises SettingsError saying what is wrong with it."""
    if not os.path.lexists(path):
        return {}
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it is not a regular file of at most {MOST_BYTES >> 20} MiB")
        content = load_foreign_yaml(path.read_text(encoding="utf-8")) or {"version": 1}
        if not isinstance(content, dict):
            raise ValueError("it must have keys, as version")
        document = _Document.model_validate(content)
        if document.version != 1:
            raise ValueError(f"version {document.version} is unknown")
        if wrong := [name for name in document.presets if not PRESET_NAME.fullmatch(name)]:
            raise ValueError(f"{wrong[0]!a} is not the name of a preset")
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise SettingsError(
            f"{path} is not a file of presets: {_short(error)}; next: git checkout {path.name}, or correct it",
            code="RW1054",
        ) from None
    return document.presets


def _short(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in error.errors()[:3])
    return " ".join(str(error).split()) or type(error).__name__


def keep_presets(path: Path, new: Mapping[str, Preset]) -> None:
    """Add presets to a file, or put them in the place of those with their names, at once or not at all.

    Raises RackwrightError: a file that cannot be read stays as it is.
    """
    with writing(path), one_writer(path.parent):
        presets = {**load_presets(path), **new}
        rows = {name: one.model_dump(exclude_defaults=True) for name, one in sorted(presets.items())}
        text = yaml.safe_dump({"version": 1, "presets": rows}, sort_keys=False, width=110, allow_unicode=True)
        target = path.resolve()
        part = target.with_name(f"{target.name}.new")
        part.write_text(HEAD + text, encoding="utf-8")
        part.replace(target)
