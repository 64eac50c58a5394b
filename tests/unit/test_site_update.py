"""`rackwright init --update`: unedited files follow the installed version, edits are merged, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.cli import init
from rackwright.cli.main import main
from rackwright.init.bases import FILE, TREE, Bases
from rackwright.init.copies import Copy, UpdateAction
from rackwright.init.fresh import followed_files
from rackwright.init.merging import Sides, conflicts_in, merged
from rackwright.init.shipped import shipped_files, step_files
from tests.refused import refusal

TEXTS = st.none() | st.sampled_from([b"one\n", b"two\n", b"three\n"])


@given(TEXTS, TEXTS, TEXTS)
def test_what_the_site_has_edited_is_never_lost(before: bytes | None, mine: bytes | None, now: bytes | None) -> None:
    action = Copy(Path("f"), before, mine, now).action
    if action is UpdateAction.WRITE:
        assert mine in (before, None)
        assert now is not None
    if mine == before and before is not None and now is not None:
        assert action is (UpdateAction.SAME if mine == now else UpdateAction.WRITE)
    changed_on_both = None not in (before, mine, now) and len({before, mine, now}) == 3
    assert (action is UpdateAction.MERGE) == changed_on_both


ROWS = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=8).map(
    lambda rows: b"".join(b"%s\n" % row for row in rows)
)


@settings(max_examples=25, deadline=None)
@given(ROWS, ROWS, ROWS)
def test_each_line_that_the_site_has_added_is_in_what_is_merged(before: bytes, mine: bytes, now: bytes) -> None:
    mine = mine.replace(b"a\n", b"mine\n")
    text = merged(mine, before, now, Sides())
    assert text is not None
    assert text.count(b"mine\n") >= mine.count(b"mine\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    assert main(["init", str(folder), "--profile", "b200"]) == 0
    return folder


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Make a site as 0.1 made it: a file for each step, and a copy of each file below .rackwright/shipped."""
    folder = tmp_path / "site"
    for path, text in {**shipped_files(), **step_files()}.items():
        for file in (folder / path, folder / TREE / path):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)
    return folder


