"""`rackwright chat`: which hosts are asked, and how it ends."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from rackwright.cli import chat
from rackwright.settings.group import Group, GroupMember

MEMBERS = (GroupMember("h1", "10.1.0.1"), GroupMember("h2", "10.1.0.2"))
ARGUMENTS = argparse.Namespace(inventory="i", limit=[], only=[], question="?", max_tokens=9, timeout=7, json=False)


def host(rank: int) -> Any:
    """Return a member of a pair, as a connected host."""
    group = Group("llm", MEMBERS, rank)
    settings = SimpleNamespace(group=group, follows=not group.is_head, all_endpoints={"llm": None})
    return SimpleNamespace(host=SimpleNamespace(name=group.member.host), entry=SimpleNamespace(settings=settings))


@pytest.mark.parametrize("answered", [True, False])
def test_of_hosts_that_serve_together_the_head_alone_is_asked_text(
    answered: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def connected(entries: list[Any]) -> Iterator[list[Any]]:
        yield entries

    monkeypatch.setattr(chat, "chosen_hosts", lambda *_: [host(0), host(1)])
    monkeypatch.setattr(chat, "connected", connected)
    monkeypatch.setattr(chat, "ask", lambda one, *_: (f"{one.host.name} was asked", answered))
    assert chat.run(ARGUMENTS) == (0 if answered else 1)
    assert capsys.readouterr().out == "h1 llm: h1 was asked\nh2 llm: h1 answers for it\n"


def test_the_limit_is_the_requests_and_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    def remote(*words: Any) -> tuple[bool, Any]:
        sent.append(words[1])
        return False, SimpleNamespace(stdout_lines=[])

    monkeypatch.setattr(chat, "remote", remote)
    one: Any = SimpleNamespace(host=SimpleNamespace(name="h1"))
    endpoint: Any = SimpleNamespace()
    monkeypatch.setattr(chat, "command_of", lambda shell: shell)
    monkeypatch.setattr(chat, "served_name", lambda _: "m")
    monkeypatch.setattr(chat, "local_url", lambda _: "http://127.0.0.1:1")
    assert chat.ask(one, "llm", endpoint, chat.ChatQuestion("?", 9, 7)) == ("could not be asked", False)
    assert "--max-time 7 " in sent[0].script
    assert sent[0].timeout == 7 + chat.GRACE
