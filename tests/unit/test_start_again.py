"""What is asked before a drain, a restart, and a group's switch: whether hosts could start again their endpoints."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackwright.adapter.run.poll import Reply
from rackwright.concerns.endpoint.concern import ENDPOINT
from rackwright.concerns.endpoint.switch.job import start_again_script
from rackwright.concerns.endpoint.switch.rest_and_return import proofs
from rackwright.operations import group_turn
from rackwright.operations.group_turn import MemberTurn, refuse_unable
from rackwright.plan.change import Change
from rackwright.remote.errors import StepFailedError
from rackwright.rollout.maintenance import start_again
from rackwright.rollout.maintenance.start_again import doubtful_starts
from tests.unit.machines import settings
from tests.unit.test_maintenance import serving

PROGRAMS = {
    "systemctl": "case $1 in is-active) case $3 in *dead*) exit 3 ;; esac ;; show) echo 7 ;; esac",
    "docker": 'case $1 in info) cat "$INFO" ;; *) exit 0 ;; esac',
    "nvidia-smi": "echo GPU 0",
    "findmnt": "echo /",
}


def printed(tmp_path: Path, by: str) -> list[str]:
    """Return what the real script prints of the endpoints below a folder."""
    (tmp_path / "bin").mkdir()
    for name, text in PROGRAMS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    runtimes = {"nvidia": {"path": "/bin/sh"}}
    info = {"ServerVersion": "28", "DockerRootDir": "/nowhere", "Runtimes": runtimes}
    (tmp_path / "info").write_text(json.dumps(info, separators=(",", ":")))
    script = start_again_script(by).replace("/var/lib/rackwright/endpoints", str(tmp_path / "endpoints"))
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "INFO": str(tmp_path / "info")}
    run = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert run.stderr == ""
    return run.stdout.splitlines()


def lay(tmp_path: Path, name: str, needs: str) -> None:
    """Make an endpoint with a proven release."""
    release = tmp_path / "endpoints" / name / "releases/abc"
    release.mkdir(parents=True)
    (release / "needs").write_text(needs)
    (release / "spec.json").write_text(json.dumps({"network": "host"}, indent=1))
    (tmp_path / "endpoints" / name / "proven").symlink_to("releases/abc")


def test_the_text_for_each_endpoint_that_runs_and_could_not_start_again(tmp_path: Path) -> None:
    for name in ("dead", "llm", "well"):
        lay(tmp_path, name, "path /\n" if name == "well" else "path /no/such\n")
    (tmp_path / "endpoints/never").mkdir()
    [text] = printed(tmp_path, "drain")
    assert text.startswith("llm release abc could not start: /no/such is no longer on this host")


def test_a_host_that_cannot_be_read_is_the_runs_own_to_report_text(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Reply(trouble="cannot be reached")
    replies = {"one": Reply(("llm its image is gone; next: x",)), "two": lost, "three": Reply()}
    monkeypatch.setattr(start_again, "poll", lambda *_: replies)
    assert doubtful_starts([], "boot") == ["one could not start llm again: its image is gone; next: x"]


class Asked:
    """Members' hosts: what each is asked, and what it says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
        self.scripts: list[str] = []
        monkeypatch.setattr(group_turn, "remote", self.remote)
        self.says = says

    def remote(self, _: Any, command: Any, twice: bool) -> tuple[bool, Any]:
        assert twice
        self.scripts.append(str(command))
        return not self.says, SimpleNamespace(stderr_lines=[], stdout_lines=[self.says])


def member() -> MemberTurn:
    return MemberTurn(cast(Any, SimpleNamespace(name="h2", state=None)), (), {"llm": "ba5eba5eba5e"})


def head_changes() -> list[Change]:
    [proof] = proofs(settings(), serving())
    return [Change("switch", "it differs", (proof,), endpoint="llm")]


def test_a_member_is_asked_for_what_is_to_start_and_what_is_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    member_asked = Asked(monkeypatch, "")
    refuse_unable([member()], head_changes())
    [script] = member_asked.scripts
    wanted = serving()[ENDPOINT].endpoints["llm"].proven
    assert f"/llm/releases/{wanted} /var/lib/rackwright/endpoints/llm/releases/ba5eba5eba5e" in script


def test_a_member_that_could_not_start_stops_the_switch_before_it_and_is_at_fault_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Asked(monkeypatch, "release x could not start: its image is gone")
    with pytest.raises(StepFailedError) as caught:
        refuse_unable([member()], head_changes())
    assert caught.value.code == "RW1112"
    assert all(reason.cause.is_hosts for reason in caught.value.reasons)
    assert "h2: release x" in caught.value.text


def test_nothing_is_asked_where_nothing_is_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    member_asked = Asked(monkeypatch, "anything")
    refuse_unable([member()], [Change("write a file", "it differs", ())])
    assert member_asked.scripts == []
