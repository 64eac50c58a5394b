"""Every profile has exactly the effective options of its source: the published YAML and command line alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from rackwright.cli.render import rendered_files
from rackwright.concerns.endpoint.container import server_command
from rackwright.engines.host import check_host
from rackwright.inventory import build
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.problems import InvalidSettingsError
from rackwright_engines.finding import Level
from rackwright_engines.fit.known_drafts import draft_of
from rackwright_engines.quick_yaml import load_yaml
from rackwright_engines.requests import ignored_parameters
from rackwright_lab.standins.engine import gpus
from rackwright_lab.standins.engine.commands.options import click_options
from rackwright_lab.standins.engine.llmapi.llm_utils import update_llm_args_with_extra_dict
from rackwright_lab.standins.engine.llmapi.models import torch_llm_args
from tests.refused import refused

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "engine-yaml"
PARENTS = {
    "gb200_tray": ["gb200"],
    "gb200_pair": ["gb200"],
    "dgx_spark_pair": ["dgx_spark"],
    "dgx_spark_eagle3": ["dgx_spark"],
    "dgx_spark_draft_target": ["dgx_spark"],
    "dgx_spark_newest": ["dgx_spark"],
    "rtx_pro_6000_trtllm": ["rtx_pro_6000"],
    "rtx_pro_6000_vllm": ["rtx_pro_6000"],
    "rtx_pro_6000_vllm_eagle3": ["rtx_pro_6000_vllm", "rtx_pro_6000"],
    "rtx_pro_6000_sglang": ["rtx_pro_6000"],
    "rtx_pro_6000_vllm_qwen36": ["rtx_pro_6000"],
    "dgx_spark_vllm_qwen36": ["dgx_spark"],
    "b200_vllm_eagle3": ["b200_vllm"],
    "h200_vllm": ["h200"],
    "h200_vllm_eagle3": ["h200_vllm", "h200"],
    "h200_vllm_dflash": ["h200_vllm", "h200"],
    "h200_vllm_deepseek_r1": ["h200"],
    "h200_vllm_llama33_70b": ["h200"],
    "h200_sglang": ["h200"],
    "h200_trtllm": ["h200"],
    "b200_vllm_deepseek_v4_flash_dspark": ["b200_vllm_deepseek_v4_flash"],
    "b200_vllm_minimax_m3_eagle3": ["b200_vllm_minimax_m3"],
    "b300_vllm_deepseek_v4_flash": ["b300"],
    "b300_vllm_kimi_k3": ["b300"],
    "b300_vllm_minimax_m3": ["b300"],
    "gb300_pair_vllm_kimi_k3": ["gb300"],
    "h200_vllm_gemma4_31b": ["h200"],
    "gb300_tray_vllm_deepseek_v4_flash": ["gb300"],
    "gb300_tray_vllm_qwen38_flash_next": ["gb300"],
    "h200_vllm_nemotron3_nano": ["h200"],
    "h200_vllm_nemotron3_super": ["h200"],
    "h200_vllm_qwen38_flash_next": ["h200"],
    "h200_sglang_dflash": ["h200"],
    "h200_sglang_eagle3": ["h200"],
    "dgx_spark_eagle3_playbook": ["dgx_spark"],
    "dgx_spark_vllm_qwen38_27b": ["dgx_spark"],
    "dgx_spark_vllm_nemotron3_super": ["dgx_spark"],
    "dgx_spark_vllm_nemotron3_nano": ["dgx_spark"],
    "dgx_spark_nemotron3_super": ["dgx_spark"],
    "dgx_spark_pair_eagle3": ["dgx_spark"],
    "dgx_spark_pair_vllm_deepseek_v4_flash": ["dgx_spark"],
    "dgx_spark_pair_vllm_qwen38_27b": ["dgx_spark"],
    "dgx_spark_ring_vllm_qwen35_397b": ["dgx_spark"],
    "dgx_spark_four_vllm_qwen38_flash_next": ["dgx_spark"],
    "rtx_pro_6000_vllm_nemotron3_super": ["rtx_pro_6000"],
}


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            both = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = merged(whole[key], value) if both else value
    return whole


def seed(name: str, **command_line: Any) -> dict[str, Any]:
    """Return the effective options: the published file with what the same guide gives on the command line."""
    return merged(load_yaml((FIXTURES / f"{name}.yaml").read_text()), command_line)


GUIDE = {"trust_remote_code": True, "max_batch_size": 10, "max_num_tokens": 131072, "max_seq_len": 131072}
ONE = {"tensor_parallel_size": 1, "max_batch_size": 1}
BLOG = {**ONE, "moe_expert_parallel_size": 1, "trust_remote_code": True}
FRACTION = {"kv_cache_config": {"free_gpu_memory_fraction": 0.9}}
VLLM = {
    "kv-cache-dtype": "fp8",
    "compilation-config": '{"pass_config":{"fuse_allreduce_rms":true,"eliminate_noops":true}}',
    "async-scheduling": True,
    "no-enable-prefix-caching": True,
    "max-cudagraph-capture-size": 2048,
    "max-num-batched-tokens": 8192,
    "stream-interval": 20,
}
EFFECTIVE: dict[str, tuple[str, dict[str, Any]]] = {
    "b200": ("1.1.0rc0", seed("s000_eagle", **GUIDE, tensor_parallel_size=8, moe_expert_parallel_size=4)),
    "gb200": ("1.1.0rc0", seed("s000_eagle", **GUIDE, tensor_parallel_size=8, moe_expert_parallel_size=4)),
    "gb200_pair": ("1.1.0rc0", seed("s000_eagle", **GUIDE, tensor_parallel_size=8, moe_expert_parallel_size=4)),
    "gb200_tray": ("1.1.0rc0", seed("s000_eagle", **GUIDE, tensor_parallel_size=4, moe_expert_parallel_size=4)),
    "low_latency": ("1.2.0rc1", seed("s001a_low_latency", **BLOG, **FRACTION)),
    "low_latency_speculative": ("1.2.0rc1", seed("s001b_low_latency_speculative", **BLOG, **FRACTION)),
    "dgx_spark_eagle3": ("1.2.0rc6", seed("s002a_spark_eagle3", **ONE)),
    "dgx_spark_draft_target": ("1.2.0rc6", seed("s002b_spark_draft_target", **ONE, **FRACTION)),
    "rtx_pro_6000_trtllm": ("1.3.0rc1", seed("s003_low_latency")),
    "b200_eagle3_v2": (
        "1.2.0rc0",
        merged(
            seed("s004_model_card", tensor_parallel_size=8, max_batch_size=32),
            {"speculative_config": {"speculative_model_dir": "/config/models/eagle3"}},
        ),
    ),
    "rtx_pro_6000_vllm": ("v0.14.1", VLLM),
    "rtx_pro_6000_vllm_eagle3": (
        "v0.14.1",
        {
            **VLLM,
            "speculative-config": '{"model":"/config/models/eagle3","num_speculative_tokens":1,"method":"eagle3",'
            '"draft_tensor_parallel_size":1}',
        },
    ),
    "rtx_pro_6000_sglang": ("v0.5.8", {"reasoning-parser": "gpt-oss", "tool-call-parser": "gpt-oss"}),
}
NEWEST = ("b200_newest", "gb200_tray_newest", "dgx_spark_newest")


def hosts_of(group: str, **values: Any) -> list[tuple[str, dict[str, Any]]]:
    """As many hosts of a profile's group as serve one endpoint together, with keys of their own."""
    file = ROOT / "group_vars" / f"{group}.yml"
    size = (load_yaml(file.read_text()) or {}).get("hosts", 1) if file.is_file() else 1
    if size == 1:
        return [(f"{group}-host", values)]
    return [(f"{group}-host{at}", {**values, "fabric_address": f"192.0.2.{at}"}) for at in range(1, size + 1)]


