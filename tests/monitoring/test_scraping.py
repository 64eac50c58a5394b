"""A real Prometheus takes the targets, scrapes them at their own paths, and relabels by what they bring."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli.main import main
from tests.lab.products import in_proof
from tests.monitoring.conftest import ROOT

pytestmark = in_proof("it downloads 23 MB from Debian, once; `make monitoring` runs it alone")

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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"answered 1\n")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield listener.server_address[1], paths
    listener.shutdown()


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


def test_each_endpoint_is_scraped_at_its_own_path(
    programs: Path, config: Path, server: tuple[int, list[str]], tmp_path: Path
) -> None:
    words = [
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{PORT}",
    ]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen([programs / "prometheus", *words], stderr=log) as running,
    ):
        try:
            found = _until_scraped(4)
        finally:
            running.terminate()
    assert {row["labels"]["job"] for row in found} == {"rackwright", "node"}
    engines = {row["labels"].get("engine"): row["scrapeUrl"].rpartition("/")[0][-11:] for row in found}
    assert engines["tensorrt-llm"].endswith("/prometheus")
    assert {row["health"] for row in found} == {"up"}
    assert set(server[1]) == {"/metrics", "/prometheus/metrics"}
    labels = {name for row in found for name in row["labels"]}
    assert not [name for name in labels if name.startswith("__")]


def _until_scraped(count: int) -> list[dict[str, Any]]:
    end = time.monotonic() + 40
    while time.monotonic() < end:
        found = _active()
        if len(found) == count and all(row["health"] == "up" for row in found):
            return found
        time.sleep(0.3)
    pytest.fail(f"not all are up: {_active()}")


def _active() -> list[dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/api/v1/targets", timeout=5) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["activeTargets"]
            return found
    except OSError:
        return []
