"""Debian's Prometheus, unpacked by scripts/prometheus, and a folder for it."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def programs() -> Path:
    """Return the folder with prometheus, promtool, prometheus-node-exporter and -alertmanager; downloads them once."""
    run = subprocess.run([ROOT / "scripts/prometheus"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return Path(run.stdout.strip()) / "usr/bin"


@contextmanager
def serving(answer: Callable[[str], str]) -> Iterator[int]:
    """Serve what `answer` says of a path on a free port of this machine, and give the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer(self.path).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield listener.server_address[1]
    listener.shutdown()


class Scraped:
    """A Prometheus that has scraped."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer; None while nothing answers."""
        address = f"{self.url}/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.SERVICE_UNAVAILABLE:  # it has begun to listen, and is not ready
                return None
            pytest.fail(f"{parameters}: {error.read().decode()}")
        except OSError:
            return None

    def answers(self, query: str) -> bool:
        """Return True if a query has a result."""
        return bool((self.get("query", query=query) or {"result": []})["result"])

    def wait_for(self, query: str, seconds: float = 40) -> None:
        """Wait until a query has a result."""
        end = time.monotonic() + seconds
        while not self.answers(query):
            assert time.monotonic() < end, f"no answer to {query}"
            time.sleep(0.3)


@contextmanager
def prometheus(programs: Path, config: Path, port: int) -> Iterator[Scraped]:
    """Run a Prometheus on this machine, its data beside its configuration."""
    words = [f"--config.file={config}", f"--storage.tsdb.path={config.parent}/data"]
    words.append(f"--web.listen-address=127.0.0.1:{port}")
    with (
        (config.parent / "log").open("w") as log,
        subprocess.Popen([programs / "prometheus", *words], stderr=log) as one,
    ):
        try:
            yield Scraped(port)
        finally:
            one.terminate()


@pytest.fixture
def scraped_vllm(programs: Path, tmp_path: Path) -> Iterator[Scraped]:
    """Scrape what a real vLLM has shown, as the endpoint of a host, several times."""
    recorded = (ROOT / "tests/fixtures/scrapes/vllm-0.32.0.prom").read_text()
    with serving(lambda _: recorded) as port:
        group = {"targets": [f"127.0.0.1:{port}"], "labels": {"host": "gpu01", "endpoint": "llm", "engine": "vllm"}}
        job = {"job_name": "rackwright", "scrape_interval": "1s", "static_configs": [group]}
        config = tmp_path / "prometheus.yml"
        config.write_text(json.dumps({"scrape_configs": [job]}))
        with prometheus(programs, config, 18493) as scraped:
            scraped.wait_for("rate(vllm:iteration_tokens_total_count[1m])")
            yield scraped
