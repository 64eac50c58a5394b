"""The pages that a newcomer types from, README and the tutorial: what is to be typed and edited, in its order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADING = re.compile(r"^## (?P<heading>.+)$")
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)$")
ADD = re.compile(r"^Add this to `(?P<file>[^`]+)`")
TAKE_OUT = re.compile(r"^Take the (?:\w+ )?lines out")
NAMED = re.compile(r"# (?P<file>[\w./-]+)\n")
COMMENT = re.compile(r"(?:^|\s+)# .*")

ELSEWHERE = {
    "make demo": "it is the checkout's, not a site's: a test of its own types it below",
    "make demo-down": "the same",
    "make test": "this is a part of it",
}
"""Lines that the walk through their page leaves out, and why."""
INSTALLS = "pip install"
"""How the line begins that the walk of `make test` leaves out: its commands are this checkout's."""
CHANGES = {"rackwright plan inventory/b200.py": ("group_vars/b200.yml", "engine: {stream_interval: 25}\n")}
"""What a reader has changed before a line: README shows what to type then, not what."""
ENDS = {
    ("Change a fleet", "rackwright plan inventory/b200.py"): 2,  # changes are pending
    ("Change a fleet", "rackwright resume"): 1,  # no run was cut, so that nothing is left of any (RW0805)
    ("8. Change one engine option", "rackwright check inventory/lab.py"): 1,  # a mistake, on purpose
}
"""Exit statuses other than 0."""
GOES_WRONG = "10. A change that goes wrong"


@dataclass(frozen=True)
class Typed:
    """A command that is typed into the shell."""

    section: str
    command: str


@dataclass(frozen=True)
class Edited:
    """Lines that are added to a file as it is shipped; none: what was added is taken out again."""

    section: str
    file: str
    lines: str


@dataclass(frozen=True)
class Program:
    """Lines for the Python that has Rackwright."""

    section: str
    lines: str


Act = Typed | Edited | Program


@dataclass(frozen=True)
class Fenced:
    """A fenced block, and the paragraph's line above it."""

    section: str
    language: str
    text: str
    above: str


def acts(page: str) -> list[Act]:
    """Return what a reader of a page does, in its order."""
    found: list[Act] = []
    for part in _parts((ROOT / page).read_text()):
        if isinstance(part, Fenced):
            found += _acts_of(part)
        elif edits := [one for one in found if isinstance(one, Edited)]:
            found.append(Edited(part[0], edits[-1].file, ""))
    return found


def typed_commands(page: str) -> list[str]:
    """Return the commands of a page that are typed into the shell."""
    return [act.command for act in acts(page) if isinstance(act, Typed)]


def status_of(act: Act, shown: Mapping[str, Sequence[str]]) -> int:
    """Return the exit status that the page promises. shown: what was shown before, by section."""
    if not isinstance(act, Typed):
        return 0
    fails = act.section == GOES_WRONG and not shown[act.section][1:]
    return 1 if fails else ENDS.get((act.section, act.command), 0)


def _acts_of(block: Fenced) -> Iterator[Act]:
    named, add = NAMED.match(block.text), ADD.match(block.above)
    if block.language == "sh":
        rows = (COMMENT.sub("", row).strip() for row in block.text.splitlines())
        yield from (Typed(block.section, row) for row in rows if row)
    elif block.language == "python":
        yield Program(block.section, block.text)
    elif block.language == "yaml" and named:
        yield Edited(block.section, named["file"], block.text)
    elif block.language == "" and add:
        yield Edited(block.section, add["file"], block.text)
    elif block.language == "" and block.text.startswith("$ "):
        yield Typed(block.section, block.text.partition("\n")[0].removeprefix("$ "))


def _parts(text: str) -> Iterator[Fenced | tuple[str]]:
    """Yield the fenced blocks, and by its section each paragraph that says that lines are taken out."""
    section, above = "", ""
    rows = iter(text.splitlines())
    for row in rows:
        if heading := HEADING.match(row):
            section = heading["heading"]
        elif fence := FENCE.match(row):
            yield Fenced(section, fence["language"], _until_closed(rows, fence["indent"]), above)
        elif TAKE_OUT.match(row):
            yield (section,)
        above = row if row else above


def _until_closed(rows: Iterator[str], indent: str) -> str:
    inside: list[str] = []
    for row in rows:
        if row.strip() == "```":
            break
        inside.append(row.removeprefix(indent))
    return "".join(f"{row}\n" for row in inside)
