"""Newer data come as a distribution of their own: the newest that can be read is used, the others are listed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from rackwright_engines import datasets
from rackwright_engines.datasets import FORMAT, GROUP, RELEASE, SHIPPED, unused, used

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a distribution of data on the path, a copy of what is shipped but for its release."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(name: str, version: str, form: object = FORMAT, module: str = "") -> Path:
        folder, info = tmp_path / name, tmp_path / f"{name}-{version}.dist-info"
        shutil.copytree(SHIPPED, folder)
        (folder / RELEASE).write_text(yaml.safe_dump({"format": form, "version": version}))
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\ndata = {module or name}\n")
        datasets.datasets.cache_clear()
        return folder

    datasets.datasets.cache_clear()
    yield put
    datasets.datasets.cache_clear()


@pytest.mark.usefixtures("install")
def test_what_is_shipped_is_used_and_complete() -> None:
    assert (used().folder, used().unfit, unused()) == (SHIPPED, "", [])


def test_newer_data_win_by_their_day_and_not_by_their_letters(install: Install) -> None:
    install("nine", "2099.9.30")
    folder = install("ten", "2099.10.1")
    assert used().folder == folder
    assert [row.partition(":")[0] for row in unused()] == ["nine 2099.9.30"]


def test_of_two_on_one_day_the_later_one_wins(install: Install) -> None:
    install("first", "2099.10.1")
    folder = install("second", "2099.10.1.1")
    assert used().folder == folder


def test_older_data_are_named_and_left(install: Install) -> None:
    install("old", "2020.1.2")
    assert used().folder == SHIPPED
    assert unused() == [f"old 2020.1.2: older than {used()}"]


@pytest.mark.parametrize("form", [FORMAT + 1, 0, "1", True, None])
def test_another_format_is_named_and_left_text(install: Install, form: object) -> None:
    older = install("known", "2098.1.1")
    install("unknown", "2099.1.1", form)
    assert used().folder == older
    assert unused() == [f"unknown 2099.1.1: its format is {form}, and this version reads {FORMAT}"]


@pytest.mark.parametrize("spoilt", ["- 1\n", "[", "", "format: 1\n", "\xff"])
def test_a_release_that_cannot_be_read_is_named_and_left(install: Install, spoilt: str) -> None:
    folder = install("spoilt", "2099.1.1")
    (folder / RELEASE).write_bytes(spoilt.encode("latin-1"))
    datasets.datasets.cache_clear()
    (row,) = unused()
    assert used().folder == SHIPPED
    assert str(folder / RELEASE) in row


@pytest.mark.parametrize("version", ["soon", "1.0", "2099-01-01"])
def test_a_version_that_is_no_day_is_named_and_left(install: Install, version: str) -> None:
    install("someday", version)
    assert used().folder == SHIPPED
    assert version in unused()[0]


@pytest.mark.parametrize("gone", ["models.yaml", "vllm/rules.yaml"])
def test_data_that_lack_a_table_are_named_and_left(install: Install, gone: str) -> None:
    (install("part", "2099.1.1") / gone).unlink()
    assert used().folder == SHIPPED
    assert unused() == [f"part 2099.1.1: it lacks {gone}"]


def test_data_without_versions_of_an_engine_are_left_text(install: Install) -> None:
    for path in (install("part", "2099.1.1") / "sglang").glob("[0-9]*.yaml"):
        path.unlink()
    assert unused() == ["part 2099.1.1: it lacks versions in sglang/"]


def test_a_module_that_is_not_there_is_named_and_left_text(install: Install) -> None:
    install("empty", "2099.1.1", module="nowhere.at_all")
    assert used().folder == SHIPPED
    assert unused() == ["empty: nowhere.at_all is not a folder of data"]


def test_no_code_of_a_distribution_runs(install: Install, tmp_path: Path) -> None:
    (install("runs", "2099.1.1") / "__init__.py").write_text("raise SystemExit('it ran')")
    assert used().folder == tmp_path / "runs"
