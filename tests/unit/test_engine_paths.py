"""What options and variables name must be in the container: by a mount, or else in the image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackwright.engines.host import check_host
from rackwright.settings.host_settings import HostSettings
from rackwright_engines.data import table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.options.schema import lines

MOUNT = "/config/models/gpt-oss-120b"
DRAFT = {"repository": "nvidia/gpt-oss-120b-Eagle3-v3", "mount": "/opt/eagle3"}
IMAGES = {
    "vllm": "vllm/vllm-openai:v0.32.0",
    "sglang": "lmsysorg/sglang:v0.5.23",
    "tensorrt-llm": "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc9",
}
CODES = ("RW0334", "RW0344", "RW0354")


def found(kind: str, engine: Mapping[str, Any] | None = None, **more: Any) -> list[Finding]:
    """Return the problems of paths, encodings and unified memory."""
    model = {"repository": "openai/gpt-oss-120b", "mount": MOUNT}
    values = {"engine_kind": kind, "image": IMAGES[kind], "model": model, "engine": dict(engine or {}), **more}
    return [one for one in check_host(HostSettings.model_validate(values)) if one.code in CODES]


def levels(kind: str, engine: Mapping[str, Any] | None = None, **more: Any) -> list[str]:
    return [one.level.value for one in found(kind, engine, **more)]


EAGLE = {"decoding_type": "Eagle3", "max_draft_len": 3}


@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("vllm", {"tokenizer": "openai/gpt-oss-120b"}),
        ("vllm", {"hf_config_path": "openai/gpt-oss-120b"}),
        ("vllm", {"speculative-config": '{"method": "eagle3", "model": "nvidia/gpt-oss-120b-Eagle3-v3"}'}),
        ("vllm", {"speculative_config": {"method": "eagle3", "model": "nvidia/gpt-oss-120b-Eagle3-v3"}}),
        ("vllm", {"speculative-config.model": "nvidia/gpt-oss-120b-Eagle3-v3"}),
        ("vllm", {"speculative-config": {"model": "/opt/eagle3"}}),
        ("vllm", {"speculative-config": {"model": "./eagle3"}}),
        ("vllm", {"tokenizer": f"{MOUNT}/../other"}),
        ("vllm", {"chat-template": "/config/template.jinja"}),
        ("vllm", {"chat-template": "/config/release/template.jinja"}),
        ("vllm", {"lora-modules": ["one=me/adapter"]}),
        ("vllm", {"lora-modules": ['{"name": "one", "path": "/loras/one", "base_model_name": "x"}']}),
        ("vllm", {"default-mm-loras": '{"audio": "/loras/one"}'}),
        ("vllm", {"tool-parser-plugin": "/data/parser.py"}),
        ("vllm", {"ssl-keyfile": "/srv/tls/key.pem"}),
        ("sglang", {"speculative-draft-model-path": "lmsys/EAGLE3-gpt-oss-120b-bf16"}),
        ("sglang", {"tokenizer-path": "/root/.cache/huggingface/hub/tokenizer"}),
        ("sglang", {"chat-template": "/models/template.jinja"}),
        ("sglang", {"chat-template": "{% for message in messages %}{% endfor %}"}),
        ("sglang", {"lora-paths": ["one=me/adapter"]}),
        ("sglang", {"lora-paths": [{"lora_name": "one", "lora_path": "/mnt/one"}]}),
        ("sglang", {"speculative-token-map": "thunlp/LLaMA3-Instruct-8B-FR-Spec/freq_32768.pt"}),
        ("sglang", {"quantization-param-path": "/data/scales.json"}),
        ("tensorrt-llm", {"tokenizer": "openai/gpt-oss-120b"}),
        ("tensorrt-llm", {"speculative_config": {**EAGLE, "speculative_model": "nvidia/gpt-oss-120b-Eagle3-v3"}}),
        ("tensorrt-llm", {"speculative_config": {**EAGLE, "speculative_model_dir": "/opt/eagle3"}}),
        ("tensorrt-llm", {"lora_config": {"lora_dir": ["/loras/one"]}}),
        ("tensorrt-llm", {"moe_config": {"load_balancer": "/config/eplb.yaml"}}),
    ],
)
def test_what_no_mount_provides_is_refused(kind: str, engine: dict[str, Any]) -> None:
    assert levels(kind, engine) == ["refuse"]


@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("vllm", {"tokenizer": MOUNT}),
        ("vllm", {"tokenizer": f"{MOUNT}/"}),
        ("vllm", {"chat-template": f"{MOUNT}/chat_template.jinja"}),
        ("vllm", {"chat-template": "{{ messages }}"}),
        ("vllm", {"chat-template": "template_chatml.jinja"}),
        ("vllm", {"generation-config": "vllm"}),
        ("vllm", {"speculative-config": {"method": "ngram", "num_speculative_tokens": 3}}),
        ("vllm", {"speculative-config": {"model": "[ngram]", "num_speculative_tokens": 3}}),
        ("vllm", {"download-dir": "/models/new", "served-model-name": "owner/name"}),
        ("vllm", {"model": "s3://bucket/model"}),
        ("vllm", {"reasoning-parser-plugin": "parsers"}),
        ("sglang", {"chat-template": "llama-2"}),
        ("sglang", {"speculative-draft-model-path": MOUNT}),
        ("sglang", {"deepep-config": '{"normal_dispatch": {}}'}),
        ("tensorrt-llm", {"moe_config": {"load_balancer": {"num_slots": 144}}}),
        ("tensorrt-llm", {"custom_tokenizer": "package.module.Tokenizer"}),
    ],
)
def test_what_is_there_or_names_no_file_is_not_spoken_of(kind: str, engine: dict[str, Any]) -> None:
    assert levels(kind, engine) == []


@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("vllm", {"chat-template": "/vllm-workspace/examples/tool_chat_template_hermes.jinja"}),
        ("vllm", {"chat-template": "examples/tool_chat_template_hermes.jinja"}),
        ("vllm", {"tool-parser-plugin": "/app/parser.py"}),
        ("vllm", {"tokenizer": "/workspace/tokenizer"}),
        ("vllm", {"tokenizer": "gpt2"}),
        ("sglang", {"chat-template": "/sgl-workspace/sglang/examples/chat_template/tool_chat_template.jinja"}),
        ("tensorrt-llm", {"lora_config": {"lora_dir": ["/app/tensorrt_llm/lora"]}}),
    ],
)
def test_what_the_image_may_have_is_warned_of(kind: str, engine: dict[str, Any]) -> None:
    assert levels(kind, engine) == ["warn"]


@pytest.mark.parametrize(
    ("kind", "arguments", "at"),
    [
        ("vllm", ("--tokenizer", "openai/gpt-oss-120b"), [0]),
        ("vllm", ("--enforce-eager", "--tokenizer=openai/gpt-oss-120b"), [1]),
        ("vllm", ("--lora-modules", "one=me/one", "two=/mnt/two"), [0, 0]),
        ("sglang", ("--tokenizer-path", MOUNT), []),
        ("tensorrt-llm", ("--chat_template", "/config/template.jinja"), [0]),
    ],
)
def test_arguments_are_looked_at_too(kind: str, arguments: tuple[str, ...], at: list[int]) -> None:
    assert [one.path for one in found(kind, arguments=arguments)] == [("arguments", index) for index in at]


def test_the_text_has_the_mount_to_write() -> None:
    options = {"speculative-config": {"model": "nvidia/x", "method": "eagle3"}}
    (none,) = found("vllm", options)
    assert "write `draft: {repository: nvidia/x, mount: /config/models/x}`, and /config/models/x here" in none.text
    (other,) = found("vllm", options, draft=DRAFT)
    assert "write /opt/eagle3, where `draft` is mounted" in other.text
    assert other.path == ("engine", "speculative-config", "model")
    (tokenizer,) = found("vllm", {"tokenizer": "openai/gpt-oss-120b"})
    assert f"write {MOUNT}" in tokenizer.text


def test_a_mount_that_a_setting_takes_away_is_missed() -> None:
    options = {"speculative-config": {"model": "/opt/eagle3", "method": "eagle3"}}
    assert levels("vllm", options, draft=DRAFT) == []
    assert levels("vllm", options) == ["refuse"]
    assert levels("vllm", options, draft={**DRAFT, "mount": "/opt/eagle"}) == ["refuse"]
    assert levels("vllm", options, accept_known_bad=True) == ["warn"]
    (one,) = found("vllm", environment={"TIKTOKEN_ENCODINGS_BASE": "/config/encodings"}, harmony=False)
    assert (one.level, one.path) == (Level.REFUSE, ("environment", "TIKTOKEN_ENCODINGS_BASE"))
    assert levels("vllm", environment={"TIKTOKEN_ENCODINGS_BASE": "/config/encodings"}) == []


@pytest.mark.parametrize("value", ["0", "false", "off", "no"])
def test_a_container_that_asks_the_hub_may_name_what_lies_there(value: str) -> None:
    environment = {"HF_HUB_OFFLINE": value}
    assert levels("vllm", {"tokenizer": "openai/gpt-oss-120b"}, environment=environment) == []
    assert levels("vllm", {"tokenizer": "/models/gpt-oss-120b"}, environment=environment) == ["refuse"]


def test_an_offline_container_stays_offline_by_any_word() -> None:
    for environment in ({"HF_HUB_OFFLINE": "true"}, {"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "1"}):
        assert levels("vllm", {"tokenizer": "openai/gpt-oss-120b"}, environment=environment) == ["refuse"]


@pytest.mark.parametrize("kind", IMAGES)
def test_gpt_oss_without_its_encodings_is_told(kind: str) -> None:
    assert levels(kind) == []
    assert [(one.code, one.level) for one in found(kind, harmony=False)] == [("RW0344", Level.WARN)]
    assert levels(kind, harmony=False, environment={"TIKTOKEN_RS_CACHE_DIR": "/models/cache"}) == ["warn"]
    assert levels(kind, harmony=False, model={"repository": "Qwen/Qwen3-30B-A3B", "mount": "/config/models/q"}) == []
    for harmony in (True, False):
        environment = {"TIKTOKEN_ENCODINGS_BASE": "/models/tiktoken"}
        assert levels(kind, harmony=harmony, environment=environment) == ["refuse"]
        assert levels(kind, harmony=harmony, environment={"TIKTOKEN_ENCODINGS_BASE": "/usr/share/t"}) == ["warn"]


SPARK = {"gpu_models": ["DGX Spark"], "gpu_count": 1}


@pytest.mark.parametrize(
    ("kind", "engine", "shm", "path"),
    [
        ("vllm", {}, None, None),
        ("vllm", {"gpu-memory-utilization": 0.95}, None, "gpu-memory-utilization"),
        ("vllm", {}, "200g", "shm_size"),
        ("vllm", {}, "64g", "shm_size"),
        ("vllm", {}, "16g", None),
        ("vllm", {"gpu-memory-utilization": 0.4}, "32g", None),
        ("vllm", {"cpu-offload-gb": 40}, None, "cpu-offload-gb"),
        ("vllm", {"cpu-offload-gb": 40, "gpu-memory-utilization": 0.5}, None, None),
        ("vllm", {"kv-cache-memory-bytes": "150G"}, None, "kv-cache-memory-bytes"),
        ("vllm", {"kv-cache-memory-bytes": 40 << 30}, None, None),
        ("sglang", {"mem-fraction-static": 0.97}, None, "mem-fraction-static"),
        ("sglang", {"mem-fraction-static": 0.8, "hicache-size": 60}, None, "hicache-size"),
        ("tensorrt-llm", {"kv_cache_config": {"host_cache_size": 50 << 30}}, None, "host_cache_size"),
        ("tensorrt-llm", {"kv_cache_config": {"free_gpu_memory_fraction": 0.9}}, None, None),
        ("tensorrt-llm", {"kv_cache_config": {"free_gpu_memory_fraction": 0.98}}, None, "free_gpu_memory_fraction"),
    ],
)
def test_unified_memory_must_hold_the_system_too(
    kind: str, engine: dict[str, Any], shm: str | None, path: str | None
) -> None:
    container = {"shm_size": shm} if shm else {}
    problems = found(kind, engine, hardware=SPARK, container=container)
    assert [(one.path[-1], one.level) for one in problems] == ([(path, Level.WARN)] if path else [])
    assert found(kind, engine, hardware={"gpu_models": ["H200"], "gpu_count": 1}, container=container) == []


def test_words_of_the_command_line_count_for_unified_memory() -> None:
    words = ["--gpu-memory-utilization", "0.98", "--cpu-offload-gb=40"]
    paths = [one.path[-1] for one in found("vllm", {}, hardware=SPARK, arguments=words)]
    assert paths == ["gpu-memory-utilization", "cpu-offload-gb"]


@pytest.mark.parametrize("kind", IMAGES)
def test_each_option_of_the_table_is_one_of_some_version(kind: str) -> None:
    known_keys = {".".join(path) for version_line in lines(kind).values() for path in version_line.all_keys()}
    mappings = {"lora_config.lora_dir"}
    on_command_line = {"config", "chat_template", "extra_llm_api_options", "metadata_server_config_file"}
    assert {*table("paths")[kind]["options"]} - known_keys <= mappings | on_command_line
