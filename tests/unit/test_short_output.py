"""pyinfra's lines without those that say that nothing changed; what is not recognized is shown."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import click
import gevent
import pytest

from rackwright.adapter import short_output
from rackwright.adapter.short_output import ShortOutput, short_table

STARTING = "--> Starting operation: {} "
TABLE = [
    "Operation                     Hosts   Success   Error   No Change    ",
    "Docker | It is installed      2       -         -       2            ",
    "Endpoint | It has answered    2       1         1       -            ",
    "Grand total                   4       1         1       2            ",
]


def shown(*texts: str, errors: Sequence[int] = ()) -> list[str]:
    """Return what is printed of these lines. errors: of each operation, as the run knows them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "1000")
        patched.setattr(short_output, "_errors", lambda _: errors)
        printed: list[str] = []
        tried = ShortOutput(lambda record: printed.append(record.getMessage()))
        for text in texts:
            record = logging.LogRecord("pyinfra", logging.INFO, "", 0, text, (), None)
            if tried.filter(record):
                printed.append(record.getMessage())
    return [text.strip() for text in printed]


def test_a_step_that_changes_nothing_is_not_shown_text() -> None:
    bold = click.style("h1", bold=True)
    idle = [f"[{bold}] {click.style('No changes', 'cyan')}", f"[{bold}]   {click.style('Skipped', 'blue')}"]
    lines = [STARTING.format("Docker"), *idle, STARTING.format("Endpoint"), f"[{bold}] Success", "[h2] No changes"]
    assert shown(*lines) == ["--> Starting operation: Endpoint", f"[{bold}] Success"]


@pytest.mark.parametrize("text", ["[h1] No changes on retry 1", "[h1] proved: No changes", "h1 Skipped", "Skipped"])
def test_what_only_looks_like_it_is_shown_text(text: str) -> None:
    assert shown(STARTING.format("Docker"), text) == ["--> Starting operation: Docker", text]


def test_a_header_of_another_kind_is_shown_below_the_step_in_which_it_stands_text() -> None:
    lines = [STARTING.format("Endpoint"), "--> Wave 1 is done: watching h1 for 5 s", "[h1] No changes"]
    assert shown(*lines) == ["--> Starting operation: Endpoint", "--> Wave 1 is done: watching h1 for 5 s"]


def test_a_step_that_takes_long_is_named_while_it_runs_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_output, "SLOW", 0.01)
    printed: list[str] = []
    tried = ShortOutput(lambda record: printed.append(record.getMessage()))
    assert not tried.filter(logging.LogRecord("pyinfra", logging.INFO, "", 0, STARTING.format("Docker"), (), None))
    assert printed == []
    end = time.monotonic() + 5
    while not printed and time.monotonic() < end:
        gevent.sleep(0.01)
    assert printed == [STARTING.format("Docker")]


def test_the_table_of_results_has_what_changed_and_what_failed_text() -> None:
    assert shown("--> Results:", *TABLE, "--> Disconnecting from hosts...") == [
        "--> Results:",
        "Operation                    Hosts   Success   Error   No Change",
        "─" * 64,
        "Endpoint | It has answered   2       1         1       -",
        "Grand total                  4       1         1       2",
        "1 operation changed nothing; pyinfra -v lists them",
        "--> Disconnecting from hosts...",
    ]


def test_a_host_that_failed_once_is_one_error_text() -> None:
    table = shown(
        "--> Results:", *TABLE[:2], TABLE[2], "Watch | It looks   2   -   1   1", *TABLE[3:], errors=(0, 1, 0)
    )
    assert [row.split()[-2] for row in table if row.startswith(("Endpoint", "Grand total"))] == ["1", "1"]
    assert not any(row.startswith("Watch") for row in table)


def test_the_table_is_as_wide_as_the_terminal() -> None:
    rows = [["A sentence about a step that is longer than the terminal is wide", "2", "2", "-", "-"]]
    table = [*short_table([*rows, ["Grand total", "2", "2", "-", "-"]], 76)]
    assert max(map(len, table)) <= 76
    assert len(table) == 5


@pytest.mark.parametrize(
    "rows",
    [
        ["Operation   Hosts   Success", "Docker   2   2", "Grand total   2   2"],
        ["Operation   Hosts", "Docker   2", "Sum   2"],
    ],
)
def test_a_table_of_another_pyinfra_is_shown_as_it_is_text(rows: list[str]) -> None:
    assert shown("--> Results:", *rows, "--> Disconnecting") == ["--> Results:", *rows, "--> Disconnecting"]


def test_of_detected_changes_only_those_are_shown_that_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_output, "_changes_in", lambda _: 1)
    head = "Operation            Change         Conditional Change    "
    rows = ["Docker               -              -                     ", "Endpoint | It runs   2 (h1, h2)     -    "]
    assert shown("--> Detected changes:", head, *rows, "--> Beginning operation run...") == [
        "--> Detected changes:",
        "Endpoint | It runs: 2 (h1, h2)",
        "--> Beginning operation run...",
    ]


def test_where_no_change_was_detected_the_header_says_so_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_output, "_changes_in", lambda _: 0)
    assert shown("--> Detected changes:", "Docker   -   -   ", "a warning of two   words") == [
        "--> Detected changes: none",
        "a warning of two   words",
    ]
