"""Options of an image that no data was written for: what is near a known name is refused, all else is the image's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rackwright_engines.data import PRODUCTS
from rackwright_engines.finding import Finding, Level
from rackwright_engines.key_path import KeyPath
from rackwright_engines.options.schema import VersionLine, lines, next_line
from rackwright_engines.version import bare, not_before, parse_version

CODE = "RW0316"
NEAR = "RW0338"
MORE = "RW0353"
MAY_KNOW = "the engine may know more, as by a plugin"
DECIDES = "the image decides before anything is stopped"


@dataclass(frozen=True)
class ImageFacts:
    """Facts of an image other than its version."""

    changed: str = ""
    """Its name, where it is not the engine's own image: it may have options that its version does not have."""
    backend: str = ""
    """TensorRT-LLM's, where its command line names one."""
    judge: str = DECIDES
    """The authority over what is not known here, in words."""


Judge = Callable[[VersionLine], list[Finding]]
"""A check by one line: its findings."""


def inexact(judge: Judge, schema: VersionLine, version: str, facts: ImageFacts) -> list[Finding]:
    """Return what a line says of the options of a version that it was not written for.

    judge: checks the options by one line. line: that of the version before, or the oldest.
    """
    product = f"{PRODUCTS[schema.engine]} {version}"
    checked = f"as {nearest_version(schema, version)}'s" if schema.versions else "by the versions around it"
    text = f"the options of {product} are not known here, so they were checked {checked}"
    head = f"{text}; only what is one letter from a known name is refused, and {facts.judge}"
    reason = f"{product} is not known here"
    others = _may_be_of(schema, version)
    found = softened(judge(schema), reason, lambda path: any(takes(judge(other), path) for other in others))
    return [Finding((), head, Level.WARN, code=CODE), *found]


def _may_be_of(schema: VersionLine, version: str) -> Sequence[VersionLine]:
    """Return lines whose names such a version may have too: the next one's; of a tag without a version, any."""
    if parse_version(bare(version)) is None:
        return tuple(lines(schema.engine).values())[::-1]
    following = next_line(schema)
    return () if following is None else (following,)


def changed_image(found: list[Finding], schema: VersionLine, facts: ImageFacts) -> list[Finding]:
    """Return what a version's line says of the options of an image that a third party built of it."""
    reason = f"{facts.changed} is not {PRODUCTS[schema.engine]}'s own image"
    head = f"{reason}, so only what is one letter from a known name is refused, and {facts.judge}"
    softer = list(softened(found, f"{reason} and may have more"))
    return [Finding((), head, Level.WARN, code=CODE), *softer] if softer != found else found


def softened(
    found: list[Finding], reason: str, is_known: Callable[[KeyPath], bool] = lambda _: False
) -> Iterator[Finding]:
    """Return refusals as warnings, except those that are one edit from a known name, with the way out.

    A value that differs from a known one in digits alone is a warning too: the next version's names do.
    reason: why nothing is sure. known: True for a path that an older version takes as is.
    """
    for one in found:
        if one.level is Level.REFUSE and one.code == NEAR and one.sibling:
            yield replace(one, level=Level.WARN, overridable=False, code=CODE)
        elif one.level is not Level.REFUSE or one.code == NEAR:
            yield one
        elif one.near and not (one.sibling or is_known(one.path)):
            yield _near(one, reason)
        else:
            yield _warned(one, reason, CODE)


def not_listed(one: Finding) -> Finding:
    """Refuse a value that an open list lacks where it is one edit from a listed value, else warn."""
    return _near(one, MAY_KNOW) if one.near else _warned(one, MAY_KNOW, MORE)


def _warned(one: Finding, reason: str, code: str) -> Finding:
    return replace(one, text=f"{one.text}; not refused, since {reason}", level=Level.WARN, code=code)


def _near(one: Finding, reason: str) -> Finding:
    meant = "" if one.right or one.near in one.text else f" (did you mean {one.near}?)"
    return replace(one, text=f"{one.text}{meant}; {reason}", overridable=True, code=NEAR)


def takes(found: list[Finding], path: KeyPath) -> bool:
    """Return True if a line's findings have no refusal at a key, nor above it."""
    return not any(one.level is Level.REFUSE and path[: len(one.path)] == one.path for one in found)


def nearest_version(schema: VersionLine, version: str) -> str:
    """Return the version of a line that is nearest to one outside it."""
    after = not not_before(bare(version), schema.name)
    return schema.versions[0 if after else -1] if schema.versions else schema.name
