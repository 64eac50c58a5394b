"""What a host prints is read by lines, within a bound."""

from __future__ import annotations

import io
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright import messages
from rackwright.adapter.ssh import bounded_commands
from rackwright.adapter.ssh.bounded_commands import lines_of
from rackwright.adapter.timeouts import A_LINE, GRACE, MOST, FloodError, Spent
from rackwright.messages import listed, waiting
from rackwright.plan.change import Shell, WriteFile
from rackwright.remote.commands import command_of


@given(st.binary(), st.integers(1, 8))
def test_lines_are_those_of_the_whole_text_however_it_comes(printed: bytes, size: int) -> None:
    stream = io.BytesIO(printed)
    whole = printed.decode(errors="replace")
    assert list(lines_of(lambda: stream.read(size))) == whole.removesuffix("\n").split("\n") * bool(whole)


@pytest.mark.parametrize("chunk", [b"A" * 4096, b"\n" * 4096, b"a\n" * 2048])
def test_a_flood_is_stopped_long_before_it_fills_the_memory(chunk: bytes) -> None:
    spent = Spent()
    weight = len(chunk) + A_LINE * chunk.count(b"\n")
    for _ in range(MOST // weight):
        spent.take(chunk)
    with pytest.raises(FloodError, match="16 MiB"):
        spent.take(chunk)


@pytest.mark.parametrize(
    ("step", "seconds"), [(Shell("true", timeout=7), 7), (Shell("true", stdin="x"), 300), (WriteFile("/f", "x"), 300)]
)
def test_every_command_has_a_limit_on_this_side_above_the_hosts_own(step: Shell | WriteFile, seconds: int) -> None:
    assert command_of(step).connector_arguments["_timeout"] == seconds + GRACE


def test_a_wait_is_told_on_standard_error_once_it_is_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "SLOW", 0.05)
    names = [f"gpu{number}" for number in range(9)]
    with waiting(lambda: listed(names, 12)):
        time.sleep(0.15)
    with waiting(lambda: "nothing"):
        pass
    text = "rackwright: waiting for 9 of 12 hosts: gpu0, gpu1, gpu2, gpu3, gpu4 and 4 more\n"
    assert capsys.readouterr() == ("", text)


def test_a_wait_in_which_all_have_answered_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "SLOW", 0.05)
    with waiting(lambda: listed([], 12)):
        time.sleep(0.15)
    assert capsys.readouterr() == ("", "")


def test_a_long_command_is_reported_again_at_longer_and_longer_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(bounded_commands, "echo", lambda text, **_: lines.append(text))
    monkeypatch.setattr(bounded_commands, "SLOW", 0.02)
    monkeypatch.setattr(bounded_commands, "AGAIN", 0.08)
    transport = SimpleNamespace(is_active=lambda: True, global_request=lambda *_, **__: None)
    client = SimpleNamespace(get_transport=lambda: transport)
    connector: Any = SimpleNamespace(client=client, host=SimpleNamespace(print_prefix="gpu01: "))
    with suppress(TimeoutError), gevent.Timeout(1, TimeoutError()):
        bounded_commands._watch(connector, [])
    assert 3 <= len(lines) <= 6, lines
    assert all(text.startswith("gpu01: ") for text in lines)


def test_a_wait_leaves_no_thread() -> None:
    before = threading.active_count()
    with waiting(lambda: "nothing"):
        pass
    assert threading.active_count() == before
