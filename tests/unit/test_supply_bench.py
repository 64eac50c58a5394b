"""What bench/supply writes down before and after a race: the .torrent, the tracker's answer, cells, table and plot."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.supply import cells, plot, report
from bench.supply.__main__ import FLEETS, KEPT, PICTURE, main
from bench.supply.cells import AWAY, DEAD, ONE_HOST, SLOW, Cell, Part, Result
from bench.supply.engines import ENGINES, Race
from bench.supply.onhost.tracker import answer
from bench.supply.race import link_of
from bench.supply.torrent import bencode, torrent_of

RACE = Race(("10.79.0.12", "10.79.0.13", "10.79.0.14", "10.79.0.15"), "10.79.0.11", 1 << 24, "0" * 64, "f" * 64)
CELL = Cell("chain", 4, 1 << 24, 1.0)


def result(cell: Cell, *seconds: float | None, body: int = 1 << 24, round: int = 1) -> Result:
    parts = tuple(Part(f"h{index}", each, 0.5, 0.1, 20480) for index, each in enumerate(seconds))
    return Result(replace(cell, round=round), parts, body, body + 1000, 60.0, 0.1, "2026-11-27T20:00:00+00:00")


def alone(seconds: float) -> Result:
    return result(replace(CELL, engine=ONE_HOST, hosts=1), seconds)


def rows_of(table: Iterable[str]) -> list[list[str]]:
    """Return the fields of a table's rows, its head left out."""
    return [row.strip("| ").split(" | ") for row in table if row.startswith("| ")][1:]


def table_of(*results: Result) -> list[list[str]]:
    return rows_of(report.tables(results))


def test_values_are_written_as_bittorrent_has_them() -> None:
    assert bencode({"b": [1, "spam"], "a": b"\0"}) == b"d1:a1:\x001:bli1e4:spamee"


