"""Whatever the settings say: they are refused with a message, or every file of the host can be written from them."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from rackwright.cli.render import rendered_files
from rackwright.concerns.endpoint.container import environment, server_command
from rackwright.engines.host import check_endpoint
from rackwright.loading.validate import validate
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.problems import InvalidSettingsError
from rackwright_engines.quick_yaml import load_yaml
from tests.unit.test_engine_host import B200, LONG, RTX, SPARK, V2, stand_in_takes

IMAGES = {
    "tensorrt-llm": "r/x:1.2.0rc6",
    "vllm": "r/x:v0.14.1",
    "sglang": "r/x:v0.5.8",
}
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
ODD = st.sampled_from([None, True, -1, 0, 1.5, "", "x", "8", [], [0], {}, {"a": 1}])
"""Values of which most are wrong for most keys."""


def mostly(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Right values, and now and then one that may be wrong."""
    return st.integers(0, 29).flatmap(lambda number: right if number else ODD)


TRTLLM = st.fixed_dictionaries(
    {},
    optional={
        "tensor_parallel_size": mostly(st.sampled_from([1, 2])),
        "max_batch_size": mostly(st.integers(1, 64)),
        "max_seq_len": mostly(st.integers(1, 131072)),
        "kv_cache_config": mostly(st.fixed_dictionaries({}, optional={"free_gpu_memory_fraction": st.floats(0, 1)})),
        "speculative_config": mostly(
            st.fixed_dictionaries(
                {"decoding_type": st.just("Eagle"), "max_draft_len": st.integers(1, 8)},
                optional={"speculative_model_dir": st.just("/config/models/eagle3") | WORDS},
            )
        ),
        "moe_config": mostly(st.fixed_dictionaries({"backend": st.sampled_from(["CUTLASS", "TRTLLM", "TRITON"])})),
        "env_overrides": mostly(st.dictionaries(WORDS, WORDS, max_size=2)),
        "custom_tokenizer": mostly(WORDS),
    },
)
VLLM = st.fixed_dictionaries(
    {},
    optional={
        "tensor-parallel-size": mostly(st.sampled_from([1, 2])),
        "kv-cache-dtype": mostly(st.sampled_from(["auto", "fp8"])),
        "speculative-config": mostly(st.just('{"num_speculative_tokens": 1}')),
        "no-enable-prefix-caching": mostly(st.booleans()),
        "of-another-version": WORDS | st.integers(),
    },
)
SGLANG = st.fixed_dictionaries(
    {}, optional={"tensor-parallel-size": mostly(st.just(1)), "mem-fraction-static": mostly(st.floats(0.1, 0.9))}
)
ENDPOINT = st.sampled_from(sorted(IMAGES)).flatmap(
    lambda kind: st.fixed_dictionaries(
        {
            "engine_kind": st.just(kind),
            "image": st.just(IMAGES[kind]),
            "engine": {"tensorrt-llm": TRTLLM, "vllm": VLLM, "sglang": SGLANG}[kind],
        },
        optional={
            "draft": mostly(st.sampled_from([V2, LONG])),
            "engine_file": mostly(st.sampled_from(["eagle.yaml", "a.yml"])),
            "environment": mostly(st.dictionaries(st.sampled_from(["A", "HF_HOME"]), WORDS, max_size=2)),
            "sizes_on_command_line": mostly(st.booleans()),
            "port": mostly(st.integers(1, 65535)),
            "network": mostly(st.sampled_from(["bridge", "host"])),
            "bind": mostly(st.sampled_from(["127.0.0.1", "::1", "0.0.0.0"])),
            "allow_from": mostly(st.just(["10.0.0.0/8", "fd00::/8"])),
            "gpus": mostly(st.sampled_from(["all", [0], [0, 1]])),
            "replicas": mostly(st.integers(1, 8)),
            "harmony": mostly(st.booleans()),
            "load_timeout": mostly(st.integers(1, 9999)),
            "drain_hook": mostly(st.lists(WORDS, max_size=2)),
            "accept_known_bad": mostly(st.booleans()),
        },
    )
)
HOST = st.builds(
    lambda endpoint, more: {**endpoint, **more},
    ENDPOINT,
    st.fixed_dictionaries(
        {"model": st.just({"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"})},
        optional={
            "hardware": mostly(st.sampled_from([B200, RTX, SPARK])),
            "endpoint_name": mostly(st.sampled_from(["llm", "small"])),
            "endpoints": mostly(st.fixed_dictionaries({"a": st.fixed_dictionaries({"port": st.just(9000)})})),
            "models": mostly(st.fixed_dictionaries({"folder": mostly(st.just("/data/models"))})),
        },
    ),
)


