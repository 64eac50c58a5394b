"""The trials of a tune: which variants were measured in which round, how they compare, which are still in it. Pure.

Each variant is compared with the first one, round by round, by the geometric mean of a figure over all cells. A variant
leaves when it does not start, when a request fails, when it breaks a bound, or when the whole 95 % interval says that
it is behind the best one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rackwright.messages import counted
from rackwright_bench.figures.compare import estimate
from rackwright_bench.figures.figures import Measured
from rackwright_bench.figures.rounds import FEWEST, Estimate, in_pairs, over
from rackwright_bench.variants.bounds import Bound, broken_bounds, more_is_better

Cells = Mapping[str, Measured]
"""Of one trial: every cell of the suite that has figures, by its name."""


@dataclass(frozen=True)
class Goal:
    """The goal: the best figure within bounds."""

    figure: str = "output_rate"
    bounds: tuple[Bound, ...] = ()

    def of(self, cells: Cells) -> float:
        """Return the geometric mean of the figure over the cells."""
        return over([estimate(one, self.figure).value for one in cells.values()]).value


@dataclass
class Trials:
    """The measurements, and what came of them."""

    names: Sequence[str]
    """The first one is what the others are compared with: it never leaves."""
    cells: Sequence[str]
    """Names of the suite's cells."""
    goal: Goal
    done: dict[str, dict[int, Cells]] = field(default_factory=dict)
    """By variant and round."""
    lost: dict[str, str] = field(default_factory=dict)
    """Variants that did not start, and why."""
    unfit: dict[str, str] = field(default_factory=dict)
    """Variants that are measured, and whose settings break a bound."""

    def add(self, name: str, number: int, cells: Cells) -> None:
        """Add a trial that was measured to its end."""
        self.done.setdefault(name, {})[number] = cells

    def has(self, name: str, number: int) -> bool:
        """Return True if the trial was measured."""
        return number in self.done.get(name, {})

    @property
    def first(self) -> str:
        """The variant that the others are compared with."""
        return self.names[0]

    def fault(self, name: str) -> str:
        """Return why a variant cannot be taken, whatever its speed; empty where it can."""
        if why := self.lost.get(name) or self.unfit.get(name):
            return why
        for number, cells in sorted(self.done.get(name, {}).items()):
            if missing := [cell for cell in self.cells if cell not in cells or not cells[cell].has_figures]:
                return f"has no figures of {', '.join(missing)} in round {number}: requests failed"
            if broken := next(broken_bounds(self.goal.bounds, cells), ""):
                return f"{broken} in round {number}"
        return ""

    def figure(self, name: str) -> float | None:
        """Return its figure over all rounds and cells; None before the first one."""
        values = [self.goal.of(cells) for cells in self.done.get(name, {}).values() if self._is_complete(cells)]
        return over(values).value if values else None

    def ratio(self, name: str, other: str) -> Estimate | None:
        """Return the share of another one's figure, in pairs of rounds; None without a common round."""
        one, two = self.done.get(name, {}), self.done.get(other, {})
        common = [n for n in sorted(one) if n in two and self._is_complete(one[n]) and self._is_complete(two[n])]
        if not common:
            return None
        return in_pairs([self.goal.of(two[n]) for n in common], [self.goal.of(one[n]) for n in common])

    def _is_complete(self, cells: Cells) -> bool:
        return all(cell in cells and cells[cell].has_figures for cell in self.cells)

    # -- what follows

    def best(self) -> str:
        """Return the best of those that can be taken; empty where none can."""
        figures = {name: self.figure(name) for name in self.names if not self.fault(name)}
        found = {name: value for name, value in figures.items() if value is not None}
        choose = max if more_is_better(self.goal.figure) else min
        return choose(found, key=lambda name: found[name]) if found else ""

    def better(self, ratio: Estimate | None) -> bool:
        """Return True if a whole interval says that the figure is the better one."""
        if ratio is None or not ratio.is_bounded:
            return False
        return ratio.low > 1 if more_is_better(self.goal.figure) else ratio.high < 1

    def open(self) -> list[str]:
        """Return the variants that another round is for: the first one, and those that may still be the best."""
        best = self.best()
        return [name for name in self.names if name == self.first or not self._is_behind(name, best)]

    def _is_behind(self, name: str, best: str) -> bool:
        if self.fault(name):
            return True
        return bool(best) and name != best and self.better(self.ratio(best, name))

    def decided(self, number: int, narrow: float) -> str:
        """Return why no further round is needed after this one; empty where one is. narrow: as in Limits."""
        if number < FEWEST:
            return "" if len(self.open()) > 1 or len(self.names) == 1 else "no other variant is left"
        others = [name for name in self.open() if name != self.first]
        if not others:
            return "no other variant is left"
        ratios = [self.ratio(name, self.first) for name in others]
        if len(others) == 1 and (self.fault(self.first) or self.better(ratios[0])):
            return f"{others[0]} is proven"
        if all(one is not None and one.width <= narrow for one in ratios):
            return "the intervals are narrow enough"
        return ""

    def winner(self) -> str:
        """Return the variant that is proven the better one than the first: by its figure, or by the bounds alone."""
        best = self.best()
        if not best or best == self.first:
            return ""
        return best if self.fault(self.first) or self.better(self.ratio(best, self.first)) else ""

    def stays(self) -> bool:
        """Return True if the first variant is proven the best: every other one is behind it, or out."""
        return self.best() == self.first and self.open() == [self.first]


