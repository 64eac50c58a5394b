"""The stand-in `trtllm-serve` as the image runs it: a process of its own, spoken to by the real openai client."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

from rackwright.concerns.endpoint.proof.drafts import drafts_accepted
from rackwright.concerns.endpoint.proof.engine_steps import engine_steps
from rackwright.concerns.endpoint.proof.full import refuses
from rackwright.concerns.endpoint.proof.sampling import sampled_answers
from rackwright_bench.figures.acceptance import counts_of, drafting_of, grown_between
from rackwright_lab.faults import engine_faults
from rackwright_lab.standins.hub_content import REPOSITORIES, Store
from rackwright_lab.standins.rootfs import ENGINE
from tests import foreign_texts
from tests.lab.products import with_proof
from tests.programs.standin_process import Running, ask_row, free_port, refused_questions

EAGLE = {"decoding_type": "Eagle", "max_draft_len": 3}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "days", "unit"],
        },
    },
}


@dataclass
class Models:
    base: Path
    draft: Path
    llama: Path


@pytest.fixture
def models(store: Store, tmp_path: Path) -> Models:
    """Copy the models that a test may damage, under the names that the recipes use."""
    wanted = {
        "gpt-oss-20b": "openai/gpt-oss-20b",
        "eagle": "nvidia/gpt-oss-120b-Eagle3",
        "llama": "nvidia/Llama-3.1-8B-Instruct-FP4",
    }
    for folder, name in wanted.items():
        for file in store.files(REPOSITORIES[name], 1).values():
            if "/" not in file.name:
                (tmp_path / folder).mkdir(exist_ok=True)
                shutil.copyfile(file.path, tmp_path / folder / file.name)
    return Models(*(tmp_path / folder for folder in wanted))


@dataclass
class Engine(Running):
    """One engine, with the real client."""

    def client(self) -> openai.OpenAI:
        http = httpx2.Client(trust_env=False)
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, http_client=http)

    def ask(self, question: str, **more: Any) -> ChatCompletion:
        messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": question}]
        made = self.client().chat.completions.create(model="gpt-oss-20b", messages=messages, **more)
        return cast(ChatCompletion, made)


Start = Callable[..., Engine]


class Starter:
    """Starts engines as `tensorrt_llm`, laid out as in the image, and ends what is still running."""

    def __init__(self, folder: Path, encodings: Path) -> None:
        self._folder = folder
        (folder / "tensorrt_llm").symlink_to(ENGINE)
        smi = folder / "nvidia-smi"
        smi.write_text(
            '#!/bin/sh\n[ "$1" = -L ] || { echo 10.0; exit; }\n'
            'for i in 0 1 2 3 4 5 6 7; do echo "GPU $i: NVIDIA B200 (UUID: GPU-$i)"; done\n'
        )
        smi.chmod(0o755)
        self._encodings = encodings
        self._running: list[Engine] = []

    def __call__(
        self, model: Path, *flags: str, options: dict[str, Any] | None = None, version: str = "1.2.0rc6",
        port: int = 0, prefix: tuple[str, ...] = (), faults: tuple[dict[str, Any], ...] = (), **env: str,
    ) -> Engine:  # fmt: skip
        number = len(self._running)
        port = port or free_port()
        yaml, log = self._folder / f"options{number}.yaml", self._folder / f"log{number}"
        yaml.write_text(json.dumps(options or {}))
        variables = {
            "PATH": f"{self._folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(self._folder),
            "TRTLLM_STANDIN_VERSION": version,
            "TRTLLM_STANDIN_FAULTS": str(self._folder / f"faults{number}.json"),
            "TRTLLM_STANDIN_LOAD_SECONDS": "0.3",
            "TIKTOKEN_ENCODINGS_BASE": str(self._encodings),
        } | env
        argv = [*prefix, sys.executable, "-m", "tensorrt_llm.commands.serve", str(model), "--host", "127.0.0.1"]
        argv += ["--port", str(port), "--extra_llm_api_options", str(yaml), *flags]
        engine = Engine(cast("subprocess.Popen[str]", None), port, log, Path(variables["TRTLLM_STANDIN_FAULTS"]))
        engine.set_faults(*faults)
        with log.open("w") as stream:
            engine.process = subprocess.Popen(
                argv, env={**os.environ, **variables}, stdout=stream, stderr=subprocess.STDOUT, text=True
            )
        self._running.append(engine)
        return engine

    def end_all(self) -> None:
        for engine in self._running:
            if engine.process.poll() is None:
                engine.process.kill()
                engine.process.wait()


@pytest.fixture
def start(tmp_path: Path, encodings: Path) -> Iterator[Starter]:
    folder = tmp_path / "image"
    folder.mkdir()
    starter = Starter(folder, encodings)
    yield starter
    starter.end_all()


@pytest.fixture(scope="module")
def drafting(tmp_path_factory: pytest.TempPathFactory, encodings: Path, store: Store) -> Iterator[Engine]:
    """One engine with a draft model and all metrics on, for the tests that only ask."""
    folder = tmp_path_factory.mktemp("drafting")
    for name, target in (("openai/gpt-oss-20b", "gpt-oss-20b"), ("nvidia/gpt-oss-120b-Eagle3", "eagle")):
        file = store.files(REPOSITORIES[name], 1)["config.json"]
        (folder / target).symlink_to(file.path.parent)
    starter = Starter(folder, encodings)
    options = {
        "speculative_config": {**EAGLE, "speculative_model_dir": str(folder / "eagle")},
        "enable_iter_perf_stats": True,
        "return_perf_metrics": True,
        "perf_metrics_max_requests": 100,
        "max_batch_size": 10,
    }
    engine = starter(folder / "gpt-oss-20b", "--tp_size", "8", "--ep_size", "4", options=options)
    engine.wait_ready()
    yield engine
    starter.end_all()


@pytest.fixture
def engine(drafting: Engine) -> Iterator[Engine]:
    drafting.set_faults()
    yield drafting
    drafting.set_faults()


# --- refusals before and while loading


def refused(engine: Engine) -> tuple[int, str]:
    return engine.process.wait(timeout=60), engine.log.read_text()


def test_an_unknown_flag_is_a_usage_error(start: Starter, models: Models) -> None:
    code, message = refused(start(models.base, "--moe_backend", "TRTLLM"))
    assert (code, "No such option" in message, "Usage: trtllm-serve" in message) == (2, True, True)


@pytest.mark.parametrize(("version", "code"), [("1.1.0rc0", 2), ("1.2.0rc1", 2), ("1.2.0rc6", 1)])
def test_config_is_another_name_for_the_options_file_since_the_end_of_2025(
    start: Starter, models: Models, version: str, code: int
) -> None:
    engine = start(models.base, "--config", "/nonexistent.yaml", version=version)
    assert refused(engine)[0] == code


def test_an_unknown_key_ends_with_a_traceback_before_any_weight_is_read(start: Starter, models: Models) -> None:
    code, message = refused(start(models.base, options={"kv_cache_dtype": "fp8"}))
    assert code == 1
    assert "Traceback" in message
    assert "Extra inputs are not permitted" in message
    assert "Loading weights" not in message


def test_a_port_that_is_taken_is_told(start: Starter, models: Models) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, message = refused(start(models.base, port=port))
    assert (code, foreign_texts.NOT_BOUND.format(address=f"127.0.0.1:{port}") in message) == (1, True)


def test_more_ranks_than_gpus_are_refused(start: Starter, models: Models) -> None:
    code, message = refused(start(models.base, "--tp_size", "16"))
    assert (code, "invalid device ordinal" in message) == (1, True)


def test_no_gpu_at_all_is_refused(start: Starter, models: Models) -> None:
    code, message = refused(start(models.base, PATH="/nonexistent"))
    assert (code, foreign_texts.NO_GPUS in message) == (1, True)


def cut_short(models: Models) -> None:
    shard = models.base / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])


def missing_shard(models: Models) -> None:
    (models.base / "model-00001-of-00002.safetensors").unlink()


def pointer_instead_of_weights(models: Models) -> None:
    (models.draft / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")


def page_instead_of_config(models: Models) -> None:
    (models.base / "config.json").write_text("<!doctype html>")


def no_draft(models: Models) -> None:
    shutil.rmtree(models.draft)


def another_targets_draft(models: Models) -> None:
    config = json.loads((models.draft / "config.json").read_text())
    (models.draft / "config.json").write_text(json.dumps({**config, "hidden_size": 4096}))


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (cut_short, "MetadataIncompleteBuffer"),
        (missing_shard, "model-00001-of-00002.safetensors"),
        (pointer_instead_of_weights, "HeaderTooLarge"),
        (page_instead_of_config, "JSONDecodeError"),
        (no_draft, "is not a local folder"),
        (another_targets_draft, "Draft model does not match"),
    ],
)
def test_damaged_models_are_refused(
    start: Starter, models: Models, damage: Callable[[Models], None], text: str
) -> None:
    damage(models)
    drafted = {"speculative_config": {**EAGLE, "speculative_model_dir": str(models.draft)}}
    code, message = refused(start(models.base, options=drafted))
    assert (code, text in message) == (1, True), message


def test_while_loading_connections_are_refused_and_the_port_is_taken(start: Starter, models: Models) -> None:
    engine = start(models.base, TRTLLM_STANDIN_LOAD_SECONDS="3")
    until = time.monotonic() + 30
    while "LLM Args" not in engine.log.read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
    with pytest.raises(httpx2.ConnectError):
        engine.get("/health")
    with pytest.raises(OSError, match="in use"), socket.socket() as other:
        other.bind(("127.0.0.1", engine.port))
    engine.wait_ready()
    assert "Loading weights" in engine.log.read_text()


# --- signals


@pytest.mark.parametrize("ready", [True, False])
def test_sigterm_ends_it_with_0(start: Starter, models: Models, ready: bool) -> None:
    engine = start(models.base, TRTLLM_STANDIN_LOAD_SECONDS="0.1" if ready else "30")
    if ready:
        engine.wait_ready()
    else:
        while "Loading" not in engine.log.read_text():
            time.sleep(0.05)
    began = time.monotonic()
    assert engine.end() == 0
    assert time.monotonic() - began < 5


@pytest.mark.skipif(os.geteuid() != 0, reason="a process namespace needs root")
def test_sigterm_ends_it_as_pid_1_too(start: Starter, models: Models) -> None:
    engine = start(models.base, prefix=("unshare", "--pid", "--fork", "--kill-child"))
    engine.wait_ready()
    child = Path(f"/proc/{engine.process.pid}/task/{engine.process.pid}/children").read_text().split()[0]
    os.kill(int(child), signal.SIGTERM)
    assert engine.process.wait(timeout=30) == 0


# --- what it says of itself


def test_its_names_and_versions(engine: Engine) -> None:
    assert engine.get("/health").content == b""
    assert engine.get("/health_generate").status_code == 200
    assert engine.get("/version").json() == {"version": "1.2.0rc6"}
    assert [card.id for card in engine.client().models.list()] == ["gpt-oss-20b"]
    assert engine.get("/nowhere").status_code == 404


def test_metrics_are_drained_by_reading(engine: Engine) -> None:
    engine.get("/metrics")
    engine.ask("What is 1 + 1?")
    assert [row["specDecodingStats"]["numDraftTokens"] > 0 for row in engine.get("/metrics").json()] == [True]
    assert engine.get("/metrics").json() == []
    assert "trtllm_request_success_total" in engine.get("/prometheus/metrics").text


def test_perf_metrics_tell_that_drafts_are_accepted(engine: Engine) -> None:
    engine.get("/perf_metrics")
    made = engine.ask("What is the capital of France?")
    speculation = engine.get("/perf_metrics").json()[0]["perf_metrics"]["speculative_decoding"]
    assert 0 < speculation["total_accepted_draft_tokens"] < speculation["total_draft_tokens"]
    assert 0.3 < speculation["acceptance_rate"] < 0.9
    assert cast(Any, made.choices[0]).avg_decoded_tokens_per_iter is None, "harmony's answers do not carry it"
    text = engine.client().completions.create(model="gpt-oss-20b", prompt="Count from 1 to 30.", max_tokens=60)
    assert cast(Any, text.choices[0]).avg_decoded_tokens_per_iter > 2


def test_the_gates_rows_measure_it(engine: Engine) -> None:
    base, name = engine.url, "gpt-oss-20b"
    drafts = drafts_accepted(base, name, "tensorrt-llm", "Eagle")
    assert ask_row(drafts).passed
    engine.set_faults({"fault": "never_accepts"})
    verdict = ask_row(drafts)
    assert (verdict.passed, verdict.measured, verdict.figure) == (False, True, 1.0), verdict
    engine.set_faults()
    sampled = sampled_answers(base, name, "Eagle")
    assert ask_row(sampled).passed
    engine.set_faults({"fault": "spoils_samples"})
    assert ask_row(drafts).passed
    assert refuses(sampled, None, ask_row(sampled))
    engine.set_faults()
    steps = engine_steps(base, name, "tensorrt-llm")
    assert ask_row(steps).passed
    engine.set_faults({"fault": "hang_after_seconds", "value": 0})
    assert engine.get("/health").status_code == 200
    assert refuses(steps, None, ask_row(steps, patience=2))
    engine.set_faults()


def test_a_bench_reads_its_acceptance_from_the_counters_that_no_reader_drains(start: Starter, models: Models) -> None:
    section = {"decoding_type": "Eagle3", "max_draft_len": 3, "speculative_model": str(models.draft)}
    options = {"speculative_config": section, "return_perf_metrics": True}
    engine = start(models.base, options=options, version="1.4.0rc1")
    engine.wait_ready()
    counts = [counts_of(engine.get("/prometheus/metrics").text)]
    for _ in range(2):
        engine.ask("What is the capital of France?")
        counts.append(counts_of(engine.get("/prometheus/metrics").text))
    found, again = (drafting_of("tensorrt-llm", True, grown_between(*pair), length=3) for pair in pairwise(counts))
    assert found == again
    assert found.accepted is not None
    assert found.tokens_a_step == pytest.approx(1 + 3 * found.accepted)
    assert 0.3 < found.accepted < 0.9


def test_n_grams_need_no_model_and_win_what_repeats(start: Starter, models: Models) -> None:
    engine = start(models.llama, options={"speculative_config": {"decoding_type": "NGram", "max_draft_len": 3}})
    engine.wait_ready()
    name = engine.client().models.list().data[0].id
    counting = engine.client().completions.create(model=name, prompt="Count from 1 to 30.", max_tokens=60)
    assert cast(Any, counting.choices[0]).avg_decoded_tokens_per_iter == 1
    assert ask_row(drafts_accepted(engine.url, name, "tensorrt-llm", "NGram")).passed


def test_without_the_options_there_are_no_metrics(start: Starter, models: Models) -> None:
    engine = start(models.llama)
    engine.wait_ready()
    engine.ask("What is 1 + 1?")
    assert (engine.get("/metrics").json(), engine.get("/perf_metrics").json()) == ([], [])
    assert engine.get("/prometheus/metrics").status_code == 404


def test_the_newest_version_takes_a_name_and_single_settings(start: Starter, models: Models) -> None:
    flags = ("--served_model_name", "mine", "--set", "kv_cache_config.dtype=fp8", "--set", "stream_interval=4")
    engine = start(models.llama, *flags, version="1.4.0rc1")
    engine.wait_ready()
    assert engine.get("/v1/models").json()["data"][0]["id"] == "mine"
    assert "'dtype': 'fp8'" in engine.log.read_text()
    assert "'stream_interval': 4" in engine.log.read_text()


def test_a_repository_name_is_served_from_the_hubs_cache_and_never_fetched(
    start: Starter, models: Models, tmp_path: Path
) -> None:
    cached = tmp_path / "hf/hub/models--nvidia--Llama"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs/main").write_text("abc")
    (cached / "snapshots").mkdir()
    (cached / "snapshots/abc").symlink_to(models.llama)
    engine = start(Path("nvidia/Llama"), HF_HOME=str(tmp_path / "hf"))
    engine.wait_ready()
    assert engine.get("/v1/models").json()["data"][0]["id"] == "nvidia/Llama"
    code, message = refused(start(Path("nvidia/Other"), HF_HOME=str(tmp_path / "hf")))
    assert (code, "is not a local folder" in message) == (1, True)


# --- answers


QUESTIONS = [
    ("What is 17 + 25? Answer with the number only.", "42"),
    ("Compute 12 * (3 + 4).", "84"),
    ("What is 144 divided by 12?", "12"),
    ("What is 6 times 7?", "42"),
    ("What is the capital of France?", "Paris"),
    ("What is the capital city of Japan? One word.", "Tokyo"),
    ('Repeat the word "banana" and nothing else.', "banana"),
    ("Say hello", "hello"),
    ("Reply with exactly: pong", "pong"),
    ("Which day comes after Monday?", "Tuesday"),
    ("What weekday was 2024-02-29?", "Thursday"),
    ("Count from 1 to 5.", "1, 2, 3, 4, 5"),
    ("Which is the largest: 3, 19, or 4?", "19"),
    (
        "If a train travels 180 km in 3 hours, and then slows down by 20% for the next 2 hours, what is the "
        "total distance traveled?",
        "276 km",
    ),
]


@pytest.mark.parametrize(
    ("question", "part"),
    with_proof(QUESTIONS, QUESTIONS[::4], "a start of the stand-in in each worker; four kinds are tried"),
)
def test_questions_with_one_right_answer(engine: Engine, question: str, part: str) -> None:
    made = engine.ask(question, max_tokens=512)
    assert part in (made.choices[0].message.content or "")
    assert made.choices[0].finish_reason == "stop"


def test_an_answer_counts_its_tokens_and_is_the_same_each_time(engine: Engine) -> None:
    question = "Give me a two-sentence summary of Eagle3 speculative decoding."
    first, second = (engine.ask(question) for _ in range(2))
    assert first.choices[0].message.content == second.choices[0].message.content
    usage = first.usage
    assert usage is not None
    assert usage.prompt_tokens > 20
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_an_answer_whose_end_is_ignored_has_the_length_that_was_asked_for(engine: Engine) -> None:
    made = engine.ask("What is 17 + 25?", max_tokens=1024, extra_body={"ignore_eos": True})
    text = engine.client().completions.create(
        model="gpt-oss-20b", prompt="What is 6 * 7?", max_tokens=1024, extra_body={"ignore_eos": True}
    )
    for answer in (made, text):
        assert answer.usage is not None
        assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (1024, "length")


def test_thoughts_use_up_a_small_limit_and_leave_no_content(engine: Engine) -> None:
    made = engine.ask("What is 17 + 25?", max_tokens=32)
    assert made.choices[0].finish_reason == "length"
    assert made.choices[0].message.content == ""
    assert cast(Any, made.choices[0].message).reasoning_content
    low = engine.ask("What is 17 + 25?", max_tokens=64, reasoning_effort="low")
    assert low.choices[0].message.content == "42"


def test_a_stream_says_the_same_as_a_whole_answer(engine: Engine) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is the capital of Italy?"}]
    chunks = list(
        engine.client().chat.completions.create(
            model="gpt-oss-20b", messages=messages, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Rome"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None


def test_the_questions_about_quality_are_taken(engine: Engine) -> None:
    assert refused_questions(engine, "tensorrt-llm", "gpt-oss-20b") == []


def test_a_tool_is_called_with_every_required_argument(engine: Engine) -> None:
    made = engine.ask("What is the weather in San Francisco for 3 days in celsius?", tools=[WEATHER])
    (call,) = made.choices[0].message.tool_calls or []
    assert made.choices[0].finish_reason == "tool_calls"
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "San Francisco", "days": 3, "unit": "celsius"}
    follow_up: list[Any] = [
        {"role": "user", "content": "What is the weather in San Francisco?"},
        made.choices[0].message.model_dump(exclude={"reasoning", "reasoning_content"}),
        {"role": "tool", "tool_call_id": call.id, "content": "18 degrees, fog"},
    ]
    answer = engine.client().chat.completions.create(
        model="gpt-oss-20b", messages=follow_up, tools=[cast(Any, WEATHER)]
    )
    assert "18 degrees, fog" in (answer.choices[0].message.content or "")


def test_a_tool_call_comes_back_in_a_stream(engine: Engine) -> None:
    stream = engine.client().chat.completions.create(
        model="gpt-oss-20b", stream=True, tools=[cast(Any, WEATHER)], tool_choice="required",
        messages=[{"role": "user", "content": "How is it in Oslo?"}],
    )  # fmt: skip
    parts = [call for chunk in stream if chunk.choices for call in chunk.choices[0].delta.tool_calls or []]
    assert [part.function.name for part in parts if part.function and part.function.name] == ["get_weather"]
    arguments = "".join(part.function.arguments or "" for part in parts if part.function)
    assert json.loads(arguments)["city"] == "Oslo"


def test_no_tool_is_called_when_none_is_asked_for(engine: Engine) -> None:
    made = engine.ask("What is 17 + 25?", tools=[WEATHER])
    assert (made.choices[0].message.content, made.choices[0].message.tool_calls or []) == ("42", [])


def test_structured_answers_follow_their_schema(engine: Engine) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "ok": {"type": "boolean"}}}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    made = engine.ask("Is it nice in Rome?", response_format=form)
    assert json.loads(made.choices[0].message.content or "") == {"city": "Rome", "ok": True}


def test_plain_completions(engine: Engine) -> None:
    made = engine.client().completions.create(model="gpt-oss-20b", prompt="What is 6 * 7?", max_tokens=20)
    assert (made.choices[0].text, made.choices[0].finish_reason) == ("42", "stop")
    body = {"model": "m", "prompt": "Explain the benefits of speculative decoding:", "max_tokens": 2}
    assert engine.post("/v1/completions", body).json()["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    "body", [{"model": "m"}, {"model": "m", "messages": []}, {"model": "m", "messages": [{}], "speed": 11}]
)
def test_bad_requests_are_400(engine: Engine, body: dict[str, Any]) -> None:
    assert engine.post("/v1/chat/completions", body).status_code == 400


def test_a_plain_model_answers_without_any_vocabulary(start: Starter, models: Models) -> None:
    engine = start(models.llama, TIKTOKEN_ENCODINGS_BASE="/nonexistent")
    engine.wait_ready()
    assert engine.ask("What is 17 + 25?").choices[0].message.content == "42"


@pytest.mark.parametrize(("version", "tag"), [("1.2.0rc6", "DraftTarget"), ("1.4.0rc1", "Draft_Target")])
def test_a_llama_drafts_for_a_larger_one_without_any_vocabulary(
    start: Starter, store: Store, tmp_path: Path, version: str, tag: str
) -> None:
    names = ("nvidia/Llama-3.3-70B-Instruct-FP4", "nvidia/Llama-3.1-8B-Instruct-FP4")
    target, draft = (store.files(REPOSITORIES[name], 1)["config.json"].path.parent for name in names)
    (tmp_path / "gpt-oss-20b").symlink_to(target)
    section = {"decoding_type": tag, "max_draft_len": 4, "speculative_model_dir": str(draft)}
    options = {"disable_overlap_scheduler": True, "speculative_config": section}
    engine = start(tmp_path / "gpt-oss-20b", options=options, version=version, TIKTOKEN_ENCODINGS_BASE="/nonexistent")
    engine.wait_ready()
    made = engine.ask("Count from 1 to 30.")
    assert "28, 29, 30" in (made.choices[0].message.content or "")
    assert cast(Any, made.choices[0]).avg_decoded_tokens_per_iter > 1


def wrong_bytes(folder: Path, encodings: Path) -> None:
    data = (encodings / "o200k_base.tiktoken").read_bytes()
    (folder / "o200k_base.tiktoken").write_bytes(data[: data.rindex(b"\n", 0, -1) + 1])


def only_the_other(folder: Path, encodings: Path) -> None:
    shutil.copyfile(encodings / "cl100k_base.tiktoken", folder / "cl100k_base.tiktoken")


@pytest.mark.parametrize(
    ("prepare", "why"), [(wrong_bytes, "hash mismatch"), (only_the_other, "No such file"), (None, "failed to download")]
)
def test_a_missing_vocabulary_fails_chat_alone(
    start: Starter, models: Models, tmp_path: Path, encodings: Path,
    prepare: Callable[[Path, Path], None] | None, why: str,
) -> None:  # fmt: skip
    folder = tmp_path / "encodings"
    folder.mkdir()
    if prepare is not None:
        prepare(folder, encodings)
    engine = start(models.base, prefix=() if prepare else ("env", "-u", "TIKTOKEN_ENCODINGS_BASE"),
                   TIKTOKEN_ENCODINGS_BASE=str(folder))  # fmt: skip
    engine.wait_ready()
    with pytest.raises(openai.BadRequestError, match=foreign_texts.NO_VOCABULARY) as caught:
        engine.ask("What is 17 + 25?")
    assert why in str(caught.value)
    assert engine.get("/health").status_code == 200
    assert engine.post("/v1/completions", {"model": "m", "prompt": "6 * 7"}).json()["choices"][0]["text"] == "42"


# --- faults


def test_it_dies_at_the_end_of_its_load(start: Starter, models: Models) -> None:
    code, message = refused(start(models.base, faults=({"fault": "die_at_end_of_load"},)))
    assert (code, "CUDA out of memory" in message) == (1, True)


def test_it_is_never_ready_until_the_fault_goes(start: Starter, models: Models) -> None:
    engine = start(models.base, faults=({"fault": "never_ready"}, {"fault": "load_seconds", "value": 0}))
    time.sleep(2)
    assert engine.process.poll() is None
    with pytest.raises(httpx2.ConnectError):
        engine.get("/health")
    engine.set_faults()
    engine.wait_ready()


def test_it_dies_after_so_many_requests(start: Starter, models: Models) -> None:
    engine = start(models.base, faults=({"fault": "die_after_requests", "value": 1},))
    engine.wait_ready()
    assert engine.post("/v1/completions", {"model": "m", "prompt": "6 * 7"}).status_code == 200
    with pytest.raises(httpx2.TransportError):
        engine.post("/v1/completions", {"model": "m", "prompt": "6 * 7"})
    assert engine.process.wait(timeout=30) == 1


def test_it_dies_after_some_seconds(start: Starter, models: Models) -> None:
    engine = start(models.base, faults=({"fault": "die_after_seconds", "value": 3},))
    engine.wait_ready()
    assert engine.process.wait(timeout=30) == 1


def test_it_drops_tool_calls(engine: Engine) -> None:
    engine.set_faults({"fault": "drop_tool_calls"})
    made = engine.ask("What is the weather in Oslo?", tools=[WEATHER])
    assert (made.choices[0].message.tool_calls or [], made.choices[0].finish_reason) == ([], "stop")


def test_it_repeats_bangs(engine: Engine) -> None:
    engine.set_faults({"fault": "repeat_bang"})
    assert set(engine.ask("What is 17 + 25?", max_tokens=64).choices[0].message.content or "") == {"!"}


def test_it_answers_wrongly_or_slowly_or_under_another_name(engine: Engine) -> None:
    engine.set_faults({"fault": "wrong_answers"}, {"fault": "model_id", "value": "other"})
    assert "42" not in (engine.ask("What is 17 + 25?").choices[0].message.content or "")
    assert engine.get("/v1/models").json()["data"][0]["id"] == "other"
    engine.set_faults({"fault": "slow_factor", "value": 10})
    began = time.monotonic()
    engine.ask("What is 17 + 25?")
    assert time.monotonic() - began > 0.5


def test_its_health_goes(engine: Engine) -> None:
    engine.set_faults({"fault": "unhealthy_after_seconds", "value": 0})
    answer = engine.get("/health")
    assert (answer.status_code, "LLM is unavailable" in answer.text) == (503, True)


def test_the_text_of_a_hosts_faults_names_only_faults_that_exist() -> None:
    assert json.loads(engine_faults({"fault": "slow_factor", "value": 2}))["engine"][0]["value"] == 2
    with pytest.raises(ValueError, match="no such fault: gremlins"):
        engine_faults({"fault": "gremlins"})


@pytest.mark.parametrize(
    ("when", "hit"),
    [
        ({"version": "1.2.0rc6"}, True),
        ({"version": "1.1.0rc0"}, False),
        ({"drafting": True, "option.max_batch_size": 10}, True),
        ({"option.max_batch_size": 11}, False),
    ],
)
def test_a_fault_can_be_kept_to_one_release(engine: Engine, when: dict[str, Any], hit: bool) -> None:
    engine.set_faults({"fault": "model_id", "value": "other", "when": when})
    assert (engine.get("/v1/models").json()["data"][0]["id"] == "other") == hit
