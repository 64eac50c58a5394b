"""`--data`, of every command that loads settings: one definition, and it counts wherever the command loads them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.adapter.run.inventories import load_inventory
from rackwright.adapter.run.options import data_given, data_words, given
from rackwright.cli import main
from rackwright.cli.resume import typed_of
from rackwright.cli.verbs import VERBS
from rackwright.rollout import launch
from rackwright.settings.sections import Hooks

WITHOUT = {"init", "runs", "report", "explain", "advise", "schema", "completion", "firewall", "lease", "watch"}
WITHOUT |= {"cache", "keys", "questions", "secrets", "profiles"}
"""They load no settings, or those of a record; some, as `firewall` and `cache`, have verbs of their own."""


MODEL = "model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}\n"
INVENTORY = "from rackwright.inventory import build\nglobals().update(build(__file__, {'rack': ['gpu01']}))\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Make a site of one host with one endpoint."""
    for name, text in (("group_vars/all.yml", MODEL), ("inventory/lab.py", INVENTORY), ("deploy.py", "")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def parser_of(verb: str) -> argparse.ArgumentParser:
    (action,) = (one for one in main.parser(verb)._actions if isinstance(one, argparse._SubParsersAction))
    found: argparse.ArgumentParser = action.choices[verb]
    return found


@pytest.mark.parametrize("verb", sorted(set(VERBS) - WITHOUT))
def test_every_verb_that_loads_settings_takes_it(verb: str) -> None:
    (option,) = (one for one in parser_of(verb)._actions if "--data" in one.option_strings)
    assert (option.metavar, option.default) == ("KEY=VALUE", [])


@pytest.mark.parametrize("words", [["teardown", "i.py"], ["status", "i.py"], ["drain", "i.py", "--reason", "x"]])
def test_what_it_says_counts_while_the_command_runs(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = list[dict[str, Any]]()
    parsed = main.parser(words[0])

    def handler(_: argparse.Namespace) -> int:
        snapshots.append(data_given())
        return 0

    monkeypatch.setattr(main, "parser", lambda _=None: parsed)
    monkeypatch.setattr(main, "open_vault", lambda _: None)
    parser = parsed._subparsers._group_actions[0].choices[words[0]]  # type: ignore[union-attr,index]
    parser.set_defaults(handler=handler)
    given_words = ["--data", "replicas=2", "--data", "gpus=all"]
    assert main.main([*words, *given_words]) == 0
    assert snapshots == [{"replicas": 2, "gpus": "all"}]
    assert data_given() == {}


def test_a_word_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["teardown", "inventory/none.py", "--all", "-y", "--data", "replicas"]) == 1
    assert "RW1016" in capsys.readouterr().err


def test_settings_are_loaded_with_it(site: Path) -> None:
    inventory = site / "inventory" / "lab.py"
    with given({"replicas": 2, "gpus": [0, 1]}):
        (host, *_) = load_inventory(inventory)
    assert list(host.settings.all_endpoints) == ["llm-0", "llm-1"]
    (host, *_) = load_inventory(inventory)
    assert list(host.settings.all_endpoints) == ["llm"]


def test_one_within_another_gives_back_what_was_there() -> None:
    with given({"port": 1}):
        with given({"port": 2, "gpus": "all"}):
            assert data_given() == {"port": 2, "gpus": "all"}
        assert data_given() == {"port": 1}


def test_processes_of_the_run_are_handed_it_and_their_own_data_win() -> None:
    with given({"replicas": 2, "gate.level": "basic"}):
        words = data_words({"gate.level": "full"})
    assert words == ["--data", "replicas=2", "--data", 'gate.level="full"']


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    words = list[list[str]]()

    def follow(typed: list[str], *_: object) -> int:
        words.append(typed)
        return 0

    monkeypatch.setattr(launch, "follow", follow)
    return words


def test_a_run_s_pyinfra_is_handed_it(followed: list[list[str]], tmp_path: Path) -> None:
    run = launch.Run(tmp_path / "i.py", tmp_path, ("h1",), tmp_path / "r.jsonl", Hooks())
    with given({"replicas": 2}):
        run.pyinfra(tmp_path / "teardown.py", run.hosts, {})
    assert followed[0][-2:] == ["--data", "replicas=2"]


def test_the_record_keeps_it_for_a_resume(site: Path) -> None:
    with given({"replicas": 2, "gpus": [0, 1]}):
        hosts = load_inventory(site / "inventory" / "lab.py")
        run = launch.begin(str(site / "inventory" / "lab.py"), site, hosts, "teardown", purge=False)
    begin = json.loads(run.record.read_text().splitlines()[0])
    assert begin["data"] == typed_of(begin) == {"replicas": 2, "gpus": [0, 1]}
    assert typed_of({"data": {"replicas": 2, "gate.level": "full", "rollout.wave": "5%"}}) == {"replicas": 2}
    assert typed_of({}) == {}
