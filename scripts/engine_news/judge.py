"""Holds each thing that the product rests on against a new release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rackwright_engines.options.commandline import exactly
from rackwright_engines.options.schema import Key, VersionLine
from scripts.engine_news.changes import Change, State
from scripts.engine_news.grounds import Ground, Kind
from scripts.engine_news.release import TRTLLM, Release
from scripts.engine_news.tree import SourceTree, guards, log_calls, plain

SHORTEST = 4
"""Letters of an option's other name before code is searched for it: `tp` is in everything."""
NEWS = frozenset({State.DEFAULT, State.VALUES, State.TYPE})
"""Changes of an option that a rule may rest on."""


@dataclass(frozen=True)
class Found:
    """A ground that is not as it was."""

    ground: Ground
    change: Change
    old: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    """Conditions or lines of the engine's code that only the old, or only the new release has."""


def judge(ground: Ground, old: Release, new: Release, options: Mapping[str, list[Change]]) -> Iterator[Found]:
    """Yield what of a ground is not as it was; nothing where it is.

    options: changes between the two releases, by option.
    """
    if ground.history and not _had(ground, old):
        return
    if ground.kind is Kind.OPTION:
        yield from (Found(ground, one) for one in _option(ground.names[0], new, options))
    else:
        yield from JUDGES[ground.kind](ground, old, new)


def _had(ground: Ground, old: Release) -> bool:
    """Return True if the release before has a ground, or was not read."""
    if ground.kind is Kind.OPTION:
        return has_option(old.schema, ground.names[0])
    if ground.kind is Kind.METRIC:
        return any(old.counts(name) is not False for name in ground.names)
    return old.tree is None or any(map(old.tree.has_text, ground.names))


def _option(name: str, new: Release, options: Mapping[str, list[Change]]) -> Iterator[Change]:
    changes = options.get(name, [])
    if not has_option(new.schema, name):
        lost = [one for one in changes if one.state in (State.GONE, State.RENAMED)]
        yield from lost or [Change(name, State.GONE, "the release before has no such option either")]
    else:
        yield from (one for one in changes if one.state in NEWS)


def has_option(schema: VersionLine, name: str) -> bool:
    """Return True if a release has an option, by any of its names; `a.b` is below an option that is a section."""
    if tuple(name.split(".")) in schema.all_keys():
        return True
    first, *below = name.split(".")
    key = exactly(schema, first) if schema.engine != TRTLLM else None
    if key is None or not below:
        return key is not None
    kind = schema.sections[schema.root][key].type
    return kind not in schema.sections or below[0] in schema.sections[kind]


def _check(ground: Ground, old: Release, new: Release) -> Iterator[Found]:
    """Compare the code that refuses a rule's options; a rule without that code is read by hand."""
    if new.tree is None:
        return
    file, symbol = ground.names
    name = f"{file} {symbol}".strip()
    node = new.tree.symbol(file, symbol)
    if node is None:
        homes = new.tree.homes(symbol) if symbol else []
        moved = Change(name, State.MOVED, f"to {', '.join(homes[:3])}") if homes else Change(name, State.GONE)
        yield Found(ground, moved)
        return
    before = old.tree.symbol(file, symbol) if old.tree and old.version != new.version else None
    if before is None:
        return
    fields = _fields(ground, old.schema, new.schema)
    then, now = guards(before, fields), guards(node, fields)
    if then or now:
        if then != now:
            yield Found(ground, Change(name, State.CHANGED, _count(then - now, now - then)), then - now, now - then)
    elif symbol and plain(before) != plain(node):
        yield Found(ground, Change(name, State.CHANGED, "its code is another, and no condition there names the option"))


def _count(gone: frozenset[str], more: frozenset[str]) -> str:
    parts = [f"{len(gone)} condition{'s' * (len(gone) > 1)} less" if gone else "", f"{len(more)} more" if more else ""]
    return ", ".join(filter(None, parts))


def _fields(ground: Ground, *schemas: VersionLine) -> tuple[str, ...]:
    """Return the names that code and its messages have for a check's options, the command line's other ones too."""
    names = {part.replace("-", "_") for name in ground.fields for part in name.split(".")[-1:]}
    for schema in schemas:
        root = schema.sections[schema.root]
        keys: list[Key] = [root[name] for name in ground.fields if name in root]
        names |= {other.strip("-").replace("-", "_") for key in keys for other in key.names}
    long = sorted(name for name in names if len(name) >= SHORTEST)
    return tuple(dict.fromkeys(spelling for name in long for spelling in (name, name.replace("_", "-"))))


def _metric(ground: Ground, old: Release, new: Release) -> Iterator[Found]:
    if new.series is None:
        return
    present = [name for name in ground.names if new.counts(name)]
    lost = [name for name in ground.names if old.counts(name) and name not in present]
    if not present:
        yield Found(ground, Change(ground.name, State.GONE, "" if lost else "the release before lacks it as well"))
    elif lost and present[0] != ground.names[0]:
        yield Found(ground, Change(", ".join(lost), State.GONE, f"{present[0]} is read in its place"))


def _word(ground: Ground, old: Release, new: Release) -> Iterator[Found]:
    if new.tree and not any(map(new.tree.has_text, ground.names)):
        before = old.tree is not None and any(map(old.tree.has_text, ground.names))
        text = "" if before or old.tree is None else "the release before lacks it as well"
        yield Found(ground, Change(ground.name, State.GONE, text))


def _module(ground: Ground, _: Release, new: Release) -> Iterator[Found]:
    if new.tree and not any(_imports(new.tree, name) for name in ground.names):
        last = ground.names[-1].rpartition(":")[2]
        homes = new.tree.homes(last)
        yield Found(ground, Change(ground.name, State.GONE, f"{last} is in {', '.join(homes[:3])}" if homes else ""))


def _imports(tree: SourceTree, name: str) -> bool:
    module, _, attribute = name.partition(":")
    return tree.names(module, attribute)


def _log(ground: Ground, old: Release, new: Release) -> Iterator[Found]:
    """Compare the lines that a logger writes of the arguments, a key among them."""
    if new.tree is None:
        return
    file = f"{ground.names[0].replace('.', '/')}.py"
    node = new.tree.module(file)
    if node is None:
        yield Found(ground, Change(ground.name, State.GONE, "no such module"))
        return
    before = old.tree.module(file) if old.tree else None
    then, now = (log_calls(one, "args") if one else frozenset() for one in (before, node))
    if before and then != now:
        yield Found(ground, Change(ground.name, State.CHANGED, "its lines of the arguments"), then - now, now - then)


JUDGES: Mapping[Kind, Callable[[Ground, Release, Release], Iterator[Found]]] = {
    Kind.CHECK: _check,
    Kind.METRIC: _metric,
    Kind.WORD: _word,
    Kind.MODULE: _module,
    Kind.LOG: _log,
}
