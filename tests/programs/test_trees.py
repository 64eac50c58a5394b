"""A folder goes, and what was mounted in it keeps its files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright_lab.machine import trees
from rackwright_lab.machine.shell import LabError
from rackwright_lab.machine.trees import mounted_in, remove_tree


def mount(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "--bind", source, target], check=True)


def test_what_is_mounted_in_a_tree_outlives_it(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("kept")
    tree = tmp_path / "a tree"
    mount(tmp_path / "mine", tree / "dev")
    (tree / "dev/shm").mkdir()
    mount(tmp_path / "mine", tree / "dev/shm")
    assert mounted_in(tree) == [tree / "dev/shm", tree / "dev"]
    remove_tree(tree)
    assert not tree.exists()
    assert (tmp_path / "mine/file").read_text() == "kept"
    remove_tree(tree)


def test_nothing_is_removed_while_something_stays_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    tree = tmp_path / "tree"
    (tree / "own").mkdir(parents=True)
    mount(tmp_path / "mine", tree / "dev")
    try:
        monkeypatch.setattr(trees, "run", lambda *words, check: None)
        with pytest.raises(LabError) as caught:
            remove_tree(tree)
        problem, _, command = str(caught.value).partition("; next: ")
        assert problem.endswith("dev is mounted and stays so")
        assert command.startswith("umount ")
        assert (tree / "own").is_dir()
    finally:
        subprocess.run(["umount", tree / "dev"], check=True)
