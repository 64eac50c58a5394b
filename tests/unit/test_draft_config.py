"""A draft's config.json on the host against its model's: what no engine loads is refused before anything is stopped."""

from __future__ import annotations

import base64
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackwright.concerns.endpoint.container import Mount
from rackwright.concerns.models import MODELS
from rackwright.concerns.models.concern import parse, read
from rackwright.concerns.options.concern import WantedOptions, _misfits, changes, report
from rackwright.plan.change import Refuse
from rackwright.plan.reading import decode
from rackwright_engines.fit.draft_config import Misfit, misfits
from rackwright_engines.fit.sizes import UNNAMED
from tests.unit.test_plan import settings

GPT_OSS = {
    "architectures": ["GptOssForCausalLM"],
    "hidden_size": 2880,
    "num_hidden_layers": 36,
    "vocab_size": 201088,
}
GPT_OSS_HEAD = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "hidden_size": 2880,
    "num_hidden_layers": 1,
    "vocab_size": 201088,
    "draft_vocab_size": 201088,
}
LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128256}
LLAMA_HEAD = {**LLAMA, "num_hidden_layers": 1, "draft_vocab_size": 32000}
"""As yuhuili/EAGLE3-LLaMA3.1-Instruct-8B has it: no word of Eagle."""
VISION = {"architectures": ["Mistral3ForConditionalGeneration"], "hidden_size": 1024, "text_config": LLAMA}
SPECULATORS = {
    "architectures": ["Eagle3Speculator"],
    "speculators_model_type": "eagle3",
    "draft_vocab_size": 32000,
    "transformer_layer_config": {"hidden_size": 4096, "vocab_size": 128256, "model_type": "llama"},
    "eagle_aux_hidden_state_layer_ids": [2, 16, 29],
}
NARROW = {**LLAMA_HEAD, "hidden_size": 2048, "target_hidden_size": 4096}
SMALL = {"architectures": ["Qwen2ForCausalLM"], "hidden_size": 896, "num_hidden_layers": 24, "vocab_size": 151936}
LARGE = {**SMALL, "hidden_size": 3584, "vocab_size": 152064}
TINY = {"architectures": ["LlamaForCausalLM"], "hidden_size": 128, "num_hidden_layers": 4, "vocab_size": 600}


