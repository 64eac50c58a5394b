"""Numbers that must fit together: each rule with a wrong host and the exact message, and hosts that are right."""

from __future__ import annotations

from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.endpoint.container import render_engine_yaml, server_command
from rackwright.engines.host import check_endpoint, check_host
from rackwright.loading.notes import notes
from rackwright.loading.validate import validate
from rackwright.settings.host_settings import HostSettings
from rackwright_engines.data import table
from rackwright_engines.finding import Level
from rackwright_engines.fit.known_drafts import drafts
from rackwright_engines.fit.memory import weights_of
from rackwright_engines.key_path import KeyPath, dotted
from rackwright_engines.quick_yaml import load_yaml
from rackwright_lab.standins.engine.commands.options import click_options
from rackwright_lab.standins.sglang.server_args import prepare_server_args
from rackwright_lab.standins.vllm.arguments import FlexibleArgumentParser, make_arg_parser
from tests import texts

GPT = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}
LLAMA = {"repository": "nvidia/Llama-3.3-70B-Instruct-FP4", "mount": "/config/models/llama"}
V2 = {"repository": "nvidia/gpt-oss-120b-Eagle3-v2", "mount": "/config/models/eagle3"}
LONG = {"repository": "nvidia/gpt-oss-120b-Eagle3-long-context", "mount": "/config/models/eagle3"}
EAGLE = {"decoding_type": "Eagle", "max_draft_len": 3, "speculative_model_dir": "/config/models/eagle3"}
B200 = {"gpu_models": ["B200"], "gpu_count": 8, "architecture": "x86_64", "compute_capability": ["10.0"]}
RTX = {"gpu_models": ["RTX PRO 6000"], "gpu_count": 1, "architecture": "x86_64", "compute_capability": ["12.0"]}
SPARK = {"gpu_models": ["GB10"], "gpu_count": 1, "architecture": "aarch64", "compute_capability": ["12.1"]}
TRT = "nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc6"
WAY_OUT = "to deploy it anyway, set accept_known_bad: true"


def host(**values: Any) -> HostSettings:
    return HostSettings.model_validate({"model": GPT, "image": TRT, "bind": "127.0.0.1", **values})


