"""`rackwright init --update`: unedited files follow the installed version; edited ones are shown, and kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.cli import init
from rackwright.cli.main import main
from rackwright.cli.siteupdate import Copy, UpdateAction

TEXTS = st.none() | st.sampled_from([b"one\n", b"two\n", b"three\n"])


@given(TEXTS, TEXTS, TEXTS)
def test_what_the_site_has_edited_is_never_lost(before: bytes | None, mine: bytes | None, now: bytes | None) -> None:
    action = Copy(Path("f"), before, mine, now).action
    if action in (UpdateAction.WRITE, UpdateAction.REMOVE):
        assert mine in (before, None)
    if mine == before and before is not None:
        after = {UpdateAction.WRITE: now, UpdateAction.REMOVE: None}.get(action, mine)
        assert after == now
    assert (action is UpdateAction.BOTH) == (mine is not None and mine not in (before, now) and before != now)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    assert main(["init", str(folder)]) == 0
    return folder


@pytest.fixture
def ship(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have another version installed."""
    was = init.shipped_files()

    def another(**texts: str | None) -> None:
        new_texts = {Path(name.replace("__", "/").replace("_dot_", ".")): text for name, text in texts.items()}
        changed = {path: text.encode() for path, text in new_texts.items() if text is not None}
        remaining = {path: text for path, text in was.items() if path not in new_texts}
        monkeypatch.setattr(init, "shipped_files", lambda: {**remaining, **changed})

    return another


def updated(site: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["init", "--update", str(site)])
    return status, capsys.readouterr().out


def test_untouched_copies_follow_and_the_second_time_nothing_is_left(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    ship(tasks__docker_dot_py="# better\n", tasks__new_dot_py="# new\n", tasks__models_dot_py=None)
    status, output = updated(site, capsys)
    assert status == 0
    assert (site / "tasks/docker.py").read_text() == "# better\n"
    assert (site / "tasks/new.py").exists()
    assert not (site / "tasks/models.py").exists()
    assert ("3 files brought " in output, "0 changed on both" in output) == (True, True)
    assert "0 files brought" in updated(site, capsys)[1]


def test_an_edited_file_is_kept_and_both_changes_are_shown(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    file = site / "tasks/docker.py"
    mine = file.read_text() + "# mine\n"
    file.write_text(mine)
    ship(tasks__docker_dot_py="# better\n" + file.read_text().removesuffix("# mine\n"))
    status, output = updated(site, capsys)
    assert status == 1
    assert file.read_text() == mine
    assert output.index("what you have changed:") < output.index("+# mine") < output.index("+# better")


def test_an_edit_where_nothing_changed_and_a_removed_file_are_left_alone(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "group_vars/all.yml").write_text("port: 9000\n")
    (site / "tasks/models.py").unlink()
    ship(tasks__models_dot_py="# another\n")
    status, output = updated(site, capsys)
    assert status == 0
    assert (site / "group_vars/all.yml").read_text() == "port: 9000\n"
    assert not (site / "tasks/models.py").exists()
    assert "tasks/models.py: stays away" in output


def test_a_site_of_before_there_were_copies_is_told_and_kept(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    for path in sorted((site / init.KEPT).rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    ship(tasks__docker_dot_py="# better\n")
    status, output = updated(site, capsys)
    assert status == 1
    assert "# better" not in (site / "tasks/docker.py").read_text()
    assert "(yours)" in output


def test_what_is_no_site_is_not_updated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--update", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert ("no deploy.py; next: " in error, "next: rackwright init" in error) == (True, True)