def profile(group: str, **more: Any) -> HostSettings:
    """Return the settings of a host in a profile's group, with keys added."""
    parents = PARENTS.get(group, [])
    children = {parent: [below] for parent, below in zip(parents, [group, *parents], strict=False)}
    groups = build(str(ROOT / "inventory" / "b200.py"), {group: hosts_of(group, **more)}, children=children)
    values = groups["all"][0][1]
    return HostSettings.model_validate(
        {key: value for key, value in values.items() if key in HostSettings.model_fields}
    )


def settings_of(group: str) -> HostSettings:
    return profile(group, **({"accept_known_bad": True} if group == "rtx_pro_6000_sglang" else {}))


@pytest.mark.parametrize("group", EFFECTIVE)
def test_the_effective_options_are_those_of_the_source(group: str) -> None:
    version, options = EFFECTIVE[group]
    assert (settings_of(group).version, settings_of(group).engine) == (version, options)


@pytest.mark.parametrize("group", [group for group in EFFECTIVE if group.startswith("dgx_spark")])
def test_a_spark_answers_itself_alone_until_somebody_says_otherwise(group: str) -> None:
    settings = settings_of(group)
    assert {one.address for one in settings.all_endpoints.values()} == {"127.0.0.1"}
    opened = settings.model_copy(update={"allow_from": "private"})
    assert {one.address for one in opened.all_endpoints.values()} == {"0.0.0.0"}


@pytest.mark.parametrize("group", EFFECTIVE)
def test_the_rendered_yaml_reads_as_the_options(group: str) -> None:
    settings = settings_of(group)
    (text,) = [text for path, text in rendered_files(settings).items() if Path(path).name == settings.engine_file]
    assert load_yaml(text) == EFFECTIVE[group][1]


@pytest.mark.parametrize("group", [*EFFECTIVE, *NEWEST])
def test_every_profile_passes_its_own_checks(group: str) -> None:
    found = [one for one in check_host(settings_of(group)) if one.level is not Level.NOTE]
    assert [one for one in found if one.level is Level.REFUSE] == []
    assert bool(found) == (group == "rtx_pro_6000_sglang"), "only what is known to be bad warns"


