"""`rackwright advise` and `rackwright explain`: figures with their sources, and no guess where nothing was measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.main import main
from rackwright_engines.advice import Load, advise
from rackwright_engines.data import table
from rackwright_engines.fit.sizes import plan_of
from rackwright_engines.options.explain import all_names
from rackwright_engines.options.schema import lines
from rackwright_engines.quick_yaml import load_yaml
from tests import texts
from tests.unit.test_engine_profiles import settings_of


@pytest.fixture(autouse=True)
def no_runs_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide measurements in this folder, which would come before everything else."""
    monkeypatch.setenv("RACKWRIGHT_RUNS", str(tmp_path))


ROOT = Path(__file__).parents[2]


def ranking(gpu: str, context: int, concurrency: int, output: int | None = None) -> list[tuple[str, float | None]]:
    return [(one.profile, one.percent) for one in advise(gpu, Load(context, concurrency, output))]


def test_eagle3_pays_with_several_requests_and_long_texts() -> None:
    assert ranking("RTX PRO 6000", 10240, 32, 2048)[:2] == [
        ("rtx_pro_6000_vllm_eagle3", 124.5),
        ("rtx_pro_6000_vllm", 100),
    ]


@pytest.mark.parametrize(
    ("context", "output", "percent"), [(10240, 2048, 68.3), (10240, 256, 63.3), (2048, 2048, 83.3)]
)
def test_eagle3_costs_with_one_request_at_a_time(context: int, output: int, percent: float) -> None:
    found = ranking("RTX PRO 6000", context, 1, output)
    assert found[0] == ("rtx_pro_6000_vllm", 100)
    assert ("rtx_pro_6000_vllm_eagle3", percent) in found


def test_what_does_not_run_comes_last_and_says_why_text() -> None:
    last = advise("RTX PRO 6000", Load(1024, 1))[-1]
    assert last.profile == "rtx_pro_6000_sglang"
    assert last.reasons[0] == "does not run: SGLang 0.5.8 does not start here (sgl-project/sglang#13061)"


CARD = "its model's card, https://huggingface.co/nvidia/gpt-oss-120b-Eagle3-v2"
ADVICE = "advice: this draft model is typically better for use cases of less than 8k tokens of context"
ACCEPTED = (
    "measured: tokens a step on MT-Bench, draft length 3, medium reasoning, B200: math 2.75, coding 2.67,"
    f" reasoning 2.57, extraction 2.54, stem 2.27, roleplay 2.18, writing 2.10, humanities 2.00 [{CARD}]"
)


@pytest.mark.parametrize(
    ("load", "advised", "wanted_text"),
    [
        (Load(8191, 1), True, ADVICE),
        (
            Load(8192, 1),
            True,
            f"{ADVICE}; 8192 is that limit itself: this counts, and no more with a longer prompt or with an answer"
            " (--output)",
        ),
        (
            Load(8193, 1),
            False,
            f"{ADVICE}; 8193 tokens are more than those 8192, so this does not count here",
        ),
        (
            Load(7168, 1, output=2048),
            False,
            f"{ADVICE}; 9216 tokens are more than those 8192, so this does not count here",
        ),
    ],
)
def test_the_text_of_a_card_s_advice_up_to_its_limit_and_beyond(load: Load, advised: bool, wanted_text: str) -> None:
    found = advise("B200", load)
    (one,) = [one for one in found if one.profile == "b200_eagle3_v2"]
    assert (one.advised, one.beyond, one.percent) == (advised, not advised, None)
    assert (found[0] is one) == advised
    assert one.reasons == (
        f"its speed was not measured on this GPU; settings from {CARD}",
        f"{wanted_text} [{CARD}]",
        ACCEPTED,
    )


