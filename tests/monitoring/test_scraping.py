"""A real Prometheus takes the targets, scrapes them at their own paths, and relabels by what they bring."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.cli.main import main
from tests.lab.products import in_proof
from tests.monitoring.conftest import ROOT, prometheus, serving

pytestmark = in_proof("it downloads 34 MB from Debian, once; `make monitoring` runs it alone")

PORT = 18491
EXAMPLE = ROOT / "docs/monitoring/prometheus.yml"
SETTINGS = {
    "model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"},
    "allow_from": "any",
    "gpus": [0],
}
INVENTORY = (
    "from rackwright.inventory import build\n"
    'globals().update(build(__file__, {"rack": [("gpu01", {"ssh_hostname": "127.0.0.1"})]}))\n'
)


@pytest.fixture
def server() -> Iterator[tuple[int, list[str]]]:
    """Serve one sample at every path, and note the paths."""
    paths = list[str]()

    def answer(path: str) -> str:
        paths.append(path)
        return "answered 1\n"

    with serving(answer) as port:
        yield port, paths


@pytest.fixture
def targets(tmp_path: Path, server: tuple[int, list[str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the targets of a host with one endpoint of each engine, all of them that server's."""
    port = server[0]
    engines: dict[str, dict[str, object]] = {
        "vllm": {"engine_kind": "vllm", "image": "vllm/vllm-openai:v0.33.0"},
        "sglang": {"engine_kind": "sglang", "image": "lmsysorg/sglang:v0.5.23", "engine": {"enable-metrics": True}},
        "trtllm": {"image": "r.example/release:1.4.0rc1", "engine": {"return_perf_metrics": True}},
    }
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/lab.py").write_text(INVENTORY)
    (tmp_path / "group_vars").mkdir()
    monkeypatch.chdir(tmp_path)
    # One server answers for all three; on a host they would not share a port.
    rows = []
    for name, engine in engines.items():
        (tmp_path / "group_vars/all.yml").write_text(
            json.dumps({**SETTINGS, **engine, "endpoint_name": name, "port": port})
        )
        out = tmp_path / f"{name}.json"
        assert main(["targets", "inventory/lab.py", "--node-port", str(port), "--out", str(out)]) == 0
        rows += json.loads(out.read_text())
    out = tmp_path / "rackwright.json"
    out.write_text(json.dumps(rows))
    return out


@pytest.fixture
def config(tmp_path: Path, targets: Path) -> Path:
    """Write the example of the docs with this test's files and a short interval."""
    text = EXAMPLE.read_text().replace("/etc/prometheus/rackwright.json", str(targets))
    text = text.replace("/etc/prometheus/rackwright-alerts.yml", str(ROOT / "docs/monitoring/rackwright-alerts.yml"))
    path = tmp_path / "prometheus.yml"
    path.write_text(text.replace("scrape_interval: 15s", "scrape_interval: 1s"))
    return path


def test_promtool_takes_the_example_and_the_targets(programs: Path, config: Path) -> None:
    run = subprocess.run(
        [programs / "promtool", "check", "config", config], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_each_endpoint_is_scraped_at_its_own_path(programs: Path, config: Path, server: tuple[int, list[str]]) -> None:
    with prometheus(programs, config, PORT) as scraped:
        scraped.wait_for("count(up == 1) == 4")
        found = scraped.get("targets")["activeTargets"]
    assert {row["labels"]["job"] for row in found} == {"rackwright", "node"}
    scraped_at = {row["labels"].get("engine"): row["scrapeUrl"].partition(str(server[0]))[2] for row in found}
    assert scraped_at["tensorrt-llm"] == "/prometheus/metrics"
    assert set(server[1]) == {"/metrics", "/prometheus/metrics"}
    assert not [name for row in found for name in row["labels"] if name.startswith("__")]
