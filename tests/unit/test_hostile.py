"""What a host, an engine or a hub says is data: forged lines, escapes, lines of megabytes, broken UTF-8."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyinfra import logger
from pyinfra.api import output

from rackwright.adapter.terminal import harmless, tame_output
from rackwright.concerns.endpoint.container import FORMAT
from rackwright.concerns.endpoint.formats import readable
from rackwright.concerns.endpoint.switch.events import parse_row
from rackwright.concerns.gpus import parse as parse_gpus
from rackwright.concerns.image import parse as parse_images
from rackwright.concerns.inflate import inflate
from rackwright.concerns.lease import parse_seen
from rackwright.concerns.models import concern as models
from rackwright.concerns.models import parse as parse_models
from rackwright.concerns.models import read as read_models
from rackwright.concerns.preflight.concern import parse as parse_machine
from rackwright.concerns.teardown.marks import parse as parse_marks
from rackwright.hostside import host_script, job_script
from rackwright.inspect.run_script import HostOutput, show
from rackwright.inspect.status.reading import parse as parse_glance
from rackwright.messages import LONGEST, RackwrightError, ReadingError, paragraph, printable, printable_values
from rackwright.plan.concern import SHARED, parse_all
from rackwright.plan.jobstream import LONGEST_LINE, Event, Heard, JobStream, Splitter, parse_frame
from rackwright.plan.reading import Section, files, lines_of, pairs, whole_number
from rackwright.remote.job_scripts import parse_started, parse_update
from tests.unit.machines import docker
from tests.unit.machines import settings as machine_settings

NONCE = "0b7f3c1e-7f0b-4d57-8a51-6f1f3f2f6f10"
HOSTSIDE = Path(host_script.__code__.co_filename).parent
EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b[8mhidden\x1bcno\u202e\u2066\x9b1m\ud800\x00\x7f\u2028\x85end"
MEGABYTES = 10_000_000


def frame(offset: int, kind: str, text: bytes, nonce: str = NONCE) -> bytes:
    return f"{nonce} {offset} {kind} {base64.b64encode(text).decode()}\n".encode()


# -- a job's log and events

lines = st.lists(st.binary(max_size=40).map(lambda content: content.replace(b"\n", b"")), max_size=8)
cuts = st.lists(st.integers(0, 400), max_size=12).map(sorted)


def chunks(content: bytes, places: Sequence[int]) -> list[bytes]:
    inside = [offset for offset in places if offset <= len(content)]
    return [content[a:b] for a, b in zip([0, *inside], [*inside, len(content)], strict=True)]


@given(lines, cuts)
def test_lines_are_the_same_however_they_are_cut(printed: list[bytes], places: list[int]) -> None:
    splitter = Splitter(LONGEST_LINE)
    found = [row for part in chunks(b"\n".join(printed), places) for row in splitter.feed(part)]
    wanted = [row.decode(errors="replace") for row in printed]
    assert [*found, *splitter.end()] == (wanted[:-1] if wanted and not wanted[-1] else wanted)


def test_a_character_that_came_in_two_parts_is_whole_and_the_last_line_is_not_lost() -> None:
    splitter = Splitter(LONGEST_LINE)
    assert [*splitter.feed(b"gr\xc3"), *splitter.feed(b"\xbcn"), *splitter.end()] == ["grün"]


@pytest.mark.parametrize("size", [1, 65536, MEGABYTES])
def test_a_line_of_megabytes_keeps_its_beginning(size: int) -> None:
    splitter, content = Splitter(LONGEST_LINE), b"x" * MEGABYTES if size > 1 else b"x" * 40_000
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    found = [row for part in [*parts, b"\nnext\n"] for row in splitter.feed(part)]
    assert found == [f"{'x' * LONGEST_LINE} [{len(content) - LONGEST_LINE} bytes more]", "next"]


@given(lines, st.lists(st.tuples(st.integers(0, 300), st.binary(max_size=20)), max_size=5), cuts, cuts)
def test_the_order_of_lines_and_events_does_not_depend_on_the_cuts(
    printed: list[bytes], sent: list[tuple[int, bytes]], log_cuts: list[int], event_cuts: list[int]
) -> None:
    log = b"\n".join(printed)
    events = b"".join(frame(offset, "x", text) for offset, text in sorted(sent))
    whole = heard(log, events, [], [])
    assert [one for one in whole if isinstance(one, Event)] == [
        Event("x", printable(text.decode(errors="replace"))) for _, text in sorted(sent)
    ]
    assert heard(log, events, log_cuts, event_cuts) == whole


def heard(log: bytes, events: bytes, log_cuts: Sequence[int], event_cuts: Sequence[int]) -> list[Heard]:
    """As a follower hears them: an event is never later than what was printed after it."""
    stream = JobStream(NONCE)
    found = [one for part in chunks(events, event_cuts) for one in stream.take(b"", part)]
    found += [one for part in chunks(log, log_cuts) for one in stream.take(part, b"")]
    return [*found, *stream.end()]


def test_an_event_comes_between_the_lines_around_it() -> None:
    stream = JobStream(NONCE)
    events = frame(7, "progress", b"half")
    assert list(stream.take(b"before\nafter\n", events)) == ["before", Event("progress", "half"), "after"]
    assert (stream.log_bytes, stream.event_bytes) == (13, len(events))


@given(st.binary(max_size=200))
def test_no_log_makes_an_event(content: bytes) -> None:
    stream = JobStream(NONCE)
    forged = content + b"\n" + frame(0, "kept", b"/x.log") + b"::kept /x.log\n"
    assert not [one for one in [*stream.take(forged, b""), *stream.end()] if isinstance(one, Event)]


@given(st.text(max_size=100))
def test_no_event_of_another_job_counts(text: str) -> None:
    for other in ("", "x", NONCE[:-1]):
        assert parse_frame(f"{other} 0 kept L3g=", NONCE) is None
    found = parse_frame(text, NONCE)
    assert found is None


@pytest.mark.parametrize("text", ["", " ", "x kept L3g=", "-1 kept L3g=", "٣ kept L3g=", "1 kept L3g", "1 kept L3g= x"])
def test_a_malformed_event_is_none(text: str) -> None:
    assert parse_frame(f"{NONCE} {text}", NONCE) is None


# -- the scripts of a job, for real


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for name in ("log", "events"):
        (tmp_path / name).touch()
    (tmp_path / "nonce").write_text(f"{NONCE}\n")
    return tmp_path


def run(script: str, **env: str) -> subprocess.CompletedProcess[str]:
    words = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", **env}
    return subprocess.run(["sh", "-c", script], env=words, capture_output=True, text=True, check=False)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60))
@settings(max_examples=20, deadline=None)
def test_any_text_is_one_event(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("job")
    (folder / "nonce").write_text(NONCE)
    (folder / "log").write_text("four")
    done = subprocess.run(
        ["sh", "-c", f'{host_script("event")}event failed "$1"', "sh", text], env={"JOB": str(folder)}, check=True
    )
    assert done.returncode == 0
    wanted = printable(text, longest=10**6)
    assert parse_frame((folder / "events").read_text().rstrip("\n"), NONCE) == (4, Event("failed", wanted))


FOLLOW = "systemctl() { echo inactive; }\n"


def follow(job: Path, log: int, events: int, patience: int) -> str:
    where = {"unit": "u", "folder": str(job), "nonce": NONCE, "shown": " progress row "}
    return host_script("job_follow", **where, log=log, events=events, gather=10, patience=patience)


def test_a_follower_gets_both_files_from_where_it_was(job: Path) -> None:
    (job / "log").write_bytes(b"one\ntw\xc3")
    (job / "events").write_bytes(b"first\nsecond\n")
    (job / "status").write_text("3\n")
    (job / "over").touch()
    script = follow(job, log=4, events=6, patience=0)
    update = parse_update(run(FOLLOW + script).stdout.splitlines())
    assert (update.running, update.status, update.log, update.events) == (False, 3, b"tw\xc3", b"second\n")


@pytest.mark.parametrize("state", ["active", "inactive"])
def test_a_silent_job_is_asked_about_once(job: Path, state: str) -> None:
    """One whose end left no file: only systemd knows, and asking it costs more than looking at two files."""
    (job / "log").write_bytes(b"one\n")
    (job / "events").touch()
    systemctl = f"systemctl() {{ echo asked >>{job}/asked; echo {state}; }}\nsleep() {{ :; }}\n"
    script = follow(job, log=4, events=0, patience=9)
    update = parse_update(run(systemctl + script).stdout.splitlines())
    assert (update.running, update.status, update.log) == (state == "active", None, b"")
    assert (job / "asked").read_text() == "asked\n"


def test_a_job_that_says_something_is_not_asked_about(job: Path) -> None:
    (job / "log").write_bytes(b"one\ntwo\n")
    (job / "events").touch()
    script = follow(job, log=4, events=0, patience=9)
    update = parse_update(run("systemctl() { exit 9; }\n" + script).stdout.splitlines())
    assert (update.running, update.log) == (True, b"two\n")


@pytest.mark.parametrize(("event_at", "looks"), [(2, 2), (9, 5)])
def test_lines_wait_for_more_and_an_event_ends_that(job: Path, event_at: int, looks: int) -> None:
    """Each answer costs the host a command: apt's lines come by the hundred."""
    (job / "log").write_bytes(b"one\ntwo\n")
    (job / "events").touch()
    at = f"[ $waited != {event_at} ] || echo first >>{job}/events"
    sleep = f"sleep() {{ echo look >>{job}/looks; {at}; }}\nsystemctl() {{ exit 9; }}\n"
    script = follow(job, log=4, events=0, patience=25)
    update = parse_update(run(sleep + script).stdout.splitlines())
    assert (update.log, update.events) == (b"two\n", b"first\n" if event_at == looks else b"")
    assert len((job / "looks").read_text().splitlines()) == looks


