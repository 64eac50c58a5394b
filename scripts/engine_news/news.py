"""The news of one engine, and how they are shown: on the terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rackwright.tables import Column, drawn
from rackwright_engines.data import PRODUCTS
from rackwright_engines.options.schema import line_for
from scripts.engine_news.changes import Change, State, option_changes
from scripts.engine_news.grounds import Ground, Kind, grounds
from scripts.engine_news.judge import Found, judge
from scripts.engine_news.profiles import ProfileNews, profile_news, together
from scripts.engine_news.release import Release

DONE, FAILED, NEWS = 0, 1, 2
SHOWN = 40
"""Names in a list."""
Row = list[str]


@dataclass(frozen=True)
class News:
    """One engine: the release that the data know, and the newest one."""

    engine: str
    old: str
    new: str
    options: list[Change] = field(default_factory=list)
    looked_at: int = 0
    """Grounds."""
    found: list[Found] = field(default_factory=list)
    profiles: list[ProfileNews] = field(default_factory=list)
    more: dict[str, list[str]] = field(default_factory=dict)
    """Metrics and paths of the server that only the new release has, by what they are."""
    unread: str = ""
    """Why the new release was not read, and what to do; empty where it was."""

    @property
    def status(self) -> int:
        """Exit status: 0 with nothing to do, 1 for what could not be read, 2 for what a person must look at."""
        if self.unread and self.old != self.new:
            return FAILED
        return NEWS if self.old != self.new or self.found else DONE

    @property
    def product(self) -> str:
        """The engine's name as people write it."""
        return PRODUCTS[self.engine]


def news(old: Release, new: Release) -> News:
    """Compare two releases of an engine."""
    options = option_changes(old.schema, new.schema)
    by_name: dict[str, list[Change]] = {}
    for one in options:
        by_name.setdefault(one.name, []).append(one)
    every = grounds(new.engine, new.version)
    found = [one for ground in every for one in judge(ground, old, new, by_name)]
    return News(
        new.engine, old.version, new.version, options, len(every), found, profile_news(old, new), _more(old, new)
    )


def _more(old: Release, new: Release) -> dict[str, list[str]]:
    """Return what else is new, where both releases were read."""
    series = new.series - old.series if new.series is not None and old.series is not None else frozenset()
    routes = new.tree.routes - old.tree.routes if new.tree and old.tree else frozenset()
    return {
        "new metrics": sorted(name for name in series if not name.endswith(("_bucket", "_sum"))),
        "new paths of the server": sorted(routes),
    }


# -- text


def lines(one: News, width: int | None, conditions: bool = False) -> Iterator[str]:
    """Yield what a terminal shows. width: its columns. conditions: True for the engine's code that differs as well."""
    yield head(one)
    if one.unread:
        yield f"  {one.unread}"
        return
    yield from (f"  {text}" for text in summary(one))
    if rows := option_rows(one):
        yield drawn([Column("option"), Column("what"), Column("change", 1, 30), Column("whose", 2, 20)], rows, width)
    if rows := ground_rows(one):
        columns = [Column("whose"), Column("rests on", 2, 24), Column("what"), Column("change", 1, 24)]
        yield drawn(columns, rows, width)
    if conditions:
        yield from _conditions(one)
    yield from profile_lines(one)


def head(one: News) -> str:
    """Return the first line of an engine."""
    knows = "the data know it" if line_for(one.engine, one.new)[1] else "the data do not know it yet"
    beside = "" if one.old == one.new else f", beside {one.old}"
    return f"{one.product} {one.new}{beside}: {knows}"


def summary(one: News) -> Iterator[str]:
    """Yield how much differs, in sentences."""
    counts = {state: sum(change.state is state for change in one.options) for state in State}
    words = {State.NEW: "new", State.GONE: "gone", State.RENAMED: "renamed", State.DEFAULT: "with another default"}
    others = counts[State.VALUES] + counts[State.TYPE]
    parts = [f"{counts[state]} {text}" for state, text in words.items()]
    if one.old != one.new:
        yield f"options: {', '.join(parts)}, {others} with other values or types"
    new = [change.name for change in one.options if change.state is State.NEW]
    yield from (f"{what}: {_listed(names)}" for what, names in {"new": new, **one.more}.items() if names)
    yield f"of {one.looked_at} things that the product rests on, {one.looked_at - len(touched(one))} are as they were"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def touched(one: News) -> set[Ground]:
    """Return the grounds that are not as they were."""
    return {found.ground for found in one.found}


