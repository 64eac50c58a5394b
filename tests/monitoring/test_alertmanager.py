"""A real Alertmanager takes what hosts and runs send it, lists it, and passes the end of it on."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright.notify.message import Message
from rackwright.notify.send import send
from rackwright.settings.secret import Secret
from tests.lab.products import in_proof
from tests.programs.test_notify_host import Sender
from tests.programs.test_notify_run import settings
from tests.programs.webhook import Receiver, receiver

pytestmark = in_proof("it downloads 34 MB from Debian, once; `make monitoring` runs it alone")
PORT = 18494
URL = f"http://127.0.0.1:{PORT}/api/v2/alerts"
CONFIG = """
route: {{receiver: hook, group_by: [key], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}
receivers: [{{name: hook, webhook_configs: [{{url: "{url}", send_resolved: true}}]}}]
"""


@dataclass
class Alertmanager:
    """One that runs, and the receiver that it notifies."""

    hook: Receiver

    @property
    def alerts(self) -> dict[str, Any]:
        """Its alerts by key, as its API lists them."""
        with urllib.request.urlopen(URL, timeout=5) as answer:
            return {alert["labels"]["key"]: alert for alert in json.load(answer)}

    def passed_on(self, status: str) -> list[dict[str, Any]]:
        """Return the alerts of this status that it has sent on."""
        return [alert for body in self.hook.bodies for alert in body["alerts"] if alert["status"] == status]


def eventually(found: Callable[[], Any], seconds: float = 20) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return value


def is_up() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/-/ready", timeout=2):
            return True
    except urllib.error.URLError:
        return False


@pytest.fixture
def alertmanager(programs: Path, tmp_path: Path) -> Iterator[Alertmanager]:
    """Run one on loopback."""
    with receiver() as hook:
        (tmp_path / "am.yml").write_text(CONFIG.format(url=hook.url))
        words = [f"--config.file={tmp_path}/am.yml", f"--storage.path={tmp_path}/data", "--cluster.listen-address="]
        # Debian's looks for its templates where the package would be installed.
        inside = f"mount -t overlay overlay -o lowerdir={programs.parent}/share:/usr/share /usr/share"
        process = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "sh",
                "-c",
                f'{inside} && exec "$0" "$@"',
                f"{programs}/prometheus-alertmanager",
                *words,
                f"--web.listen-address=127.0.0.1:{PORT}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            eventually(is_up)
            yield Alertmanager(hook)
        finally:
            process.terminate()
            process.wait(20)


def test_a_hosts_event_fires_until_it_is_resolved(alertmanager: Alertmanager, tmp_path: Path) -> None:
    host = Sender(tmp_path, {"url": Secret(URL), "format": "alertmanager"})
    host.tell("tell hang hang-llm 'no \"step\" for 130 s'")
    assert host.send() == (0, "")
    alert = alertmanager.alerts["hang-llm"]
    assert (alert["status"]["state"], alert["labels"]["severity"]) == ("active", "critical")
    assert alert["annotations"]["description"] == 'no "step" for 130 s'
    eventually(lambda: alertmanager.passed_on("firing"))
    host.tell("tell_resolved hang hang-llm serves")
    assert host.send() == (0, "")
    assert alertmanager.alerts == {}
    (resolved,) = eventually(lambda: alertmanager.passed_on("resolved"))
    assert resolved["labels"] == alert["labels"]


def test_a_sum_is_an_alert_for_each_event(alertmanager: Alertmanager, tmp_path: Path) -> None:
    host = Sender(tmp_path, {"url": Secret(URL), "format": "alertmanager", "per_hour": 1})
    host.tell("tell restart restart-llm x", "tell gpu gpu-0 y", "tell sick sick-llm z")
    assert host.send() == (0, "")
    assert set(alertmanager.alerts) == {"restart-llm", "gpu-0", "sick-llm"}


def test_a_runs_message_fires(alertmanager: Alertmanager) -> None:
    to = [settings(url=Secret(URL), format="alertmanager")]
    (answer,) = send(Message("stopped", "stopped-rollout-b200", "h1", "the release is at fault"), to)
    assert answer.ok, answer.text
    assert alertmanager.alerts["stopped-rollout-b200"]["annotations"]["hosts"] == "h1"


def test_what_it_does_not_take_is_no_delivery(alertmanager: Alertmanager, tmp_path: Path) -> None:
    host = Sender(tmp_path, {"url": Secret(URL), "template": '{"not": "<title>"}'})
    host.tell("tell hang hang-llm x")
    status, output = host.send()
    assert (status, host.waiting) == (1, 1)
    assert "HTTP 400" in output