def problem_texts(level: Level = Level.REFUSE, **values: Any) -> list[str]:
    return [f"{dotted(one.path)}: {one.sentence}" for one in check_host(host(**values)) if one.level is level]


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"hardware": {**B200, "gpu_count": 4}, "engine": {"tensor_parallel_size": 8}},
        "engine.tensor_parallel_size: 8 needs 8 GPUs, and endpoint llm has 4; for 4 set it to 4",
    ),
    (
        {"gpus": [0, 1], "engine": {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}},
        "engine.tensor_parallel_size: 2 x 2 needs 4 GPUs, and endpoint llm has 2; for 2 set it to 1",
    ),
    (
        {"gpus": [0], "engine": {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}},
        "engine.tensor_parallel_size: 2 x 2 needs 4 GPUs, and endpoint llm has 1;"
        " for 1 set it and engine.pipeline_parallel_size to 1",
    ),
    (
        {
            "replicas": 8,
            "hardware": B200,
            "engine": {"tensor_parallel_size": 8, "moe_expert_parallel_size": 4},
        },
        "engine.tensor_parallel_size: 8 needs 8 GPUs, and endpoint llm has 1;"
        " for 1 set it to 1, and engine.moe_expert_parallel_size to 1 with it",
    ),
    (
        {"hardware": B200, "engine": {"tensor_parallel_size": 8, "moe_expert_parallel_size": 3}},
        "engine.moe_expert_parallel_size: 3 does not divide the tensor parallel size, 8",
    ),
    (
        {
            "hardware": B200,
            "engine": {"tensor_parallel_size": 8, "moe_expert_parallel_size": 4, "moe_tensor_parallel_size": 4},
        },
        "engine.moe_expert_parallel_size: 4 x moe_tensor_parallel_size 4 must be 8",
    ),
    ({"gpus": [0, 0]}, "gpus: names a GPU twice"),
    (
        {"hardware": RTX, "engine": {"moe_config": {"backend": "TRTLLM"}}},
        f"engine.moe_config.backend: TRTLLM does not run on compute capability 12.0: use CUTLASS; {WAY_OUT}"
        " (https://github.com/NVIDIA/TensorRT-LLM/pull/11997)",
    ),
    (
        {"hardware": {"gpu_models": ["H200"]}, "engine": {"moe_config": {"backend": "TRTLLM"}}},
        f"engine.moe_config.backend: TRTLLM does not run on compute capability 9.0: use TRITON; {WAY_OUT}"
        " (https://github.com/NVIDIA/TensorRT-LLM/pull/11997)",
    ),
    (
        {"hardware": {"compute_capability": ["8.9"]}},
        f"engine.moe_config.backend: CUTLASS does not run on compute capability 8.9: no backend does; {WAY_OUT}"
        " (https://github.com/NVIDIA/TensorRT-LLM/issues/6717)",
    ),
    (
        {"draft": V2, "engine": {"speculative_config": EAGLE}},
        "engine.speculative_config.eagle3_layers_to_capture: nvidia/gpt-oss-120b-Eagle3-v2 was trained on layers"
        " [-1] of"
        " its target, so it does not load without them; write `engine.speculative_config.eagle3_layers_to_capture:"
        " [-1]`",
    ),
    (
        {
            "draft": LONG,
            "engine": {"speculative_config": {**EAGLE, "max_draft_len": 5, "eagle3_layers_to_capture": [-1]}},
        },
        "engine.speculative_config.eagle3_layers_to_capture: belongs to another draft model:"
        " nvidia/gpt-oss-120b-Eagle3-long-context takes the engine's own choice of layers; leave the key out",
    ),
    (
        {"model": LLAMA, "draft": LONG, "engine": {"speculative_config": {**EAGLE, "max_draft_len": 5}}},
        "draft.repository: nvidia/gpt-oss-120b-Eagle3-long-context drafts for openai/gpt-oss-120b,"
        " not for nvidia/Llama-3.3-70B-Instruct-FP4",
    ),
    (
        {"engine_kind": "sglang", "image": "lmsysorg/sglang:v0.5.8", "hardware": RTX},
        f"image: SGLang 0.5.8 cannot build its kernels for gpt-oss on this GPU; {WAY_OUT}"
        " (https://github.com/sgl-project/sglang/issues/13061)",
    ),
    (
        {"engine_kind": "vllm", "image": "vllm/vllm-openai:v0.14.1", "hardware": RTX, "draft": LONG},
        "draft.repository: vLLM 0.14.1 does not start with this draft model on this GPU;"
        f" nvidia/gpt-oss-120b-Eagle3-throughput does; {WAY_OUT}"
        " (https://huggingface.co/nvidia/gpt-oss-120b-Eagle3-long-context)",
    ),
    (
        {"endpoints": {"a": {"gpus": [0]}, "b": {"gpus": [1]}}},
        "endpoints.b: endpoints a and b both take port 8000: give each its own `port:`",
    ),
    (
        {
            "endpoints": {
                "a": {"gpus": [0], "port": 1},
                "b": {"gpus": [1], "port": 1, "bind": None, "allow_from": "any"},
            }
        },
        "endpoints.b.port: endpoints a and b both take port 1: give each its own `port:`",
    ),
    (
        {
            "endpoints": {"a": {"gpus": [0, 1], "port": 1}, "b": {"gpus": [1, 2], "port": 2}},
            "engine": {"tensor_parallel_size": 2},
        },
        "endpoints.b.gpus: endpoints a and b both take GPU 1: give each its own `gpus:`",
    ),
    (
        {"endpoints": {"a": {"port": 1}, "b": {"port": 2, "gpus": [3]}}},
        "endpoints.b.gpus: endpoints a and b both take GPU 3: give each its own `gpus:`",
    ),
    (
        {"endpoints": {"a": {"port": 1}, "b": {"port": 2}}},
        "endpoints.b: endpoints a and b both take all GPUs: give each its own `gpus:`",
    ),
    (
        {"endpoints": {"a": {"engine": {"moe_confg": {}}}}},
        "endpoints.a.engine.moe_confg: TensorRT-LLM 1.2.0rc6 does not know this key (did you mean moe_config?)",
    ),
]