@pytest.mark.parametrize(
    ("words", "looks"),
    [(["word"], 1), (["progress"], 6), (["progress", "row"], 6), (["row", "word"], 1), (["words"], 1)],
)
def test_an_event_that_is_only_shown_waits_for_more(job: Path, words: list[str], looks: int) -> None:
    """Rows come in a burst, and progress with the lines; the host waits for the answer to any other word."""
    (job / "log").touch()
    (job / "events").write_bytes(b"earlier\n")
    lines = "".join(f"{NONCE} 0 {kind} eA==\n" for kind in words)
    (job / "come").write_text(lines)
    sleep = f"sleep() {{ echo look >>{job}/looks; cat {job}/come >>{job}/events; : >{job}/come; }}\n"
    script = follow(job, log=0, events=8, patience=25)
    update = parse_update(run(sleep + "systemctl() { exit 9; }\n" + script).stdout.splitlines())
    assert (update.running, update.events.decode()) == (True, lines)
    assert len((job / "looks").read_text().splitlines()) == looks


def test_the_last_words_and_the_end_are_one_answer(job: Path) -> None:
    """The host's clearing up takes a moment, and a second look at it a command over SSH."""
    (job / "log").write_bytes(b"last\n")
    (job / "events").write_text(f"{NONCE} 5 failed eA==\n")
    (job / "status").write_text("3\n")
    sleep = f"sleep() {{ [ $waited != 1 ] || touch {job}/over; }}\n"
    update = parse_update(run(sleep + FOLLOW + follow(job, log=0, events=0, patience=25)).stdout.splitlines())
    assert (update.running, update.status, update.log) == (False, 3, b"last\n")


