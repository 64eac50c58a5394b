"""The report: what it sums up, that it holds everything, and that no text of a record becomes part of the page."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.cli.main import main
from rackwright.messages import RackwrightError
from rackwright.record.journal import Event, append, new_record
from rackwright.record.states import RunState
from rackwright.record.view.blame import clock, states, tone, tone_of, worst_first
from rackwright.record.view.report import page, write
from rackwright.record.view.report.figures import bars, changed, row_sums, ticks, wave_marks
from rackwright.record.view.timeline_events import timeline_of
from tests.unit.made_up_runs import event, made_up, recorded


class Reader(HTMLParser):
    """Everything in a page: its tags with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def hosts(self) -> list[str | None]:
        return [attributes["data-name"] for _, attributes in self.tags if attributes.get("class") == "host"]


def test_a_good_rollout_on_one_page() -> None:
    read = Reader(page(timeline_of(recorded("good")), "20261121-115735-rollout"))
    text = "".join(read.texts)
    assert read.hosts() == ["lab-lived1", "lab-lived2", "lab-lived3"]
    for expected in ("exit 0", "done: 3 switched", "wave 2", "ms a token", "+stream_interval: 2", "3 hosts"):
        assert expected in text, expected
    assert "What went wrong" not in text


def test_failures_come_first_with_their_reasons() -> None:
    timeline = timeline_of(recorded("rolled-back"))
    assert [host.name for host in worst_first(timeline)] == ["lab-lived2", "lab-lived3", "lab-lived1"]
    text = "".join(Reader(page(timeline, "r")).texts)
    assert text.index("What went wrong") < text.index("no tool call came back") < text.index("Hosts and phases")
    assert "the release's" in text
    assert states(timeline) == [("rolled back", "warn", 1), ("not switched", "warn", 1), ("taken back", "warn", 1)]


def test_a_rollback_by_hand_is_no_trouble() -> None:
    timeline = timeline_of([event(0, "phase", name="rollback"), event(1, "host", host="h1", state="switched")])
    assert tone(timeline, timeline.hosts["h1"].state) == "good"


def test_a_host_that_was_cut_while_switching_is_bad() -> None:
    events = [event(0, "begin", hosts=["h1"]), event(1, "host", host="h1", state="switching")]
    assert tone(timeline_of(events), RunState.SWITCHING) == "busy"
    assert tone(timeline_of([*events, event(2, "end", status=4, text="x")]), RunState.SWITCHING) == "bad"


def test_bars_lie_within_the_run() -> None:
    timeline = timeline_of(made_up(30, bad=2))
    for host in timeline.hosts.values():
        found = bars(timeline, host)
        assert [bar.phase for bar in found if bar.phase != "waiting"][:3] == ["downloading", "draining", "loading"]
        assert all(bar.offset >= 0 and bar.offset + bar.width <= 100.1 for bar in found)
    assert [mark.name for mark in wave_marks(timeline)] == ["canaries", "wave 1", "wave 2"]
    assert ticks(timeline)[0] == (0.0, "0 s")
    assert len(ticks(timeline)) <= 9


def test_a_row_is_summed_over_its_hosts() -> None:
    speed = next(row for row in row_sums(timeline_of(made_up(30, bad=2))) if row.name == "speed")
    assert speed.marks == (("proved", "good", 30),)
    assert speed.now.startswith("8.")
    assert "ms a token (8." in speed.now
    assert speed.before == "7.9 ms a token"
    assert speed.change.startswith("+")
    refused = next(row for row in row_sums(timeline_of(made_up(30, bad=2))) if row.name == "a tool call")
    assert [name for name, _ in refused.worst] == ["gpu029", "gpu030"]


@pytest.mark.parametrize(("count", "wave"), [(4, 20), (40, 10), (500, 20), (500, 1)])
def test_labels_of_waves_do_not_overlap(count: int, wave: int) -> None:
    marks = wave_marks(timeline_of(made_up(count, wave)))
    assert [mark.name for mark in marks[:2]] == ["canaries", "wave 1"]
    for lane in {mark.lane for mark in marks} - {None}:
        in_lane = [mark for mark in marks if mark.lane == lane]
        for first, then in pairwise(in_lane):
            # 7 of a track's 700 pixels a character.
            assert first.offset + len(first.name) <= then.offset, (first, then)
    read = Reader(page(timeline_of(made_up(count, wave)), "r"))
    labels = [attributes for _, attributes in read.tags if attributes.get("class") == "wave"]
    assert len(labels) == sum(mark.lane is not None for mark in marks) > 1
    assert {f"{mark.name} begin" for mark in marks} <= {tag.get("title") for _, tag in read.tags}


