"""A tune: bounds, which variants leave, when it is decided; its time, a cut and the way on; the plan before it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from rackwright.cli.main import main
from rackwright.concerns.endpoint.quality.question_run import JudgedAnswers
from rackwright.concerns.endpoint.seen import SeenEndpoint
from rackwright.concerns.endpoint.switch.events import VARIANT, SwitchProgress
from rackwright.concerns.endpoint.switch.follow import RolledBackError
from rackwright.concerns.lease import LEASED
from rackwright.messages import RackwrightError, SettingsError
from rackwright.plan.jobstream import Event
from rackwright.record.journal import append, read_record
from rackwright.settings.host_settings import HostSettings
from rackwright_bench.aiperf.words import Target
from rackwright_bench.command import goes_ahead
from rackwright_bench.figures.figures import Measured, Request
from rackwright_bench.figures.rounds import Limits
from rackwright_bench.measuring import Tool
from rackwright_bench.record import bench_of, note_cell
from rackwright_bench.running import BenchPlan
from rackwright_bench.suites.loading import load_suite
from rackwright_bench.variants import comparing, tuning
from rackwright_bench.variants.bounds import bound_of, broken_bounds, without_room
from rackwright_bench.variants.changes import changed_keys
from rackwright_bench.variants.estimate import (
    TimeEstimate,
    cost_in_words,
    estimate_of,
    measuring_times,
    time_in_words,
)
from rackwright_bench.variants.taken_up import earlier_tune, refuse_other_machine, take_up
from rackwright_bench.variants.trial import OVER, TrialEndpoint, trial_line
from rackwright_bench.variants.trials import Goal, Trials, conclusion
from rackwright_bench.variants.tuning import Tuning

CELLS = ("s.one", "s.many")


def cell(rate: float, ttft: float = 50.0, failed: int = 0) -> Measured:
    return Measured(tuple(Request(ttft, 5, 500, n + 1, 100) for n in range(10)), 1000 / rate, failed=failed)


def cells(rate: float, **more: Any) -> dict[str, Measured]:
    return {name: cell(rate, **more) for name in CELLS}


def trials(goal: Goal | None = None, **rates: list[float]) -> Trials:
    """Make trials of `settings` at 100 tokens a second, and of variants at these, a round each."""
    most = max((len(values) for values in rates.values()), default=1)
    found = Trials(["settings", *rates], CELLS, goal or Goal())
    for name, values in {"settings": [100.0] * most, **rates}.items():
        for number, rate in enumerate(values, 1):
            found.add(name, number, cells(rate))
    return found


# -- bounds


def test_a_bound_is_any_percentile_or_the_context() -> None:
    assert bound_of("ttft_p95 <= 500").keeps(500)
    assert not bound_of("ttft_p95 < 500").keeps(500)
    assert bound_of("context >= 8k").limit == bound_of("context >= 8K").limit == 8192
    assert bound_of("output_rate > 10.5").worst([9, 11]) == 9


@pytest.mark.parametrize("text", ["ttft", "ttft_p95 = 5", "tftt_p95 < 5", "ttft_p95 < 5k", "ttft_p100 < 5", "context"])
def test_a_wrong_bound_is_refused(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        bound_of(text)
    assert caught.value.code == "RW1524"


def test_the_cell_that_breaks_a_bound_most_is_named() -> None:
    found = {"s.one": cell(10, ttft=40), "s.many": cell(10, ttft=612)}
    assert list(broken_bounds([bound_of("ttft_p95 <= 500")], found)) == ["breaks ttft_p95 <= 500: 612 in s.many"]
    assert list(broken_bounds([bound_of("ttft_p95 <= 700"), bound_of("context >= 8k")], found)) == []


def test_a_context_that_is_too_short_or_not_known_does_not_do() -> None:
    bounds = [bound_of("context >= 8k")]
    assert without_room(bounds, 8192, 4096) == ""
    assert "4096 tokens" in without_room(bounds, 4096, 0)
    assert "not known" in without_room(bounds, None, 0)
    assert "requests of 12288" in without_room([], 8192, 12288)
    assert without_room([], None, 12288) == ""


# -- which of them leave, and when it is decided


def test_a_variant_that_is_behind_by_its_whole_interval_leaves() -> None:
    found = trials(fast=[140, 141, 139], even=[100, 110, 90], slow=[50, 50.5, 49.5])
    assert found.best() == "fast"
    assert found.open() == ["settings", "fast"]
    assert found.winner() == "fast"
    assert found.decided(3, 0.0) == "fast is proven"


def test_a_tune_that_is_cut_before_another_variant_is_measured_compares_nothing() -> None:
    found = trials(Goal(), fast=[])
    found.add("settings", 1, cells(100))
    assert conclusion(found) == "nothing is compared: no other variant than settings was measured to its end"
    found.lost["fast"] = "the host rolled it back: it died"
    assert conclusion(found).startswith("settings stays, and is proven the best: fast the host rolled it back")


def test_one_round_makes_no_variant_leave_and_no_winner() -> None:
    found = trials(fast=[140.0], slow=[50.0])
    assert found.open() == ["settings", "fast", "slow"]
    assert found.winner() == ""
    assert found.decided(1, 1.0) == ""
    assert "proves nothing yet" in conclusion(found)


def test_a_variant_that_breaks_a_bound_or_fails_requests_cannot_be_taken() -> None:
    found = trials(Goal(bounds=(bound_of("ttft_p95 <= 500"),)), fast=[140, 141, 139], wide=[200], lost=[300])
    found.add("wide", 1, cells(200, ttft=900))
    found.add("lost", 1, {"s.one": cell(300), "s.many": cell(300, failed=1)})
    found.lost["gone"] = "the host rolled it back: it died"
    assert found.fault("wide") == "breaks ttft_p95 <= 500: 900 in s.one in round 1"
    assert "s.many in round 1" in found.fault("lost")
    assert found.open() == ["settings", "fast"]
    assert conclusion(found).startswith("fast wins: its output_rate is 1.40x (1.3")
    assert "within ttft_p95 <= 500" in conclusion(found)


def test_settings_that_break_the_bound_lose_to_a_slower_variant() -> None:
    found = trials(Goal(bounds=(bound_of("ttft_p95 <= 500"),)), calm=[60, 60.1, 59.9])
    for number in (1, 2, 3):
        found.add("settings", number, cells(100, ttft=900))
    assert found.winner() == "calm"
    assert found.decided(3, 0.0) == "calm is proven"
    assert "settings breaks ttft_p95" in conclusion(found)


def test_settings_stay_where_everything_else_is_behind() -> None:
    found = trials(slow=[50, 50.5, 49.5])
    assert (found.winner(), found.stays()) == ("", True)
    assert found.decided(3, 0.0) == "no other variant is left"
    assert conclusion(found).startswith("settings stays, and is proven the best: slow 0.50x (0.4")
    even = trials(even=[100, 110, 90])
    assert (even.winner(), even.stays()) == ("", False)


def test_the_goal_may_be_a_figure_of_which_less_is_better() -> None:
    found = Trials(["settings", "quick"], CELLS, Goal("ttft_p95"))
    for number, ttft in enumerate((40, 41, 39), 1):
        found.add("settings", number, cells(100, ttft=100))
        found.add("quick", number, cells(90, ttft=ttft))
    assert (found.best(), found.winner()) == ("quick", "quick")


# -- a tune on a host


SETTINGS = HostSettings.model_validate({"model": {"repository": "a/b", "mount": "/config/models/b"}})
PLAN = BenchPlan(load_suite("quick"), "quick")
NAMES = [one.name for one in PLAN.cells]
SERVES = SeenEndpoint(active="active", health=200, current="r1", proven="r1")


class Host:
    """Serves each variant for as long as it is measured; its clock adds what that takes."""

    endpoint = "llm"
    one = type("One", (), {"host": None, "entry": type("Entry", (), {"name": "a"})})

    def __init__(self) -> None:
        self.now = 0.0
        self.tried = list[str]()
        self.staged = 0
        self.serves_after: SeenEndpoint = SERVES
        self.failing: dict[str, BaseException] = {}
        self.name = ""

    def read(self, _: HostSettings) -> dict[Any, Any]:
        return {LEASED: None, "seen": SERVES if not self.tried else self.serves_after}

    def observed(self, reading: dict[Any, Any]) -> SeenEndpoint:
        return cast(SeenEndpoint, reading["seen"])

    def refuse_unproven(self, _: object) -> None:
        pass

    def stage(self, _: HostSettings) -> None:
        self.staged += 1

    def while_serving(self, _: HostSettings, __: float, work: Callable[[Callable[[], None]], None]) -> None:
        self.tried.append(self.name)
        if error := self.failing.get(self.name):
            raise error
        self.now += 10
        work(lambda: None)
        self.now += 10


RATES = {"settings": 100.0, "fast": 140.0, "slow": 50.0}
WRONG = (("settings", 0), ("fast", 40), ("slow", 0))
"""Wrong answers of each, of a hundred."""
Made = tuple[Tuning, Host, list[str]]


def tune(monkeypatch: pytest.MonkeyPatch, record: Path, host: Host | None = None, each: float = 10.0) -> Made:
    """Make a tune whose cells take `each` seconds."""
    host, lines = host or Host(), list[str]()

    def measure_round(tool: Tool, _: Any, __: Any, to: Path, ___: Any, number: int, found: Any, variant: str) -> None:
        for name in NAMES:
            for _ in range(10):
                host.now += each / 10
                tool.beat()
            one = cell(RATES[variant] + number / 100)
            found.setdefault(name, []).append(one)
            note_cell(to, "a", f"{variant}:{name}", "", one, number)

    def say(text: str) -> None:
        lines.append(text)
        if text.startswith("round"):
            host.name = text.partition(": ")[2]

    monkeypatch.setattr(comparing, "take", lambda *_: None)
    monkeypatch.setattr(comparing, "prepared", lambda *_: Tool(Path(), Target("", "", ""), Path(), Path()))
    monkeypatch.setattr(tuning, "measure_round", measure_round)
    append(record, "begin", purpose="bench", compare=",".join(RATES), tune={"variants": dict.fromkeys(RATES, "x")})
    found = Trials(list(RATES), NAMES, Goal())
    trial = cast(TrialEndpoint, host)
    made = Tuning(PLAN, trial, dict.fromkeys(RATES, SETTINGS), Path(), record, say, {}, trials=found)
    made.clock = lambda: host.now
    return made, host, lines


def test_a_tune_ends_when_it_is_decided_and_says_that_the_host_serves_as_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, host, lines = tune(monkeypatch, tmp_path / "r.jsonl")
    made.carry_out(Limits(9, 0.0))
    assert host.tried == ["settings", "fast", "slow", "slow", "fast", "settings", "settings", "fast"]
    assert host.staged == 3
    assert made.ended == "fast is proven, after round 3"
    assert lines[-1] == "a llm serves release r1, as before the tune"
    assert made.trials.winner() == "fast"


def test_a_host_that_serves_another_release_at_the_end_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, host, _ = tune(monkeypatch, tmp_path / "r.jsonl")
    host.serves_after = SeenEndpoint(active="active", health=200, current="r2", proven="r2")
    with pytest.raises(RackwrightError) as caught:
        made.carry_out(Limits(1))
    assert caught.value.code == "RW1544"


def test_no_trial_begins_that_the_time_does_not_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A trial takes 50 s: 20 for its two loads, 30 for three cells."""
    made, host, _ = tune(monkeypatch, tmp_path / "r.jsonl")
    made.carry_out(Limits(9, 0.0, seconds=160))
    assert host.tried == ["settings", "fast", "slow"]
    assert host.now <= 160
    assert "does not hold another trial; next: the same command with --resume r" in made.ended
    made, host, _ = tune(monkeypatch, tmp_path / "s.jsonl")
    made.expected = 200
    made.carry_out(Limits(9, 0.0, seconds=160))
    assert host.tried == []


