"""Port 80 of two gateways whose certificates come by ACME: challenges, and what else comes there."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.hostside import host_text
from tests.programs.gateway_stubs import Answer, Running, backend, engine, free_port, gateway

ACME = {"email": "ops@example.org", "directory": "https://acme.example.org/dir"}
TOKEN, ANSWER = "a-Token_1", "a-Token_1.thumb-print_2"


@dataclass
class Pair:
    """Two gateways, with their ports for challenges."""

    one: Running
    two: Running
    ports: tuple[int, int]

    def ask(self, path: str, number: int = 0, method: str = "GET") -> Answer:
        """Return a gateway's answer in clear."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[number], timeout=10)
        with contextlib.closing(connection) as clear:
            clear.request(method, path, headers={"Host": "llm.example.org"})
            return Answer.of(clear.getresponse())

    def challenge(self, number: int = 0) -> tuple[int, bytes]:
        """Return what a gateway answers to an authority."""
        found = self.ask(f"/.well-known/acme-challenge/{TOKEN}", number)
        return found.status, found.body if found.status == 200 else b""

    def hook(self, method: str, kind: str = "http-01", token: str = TOKEN) -> int:
        """Run what uacme calls on the first gateway; returns the status."""
        folder = self.one.folder
        values = {
            "admin": folder / "admin.sock",
            "local": f"127.0.0.1:{self.ports[0]}",
            "map": folder / "acme/challenges.map",
            "master": folder / "master.sock",
            "others": f"127.0.0.1:{self.ports[1]}",
            "state": folder,
        }
        script = "".join(f"{name}='{value}'\n" for name, value in values.items()) + host_text("acme_hook.sh")
        words = ["sh", "-c", script, "hook", method, kind, "llm.example.org", token, ANSWER]
        return subprocess.run(words, check=False, timeout=60).returncode


@pytest.fixture(scope="module")
def pair(haproxy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    ports = free_port(), free_port()
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(engine("gpu01"))
        made = []
        for number in (0, 1):
            changed = {
                "bind 127.0.0.1:80\n": f"bind 127.0.0.1:{ports[number]}\n",
                "server other1 127.0.0.1:80\n": f"server other1 127.0.0.1:{ports[1 - number]}\n",
            }
            facts = {"tls": True, "acme": ACME, "changed": changed, "others": ["127.0.0.1"]}
            facts["up"] = ["gpu01", "other1"]
            folder = tmp_path_factory.mktemp("gateway")
            made.append(stack.enter_context(gateway(haproxy, folder, [backend("m", host)], **facts)))  # type: ignore[arg-type]
        yield Pair(made[0], made[1], ports)


def test_a_challenge_is_answered_by_either_gateway_until_it_is_done(pair: Pair) -> None:
    assert pair.challenge() == (404, b"")
    assert pair.hook("begin") == 0
    assert [pair.challenge(number) for number in (0, 1)] == [(200, ANSWER.encode())] * 2
    assert pair.hook("done") == 0
    assert [pair.challenge(number) for number in (0, 1)] == [(404, b"")] * 2


@pytest.mark.parametrize(
    ("kind", "token"), [("dns-01", TOKEN), ("tls-alpn-01", TOKEN), ("http-01", "a;rm"), ("http-01", "")]
)
def test_other_challenges_and_odd_tokens_are_declined(pair: Pair, kind: str, token: str) -> None:
    assert pair.hook("begin", kind, token) != 0
    assert (pair.one.folder / "acme/challenges.map").read_text() == ""


def test_others_are_sent_to_https_and_none_with_a_body(pair: Pair) -> None:
    found = pair.ask("/m/v1/models?a=b")
    assert (found.status, found.headers["location"]) == (
        301,
        f"https://llm.example.org:{pair.one.port}/m/v1/models?a=b",
    )
    refused = pair.ask("/m/v1/chat/completions", method="POST")
    assert (refused.status, refused.code) == (403, "https_required")


def test_haproxy_has_nothing_to_say_of_the_file(pair: Pair) -> None:
    words: list[str | Path] = [pair.one.program, "-c", "-f", pair.one.folder / "haproxy.cfg"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert [row for row in run.stderr.splitlines() if "WARNING" in row and "server state file" not in row] == []
