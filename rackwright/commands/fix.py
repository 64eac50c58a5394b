"""`rackwright check --fix`: keys that the engine's version knows by another name are rewritten where they stand."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from rackwright.commands.inventories import hosts_of
from rackwright.loading.edit import comment_of, edited
from rackwright.loading.files import site_root
from rackwright.messages import writing
from rackwright.settings.problems import InvalidSettingsError, Problem
from rackwright_engines.key_path import dotted

ROUNDS = 32
"""Every round fixes one key in each file that has any."""


def fix_files(args: argparse.Namespace) -> Iterator[str]:
    """Rewrite the files of an inventory's site, and say every edit.

    Ends when no certain fix is left; the check that follows lists what needs a person.
    """
    root = site_root(Path(args.inventory))
    for _ in range(ROUNDS):
        made = [line for problem in _first_in_each_file(_problems(args)) for line in _fixed_file(root, problem)]
        if not made:
            return
        yield from made


def _problems(args: argparse.Namespace) -> tuple[Problem, ...]:
    try:
        hosts_of(args, arguments=False)
    except InvalidSettingsError as error:
        return error.problems
    return ()


def _first_in_each_file(problems: tuple[Problem, ...]) -> list[Problem]:
    due = [problem for problem in problems if problem.right and problem.where]
    return list({problem.where.file: problem for problem in reversed(due) if problem.where}.values())


def _fixed_file(root: Path, problem: Problem) -> Iterator[str]:
    assert problem.where is not None
    assert problem.right is not None
    path = root / problem.where.file
    text = path.read_text() if path.suffix in ("", ".yml", ".yaml") and path.is_file() else ""
    new = edited(text, problem.path, problem.right) if text else None
    if new is not None and new != text:
        with writing(path):
            path.write_text(new)
        comment = comment_of(text, problem.path)
        gone = f"; gone with the old line: {comment}" if comment else ""
        yield f"{problem.where}: {dotted(problem.path)}: {problem.right}{gone}"