# -- in words


def rounds_in_words(trials: Trials, name: str) -> str:
    """`3 rounds`."""
    return counted(len(trials.done.get(name, {})), "round")


def share_in_words(ratio: Estimate | None) -> str:
    """`1.31x (1.22 to 1.41)`; without an interval the share alone, and a hyphen for nothing."""
    if ratio is None:
        return "-"
    return f"{ratio.value:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})" if ratio.is_bounded else f"{ratio.value:.2f}x"


def conclusion(trials: Trials) -> str:
    """Return what the tune comes to, in one sentence."""
    first, best, goal = trials.first, trials.best(), trials.goal
    if not trials.done:
        return "nothing was measured: no trial came to its end"
    bounds = f", within {' and '.join(bound.text for bound in goal.bounds)}" if goal.bounds else ""
    if winner := trials.winner():
        rounds, ratio = rounds_in_words(trials, winner), share_in_words(trials.ratio(winner, first))
        if fault := trials.fault(first):
            return f"{winner} wins{bounds}, over {rounds}: {first} {fault} ({goal.figure}: {ratio} of {first})"
        proof = f"95 % interval over {rounds}, all cells"
        return f"{winner} wins: its {goal.figure} is {ratio} of {first}{bounds} ({proof})"
    if not best:
        return f"no variant can be taken: {'; '.join(_faults(trials))}"
    if best == first:
        if not any(trials.done.get(name) for name in trials.names[1:]) and not set(trials.names[1:]) <= set(
            trials.lost
        ):
            return f"nothing is compared: no other variant than {first} was measured to its end"
        if not trials.stays():
            return f"{first} stays: no other variant is proven better ({goal.figure}{bounds})"
        others = ", ".join(_behind(trials, name) for name in trials.names[1:])
        return f"{first} stays, and is proven the best: {others} ({goal.figure} beside it{bounds})"
    return (
        f"{first} stays: {best} has {share_in_words(trials.ratio(best, first))} of its {goal.figure}{bounds}, which "
        "proves nothing yet: more rounds would tell"
    )


def _behind(trials: Trials, name: str) -> str:
    return f"{name} {trials.fault(name) or share_in_words(trials.ratio(name, trials.first))}"


def _faults(trials: Trials) -> Iterable[str]:
    return (f"{name} {fault}" for name in trials.names if (fault := trials.fault(name)))
