from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rackwright_engines.quick_yaml import load_yaml
from rackwright_lab.standins.engine.llmapi.llm_utils import update_llm_args_with_extra_dict
from rackwright_lab.standins.engine.llmapi.models import torch_llm_args

FIXTURES = Path(__file__).parents[3] / "tests" / "fixtures" / "engine-yaml"
ACCEPTS: dict[str, dict[str, dict[str, Any]]] = json.loads((FIXTURES / "accepts.json").read_text())
VERSIONS = list(ACCEPTS["s000_eagle"])
EAGLE = {"decoding_type": "Eagle", "max_draft_len": 3, "speculative_model_dir": "/config/models/eagle"}
FROM_130 = ["1.3.0rc1", "1.3.0rc27", "1.4.0rc1"]


@pytest.fixture(autouse=True)
def eight_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "nvidia-smi"
    script.write_text('#!/bin/sh\nfor i in 0 1 2 3 4 5 6 7; do echo "GPU $i: NVIDIA B200 (UUID: GPU-$i)"; done\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def why_refused(options: dict[str, Any], version: str, **cli: Any) -> str:
    """Return "" when accepted, else the first reason as accepts.json writes it."""
    try:
        merged = update_llm_args_with_extra_dict(
            {"model": "/config/models/gpt-oss-120b", **cli}, options, version=version
        )
        torch_llm_args(version)(**merged)
    except ValidationError as error:
        first = error.errors()[0]
        return ".".join(str(part) for part in first["loc"]) + ": " + first["msg"]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ACCEPTS)
def test_agrees_with_the_matrix_of_accepted_files(name: str, version: str) -> None:
    options = load_yaml((FIXTURES / f"{name}.yaml").read_text())
    expected = ACCEPTS[name][version]
    why = why_refused(options, version)
    assert (why == "", why) == (expected["ok"], expected["why"])


VARIANTS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("top-level fraction", {"kv_cache_free_gpu_memory_fraction": 0.8}, []),
    ("bad moe backend", {"moe_config": {"backend": "FAST"}}, []),
    ("no draft model", {"speculative_config": {"decoding_type": "Eagle", "max_draft_len": 3}}, []),
    ("no draft length", {"speculative_config": {**EAGLE, "max_draft_len": 0}}, []),
    ("fraction out of range", {"kv_cache_config": {"free_gpu_memory_fraction": 1.5}}, []),
    ("wideep", {"moe_config": {"backend": "WIDEEP"}}, VERSIONS[:-2]),
    ("graph sizes conflict", {"cuda_graph_config": {"batch_sizes": [1, 2], "max_batch_size": 8}}, []),
    ("graphs off", {"cuda_graph_config": None}, VERSIONS),
    (
        "draft target, underscore",
        {"speculative_config": {**EAGLE, "decoding_type": "Draft_Target"}},
        VERSIONS[-2:],
    ),
    ("eagle3 tag", {"speculative_config": {**EAGLE, "decoding_type": "Eagle3"}}, FROM_130),
    (
        "speculative_model",
        {"speculative_config": {"decoding_type": "Eagle", "max_draft_len": 3, "speculative_model": "/d"}},
        FROM_130,
    ),
    ("eagle3_one_model", {"speculative_config": {**EAGLE, "eagle3_one_model": True}}, VERSIONS[:-2]),
    ("lower-case eagle", {"speculative_config": {**EAGLE, "decoding_type": "eagle"}}, []),
    ("flattened text", {"kv_cache_config": None, "enable_block_reuse": False}, []),
    ("null speculative section", {"speculative_config": None, "decoding_type": "Eagle"}, []),
    ("env_overrides", {"env_overrides": {"TRTLLM_ENABLE_PDL": "1"}}, VERSIONS[3:]),
    ("unknown nested key", {"moe_config": {"backend": "CUTLASS", "speed": 11}}, []),
    ("wrong type", {"stream_interval": "often"}, []),
    ("onboard_blocks", {"kv_cache_config": {"onboard_blocks": True}}, VERSIONS[:-2]),
]


@pytest.mark.parametrize(("options", "accepted"), [row[1:] for row in VARIANTS], ids=[row[0] for row in VARIANTS])
def test_variants_of_the_options(options: dict[str, Any], accepted: list[str]) -> None:
    assert [version for version in VERSIONS if why_refused(options, version) == ""] == accepted


def test_the_text_for_unknown_tags_is_each_version_s() -> None:
    lower = {"speculative_config": {**EAGLE, "decoding_type": "eagle"}}
    assert why_refused(lower, "1.2.0rc6") == "ValueError: Invalid decoding type: eagle"
    assert why_refused(lower, "1.4.0rc1").startswith("speculative_config: Input tag 'eagle' found")


def test_the_text_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "No GPU devices found on the node" in why_refused({}, "1.2.0rc6")


def fraction(version: str, typed: frozenset[str] = frozenset()) -> Any:
    merged = update_llm_args_with_extra_dict(
        {"model": "m", "kv_cache_config": {"free_gpu_memory_fraction": 0.7}},
        {"kv_cache_config": {"enable_block_reuse": False}},
        version=version,
        typed=typed,
    )
    return torch_llm_args(version)(**merged).model_dump()["kv_cache_config"]["free_gpu_memory_fraction"]


def test_a_yaml_kv_section_replaced_the_command_lines_until_2026() -> None:
    assert [fraction(version) for version in ("1.1.0rc0", "1.2.0rc6", "1.3.0rc1")] == [0.9, 0.9, 0.7]


def test_who_wins_between_command_line_and_yaml() -> None:
    def batch(version: str) -> Any:
        typed = frozenset({"max_batch_size"})
        return update_llm_args_with_extra_dict(
            {"max_batch_size": 10}, {"max_batch_size": 32}, version=version, typed=typed
        )["max_batch_size"]

    assert [batch(version) for version in ("1.1.0rc0", "1.2.0rc1", "1.3.0rc1", "1.4.0rc1")] == [
        10,
        32,
        32,
        10,
    ]
