"""The fleet as one HTML page: every text is escaped, and the page's own rules allow no request, as in the report."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from rackwright import __version__
from rackwright.inspect.top.rows import TopRow
from rackwright.inspect.top.screen import Title, rate_text, states_text, sums_text
from rackwright.record.view.blame import BAD, GOOD, RANK
from rackwright.record.view.report.page import frame, template_of


def page(rows: Sequence[TopRow], title: Title) -> str:
    """Return the whole page. rows: the worst first."""
    return template_of(files(__package__).joinpath("page.html.j2").read_text()).render(
        frame(),
        title=title,
        rows=rows,
        states=_states(rows),
        verdict=min((row.tone for row in rows), key=RANK.index, default=GOOD),
        headline=states_text(rows),
        sums=sums_text(rows, title),
        summary=_summary,
        bad=BAD,
        version=__version__,
    )


def _summary(row: TopRow) -> str:
    """Return how much an endpoint does, and the most urgent fact."""
    figures = ((rate_text(row.rate), "tokens/s"), (row.running, "running"), (row.waiting, "waiting"))
    parts = [f"{figure} {unit}" for figure, unit in figures if figure not in (None, "")]
    return " · ".join([*parts, *(fact.text for fact in row.facts[:1])])


def _states(rows: Sequence[TopRow]) -> list[tuple[str, str, int]]:
    """Return each state with its tone and how many rows are in it, the worst first."""
    found: dict[str, list[TopRow]] = {}
    for row in rows:
        found.setdefault(row.state, []).append(row)
    return [(state, alike[0].tone, len(alike)) for state, alike in found.items()]
