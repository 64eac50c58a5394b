"""A file that cannot be written is one refusal with its path, for every writer."""

from __future__ import annotations

import ast
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.main import main
from rackwright.engines.exported import write as write_export
from rackwright.messages import writing
from rackwright.record.view.report import write as write_report
from rackwright.sources.lockfile import Lock, write_lock
from tests.refused import refusal, refused

COMMANDS = Path(__file__).parents[2] / "rackwright" / "commands"
WRITES = {"write_text", "write_bytes", "mkdir", "unlink", "touch", "rename", "symlink_to"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Make a file, below which nothing can be written, by root neither."""
    path = tmp_path / "file"
    path.touch()
    return path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    assert main(["init", str(tmp_path / "site"), "--profile", "b200"]) == 0
    return tmp_path / "site"


@pytest.mark.parametrize(
    "words",
    [
        "schema --out {file}/x",
        "schema --out {file}.not/x",
        "render {site}/inventory/b200.py --limit b200-01.example.com --out {file}/out",
        "init {file} --profile b200",
        "init {file}/below --profile b200",
    ],
)
def test_a_path_that_cannot_be_written(words: str, file: Path, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.format(file=file, site=site).split()) == 1
    errors = capsys.readouterr().err
    refusal(errors, "RW1408", f"RW1408: {file}", "; next: another path")


def full(*_: Any, **__: Any) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_lock(path, Lock({}, {})),
        lambda path: write_export(path, "image", "sha256:0", "vllm", {}),
    ],
)
def test_a_file_of_the_site_that_cannot_be_written(write: Callable[[Path], object], file: Path) -> None:
    with refused("RW1408", "Not a directory"):
        write(file)


def test_a_report_that_cannot_be_written(file: Path, tmp_path: Path) -> None:
    record = tmp_path / "20260101-000000-rollout.jsonl"
    record.write_text('{"kind": "begin", "time": "2026-01-01T00:00:00+00:00"}\n')
    with refused("RW1408", f"{file}/r.html ", "Not a directory; next: "):
        write_report(record, file / "r.html")


def test_what_else_goes_wrong_is_not_hidden() -> None:
    with pytest.raises(ValueError, match="mine"), writing(Path("x")):
        raise ValueError("mine")


def test_no_command_writes_without_it() -> None:
    bare = [
        f"{path.name}:{number}"
        for path in sorted(COMMANDS.glob("*.py"))
        for tree in [ast.parse(path.read_text())]
        for number in sorted(lines_that_write(tree) - lines_in_writing(tree))
    ]
    assert bare == [], "put it into `with writing(path):`"


def lines_that_write(tree: ast.Module) -> set[int]:
    """Where a method of a path changes the disk."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {call.lineno for call in calls if isinstance(call, ast.Attribute) and call.attr in WRITES}


def lines_in_writing(tree: ast.Module) -> set[int]:
    """Where such an error becomes a refusal."""
    blocks = (node for node in ast.walk(tree) if isinstance(node, ast.With))
    writing_blocks = (node for node in blocks if ast.unparse(node.items[0]).startswith("writing("))
    return {number for node in writing_blocks for number in range(node.lineno, (node.end_lineno or 0) + 1)}