def option_rows(one: News) -> list[Row]:
    """Return each option that differs, but new ones, with what of the product names it."""
    owners: dict[str, list[str]] = {}
    for found in one.found:
        if found.ground.kind is Kind.OPTION:
            owners.setdefault(found.change.name, []).append(found.ground.owner)
    return [
        [change.name, change.state.value, change.text, ", ".join(dict.fromkeys(owners.get(change.name, []))) or "-"]
        for change in one.options
        if change.state is not State.NEW
    ]


def ground_rows(one: News) -> list[Row]:
    """Return each ground that is not as it was, but options that the release before had: they have rows already."""
    return [
        [", ".join(owners), found.change.name, found.change.state.value, found.change.text]
        for found, owners in _alike(one)
    ]


def _alike(one: News) -> list[tuple[Found, list[str]]]:
    """Return the grounds that are not as they were, those with the same change together, with whose they are."""
    named = {change.name for change in one.options}
    owners: dict[tuple[object, ...], list[Found]] = {}
    for found in one.found:
        if found.ground.kind is not Kind.OPTION or found.change.name not in named:
            owners.setdefault((found.change, found.old, found.new), []).append(found)
    return [(several[0], list(dict.fromkeys(each.ground.owner for each in several))) for several in owners.values()]


def _conditions(one: News) -> Iterator[str]:
    for found, owners in _alike(one):
        if found.old or found.new:
            yield f"{', '.join(owners)}: {found.change.name}"
            yield from (f"  - {text}" for text in sorted(found.old))
            yield from (f"  + {text}" for text in sorted(found.new))


def profile_lines(one: News) -> Iterator[str]:
    """Yield what becomes of the profiles, those with the same lines together."""
    for texts, several in together(one.profiles):
        yield f"{', '.join(profile.name for profile in several)}: {'' if texts else 'nothing changes'}".rstrip()
        yield from (f"  {text}" for text in texts)
    for profile in one.profiles:
        others = [text for text in profile.to_move if text not in profile.lines]
        if others:
            yield f"{profile.name}, to move it from {profile.version}: {len(others)} more"
            yield from (f"  {text}" for text in others)


# -- page


def page(every: Sequence[News], day: str) -> str:
    """Return the page of the documentation."""
    parts = [HEAD.format(day=day), *("\n".join(_page(one)) for one in every)]
    return "\n".join(parts)


HEAD = """\
# The engines' newest releases

Made by `scripts/engine-news --page` on {day}, of the newest releases in the package index, beside the ones before
them; do not edit it. `make newest` reads what the index has today
([a new release of an engine](../how-to/engine-options.md#a-new-release-of-an-engine)).
"""


def _page(one: News) -> Iterator[str]:
    yield f"## {one.product}\n"
    yield f"{head(one)}.\n"
    if one.unread:
        yield f"{one.unread}.\n"
        return
    yield from (f"- {_code(text)}" for text in summary(one))
    yield ""
    yield from _table(("option", "what", "change", "whose"), option_rows(one))
    yield from _table(("whose", "rests on", "what", "change"), ground_rows(one))
    yield from _table(("profile", "its version", "with the newest", "to move it there"), _profile_rows(one))


def _profile_rows(one: News) -> list[Row]:
    return [
        [
            f"`{profile.name}`",
            profile.version,
            "; ".join(profile.lines) or "nothing changes",
            "; ".join(text for text in profile.to_move if text not in profile.lines) or "nothing else",
        ]
        for profile in one.profiles
    ]


def _table(heads: tuple[str, ...], rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows)
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    head, colon, names = text.partition(": ")
    return f"{head}: `{names}`" if head.startswith("new") and colon else text
