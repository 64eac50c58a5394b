"""`--only failed@last`: the same hosts in the same order as `--limit`, by how an earlier run left them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.adapter.run.session import chosen_hosts
from rackwright.cli.main import main
from rackwright.messages import RackwrightError
from rackwright.record.journal import append, new_record

INVENTORY = """\
from rackwright.inventory import build
globals().update(build(__file__, {"front": ["h1", "h2"], "back": ["h3", "h4"]}))
"""
MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
STATES = {"h1": "switched", "h2": "rolled back", "h3": "skipped", "gone": "rolled back"}


@pytest.fixture
def inventory(tmp_path: Path) -> str:
    """Four hosts, and the record of a run over three of them and one that is no longer there."""
    for name in ("inventory", "group_vars"):
        (tmp_path / name).mkdir()
    (tmp_path / "deploy.py").touch()
    (tmp_path / "inventory" / "fleet.py").write_text(INVENTORY)
    (tmp_path / "group_vars" / "all.yml").write_text(MODEL)
    new_record(tmp_path, "earlier")
    record = new_record(tmp_path, "rollout")
    append(record, "begin", hosts=["h1", "h2", "h3", "h4", "gone"])
    for host, state in STATES.items():
        append(record, "host", host=host, state=state)
    return str(tmp_path / "inventory" / "fleet.py")


@pytest.mark.parametrize(
    ("only", "limit", "names"),
    [
        (["failed@last"], [], ["h2"]),
        (["switched@last"], ["front"], ["h1"]),
        (["skipped@last", "failed@last"], [], ["h2", "h3"]),
        (["left@last"], [], ["h2", "h3", "h4"]),
        (["left@last"], ["back"], ["h3", "h4"]),
        ([], ["h4", "front"], ["h1", "h2", "h4"]),
    ],
)
def test_hosts_of_an_earlier_run(inventory: str, only: list[str], limit: list[str], names: list[str]) -> None:
    assert [entry.name for entry in chosen_hosts(inventory, limit, only)] == names


@pytest.mark.parametrize(
    ("only", "limit", "message"),
    [
        ("faild@last", [], r"must be STATE@RUN \(did you mean failed\?\)"),
        ("failed", [], "must be STATE@RUN"),
        ("failed@nosuch", [], "has no run nosuch; next: rackwright runs"),
        (f"failed@{__file__}", [], f"what its hosts keep of a run: rackwright resume -i {__file__}"),
        ("unchanged@last", [], "no host of run .*-rollout(-2)? is that; nothing was done"),
        ("failed@last", ["h1"], "together leave no host; nothing was done"),
    ],
)
def test_what_means_no_host_is_an_error(inventory: str, only: str, limit: list[str], message: str) -> None:
    with pytest.raises(RackwrightError, match=message):
        chosen_hosts(inventory, limit, [only])


@pytest.mark.parametrize("words", [("report",), ("runs", "last"), ("report", "some-run")])
def test_the_text_for_a_site_without_a_record_says_how_to_get_one(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deploy.py").touch()
    assert main([*words, "--site", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "RW0603" in error
    assert "no run has left a record there yet; next: rackwright rollout" in error