def test_what_works_on_more_requests_at_once_comes_before_advice_for_other_loads() -> None:
    assert [one.profile for one in advise("B200", Load(65536, 32))] == [
        "b200_vllm",
        "b200_vllm_eagle3",
        "b200_sglang",
        "b200_eagle3_v2",
        "b200",
        "b200_newest",
        "low_latency",
        "low_latency_speculative",
        "b200_vllm_deepseek_v4_flash",
        "b200_vllm_deepseek_v4_flash_dspark",
        "b200_vllm_qwen38_27b",
        "b200_vllm_minimax_m3",
        "b200_vllm_minimax_m3_eagle3",
        "b200_glm5",
        "b200_nemotron3_super",
        "b200_qwen38_flash_next",
    ]


def test_other_models_come_after_gpt_oss_and_long_prompts_only_to_those_that_take_them() -> None:
    short, long = ([one.profile for one in advise("B200", Load(tokens, 1))] for tokens in (1024, 16385))
    served = {row["name"]: row.get("serves", "") for row in table("measured")["profiles"]}
    assert [bool(served[name]) for name in short] == sorted(bool(served[name]) for name in short)
    assert short[-11:-8] == ["b200_deepseek_r1", "b200_llama33_70b", "b200_qwen3_30b"]
    assert {*short} - {*long} == {"b200_stable", "b200_llama33_70b", "b200_qwen3_30b"}


def test_the_text_of_a_profile_for_fewer_requests() -> None:
    (b200,) = [one for one in advise("B200", Load(1024, 32)) if one.profile == "b200"]
    assert b200.reasons == (
        "its speed was not measured on this GPU; settings from NVIDIA's guide for gpt-oss-120b with Eagle3 on GB200"
        " and B200",
        "works on 10 requests at once, so 32 would wait for each other",
    )


def test_the_text_of_reports_stands_at_their_profile() -> None:
    found = {one.profile: one.reasons[-1] for one in advise("RTX PRO 6000", Load(1024, 1))}
    thread = "https://github.com/NVIDIA/TensorRT-LLM/issues/8615"
    assert found["low_latency"] == f"reported: about 160 tok/s without drafting [{thread}]"
    assert found["low_latency_speculative"] == f"reported: answers that never end [{thread}]"


def test_every_figure_and_profile_of_the_data_exists() -> None:
    data = table("measured")
    files = {path.stem for path in (ROOT / "group_vars").glob("*.yml")}
    named = {row["name"] for row in data["profiles"]}
    assert files - named == {"all", "lab", "lab_gateway", "dgx_spark", "rtx_pro_6000", "h200", "b300", "gb300"}, (
        "a profile that advise leaves out"
    )
    assert named <= files
    assert {(row["gpu"], row["profile"]) for row in (*data["figures"], *data["remarks"])} <= {
        (row["gpu"], row["name"]) for row in data["profiles"]
    }
    assert all(figure["source"] in data["sources"] for figure in data["figures"])


@pytest.mark.parametrize("row", table("measured")["profiles"], ids=lambda row: f"{row['name']}-{row['gpu']}")
def test_the_limits_of_a_row_are_those_of_its_profile(row: dict[str, Any]) -> None:
    settings = settings_of(row["name"])
    plan, model = plan_of(settings.all_endpoints["llm"]), settings.model
    contexts = {entry["repository"]: entry["context"] for entry in table("models")}
    assert model is not None
    assert row.get("serves", "openai/gpt-oss-120b") == model.repository
    assert row.get("concurrency") == plan.value("batch")
    gpus = plan.gpus * settings.size
    assert (row["gpus"], row["context"]) == (gpus, plan.value("sequence") or contexts[model.repository])
    is_cut = plan.options.get("enable_chunked_prefill") is True  # into chunks, so that longer prompts pass too
    tokens = row["context"] if is_cut else plan.options.get("max_num_tokens", row["context"])
    assert row.get("prompt", row["context"]) == min(tokens, row["context"])
    assert not settings.hardware.gpu_models or row["gpu"] in settings.hardware.gpu_models