@pytest.mark.parametrize(("values", "expected"), REFUSED, ids=lambda value: str(value)[:70])
def test_every_refusal_has_its_message(values: dict[str, Any], expected: str) -> None:
    assert problem_texts(**values) == [expected]


WARNED: list[tuple[dict[str, Any], str]] = [
    (
        {"hardware": B200, "engine": {"tensor_parallel_size": 1}},
        "engine.tensor_parallel_size: 1 leaves 7 of 8 GPUs idle; set `gpus:` to the ones it uses, or `replicas: 8`",
    ),
    (
        {"hardware": B200, "engine": {"tensor_parallel_size": 4}},
        "engine.tensor_parallel_size: 4 leaves 4 of 8 GPUs idle; set `gpus:` to the ones it uses, or serve another one"
        " on the rest under `endpoints:`",
    ),
    (
        {"hardware": B200, "gpus": [8]},
        "gpus: GPU 8 need not be there: hardware.gpu_count is 8, so only 0 to 7 are sure",
    ),
    (
        {"image": "r/x:1.1.0rc0", "engine": {"max_batch_size": 10}},
        "engine.max_batch_size: 1.1.0rc0 takes its command line's defaults over this; set sizes_on_command_line:"
        " true as well",
    ),
    (
        {"arguments": ["--kv_cache_free_gpu_memory_fraction", "0.7"]},
        "arguments[0]: --kv_cache_free_gpu_memory_fraction: write it as"
        " engine.kv_cache_config.free_gpu_memory_fraction;"
        " whether it wins here depends on the version",
    ),
    (
        {
            "hardware": {**RTX, "gpu_models": ["H100"], "compute_capability": ["9.0"]},
            "model": LLAMA,
            "engine": {"max_seq_len": 300000, "max_num_tokens": 300000},
        },
        "engine.max_seq_len: one request of 300000 tokens does not seem to fit: 40 GiB of weights over 1 GPU with 80"
        " GiB"
        " each leave about 36 GiB for the KV cache, which holds 117610 tokens at 327680 bytes each",
    ),
    (
        {"hardware": {"gpu_models": ["RTX PRO 6000", "H100"], "gpu_count": 1}, "model": {**GPT, "repository": "a/b"}},
        "",
    ),
    (
        {
            "image": "r/x:1.2.0rc1",
            "hardware": RTX,
            "draft": {**V2, "repository": "nvidia/gpt-oss-120b-Eagle3"},
            "engine": {"speculative_config": EAGLE},
        },
        "draft.repository: answers that never end were seen with this draft model, version and GPU"
        " (https://github.com/NVIDIA/TensorRT-LLM/issues/8615)",
    ),
    (
        {"image": "r/x:1.2.0rc1", "draft": LONG, "engine": {"speculative_config": {**EAGLE, "max_draft_len": 5}}},
        "draft.repository: nvidia/gpt-oss-120b-Eagle3-long-context is published for 1.2.0rc6 and later, not for"
        " 1.2.0rc1",
    ),
    (
        {"engine_kind": "sglang", "image": "lmsysorg/sglang:v0.5.8", "draft": LONG},
        "draft.repository: nvidia/gpt-oss-120b-Eagle3-long-context is published for 0.5.12 and later, not for v0.5.8",
    ),
    (
        {"engine_kind": "sglang", "image": "lmsysorg/sglang:v0.5.12", "draft": V2},
        "draft.repository: nvidia/gpt-oss-120b-Eagle3-v2 is not published with this engine;"
        " known: tensorrt-llm 1.2.0rc0",
    ),
    (
        {
            "draft": {**V2, "repository": "lmsys/EAGLE3-gpt-oss-120b-bf16"},
            "engine_kind": "vllm",
            "image": "r/x:v0.14.1",
        },
        "draft.repository: was measured slower than no drafting: 125.09 tok/s against 177.71 without drafting, one"
        " request"
        " at a time (a published comparison of EAGLE-3 models on RTX PRO 6000 (February 2026))",
    ),
    (
        {
            "draft": {**V2, "repository": "nvidia/gpt-oss-120b-Eagle3-throughput"},
            "engine_kind": "vllm",
            "image": "r/x:v0.14.1",
            "engine": {"speculative-config": '{"num_speculative_tokens": 3}'},
        },
        "engine.speculative-config.num_speculative_tokens: was measured slower: with 3 tokens 124.73 tok/s, with 1"
        " token"
        " 180.67, without drafting 177.71, one request at a time (a published comparison of EAGLE-3 models on RTX"
        " PRO 6000"
        " (February 2026))",
    ),
]


