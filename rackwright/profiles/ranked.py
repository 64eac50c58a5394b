"""The advice that can be ranked for a load, and the remainder by kinds: other models, and what nothing judges. Pure.

Ranked is what serves the model that is asked for on as many GPUs, by a figure without doubt or a source's advice for
the load. The remainder is counted and named, so that a reader knows it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rackwright.messages import counted
from rackwright.profiles.offers import Offer, Shape, is_model
from rackwright_engines.advice import MODEL, Advice
from rackwright_engines.own import SHORT, OwnAdvice

NAMED = 3
"""Names of a kind, at most."""
OTHER_MODEL = "of another model"
OTHER_COUNT = "for another number of GPUs"
Row = TypeVar("Row")


@dataclass(frozen=True)
class KnownAdvice:
    """The advice for a GPU and a load: presets, releases that the site has measured, profiles."""

    presets: Sequence[Offer] = ()
    releases: Sequence[OwnAdvice] = ()
    profiles: Sequence[Advice] = ()

    @property
    def before_profiles(self) -> int:
        """Rows that the site has brought."""
        return len(self.presets) + len(self.releases)


@dataclass(frozen=True)
class Ranked:
    """The rows to rank, and sentences on the others."""

    found: KnownAdvice
    remainder: tuple[str, ...] = ()


def ranked(found: KnownAdvice, shape: Shape) -> Ranked:
    """Return the rows for a shape that can be judged. found: of its GPU, for any model and number of GPUs."""
    presets, offered = _parted(found.presets, lambda one: _why_no_preset(one, shape))
    releases, unfit = _parted(found.releases, lambda one: _why_no_release(one, shape))
    profiles, others = _parted(found.profiles, lambda one: _why_no_profile(one, shape))
    remainder = (
        *_in_words("preset", {why: [one.name for one in rows] for why, rows in offered.items()}),
        *_in_words("release", {why: [_short(one) for one in rows] for why, rows in unfit.items()}),
        *_in_words("profile", {why: [one.profile for one in rows] for why, rows in others.items()}),
    )
    return Ranked(KnownAdvice(presets, releases, profiles), remainder)


def _parted(rows: Sequence[Row], why_not: Callable[[Row], str]) -> tuple[list[Row], dict[str, list[Row]]]:
    """Return the rows without a reason against them, and the others by it."""
    good, others = list[Row](), dict[str, list[Row]]()
    for row in rows:
        (others.setdefault(why, []) if (why := why_not(row)) else good).append(row)
    return good, others


def _why_no_preset(one: Offer, shape: Shape) -> str:
    if not is_model(one.preset.model, shape.model):
        return OTHER_MODEL
    return "" if shape.gpus in (None, one.preset.gpus) else OTHER_COUNT


def _why_no_release(one: OwnAdvice, shape: Shape) -> str:
    newest = one.figures[-1]
    # An earlier version noted the name that it served alone, which is mostly the repository's last part.
    if not is_model(newest.model, shape.model) and not is_model(shape.model, newest.model):
        return OTHER_MODEL
    if shape.gpus not in (None, newest.gpus):
        return OTHER_COUNT
    return "with doubtful figures" if any(figure.marks for figure in one.figures) else ""


def _why_no_profile(profile: Advice, shape: Shape) -> str:
    if not is_model(profile.serves or MODEL, shape.model):
        return OTHER_MODEL
    if shape.gpus is not None and profile.gpus > shape.gpus:
        return "for more GPUs"
    if not profile.runs:
        return "known not to run"
    return "" if profile.percents or profile.advised else "whose speed was not measured"


def _short(one: OwnAdvice) -> str:
    return one.figures[-1].release[:SHORT] or "unknown"


def _in_words(kind: str, others: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the number of rows of each reason, with names where these are of the model that is asked for."""
    for why, names in others.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        shown = "" if why == OTHER_MODEL else f" ({', '.join(names[:NAMED])}{more})"
        yield f"{counted(len(names), kind)} {why}{shown}"
