"""Verbs that print rows take `--columns`, which are printed in that order, and `--json` in their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.cli.drift import drift_values
from rackwright.cli.drift import table as drift_table
from rackwright.cli.lease import table as lease_table
from rackwright.cli.main import main, parser
from rackwright.inspect.drift import Drift, HostDrift
from tests.unit.test_grammar import leaves, site

__all__ = ["site"]
PRINT_ROWS = {
    "status",
    "drift",
    "runs",
    "quarantine",
    "lease show",
    "cache ls",
    "firmware",
    "keys list",
    "usage",
    "secrets list",
    "profiles list",
}
SHOWN = {"firewall show", "watch show"}
FOR_PROGRAMS = PRINT_ROWS | SHOWN | {"plan", "check", "advise", "logs", "exec", "chat", "evaluate", "secrets rotate"}
DRIFT = [
    HostDrift("h1", "read", (Drift("docker", "moved", "a\nb"), Drift("image", "asked", "c"))),
    HostDrift("h2", "read"),
    HostDrift("h3", "unreachable", error="RW1316: it is off"),
]


def with_option(name: str) -> set[str]:
    return {
        verb.prog.removeprefix("rackwright ")
        for verb in leaves(parser())
        if any(name in action.option_strings for action in verb._actions)
    }


def test_what_prints_rows_takes_both_options() -> None:
    assert with_option("--columns") == PRINT_ROWS
    assert with_option("--json") == FOR_PROGRAMS


def test_each_verb_says_what_it_does_and_has_an_example() -> None:
    for verb in leaves(parser()):
        assert verb.description, verb.prog
        assert str(verb.epilog).startswith(f"example: {verb.prog}"), verb.prog


def test_columns_are_printed_in_the_order_that_is_asked_for(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quarantine", "--add", "--limit", "gpu01", "--reason", "RMA"]) == 0
    capsys.readouterr()
    assert main(["quarantine", "--columns", "why,host"]) == 0
    assert [row.split() for row in capsys.readouterr().out.splitlines()][::2] == [["why", "host"], ["RMA", "gpu01"]]
    assert main(["quarantine", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)[0]
    assert (row["host"], row["why"], row["run"]) == ("gpu01", "RMA", None)


@pytest.mark.parametrize("columns", ["", "hosts", "host,nothing"])
def test_an_unknown_column_is_refused_with_those_that_are_there(
    columns: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["quarantine", "--columns", columns])
    error = capsys.readouterr().err
    assert (ended.value.code, "RW1024" in error, "host,since,why,run" in error) == (1, True, True)


def test_drift_has_a_row_a_finding_and_one_for_a_host_without() -> None:
    rows = [row.split() for row in drift_table(DRIFT, ["host", "verdict", "finding"], None).splitlines()[2:]]
    assert rows == [
        ["h1", "moved", "a", "b"],
        ["h1", "asked", "c"],
        ["h2", "as", "left", "-"],
        ["h3", "unreachable", "RW1316:", "it", "is", "off"],
    ]
    values = drift_values(DRIFT)
    assert values["status"] == 1
    assert [(host["state"], len(host["findings"])) for host in values["hosts"]] == [
        ("read", 2),
        ("read", 0),
        ("unreachable", 0),
    ]


def test_a_host_whose_lease_is_not_known_has_a_row() -> None:
    assert lease_table({"h1": "cannot be reached"}, ["host", "holder"], None).splitlines()[-1].split() == [
        "h1", "cannot", "be", "reached",
    ]  # fmt: skip


def test_check_answers_programs(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json", "--limit", "gpu01"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], [host["host"] for host in found["hosts"]], found["errors"]) == (True, ["gpu01"], [])
    (site / "group_vars" / "all.yml").write_text("nonsense: {}\n")
    assert main(["check", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], bool(found["errors"][0]["code"])) == (False, True)
    assert main(["check", "--json", "--in-image"]) == 1
    assert "RW1048" in capsys.readouterr().err
