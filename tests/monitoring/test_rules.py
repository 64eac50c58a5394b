"""The alert rules: promtool takes them, every alert has a test and a runbook, every name is real."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright_engines.metrics import series
from tests.lab.products import in_proof
from tests.monitoring.conftest import ROOT
from tests.monitoring.names import host_series, newest, used_names

RULES = ROOT / "docs/monitoring/rackwright-alerts.yml"
RUNBOOKS = ROOT / "docs/monitoring/runbooks.md"
UNIT_TESTS = ROOT / "tests/monitoring/rules_test.yml"
ALERTS: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
NAMES = [alert["alert"] for alert in ALERTS]


@in_proof("it downloads 34 MB from Debian, once; `make monitoring` runs it alone")
@pytest.mark.parametrize("words", [("check", "rules", RULES), ("test", "rules", UNIT_TESTS)], ids=str)
def test_promtool_takes(programs: Path, words: tuple[object, ...]) -> None:
    run = subprocess.run([programs / "promtool", *map(str, words)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_each_alert_fires_on_one_host_and_is_quiet_on_another() -> None:
    fired = dict[str, list[str]]()
    for case in yaml.safe_load(UNIT_TESTS.read_text())["tests"]:
        hosts = {host for row in case["input_series"] for host in re.findall(r'host="(\w+)"', row["series"])}
        for check in case["alert_rule_test"]:
            named = {str(alert["exp_labels"]["host"]) for alert in check["exp_alerts"]}
            fired.setdefault(check["alertname"], []).extend(named)
            assert not named or hosts - named, case["name"]
    assert {name for name, hosts in fired.items() if hosts} == set(NAMES)


@pytest.mark.parametrize("alert", ALERTS, ids=NAMES)
def test_each_alert_has_its_runbook(alert: dict[str, Any]) -> None:
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    assert (ROOT / page, anchor) == (RUNBOOKS, alert["alert"].lower())
    section = RUNBOOKS.read_text().partition(f"\n## {alert['alert']}\n")[2].partition("\n## ")[0]
    assert "rackwright " in section, "it names the next command"


@pytest.mark.parametrize("alert", ALERTS, ids=NAMES)
def test_each_name_in_a_rule_is_real(alert: dict[str, Any]) -> None:
    real = host_series() | {"up"} | {name for engine in newest() for name in series(engine, newest()[engine])}
    assert used_names(alert["expr"]) - real == set()


def test_the_runbooks_are_those_of_the_alerts() -> None:
    assert re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), re.MULTILINE) == NAMES
