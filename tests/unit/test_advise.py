"""`rackwright advise` and `rackwright explain`: figures with their sources, and no guess where nothing was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.cli import main
from rackwright.engines.advice import Load, advise
from rackwright.engines.data import table
from rackwright.engines.explain import all_names
from rackwright.engines.schema import lines

ROOT = Path(__file__).parents[2]


def ranking(gpu: str, context: int, concurrency: int, output: int | None = None) -> list[tuple[str, float | None]]:
    return [(one.profile, one.percent) for one in advise(gpu, Load(context, concurrency, output))]


def test_eagle3_pays_with_several_requests_and_long_texts() -> None:
    assert ranking("NVIDIA RTX PRO 6000 Blackwell Max-Q", 10240, 32, 2048)[:2] == [
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


def test_what_does_not_run_comes_last_and_says_why() -> None:
    last = advise("RTX PRO 6000", Load(1024, 1))[-1]
    assert last.profile == "rtx_pro_6000_sglang"
    assert last.reasons == ("does not run: SGLang 0.5.8 does not start here (sgl-project/sglang#13061)",)


def test_v2_is_named_first_below_8k_only() -> None:
    assert ranking("B200", 4096, 16)[0] == ("b200_eagle3_v2", None)
    assert not any(one.remarked for one in advise("B200", Load(8192, 16)))


def test_a_profile_for_fewer_requests_says_so() -> None:
    (b200,) = [one for one in advise("B200", Load(1024, 32)) if one.profile == "b200"]
    assert b200.reasons == (
        "not measured on this GPU",
        "works on 10 requests at once, so 32 would wait for each other",
    )


def test_every_figure_and_profile_of_the_data_exists() -> None:
    data = table("measured")
    files = {path.stem for path in (ROOT / "group_vars").glob("*.yml")}
    assert {row["name"] for row in data["profiles"]} <= files
    assert {row["profile"] for row in (*data["figures"], *data["remarks"])} <= files
    assert all(figure["source"] in data["sources"] for figure in data["figures"])


def test_advise_prints_figures_with_their_source(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", "--gpu", "RTX PRO 6000", "--context", "10k", "--concurrency", "32", "--output", "2k"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "1. rtx_pro_6000_vllm_eagle3: 124 %",
        "     124.5 % of rtx_pro_6000_vllm's speed at 10240 tokens in, 2048 out, 32 at once"
        " [a published comparison of engines and EAGLE-3 models on RTX PRO 6000 (February 2026)]",
    ]


def test_advise_says_where_nothing_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--gpu", "GB200", "--context", "8k", "--concurrency", "4"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "nothing was measured on this GPU: the order is by what the sources say; measure before you choose"
    )


def test_advise_for_a_gpu_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--gpu", "B20", "--context", "8k", "--concurrency", "4"]) == 1
    assert capsys.readouterr().err == (
        "rackwright: no profile is for B20 with that context (did you mean B200?);"
        " known: B200, GB10, GB200, RTX PRO 6000\n"
    )


def test_advise_with_a_wrong_number(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["advise", "--gpu", "B200", "--context", "much", "--concurrency", "4"])
    assert "'much' is not a number such as 8192 or 8k" in capsys.readouterr().err


def test_explain_tells_default_versions_and_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "engine.sampler_type"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "sampler_type (TensorRT-LLM)",
        "  Which sampler is used.",
        "  type: str, one of auto, TorchSampler, TRTLLMSampler",
        "  default: auto",
        "  versions: from 1.2.0rc0 on, gone in 1.3.0rc27",
        "  sampling by TorchSampler: use_torch_sampler from 1.1.0rc0 on, then sampler_type from 1.2.0rc0 on,"
        " then left out from 1.3.0rc27 on",
        "  a sampler chosen by the engine: use_torch_sampler from 1.1.0rc0 on, then sampler_type from 1.2.0rc0 on,"
        " then left out from 1.3.0rc27 on",
        "  source: https://github.com/NVIDIA/TensorRT-LLM/pull/18232",
    ]


def test_explain_shows_every_place_that_a_name_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "max_batch_size"]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line and not line.startswith(" ")]
    assert heads == ["max_batch_size (TensorRT-LLM)", "cuda_graph_config.max_batch_size (TensorRT-LLM)"]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_explain_says_what_every_known_key_of_the_other_engines_does(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {".".join(path) for line in lines(engine).values() for path in line.all_keys()}
    assert keys == set(table(f"{engine}/keys"))
    assert main(["explain", "tool-call-parser"]) == 0
    assert "  default: none\n" in capsys.readouterr().out


def test_explain_of_a_key_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "moe_confg.backend"]) == 1
    assert "no engine has a key moe_confg.backend (did you mean moe_config.backend?)" in capsys.readouterr().err


def test_every_explanation_is_of_a_key_that_some_version_has() -> None:
    assert set(table("tensorrt-llm/keys")) <= set(all_names())