def test_a_job_whose_end_is_still_cleared_up_is_waited_for_without_asking(job: Path) -> None:
    (job / "status").write_text("0\n")
    sleep = f"sleep() {{ [ $waited != 3 ] || touch {job}/over; }}\nsystemctl() {{ echo asked >>{job}/asked; }}\n"
    update = parse_update(run(sleep + follow(job, log=0, events=0, patience=25)).stdout.splitlines())
    assert (update.running, update.status) == (False, 0)
    assert (job / "asked").read_text() == "asked\n"


def test_what_was_said_in_the_last_moment_is_not_lost(job: Path) -> None:
    """Between the last look at the files and systemd's word."""
    (job / "over").touch()
    systemctl = f"systemctl() {{ printf last >>{job}/log; echo inactive; }}\n"
    update = parse_update(run(systemctl + follow(job, log=0, events=0, patience=25)).stdout.splitlines())
    assert (update.running, update.log) == (False, b"last")


def test_one_that_has_said_more_than_fits_is_looked_at_again(job: Path) -> None:
    (job / "over").touch()
    (job / "log").write_bytes(b"x" * 70000)
    for begin, size, running in ((0, 65536, True), (65536, 4464, False)):
        update = parse_update(run(FOLLOW + follow(job, log=begin, events=0, patience=25)).stdout.splitlines())
        assert (update.running, len(update.log)) == (running, size)


