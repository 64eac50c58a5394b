"""The file of metrics that a host writes: promtool finds nothing to say, and a real node_exporter shows it."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.lab.products import in_proof
from tests.programs.test_metrics_file import Host, with_endpoint

pytestmark = in_proof("it downloads 34 MB from Debian, once; tests/programs/test_metrics_file.py reads the file itself")
PORT = 18492


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a host that has written every metric."""
    host = Host(tmp_path)
    with_endpoint(host)
    host.write("/var/lib/rackwright/watch/acts-llm", "100 restart proven x")
    host.write("/var/lib/rackwright/watch/firewall", "100 again")
    host.write("/var/lib/rackwright/marks/sick-llm", "word=down")
    host.write("/var/lib/rackwright/drained", "x")
    host.write("/run/rackwright/gpus", "faults=1")
    host.write("/run/rackwright/watch-gpus/faults", "errors-GPU-1 x")
    host.write("/run/rackwright/lease", f"taken={host.uptime - 30}", f"expires={host.uptime + 600}")
    host.samples()
    return host


def test_promtool_finds_nothing_to_say(host: Host, programs: Path) -> None:
    with host.file().open() as file:
        run = subprocess.run(
            [programs / "promtool", "check", "metrics"], stdin=file, capture_output=True, text=True, check=False
        )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_node_exporter_shows_it(host: Host, programs: Path) -> None:
    words = ["--collector.disable-defaults", "--collector.textfile", f"--web.listen-address=127.0.0.1:{PORT}"]
    words.append(f"--collector.textfile.directory={host.file().parent}")
    with subprocess.Popen([programs / "prometheus-node-exporter", *words], stderr=subprocess.DEVNULL) as running:
        try:
            text = scraped()
        finally:
            running.terminate()
    assert "\nnode_textfile_scrape_error 0\n" in text
    samples = [row for row in host.file().read_text().splitlines() if not row.startswith("#")]
    assert len([row for row in text.splitlines() if row.startswith("rackwright_")]) == len(samples)


def scraped() -> str:
    end = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.2)