def test_the_settings_that_serve_are_measured_where_no_load_fits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, host, _ = tune(monkeypatch, tmp_path / "r.jsonl")
    made.expected, made.load = 230, 100
    made.carry_out(Limits(9, 0.0, seconds=160))
    assert host.tried == ["settings"]
    assert "does not hold another trial" in made.ended


def test_what_a_trial_took_counts_for_the_next_ones_rather_than_what_records_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first switch of a site is slower than those after it: here 200 s are expected, and a trial takes 50."""
    made, host, _ = tune(monkeypatch, tmp_path / "r.jsonl")
    made.expected = 200
    made.carry_out(Limits(9, 0.0, seconds=300))
    assert host.tried == ["settings", "fast", "slow", "slow", "fast", "settings"]


def test_the_loads_of_trials_are_the_next_plan_s_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("RACKWRIGHT_RUNS", str(tmp_path / "runs"))
    record = tmp_path / "runs" / "1.jsonl"
    append(record, "host", host="a", state="switching")
    append(record, "host", host="a", state="switched")
    assert estimate_of(tmp_path, {}, 3).load not in (None, 10)
    made, _, _ = tune(monkeypatch, record)
    made.carry_out(Limits(1, 0.0))
    assert estimate_of(tmp_path, {}, 3).load == 10


def test_a_trial_that_takes_longer_than_the_time_is_cut_and_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = tmp_path / "r.jsonl"
    made, host, lines = tune(monkeypatch, record, each=100)
    made.load = 10
    made.carry_out(Limits(9, 0.0, seconds=150))
    assert host.tried == ["settings"]
    assert host.now <= 150 + 20
    assert made.trials.done == {}
    assert any("the trial does not count" in text for text in lines)
    assert lines[-1].endswith("as before the tune")
    assert len(bench_of("r", read_record(record)).cells) == 1, "cells that were measured stay in the record"


def test_putting_back_is_within_the_time_although_no_record_says_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, host, _ = tune(monkeypatch, tmp_path / "r.jsonl", each=100)
    made.carry_out(Limits(9, 0.0, seconds=150))
    assert host.tried == ["settings"]
    assert host.now <= 150 + 10, "a cut is at the next beat, which is 10 s away here"


class Questions:
    """Takes a minute for each of ten commands."""

    def __init__(self, host: Host, hold: Callable[[], None]) -> None:
        self.host, self.hold = host, hold

    def ask(self) -> JudgedAnswers:
        for _ in range(10):
            self.hold()
            self.host.now += 60
        return JudgedAnswers()


@pytest.mark.parametrize(("seconds", "each"), [(155, 100.0), (300, 10.0)], ids=["while measured", "while asked"])
def test_questions_are_cut_in_time_too_and_a_variant_that_was_not_asked_them_all_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: float, each: float
) -> None:
    made, host, _ = tune(monkeypatch, tmp_path / "r.jsonl", each=each)
    check = type("Check", (), {"seconds": 600, "now": None})
    monkeypatch.setattr(comparing, "variant_check", lambda *_: check)
    monkeypatch.setattr(comparing, "QuestionRun", lambda *more: Questions(host, more[-1]))
    made.carry_out(Limits(9, 0.0, seconds=seconds))
    assert host.now <= seconds + 60
    assert (made.trials.done, made.answers) == ({}, {})


def test_a_variant_that_does_not_start_is_out_and_the_tune_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = tmp_path / "r.jsonl"
    made, host, _ = tune(monkeypatch, record)
    host.failing = {"fast": RolledBackError("the server died\nlog")}
    made.carry_out(Limits(9, 0.0))
    assert host.tried.count("fast") == 1
    assert made.trials.lost == {"fast": "the host rolled it back: the server died"}
    assert made.trials.stays()
    host.failing = {"settings": RolledBackError("died")}
    again, host, _ = tune(monkeypatch, tmp_path / "s.jsonl", host)
    with pytest.raises(RolledBackError):
        again.carry_out(Limits(9, 0.0))


def test_settings_that_aiperf_cannot_measure_end_it_and_are_no_trial_to_take_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RACKWRIGHT_RUNS", str(tmp_path))
    made, host, _ = tune(monkeypatch, tmp_path / "1.jsonl")
    monkeypatch.setattr(
        tuning, "measure_round", lambda *words: note_cell(words[3], "a", "settings:x", "it ended", None)
    )
    with pytest.raises(RackwrightError) as caught:
        made.carry_out(Limits(9, 0.0))
    assert caught.value.code == "RW1542"
    assert "fast, slow not tried, what served serves again; it ended; next: " in caught.value.text
    assert host.tried == ["settings"]
    assert take_up(Trials(list(RATES), NAMES, Goal()), earlier_tune(tmp_path, "1", WANTED), tmp_path / "2.jsonl") == 0


def test_a_variant_that_answers_worse_is_out_also_after_a_cut(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("RACKWRIGHT_RUNS", str(tmp_path / "runs"))
    made, host, lines = tune(monkeypatch, tmp_path / "runs" / "1.jsonl")
    made.answers = {name: JudgedAnswers(right={f"q{at}": at >= wrong for at in range(100)}) for name, wrong in WRONG}
    made.carry_out(Limits(9, 0.0))
    assert host.tried.count("fast") == 1
    assert made.trials.stays()
    assert any(text.startswith("fast answers worse than settings by 40 points") for text in lines)
    again = Trials(list(RATES), NAMES, Goal())
    take_up(again, earlier_tune(tmp_path, "1", WANTED), tmp_path / "runs" / "2.jsonl")
    assert again.fault("fast") == made.trials.fault("fast")


def test_a_line_of_a_trial_promises_no_commit() -> None:
    progress = SwitchProgress("llm", "/logs/trials", VARIANT)
    lines = [trial_line(progress, Event(kind, text)) for kind, text in (("word", "300"), ("end", "committed"))]
    assert lines[0] == "basic proof passed: it is measured now"
    assert progress.waits
    assert "commit" not in lines[1]
    assert "nothing was switched" in lines[1]
    assert trial_line(progress, Event("end", "rolled-back it was measured")).endswith("rolled-back")
    assert trial_line(progress, "loading") == "loading"


def test_a_trial_that_was_measured_is_no_failed_try() -> None:
    progress = SwitchProgress("llm", "/logs/trials", VARIANT)
    message = OVER.partition(" ")[2]
    heard = (Event("failed", message), Event("kept", "/logs/trials/x.log"), Event("end", f"rolled-back {message}"))
    assert [trial_line(progress, one) for one in heard] == [
        "measured: the host puts back what served",
        "the log of this trial is kept on the host: /logs/trials/x.log",
        "what served serves again",
    ]
    assert trial_line(progress, Event("failed", "it died")) == "it died; not keeping this variant"
    assert SwitchProgress("llm", "/x").hear(Event("kept", "/x/y.log")).text.startswith("the log of the failed try is")


# -- a cut, and the way on


WANTED = {"variants": dict.fromkeys(RATES, "x")}


def test_an_interrupted_tune_is_taken_up_where_its_last_whole_trial_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("RACKWRIGHT_RUNS", str(tmp_path / "runs"))
    made, host, _ = tune(monkeypatch, tmp_path / "runs" / "1.jsonl")
    host.failing = {"slow": KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        made.carry_out(Limits(9, 0.0))
    again, host, _ = tune(monkeypatch, tmp_path / "runs" / "2.jsonl")
    assert take_up(again.trials, earlier_tune(tmp_path, "1", WANTED), again.record) == 2
    again.carry_out(Limits(9, 0.0))
    assert host.tried == ["slow", "slow", "fast", "settings", "settings", "fast"]
    assert again.trials.winner() == "fast"
    whole = bench_of("2", read_record(again.record)).cells[f"fast:{NAMES[0]}"]
    assert len(whole.rounds) == 3, "the new record has the trials of the old one"


def test_a_trial_that_was_cut_in_its_middle_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RACKWRIGHT_RUNS", str(tmp_path))
    record = tmp_path / "1.jsonl"
    made, host, _ = tune(monkeypatch, record)
    made.clock = lambda: host.now + (1000 if record.read_text().count('"cell"') > len(NAMES) else 0)
    made.carry_out(Limits(9, 0.0, seconds=900))
    assert (host.tried, list(made.trials.done)) == (["settings", "fast"], ["settings"])
    assert f"fast:{NAMES[0]}" in bench_of("1", read_record(record)).cells
    again, _, _ = tune(monkeypatch, tmp_path / "2.jsonl")
    assert take_up(again.trials, earlier_tune(tmp_path, "1", WANTED), again.record) == 1
    copied = bench_of("2", read_record(again.record)).cells
    assert {name.partition(":")[0] for name in copied} == {"settings"}


def test_what_is_another_since_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RACKWRIGHT_RUNS", str(tmp_path))
    tune(monkeypatch, tmp_path / "1.jsonl")
    with pytest.raises(SettingsError) as caught:
        earlier_tune(tmp_path, "1", {"variants": {**dict.fromkeys(RATES, "x"), "fast": "y"}, "suite": "s"})
    assert caught.value.code == "RW1564"
    assert "suite, variant fast" in caught.value.text
    append(tmp_path / "2.jsonl", "begin", purpose="bench")
    with pytest.raises(RackwrightError) as other:
        earlier_tune(tmp_path, "2", WANTED)
    assert other.value.code == "RW1594"


def test_trials_of_another_driver_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RACKWRIGHT_RUNS", str(tmp_path))
    tune(monkeypatch, tmp_path / "1.jsonl")
    append(tmp_path / "1.jsonl", "measuring", variant="settings", gpus=["NVIDIA B200"], driver="580.65.06")
    earlier = earlier_tune(tmp_path, "1", WANTED)
    refuse_other_machine(earlier, ["NVIDIA B200"], "580.65.06")
    with pytest.raises(RackwrightError) as caught:
        refuse_other_machine(earlier, ["NVIDIA B200"], "590.48.01")
    assert caught.value.code == "RW1564"


# -- the plan


def test_the_time_is_said_from_the_site_s_records() -> None:
    lines = time_in_words(TimeEstimate(45, 60), 4, 5, 14400)
    assert lines[0].startswith("a trial takes about 2 min: two loads of 45 s and 60 s of measuring")
    assert lines[1].startswith("3 rounds of 4 variants take about 26 min, 5 rounds 42 min")
    assert "4.0 h" in lines[2]
    assert "how long a load of the model takes" in time_in_words(TimeEstimate(None, 60), 4, 5, 60)[0]
    assert "how long this suite takes" in time_in_words(TimeEstimate(45, None), 4, 5, 60)[0]


def test_a_comparison_says_what_it_costs_as_the_records_have_it() -> None:
    names, each = ("baseline", "eagle3"), "3 cells of suite s, 54 requests"
    assert cost_in_words(TimeEstimate(45, 60), names, 5, each) == (
        "at most 5 rounds of baseline and eagle3: up to 20 loads of the model, and for each variant in each round "
        "3 cells of suite s, 54 requests; about 5 min a round, 25 min in all, as this site's records say"
    )
    assert "about 5 min a round, as this" in cost_in_words(TimeEstimate(45, 60), names, 1, each)
    assert "the loads alone take about 15 min" in cost_in_words(TimeEstimate(45, None), names, 5, each)
    assert "no record of this site says" in cost_in_words(TimeEstimate(None, 60), names, 5, each)


def test_with_yes_the_cost_is_said_and_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert goes_ahead("This takes gpu-01 llm out of service.", asks=False)
    assert capsys.readouterr().out == "rackwright: This takes gpu-01 llm out of service.\n"


def test_a_time_that_holds_no_two_rounds_is_said_with_one_that_does() -> None:
    (text,) = time_in_words(TimeEstimate(45, 60), 4, 5, 600)[3:]
    assert text == (
        "10 min do not hold 2 rounds of all variants (17 min), and no interval proves a winner before; next: "
        "--timeout 1020, or fewer variants"
    )
    assert len(time_in_words(TimeEstimate(45, 60), 4, 5, 1020)) == 3
    assert len(time_in_words(TimeEstimate(45, 60), 4, 1, 60)) == 3, "one round has no interval in any time"


def test_a_round_takes_from_its_begin_to_its_last_cell() -> None:
    def event(second: int, kind: str, **more: Any) -> dict[str, Any]:
        return {"time": f"2026-11-27T10:00:{second:02}.000+00:00", "kind": kind, **more}

    suite = {"seed": 1}
    events = [event(0, "measuring", settings=suite), event(10, "cell"), event(25, "cell")]
    events += [event(30, "measuring", settings={"seed": 2}), event(40, "cell"), event(41, "cell")]
    events += [event(45, "measuring", settings=suite), event(50, "cell")]
    assert list(measuring_times(events, suite, 2)) == [25.0]
    assert list(measuring_times(events, {**suite, "variants": {"two": {}}, "timeout": 9}, 2)) == [25.0]


def test_the_changes_of_a_variant_are_listed_key_by_key() -> None:
    base: dict[str, Any] = {
        "engine_kind": "vllm",
        "image": "vllm/vllm-openai:v0.14.1",
        "model": {"repository": "a/b", "mount": "/config/models/b"},
        "engine": {"speculative-config": '{"method":"eagle3","num_speculative_tokens":1}', "max-num-seqs": 8},
    }
    other = {**base, "engine": {"speculative-config": '{"method":"eagle3","num_speculative_tokens":3}'}}
    one, two = (HostSettings.model_validate(values).all_endpoints["llm"] for values in (base, other))
    assert changed_keys(one, two) == [
        "engine.speculative-config.num_speculative_tokens 1 -> 3",
        "engine.max-num-seqs 8 -> (not set)",
    ]
    whole = HostSettings.model_validate(
        {**base, "engine": {}, "draft": {"repository": "c/d", "mount": "/config/models/d"}}
    )
    assert changed_keys(one, whole.all_endpoints["llm"]) == [
        "engine.speculative-config eagle3 -> (not set)",
        "engine.max-num-seqs 8 -> (not set)",
        "draft (not set) -> c/d",
    ]


GROUP_VARS = """\
engine_kind: vllm
image: vllm/vllm-openai:v0.14.1
model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}
draft: {repository: nvidia/gpt-oss-120b-Eagle3-throughput, mount: /config/models/eagle3}
engine:
  speculative-config: '{"model":"/config/models/eagle3","num_speculative_tokens":2,"method":"eagle3"}'
  max-model-len: 16384
