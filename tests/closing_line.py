"""The last lines of a run of the tests in parts: `python -m tests.closing_line FOLDER`, from JUnit files there.

A part's first try is PART-1.xml, and PART-2.xml, if any, is the second try of what failed in it. Each file of tests has
a budget of a worker's time; what outgrows it loses cases to `make proof` (CONTRIBUTING.md).
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

Outcomes = dict[tuple[str, str], str]
BUDGETS = {"lab": 350.0, "unit": 60.0, "programs": 300.0, "browser": 60.0}
"""Seconds of one worker that a file of a part may take beside the others (scripts/run-tests), on two quiet cores."""


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
    """Return the counts of all parts together, each with its two tries, and the tests that needed the second one."""
    last = [outcome for first, second in tries for outcome in (first | second).values()]
    again = [f"{name} ({where})" for first, second in tries for where, name in second if (where, name) in first]
    counts = Counter(last)
    return [
        *(f"second try: {test}" for test in again),
        ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped")),
        f"{len(again)} needed a second try",
    ]


def seconds_by_file(text: str) -> dict[str, float]:
    """How long each file of one JUnit file took, in seconds of one worker; the longest first."""
    found: dict[str, float] = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        name = case.get("classname", "").partition(".Test")[0]
        found[name] = found.get(name, 0.0) + float(case.get("time", "0"))
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def budget_lines(part: str, taken: dict[str, float]) -> list[str]:
    """Return what a part took, and those of its files that took more than their budget."""
    if not (budget := BUDGETS.get(part)):
        return []
    over = [
        f"over its budget of {budget:.0f} s: {name}, {spent:.0f} s" for name, spent in taken.items() if spent > budget
    ]
    return [f"{part}: {len(taken)} files, {sum(taken.values()):.0f} s of a worker's time", *over]


def main(folder: Path) -> None:
    """Print the closing lines of a folder."""

    def read(path: Path) -> Outcomes:
        return outcomes(path.read_text()) if path.exists() else {}

    firsts = sorted(folder.glob("*-1.xml"))
    for path in firsts:
        print(*budget_lines(path.stem[:-2], seconds_by_file(path.read_text())), sep="\n")
    print("\n".join(closing_lines([(read(path), read(path.with_name(f"{path.stem[:-1]}2.xml"))) for path in firsts])))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
