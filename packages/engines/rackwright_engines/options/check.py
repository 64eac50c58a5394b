"""Checks an engine's options against the data of its version: unknown keys, types, values, bounds, and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rackwright_engines.finding import Finding, Level
from rackwright_engines.options.inexact import ImageFacts, changed_image, inexact, nearest_version
from rackwright_engines.options.keys import OptionSet, check_section
from rackwright_engines.options.pairs import pairs
from rackwright_engines.options.rules import rules, switches
from rackwright_engines.options.schema import VersionLine, line_for, neighbours
from rackwright_engines.version import bare

AUTODEPLOY = "_autodeploy"
AS_TAGGED = ImageFacts()


def check_options(
    engine_kind: str,
    version: str,
    options: Mapping[str, Any],
    image: VersionLine | None = None,
    facts: ImageFacts = AS_TAGGED,
    arguments: Sequence[str] = (),
) -> list[Finding]:
    """What is wrong with the options of one engine for one version.

    engine_kind: `tensorrt-llm`, `vllm` or `sglang`. version: as the image's tag names it; when no line was written
    for it, the lines before and after it count, a warning says so, and only what is one edit from a known name is
    refused. options: the engine's own YAML. image: what the very image accepts, where it was asked; it counts alone
    then. facts: what else is known of the image. arguments: the command line's own words, for rules between options.
    Returns findings with paths below the options; an empty list when nothing is to be said.
    """
    if engine_kind == "tensorrt-llm" and AUTODEPLOY in (options.get("backend"), facts.backend):
        return [_autodeploy()]
    line, known = line_for(engine_kind, bare(version)) if image is None else (image, True)
    if not known:
        around = neighbours(engine_kind, bare(version))
        return inexact(
            lambda one: _checked(one, nearest_version(one, version), options, arguments), around, version, facts
        )
    found = _checked(line, version, options, arguments)
    return changed_image(found, line, facts) if facts.changed and image is None else found


def _autodeploy() -> Finding:
    text = f"not checked: with backend {AUTODEPLOY} the file is of another class, whose keys are not known here"
    return Finding((), text, Level.NOTE, code="RW0314")


def _checked(line: VersionLine, version: str, options: Mapping[str, Any], arguments: Sequence[str]) -> list[Finding]:
    found = list(check_section(line, line.root, options, (), OptionSet(version, options)))
    if line.engine == "tensorrt-llm":
        return found + rules(line, options)
    left_out = switches(line, options) if line.engine == "vllm" else []
    return [*found, *left_out, *pairs(line, version, options, arguments)]
