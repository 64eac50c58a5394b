"""Models of the user's own at the lab's hub: what is served, and which folders are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright_lab.machine.shell import LabError
from rackwright_lab.standins.hub_content import Store, of_folder
from rackwright_lab.standins.own_models import put_own_models


def lay(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "config.json").write_text(name)
    return folder


def test_the_hub_serves_each_revision_of_an_own_model(tmp_path: Path) -> None:
    put_own_models(lay(tmp_path / "own", "me/model/v1", "me/model/v2", "me/draft/v1"), tmp_path / "hub")
    found = of_folder(tmp_path / "hub", "me/model")
    assert found is not None
    files = [Store(tmp_path).files(found, revision)["config.json"].path.read_text() for revision in (1, 2)]
    assert (found.revisions, files) == (2, ["me/model/v1", "me/model/v2"])
    assert of_folder(tmp_path / "hub", "me/draft") is not None


@pytest.mark.parametrize(
    "names",
    [(), ("model",), ("me/model",), ("me/model/v2",), ("me/model/v1", "me/model/main"), ("openai/gpt-oss-20b/v1",)],
)
def test_another_layout_is_refused_before_anything_is_copied(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(LabError, match="--models"):
        put_own_models(lay(tmp_path / "own", *names), tmp_path / "hub")
    assert not (tmp_path / "hub").exists()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no folder of that name"):
        put_own_models(tmp_path / "missing", tmp_path / "hub")
