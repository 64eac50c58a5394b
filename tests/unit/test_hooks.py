"""The site's commands around a run: the run as JSON on standard input, shown when they fail, and who may stop a run."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rackwright.record.journal import append, read_record
from rackwright.rollout.launch import hooks_for
from rackwright.rollout.run_hooks import merged, run_hooks
from rackwright.settings.sections import Hook, Hooks
from tests.refused import refused


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Begin the record of a run over two hosts."""
    path = tmp_path / "20260101-000000-rollout.jsonl"
    append(path, "begin", what="rollout inventory/b200.py", purpose="rollout", who="me@here", hosts=["h1", "h2"])
    append(path, "host", host="h1", state="switched")
    return path


def script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"./{name}"


def hooked(event: str, record: Path, *hooks: dict[str, Any], **more: Any) -> tuple[str, list[str]]:
    messages: list[str] = []
    configured = Hooks.model_validate({event: hooks})
    return run_hooks(configured, event, record, record.parent, messages.append, **more), messages


def test_a_hook_reads_the_run(record: Path) -> None:
    program = script(record.parent, "tell", 'cat > "$1"; pwd; echo "secret words" >&2')
    why, messages = hooked("switch", record, {"command": [program, "a b; rm -rf $HOME"]}, host="h1")
    assert why == ""
    assert messages == [f"switch hook ./tell: {one}" for one in (record.parent, "secret words")]
    received = json.loads((record.parent / "a b; rm -rf $HOME").read_text())
    assert received["event"] == "switch"
    assert received["host"] == "h1"
    assert received["states"] == {"h1": "switched", "h2": None}
    assert received["run"] == {
        "id": "20260101-000000-rollout",
        "time": received["run"]["time"],
        "who": "me@here",
        "what": "rollout inventory/b200.py",
        "purpose": "rollout",
        "inventory": None,
        "record": str(record),
    }


@pytest.mark.parametrize(
    ("command", "timeout", "wrong"),
    [
        ("./fails", 30, "ended with 7: no"),
        ("./nosuch", 30, "cannot be run: No such file or directory"),
        ("no-such-program", 30, "cannot be run: No such file or directory"),
        ("./hangs", 1, "was ended after 1 s"),
    ],
)
def test_a_failure_is_shown_and_stops_only_with_a_veto(record: Path, command: str, timeout: int, wrong: str) -> None:
    script(record.parent, "fails", "echo well; echo no; exit 7")
    script(record.parent, "hangs", "sleep 60 & sleep 60")
    hook = {"command": command, "timeout": timeout}
    why, messages = hooked("plan", record, hook)
    assert why == ""
    assert messages[-1] == f"plan hook {command} {wrong.partition(': no')[0]}"
    assert read_record(record)[-1]["wrong"] == messages[-1]
    assert hooked("plan", record, {**hook, "veto": True})[0] == f"plan hook {command} {wrong}"


def test_hosts_that_share_a_hook_run_it_once() -> None:
    chat, pager = Hook(command=("chat",)), Hook(command=("pager", "-q"))
    both = merged([Hooks(finish=(chat,)), Hooks(finish=(chat, pager), failure=(pager,)), Hooks()])
    assert both == Hooks(finish=(chat, pager), failure=(pager,))


def test_the_command_line_sets_the_hooks_of_a_run() -> None:
    assert hooks_for([], {"rollout.hooks": {"finish": [{"command": "chat"}]}}) == Hooks(
        finish=(Hook(command=("chat",)),)
    )
    with refused("RW0806", "--data rollout.hooks: "):
        hooks_for([], {"rollout": {"hooks": {"nosuch": []}}})


def test_a_veto_that_comes_too_late_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"finish hook .* veto"):
        Hooks.model_validate({"finish": [{"command": "x", "veto": True}]})
    with pytest.raises(ValidationError, match="at least 1"):
        Hooks.model_validate({"plan": [{"command": []}]})


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "hooks.md"
EXAMPLES = dict(
    re.findall(r"^```sh\n(#!/bin/sh\n# scripts/([\w-]+).*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
)
CURL = """#!/bin/sh
cat > "$HOME/sent"
printf '%s\\n' "$@" > "$HOME/arguments"
"""


@pytest.mark.skipif(shutil.which("jq") is None, reason="the examples need jq")
@pytest.mark.parametrize(
    ("name", "event", "more", "sent"),
    [
        ("tell-chat", "finish", {"text": "done: 2 switched", "status": 0}, "inventory/b200.py: done: 2 switched"),
        ("tell-chat", "switch", {"host": "h1"}, "inventory/b200.py: switch h1"),
        ("page", "failure", {"host": "h2", "check": "speed"}, '"summary": "h2: speed (rollout inventory/b200.py)"'),
        ("page", "failure", {"host": "h2", "check": "speed"}, '"routing_key": "R0UTE"'),
    ],
)
def test_the_examples_of_the_page_send_what_they_should(
    record: Path, monkeypatch: pytest.MonkeyPatch, name: str, event: str, more: dict[str, Any], sent: str
) -> None:
    text = next(text for text, example in EXAMPLES.items() if example == name)
    (record.parent / ".config" / "rackwright").mkdir(parents=True)
    (record.parent / ".config" / "rackwright" / "pager.key").write_text("R0UTE\n")
    monkeypatch.setenv("HOME", str(record.parent))
    monkeypatch.setenv("PATH", f"{record.parent}:{os.environ['PATH']}")
    script(record.parent, "curl", CURL)
    program = script(record.parent, name, text)
    why, messages = hooked(event, record, {"command": program}, **more)
    assert (why, messages) == ("", [])
    assert sent in (record.parent / "sent").read_text()
    assert "R0UTE" not in (record.parent / "arguments").read_text()