@pytest.mark.parametrize(("values", "expected"), WARNED, ids=lambda value: str(value)[:70])
def test_every_warning_has_its_message(values: dict[str, Any], expected: str) -> None:
    assert problem_texts(**values) == []
    assert problem_texts(Level.WARN, **values) == ([expected] if expected else [])
    shown = [note.split(": ", 1) for note in notes(host(**values)) if "no engine.moe_config" not in note]
    assert [(code[:4], text) for code, text in shown] == ([("RW03", expected)] if expected else [])


def test_the_text_of_weights_that_do_not_fit() -> None:
    values: dict[str, Any] = {"hardware": {"gpu_models": ["L40S"]}, "accept_known_bad": True}
    assert weights_of(host(**values).all_endpoints["llm"]) == 65_300_000_000
    assert problem_texts(**values) == []
    assert problem_texts(Level.WARN, **values)[0] == (
        "engine.tensor_parallel_size: the weights do not seem to fit: 61 GiB of weights over 1 GPU with 45 GiB each"
    )


@pytest.mark.parametrize(
    ("repository", "text"),
    [
        (
            "nvidia/Qwen3.8-27B-NVFP4",
            "whether its weights fit and how many tokens the KV cache holds, "
            "since the size of its weights was not read",
        ),
        (
            "example/other",
            "whether its weights fit and how many tokens the KV cache holds, since no configuration of it was read",
        ),
        ("moonshotai/Kimi-K3", ""),
    ],
)
def test_which_figures_of_the_estimate_are_missing_is_a_note(repository: str, text: str) -> None:
    notes = problem_texts(Level.NOTE, model={"repository": repository, "mount": "/m"}, draft=None)
    missing = [note.partition(f"not computed for {repository}: ")[2] for note in notes if "not computed" in note]
    assert missing == ([text] if text else [])


@pytest.mark.parametrize("values", [row[0] for row in REFUSED if WAY_OUT in row[1]], ids=lambda value: str(value)[:60])
def test_known_bad_is_a_warning_when_it_is_accepted(values: dict[str, Any]) -> None:
    assert problem_texts(**values, accept_known_bad=True) == []
    (warning, *_) = problem_texts(Level.WARN, **values, accept_known_bad=True)
    assert WAY_OUT not in warning