gpus: [0]
"""
BENCH = """\
datasets: {short: {kind: random, input: 256, output: 64}}
arrivals: {one: {concurrency: 1, requests: 8}}
variants:
  small: {engine: {max-model-len: 4096}}
"""
INVENTORY = "from rackwright.inventory import build\nglobals().update(build(__file__, {'rack': ['gpu01']}))\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {"group_vars/all.yml": GROUP_VARS, "inventory/lab.py": INVENTORY, "bench.yml": BENCH}
    files |= {"deploy.py": "from rackwright.tasks import endpoint, models\nmodels()\nendpoint()\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RACKWRIGHT_RUNS", raising=False)
    return tmp_path


PLANNED = ["bench", "inventory/lab.py", "--suite", "bench.yml", "--plan"]


def test_the_plan_is_printed_without_a_host(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--tune", "baseline,draft_1,draft_2,small", "--bound", "ttft_p95 <= 500", "--bound", "context >= 8k"]
    assert main([*PLANNED, *words]) == 0
    text = capsys.readouterr().out
    assert "tune of gpu01 llm: 3 variants, at most 5 rounds" in text
    assert "engine.speculative-config.num_speculative_tokens 2 -> 1" in text
    assert "left out: draft_2: is the same as settings" in text
    assert "left out: small: its context is 4096 tokens, and the bound is context >= 8k" in text
    assert "bound: ttft_p95 <= 500, in each round of each cell" in text
    assert "no record of this site says how long" in text
    assert not (site / "runs").exists()


def test_a_plan_of_one_round_says_that_it_has_no_interval(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLANNED, "--tune", "baseline", "--rounds", "1"]) == 0
    text = capsys.readouterr().out
    assert "which one round proves only where settings break a bound: it has no interval" in text
    assert "proven by 95 % intervals" not in text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--tune", "draft_2"], "RW1554"),
        (["--tune", "a,,b"], "RW1574"),
        (["--tune", "draft_9,egle3"], "RW1531"),
        (["--tune", "draft_1", "--goal", "speed"], "RW1524"),
        (["--tune", "draft_1", "--compare", "baseline,draft_1"], "RW1584"),
        (["--bound", "ttft_p95 < 5"], "RW1584"),
        (["--tune", "draft_1", "--resume", "last"], "RW0603"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    words: list[str], code: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*PLANNED, *words]) == 1
    assert code in capsys.readouterr().err
