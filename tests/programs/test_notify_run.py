"""A run's message from the control machine: when it is sent, what is in it, and what a receiver can do to the run."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.cli import quarantine
from rackwright.cli.main import main
from rackwright.exit_codes import ExitCode
from rackwright.loading.host import InventoryHost
from rackwright.loading.validate import validate
from rackwright.notify.targets import targets
from rackwright.record.journal import append
from rackwright.record.quarantine import load_quarantine
from rackwright.rollout.launch import Run
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.secret import Secret
from tests.programs.webhook import Receiver, receiver

MODEL = {"model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"}}


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def settings(**notify: Any) -> HostSettings:
    found, problems = validate("h1", {**MODEL, "notify": notify}, {})
    assert found is not None, problems
    return found


def run(folder: Path, *notified: HostSettings, state: str = "rolled back") -> Run:
    """Return a run over two hosts, of which one ended in this state."""
    path = folder / "20260101-000000-rollout.jsonl"
    append(path, "begin", purpose="rollout", inventory="inventory/b200.py", hosts=["h1", "h2"])
    append(path, "phase", name="rollout")
    append(path, "stage", host="h1", concern="image", changes=["x"])
    append(path, "host", host="h1", state=state, text="refused")
    append(path, "host", host="h2", state="unchanged")
    return Run(folder / "inventory/b200.py", folder, ("h1", "h2"), path, notified=tuple(targets(notified)))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (ExitCode.ROLLED_BACK, "rolled-back"),
        (ExitCode.MIXED, "stopped"),
        (ExitCode.MANUAL_ACTION, "manual-action"),
    ],
)
def test_a_bad_end_is_sent_once_to_each_receiver(
    status: ExitCode, kind: str, tmp_path: Path, hook: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    both = settings(url=Secret(hook.url)), settings(url=Secret(hook.url), per_hour=3)
    assert run(tmp_path, *both).end(status, "the release is at fault") == status
    (body,) = hook.bodies
    assert (body["kind"], body["key"], body["hosts"]) == (kind, f"{kind}-rollout-b200", "h1")
    assert body["text"].startswith("the release is at fault")
    assert capsys.readouterr().err == ""


def test_a_good_end_is_no_message(tmp_path: Path, hook: Receiver) -> None:
    run(tmp_path, settings(url=Secret(hook.url)), state="switched").end(ExitCode.DONE, "done")
    assert hook.requests == []


def test_a_run_that_began_nothing_is_no_message(tmp_path: Path, hook: Receiver) -> None:
    path = tmp_path / "20260101-000000-rollout.jsonl"
    append(path, "begin", purpose="rollout", hosts=["h1"])
    to = (settings(url=Secret(hook.url)),)
    Run(tmp_path / "b200.py", tmp_path, ("h1",), path, notified=to).end(ExitCode.ERROR, "no")
    assert hook.requests == []


def test_a_receiver_that_refuses_is_shown_and_changes_nothing(
    tmp_path: Path, hook: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    hook.status, hook.answer = 403, b"invalid_token"
    one = run(tmp_path, settings(url=Secret(hook.url), header=Secret("X-Key: s3cr3t-s3cr3t")))
    assert one.end(ExitCode.MIXED, "stopped") == ExitCode.MIXED
    assert json.loads(one.record.read_text().splitlines()[-1])["kind"] == "end"
    shown = capsys.readouterr()
    assert "RW0834" in shown.err
    assert "403" in shown.err
    assert "s3cr3t" not in shown.err + shown.out + one.record.read_text()
    assert "hooks/abc" not in shown.err + shown.out + one.record.read_text()


def test_a_receiver_that_says_nothing_costs_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        begun = time.monotonic()
        assert run(tmp_path, settings(url=Secret(url))).end(ExitCode.MIXED, "stopped") == ExitCode.MIXED
        assert time.monotonic() - begun < 15
    assert "RW0834" in capsys.readouterr().err


def test_a_redirect_is_no_delivery(tmp_path: Path, hook: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
    hook.status = 302
    run(tmp_path, settings(url=Secret(hook.url))).end(ExitCode.MIXED, "stopped")
    assert len(hook.requests) == 1
    assert "RW0834" in capsys.readouterr().err


def test_a_command_gets_the_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["/bin/sh", "-c", f'cat >{tmp_path}/got; echo "$RACKWRIGHT_KIND" >>{tmp_path}/got; exit $0', "0"]
    run(tmp_path, settings(command=command)).end(ExitCode.MIXED, "stopped")
    title, text, kind = (tmp_path / "got").read_text().splitlines()
    assert (title.split()[0], text, kind) == ("stopped-rollout-b200", "stopped", "stopped")
    run(tmp_path, settings(command=[*command[:-1], "7"])).end(ExitCode.MIXED, "stopped")
    assert "RW0834" in capsys.readouterr().err


def test_a_quarantined_host_is_a_message_of_a_run_that_ended_well(tmp_path: Path, hook: Receiver) -> None:
    one = run(tmp_path, settings(url=Secret(hook.url)))
    one._notify(ExitCode.DONE, "done: 1 switched", ["h1 is quarantined (GPU lost): rollouts skip it"])
    assert hook.bodies[0]["kind"] == "quarantine"


def test_a_quarantine_by_hand_and_its_end_are_messages(
    tmp_path: Path, hook: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [InventoryHost(name, (), {}, settings(url=Secret(hook.url)), {}) for name in ("h1", "h2")]
    monkeypatch.setattr(quarantine, "hosts_named", lambda *_: entries)
    monkeypatch.setattr(quarantine, "refused_of", lambda _: {})
    monkeypatch.setattr(quarantine, "chosen_hosts", lambda *_: entries)
    monkeypatch.setattr(quarantine, "quarantined_hosts", lambda root, _: load_quarantine(root))
    words = ("quarantine", str(tmp_path / "b200.py"), "--limit", "h1")
    assert main([*words, "--add", "--reason", "fan 3"]) == 0
    assert main(words) == 0
    assert main([*words, "--release"]) == 0
    assert [(body["kind"], body["key"], body["state"], body["hosts"]) for body in hook.bodies] == [
        ("quarantine", "quarantine-b200", "firing", "h1"),
        ("quarantine", "quarantine-b200", "resolved", "h1"),
    ]
    assert "fan 3" in hook.bodies[0]["text"]
    hook.status = 503
    assert main([*words, "--add"]) == 0
    assert "RW0834" in capsys.readouterr().err
    assert "h1" in load_quarantine(tmp_path)
