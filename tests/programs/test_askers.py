"""Hearers of a host's word: the real scripts that answer (word_main.sh) and that read its notes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.hostside import host_script, host_text
from rackwright.rollout.maintenance.host_marks import marks_in
from rackwright.settings.host_settings import HostSettings
from tests.programs.word_host import asking, word_host

SHELLS = [shell for shell in ("dash", "busybox", "bash") if shutil.which(shell)]
GATEWAY = "gateway-gw1@llm"


def up() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


@dataclass
class Waited:
    """How long a wait took, which gateways it gave up, and what it said."""

    seconds: float
    gone: list[str]
    text: str


class Notes:
    """The folder of the notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, ago: float, interval: float = 2, answer: str = "ready up") -> None:
        last = up() - ago
        (self.folder / name).write_text(f"last={last:<14.2f}\nprevious={last - interval:<14.2f}\nword={answer:<14}\n")

    def start(self, words: str = "out", limit: int = 30, shell: str = "dash") -> tuple[subprocess.Popen[str], float]:
        script = (
            f'notes={self.folder} endpoint=llm\nevent() {{ echo "$*"; }}\n{host_text("askers.sh")}\n'
            f'asker_clock; askers_await "$asker_now" {words} {limit}; echo "gone$askers_gone"\n'
        )
        words_of = [shell, "sh"] if shell == "busybox" else [shell]
        process = subprocess.Popen([*words_of, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return process, time.monotonic()

    def end(self, started: tuple[subprocess.Popen[str], float]) -> Waited:
        process, began = started
        output, error = process.communicate(timeout=60)
        assert (process.returncode, error) == (0, "")
        *lines, gone = output.splitlines()
        return Waited(time.monotonic() - began, gone.split()[1:], "\n".join(lines))

    def wait(self, words: str = "out", limit: int = 30, shell: str = "dash") -> Waited:
        return self.end(self.start(words, limit, shell))


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_gateway_is_waited_for_until_it_has_heard_the_word(notes: Notes, shell: str) -> None:
    notes.write(GATEWAY, 1)
    started = notes.start(shell=shell)
    time.sleep(1)
    notes.write(GATEWAY, 0)  # it asked before the mark
    time.sleep(1)
    assert started[0].poll() is None
    notes.write(GATEWAY, 0, answer="drain")
    waited = notes.end(started)
    assert (waited.seconds > 1.9, waited.seconds < 5, waited.gone) == (True, True, [])
    assert "gw1" in waited.text


@pytest.mark.parametrize("answer", ["drain", "down #trial", "down #stopped"])
def test_each_word_that_takes_it_out_counts(notes: Notes, answer: str) -> None:
    notes.write(GATEWAY, -1, answer=answer)
    assert notes.wait().seconds < 1


def test_a_gateway_that_is_killed_in_the_wait_is_given_up_after_three_intervals(notes: Notes) -> None:
    notes.write(GATEWAY, 1)
    notes.write("gateway-gw2@llm", -1, answer="drain")
    waited = notes.wait()
    assert 4 < waited.seconds < 9
    assert waited.gone == ["gw1"]


def test_one_that_is_gone_is_named_and_one_that_never_asked_is_not(notes: Notes) -> None:
    assert notes.wait().gone == []
    notes.write(GATEWAY, 7)
    notes.write("gateway-10.0.0.5@llm", 3600)
    waited = notes.wait()
    assert (waited.seconds < 1, sorted(waited.gone)) == (True, ["10.0.0.5", "gw1"])
    assert notes.wait("any").text == ""


def test_other_askers_count_once_they_ask_again_and_again(notes: Notes) -> None:
    notes.write("10.0.0.9@llm", 0, interval=100)
    (notes.folder / "10.0.0.8@llm").write_text(f"last={up():<14.2f}\nprevious={'':<14}\nword={'ready up':<14}\n")
    notes.write("10.0.0.7@other", 0)
    assert notes.wait().seconds < 1
    notes.write("fe80::1", 0)
    assert 4 < notes.wait().seconds < 9


def test_before_the_next_host_a_gateway_has_heard_that_this_one_serves(notes: Notes) -> None:
    notes.write(GATEWAY, 1, answer="drain")
    started = notes.start("any")
    time.sleep(1)
    assert started[0].poll() is None
    notes.write(GATEWAY, 0)
    assert notes.end(started).seconds < 4


def test_no_wait_is_longer_than_its_limit(notes: Notes) -> None:
    notes.write(GATEWAY, -20)
    waited = notes.wait(limit=2)
    assert 1.9 < waited.seconds < 4


@pytest.mark.parametrize("text", ["", "last=\nprevious=\nword=\n", "last=0.08\nword=drain", "last=1.2.3\nlast=x 1\n",
                                  "last=$(id)\n", "last=-5\n", "\0\n", "last=99999999999999999999.99\n"])  # fmt: skip
@pytest.mark.parametrize("shell", SHELLS)
def test_a_damaged_note_holds_nothing_up(notes: Notes, text: str, shell: str) -> None:
    (notes.folder / GATEWAY).write_text(text)
    (notes.folder / "10.0.0.9@llm").write_text(text)
    os.mkfifo(notes.folder / "10.0.0.8@llm")
    assert notes.wait(shell=shell).seconds < 2


def test_a_rollout_reads_when_each_gateway_asked_last(notes: Notes) -> None:
    (notes.folder / "bin").mkdir()
    systemctl = notes.folder / "bin/systemctl"
    systemctl.write_text('#!/bin/sh\n[ "$3" = rackwright-llm.service ]\n')
    systemctl.chmod(0o755)
    notes.write(GATEWAY, 40)
    notes.write("gateway-gw1@other", 40)
    notes.write("10.0.0.9@llm", 40)
    paths = {"drained": "/none", "quarantine": "/none/x", "notes": str(notes.folder)}
    read = subprocess.run(
        ["dash", "-c", host_script("out_of_service_read", **paths)],
        env={"PATH": f"{notes.folder}/bin:{os.environ['PATH']}"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (question,) = marks_in(read.stdout.splitlines()).questions
    assert (question.gateway, question.endpoint, 39 < question.ago < 60) == ("gw1", "llm", True)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Return the folder of a host whose endpoint a serves, and whose b does not."""
    model = {"repository": "m/a", "mount": "/models/m/a"}
    folder = word_host(tmp_path, HostSettings.model_validate({"model": model}))
    (folder / "state/marks/sick-b").write_text("word=down\n")
    return folder


def answered(host: Path, *pieces: bytes, pause: float = 0.8) -> tuple[str, list[str]]:
    """Send the pieces of a question with pauses, and keep the connection; returns the answer and the notes."""
    with asking(host) as (connection, answering):
        for number, piece in enumerate(pieces):
            time.sleep(pause if number else 0)
            connection.sendall(piece)
        answering.wait(30)
        return connection.recv(100).decode(), [path.name for path in (host / "notes").iterdir()]


@pytest.mark.parametrize("pieces", [(b"a", b" gw1\n"), (b"a g", b"w", b"1\n"), (b"a gw1", b"\n")])
def test_a_question_in_pieces_is_answered_as_a_whole_one(host: Path, pieces: tuple[bytes, ...]) -> None:
    assert answered(host, *pieces) == ("ready up\n", ["gateway-gw1@a"])


def test_a_name_that_begins_like_another_is_not_taken_for_it(host: Path) -> None:
    (host / "state/endpoints/ab").symlink_to("a")
    assert answered(host, b"a", b"b gw1\n") == ("down #stopped\n", ["gateway-gw1@ab"])


@pytest.mark.parametrize("half", [b"a", b"a gw", b"sent hang-a"])
def test_half_a_question_never_gets_an_endpoint_up(host: Path, half: bytes) -> None:
    began = time.monotonic()
    assert answered(host, half) == ("down #unknown\n", [])
    assert 2 < time.monotonic() - began < 6


LATE = 'read() { if [ "$3" = 0.5 ]; then sleep 0.6; piece=; return 142; fi; builtin read "$@"; }\n'
"""A host so busy that the time of `read` is over before it looks."""


def test_a_question_that_came_while_the_host_was_busy_is_no_silence(host: Path) -> None:
    script = host / "word"
    script.write_text(LATE + script.read_text())
    assert answered(host, b"a gw1\n") == ("ready up\n", ["gateway-gw1@a"])
    assert answered(host)[0] == "down #sick\n"


def test_silence_is_answered_by_the_worst(host: Path) -> None:
    began = time.monotonic()
    assert answered(host)[0] == "down #sick\n"
    assert time.monotonic() - began < 2.4