def test_a_torrent_names_each_piece_by_its_sum(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(bytes(40000))
    sums = hashlib.sha1(bytes(32768)).digest() + hashlib.sha1(bytes(7232)).digest()
    torrent = torrent_of(file, "http://10.0.0.1:6969/announce", piece=32768)
    assert torrent.startswith(b"d8:announce29:http://10.0.0.1:6969/announce4:infod6:lengthi40000e4:name7:weights")
    assert b"12:piece lengthi32768e6:pieces40:" + sums in torrent


def test_the_tracker_names_peers_in_six_bytes_each() -> None:
    assert answer([("10.0.0.1", 6881)]).endswith(b"5:peers6:\x0a\x00\x00\x01\x1a\xe1e")


def test_a_plan_measures_one_host_for_each_link_and_round() -> None:
    planned = list(cells.plan(["aria2", "chain"], 4, 1 << 24, [1.0, 4.0], ["none", "slow"], 2))
    assert len(planned) == len(set(planned)) == 2 * 2 * (1 + 2 * 2)
    assert [cell.engine for cell in planned if cell.hosts == 1] == [ONE_HOST] * 4
    assert all(cell.engine in ENGINES for cell in planned)


def test_what_one_link_carries_is_measured_with_a_part_of_the_file_and_no_fault() -> None:
    planned = list(cells.plan(["chain", "proxy"], 32, 1 << 28, [1.0], ["none", "slow"], 1))
    assert [(cell.engine, cell.size >> 20, cell.fault) for cell in planned] == [
        (ONE_HOST, 16, "none"),
        (ONE_HOST, 256, "none"),
        ("chain", 256, "none"),
        ("proxy", 16, "none"),
        ("chain", 256, "slow"),
    ]


@pytest.mark.parametrize(("hosts", "index"), [(2, 1), (4, 1), (32, 8)])
def test_a_fault_strikes_one_member_that_is_not_the_first(hosts: int, index: int) -> None:
    cell = replace(CELL, hosts=hosts, fault=SLOW, link=4.0)
    assert cell.affected == index
    assert [link_of(cell, at) for at in range(hosts)].count(cells.RATE / 2) == 1
    assert link_of(cell, index) == cells.RATE / 2


@pytest.mark.parametrize("name", FLEETS)
def test_each_engine_asks_the_origin_where_it_should(name: str) -> None:
    starts = [ENGINES[name](RACE, index) for index in range(4)]
    texts = [" ".join(map(str, [*start.argv, *start.files.values()])) for start in starts]
    asks = [RACE.origin in text for text in texts]
    assert asks == ([True] * 4 if name == "all from origin" else [True, False, False, False])
    quiet = [start for start, text in zip(starts, texts, strict=True) if start.marker and start.marker not in text]
    assert all(start.verifies for start in quiet)


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "supply.json"
    assert cells.read(file) == []
    found = [alone(8.1), result(CELL, 8.0, 8.2, None, 9.0)]
    cells.write(file, found)
    assert cells.read(file) == found


def test_times_are_those_of_the_last_host_over_one_host_alone() -> None:
    rounds = [result(CELL, 8.0, 8.5, 9.0, seconds, round=at) for at, seconds in enumerate((9.6, 10.0, 12.0), 1)]
    (row,) = [row for row in report.rows([alone(8.0), *rounds]) if row.cell.engine == "chain"]
    assert row.times(row.last) == "1.25 x"
    (fields,) = table_of(alone(8.0), *rounds)
    assert fields == ["chain", "3", "8.8 s", "10.0 s", "1.25 x", "1.00", "1.00", "29.8 ms", "20 MiB"]


def test_a_result_in_a_line_names_what_failed() -> None:
    failed = result(CELL, 8.0, None, 9.0, 9.5)
    parts = tuple(replace(part, error="the engine ended with 3") if not part.seconds else part for part in failed.parts)
    found = report.sentence(replace(failed, parts=parts, busy=1.7)).split("; ")
    assert found[1] == "last never"
    assert found[-1] == parts[1].error
    assert "1.7" in found[-2]


def test_a_host_that_never_had_its_file_is_said() -> None:
    (fields,) = table_of(alone(8.0), result(CELL, 8.0, 8.5, None, 9.0))
    assert fields[3:5] == ["never", "> 7.5 x, 3 had it"]


@pytest.mark.parametrize(("fault", "last"), [(DEAD, "9.0 s"), (SLOW, "9.0 s"), (AWAY, "9.0 s")])
def test_the_member_with_the_fault_does_not_count_among_the_others(fault: str, last: str) -> None:
    late = None if fault == DEAD else 17.0
    (fields,) = table_of(alone(8.0), result(replace(CELL, fault=fault), 8.0, late, 8.5, 9.0))
    assert fields[3:5] == [last, "1.12 x"]
    assert fields[9:] == ([] if fault == DEAD else ["17.0 s"])


def test_the_picture_has_a_line_for_each_engine_and_link() -> None:
    found = [
        result(replace(CELL, engine=engine, link=link), 8.0, 8.5, 9.0, 9.5)
        for engine in ("aria2", "chain")
        for link in (1.0, 4.0)
    ]
    drawn = ElementTree.fromstring(plot.picture([alone(8.0), *found]))
    lines = [element for element in drawn if element.get("class") == "line" and "L" in str(element.get("d"))]
    assert len(lines) == 4


def test_what_a_file_holds_is_shown_and_not_measured_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, drawing = tmp_path / "supply.json", tmp_path / "supply.svg"
    cells.write(file, [alone(8.0), result(replace(CELL, engine="aria2"), 8.0, 8.5, 9.0, 9.5)])
    words = ["--hosts", "4", "--size", "16MiB", "--engines", "aria2", "--links", "1", "--out", str(file)]
    assert main([*words, "--picture", str(drawing)]) == 0
    (fields,) = rows_of(capsys.readouterr().out.splitlines())
    assert fields[:5] == ["aria2", "1", "8.8 s", "9.5 s", "1.19 x"]
    assert "aria2" in drawing.read_text()


def test_a_size_without_a_unit_is_refused() -> None:
    assert cells.size_of("16MiB") == 1 << 24
    with pytest.raises(ValueError, match="256MiB"):
        cells.size_of("16")


def test_the_kept_picture_is_drawn_from_the_kept_figures() -> None:
    draw = "next: python -m bench.supply --show --picture docs/pictures/supply.svg"
    assert PICTURE.read_text() == plot.picture(cells.read(KEPT)), draw