def test_the_text_of_figures_with_their_source(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", "--gpu", "RTX PRO 6000", "--context", "10k", "--concurrency", "32", "--output", "2k"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "1. rtx_pro_6000_vllm_eagle3 (1 GPU): 124.5 %",
        "     124.5 % of rtx_pro_6000_vllm's speed at 10240 tokens in, 2048 out, 32 at once; when they arrive by and"
        " by: 125.4 % at 64 a second, 127 % at 8 a second, 126.2 % at 2 a second; first token after 35 % of its time;"
        " 70.3 % of the drafted tokens accepted"
        " [a published comparison of engines and drafts on RTX PRO 6000, February 2026]",
    ]


def test_the_text_of_the_nearest_figures_that_lie_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--gpu", "RTX PRO 6000", "--context", "8k", "--concurrency", "32"]) == 0
    assert capsys.readouterr().out.startswith(
        "1. rtx_pro_6000_vllm_eagle3 (1 GPU): 92.7 to 124.5 %, by the length of the answer (--output)\n"
    )


def test_the_text_where_nothing_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--gpu", "B200", "--context", "8k", "--concurrency", "32"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "1. b200_eagle3_v2 (8 GPUs): advised, speed not measured"
    assert out[-2] == (
        "no speed was measured on this GPU: the order is by what the sources say; measure before you choose"
    )
    assert not any(row.startswith("2. ") for row in out), "no source ranks another one"
    unmeasured = (
        f"{texts.NOT_RANKED}17 profiles {texts.SPEED_NOT_MEASURED} (b200_stable, b200_vllm, b200_vllm_eagle3 and 14"
    )
    assert out[-1].startswith(unmeasured)


def test_the_text_where_nothing_can_be_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "advise",
        "--gpu",
        "B200",
        "--context",
        "1k",
        "--concurrency",
        "1",
        "--gpus",
        "1",
        "--model",
        "Qwen3-30B-A3B",
    ]
    assert main(words) == 0
    nothing, remainder = capsys.readouterr().out.splitlines()
    assert nothing == (
        "nothing of Qwen3-30B-A3B was measured or advised for this load on this GPU: measure before you choose"
    )
    assert f"1 profile {texts.SPEED_NOT_MEASURED} (b200_qwen3_30b)" in remainder
    assert "b200_vllm" not in remainder


def test_a_machine_s_name_is_as_good_as_its_gpu_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--gpu", "DGX Spark", "--context", "8k", "--concurrency", "1", "--all"]) == 0
    assert capsys.readouterr().out.startswith("1. dgx_spark_eagle3 (1 GPU): ")


@pytest.mark.parametrize(
    ("gpu", "context", "message"),
    [
        (
            "B20",
            "8k",
            "RW1001: no profile is for B20 (did you mean B200?); known: B200, B300, GB10, GB200, GB300, H200,"
            " RTX PRO 6000; next: rackwright advise --gpu B200 --context 8192 --concurrency 4",
        ),
        (
            "H100",
            "8k",
            "RW1001: no profile is for H100; known: B200, B300, GB10, GB200, GB300, H200, RTX PRO 6000;"
            " next: rackwright advise --gpu B200 --context 8192 --concurrency 4",
        ),
        (
            "B200",
            "1025k",
            "RW1002: no profile for B200 holds 1049600 tokens of prompt and answer; the longest holds 1048576;"
            " next: ask with a smaller --context or --output",
        ),
    ],
)
def test_advise_where_it_has_no_profile(
    gpu: str, context: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", "--gpu", gpu, "--context", context, "--concurrency", "4"]) == 1
    assert capsys.readouterr().err == f"rackwright: {message}\n"


def test_advise_with_a_wrong_number(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["advise", "--gpu", "B200", "--context", "much", "--concurrency", "4"])
    assert "'much' is not a number" in capsys.readouterr().err


def test_the_text_of_explain_has_default_versions_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "engine.sampler_type"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "sampler_type (TensorRT-LLM)",
        "  Which sampler is used.",
        "  type: str, one of auto, TorchSampler, TRTLLMSampler",
        "  default: auto",
        "  versions: from 1.1.0 on, gone in 1.3.0rc27 (not sure for 1.3.0rc9)",
        "  sampling by TorchSampler: left out from 1.0.0 on, then `use_torch_sampler: true` from 1.1.0rc0 on, then"
        " `sampler_type: TorchSampler` from 1.1.0 on, then left out from 1.3.0rc27 on",
        "  a sampler chosen by the engine: `use_torch_sampler: false` from 1.1.0rc0 on, then `sampler_type: auto` from"
        " 1.1.0 on, then left out from 1.3.0rc27 on",
        "  source: tensorrt_llm/llmapi/llm_args.py of 1.3.0rc24",
    ]