@pytest.mark.parametrize(
    ("base", "draft", "kind", "method"),
    [
        (GPT_OSS, GPT_OSS_HEAD, "tensorrt-llm", "Eagle"),
        (GPT_OSS, GPT_OSS_HEAD, "tensorrt-llm", "Eagle3"),
        (GPT_OSS, GPT_OSS_HEAD, "vllm", "eagle3"),
        (GPT_OSS, GPT_OSS_HEAD, "sglang", "EAGLE3"),
        (LLAMA, LLAMA_HEAD, "vllm", "eagle3"),
        (LLAMA, LLAMA_HEAD, "vllm", "eagle"),
        (LLAMA, SPECULATORS, "vllm", "eagle3"),
        (LLAMA, NARROW, "vllm", "eagle3"),
        (VISION, LLAMA_HEAD, "vllm", "eagle3"),
        (LARGE, {**SMALL, "vocab_size": 152064}, "vllm", "draft_model"),
        (LLAMA, {**LLAMA_HEAD, "eagle_aux_hidden_state_layer_ids": [2, 16, 32]}, "vllm", "eagle3"),
        (LLAMA, {"hidden_size": 2048, "backbone_hidden_size": 4096, "vocab_size": 128256}, "sglang", "EAGLE"),
        (LLAMA, {"architectures": ["DeepSeekMTPModel"], "hidden_size": 2048}, "vllm", "mtp"),
        (LLAMA, {"architectures": ["DFlashDraftModel"], "hidden_size": 2048}, "vllm", "dflash"),
        (LLAMA, {"architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "vocab_size": 128256}, "vllm", UNNAMED),
        (LLAMA, {}, "vllm", "eagle3"),
        ({}, LLAMA_HEAD, "vllm", "eagle3"),
        ({"hidden_size": "4096", "text_config": None}, {**LLAMA_HEAD, "architectures": "x"}, "vllm", "eagle3"),
        (LLAMA, {"hidden_size": True, "eagle_config": 7, "eagle_aux_hidden_state_layer_ids": ["2"]}, "vllm", "eagle3"),
    ],
)
def test_a_draft_that_may_load_is_left_to_the_engine(base: Any, draft: Any, kind: str, method: str) -> None:
    assert misfits(base, draft, kind, method) == []


@pytest.mark.parametrize(
    ("base", "draft", "kind", "method", "observed", "certain"),
    [
        (
            TINY,
            {**TINY, "hidden_size": 96},
            "vllm",
            "eagle3",
            "hidden_size 96, and the model's has hidden_size 128",
            True,
        ),
        (LLAMA, GPT_OSS_HEAD, "sglang", "EAGLE3", "has hidden_size 2880", True),
        (LLAMA, GPT_OSS_HEAD, "tensorrt-llm", "Eagle", "has hidden_size 2880", True),
        (LLAMA, GPT_OSS_HEAD, "vllm", UNNAMED, "has hidden_size 2880", True),
        (VISION, {**LLAMA_HEAD, "hidden_size": 1024}, "vllm", "eagle3", "has hidden_size 1024", True),
        (LLAMA, {**NARROW, "target_hidden_size": 5120}, "vllm", "eagle3", "has target_hidden_size 5120", True),
        (
            LLAMA,
            {**LLAMA_HEAD, "eagle_aux_hidden_state_layer_ids": [1, 46, 90]},
            "vllm",
            "eagle3",
            "[1, 46, 90], and the model's has num_hidden_layers 32",
            True,
        ),
        (
            LLAMA,
            {**LLAMA_HEAD, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 90]}},
            "sglang",
            "EAGLE3",
            "[1, 90]",
            True,
        ),
        (GPT_OSS, GPT_OSS_HEAD, "vllm", "eagle", "LlamaForCausalLMEagle3, and the options draft by eagle", True),
        (GPT_OSS, GPT_OSS_HEAD, "sglang", "EAGLE", "LlamaForCausalLMEagle3, and the options draft by eagle", False),
        (LLAMA, {**LLAMA, "architectures": ["LlamaForCausalLMEagle"]}, "vllm", "eagle3", "draft by eagle3", True),
        (LARGE, SMALL, "vllm", "draft_model", "has vocab_size 151936, and the model's has vocab_size 152064", True),
        (LLAMA, {**LLAMA_HEAD, "vocab_size": 128000}, "vllm", "eagle3", "has vocab_size 128000", False),
        (LLAMA, {**LLAMA_HEAD, "draft_vocab_size": 200000}, "vllm", "eagle3", "has draft_vocab_size 200000", False),
        (
            LLAMA,
            {**SPECULATORS, "speculators_model_type": "dflash"},
            "vllm",
            "eagle3",
            "speculators_model_type df",
            False,
        ),
    ],
)
def test_a_draft_of_another_model_is_named(
    base: Any, draft: Any, kind: str, method: str, observed: str, certain: bool
) -> None:
    found = misfits(base, draft, kind, method)
    assert [one.certain for one in found if observed in one.text] == [certain], found
    assert any(one.certain for one in found) is certain


def test_options_may_let_vocabularies_differ() -> None:
    (found,) = misfits(LARGE, SMALL, "vllm", "draft_model", any_vocabulary=True)
    assert not found.certain


# -- on the host


SPECULATIVE = json.dumps({"method": "eagle3", "model": "/m/head", "num_speculative_tokens": 3})
BASE, HEAD = "/srv/models/meta--llama", "/srv/models/me--head"