def test_another_jobs_words_are_never_taken_for_this_ones(job: Path) -> None:
    (job / "nonce").write_text("other\n")
    script = follow(job, log=0, events=0, patience=0)
    with pytest.raises(ReadingError, match="another run has begun one "):
        parse_update(run(FOLLOW + script).stdout.splitlines())


def test_a_hook_is_not_told_where_the_job_keeps_its_files(job: Path) -> None:
    words = "sh -c 'echo \"[$JOB$SECRETS$reason$cause]\"'"
    values: dict[str, str | int] = {
        "hook": "ready_hook",
        "words": words,
        "seconds": 5,
        "endpoint": "llm",
        "port": 1,
        "release": "x",
    }
    done = run(
        host_script("hook", **values), JOB=str(job), SECRETS="s", reason=str(job / "reason"), cause=str(job / "cause")
    )
    assert "[]" in done.stdout.splitlines(), done
    assert done.returncode == 0


def printed(folder: Path, file: str) -> subprocess.CompletedProcess[str]:
    return run(host_script("print_log", folder=str(folder), file=file, most=100))


def test_a_kept_log_is_a_plain_file(tmp_path: Path) -> None:
    folder, secret = tmp_path / "failed", tmp_path / "config.json"
    folder.mkdir()
    secret.write_text("auth")
    (folder / "good.log").write_text("boom")
    (folder / "link.log").symlink_to(secret)
    (tmp_path / "linked").symlink_to(folder)
    assert inflate(printed(folder, "good.log").stdout.strip(), 100) == b"boom"
    for where, file in [
        (folder, "link.log"),
        (folder, "gone.log"),
        (tmp_path / "linked", "good.log"),
        (tmp_path, "failed"),
    ]:
        done = printed(where, file)
        assert (done.returncode, done.stdout) == (1, ""), file


def test_kept_logs_are_roots_alone(job: Path) -> None:
    failed = job / "failed"
    failed.mkdir(mode=0o755)
    words = {"unit": "u", "home": str(job), "label": "abc", "part": "switch"}
    (job / "switched").write_text("now\n")
    done = run("journalctl() { echo said; }\n" + job_script("keep_log", **words), JOB=str(job))
    assert done.returncode == 0, done.stderr
    assert failed.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in failed.iterdir()} == {0o600}
    assert len(list(failed.iterdir())) == 2
    assert " kept " in (job / "events").read_text()


def test_logs_of_trials_push_out_no_log_of_a_failure(job: Path) -> None:
    words = {"unit": "u", "home": str(job), "label": "abc", "part": "all"}
    keeping = "journalctl() { echo said; }\n" + job_script("keep_log", **words)
    (job / "trials").mkdir()
    for number in range(30):
        (job / "trials" / f"20260101T0000{number:02}-x.log").touch()
    assert run(keeping, JOB=str(job)).returncode == 0
    (failure,) = (job / "failed").iterdir()
    assert run(f"export kept_in=trials\n{keeping}", JOB=str(job)).returncode == 0
    assert list((job / "failed").iterdir()) == [failure]
    assert len(list((job / "trials").iterdir())) == 20
    assert (job / "trials").stat().st_mode & 0o777 == 0o700


PRINTS = re.compile(r"""\becho\b(?:'[^']*'|"[^"$`]*"|[^;|&)"'$`])*(?:"[^"$`]*)?[$`]""")
"""An echo of anything but constants: dash's makes line breaks and escapes of what an engine or a name holds."""


