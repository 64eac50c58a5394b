"""Suites of `rackwright bench`: the seed's numbers, refusals with file and key, aiperf's words, sets from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.messages import SettingsError
from rackwright_bench.aiperf.words import Target, profile_words
from rackwright_bench.running import BenchPlan
from rackwright_bench.suites.loading import InvalidSuiteError, load_suite, own_suites, suite_of
from rackwright_bench.suites.prompts import LOCK, prompt_files
from rackwright_bench.suites.suite import cells
from tests.refused import refused

SUITE = """\
datasets:
  a: {kind: spec_bench, output: 32, path: spec.jsonl}
  b: {kind: burstgpt, path: burst.csv}
  c: {kind: sharegpt, path: share.json}
arrivals:
  one: {concurrency: 1, requests: 5}
warmup: 2
"""


def files(folder: Path) -> Path:
    """Synthetic files of the three forms."""
    (folder / "spec.jsonl").write_text(json.dumps({"turns": ["What is 2 + 2?", "And twice that?"]}) + "\n\n")
    head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    (folder / "burst.csv").write_text(f"{head}1,ChatGPT,9,9,18,x\n2,GPT-4,3,7,10,x\n3,GPT-4,3,0,3,x\n")
    talk = [{"from": "human", "value": "Hello there"}, {"from": "gpt", "value": "x" * 40}]
    (folder / "share.json").write_text(json.dumps([{"conversations": talk}, {"conversations": talk[:1]}]))
    return folder


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(row) for row in path.read_text().splitlines()]


def test_the_seed_s_numbers_are_the_seed_s() -> None:
    suite = load_suite("seed003")
    lengths = {name: (data.input, data.output) for name, data in suite.datasets.items() if data.kind == "random"}
    assert lengths == {
        "random_s": (1024, 256),
        "random_m": (10240, 256),
        "random_l": (2048, 2048),
        "random_x": (10240, 2048),
    }
    patterns = {name: (one.rate, one.burstiness, one.concurrency, one.requests) for name, one in suite.arrivals.items()}
    assert patterns == {
        "throughput_low": (None, None, 1, 16),
        "throughput_high": (None, None, 32, 256),
        "burstiness_high": (64, 0.2, 32, 256),
        "burstiness_mid": (8, 1.0, 32, 256),
        "burstiness_low": (2, 4.0, 32, 256),
    }
    assert len(list(cells(suite))) == 35


def test_the_seed_s_first_two_experiments_are_its_own() -> None:
    found = {
        name: [
            (cell.data.input, cell.data.output, cell.pattern.concurrency, cell.pattern.requests, cell.pattern.rate)
            for cell in cells(load_suite(name))
        ]
        for name in ("seed003-1", "seed003-2")
    }
    assert found == {
        "seed003-1": [(1024, 1024, 1, 32, None)],
        "seed003-2": [(1024, 1024, 1, 32, None), (1024, 1024, 4, 64, None)],
    }


@pytest.mark.parametrize("name", own_suites())
def test_every_suite_of_ours_loads(name: str) -> None:
    assert list(cells(load_suite(name)))


WRONG = {
    "warmpu: 3": "bench.yml:8: warmpu: unknown key (did you mean warmup?)",
    "seed: -1": "bench.yml:8: seed: must be greater than or equal to 0, not -1",
    "slo: {ttft: 0}": "bench.yml:8: slo.ttft: must be greater than 0, not 0",
}


@pytest.mark.parametrize("entry", WRONG)
def test_a_wrong_key_or_value_is_named_with_its_line(entry: str) -> None:
    with pytest.raises(InvalidSuiteError, match="RW1501") as raised:
        suite_of(f"{SUITE}{entry}\n", "bench.yml")
    assert WRONG[entry] in str(raised.value)


PAIRS = {
    "a: {kind: random, output: 3}": "datasets.a.input: random needs input and output",
    "a: {kind: sharegpt, input: 3}": "datasets.a.input: sharegpt brings its own prompts",
    "a: {kind: spec_bench}": "datasets.a.output: spec_bench has questions without answers",
    "a: {kind: random, input: 1, output: 1, path: x}": "datasets.a.path: random is made, not read",
    f"a: {{kind: random, input: 1, output: 1, sha256: {'a' * 64}}}": "datasets.a.sha256: random is made, not read",
    "a: {kind: sharegtp}": "(did you mean sharegpt?)",
}


@pytest.mark.parametrize("entry", PAIRS)
def test_a_set_that_does_not_fit_its_kind_is_refused(entry: str) -> None:
    text = f"datasets: {{{entry}}}\narrivals: {{one: {{concurrency: 1, requests: 5}}}}\n"
    with pytest.raises(InvalidSuiteError) as raised:
        suite_of(text, "bench.yml")
    assert PAIRS[entry] in str(raised.value)


@pytest.mark.parametrize("pattern", ["{concurrency: 6, requests: 5}", "{concurrency: 1, requests: 5, burstiness: 1}"])
def test_a_pattern_that_cannot_be_is_refused(pattern: str) -> None:
    text = f"datasets: {{a: {{kind: random, input: 1, output: 1}}}}\narrivals: {{one: {pattern}}}\n"
    with pytest.raises(InvalidSuiteError, match=r"arrivals\.one\.(concurrency|rate)"):
        suite_of(text, "bench.yml")


def test_an_unknown_suite_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"RW1502.*did you mean quick\?"):
        load_suite("qick")


def words(suite: str, index: int, prompts: Path | None = None) -> list[str]:
    loaded = load_suite(suite)
    cell = list(cells(loaded))[index]
    target = Target("http://10.0.0.1:8000", "gpt-oss-120b", "builtin")
    return profile_words(Path("/venv/bin/python"), target, loaded, cell, prompts, Path("/out"))


def test_aiperf_reads_no_metrics_and_every_answer_has_its_length() -> None:
    arguments = words("seed003", 2)
    assert {"--no-server-metrics", "--no-gpu-telemetry", '{"ignore_eos": true}'} <= set(arguments)
    text = " ".join(arguments)
    assert "--request-rate 64 --arrival-pattern gamma --vllm-burstiness 0.2" in text
    assert "--request-count 256 --concurrency 32" in text
    assert "--synthetic-input-tokens-mean 1024" in text
    assert "--num-dataset-entries 256" in text


def test_without_a_rate_there_is_no_pattern() -> None:
    assert not {"--request-rate", "--arrival-pattern", "--vllm-burstiness"} & set(words("seed003", 0))


def test_a_set_from_a_file_has_no_synthetic_lengths() -> None:
    arguments = words("seed003", 20, Path("/prompts.jsonl"))
    assert arguments[arguments.index("--input-file") + 1] == "/prompts.jsonl"
    assert "--synthetic-input-tokens-mean" not in arguments


def test_the_three_forms_become_prompts_and_lengths(tmp_path: Path) -> None:
    found = prompt_files(suite_of(SUITE, "bench.yml"), files(tmp_path), tmp_path, tmp_path)
    assert rows(found["a"][0]) == [{"text": "What is 2 + 2?", "output_length": 32}] * 7
    assert [(len(str(row["text"]).split()), row["output_length"]) for row in rows(found["b"][0])] == [(3, 7)] * 7
    assert rows(found["c"][0]) == [{"text": "Hello there", "output_length": 10}] * 7


def test_each_round_has_the_next_requests_of_a_file_and_begins_again_at_its_end(tmp_path: Path) -> None:
    text = (
        "datasets: {a: {kind: spec_bench, output: 8, path: spec.jsonl}}\narrivals: {one: {concurrency: 1, requests: 5}}"
    )
    (tmp_path / "spec.jsonl").write_text("".join(f"{json.dumps({'turns': [str(n)]})}\n" for n in range(20)))
    suite = suite_of(f"{text}\nwarmup: 2\n", "bench.yml")
    one, two, three = prompt_files(suite, tmp_path, tmp_path, tmp_path, rounds=3)["a"]
    prompts = [[row["text"] for row in rows(path)] for path in (one, two, three)]
    assert [len(texts) for texts in prompts] == [7, 7, 7]
    assert len(set(prompts[0] + prompts[1])) == 14, "none comes again, so none is in a prefix cache"
    assert prompts[2][-1] == prompts[0][0], "twenty requests are at an end"
    plan = BenchPlan(suite, "bench", {"a": [one, two, three]})
    assert [plan.prompts_of(plan.cells[0], number) for number in (1, 2, 3)] == [one, two, three]


def test_a_file_is_locked_at_first_use_and_other_bytes_are_refused(tmp_path: Path) -> None:
    suite = suite_of(SUITE, "bench.yml")
    prompt_files(suite, files(tmp_path), tmp_path, tmp_path)
    first = (tmp_path / LOCK).read_text()
    prompt_files(suite, tmp_path, tmp_path, tmp_path)
    assert (tmp_path / LOCK).read_text() == first
    (tmp_path / "spec.jsonl").write_text(json.dumps({"turns": ["Another one"]}))
    with refused("RW1517", "datasets.a.path: ", "SHA-256"):
        prompt_files(suite, tmp_path, tmp_path, tmp_path)


def test_a_file_of_other_bytes_than_the_suite_has_is_refused(tmp_path: Path) -> None:
    text = SUITE.replace("path: spec.jsonl", f"path: spec.jsonl, sha256: {'a' * 64}")
    with refused("RW1517", "datasets.a.path: ", "the suite has", "a" * 64):
        prompt_files(suite_of(text, "bench.yml"), files(tmp_path), tmp_path, tmp_path)
    assert not (tmp_path / LOCK).exists()


def test_a_file_that_is_missing_is_named_with_where_it_is_from(tmp_path: Path) -> None:
    with refused("RW1516", "datasets.a.path: ", "spec.jsonl ", "Spec-Bench", error=SettingsError):
        prompt_files(suite_of(SUITE, "bench.yml"), tmp_path, tmp_path, tmp_path)
    with refused("RW1516", "datasets.sharegpt: ", "none was fetched", "--fetch published", error=SettingsError):
        prompt_files(load_suite("seed003"), tmp_path, tmp_path, tmp_path)
    assert not (tmp_path / LOCK).exists()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"turns": []}'])
def test_a_file_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    (files(tmp_path) / "spec.jsonl").write_text(text)
    with pytest.raises(SettingsError, match=r"RW1518: datasets\.a\.path"):
        prompt_files(suite_of(SUITE, "bench.yml"), tmp_path, tmp_path, tmp_path)