@settings(max_examples=200, deadline=None)
@given(values=HOST)
def test_any_settings_are_refused_with_a_message_or_can_be_written_out(values: dict[str, Any]) -> None:
    host, problems = validate("h", values, {})
    event("refused" if host is None else "accepted")
    assert bool(problems) == (host is None)
    assert all(problem.text and problem.host == "h" for problem in problems)
    if host is None:
        return
    files = rendered_files(host)
    for name, endpoint in host.all_endpoints.items():
        release = {PurePosixPath(path).name: text for path, text in files.items() if f"/endpoints/{name}/" in path}
        if endpoint.engine:
            assert load_yaml(release[endpoint.engine_file]) == endpoint.engine
        spec = json.loads(release["spec.json"])
        assert spec["argv"] == server_command(endpoint)
        assert set(environment(endpoint).items()) <= set(spec["environment"].items())
        findings = check_endpoint(name, endpoint, host.hardware)
        # Beyond exact knowledge (RW0316: a fork's image) it is the image that decides.
        if "RW0316" not in {finding.code for finding in findings}:
            stand_in_takes(endpoint.engine_kind, server_command(endpoint))


@given(port=st.integers(min_value=1024, max_value=60000))
def test_a_copy_has_endpoints_of_its_own(port: int) -> None:
    model = {"repository": "openai/gpt-oss-120b", "mount": "/config/models/m"}
    host = HostSettings.model_validate({"engine_kind": "vllm", "image": IMAGES["vllm"], "model": model})
    before = host.all_endpoints
    assert host.model_copy(update={"endpoints": {"other": {"port": port}}}).all_endpoints["other"].port == port
    assert host.all_endpoints is before
    assert host.model_copy() == host


SECTION_PATHS = (
    *("", "endpoints", "endpoints.a", "endpoints.a.gate", "endpoints.a.model", "endpoints.a.environment"),
    *("gate", "container", "registry", "models", "docker", "docker.daemon", "engine", "environment", "model"),
    *("rollout.hooks", "proxy", "allow_from", "hardware", "gpus", "mirrors"),
)
KEYS = (
    st.sampled_from(["", " ", "[x]", "[key]", "[word]", "[", "literal", "a.b", "\x1b[31m", "x" * 3000, "{{ x }}"])
    | st.text(max_size=8)
    | st.none()
    | st.integers()
    | st.booleans()
    | st.dates()
    | st.binary(max_size=3)
)


@settings(max_examples=300, deadline=None)
@given(path=st.sampled_from(SECTION_PATHS), key=KEYS, value=ODD | st.dictionaries(KEYS, ODD, max_size=1))
def test_a_key_of_any_shape_at_any_place_is_taken_or_refused_in_one_line(path: str, key: Any, value: Any) -> None:
    if not path and not isinstance(key, str):
        return  # the reader of the files refuses those
    values: Any = {key: value}
    for name in reversed(path.split(".") if path else []):
        values = {name: values}
    host, problems = validate("h", {"model": {"repository": "openai/gpt-oss-120b", "mount": "/m/x"}, **values}, {})
    assert bool(problems) == (host is None)
    lines = str(InvalidSettingsError(problems, "x")).splitlines()[1:-1] if problems else []
    assert len(lines) <= len(problems)
    assert all(len(row) < 1000 for row in lines)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"endpoints": {"a": {"[x]": 1}}}, "endpoints.a.'[x]': unknown key"),
        ({"gate": {"[x]": 1}}, "gate.'[x]': unknown key: gate takes level, plain_text, commit_deadline"),
        ({"gate": {"literal": 1}}, "gate.literal: unknown key: gate takes level, plain_text, commit_deadline"),
        ({"gate": {"": 1}}, "gate.'': unknown key: gate takes level, plain_text, commit_deadline"),
        ({"environment": {"a b": "x"}}, "environment.a b: must be a name of letters, digits and _, not 'a b'"),
        ({"environment": {"[key]": "x"}}, "environment.'[key]': must be a name of letters, digits and _, not '[key]'"),
        ({"allow_from": ["10.0.0.0/99"]}, "allow_from[0]: must be a network such as 10.0.0.0/8, not '10.0.0.0/99'"),
    ],
)
def test_an_odd_key_is_named_as_it_was_written(values: dict[str, Any], message: str) -> None:
    _, problems = validate("h", values, {})
    assert message in str(InvalidSettingsError(problems, "x"))