def test_no_script_prints_anything_but_constants_with_echo() -> None:
    scripts = [
        *HOSTSIDE.rglob("*.sh"),
        *(HOSTSIDE.parent / "concerns").rglob("*.py"),
        HOSTSIDE.parent / "plan" / "reading.py",
    ]
    for path in scripts:
        for number, row in enumerate(path.read_text().splitlines(), 1):
            assert row.lstrip().startswith("#") or not PRINTS.search(row), f"{path}:{number}: printf '%s\\n': {row}"


@pytest.mark.parametrize(
    "row", ['echo "$x"', "echo $x", 'echo "a; $(b)"', "echo done `x`", """x && echo 'a;' "(b) $b" >&2"""]
)
def test_the_rule_for_echo_sees_what_it_should(row: str) -> None:
    assert PRINTS.search(row)
    plain = "x=$(a || echo none) $b; echo 'a $b'; echo; c $d"
    assert not PRINTS.search(plain)


# -- the parsers


@given(st.text(max_size=300))
@settings(max_examples=200)
def test_no_parser_is_surprised(text: str) -> None:
    some = text.split("\n")
    for parse in (
        lambda: parse_update(some),
        lambda: parse_started(some),
        lambda: parse_row(text),
        lambda: parse_glance(some),
        lambda: parse_marks([*some, "end"]),
        lambda: inflate(text, 100),
    ):
        with suppress(ReadingError):
            parse()
    assert parse_seen(some).last_number >= 0
    assert isinstance(pairs(text), dict)


@pytest.mark.parametrize("row", ["rules filter", "rules filter many", "file a b", "unit a", "container a b", "docker"])
def test_spoilt_marks_are_an_error(row: str) -> None:
    with pytest.raises(ReadingError, match="marks"):
        parse_marks([row, "end"])


@pytest.mark.parametrize("listed", ["[1]", '[{"Id": 1, "Names": 3}]', '[{"Id": "x", "Names": [1]}]', "[null]"])
def test_containers_that_docker_would_never_list_are_an_error(listed: str) -> None:
    answer = f"{listed}\nanswer 200 http://docker/containers/json?all=1"
    sections = {name: Section(0, answer if name == "engine" else "", "") for name in SHARED}
    with pytest.raises(ReadingError, match="something unexpected"):
        parse_all([], sections)


@pytest.mark.parametrize("info", ["many", [1], {"a": 1}, "9" * 5000, None, -1, True])
def test_docker_may_say_anything_of_itself(info: object) -> None:
    spoilt = docker(info={"ServerVersion": "28.0.1", "ContainersRunning": info, "Runtimes": info})
    assert (spoilt.others_running, spoilt.runtimes <= {"a"}) == (0, True)


@pytest.mark.parametrize("port", ["8000x", None, [8000], True, "9" * 5000])
def test_a_spec_whose_port_is_none_says_nothing(port: object) -> None:
    whole = dict.fromkeys(("hash", "serving", "image", "address", "mounts", "served_name"), "x") | {"format": FORMAT}
    assert readable({**whole, "port": 8000})["port"] == 8000
    assert readable({**whole, "port": port}) == {}


@pytest.mark.parametrize("text", ["9" * 5000, "٣", "-1", "1.0", "x", "", " 1"])
def test_what_is_no_whole_number_is_none(text: str) -> None:
    assert (whole_number(text), whole_number("12")) == (None, 12)


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-Infinity", "1e999", '"x"', "[]"])
def test_a_figure_is_a_number(figure: str) -> None:
    with pytest.raises(ReadingError, match="malformed proof row"):
        parse_row(f'{{"row": "chat", "mark": "proved", "seen": "x", "figure": {figure}}}')


def test_a_row_is_printable_though_its_json_is_not_broken() -> None:
    row = parse_row(json.dumps({"row": EVIL, "mark": "proved", "seen": EVIL, "endpoint": EVIL}))
    assert f"{row.mark}{row.name}{row.text}{row.endpoint}".isprintable()


FORGED = "entry 1 2.0 2.0 3 /m/a\x0bentry 9 9.0 9.0 9 /m/b\u2028::x\x85foreign /root"


