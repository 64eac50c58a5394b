"""Data that age refuse nothing new: only what is one edit from a known name, with the way out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rackwright.engines.host import check_endpoint
from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.sections import Hardware
from rackwright_engines.finding import Finding, Level, refused
from rackwright_engines.nearest import is_one_edit, one_edit
from rackwright_engines.options import schema
from rackwright_engines.options.check import check_options
from rackwright_engines.options.schema import Key, VersionLine, line_for, lines, next_line

TRT = "tensorrt-llm"
SAMPLES: dict[str, Any] = {"bool": True, "int": 1, "float": 0.5, "list[int]": [1], "list[float]": [0.5], "json": "{}"}
NEAR: dict[tuple[str, int], set[str]] = {
    ("vllm", 3): {"eplb-config.communicator.torch_xccl"},
    ("sglang", 3): {"radix-eviction-policy.tlru"},
}
"""What is new and yet refused, by engine and hidden lines: torch_nccl and slru were known before."""


def problem_texts(engine: str, version: str, options: dict[str, Any], level: Level = Level.REFUSE) -> list[str]:
    found = check_options(engine, version, options)
    return [f"{'.'.join(map(str, one.path))}: {one.sentence}" for one in found if one.level is level]


# -- lines that are hidden


def hide(patch: pytest.MonkeyPatch, engine: str, count: int) -> VersionLine:
    """Return the newest line, after the newest `count` lines were taken away."""
    names = list(lines(engine))
    newest = lines(engine)[names[-1]]
    patch.setattr(schema, "_names", lambda kind: tuple(names[:-count]) if kind == engine else ())
    return newest


def launches(version_line: VersionLine) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key that is not as in the newest line that is left, and each of its values, as a file of its own."""
    yield from _section(
        version_line, line_for(version_line.engine, version_line.versions[-1])[0], version_line.root, {}, ()
    )


