"""The stand-in of SGLang 0.5.8 as its image runs it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from rackwright.concerns.endpoint.proof.drafts import drafts_accepted
from rackwright.concerns.endpoint.proof.engine_steps import engine_steps
from rackwright.concerns.endpoint.proof.full import channels, refuses
from rackwright.concerns.endpoint.proof.sampling import sampled_answers
from rackwright_lab.standins.hub_content import Store
from tests import foreign_texts
from tests.lab.products import with_proof
from tests.programs.standin_process import EAGLE, GPT_OSS, LLAMA, WEATHER, Bench, Running, ask_row, refused_questions

MODEL = "gpt-oss-20b"


@pytest.fixture
def bench(tmp_path: Path, store: Store, encodings: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, "sglang", store, encodings)
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, store: Store, encodings: Path) -> Iterator[Running]:
    """One server with a draft, metrics and a tool parser, for the tests that only ask."""
    made = Bench(tmp_path_factory.mktemp("sglang"), "sglang", store, encodings)
    base, draft = made.model(GPT_OSS, MODEL), made.model(EAGLE, "eagle3")
    file = made.yaml(
        f"speculative-algorithm: EAGLE3\nspeculative-draft-model-path: {draft}\nspeculative-num-steps: 3\n"
        "enable-metrics: true\ntrust-remote-code: false\nreasoning-parser: gpt-oss\ntool-call-parser: gpt-oss\n"
    )
    running = made.start("--model-path", base, "--served-model-name", MODEL, "--config", file)
    running.wait_ready()
    yield running
    made.end_all()


def test_it_says_what_it_serves_but_has_no_version_route(server: Running) -> None:
    assert server.get("/v1/models").json()["data"][0]["id"] == MODEL
    info = server.get("/get_server_info").json()
    assert (info["version"], info["speculative_algorithm"], info["tp_size"]) == ("0.5.8", "EAGLE3", 1)
    assert server.get("/get_model_info").json()["is_generation"] is True
    assert server.get("/version").status_code == 404


def test_the_questions_about_quality_are_taken(server: Running) -> None:
    assert refused_questions(server, "sglang", MODEL) == []


def test_chats_texts_and_its_own_form_are_answered(server: Running) -> None:
    choice = server.chat("What is 17 + 25?", MODEL).json()["choices"][0]
    assert choice["message"]["content"] == "42"
    assert "avg_decoded_tokens_per_iter" not in choice
    assert server.post("/v1/completions", {"model": MODEL, "prompt": "6 * 7"}).json()["choices"][0]["text"] == "42"
    body = {"text": "What is 6 * 7?", "sampling_params": {"max_new_tokens": 8}}
    assert server.post("/generate", body).json()["text"] == "42"
    assert server.post("/v1/chat/completions", {"model": MODEL}).status_code == 400


def test_a_tool_is_called(server: Running) -> None:
    choice = server.chat("What is the weather in Oslo?", MODEL, tools=[WEATHER]).json()["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}


def test_drafting_and_totals_can_be_read(server: Running) -> None:
    server.chat("What is 17 + 25?", MODEL)
    assert server.get("/get_server_info").json()["internal_states"][0]["avg_spec_accept_length"] > 1
    assert 'sglang:num_requests_total{model_name="gpt-oss-20b"}' in server.get("/metrics").text
    assert 'sglang:realtime_tokens_total{model_name="gpt-oss-20b",mode="decode"}' in server.get("/metrics").text


def test_the_gates_rows_measure_it(server: Running) -> None:
    drafts = drafts_accepted(server.url, MODEL, "sglang", "EAGLE3")
    assert ask_row(drafts).passed
    server.set_faults({"fault": "never_accepts"})
    verdict = ask_row(drafts)
    assert (refuses(drafts, None, verdict), verdict.figure) == (True, 1.0), verdict
    server.set_faults()
    sampled = sampled_answers(server.url, MODEL, "EAGLE3")
    assert ask_row(sampled).passed
    server.set_faults({"fault": "spoils_samples"})
    assert ask_row(drafts).passed
    assert refuses(sampled, None, ask_row(sampled))
    server.set_faults()
    steps = engine_steps(server.url, MODEL, "sglang")
    assert "sglang:generation_tokens grew by" in ask_row(steps).text
    server.set_faults({"fault": "hang_after_seconds", "value": 0})
    hung = ask_row(steps, patience=2)
    server.set_faults()
    assert (refuses(steps, None, hung), hung.text.endswith("it hangs")) == (True, True), hung


def test_n_grams_win_what_was_said_before(bench: Bench) -> None:
    running = bench.start("--model-path", bench.model(LLAMA, "llama"), "--speculative-algorithm", "NGRAM")
    running.wait_ready()
    body = {"text": "Count from 1 to 30.", "sampling_params": {"max_new_tokens": 60}}
    first, again = (running.post("/generate", body).json()["meta_info"] for _ in range(2))
    assert first["spec_verify_ct"] == first["completion_tokens"] - 1
    assert again["spec_verify_ct"] < first["spec_verify_ct"]
    assert ask_row(drafts_accepted(running.url, "llama", "sglang", "NGRAM")).passed
    assert "its scheduler answers" in ask_row(engine_steps(running.url, "llama", "sglang")).text


def test_its_health_goes(server: Running) -> None:
    server.set_faults({"fault": "unhealthy_after_seconds", "value": 0})
    assert server.get("/health").status_code == 503
    server.set_faults()


def test_it_is_silent_while_it_loads_and_says_503_while_it_warms_up(bench: Bench) -> None:
    slow = ({"fault": "load_seconds", "value": 4},)
    running = bench.start("--model-path", bench.model(LLAMA, "llama"), faults=slow)
    until, statuses = time.monotonic() + 40, list[int]()
    while 200 not in statuses and time.monotonic() < until:
        try:
            statuses.append(running.get("/health").status_code)
            assert "Model init total" in running.log.read_text()
        except httpx2.TransportError:
            assert not statuses, f"refused after {statuses}"
            time.sleep(0.05)
    assert (statuses[0], set(statuses)) == (503, {503, 200})
    assert running.get("/metrics").status_code == 404
    assert running.get("/model_info").json()["is_generation"] is True
    assert running.end() == 0


def test_without_its_warm_up_it_is_healthy_at_once(bench: Bench) -> None:
    running = bench.start("--model-path", bench.model(LLAMA, "llama"), "--skip-server-warmup")
    statuses = list[int]()
    while not statuses:
        assert running.process.poll() is None, running.log.read_text()
        with contextlib.suppress(httpx2.TransportError):
            statuses.append(running.get("/health").status_code)
    assert statuses == [200]


@pytest.fixture(scope="module", params=["", "reasoning-parser: gpt-oss", "tool-call-parser: gpt-oss"])
def unparsed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, store: Store, encodings: Path
) -> Iterator[tuple[str, Running]]:
    """Start a server of gpt-oss that lacks one parser or both."""
    made = Bench(tmp_path_factory.mktemp("sglang"), "sglang", store, encodings)
    parser = request.param
    file = made.yaml(f"served-model-name: {MODEL}\nskip-server-warmup: true\n{parser}\n")
    running = made.start("--model-path", made.model(GPT_OSS, MODEL), "--config", file)
    running.wait_ready()
    yield parser.partition("-")[0], running
    made.end_all()


def test_without_a_parser_content_is_what_the_model_wrote(unparsed: tuple[str, Running]) -> None:
    parser, running = unparsed
    choice = running.chat("What is 17 + 25?", MODEL).json()["choices"][0]
    message = choice["message"]
    final = "<|start|>assistant<|channel|>final<|message|>42"
    if parser == "reasoning":
        assert (message["content"], bool(message["reasoning_content"])) == ("42", True)
    else:
        assert message["content"].startswith("<|channel|>analysis<|message|>")
        assert (message["content"].endswith(f"<|end|>{final}"), message["reasoning_content"]) == (True, None)
    marks = channels(running.url, MODEL)
    assert refuses(marks, None, ask_row(marks)) == (parser != "reasoning")
    *events, _, _ = running.chat("What is 17 + 25?", MODEL, stream=True).text.split("\n\n")
    deltas = [json.loads(event.removeprefix("data: "))["choices"][0]["delta"] for event in events]
    assert "".join(delta.get("content") or "" for delta in deltas) == message["content"]


def test_without_a_parser_a_tool_call_stays_text(unparsed: tuple[str, Running]) -> None:
    parser, running = unparsed
    choice = running.chat("What is the weather in Oslo?", MODEL, tools=[WEATHER]).json()["choices"][0]
    message = choice["message"]
    if parser == "tool":
        (call,) = message["tool_calls"]
        assert (json.loads(call["function"]["arguments"]), message["content"]) == ({"city": "Oslo"}, None)
        assert (choice["finish_reason"], message["reasoning_content"]) == ("tool_calls", None)
        return
    assert (message["tool_calls"], choice["finish_reason"]) == (None, "stop")
    call = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}'
    assert message["content"].endswith(call)
    assert message["content"].startswith("<|channel|>analysis") == (parser == "")


def test_other_models_too_need_a_parser_of_tool_calls(bench: Bench) -> None:
    running = bench.start("--model-path", bench.model(LLAMA, "llama"), "--skip-server-warmup")
    running.wait_ready()
    answer = running.chat("What is the weather in Oslo?", "llama", tools=[WEATHER]).json()["choices"][0]
    assert (answer["message"]["tool_calls"], answer["finish_reason"]) == (None, "stop")
    assert json.loads(answer["message"]["content"]) == {"name": "get_weather", "parameters": {"city": "Oslo"}}


WRONG_OPTIONS = [
    ("contextlength: 8", 2, "unrecognized arguments: --contextlength 8"),
    ("tp_size: 2", 2, "unrecognized arguments: --tp_size 2"),
    ("kv-cache-dtype: fp8", 2, "invalid choice: 'fp8'"),
    ("tensor-parallel-size: 2", 1, "invalid device ordinal"),
    ("tp-size: 4\nep-size: 3", 1, "tp_size 4 is not divisible by ep_size 3"),
    ("speculative-algorithm: EAGLE3", 1, "EAGLE3 needs speculative_draft_model_path"),
    ("- a", 1, "must contain a dictionary"),
    ("speculative-algorithm: EAGLE3\nspeculative-draft-model-path: /nowhere", 1, "/nowhere is not a local folder"),
]


@pytest.mark.parametrize(
    ("options", "code", "text"),
    with_proof(WRONG_OPTIONS, WRONG_OPTIONS[::3], "a start of the stand-in each; three kinds of refusal are tried"),
)
def test_options_that_do_not_fit_end_it(bench: Bench, options: str, code: int, text: str) -> None:
    status, message = bench.start("--model-path", bench.model(GPT_OSS, MODEL), "--config", bench.yaml(options)).ended()
    assert (status, text in message) == (code, True), message


def test_a_load_that_fails_ends_the_server(bench: Bench) -> None:
    running = bench.start("--model-path", bench.model(LLAMA, "llama"), faults=({"fault": "die_at_end_of_load"},))
    status, message = running.ended()
    assert (status, foreign_texts.SIGQUIT in message) == (1, True)


def test_it_listens_on_loopback_unless_told(bench: Bench) -> None:
    code = (
        "from sglang.srt.server_args import ServerArgs, prepare_server_args\n"
        "made = prepare_server_args(['--model-path', 'm', '--ep', '2', '--tp-size', '2'])\n"
        "print(made.host, made.port, made.ep_size, ServerArgs(model_path='m').tp_size)"
    )
    assert bench.python(code).stdout.split() == ["127.0.0.1", "30000", "2", "1"]
    wrong = "from sglang.srt.server_args import ServerArgs; ServerArgs(model_path='m', kv_cache_dtype='x')"
    assert "kv_cache_dtype must be one of" in bench.python(wrong).stderr
