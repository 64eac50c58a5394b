"""Two releases' right and wrong answers to the same questions, compared in pairs. Pure.

Only questions that one release has right and the other wrong say anything: `lost` ones, right before and wrong now, and
`won` ones. The difference is lost less won, in points of a hundred questions. Its interval is exact (interval.py): one
look, no normal approximation, which is wrong where a handful of answers differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rackwright.quality.interval import is_above, least_lost, lower_end


@dataclass(frozen=True)
class Comparison:
    """What the answers of the release before and of this one say together. Differences are points lost."""

    lost: tuple[str, ...]
    """Questions that were answered rightly before and are not now."""
    won: tuple[str, ...]
    questions: int
    """Questions that both releases were asked."""
    right_before: int
    right_now: int
    worse_by: float
    """Points that a release may be worse by."""

    @property
    def difference(self) -> float:
        """Return the points by which this release is worse; negative where it is better."""
        return 100 * (len(self.lost) - len(self.won)) / self.questions if self.questions else 0

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the difference: its better end, and its worse one."""
        lost, won = len(self.lost), len(self.won)
        if not self.questions:
            return -100.0, 100.0
        return 100 * lower_end(lost, won, self.questions), -100 * lower_end(won, lost, self.questions)

    @property
    def worse(self) -> bool:
        """Return True if even the better end of the interval is worse than allowed: the release is refused."""
        return self.questions > 0 and is_above(len(self.lost), len(self.won), self.questions, self.worse_by / 100)

    @property
    def differs(self) -> bool:
        """Return True if the interval leaves out no difference."""
        lost, won, questions = len(self.lost), len(self.won), self.questions
        return lost != won and is_above(max(lost, won), min(lost, won), questions, 0)

    @cached_property
    def smallest_shown(self) -> float | None:
        """Return the points from which on a loss would have been shown, with as many won; None if none would."""
        return self._points(0)

    @cached_property
    def smallest_refused(self) -> float | None:
        """Return the points from which on this release would have been refused; None if it never would."""
        return self._points(self.worse_by / 100)

    def _points(self, above: float) -> float | None:
        lost = least_lost(len(self.won), self.questions, above) if self.questions else None
        return None if lost is None else 100 * (lost - len(self.won)) / self.questions

    @property
    def sentence(self) -> str:
        """Return what was found, with the interval or with what could have been found."""
        if not self.differs:
            shown = self.smallest_shown
            would = f"{points(shown)} would be" if shown is not None else "no difference would be"
            return f"no difference that {_questions(self.questions)} could show ({would})"
        better, worse = self.interval
        if self.difference > 0:
            return f"worse by {points(self.difference)} ({figure(better)} to {figure(worse)})"
        return f"better by {points(-self.difference)} ({figure(-worse)} to {figure(-better)})"


def compare(before: Mapping[str, bool], now: Mapping[str, bool], worse_by: float) -> Comparison:
    """Compare right and wrong answers by the questions' ids; a question that one side lacks does not count."""
    both = [name for name in now if name in before]
    return Comparison(
        lost=tuple(name for name in both if before[name] and not now[name]),
        won=tuple(name for name in both if now[name] and not before[name]),
        questions=len(both),
        right_before=sum(before[name] for name in both),
        right_now=sum(now[name] for name in both),
        worse_by=worse_by,
    )


def smallest_refused(questions: int, worse_by: float) -> float | None:
    """Return the points from which on a release would be refused where nothing else differs; None if it never would.

    It is what a plan says of a file of questions before any of them is asked.
    """
    lost = least_lost(0, questions, worse_by / 100) if questions else None
    return None if lost is None else 100 * lost / questions


def points(number: float) -> str:
    """Return a number of points with its unit."""
    text = figure(number)
    return f"{text} point" if text == "1" else f"{text} points"


def figure(number: float) -> str:
    """Return a number with one decimal, or none where that is 0."""
    return f"{round(number, 1) + 0.0:g}"


def _questions(number: int) -> str:
    return f"{number} question" if number == 1 else f"{number} questions"
