"""Checks an engine's options against the data of its version: unknown keys, types, values, bounds, and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.engines.finding import Finding
from rackwright.engines.options.keys import OptionSet, check_section
from rackwright.engines.options.rules import rules, switches
from rackwright.engines.options.schema import VersionLine, line_for, neighbours
from rackwright.engines.options.unknown_version import doubt, softened
from rackwright.engines.version import bare


def check_options(
    engine_kind: str, version: str, options: Mapping[str, Any], image: VersionLine | None = None
) -> list[Finding]:
    """What is wrong with the options of one engine for one version.

    engine_kind: `tensorrt-llm`, `vllm` or `sglang`. version: as the image's tag names it; when no line was written
    for it, the lines before and after it count, a warning says so, and only what neither takes is refused.
    options: the engine's own YAML. image: what the very image accepts, where it was asked; it counts alone then.
    Returns findings with paths below the options; an empty list when nothing is to be said.
    """
    line, known = line_for(engine_kind, bare(version)) if image is None else (image, True)
    if known:
        return _checked(line, version, options)
    around = neighbours(engine_kind, bare(version))
    found = [_checked(one, version, options) for one in around]
    return [doubt(engine_kind, version, around), *softened(around, found, version)]


def _checked(line: VersionLine, version: str, options: Mapping[str, Any]) -> list[Finding]:
    place = OptionSet(version, options)
    found = list(check_section(line, line.root, options, (), place))
    more = {"tensorrt-llm": rules, "vllm": switches}.get(line.engine)
    return found + (more(line, options) if more else [])