def _section(
    version_line: VersionLine, old: VersionLine, section: str, tagged: dict[str, str], above: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, key in version_line.sections[section].items():
        same = old.sections.get(section, {}).get(name) == key
        for value in () if same else _values(version_line, key):
            yield ".".join((*above, name, str(value))), _file(version_line, (*above, name), {**tagged, name: value})
        if len(above) < 3 and key.type in version_line.sections:
            yield from _section(version_line, old, key.type, {}, (*above, name))
        for kind, inner in version_line.unions[key.type].kinds.items() if key.type in version_line.unions else ():
            yield from _section(version_line, old, inner, {version_line.unions[key.type].tag: kind}, (*above, name))


def _values(version_line: VersionLine, key: Key) -> list[Any]:
    if key.type in version_line.sections or key.type in version_line.unions:
        return [{}]
    return list(key.values) or [SAMPLES.get(key.type, "x")]


def _file(version_line: VersionLine, path: tuple[str, ...], last: dict[str, Any]) -> dict[str, Any]:
    made = last
    for index, name in reversed(list(enumerate(path[:-1]))):
        as_text = index == 0 and version_line.engine != TRT
        made = {name: json.dumps(made) if as_text else made}
    return made


@pytest.mark.parametrize("hidden", [1, 2, 3])
@pytest.mark.parametrize("engine", [TRT, "vllm", "sglang"])
def test_what_is_new_is_refused_only_one_edit_from_a_known_name(
    engine: str, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = hide(monkeypatch, engine, hidden)
    found = {
        named: one for named, options in launches(newest) for one in _stopped(engine, newest.versions[-1], options)
    }
    assert {named: one.near for named, one in found.items() if not _is_near(named, one)} == {}
    assert all(one.overridable for one in found.values())
    assert set(found) == NEAR.get((engine, hidden), set())


def _stopped(engine: str, version: str, options: dict[str, Any]) -> list[Finding]:
    return refused(check_options(engine, version, options))


def _is_near(named: str, one: Finding) -> bool:
    return any(is_one_edit(part, one.near) for part in named.split("."))


# -- single cases


NEW: list[tuple[str, str, dict[str, Any]]] = [
    ("vllm", "nightly-5e35a6f", {"brand-new-option": 1, "kv-cache-dtype": "int3_per_row"}),
    ("vllm", "kimi-k3", {"swap-space": 4, "compilation-config": '{"brand_new": 1}', "attention_config.brand_new": 1}),
    ("vllm", "9.9.9", {"async-scheduling": "sometimes", "max-num-seqs": "many"}),
    ("vllm", "0.27.5", {"brand_new_option": True}),
    ("sglang", "latest", {"brand-new-option": 1, "attention-backend": "brand_new"}),
    (TRT, "1.5.0rc0", {"brand_new": 1, "moe_config": {"backend": "BRANDNEW", "new_key": 2}, "sampler_type": "Other"}),
    (TRT, "1.3.0rc12", {"use_torch_sampler": True, "speculative_config": {"decoding_type": "BrandNew"}}),
    (TRT, "latest", {"cuda_graph_config": {"mode": "brandnew"}, "kv_cache_config": 7}),
    (TRT, "1.4.0rc1", {"attention_dp_config": {"kv_cache_routing_new_conv_placement": "least_tokens"}}),
    (TRT, "1.3.0rc0", {"backend": "_autodeploy", "runtime": "trtllm", "max_batch_siz": 8}),
]


@pytest.mark.parametrize(("engine", "version", "options"), NEW, ids=str)
def test_what_nobody_here_can_know_is_not_refused(engine: str, version: str, options: dict[str, Any]) -> None:
    assert problem_texts(engine, version, options) == []


@pytest.mark.parametrize(
    ("engine", "version", "options", "right"),
    [
        ("vllm", "nightly-5e35a6f", {"max-num-seqz": 1}, "max-num-seqs"),
        ("vllm", "nightly-5e35a6f", {"max_num_sesq": 1}, "max-num-seqs"),
        ("sglang", "latest", {"attention-backend": "flashinfr"}, "flashinfer"),
        (TRT, "1.5.0rc0", {"kv_cache_config": {"enable_block_reus": True}}, "enable_block_reuse"),
        (TRT, "1.4.0rc1", {"scheduler_config": {"waiting_queue_policy": "fcf"}}, "fcfs"),
        (TRT, "1.3.0rc12", {"speculative_config": {"decoding_type": "DraftTarget"}}, "Draft_Target"),
    ],
    ids=str,
)
def test_one_edit_from_a_known_name_is_refused_with_both_ways_out(
    engine: str, version: str, options: dict[str, Any], right: str
) -> None:
    (found,) = refused(check_options(engine, version, options))
    assert (found.code, found.near) == ("RW0338", right)
    assert right in found.sentence
    assert found.overridable


def test_one_that_only_the_next_line_takes_is_warned_of() -> None:
    options = {"encode_only": True}
    assert [one.split(":")[0] for one in problem_texts(TRT, "1.3.0rc5", options, Level.WARN)] == ["", "encode_only"]
    assert problem_texts(TRT, "1.3.0rc5", options) == []


def test_one_near_a_known_name_is_not_refused_where_the_next_line_takes_it() -> None:
    """Of a version between two lines, each may be right."""
    before, after = lines(TRT)["1.2.0rc0"], next_line(lines(TRT)["1.2.0rc0"])
    assert after is not None
    new = [path[0] for path in after.all_keys() if len(path) == 1 and path not in before.all_keys()]
    assert new
    assert [name for name in new if problem_texts(TRT, "1.2.0rc3", {name: None})] == []


def test_a_tag_without_a_version_may_be_of_any_line() -> None:
    assert problem_texts("vllm", "nightly", {"swap-space": 4}) == []


def of_image(image: str, engine: dict[str, Any], shares: bool = False, **more: Any) -> list[Finding]:
    kind = more.pop("engine_kind", "vllm")
    endpoint = EndpointSettings.model_validate({"image": image, "engine_kind": kind, "engine": engine, **more})
    found = check_endpoint("llm", endpoint, Hardware(unified_memory=shares))
    return [one for one in found if one.path[:1] == ("engine",)]


def test_an_image_that_somebody_built_may_have_more_than_its_version() -> None:
    options = {"mxfp4-backend": "x"}
    assert refused(of_image("someone/dgx-spark-vllm:v0.30.0", options)) == []
    for image in (
        "vllm/vllm-openai:v0.30.0",
        "r.example:5000/mirror/vllm/vllm-openai:v0.30.0",
        "r.example/vllm-openai:v0.30.0",
    ):
        assert [one.code for one in refused(of_image(image, options))] == ["RW0301"]
    assert [one.code for one in refused(of_image("someone/vllm:v0.30.0", {"max-num-seqz": 1}))] == ["RW0338"]


def test_accept_known_bad_takes_a_near_name() -> None:
    assert refused(of_image("vllm/vllm-openai:nightly", {"max-num-seqz": 1}, accept_known_bad=True)) == []


def test_where_the_image_cannot_be_asked_the_warning_says_so_and_how_it_can() -> None:
    found = of_image("vllm/vllm-openai:nightly", {"brand-new": 1}, shares=True)
    assert "the image was not asked" in found[0].text
    assert "rackwright drain INVENTORY --limit HOST --reason TEXT" in found[0].text


@pytest.mark.parametrize("words", [["--backend", "_autodeploy"], ["--backend=_autodeploy"]])
def test_autodeploy_s_file_is_not_checked_wherever_it_is_chosen(words: list[str]) -> None:
    image = "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc1"
    assert refused(of_image(image, {"runtime": "trtllm"}, engine_kind=TRT, arguments=words)) == []
    assert refused(of_image(image, {"runtime": "trtllm"}, engine_kind=TRT)) != []


def test_edits() -> None:
    assert [one_edit(name, ["abc"]) for name in ("abc", "ab", "abcd", "abd", "acb", "bac", "cab", "a", "")] == (
        ["", "abc", "abc", "abc", "abc", "abc", "", "", ""]
    )


@pytest.mark.parametrize(
    ("name", "nested"),
    [
        ("kv_cache_config.dtype", "write kv_cache_config: {dtype: ...}"),
        ("kv_cache_config.a.b", "write kv_cache_config: {a: {b: ...}}"),
        ("kv_cache_confg.dtype", "does not know this key"),
    ],
)
def test_a_key_with_dots_in_a_yaml_file_is_said_nested(name: str, nested: str) -> None:
    image = "nvcr.io/nvidia/tensorrt-llm/release:1.2.1"
    [found] = of_image(image, {name: "fp8"}, engine_kind="tensorrt-llm")
    assert found.code == "RW0301"
    assert nested in found.text