@pytest.mark.parametrize("row", table("known_bad"), ids=lambda row: row["text"][:40])
def test_every_known_bad_row_is_told_where_it_fits_and_nowhere_else(row: dict[str, Any]) -> None:
    kind, version = row["engine"], row["versions"][0]
    values: dict[str, Any] = {"engine_kind": kind, "image": f"r/x:{version}", "hardware": {"gpu_models": [row["gpu"]]}}
    values["draft"] = {"repository": row["draft"], "mount": "/d"} if "draft" in row else None
    level = Level(row["level"])
    assert any(
        f"{row['text']}" in text and text.endswith(f"({row['link']})") for text in problem_texts(level, **values)
    )
    others: list[dict[str, Any]] = [
        {"hardware": {"gpu_models": ["H200"]}},
        {"image": "r/x:9.9.9"},
        {"draft": {"repository": "a/b", "mount": "/d"}} if "draft" in row else {"model": LLAMA},
    ]
    for other in others:
        assert not any(row["text"] in text for text in problem_texts(level, **{**values, **other})), other


@pytest.mark.parametrize(
    ("capability", "backend"), [(key, backend) for key, row in table("moe").items() for backend in row["fails"]]
)
def test_every_moe_backend_that_fails_is_refused(capability: str, backend: str) -> None:
    values: dict[str, Any] = {"hardware": {"compute_capability": [capability]}}
    (text,) = problem_texts(**values, engine={"moe_config": {"backend": backend}})
    key, _, reason = text.partition(": ")
    assert (key, reason.startswith(f"{backend} "), f" {capability}: " in reason) == (
        "engine.moe_config.backend",
        True,
        True,
    )
    for working in table("moe")[capability]["works"]:
        assert problem_texts(**values, engine={"moe_config": {"backend": working}}) == []


def test_the_text_of_a_draft_length_that_nobody_published() -> None:
    values: dict[str, Any] = {"draft": LONG, "engine": {"speculative_config": EAGLE}}
    assert problem_texts(**values) == problem_texts(Level.WARN, **values) == []
    assert problem_texts(Level.NOTE, **values) == [
        "engine.speculative_config.max_draft_len: is 3; nvidia/gpt-oss-120b-Eagle3-long-context is published with 5"
        " (NVIDIA's playbook on speculative decoding for DGX Spark)"
    ]


@pytest.mark.parametrize("kind", ["tensorrt-llm", "vllm", "sglang"])
def test_every_engine_has_images_for_both_architectures(kind: str) -> None:
    for architecture in ("x86_64", "aarch64"):
        assert problem_texts(
            Level.WARN, engine_kind=kind, image="r/x:1.2.1", hardware={"architecture": architecture}
        ) == ([] if kind == "tensorrt-llm" else problem_texts(Level.WARN, engine_kind=kind, image="r/x:1.2.1"))


def test_sglang_s_draft_length_is_its_number_of_steps() -> None:
    draft = {"repository": "lmsys/EAGLE3-gpt-oss-120b-bf16", "mount": "/d"}
    values: dict[str, Any] = {"engine_kind": "sglang", "image": "r/x:v0.5.12", "draft": draft}
    steps = {"speculative-num-steps": 3, "speculative-num-draft-tokens": 4}
    (note,) = [one for one in problem_texts(Level.NOTE, **values, engine=steps) if "published with" in one]
    key, _, reason = note.partition(": ")
    assert (key, reason.partition(";")[0]) == ("engine.speculative-num-steps", "is 3")
    assert ("lmsys/EAGLE3-gpt-oss-120b-bf16 " in reason, "published with 1" in reason) == (True, True)
    assert problem_texts(Level.WARN, **values, engine=steps) == [], "its figures are vLLM's"


def test_gpt_oss_drafts_are_published_for_vllm_and_sglang() -> None:
    for kind, image, name in (
        ("vllm", "v0.33.0", "nvidia/gpt-oss-120b-Eagle3-v3"),
        ("vllm", "v0.33.0", "RedHatAI/gpt-oss-120b-speculator.eagle3"),
        ("sglang", "v0.5.23", "nvidia/gpt-oss-120b-Eagle3-long-context"),
    ):
        draft = {"repository": name, "mount": "/d"}
        assert problem_texts(Level.WARN, engine_kind=kind, image=f"r/x:{image}", draft=draft) == []