@pytest.fixture
def ship(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have another version installed."""

    def another(**texts: str | None) -> None:
        new_texts = {Path(name.replace("__", "/").replace("_dot_", ".")): text for name, text in texts.items()}
        changed = {path: text.encode() for path, text in new_texts.items() if text is not None}
        for name, was in (("shipped_files", shipped_files()), ("followed_files", followed_files())):
            files = {path: text for path, text in was.items() if path not in new_texts} | changed
            monkeypatch.setattr(init, name, lambda files=files: files)

    return another


def updated(site: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["init", "--update", str(site)])
    return status, capsys.readouterr().out


def test_untouched_copies_follow_and_the_second_time_nothing_is_left(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    ship(config_dot_py="# better\n", tasks__new_dot_py="# new\n")
    status, output = updated(site, capsys)
    assert status == 0
    assert (site / "config.py").read_text() == "# better\n"
    assert (site / "tasks/new.py").exists()
    assert "2 files brought " in output
    assert "0 files brought" in updated(site, capsys)[1]


def test_changes_of_both_sides_are_merged(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    file = site / "deploy.py"
    shipped = file.read_text()
    file.write_text(shipped + "# mine\n")
    file.chmod(0o640)
    ship(deploy_dot_py="# better\n" + shipped)
    status, output = updated(site, capsys)
    assert (status, file.read_text()) == (0, "# better\n" + shipped + "# mine\n")
    assert file.stat().st_mode & 0o777 == 0o640
    assert "deploy.py: merged" in output
    assert "0 files brought" in updated(site, capsys)[1]


def test_a_conflict_has_both_texts_and_its_line_and_must_be_resolved_first(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    file = site / "deploy.py"
    shipped = file.read_text()
    file.write_text(shipped.replace("preflight()  #", "preflight()  # mine"))
    ship(deploy_dot_py=shipped.replace("preflight()  #", "preflight()  # better"))
    status, output = updated(site, capsys)
    text = file.read_text()
    assert status == 1
    assert ("# mine" in text, "# better" in text) == (True, True)
    [number] = conflicts_in(text.encode())
    assert f"{file}:{number}: conflict" in output
    assert updated(site, capsys)[0] == 1, "the same version again, and the marks are still there"
    ship(deploy_dot_py="# another\n")
    assert main(["init", "--update", str(site)]) == 1
    refusal(capsys.readouterr().err, "RW1072", f"{file}:{number}")
    assert file.read_text() == text


def test_without_git_a_merge_is_refused_and_nothing_is_done(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = site / "deploy.py"
    mine = file.read_text() + "# mine\n"
    file.write_text(mine)
    ship(deploy_dot_py="# another\n", config_dot_py="# better\n")
    monkeypatch.setenv("PATH", str(site))
    assert main(["init", "--update", str(site)]) == 1
    refusal(capsys.readouterr().err, "RW1042", "git")
    assert file.read_text() == mine
    assert (site / "config.py").read_text() != "# better\n"


def test_what_is_not_text_is_left_as_it_is(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    file = site / "deploy.py"
    file.write_bytes(b"\0\1\2")
    ship(deploy_dot_py="# another\n")
    assert updated(site, capsys)[0] == 1
    assert file.read_bytes() == b"\0\1\2"


def test_a_link_stays_a_link(site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    file = site / "config.py"
    file.rename(site / "mine.py")
    file.symlink_to("mine.py")
    ship(config_dot_py="# better\n")
    assert updated(site, capsys)[0] == 0
    assert (file.is_symlink(), (site / "mine.py").read_text()) == (True, "# better\n")


def test_an_edit_where_nothing_changed_and_a_removed_file_are_left_alone(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "group_vars/all.yml").write_text("port: 9000\n")
    (site / "config.py").unlink()
    ship(config_dot_py="# another\n")
    status, output = updated(site, capsys)
    assert status == 0
    assert (site / "group_vars/all.yml").read_text() == "port: 9000\n"
    assert not (site / "config.py").exists()
    assert "config.py: stays away" in output


@pytest.mark.parametrize("edit", ["", "# mine\n"])
def test_what_is_shipped_no_longer_stays(
    edit: str, site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    mine = (site / "config.py").read_text() + edit
    (site / "config.py").write_text(mine)
    ship(config_dot_py=None)
    assert updated(site, capsys)[0] == 0
    assert (site / "config.py").read_text() == mine


def test_an_old_site_keeps_a_file_for_each_step_and_edits_in_them(
    old: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    (old / "tasks/docker.py").write_text("# mine\n")
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    status, output = updated(old, capsys)
    assert (status, output.count("\n")) == (0, 1)
    assert {path: path.read_bytes() for path in old.rglob("*") if path.is_file()} == before
    ship(config_dot_py="# better\n", templates__new_dot_j2="new\n")
    assert updated(old, capsys)[0] == 0
    assert (old / "config.py").read_text() == (old / TREE / "config.py").read_text() == "# better\n"
    assert (old / "templates/new.j2").exists()


def test_a_profile_that_is_added_to_an_old_site_changes_none_of_its_files(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    assert main(["init", str(old), "--profile", "h200_vllm"]) == 0
    assert {path: path.read_bytes() for path in before} == before
    status, output = updated(old, capsys)
    assert (status, output.count("\n")) == (0, 1), output


def test_an_old_site_gets_the_steps_that_came_later(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (old, old / TREE):
        (folder / "tasks/watch.py").unlink()
        for name in ("deploy.py", "tasks/__init__.py"):
            rows = (folder / name).read_text().splitlines(keepends=True)
            (folder / name).write_text(
                "".join(row.replace(", watch", "") for row in rows if "watch" not in row.partition(", ")[0])
            )
    assert updated(old, capsys)[0] == 0
    assert "watch()" in (old / "deploy.py").read_text()
    assert "from tasks.watch import watch" in (old / "tasks/__init__.py").read_text()
    assert (old / "tasks/watch.py").exists()


def test_a_site_of_before_there_were_copies_is_told_and_kept(
    site: Path, ship: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    (site / FILE).unlink()
    ship(config_dot_py="# better\n")
    status, output = updated(site, capsys)
    assert status == 1
    assert "# better" not in (site / "config.py").read_text()
    assert "(yours)" in output


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": []}', '{"files": {"a": 1}}'])
def test_broken_bases_are_refused(text: str, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / FILE).write_text(text)
    before = (site / "deploy.py").read_text()
    assert main(["init", "--update", str(site)]) == 1
    refusal(capsys.readouterr().err, "RW1062", str(site / FILE))
    assert (site / "deploy.py").read_text() == before


def test_a_site_s_bases_are_one_file(site: Path) -> None:
    assert Bases(site).read() == followed_files()
    assert sorted(path.name for path in (site / ".rackwright").iterdir()) == ["settings.schema.json", FILE.name]


def test_what_is_no_site_is_not_updated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--update", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert ("no deploy.py; next: " in error, "next: rackwright init" in error) == (True, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_refused_by_name(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site.chmod(0o500)
    assert main(["init", "--update", str(site)]) == 1
    refusal(capsys.readouterr().err, "RW1408", str(site))
