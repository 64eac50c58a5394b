"""Prints what a version's hosts, records and messages go by, a format a line; no later one renames it without a reader.

`python scripts/formats.py FOLDER`, of a version's source (`git archive VERSION | tar -x -C FOLDER`). What 0.1 went by
is tests/fixtures/formats-0.1.txt; tests/unit/test_formats_kept.py says that each of them is still known.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

CODED = re.compile(r"^ {2}(RW\d{4}):", re.MULTILINE)
WORD = re.compile(r"`([^`]+)`")
OWNED = re.compile(r'Owned\("([a-z_]+)"')
EVENT = re.compile(r"(?:^|[;&|)]) *event ([a-z][a-z-]+)\b", re.MULTILINE)
STATE = re.compile(r"^    [A-Z_]+ = \"([^\"]+)\"", re.MULTILINE)
FIELD = re.compile(r"\"([a-z]+)=\$")
WRITING = {"lease": "lease_acquire.sh", "last-switch": "transaction.sh"}
"""What writes files of lines `NAME=VALUE` that other versions read."""
KEPT = ("State", "A release", "Units", "Containers", "Other places", "Gateway", "In memory")
"""Parts of the page of files on a host, by how they begin."""


def formats(source: Path) -> list[str]:
    """Return all formats of a version, sorted."""
    found = {
        *codes(source),
        *of_records(source),
        *on_hosts(source),
        *belongings(source),
        *fields(source),
        *job_events(source),
    }
    return sorted(found)


def codes(source: Path) -> Iterator[str]:
    """Yield the codes of refusals."""
    for file in (source / "rackwright" / "data" / "refusals").glob("*.yaml"):
        yield from (f"code {code}" for code in CODED.findall(file.read_text()))


def of_records(source: Path) -> Iterator[str]:
    """Yield kinds of events and their keys, as the page of records has them, and states of a host."""
    page = (source / "docs" / "reference" / "run-record.md").read_text()
    for first, second in rows(page.partition("## States of a host")[0]):
        (kind,) = WORD.findall(first)
        yield f"event {kind}"
        yield from (f"key {kind} {key}" for key in WORD.findall(outside_brackets(second)))
    for text in texts(source, "states.py"):
        yield from (f"state {state}" for state in STATE.findall(text))


def outside_brackets(text: str) -> str:
    """Return a cell without its brackets, which hold values and keys of keys."""
    return re.sub(r"\([^()]*\)", "", text)


def on_hosts(source: Path) -> Iterator[str]:
    """Yield files, units and labels on a host, as the page of them has them."""
    page = (source / "docs" / "reference" / "host-files.md").read_text()
    for part in re.split(r"^#+ |^(?=A release:)", page, flags=re.MULTILINE):
        if part.startswith(KEPT):
            yield from (
                f"on-host {name}" for first, second in rows(part) for name in WORD.findall(f"{first} {labels(second)}")
            )


def labels(cell: str) -> str:
    """Return the cell when it names labels of a container, else nothing."""
    return cell if "=" in cell and "`rackwright." in cell else ""


def belongings(source: Path) -> Iterator[str]:
    """Yield the kinds of what the ownership record names."""
    for text in texts(source, "*.py"):
        yield from (f"belonging {kind}" for kind in OWNED.findall(text))


def fields(source: Path) -> Iterator[str]:
    """Yield fields of files on a host that another version reads."""
    for name, path in WRITING.items():
        yield from (f"field {name} {field}" for text in texts(source, path) for field in FIELD.findall(text))


def job_events(source: Path) -> Iterator[str]:
    """Yield the words of a job's events, which another version may follow."""
    for text in texts(source, "*.sh", "*.j2"):
        yield from (f"job-event {name}" for name in EVENT.findall(text))


def texts(source: Path, *patterns: str) -> Iterator[str]:
    """Yield the text of the product's files of these patterns."""
    folders = (source / "rackwright", source / "packages" / "bench")
    yield from (path.read_text() for folder in folders for pattern in patterns for path in folder.rglob(pattern))


def rows(text: str) -> Iterator[tuple[str, str]]:
    """Yield the first two cells of each row of a page's tables, heads excepted."""
    listed = text.splitlines()
    for row, following in zip(listed, [*listed[1:], ""], strict=True):
        if row.startswith("| ") and not following.startswith("|---"):
            yield cells(row)


def cells(row: str) -> tuple[str, str]:
    """Return the first two cells of a row."""
    first, second, *_ = row.strip("| ").split(" | ")
    return first, second


def main(arguments: Iterable[str]) -> None:
    """Print the formats of the version whose source the folder holds."""
    (folder,) = arguments
    print(*formats(Path(folder)), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