@pytest.mark.parametrize("group", NEWEST)
def test_the_newest_profiles_speak_the_newest_lines_language(group: str) -> None:
    settings = settings_of(group)
    drafting, backend = settings.engine["speculative_config"], settings.engine["moe_config"]["backend"]
    assert settings.version == "1.4.0rc1"
    assert drafting["decoding_type"] == "Eagle3"
    assert drafting["speculative_model"] == (settings.draft.mount if settings.draft else "")
    assert not {"sampler_type", "use_torch_sampler"} & set(settings.engine)
    assert backend == {"10.0": "TRTLLM", "12.1": "CUTLASS"}[settings.hardware.compute_capability[0]]


def test_sglang_is_refused_with_its_link_unless_it_is_accepted() -> None:
    named = ("group_vars/rtx_pro_6000_sglang.yml:6: image: SGLang 0.5.8 ", "sgl-project/sglang/issues/13061")
    with refused("RW0305", *named, error=InvalidSettingsError):
        profile("rtx_pro_6000_sglang")


@pytest.mark.parametrize(
    ("repository", "refused"),
    [
        ("nvidia/gpt-oss-120b-Eagle3-short-context", False),
        ("lmsys/EAGLE3-gpt-oss-120b-bf16", False),
        ("nvidia/gpt-oss-120b-Eagle3-long-context", True),
    ],
)
def test_the_other_drafts_are_one_key_away(repository: str, refused: bool) -> None:
    draft = {"repository": repository, "mount": "/config/models/eagle3"}
    if refused:
        with pytest.raises(InvalidSettingsError, match=r"vLLM 0\.14\.1 .*draft model"):
            profile("rtx_pro_6000_vllm_eagle3", draft=draft)
    else:
        found = draft_of(profile("rtx_pro_6000_vllm_eagle3", draft=draft))
        assert found is not None
        assert found.slower


def test_the_drafts_folder_is_the_one_that_vllm_looks_in() -> None:
    settings = settings_of("rtx_pro_6000_vllm_eagle3")
    assert settings.draft is not None
    assert json.loads(settings.engine["speculative-config"])["model"] == settings.draft.mount


def test_the_eight_gpu_profile_refuses_a_tray_with_the_way_out() -> None:
    tray = {"gpu_models": ["GB200"], "gpu_count": 4, "architecture": "aarch64", "compute_capability": ["10.0"]}
    where = "group_vars/gb200.yml:29: engine.tensor_parallel_size: 8 "
    with refused("RW0311", where, "8 GPUs", "llm has 4", "on gb200-host", error=InvalidSettingsError) as raised:
        profile("gb200", hardware=tray)
    _, _, last = str(raised.value).splitlines()
    assert last.endswith(f"rackwright check {ROOT}/inventory/b200.py")


@pytest.mark.parametrize(("group", "engine"), [("rtx_pro_6000_vllm", "vllm"), ("rtx_pro_6000_sglang", "sglang")])
def test_the_other_engines_are_started_by_their_own_words(group: str, engine: str) -> None:
    settings = settings_of(group)
    words = server_command(settings)
    assert settings.engine_kind == engine
    assert words[words.index("--served-model-name") + 1] == "gpt-oss-120b"
    assert ("--config" in words) == bool(settings.engine)


@pytest.mark.parametrize(
    ("group", "values", "parameters"),
    [
        ("b200", {}, ("temperature", "top_p", "top_k", "seed")),
        ("low_latency", {}, None),
        ("dgx_spark_eagle3", {}, ("temperature", "top_p", "top_k", "seed")),
        ("dgx_spark_eagle3", {"engine": {"speculative_config": {"allow_advanced_sampling": True}}}, None),
        ("b200_newest", {}, None),
        ("rtx_pro_6000_vllm_eagle3", {}, None),
    ],
)
def test_parameters_that_are_ignored_are_known(
    group: str, values: dict[str, Any], parameters: tuple[str, ...] | None
) -> None:
    found = ignored_parameters(profile(group, **values).all_endpoints["llm"])
    assert [one.parameters for one in found] == ([parameters] if parameters else [])
    assert all(one.text and one.source for one in found)


TRTLLM = [group for group, (version, _) in EFFECTIVE.items() if not version.startswith("v")]


@pytest.mark.parametrize("group", TRTLLM)
def test_the_stand_in_accepts_the_command_line_and_the_options(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "count", lambda: 8)
    settings = settings_of(group)
    command = server_command(settings)
    _, model, *words = command[command.index("trtllm-serve") :]
    found = click.Command("serve", params=[*options(settings.version)]).make_context("serve", words)
    assert found.params["extra_llm_api_options"] == f"/config/release/{settings.engine_file}"
    merged = update_llm_args_with_extra_dict({"model": model}, settings.engine, version=settings.version)
    assert torch_llm_args(settings.version)(**merged).model_dump()["model"] == model


def options(version: str) -> list[click.Parameter]:
    """Return the stand-in's options of a version."""

    @click.command("serve")
    @click_options(version)
    def serve(**_: Any) -> None: ...

    return serve.params
