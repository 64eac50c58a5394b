"""Rules between options of vLLM and SGLang: each refuses its own example, and nothing that is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rackwright.engines.host import check_endpoint
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.sections import Hardware
from rackwright_engines.finding import Finding, Level
from rackwright_engines.options.check import check_options
from rackwright_engines.options.pairs import rules_of
from rackwright_engines.options.schema import lines
from rackwright_engines.quick_yaml import load_yaml
from rackwright_engines.version import not_before

EXAMPLES = load_yaml((Path(__file__).parents[1] / "fixtures" / "engine_rules.yaml").read_text())
"""Options that break each rule, and options near them that do not: by engine and rule."""
RULES = [(engine, name) for engine in EXAMPLES for name in EXAMPLES[engine]]


def broken(engine: str, version: str, options: dict[str, Any], arguments: tuple[str, ...] = ()) -> list[Finding]:
    return [one for one in check_options(engine, version, options, arguments=arguments) if one.code == "RW0343"]


def newest(engine: str) -> str:
    return list(lines(engine).values())[-1].versions[-1]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_rule_has_an_example_and_a_source(engine: str) -> None:
    assert set(EXAMPLES[engine]) == set(rules_of(engine))
    for rule in rules_of(engine).values():
        assert rule["source"].split()[0].endswith(".py")


@pytest.mark.parametrize(("engine", "name"), RULES)
def test_a_rule_refuses_its_example_and_not_what_is_right(engine: str, name: str) -> None:
    rule, example = rules_of(engine)[name], EXAMPLES[engine][name]
    version = example.get("version", newest(engine))
    (found,) = broken(engine, version, example["wrong"])
    assert found.level is Level(rule.get("level", "refuse"))
    assert found.path[0] in {*example["wrong"], rule["at"].split(".")[0]}
    assert "{" not in found.text
    for right in example["right"]:
        assert broken(engine, version, right) == []


@pytest.mark.parametrize(("engine", "name"), RULES)
def test_a_rule_counts_from_its_version_on(engine: str, name: str) -> None:
    rule, example = rules_of(engine)[name], EXAMPLES[engine][name]
    every = [version for schema in lines(engine).values() for version in schema.versions]
    path = broken(engine, example.get("version", newest(engine)), example["wrong"])[0].path
    for version in [version for version in every if not not_before(version, rule["since"])]:
        assert path not in [one.path for one in broken(engine, version, example["wrong"])]


def test_words_of_the_command_line_count() -> None:
    auto = {"enable-auto-tool-choice": True}
    assert broken("vllm", "0.33.0", auto, ("--tool-call-parser", "openai")) == []
    assert broken("vllm", "0.33.0", {"enable_auto_tool_choice": True})[0].path == ("enable_auto_tool_choice",)
    assert broken("vllm", "0.33.0", {"tool-call-parser": "openai"}, ("--enable-auto-tool-choice",)) == []
    assert len(broken("vllm", "0.33.0", {"max-num-seqs": 256}, ("--max-num-batched-tokens=64",))) == 1


def test_beyond_exact_knowledge_a_rule_warns() -> None:
    found = check_options("vllm", "nightly-5e35a6f", {"enable-auto-tool-choice": True})
    assert [one.level for one in found] == [Level.WARN, Level.WARN]


# -- the model's own length


def long(engine_kind: str, image: str, options: dict[str, Any], **more: Any) -> list[Finding]:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/models/gpt-oss-120b"}
    raw = {"image": image, "engine_kind": engine_kind, "engine": options, "model": model, **more}
    found = check_endpoint("llm", EndpointSettings.model_validate(raw), Hardware())
    return [one for one in found if one.code == "RW0363"]


VLLM, SGLANG = "vllm/vllm-openai:v0.33.0", "lmsysorg/sglang:v0.5.23"


@pytest.mark.parametrize(
    ("kind", "image", "key", "variable"),
    [
        ("vllm", VLLM, "max-model-len", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"),
        ("sglang", SGLANG, "context-length", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"),
    ],
)
def test_a_length_above_the_model_s_own_is_refused(kind: str, image: str, key: str, variable: str) -> None:
    (found,) = long(kind, image, {key: 9999999})
    assert (found.level, found.path) == (Level.REFUSE, ("engine", key))
    assert variable in found.text
    assert long(kind, image, {key: 131072}) == []
    assert long(kind, image, {key: 9999999}, environment={variable: "1"}) == []


def test_a_model_whose_config_is_overridden_has_another_length() -> None:
    assert long("vllm", VLLM, {"max-model-len": 262144, "hf-overrides": '{"rope_scaling": {"factor": 2}}'}) == []
