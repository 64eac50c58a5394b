"""Tables are readable at 80, 100 and 160 columns, cut no word, and are one line a row without a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rackwright.cli import check, runs
from rackwright.concerns.preflight.row import CheckRow
from rackwright.concerns.preflight.table import render as preflight_table
from rackwright.inspect.status.reading import Asked
from rackwright.inspect.status.rows import StatusRow, unknown_row
from rackwright.inspect.status.table import render
from rackwright.record.record import Record, record_of
from rackwright.settings.host_settings import HostSettings
from rackwright.tables import Column, aligned, drawn, folded, shown_width
from tests.unit.made_up_runs import made_up

WIDTHS = (80, 100, 160)
HOST = "gpu01.dc1.example.com"
RELEASE = "edf5c0089a37"
LOCK = "ops@bastion (rackwright rollout inventory/b200.py) since 12:00:03, 20 s ago"
ROW = StatusRow(
    HOST, "llm", RELEASE, True, True, None, 12000, "serving", 8, "NVIDIA B200", 3, (), LOCK, "rollout 5 min ago: failed"
)
ROWS = [
    ROW,
    replace(ROW, host="gpu02.dc1.example.com", proven=False, lock=""),
    unknown_row("gpu03", Asked(HostSettings.model_validate({})), "cannot be read"),
]
NEXT = "rackwright report 20261126-100601-rollout"


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def recorded() -> list[Record]:
    """Return runs as an operator's site has them: a long command, and an end that names the next one."""
    begin, *_, end = made_up(4)
    long = {**begin, "what": "rackwright rollout inventory/b200.py --limit gpu01.dc1.example.com --yes"}
    bad = {**end, "status": 3, "text": f"RW0612: {HOST}: a tool call: no tool call came back; next: {NEXT}"}
    return [record_of("20261126-100501-deploy", [begin, end]), record_of("20261126-100601-rollout", [long, bad])]


# -- status


@pytest.mark.parametrize("width", WIDTHS)
def test_status_fits_the_terminal_and_cuts_no_host_release_or_lock(width: int) -> None:
    text = render(ROWS, width)
    assert widest(text) <= width
    lines = text.splitlines()
    assert [text.split()[:3] for text in lines if text.startswith("gpu01")] == [[HOST, "llm", RELEASE]]
    assert LOCK in " ".join(text.split())
    assert sum("8 NVIDIA B200" in text for text in lines) == 2


def test_status_at_80_columns_is_a_line_a_row_and_the_others_stand_below_it_by_name_text() -> None:
    assert render(ROWS[1:2], 80).splitlines()[2:] == [
        "gpu02.dc1.example.com   llm        edf5c0089a37 (not proven)   serving   no",
        "    since: 3 h 20 min   GPUs: 8 NVIDIA B200   clients: 3",
        "    last run: rollout 5 min ago: failed",
        "1 endpoint: 1 serving",
    ]


def test_what_is_not_known_has_no_line_below_its_row() -> None:
    lines = render(ROWS, 80).splitlines()
    [at] = [n for n, text in enumerate(lines) if text.startswith("gpu03 ")]
    assert not lines[at + 1].startswith(" ")


# -- runs, check, preflight


@pytest.mark.parametrize("width", WIDTHS)
def test_runs_fit_the_terminal_and_a_next_command_stays_whole(width: int) -> None:
    text = runs.table(recorded(), (), width)
    assert widest(text) <= width
    assert f"next: {NEXT}" in text
    assert "20261126-100601-rollout" in [cells.split()[0] for cells in text.splitlines()]


@pytest.mark.parametrize("width", WIDTHS)
def test_origins_are_whole_also_beside_long_keys_and_values(width: int) -> None:
    rows = [
        ("engine.kv_cache_config.free_gpu_memory_fraction", "0.9", "group_vars/b200.yml:14"),
        ("image", "nvcr.io/nvidia/tensorrt-llm/release:1.1.0rc0", "inventory/lab.py"),
    ]
    lines = aligned(check.COLUMNS, rows, width - 2)
    assert widest("\n".join(lines)) <= width - 2
    assert " ".join(lines).split() == [cell for row in rows for cell in row]


@pytest.mark.parametrize("width", WIDTHS)
def test_preflight_fits_and_a_fix_can_be_copied(width: int) -> None:
    fix = "sudo nvidia-smi --gpu-reset -i 0 && sudo systemctl restart nvidia-persistenced"
    text = preflight_table([CheckRow("ECC errors", "stop", False, "GPU 0 has 2 uncorrectable errors", fix)], width)
    assert fix in text
    assert widest(text) <= max(width, len(fix) + len("    fix: "))


# -- without a terminal


def test_without_a_terminal_each_row_is_one_line() -> None:
    for text, rows in ((render(ROWS), 3), (runs.table(recorded()), 2)):
        heads, rule, *more = text.splitlines()
        assert set(rule) == {"─"}
        assert len(rule) == len(heads)
        assert len([cells for cells in more[:rows] if not cells.startswith(" ")]) == rows
    assert f"{HOST}   llm        {RELEASE}" in render(ROWS)
    assert LOCK in render(ROWS)


# -- the layout itself

COLUMNS = (Column("host"), Column("said", 1, 10), Column("who", 2))


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (40, ["h1     some words of it   ana@desk"]),
        (30, ["h1     some words     ana@desk", "       of it"]),
        (20, ["h1     some words of", "       it", "    who: ana@desk"]),
    ],
)
def test_columns_wrap_in_their_turn_and_then_go_below(width: int, lines: Sequence[str]) -> None:
    assert drawn(COLUMNS, [("h1", "some words of it", "ana@desk")], width).splitlines()[2:] == lines


def test_a_word_longer_than_its_column_gets_a_line_of_its_own() -> None:
    rows = [("a.very.long.key.of.settings", "1", "here"), ("b", "2", "there")]
    columns = (Column("key", 1, 8), Column("value"), Column("origin"))
    assert aligned(columns, rows, 24) == [
        "a.very.long.key.of.settings",
        "               1   here",
        "b              2   there",
    ]


def test_the_width_is_what_columns_says_or_the_terminals_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (("100", 100), ("0", None), ("wide", None), ("", None)):
        monkeypatch.setenv("COLUMNS", columns)
        assert shown_width() == width


def test_the_terminals_own_width_counts() -> None:
    ours, theirs = pty.openpty()
    words = "import fcntl, struct, sys, termios; fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 91, 0, 0))"
    program = f"{words}; from rackwright.tables import shown_width; print(shown_width())"
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    subprocess.run([sys.executable, "-c", program], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    assert os.read(ours, 100).split() == [b"91"]


def test_long_lines_are_broken_between_words_and_a_next_command_stays_whole_text() -> None:
    text = "short\n  a line with an indent that is too long for it; next: rackwright status x.py\nunbroken-" + "x" * 60
    assert folded(text, 40).split("\n") == [
        "short",
        "  a line with an indent that is too",
        "      long for it;",
        "      next: rackwright status x.py",
        "unbroken-" + "x" * 60,
    ]
    assert folded(text, None) == text
