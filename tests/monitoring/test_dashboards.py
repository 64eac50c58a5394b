"""Grafana's dashboards: every name is one of the engine's own, and a real Prometheus answers every query."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from rackwright_engines.metrics import series
from scripts.dashboards import DASHBOARDS, FOLDER, Dashboard, text_of
from tests.lab.products import in_proof
from tests.monitoring.conftest import ROOT, Scraped
from tests.monitoring.names import host_series, newest, used_names

SCRAPE = ROOT / "tests/fixtures/scrapes/vllm-0.32.0.prom"
IDS = [one.name for one in DASHBOARDS]


def queries(dashboard: Dashboard) -> list[str]:
    return [query.expression for panel in dashboard.panels for query in panel.queries]


def of(name: str) -> Dashboard:
    (found,) = (one for one in DASHBOARDS if one.name == name)
    return found


def filled(query: str) -> str:
    """Return a query as Grafana asks it, with all hosts chosen."""
    return query.replace("$host", ".*").replace("$endpoint", ".*").replace("$__rate_interval", "1m")


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=IDS)
def test_the_file_is_what_the_script_writes(dashboard: Dashboard) -> None:
    assert (FOLDER / f"{dashboard.name}.json").read_text() == text_of(dashboard)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=IDS)
def test_each_name_is_one_of_the_engines_newest_version(dashboard: Dashboard) -> None:
    engines = [dashboard.name] if dashboard.name in newest() else list(newest())
    real = host_series() | {name for engine in engines for name in series(engine, newest()[engine])}
    chosen = {name for _, query in dashboard.choices for name in used_names(query)}
    used = {name for query in queries(dashboard) for name in used_names(query)}
    assert len(used) > 5
    assert (used | chosen) - real == set()


def test_each_name_of_vllm_is_in_a_scrape_of_a_real_one() -> None:
    recorded = set(re.findall(r"^(vllm:\w+)[{ ]", SCRAPE.read_text(), re.MULTILINE))
    used = {name for query in queries(of("vllm")) for name in used_names(query) if name.startswith("vllm:")}
    assert used - recorded == set()
    # The list is right as well: the recorded names that it lacks are other files' and the clients' own.
    unlisted = recorded - series("vllm", "0.32.0")
    assert {name for name in unlisted if not name.endswith("_created") and "estimated" not in name} == set()


def test_no_panel_lies_on_another() -> None:
    for dashboard in DASHBOARDS:
        places = [tuple(panel["gridPos"].values())[:2] for panel in json.loads(text_of(dashboard))["panels"]]
        assert len(places) == len(set(places))


@in_proof("it downloads 23 MB from Debian, once; `make monitoring` runs it alone")
def test_promtool_takes_each_query(programs: Path, tmp_path: Path) -> None:
    rows = [
        {"record": f"q{n}", "expr": filled(query)} for n, query in enumerate(q for d in DASHBOARDS for q in queries(d))
    ]
    rules = tmp_path / "rules.yml"
    rules.write_text(json.dumps({"groups": [{"name": "queries", "rules": rows}]}))
    run = subprocess.run([programs / "promtool", "check", "rules", rules], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@in_proof("it downloads 23 MB from Debian, once; `make monitoring` runs it alone")
def test_a_real_prometheus_answers_each_query_of_vllm(scraped_vllm: Scraped) -> None:
    of_engine = [query for query in queries(of("vllm")) if "vllm:" in query]
    assert [query for query in of_engine if not scraped_vllm.answers(filled(query))] == []
    assert not scraped_vllm.answers("vllm:generation_token_total")