def gate_rows(*rows: dict[str, object]) -> list[Event]:
    """Return a run of one host with these rows of the gate."""
    events = [event(2, "row", host="h1", **{"mark": "proved", "seen": "x", **row}) for row in rows]
    return [event(0, "begin", hosts=["h1"]), *events, event(9, "end", status=0, text="done")]


def gate_table(*rows: dict[str, object]) -> list[str]:
    """Return the cells of the gate's table."""
    text = page(timeline_of(gate_rows(*rows)), "r")
    return "|".join(Reader(text[text.index('<section id="gate">') :]).texts).split("|")


def test_figures_without_an_earlier_one_have_no_empty_columns() -> None:
    first = gate_table({"row": "speed", "figure": 0.008}, {"row": "a chat answer"})
    assert ("before" in first, "change" in first) == (False, False)
    later = gate_table({"row": "speed", "figure": 0.008, "figure_before": 0.004}, {"row": "a chat answer"})
    assert ("before" in later, "change" in later, "+100 %" in later, later.count("–")) == (True, True, True, 3)


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [(0, 0, "none"), (3, 0, "+3"), (2.66, 2.66, "none"), (0.79, 0.791, "0 %"), (4, 2, "+100 %")],
)
def test_every_pair_of_figures_has_a_change(now: float, before: float, change: str) -> None:
    (row,) = row_sums(timeline_of(gate_rows({"row": "x", "figure": now, "figure_before": before})))
    assert row.change == change


def test_what_the_release_before_answered_is_shown_without_a_figure() -> None:
    (row,) = row_sums(timeline_of(gate_rows({"row": "a tool call", "before": "no tool call came back"})))
    assert row.before == "no tool call came back"


@pytest.mark.parametrize("state", ["unchanged", "done", "switched", "taken back"])
def test_nothing_is_green_that_was_not_proven(state: str) -> None:
    events = [
        event(0, "begin", hosts=["h1"]),
        event(1, "host", host="h1", state=state),
        event(9, "end", status=0, text="x"),
    ]
    read = Reader(page(timeline_of(events), "r"))
    badges = {
        str(tag["class"])
        for name, tag in read.tags
        if "badge" in str(tag.get("class")) or "chip" in str(tag.get("class"))
    }
    headers = [tag["class"] for name, tag in read.tags if name == "header"]
    assert {badge for badge in badges if "good" in badge} <= ({"badge good"} if headers == ["top good"] else set())
    if state in ("switched", "taken back"):
        assert headers == ["top warn"]
    proven = [*events[:1], event(0.5, "row", host="h1", row="a chat answer", mark="proved", seen="42"), *events[1:]]
    assert tone_of(timeline_of(proven), timeline_of(proven).hosts["h1"]) == TONES[state]


TONES = {"unchanged": "idle", "done": "idle", "switched": "good", "taken back": "warn"}


def test_asking_is_not_drawn_in_the_colour_of_what_is_proven() -> None:
    style = (files("rackwright.record.view.report") / "page.css").read_text()
    for colour in re.findall(r"--proving: #(\w{6})", style):
        red, green, blue = (int(colour[at : at + 2], 16) for at in (0, 2, 4))
        assert green < max(red, blue), colour


def test_equal_changes_are_shown_once_text() -> None:
    groups = changed(timeline_of(made_up(30)))
    assert [len(group.hosts) for group in groups] == [30]
    assert "write release … of endpoint llm (it is not on the host)" in groups[0].changes
    assert groups[0].diff == (("-stream_interval: 1", "removed"), ("+stream_interval: 2", "added"))


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (4.25, "4.2 s"), (59.6, "60 s"), (61, "1:01"), (3723, "1:02:03")]
)
def test_times_are_read_at_a_glance(seconds: float, text: str) -> None:
    assert clock(seconds) == text


