"""Events of a host as files (hostside/tell.sh): their content, how many stay, and their cost to the caller."""

import subprocess
from pathlib import Path

from rackwright.hostside import host_text
from rackwright.plan.reading import pairs

FOLDER, MEMORY = "/var/lib/rackwright/events", "/run/rackwright/events"


def run(events: Path, lines: str) -> subprocess.CompletedProcess[str]:
    text = host_text("tell.sh").replace(FOLDER, str(events)).replace(MEMORY, str(events.with_suffix(".memory")))
    script = f"set -eu\n{text}\n{lines}"
    return subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True, timeout=60)


def events_in(folder: Path) -> list[dict[str, str]]:
    return [dict(pairs(path.read_text())) for path in sorted(folder.iterdir())]


def test_an_event_is_a_file_of_root_alone_with_its_state(tmp_path: Path) -> None:
    events = tmp_path / "events"
    assert run(events, "tell hang hang-llm 'no step for 130 s'; tell_resolved hang hang-llm again").returncode == 0
    firing, resolved = events_in(events)
    assert (firing["kind"], firing["key"], firing["state"]) == ("hang", "hang-llm", "firing")
    assert (firing["text"], resolved["state"]) == ("no step for 130 s", "resolved")
    assert events.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in events.iterdir()} == {0o600}


def test_a_text_is_one_printable_row_and_a_key_one_word(tmp_path: Path) -> None:
    run(tmp_path, "tell gpu '../gpu 0 $(id)' \"$(printf 'fell off\\nkey=other\\t\\033[31mr\\303\\251d\\377')\"")
    (event,) = events_in(tmp_path)
    assert (event["key"], event["text"]) == ("..-gpu-0---id-", "fell off;key=other [31mréd")


def test_the_newest_hundred_stay(tmp_path: Path) -> None:
    for time in range(1000000000, 1000000150):
        (tmp_path / f"{time}.1.1").write_text("kind=hang\n")
    run(tmp_path, "tell sick sick-llm x")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 100
    assert names[0] == "1000000051.1.1"
    assert int(names[-1].partition(".")[0]) > 1700000000


def test_events_of_one_second_and_two_writers_all_stay(tmp_path: Path) -> None:
    run(tmp_path, "for i in 1 2 3 4 5 6; do (tell restart restart-llm $i) & done; wait")
    assert sorted(event["text"] for event in events_in(tmp_path)) == list("123456")


def test_a_folder_that_cannot_be_written_stops_no_caller(tmp_path: Path) -> None:
    for name in ("events", "events.memory"):
        (tmp_path / name).write_text("a file")
    ended = run(tmp_path / "events", "tell hang hang-llm x; echo on")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "on\n", "")


def test_an_event_that_the_disk_has_no_room_for_waits_in_memory(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("a file")
    run(tmp_path / "events", "tell hang hang-llm x")
    (event,) = events_in(tmp_path / "events.memory")
    assert (event["key"], event["text"]) == ("hang-llm", "x")
