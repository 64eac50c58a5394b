"""Habits of other programs get a pointer to the right word, and a site may have a usual inventory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rackwright.cli.default_inventory import default_inventory
from rackwright.cli.habits import OPTIONS, option_hints, verb_hint
from rackwright.cli.habits import VERBS as HABITS
from rackwright.cli.main import main, parser
from rackwright.cli.verbs import VERBS
from rackwright.messages import SettingsError
from tests import texts
from tests.fresh import fresh
from tests.refused import refused


def test_bare_rackwright_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert {*VERBS} <= set(re.findall(r"^  ([a-z-]+)", out, re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rolout", "inventory/b200.py"], "unknown command rolout; next: rackwright rollout inventory/b200.py"),
        (["deploy", "x"], "unknown command deploy: a deploy is pyinfra's own command; next: pyinfra INVENTORY"),
        (["setup"], "next: pyinfra INVENTORY deploy.py (a fresh site: rackwright init DIR)"),
        (["app", "logs"], "unknown command app; next: rackwright logs INVENTORY"),
        (
            ["restart", "i.py"],
            "next: rackwright reboot INVENTORY --limit HOST, or for one endpoint: ",
        ),
        (["-l", "gpu01"], "options stand behind a command, and instead of -l: --limit HOST|GROUP"),
        (["--check"], "instead of --check: rackwright plan INVENTORY"),
        (["app", "details"], "next: rackwright status INVENTORY"),
        (["xyzzy"], "unknown command xyzzy; next: rackwright --help"),
    ],
)
def test_a_verb_that_there_is_not(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["status", "i.py", "-l", "gpu01"], "rackwright: instead of -l: --limit HOST|GROUP"),
        (["rollout", "i.py", "--tags", "firewall"], "instead of --tags: pyinfra INVENTORY tasks.STEP"),
        (["rollout", "i.py", "--check"], "instead of --check: rackwright plan INVENTORY"),
        (["plan", "i.py", "--extra-vars=port=1"], "instead of --extra-vars: --data KEY=V"),
        (["resume", "-l", "gpu01"], "instead of -l: resume has no --limit; what it takes: rackwright resume --help"),
        (["logs", "i.py", "-f"], "instead of -f: ssh HOST journalctl -fu rackwright-NAME"),
    ],
)
def test_an_option_of_another_program(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(words)
    assert raised.value.code == 1
    assert message in capsys.readouterr().err


def test_the_pointers_lead_to_words_that_there_are() -> None:
    texts = [*HABITS.values(), *OPTIONS.values()]
    named = {verb for text in texts for verb in re.findall(r"rackwright ([a-z][a-z-]*)", text)}
    assert named <= {*VERBS}
    assert not {habit for habit in HABITS if habit in VERBS}
    options = parser().format_help() + "".join(
        command.format_help()
        for command in parser()._subparsers._group_actions[0].choices.values()  # type: ignore
    )
    assert {verb for text in texts for verb in re.findall(r"--[a-z-]+", text)} <= set(re.findall(r"--[a-z-]+", options))
    assert verb_hint(["status"], VERBS) == verb_hint(["--version"], VERBS) == ""
    assert option_hints("the following arguments are required: INVENTORY") == []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site with one inventory, and change into it."""
    fresh(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RACKWRIGHT_INVENTORY", raising=False)
    return tmp_path


def test_the_only_inventory_of_a_site_need_not_be_named(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    assert f"inventory/b200.py: 2 hosts, {texts.VALID}" in capsys.readouterr().out


def test_where_there_are_several_one_must_be_chosen(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (site / "hosts.ini").write_text("[b200]\nh1\n")
    with refused("RW1018", "has several: inventory/b200.py, hosts.ini; next: ", error=SettingsError):
        default_inventory()
    (site / "ansible.cfg").write_text("[defaults]\ninventory = hosts.ini\n")
    assert default_inventory() == "hosts.ini"
    monkeypatch.setenv("RACKWRIGHT_INVENTORY", "inventory/b200.py")
    assert default_inventory() == "inventory/b200.py"


def test_a_folder_that_is_no_site_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RACKWRIGHT_INVENTORY", raising=False)
    with pytest.raises(SettingsError, match="has none: rackwright init DIR "):
        default_inventory()