def test_explain_shows_every_place_that_a_name_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "max_batch_size"]) == 0
    heads = [
        output_line
        for output_line in capsys.readouterr().out.splitlines()
        if output_line and not output_line.startswith(" ")
    ]
    paths = ("max_batch_size", "cuda_graph_config.max_batch_size", "encoder_cuda_graph_config.max_batch_size")
    assert heads == [f"{path} (TensorRT-LLM)" for path in paths]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_explain_says_what_every_known_key_of_the_other_engines_does(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {".".join(path) for version_line in lines(engine).values() for path in version_line.all_keys()}
    spoken = {key.removeprefix("no-") for key in table(f"{engine}/keys")}
    assert spoken <= keys
    assert main(["explain", "tool-call-parser"]) == 0
    output = capsys.readouterr().out
    assert "  default: null\n" in output
    assert "  source: sglang/srt/server_args.py of" in output


PUBLISHED = [load_yaml(path.read_text()) for path in (ROOT / "tests" / "fixtures" / "engine-yaml").glob("*.yaml")]
SHIPPED = [load_yaml(path.read_text()).get("engine", {}) for path in (ROOT / "group_vars").glob("*_*.yml")]


def dotted_keys(options: dict[str, Any], above: str = "") -> Iterator[str]:
    for key, value in options.items():
        yield f"{above}{key}"
        yield from dotted_keys(value, f"{above}{key}.") if isinstance(value, dict) else ()


@pytest.mark.parametrize("key", sorted({key for options in (*PUBLISHED, *SHIPPED) for key in dotted_keys(options)}))
def test_explain_says_all_of_every_key_that_is_published_or_shipped(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", key]) == 0
    head, does, *remaining = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{key.removeprefix('no-')} (")
    assert not does.startswith("  type:"), "what the key does is not said"
    for label in ("type", "default", "versions", "source"):
        assert any(row.startswith(f"  {label}: ") for row in remaining)


def test_the_text_of_explain_says_which_version_takes_which_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "speculative_config.decoding_type"]) == 0
    (values,) = [
        output_line for output_line in capsys.readouterr().out.splitlines() if output_line.startswith("  values: ")
    ]
    entries = values.removeprefix("  values: ").split("; ")
    assert "DraftTarget from 1.0.0 on, gone in 1.3.0rc4" in entries
    assert "Draft_Target from 1.3.0rc4 on" in entries
    assert "Eagle3 from 1.3.0rc1 on (not sure for 1.3.0rc1)" in entries
    assert not any(one.startswith("Eagle ") for one in entries), "every version takes it"


@pytest.mark.parametrize("name", ["tp_size", "--tp_size", "engine.tensor_parallel_size"])
def test_explain_takes_the_command_line_s_names_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--", name]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "tensor_parallel_size (TensorRT-LLM)"
    assert "  other names, not for the YAML: tp_size" in out


def test_explain_of_a_name_within_a_value_names_the_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "num_speculative_tokens"]) == 0
    assert "speculative-config.num_speculative_tokens (vLLM)" in capsys.readouterr().out


def test_the_text_of_explain_of_a_key_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "moe_confg.backend"]) == 1
    assert "moe_confg.backend (did you mean moe_config.backend?)" in capsys.readouterr().err


def test_every_explanation_is_of_a_key_that_some_version_has() -> None:
    assert set(table("tensorrt-llm/keys")) <= set(all_names())