NASTY = st.sampled_from(
    ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</pre></style>", "{{ 7 * 7 }}", "'", "&amp;")
) | st.text(max_size=20)


def hostile(text: str) -> list[Event]:
    """Make a record in which every text is this one."""
    return [
        event(0, "begin", who=text, what=text, hosts=[text]),
        event(1, "phase", name=text),
        event(2, "stage", host=text, concern=text, changes=[text], diff=f"+{text}"),
        event(3, "job", host=text, job=text, title=text, state="began"),
        event(4, "progress", host=text, job=text, phase=text, text=text),
        event(5, "waves", waves=[[text]], down={text: {"limit": 1, "hosts": [text]}}),
        event(6, "row", host=text, row=text, mark=text, seen=text, before=text),
        event(7, "host", host=text, state=text, text=text),
        event(7, "failure", host=text, check=text, wave=text, fault=text),
        event(8, "error", host=text, text=text),
        event(9, "end", status=1, text=text),
    ]


@given(NASTY)
@settings(max_examples=40)
def test_no_text_of_a_record_becomes_part_of_the_page(text: str) -> None:
    plain, read = (Reader(page(timeline_of(hostile(value)), value)) for value in ("word", text))
    assert {tag for tag, _ in read.tags} <= {tag for tag, _ in plain.tags}
    for tag in ("script", "style", "meta", "link", "body"):
        assert [one for one, _ in read.tags].count(tag) == [one for one, _ in plain.tags].count(tag)
    assert {name for _, attributes in read.tags for name in attributes} <= ATTRIBUTES


ATTRIBUTES = {
    *("lang", "charset", "name", "content", "http-equiv", "rel", "href", "class", "id", "style", "title", "hidden"),
    *("type", "placeholder", "aria-label", "aria-live", "aria-pressed", "autocomplete", "open", "colspan"),
    *("data-name", "data-state"),
}


def test_nothing_is_fetched_from_anywhere() -> None:
    read = Reader(page(timeline_of(made_up(3, bad=1)), "r"))
    links = [value for _, attributes in read.tags for name, value in attributes.items() if name in ("href", "src")]
    assert all(link is not None and link.startswith(("#", "data:,")) for link in links)
    policy = next(attributes["content"] for _, attributes in read.tags if "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_five_hundred_hosts_stay_a_file_that_opens() -> None:
    text = page(timeline_of(made_up(500, bad=5)), "r")
    assert len(Reader(text).hosts()) == 500
    assert len(text) < 3_000_000


def test_it_lies_beside_the_record_for_its_owner_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = new_record(tmp_path, "rollout")
    append(record, "begin", who="me", what="rollout x", hosts=["h1"])
    (tmp_path / "deploy.py").touch()
    assert main(["report", "--site", str(tmp_path)]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path == record.with_suffix(".html")
    assert path.stat().st_mode & 0o777 == 0o600
    assert "h1" in path.read_text()
    assert main(["report", record.stem, "--site", str(tmp_path), "--out", str(tmp_path / "x.html")]) == 0
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".new"] == []
    with pytest.raises(RackwrightError, match="written: No such file"):
        write(record, tmp_path / "nowhere" / "x.html")


def test_a_run_that_is_not_there_says_what_to_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nothing", "--site", str(tmp_path)]) == 1
    assert "RW0603: " in capsys.readouterr().err


def test_the_kept_log_of_a_failed_release_is_in_the_report(tmp_path: Path) -> None:
    record = new_record(tmp_path, "rollout")
    log = record.with_suffix("") / "h1-llm-aaa.log"
    log.parent.mkdir()
    log.write_text("\n".join(f"line {number} <b>" for number in range(500)))
    elsewhere = tmp_path / "elsewhere.log"
    elsewhere.write_text("not of this run")
    append(record, "host", host="h1", state="rolled back", text="it died")
    append(record, "log", host="h1", file=str(log))
    append(record, "log", host="h2", file=str(elsewhere))
    text = write(record).read_text()
    assert "line 499 &lt;b&gt;" in text
    assert "line 299 " not in text
    assert str(log) in text
    assert "not of this run" not in text
