"""The stand-in of vLLM 0.14.1 as its image runs it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import yaml

from rackwright.concerns.endpoint.proof.chat import chat
from rackwright.concerns.endpoint.proof.drafts import drafts_accepted
from rackwright.concerns.endpoint.proof.engine_steps import engine_steps
from rackwright.concerns.endpoint.proof.full import no_loop, refuses, streams
from rackwright.concerns.endpoint.proof.sampling import sampled_answers
from rackwright_lab.standins.hub_content import Store
from tests import foreign_texts
from tests.lab.products import with_proof
from tests.programs.standin_process import (
    EAGLE,
    GPT_OSS,
    LLAMA,
    LONG,
    WEATHER,
    Bench,
    Running,
    ask_row,
    refused_questions,
)

PROFILES = Path(__file__).parents[2] / "group_vars"
MODEL = "gpt-oss-20b"


@pytest.fixture
def bench(tmp_path: Path, store: Store, encodings: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, "vllm", store, encodings)
    yield made
    made.end_all()


def profile(name: str = "rtx_pro_6000_vllm") -> dict[str, object]:
    options: dict[str, object] = yaml.safe_load((PROFILES / f"{name}.yml").read_text())["engine"]
    return options


def drafting(draft: Path, tokens: int = 1, **more: object) -> dict[str, object]:
    section = {"model": str(draft), "num_speculative_tokens": tokens, "method": "eagle3", **more}
    return {"speculative-config": json.dumps({**section, "draft_tensor_parallel_size": 1} | more)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, store: Store, encodings: Path) -> Iterator[Running]:
    """One server with the shipped profile, a draft and a tool parser, for the tests that only ask."""
    made = Bench(tmp_path_factory.mktemp("vllm"), "vllm", store, encodings)
    base, draft = made.model(GPT_OSS, MODEL), made.model(EAGLE, "eagle3")
    file = made.yaml(yaml.safe_dump({**profile(), **drafting(draft)}))
    tools = ("--enable-auto-tool-choice", "--tool-call-parser", "openai")
    running = made.start(base, "--served-model-name", MODEL, "--config", file, *tools)
    running.wait_ready()
    yield running
    made.end_all()


def test_a_served_model_has_its_name_version_and_owner(server: Running) -> None:
    card = server.get("/v1/models").json()["data"][0]
    assert (card["id"], card["owned_by"], card["max_model_len"]) == (MODEL, "vllm", 131072)
    assert server.get("/version").json() == {"version": "0.14.1"}
    assert server.get("/load").json() == {"server_load": 0}


def test_the_questions_about_quality_are_taken(server: Running) -> None:
    assert refused_questions(server, "vllm", MODEL) == []


def test_a_chat_is_answered_and_holds_nothing_of_tensorrt_llm(server: Running) -> None:
    choice = server.chat("What is 17 + 25?", MODEL, speed=11).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("42", "stop")
    assert choice["message"]["reasoning"]
    assert {"avg_decoded_tokens_per_iter", "mm_embedding_handle"}.isdisjoint(choice)


def test_a_stream_ends_as_openai_clients_expect(server: Running) -> None:
    text = server.chat("What is the capital of Italy?", MODEL, stream=True).text
    events = [row.removeprefix("data: ") for row in text.splitlines() if row.startswith("data: ")]
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events[:-1]]
    assert ("".join(delta.get("content") or "" for delta in deltas), events[-1]) == ("Rome", "[DONE]")


def test_a_tool_is_called(server: Running) -> None:
    choice = server.chat("What is the weather in Oslo?", MODEL, tools=[WEATHER]).json()["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], json.loads(call["function"]["arguments"])) == ("tool_calls", {"city": "Oslo"})


def test_metrics_tell_what_was_drafted(server: Running) -> None:
    server.chat("What is 17 + 25?", MODEL)
    rows = dict(row.rsplit(" ", 1) for row in server.get("/metrics").text.splitlines() if row[0] != "#")
    drafts, accepted = (
        float(rows[f'vllm:spec_decode_num_{name}_total{{engine="0",model_name="{MODEL}"}}'])
        for name in ("draft_tokens", "accepted_tokens")
    )
    assert 0 < accepted < drafts
    first = f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",model_name="{MODEL}",position="0"}}'
    assert float(rows[first]) == accepted


def test_the_gates_rows_measure_it(server: Running) -> None:
    drafts = drafts_accepted(server.url, MODEL, "vllm", "eagle3")
    assert ask_row(drafts).passed
    server.set_faults({"fault": "never_accepts"})
    verdict = ask_row(drafts)
    assert (refuses(drafts, None, verdict), verdict.figure) == (True, 1.0), verdict
    server.set_faults()
    steps = engine_steps(server.url, MODEL, "vllm")
    assert "iteration_tokens_total_count grew by" in ask_row(steps).text
    server.set_faults({"fault": "hang_after_seconds", "value": 0})
    assert (server.get("/health").status_code, "num_requests_running" in server.get("/metrics").text) == (200, True)
    hung = ask_row(steps, patience=2)
    server.set_faults()
    assert (refuses(steps, None, hung), hung.text.endswith("it hangs")) == (True, True), hung


def test_samples_that_drafting_spoils_are_refused_where_short_answers_pass(server: Running) -> None:
    base, drafts = server.url, drafts_accepted(server.url, MODEL, "vllm", "eagle3")
    rows = sampled_answers(base, MODEL, "eagle3"), drafts, chat(base, MODEL), streams(base, MODEL), no_loop(base, MODEL)
    assert [ask_row(row).passed for row in rows] == [True] * 5
    server.set_faults({"fault": "spoils_samples"})
    verdicts = [ask_row(row) for row in rows]
    server.set_faults()
    assert [verdict.passed for verdict in verdicts] == [False, True, True, True, False], verdicts
    assert refuses(rows[0], None, verdicts[0])


def test_an_endpoint_whose_own_answers_are_greedy_passes(bench: Bench) -> None:
    section = json.dumps({"method": "ngram", "num_speculative_tokens": 3})
    words = ("--speculative-config", section, "--override-generation-config", '{"temperature": 0}')
    fault = ({"fault": "spoils_samples"},)
    running = bench.start(bench.model(LLAMA, "llama"), "--served-model-name", "llama", *words, faults=fault)
    running.wait_ready()
    assert ask_row(sampled_answers(running.url, "llama", "ngram")).passed
    assert "six," in running.chat("Describe the sea.", "llama", temperature=0.7).text


def test_n_grams_win_what_repeats_and_nothing_while_it_counts(bench: Bench) -> None:
    section = json.dumps({"method": "ngram", "num_speculative_tokens": 3})
    running = bench.start(bench.model(LLAMA, "llama"), "--served-model-name", "llama", "--speculative-config", section)
    running.wait_ready()
    running.chat("Count from 1 to 30.", "llama")
    totals = re.findall(r"spec_decode_num_(\w+)_tokens_total\{.*\} (\S+)", running.get("/metrics").text)
    counted = {name: float(value) for name, value in totals}
    assert (counted["draft"] > 0, counted["accepted"]) == (True, 0)
    assert ask_row(drafts_accepted(running.url, "llama", "vllm", "ngram")).passed


def test_another_model_or_no_request_at_all_is_refused(server: Running) -> None:
    answer = server.chat("What is 17 + 25?", "other")
    message = answer.json()["error"]["message"]
    assert (answer.status_code, message) == (404, foreign_texts.NO_MODEL.format(model="other"))
    assert server.post("/v1/chat/completions", {"model": MODEL}).status_code == 400


def test_several_greedy_answers_are_refused_as_by_a_real_one(server: Running) -> None:
    answer = server.chat("What is 17 + 25?", MODEL, n=2, temperature=0)
    assert (answer.status_code, foreign_texts.GREEDY_ONCE in answer.text) == (400, True), answer.text
    assert len(server.chat("What is 17 + 25?", MODEL, n=2).json()["choices"]) == 2


def test_its_health_goes(server: Running) -> None:
    server.set_faults({"fault": "unhealthy_after_seconds", "value": 0, "when": {"drafting": True, "version": "0.14.1"}})
    assert server.get("/health").status_code == 503
    server.set_faults({"fault": "unhealthy_after_seconds", "value": 0, "when": {"drafting": False}})
    assert server.get("/health").status_code == 200
    server.set_faults()


# --- what it refuses to start with


WRONG_OPTIONS = [
    ({"kv-cache-dtyp": "fp8"}, 2, "unrecognized arguments: --kv-cache-dtyp fp8"),
    ({"kv-cache-dtype": "fp9"}, 2, "invalid choice: 'fp9'"),
    ({"stream-interval": "often"}, 2, "invalid int value: 'often'"),
    ({"compilation-config": "{"}, 2, "cannot be converted to json"),
    ({"compilation-config": '{"pass_config":{"fuse_all":true}}'}, 1, "Extra inputs are not permitted"),
    ({"tensor-parallel-size": 2}, 1, "World size (2) is larger than the number of available GPUs (1)"),
    ({"max-model-len": 999999}, 1, "is greater than the derived max_model_len"),
    ({"max-num-batched-tokens": 8, "max-num-seqs": 9}, 1, "must be greater than or equal to max_num_seqs"),
    ({"gpu-memory-utilization": 1.5}, 1, "less than or equal to 1"),
    ({"enable-auto-tool-choice": True}, 1, "--enable-auto-tool-choice requires --tool-call-parser"),
    (drafting(Path("/nowhere")), 1, "/nowhere is not a local folder"),
    (drafting(Path("/d"), tokens=0), 1, "greater than 0"),
    (drafting(Path("/d"), depth=3), 1, "Extra inputs are not permitted"),
    (drafting(Path("/d"), method="eagle4"), 1, "Input should be"),
    (drafting(Path("/d"), draft_tensor_parallel_size=4), 1, "draft_tensor_parallel_size=4 must be 1"),
    ({"async-scheduling": True, **drafting(Path("/d"), method="medusa")}, 1, "async scheduling is not supported"),
]


@pytest.mark.parametrize(
    ("options", "code", "text"),
    with_proof(WRONG_OPTIONS, WRONG_OPTIONS[::4], "a start of the stand-in each; four kinds of refusal are tried"),
)
def test_options_that_do_not_fit_end_it(bench: Bench, options: dict[str, object], code: int, text: str) -> None:
    status, message = bench.start(bench.model(GPT_OSS, MODEL), "--config", bench.yaml(yaml.safe_dump(options))).ended()
    assert (status, text in message) == (code, True), message


def test_a_file_that_is_no_yaml_file_ends_it(bench: Bench) -> None:
    status, message = bench.start(bench.model(GPT_OSS, MODEL), "--config", bench.yaml("a: 1", "options.conf")).ended()
    assert (status, foreign_texts.NOT_YAML.format(suffix="conf") in message) == (1, True)


def test_the_draft_for_long_contexts_does_not_load(bench: Bench) -> None:
    file = bench.yaml(yaml.safe_dump({**profile(), **drafting(bench.model(LONG, "eagle3"))}))
    status, message = bench.start(bench.model(GPT_OSS, MODEL), "--config", file).ended()
    assert (status, foreign_texts.ENGINE_FAILED in message) == (1, True), message


def test_a_draft_of_another_model_does_not_load(bench: Bench) -> None:
    draft = bench.model(EAGLE, "eagle3")
    config = json.loads((draft / "config.json").read_text())
    (draft / "config.json").write_text(json.dumps({**config, "hidden_size": 4096}))
    file = bench.yaml(yaml.safe_dump(drafting(draft)))
    status, message = bench.start(bench.model(GPT_OSS, MODEL), "--config", file).ended()
    assert (status, "Draft model does not match" in message) == (1, True)


def test_without_a_gpu_or_the_vocabulary_it_does_not_start(bench: Bench) -> None:
    base = bench.model(GPT_OSS, MODEL)
    (bench.folder / "bin/nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    assert "Failed to infer device type" in bench.start(base).ended()[1]
    (bench.folder / "bin/nvidia-smi").write_text('#!/bin/sh\necho "GPU 0: NVIDIA B200 (UUID: GPU-0)"\n')
    status, message = bench.start(base, TIKTOKEN_ENCODINGS_BASE="/nowhere").ended()
    assert (status, foreign_texts.NO_VOCABULARY in message) == (1, True)


# --- how it starts and ends


def test_it_listens_only_when_it_is_ready_and_ends_at_sigterm(bench: Bench) -> None:
    running = bench.start(bench.model(LLAMA, "llama"), TRTLLM_STANDIN_LOAD_SECONDS="2")
    with pytest.raises(httpx2.ConnectError):
        running.get("/health")
    running.wait_ready()
    assert "spec_decode" not in running.get("/metrics").text
    assert running.end() == 0


def test_the_command_line_wins_over_the_file(bench: Bench) -> None:
    base = bench.model(LLAMA, "llama")
    file = bench.yaml("served-model-name: [filed]\nmax_model_len: 1k\nenable-prefix-caching: false\n")
    running = bench.start(base, "--config", file, "--served-model-name", "typed", "also")
    running.wait_ready()
    cards = running.get("/v1/models").json()["data"]
    assert [(card["id"], card["max_model_len"]) for card in cards] == [("typed", 1000), ("also", 1000)]
    assert running.chat("What is 6 times 7?", "also").json()["choices"][0]["message"]["content"] == "42"


def test_tool_calls_come_back_only_with_a_parser(bench: Bench) -> None:
    running = bench.start(bench.model(GPT_OSS, MODEL), "--served-model-name", MODEL)
    plain = bench.start(bench.model(LLAMA, "llama"), "--served-model-name", "llama")
    running.wait_ready()
    choice = running.chat("What is the weather in Oslo?", MODEL, tools=[WEATHER]).json()["choices"][0]
    assert (choice["message"]["tool_calls"], choice["finish_reason"]) == ([], "stop")
    plain.wait_ready()
    answer = plain.chat("What is the weather in Oslo?", "llama", tools=[WEATHER])
    assert (answer.status_code, "requires --enable-auto-tool-choice" in answer.text) == (400, True)


def test_it_dies_at_the_end_of_its_load(bench: Bench) -> None:
    status, message = bench.start(bench.model(LLAMA, "llama"), faults=({"fault": "die_at_end_of_load"},)).ended()
    assert (status, "CUDA out of memory" in message) == (1, True)


# --- the options, built as in the image


CHECK = (
    "import sys; from vllm.engine.arg_utils import EngineArgs; from vllm.entrypoints.openai.cli_args import *; "
    "from vllm.utils.argparse_utils import FlexibleArgumentParser; "
    "args = make_arg_parser(FlexibleArgumentParser()).parse_args(['--model', '{model}', '--config', '{file}']); "
    "validate_parsed_serve_args(args); print(EngineArgs.from_cli_args(args).create_engine_config().longest)"
)


def test_the_options_can_be_built_with_the_engines_own_classes(bench: Bench) -> None:
    model = bench.model(GPT_OSS, MODEL)
    good = bench.python(CHECK.format(model=model, file=bench.yaml(yaml.safe_dump(profile()))))
    assert (good.returncode, good.stdout.strip()) == (0, "131072"), good.stderr
    bad = bench.python(CHECK.format(model=model, file=bench.yaml("kv-cache-dtyp: fp8")))
    assert (bad.returncode, "unrecognized arguments: --kv-cache-dtyp" in bad.stderr) == (2, True)
    made = bench.python(f"from vllm.engine.arg_utils import EngineArgs; EngineArgs(model='{model}', speed=11)")
    assert foreign_texts.UNKNOWN_ARGUMENT.format(name="speed") in made.stderr
    wrong = f"from vllm.engine.arg_utils import *; EngineArgs('{model}', kv_cache_dtype='x').create_engine_config()"
    assert foreign_texts.WRONG_VALUE.format(field="kv_cache_dtype") in bench.python(wrong).stderr
