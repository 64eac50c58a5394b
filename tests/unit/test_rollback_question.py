"""What `rackwright rollback` says before it asks: how many hosts, of which inventory, to which release."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.cli import rollback
from rackwright.cli.main import main


@pytest.mark.parametrize(
    ("words", "to"),
    [((), "the release that was proven before"), (("--to", "edf5c0089a37"), "release edf5c0089a37")],
)
@pytest.mark.parametrize(("limit", "hosts"), [((), "2 hosts"), (("--limit", "b200-01*"), "1 host")])
def test_rollback_asks_with_the_hosts_the_inventory_and_the_release_text(
    words: tuple[str, ...],
    to: str,
    limit: tuple[str, ...],
    hosts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["init", str(tmp_path / "site"), "--profile", "b200"]) == 0
    inventory = str(tmp_path / "site" / "inventory" / "b200.py")
    questions: list[str] = []
    monkeypatch.setattr(rollback, "agreed", questions.append)
    monkeypatch.setattr(rollback, "ways_back", lambda *_: ["endpoint llm from release b to a"])
    assert main(["rollback", inventory, *limit, *words]) == 1
    assert questions == [f"This takes {hosts} of {inventory} back to {to}:\n  endpoint llm from release b to a"]
    assert "nothing was done" in capsys.readouterr().err