def drafting() -> Any:
    """Return an endpoint with a draft, and its release, as far as the check looks at them."""
    endpoint = settings().all_endpoints["llm"]
    assert endpoint.draft is not None
    assert endpoint.model is not None
    mounts = (Mount(BASE, endpoint.model.mount), Mount(HEAD, endpoint.draft.mount))
    spec = type("Spec", (), {"mounts": mounts, "name": "llm", "serving_hash": "abc"})()
    return endpoint, type("Release", (), {"spec": spec, "hash": "0123456789ab"})()


def unfit(draft: dict[str, Any], base: dict[str, Any] | None = None) -> tuple[Misfit, ...]:
    endpoint, release = drafting()
    files = {HEAD: json.dumps(draft), BASE: json.dumps(GPT_OSS if base is None else base)}
    return _misfits(release, endpoint, files)


def wanted(found: tuple[Misfit, ...], spared: bool = False) -> WantedOptions:
    _, release = drafting()
    return WantedOptions(release, "tensorrt-llm", spared=spared, misfits=found)


def test_it_is_refused_before_its_image_is_asked_and_both_files_are_named() -> None:
    (change,) = changes((wanted(unfit({**GPT_OSS_HEAD, "hidden_size": 4096})),), {})
    (step,) = change.steps
    assert isinstance(step, Refuse)
    assert step.code == "RW3008"
    for fragment in (
        f"{HEAD}/config.json",
        f"{BASE}/config.json",
        "hidden_size 4096",
        "hidden_size 2880",
        "keeps serving; next:",
    ):
        assert fragment in step.text


def test_a_doubt_is_said_and_refuses_nothing_text() -> None:
    found = unfit({**GPT_OSS_HEAD, "vocab_size": 201000})
    assert [one.certain for one in found] == [False]
    options = replace(wanted(found), spared=True)
    assert changes((options,), {}) == []
    assert "draft of endpoint llm: it may not load: " in report((options,), {})


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "\x00"])
def test_a_file_that_is_not_there_or_makes_no_sense_is_not_judged(text: str) -> None:
    endpoint, release = drafting()
    assert _misfits(release, endpoint, {HEAD: text, BASE: json.dumps(GPT_OSS)}) == ()
    assert _misfits(release, endpoint, {}) == ()


def test_the_reading_brings_both_files_of_any_commit_and_no_large_one(tmp_path: Path) -> None:
    host_settings = settings(models={"folder": str(tmp_path)})
    endpoint = host_settings.all_endpoints["llm"]
    assert endpoint.draft is not None
    assert endpoint.model is not None
    for source, config in ((endpoint.model, GPT_OSS), (endpoint.draft, GPT_OSS_HEAD)):
        folder = tmp_path / f"{source.repository.replace('/', '--')}--0123456789ab"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
    (tmp_path / "another--model--0123456789ab").mkdir()
    (tmp_path / "another--model--0123456789ab" / "config.json").write_text("{}")
    carry = 'carry() { printf "%s %s\\n" "$1" "$(base64 -w0 <"$2")"; }; show() { :; }; hangs() { return 1; }\n'
    printed = subprocess.run(
        ["sh", "-c", carry + read(host_settings)], capture_output=True, text=True, check=True
    ).stdout
    found = parse(printed).configs
    assert sorted(json.loads(text)["architectures"][0] for text in found.values()) == [
        "GptOssForCausalLM",
        "LlamaForCausalLMEagle3",
    ]
    (folder / "config.json").write_text(json.dumps({**GPT_OSS_HEAD, "x": "y" * 300_000}))
    printed = subprocess.run(
        ["sh", "-c", carry + read(host_settings)], capture_output=True, text=True, check=True
    ).stdout
    assert len(parse(printed).configs) == 1


def test_nothing_is_read_where_nothing_drafts() -> None:
    host_settings = settings(draft=None)
    assert "config.json" not in read(host_settings)
    assert MODELS.parse("").configs == {}
    assert decode(base64.b64encode(b"{}").decode()) == "{}"
