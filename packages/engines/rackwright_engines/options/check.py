"""Checks an engine's options against the data of its version: unknown keys, types, values, bounds, and rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rackwright_engines.finding import Finding, Level
from rackwright_engines.options.inexact import ImageFacts, changed_image, inexact, nearest_version
from rackwright_engines.options.keys import OptionSet, check_json_words, check_section
from rackwright_engines.options.pairs import pairs
from rackwright_engines.options.rules import rules, switches
from rackwright_engines.options.schema import VersionLine, line_for
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
    """Return what is wrong with the options of one engine for one version.

    engine_kind: `tensorrt-llm`, `vllm` or `sglang`. version: as the image's tag names it; when no line was written
    for it, the line before it counts, a warning says so, and only what is one edit from a known name is refused.
    options: the engine's own YAML. image: what the very image accepts, where it was asked; it counts alone then.
    facts: what else is known of the image. arguments: the command line's own words, for rules between options.
    Returns findings with paths below the options; an empty list when nothing is to be said.
    """
    if engine_kind == "tensorrt-llm" and AUTODEPLOY in (options.get("backend"), facts.backend):
        return [_autodeploy()]
    return _by_line(
        lambda schema, named: _checked(schema, named, options, arguments), engine_kind, version, image, facts
    )


def check_arguments(
    engine_kind: str,
    version: str,
    arguments: Sequence[str],
    image: VersionLine | None = None,
    facts: ImageFacts = AS_TAGGED,
) -> list[Finding]:
    """Judge JSON in the words of a command line of vLLM or SGLang, as `check_options` judges their files.

    Returns findings whose paths begin with the word's index.
    """
    if engine_kind == "tensorrt-llm" or not arguments:
        return []
    found = _by_line(
        lambda schema, named: list(check_json_words(schema, arguments, OptionSet(named, {}))),
        engine_kind,
        version,
        image,
        facts,
    )
    return [one for one in found if one.path]


def _by_line(
    judge: Callable[[VersionLine, str], list[Finding]],
    engine_kind: str,
    version: str,
    image: VersionLine | None,
    facts: ImageFacts,
) -> list[Finding]:
    """Return what a judge says by the line of a version; by the one before it where it has none.

    judge: takes a line, and the version that messages name.
    """
    schema, exact = line_for(engine_kind, bare(version)) if image is None else (image, True)
    if not exact:
        return inexact(lambda one: judge(one, nearest_version(one, version)), schema, version, facts)
    found = judge(schema, version)
    return changed_image(found, schema, facts) if facts.changed and image is None else found


def _autodeploy() -> Finding:
    text = f"not checked: with backend {AUTODEPLOY} the file is of another class, whose keys are not known here"
    return Finding((), text, Level.NOTE, code="RW0314")


def _checked(schema: VersionLine, version: str, options: Mapping[str, Any], arguments: Sequence[str]) -> list[Finding]:
    found = list(check_section(schema, schema.root, options, (), OptionSet(version, options)))
    if schema.engine == "tensorrt-llm":
        return found + rules(schema, options)
    left_out = switches(schema, options) if schema.engine == "vllm" else []
    return [*found, *left_out, *pairs(schema, version, options, arguments)]
