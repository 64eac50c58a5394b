"""Options for a version that no data was written for: what the versions around it say, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.engines.data import PRODUCTS
from rackwright.engines.finding import Finding, Level
from rackwright.engines.options.schema import VersionLine, lines
from rackwright.engines.version import bare, not_before
from rackwright.settings.origin import KeyPath


def doubt(engine: str, version: str, around: tuple[VersionLine, ...]) -> Finding:
    """Says as which versions the options were checked. around: their lines."""
    names = " and ".join(f"{name}'s" for name in _nearest(around, version))
    text = f"the options of {PRODUCTS[engine]} {version} are not known here, so they were checked as {names}"
    return Finding(
        (), f"{text}; only what neither knows is refused, the image has the last word", Level.WARN, code="RW0316"
    )


def _nearest(around: tuple[VersionLine, ...], version: str) -> list[str]:
    """The versions of the lines around one that are nearest to it."""
    return [_near(line, version) for line in around]


def _near(line: VersionLine, version: str) -> str:
    after = not not_before(bare(version), line.name)
    return line.versions[0 if after else -1] if line.versions else line.name


def softened(around: tuple[VersionLine, ...], found: list[list[Finding]], version: str) -> Iterator[Finding]:
    """What all neighbours refuse, as it is; what only one refuses, or an older line knows, as a warning."""
    seen: set[KeyPath] = set()
    for line, findings in reversed(list(zip(around, found, strict=True))):
        for one in findings:
            everywhere = all(any(two.path == one.path and _stops(two) for two in others) for others in found)
            if _stops(one) and everywhere and not _elsewhere(around, one.path):
                if one.path not in seen:
                    yield one
            elif _stops(one):
                yield _doubtful(line, around, one, version)
            elif one.path not in seen and all(one in others for others in found):
                yield one
        seen |= {one.path for one in findings}


def _stops(finding: Finding) -> bool:
    return finding.level is Level.REFUSE


def _elsewhere(around: tuple[VersionLine, ...], path: KeyPath) -> bool:
    """Whether a key that the only neighbour lacks is one of another line: the version may be any of them."""
    others = lines(around[0].engine).values() if len(around) == 1 else ()
    keyed = tuple(map(str, path))
    return keyed not in around[0].all_keys() and any(keyed in other.all_keys() for other in others)


def _doubtful(line: VersionLine, around: tuple[VersionLine, ...], one: Finding, version: str) -> Finding:
    names = " and ".join(_nearest(around, version))
    said = one.text.replace(f"{PRODUCTS[line.engine]} {version}", _near(line, version))
    text = f"{said}; not refused, since {version} is not known here and was checked as {names}"
    return Finding(one.path, text, Level.WARN, one.right, one.link, code="RW0316")
