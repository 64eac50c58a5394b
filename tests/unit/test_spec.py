"""The spec of an endpoint: the guide's docker run, the hash that decides restarts, and the unit's text."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.concerns.endpoint.container import EndpointSpec, Resolved, endpoint_spec, render_engine_yaml
from rackwright.concerns.endpoint.release.files import build_release
from rackwright.plan.render import systemd_word
from rackwright.settings.host_settings import NOWHERE, EndpointSettings, HostSettings
from rackwright_engines.quick_yaml import load_yaml

ENGINE: dict[str, Any] = load_yaml((Path(__file__).parents[1] / "fixtures/engine-yaml/s000_eagle.yaml").read_text())
RESOLVED = Resolved("sha256:" + "a" * 64, "c" * 40, "/srv/models/base", "d" * 40, "/srv/models/draft")
RELEASE = "0123456789ab"


def endpoint(**changed: Any) -> EndpointSettings:
    values: dict[str, Any] = {
        "model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"},
        "draft": {"repository": "nvidia/gpt-oss-120b-Eagle3", "mount": "/config/models/eagle"},
        "engine": ENGINE | {"max_batch_size": 10, "max_num_tokens": 131072, "max_seq_len": 131072},
        "engine_file": "eagle.yaml",
        "environment": {"TRTLLM_ENABLE_PDL": "1"},
        "sizes_on_command_line": True,
    }
    return HostSettings.model_validate(values | changed).all_endpoints["llm"]


def spec(**changed: Any) -> EndpointSpec:
    return endpoint_spec("llm", endpoint(**changed), "/srv/encodings", RESOLVED)


def words(of: EndpointSpec) -> list[str]:
    return [argument for group in of.docker_run(RELEASE) for argument in group]


def test_the_guides_docker_run_is_all_there() -> None:
    run = " ".join(words(spec()))
    for part in (
        "docker run --rm",
        "--ipc=host --ulimit memlock=-1 --ulimit stack=67108864",
        "--runtime nvidia --env NVIDIA_VISIBLE_DEVICES=${GPUS}",
        f"--label rackwright.release={RELEASE}",
        "--label rackwright.binding=${BINDING}",
        "--publish 0.0.0.0:8000:8000",
        "--volume /srv/models/base:/config/models/gpt-oss-120b:ro",
        "--volume /srv/models/draft:/config/models/eagle:ro",
        "--env TRTLLM_ENABLE_PDL=1",
        "trtllm-serve /config/models/gpt-oss-120b --host 0.0.0.0 --port 8000 "
        "--max_batch_size 10 --max_num_tokens 131072 --max_seq_len 131072 "
        "--extra_llm_api_options /config/release/eagle.yaml",
    ):
        assert part in run
    assert "--gpus" not in run, "that path loses its GPUs at a daemon-reload"
    assert "HF_TOKEN" not in run


def test_host_network_listens_on_loopback_unless_asked() -> None:
    assert spec(network="host").address == "127.0.0.1"
    assert spec(network="host", allow_from=["10.0.0.0/8"]).address == "0.0.0.0"
    assert "--publish" not in words(spec(network="host"))


@pytest.mark.parametrize(
    "changed",
    [
        {"engine": {**ENGINE, "stream_interval": 2}},
        {"port": 8001},
        {"environment": {}},
        {"arguments": ["--log_level", "info"]},
        {"image": "nvcr.io/nvidia/tensorrt-llm/other:1.1.0rc0"},
    ],
)
def test_what_the_container_is_changes_what_is_served(changed: dict[str, Any]) -> None:
    assert spec(**changed).serving_hash != spec().serving_hash


@pytest.mark.parametrize(
    "changed", [{"allow_from": ["10.0.0.0/8"]}, {"allow_from": "any"}, {"load_timeout": 5}, {"drain_timeout": 1}]
)
def test_firewall_and_times_do_not_change_what_is_served(changed: dict[str, Any]) -> None:
    assert spec(**changed).serving_hash == spec().serving_hash


def test_a_moved_tag_or_branch_changes_what_is_served() -> None:
    for resolved in (
        dataclasses.replace(RESOLVED, model_commit="e" * 40),
        dataclasses.replace(RESOLVED, image_digest="sha256:" + "b" * 64),
    ):
        assert endpoint_spec("llm", endpoint(), "/srv/encodings", resolved).serving_hash != spec().serving_hash


def test_the_unit_can_be_read_and_gives_up_after_slow_deaths() -> None:
    release = build_release(
        spec(), endpoint(load_timeout=480, stop_timeout=60, restart_delay=10, start_limit=3), NOWHERE
    )
    unit = release.unit
    assert "StartLimitIntervalSec=1695" in unit, "3 x (480 + 60 + 15 + 10)"
    assert "--ulimit memlock=-1" in unit
    joined = unit.split("ExecStart=")[1].split("\nExecStartPost")[0].replace("\\\n", " ")
    assert shlex.split(joined.replace(release.hash, RELEASE)) == words(spec())
    assert "EnvironmentFile=/var/lib/rackwright/endpoints/llm/binding" in unit


def test_the_engine_yaml_contains_the_guides_one() -> None:
    rendered = load_yaml(build_release(spec(), endpoint(), NOWHERE).files["eagle.yaml"])
    assert {key: rendered[key] for key in ENGINE} == ENGINE


_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
_TREES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


@given(st.dictionaries(st.text(min_size=1, max_size=10), _TREES, max_size=5))
def test_any_engine_options_parse_back_equal(engine: dict[str, Any]) -> None:
    assert load_yaml(render_engine_yaml(engine)) == engine


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30))
def test_a_systemd_word_is_one_word_again(argument: str) -> None:
    text = systemd_word(argument).replace("%%", "%").replace("$$", "$")
    unquoted = text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if text.startswith('"') else text
    assert unquoted == argument
