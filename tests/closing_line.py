"""The last lines of a run of the tests in parts: `python -m tests.closing_line FOLDER`, from JUnit files there.

A part's first try is PART-1.xml, and PART-2.xml, if any, is the second try of what failed in it.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

Outcomes = dict[tuple[str, str], str]


def outcomes(text: str) -> Outcomes:
    """Each test of one JUnit file, and whether it passed, failed, or was skipped."""
    found: Outcomes = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        key, kinds = (case.get("classname", ""), case.get("name", "")), {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        # A test that passes and fails to clean up has two entries.
        found[key] = "failed" if found.get(key) == "failed" else outcome
    return found


def closing_lines(tries: list[tuple[Outcomes, Outcomes]]) -> list[str]:
    """The counts of all parts together, each with its two tries, and the tests that needed the second one."""
    last = [outcome for first, second in tries for outcome in (first | second).values()]
    again = [f"{name} ({where})" for first, second in tries for where, name in second if (where, name) in first]
    counts = Counter(last)
    return [
        *(f"second try: {test}" for test in again),
        ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped")),
        f"{len(again)} needed a second try",
    ]


def main(folder: Path) -> None:
    """Print the closing lines of a folder."""

    def read(path: Path) -> Outcomes:
        return outcomes(path.read_text()) if path.exists() else {}

    firsts = sorted(folder.glob("*-1.xml"))
    print("\n".join(closing_lines([(read(path), read(path.with_name(f"{path.stem[:-1]}2.xml"))) for path in firsts])))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