def test_the_text_of_a_draft_that_is_not_named() -> None:
    assert problem_texts(Level.NOTE, engine={"speculative_config": {**EAGLE, "eagle3_layers_to_capture": [-1]}}) == [
        "engine.speculative_config.eagle3_layers_to_capture: no `draft:` is set, so the draft model cannot be checked"
    ]


def test_the_text_of_what_only_one_version_needs() -> None:
    values: dict[str, Any] = {"sizes_on_command_line": True, "engine": {"max_batch_size": 10}}
    assert problem_texts(**values) == problem_texts(Level.WARN, **values) == []
    assert problem_texts(Level.NOTE, **values) == [
        "sizes_on_command_line: is for 1.1.0rc0 only: 1.2.0rc6 takes the sizes from engine; leave it out"
    ]
    assert problem_texts(Level.NOTE, **values, image="r/x:1.1.0rc0") == []


def test_other_machines_of_the_profiles_are_right() -> None:
    assert problem_texts(hardware=SPARK) == problem_texts(Level.WARN, hardware=SPARK) == []
    auto: dict[str, Any] = {"image": "r/x:1.4.0rc1", "hardware": RTX}
    assert problem_texts(**auto) == problem_texts(Level.WARN, **auto) == []


def test_every_known_draft_says_where_it_is_from() -> None:
    assert all(draft.source and draft.target for draft in drafts())
    assert len({draft.repository for draft in drafts()}) == len(drafts())


def test_replicas_are_single_gpu_endpoints() -> None:
    found = host(replicas=8, hardware=B200, port=9000).all_endpoints
    assert [(name, one.port, one.gpus) for name, one in found.items()] == [
        (f"llm-{index}", 9000 + index, (index,)) for index in range(8)
    ]
    assert problem_texts(replicas=8, hardware=B200) == problem_texts(Level.WARN, replicas=8, hardware=B200) == []


def test_the_text_of_replicas_names_them_together() -> None:
    values: dict[str, Any] = {"replicas": 3, "hardware": B200, "bind": None, "allow_from": "any"}
    assert notes(host(**values)) == [
        "endpoints llm-0, llm-1, llm-2: ports 8000, 8001, 8002 are open to every network, as allow_from says any",
        "endpoints llm-0, llm-1, llm-2: no engine.moe_config.backend is set, so 1.2.0rc6 runs CUTLASS;"
        " TRTLLM is the fast one on this GPU",
    ]
    endpoints = {"a": {"replicas": 2}, "b": {"port": 9000, "gpus": [4, 5]}}
    assert problem_texts(hardware=B200, endpoints=endpoints, engine={"tensor_parallel_size": 2}) == [
        f"engine.tensor_parallel_size: {texts.needs_gpus(2, 'a', 1)}"
    ]


def test_replicas_take_the_listed_gpus_and_stand_beside_others() -> None:
    found = host(
        endpoints={"big": {"gpus": [0, 1]}, "small": {"replicas": 2, "gpus": [4, 6], "port": 8100}}
    ).all_endpoints
    assert [(name, one.port, one.gpus) for name, one in found.items()] == [
        ("big", 8000, (0, 1)),
        ("small-0", 8100, (4,)),
        ("small-1", 8101, (6,)),
    ]


def test_the_text_of_a_conflict_of_replicas_names_the_endpoint_they_come_from() -> None:
    endpoints = {
        "a": {"replicas": 3, "port": 8000},
        "b": {"port": 8002, "gpus": [5]},
        "c": {"replicas": 2, "port": 1, "gpus": [2, 7]},
    }
    assert problem_texts(endpoints=endpoints) == [
        "endpoints.b.port: endpoints a-2 and b both take port 8002: give each its own `port:`",
        "endpoints.c.gpus: endpoints a-2 and c-0 both take GPU 2: give each its own `gpus:`",
    ]