def test_a_name_with_another_line_break_forges_no_line() -> None:
    parsed = parse_models(f"{FORGED}\n")
    assert not parsed.foreign
    assert parse_images("image a b c\u2028known\n").answered is False
    assert parse_machine("kernel=6\x0buid=0\n").values == {"kernel": "6\x0buid=0"}
    assert files("none /a\x1cnone /b") == {}
    assert lines_of(FORGED) == [FORGED]


def test_a_name_with_a_line_break_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = tmp_path / "records"
    records.mkdir()
    monkeypatch.setattr(models, "MANIFESTS", str(records))
    (records / "m.json").write_text("{}")
    model, forged = tmp_path / "store/m", tmp_path / "store/b\nrecord x yes y z"
    for folder in (model, forged):
        folder.mkdir(parents=True)
        (folder / ".rackwright.json").write_text("{}")
    (model / "a\nentry 1 1.0 1.0 1 forged\nforeign x").write_text("x")
    settings = machine_settings(models={"folder": str(tmp_path / "store")})
    lines = run(f"show() {{ :; }}\n{read_models(settings)}").stdout.splitlines()
    assert [row.split(" ")[0] for row in lines] == ["record", "store", "entry", "entry", "marked", "marked"], lines
    assert lines[0].split(" ")[-1] == str(model)


# -- unpacking


def packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def test_unpacking_is_bounded() -> None:
    assert inflate(packed(b"x" * 100), 100) == b"x" * 100
    with pytest.raises(ReadingError, match="more than 100 bytes"):
        inflate(packed(b"x" * 101), 100)
    with pytest.raises(ReadingError, match="more than 100 bytes"):
        inflate(packed(b"\0" * 50_000_000), 100)


@pytest.mark.parametrize("text", ["", "x", "ä", packed(b"x" * 100)[:20], base64.b64encode(b"boom").decode()])
def test_what_is_not_packed_is_an_error(text: str) -> None:
    with pytest.raises(ReadingError, match="did not arrive whole"):
        inflate(text, 1000)


def test_a_bomb_in_place_of_nvidia_smi_is_an_error() -> None:
    with pytest.raises(ReadingError, match="more than"):
        parse_gpus(f"module \nstatus 0\nxml {packed(bytes(40_000_000))}\n")


# -- terminal, record, report


@given(st.text())
def test_whatever_is_shown_prints(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
    assert all(row.replace("\t", "").isprintable() for row in paragraph(text).split("\n"))
    assert str(RackwrightError(text)).replace("\n", "").replace("\t", "").isprintable()


def test_escapes_go_whole_and_what_is_left_can_be_read() -> None:
    assert printable("\x1b[1;31mred\x1b[0m \x1b]0;title\x1b\\done") == "red done"
    assert "ZXZpbA" not in printable(EVIL)
    assert printable("grün 漢字 ok") == "grün 漢字 ok"


def test_a_line_is_bounded() -> None:
    assert printable("x" * MEGABYTES) == f"{'x' * LONGEST} [{MEGABYTES - LONGEST} characters more]"


def test_an_event_of_the_record_is_printable_at_any_depth() -> None:
    printable = printable_values({"a": [EVIL, {"b\x1b[1m": EVIL}], "n": 1, "line": "a\n\tb"})
    assert "\x1b" not in repr(printable)
    assert printable["line"] == "a\n\tb"
    assert printable["n"] == 1


def test_what_pyinfra_itself_shows_is_harmless(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_echo", click.echo)
    tame_output()
    output.echo(f"[h1] {EVIL}", err=True, color=True)
    errors = capsys.readouterr().err
    assert errors.rstrip("\n").isprintable()
    assert harmless(click.style("ok", fg="green", bold=True)) == click.style("ok", fg="green", bold=True)
    assert harmless("\x1b[30;40mhidden") == "hidden"
    record = logging.LogRecord("pyinfra", logging.INFO, "f", 1, "[h1] %s", (EVIL,), None)
    assert logger.filter(record)
    assert record.getMessage().isprintable()


def test_exec_and_logs_keep_tabs_and_nothing_that_acts(capsys: pytest.CaptureFixture[str]) -> None:
    assert show({"h1": HostOutput(True, (f"a\tb{EVIL}",), (EVIL,))}) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("h1: a\tb")
    for text in (captured.out, captured.err):
        assert text.replace("\t", "").rstrip("\n").isprintable()
