"""`rackwright targets`: what a Prometheus scrapes, and what it must not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.main import main
from tests.refused import codes, refusal

INVENTORY = """from rackwright.inventory import build
east = [("gpu01", {"ssh_hostname": "192.0.2.11"}), "gpu02"]
globals().update(build(__file__, {"east": east}, children={"all_gpus": ["east"]}))
"""
BASE = {"model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}, "allow_from": "any"}
VLLM = {"engine_kind": "vllm", "image": "vllm/vllm-openai:v0.33.0"}
SGLANG = {"engine_kind": "sglang", "image": "lmsysorg/sglang:v0.5.23"}
TRTLLM = {"engine_kind": "tensorrt-llm", "image": "nvcr.io/nvidia/tensorrt-llm/release:1.2.1"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/lab.py").write_text(INVENTORY)
    (tmp_path / "group_vars").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_targets(site: Path, settings: dict[str, Any], *words: str) -> int:
    (site / "group_vars/all.yml").write_text(json.dumps({**BASE, **settings}))
    return main(["targets", "inventory/lab.py", *words])


def groups(site: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, Any], *words: str) -> list[Any]:
    assert write_targets(site, settings, *words) == 0
    found: list[Any] = json.loads(capsys.readouterr().out)
    return found


def endpoints(found: list[Any]) -> list[Any]:
    return [row for row in found if row["labels"]["__meta_rackwright_kind"] == "endpoints"]


def test_an_endpoint_has_its_address_and_its_labels(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = endpoints(groups(site, capsys, {**VLLM, "port": 8123}))
    assert first == {
        "targets": ["192.0.2.11:8123"],
        "labels": {
            "host": "gpu01",
            "endpoint": "llm",
            "engine": "vllm",
            "model": "gpt-oss-120b",
            "group": "east",
            "__metrics_path__": "/metrics",
            "__meta_rackwright_kind": "endpoints",
            "__meta_rackwright_groups": ",all_gpus,east,",
        },
    }
    assert second["targets"] == ["gpu02:8123"]


def test_each_host_has_its_node_exporter(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = groups(site, capsys, VLLM, "--node-port", "9200")
    nodes = [row for row in found if row["labels"]["__meta_rackwright_kind"] == "nodes"]
    assert [(row["targets"], row["labels"]["host"]) for row in nodes] == [
        (["192.0.2.11:9200"], "gpu01"),
        (["gpu02:9200"], "gpu02"),
    ]


def test_the_json_that_reading_drains_is_never_scraped(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = endpoints(groups(site, capsys, {**TRTLLM, "engine": {"return_perf_metrics": True}}))
    assert {row["labels"]["__metrics_path__"] for row in shown} == {"/prometheus/metrics"}
    assert endpoints(groups(site, capsys, {**TRTLLM, "engine": {"enable_iter_perf_stats": True}})) == []


@pytest.mark.parametrize(
    ("settings", "scraped"),
    [
        (SGLANG, False),
        ({**SGLANG, "engine": {"enable-metrics": True}}, True),
        ({**SGLANG, "engine": {"enable-metrics": False}}, False),
        ({**SGLANG, "arguments": ["--enable-metrics"]}, True),
        ({**VLLM, "engine": {"disable-log-stats": True}}, False),
        ({**VLLM, "engine": {"disable-log-stats": True}, "arguments": ["--no-disable-log-stats"]}, True),
        ({**TRTLLM, "image": "r.example/release:1.1.0rc0", "engine": {"return_perf_metrics": True}}, False),
        ({**VLLM, "bind": "127.0.0.1", "allow_from": None}, False),
    ],
)
def test_an_endpoint_without_metrics_is_left_out_and_named(
    settings: dict[str, Any], scraped: bool, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert write_targets(site, settings) == 0
    shown = capsys.readouterr()
    assert bool(endpoints(json.loads(shown.out))) is scraped
    assert codes(shown.err) == ([] if scraped else ["RW1045"] * 2)


def test_a_key_is_named_and_never_shown(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = "sk-0123456789abcdef"
    assert write_targets(site, {**VLLM, "api_key": key}) == 0
    shown = capsys.readouterr()
    assert {row["labels"]["__meta_rackwright_api_key"] for row in endpoints(json.loads(shown.out))} == {"needed"}
    assert key not in shown.out + shown.err


def test_several_endpoints_and_an_address_of_their_own(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = {"a": {"bind": "2001:db8::7", "gpus": [0]}, "b": {"port": 8001, "gpus": [1]}}
    found = endpoints(groups(site, capsys, {**VLLM, "endpoints": of}, "--limit", "gpu01"))
    assert [row["targets"] for row in found] == [["[2001:db8::7]:8000"], ["192.0.2.11:8001"]]


def test_the_file_is_written_whole(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = site / "rackwright.json"
    assert write_targets(site, VLLM, "--out", str(out)) == 0
    capsys.readouterr()
    assert json.loads(out.read_text()) == groups(site, capsys, VLLM)
    assert [path.name for path in site.glob(".*.new")] == []


def test_a_folder_that_is_missing_is_refused(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = site / "none" / "x.json"
    assert write_targets(site, VLLM, "--out", str(out)) == 1
    refusal(capsys.readouterr().err, "RW1408", out)