@pytest.mark.parametrize(
    ("values", "path", "text"),
    [
        (
            {"replicas": 3, "gpus": [0, 1]},
            ("replicas",),
            "is 3, and endpoint llm has 2 in its `gpus:`, one for each: list 3, or write all",
        ),
        (
            {"endpoints": {"a": {"replicas": 3, "port": 65534}}},
            ("endpoints", "a", "replicas"),
            "is 3, and endpoint a has too few ports from 65534 on: lower its `port:`",
        ),
        (
            {"endpoints": {"a": {"replicas": 2}, "a-1": {}}},
            ("endpoints", "a-1"),
            "two endpoints have the name a-1: `replicas` numbers its own, so rename the other",
        ),
    ],
)
def test_endpoints_that_cannot_be(values: dict[str, Any], path: KeyPath, text: str) -> None:
    settings, problems = validate("h", {"model": GPT, "image": TRT, **values}, {})
    assert settings is None
    assert [(one.path, one.text) for one in problems] == [(path, text)]


def test_each_engine_gets_its_own_command_line() -> None:
    def words(**values: Any) -> str:
        return " ".join(server_command(host(**values).all_endpoints["llm"]))

    assert words() == (
        "trtllm-serve /config/models/gpt-oss-120b --host 0.0.0.0 --port 8000"
        " --extra_llm_api_options /config/release/engine.yaml"
    )
    assert words(engine_kind="vllm", image="r/x:v0.14.1", engine={"kv-cache-dtype": "fp8"}) == (
        "/config/models/gpt-oss-120b --host 0.0.0.0 --port 8000 --served-model-name gpt-oss-120b"
        " --config /config/release/engine.yaml"
    )
    assert words(engine_kind="sglang", image="r/x:v0.5.8", network="host", arguments=["--log-level", "info"]) == (
        "python3 -m sglang.launch_server --model-path /config/models/gpt-oss-120b --host 127.0.0.1 --port 8000"
        " --served-model-name gpt-oss-120b --log-level info"
    )


VALUES = st.sampled_from([None, True, 0, 1, 2, 3, 8, "x", [1], {"a": 1}])
ENGINE = st.dictionaries(
    st.sampled_from(
        ["tensor_parallel_size", "moe_expert_parallel_size", "max_seq_len", "moe_config", "speculative_config"]
    )
    | st.sampled_from(["tensor-parallel-size", "speculative-config", "max-model-len", "kv-cache-dtype"]),
    VALUES | st.just("{"),
    max_size=4,
)


@given(
    engine=ENGINE,
    kind=st.sampled_from(["tensorrt-llm", "vllm", "sglang"]),
    hardware=st.sampled_from([{}, B200, RTX, SPARK]),
    draft=st.sampled_from([None, V2, LONG]),
    gpus=st.sampled_from(["all", [0], [0, 1]]),
)
def test_no_settings_crash_a_check_and_accepted_ones_render(
    engine: Any, kind: Any, hardware: Any, draft: Any, gpus: Any
) -> None:
    image = {"tensorrt-llm": TRT, "vllm": "r/x:v0.14.1", "sglang": "r/x:v0.5.8"}[kind]
    settings = host(engine=engine, engine_kind=kind, image=image, hardware=hardware, draft=draft, gpus=gpus)
    endpoint = settings.all_endpoints["llm"]
    if not any(one.level is Level.REFUSE for one in check_endpoint("llm", endpoint, settings.hardware)):
        assert load_yaml(render_engine_yaml(endpoint.engine)) == endpoint.engine
        stand_in_takes(kind, server_command(endpoint))


def stand_in_takes(kind: str, words: list[str]) -> None:
    """Have the stand-in's own command line read all words but the file, which is on no disk here; exits otherwise."""
    at = words.index("--config") if "--config" in words else len(words)
    words = words[:at] + words[at + 2 :]
    if kind == "tensorrt-llm":
        click_options("1.2.0rc6")(click.command("serve")(lambda **_: None)).make_context("serve", words[2:])
    elif kind == "vllm":
        make_arg_parser(FlexibleArgumentParser()).parse_args(words)
    else:
        prepare_server_args(words[3:])
