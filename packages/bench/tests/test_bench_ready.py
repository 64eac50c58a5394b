"""Variants that need no file: draft lengths and the published draft models, as each engine's own keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.loading.host import InventoryHost
from rackwright.loading.merge import Layer, merge
from rackwright.messages import SettingsError
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright_bench.suites.loading import load_suite
from rackwright_bench.variants.naming import is_of_group, names_of, variant_of
from rackwright_bench.variants.ready import LENGTHS, heads
from rackwright_engines.fit.sizes import plan_of
from tests.refused import refused

PROFILES = Path(__file__).parents[3] / "group_vars"
VLLM = ("rtx_pro_6000", "rtx_pro_6000_vllm", "rtx_pro_6000_vllm_eagle3")
SGLANG = {
    "engine_kind": "sglang",
    "image": "lmsysorg/sglang:v0.5.8",
    "model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"},
    "draft": {"repository": "lmsys/EAGLE3-gpt-oss-120b-bf16", "mount": "/config/models/eagle3"},
    "engine": {"speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "/config/models/eagle3"},
}


def host(values: dict[str, Any]) -> InventoryHost:
    layers = (Layer(values, {}), Layer({}, {}))
    return InventoryHost("a", (), {}, HostSettings.model_validate(values), {}, layers=layers, root=Path())


def profile(*names: str, **more: Any) -> InventoryHost:
    """Return a host of shipped profiles, the weakest first."""
    files = [yaml.safe_load((PROFILES / f"{name}.yml").read_text()) for name in names]
    return host(dict(merge([Layer(values, {}) for values in [*files, more]]).values))


def made(name: str, of: InventoryHost, endpoint: str = "llm") -> EndpointSettings:
    return variant_of(name, of, endpoint, load_suite("seed003-2"), "seed003-2").all_endpoints[endpoint]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    "of",
    [
        profile(*VLLM),
        profile("b200_vllm_eagle3", "b200_vllm"),
        profile("low_latency_speculative"),
        profile("dgx_spark", "dgx_spark_eagle3"),
        profile("dgx_spark", "dgx_spark_draft_target"),
        profile("b200_newest"),
        host(SGLANG),
    ],
    ids=lambda of: of.settings.image,
)
def test_a_draft_length_is_the_engine_s_own_key_and_nothing_else(of: InventoryHost, length: int) -> None:
    before, now = of.settings.all_endpoints["llm"], made(f"draft_{length}", of)
    assert plan_of(now).value("length") == length
    assert now.model_copy(update={"engine": before.engine}) == before
    assert plan_of(now).drafting == plan_of(before).drafting
    changed = {key for key in now.engine if now.engine[key] != before.engine.get(key)}
    assert all(key.replace("_", "-").startswith("speculative") for key in changed)


def test_the_guide_s_draft_models_are_those_of_its_comparison() -> None:
    of = profile(*VLLM)
    found = {name: made(name, of) for name in heads() if name != "long_context"}
    assert {name: (one.draft.repository, plan_of(one).value("length")) for name, one in found.items() if one.draft} == {
        "short_context": ("nvidia/gpt-oss-120b-Eagle3-short-context", 3),
        "throughput_1": ("nvidia/gpt-oss-120b-Eagle3-throughput", 1),
        "throughput_3": ("nvidia/gpt-oss-120b-Eagle3-throughput", 3),
        "lmsys": ("lmsys/EAGLE3-gpt-oss-120b-bf16", 1),
    }
    config = json.loads(str(found["lmsys"].engine["speculative-config"]))
    assert config == {
        "model": "/config/models/eagle3",
        "num_speculative_tokens": 1,
        "method": "eagle3",
        "draft_tensor_parallel_size": 1,
    }
    assert {one.draft.mount for one in found.values() if one.draft} == {"/config/models/eagle3"}


def test_a_draft_model_that_does_not_start_there_is_refused_with_the_reason() -> None:
    with pytest.raises(SettingsError, match=r"vLLM 0\.14\.1 does not start with this draft model"):
        made("long_context", profile(*VLLM))


def test_the_layers_of_the_former_draft_model_are_not_kept() -> None:
    section = made("throughput_1", profile("b200_eagle3_v2")).engine["speculative_config"]
    assert (section["eagle3_layers_to_capture"], section["max_draft_len"]) == (None, 1)


@pytest.mark.parametrize(
    ("name", "of", "changed"),
    [
        ("batch_24", profile(*VLLM), {"max-num-seqs": 24}),
        ("tokens_8192", profile(*VLLM), {"max-num-batched-tokens": 8192}),
        ("batch_24", profile("b200_newest"), {"max_batch_size": 24}),
        ("tokens_16384", profile("b200_newest"), {"max_num_tokens": 16384}),
        ("batch_24", host(SGLANG), {"max-running-requests": 24}),
        ("tokens_2048", host({**SGLANG, "engine": {"chunked_prefill_size": 4096}}), {"chunked_prefill_size": 2048}),
    ],
)
def test_a_size_is_the_engine_s_own_key_as_the_settings_write_it(
    name: str, of: InventoryHost, changed: dict[str, int]
) -> None:
    before = of.settings.all_endpoints["llm"]
    assert made(name, of) == before.model_copy(update={"engine": {**before.engine, **changed}})


def test_one_of_several_endpoints_is_changed_alone() -> None:
    several = {"x": {"port": 8000, "gpus": [0]}, "y": {"port": 8001, "gpus": [1]}}
    of = profile(*VLLM, hardware={"gpu_count": 2}, endpoints=several)
    found = variant_of("draft_4", of, "y", load_suite("quick"), "quick").all_endpoints
    assert plan_of(found["y"]).value("length") == 4
    assert found["x"] == of.settings.all_endpoints["x"]


MISFITS = {
    "a size by its arguments": ("batch_8", host({**SGLANG, "arguments": ["--max-running-requests=4"]})),
    "without a draft": ("draft_2", profile(*VLLM[:2])),
    "a draft model without one to replace": ("lmsys", profile(*VLLM[:2])),
    "a draft model of another model": ("lmsys", profile("dgx_spark", "dgx_spark_draft_target")),
    "by its arguments": (
        "draft_2",
        host({**SGLANG, "engine": {}, "arguments": ["--speculative-algorithm", "EAGLE3"]}),
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_variant_that_does_not_fit_is_refused(case: str) -> None:
    name, of = MISFITS[case]
    with refused("RW1527", f"--compare {name}: ", "does not fit", error=SettingsError):
        made(name, of)


def test_a_group_is_all_of_its_variants_the_baseline_first() -> None:
    assert names_of("lengths") == ["baseline", "draft_1", "draft_2", "draft_3", "draft_4", "draft_8"]
    assert names_of("heads") == ["baseline", *heads()]
    assert names_of("draft_1,draft_3") == ["draft_1", "draft_3"]
    assert names_of("heads,draft_2") == ["baseline", *heads(), "draft_2"]
    assert names_of("settings, lengths,heads") == ["settings", *names_of("lengths"), *heads()]
    assert (is_of_group("lmsys", "heads,draft_2"), is_of_group("draft_2", "heads,draft_2")) == (True, False)
    with refused("RW1530", "draft_2,draft_2", error=SettingsError):
        names_of("draft_2,draft_2")
    with pytest.raises(SettingsError, match=r"RW1531.*did you mean short_context\?"):
        made("short_contxt", profile(*VLLM))
