"""The word of a host: who may ask, and what a question gets."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.concerns.firewall.iptables_rules import endpoint_rules
from rackwright.concerns.firewall.nft_drops import word_drops
from rackwright.concerns.watch.word import NAME, askers, listener, question, refusals, word_files
from rackwright.loading.host import InventoryHost
from rackwright.loading.peers import with_peers
from rackwright.plan.change import Refuse
from rackwright.settings.host_settings import HostSettings
from tests.programs.word_host import word_host


def settings(model: str = "m/a", **more: object) -> HostSettings:
    return HostSettings.model_validate({"model": {"repository": model, "mount": f"/models/{model}"}, **more})


def host(name: str, address: str, one: HostSettings) -> InventoryHost:
    return InventoryHost(name, (), {"ssh_hostname": address}, one, {})


def placed(hosts: Sequence[InventoryHost]) -> dict[str, HostSettings]:
    return {one.name: one.settings for one in with_peers(hosts)}


def test_peers_are_the_hosts_that_serve_the_same_model_and_keep_shared_settings_shared() -> None:
    same, other = settings(), settings("m/b")
    by_name = placed(
        [host("a", "10.0.0.1", same), host("b", "10.0.0.2", other), host("c", "10.0.0.3", same), host("d", "::5", same)]
    )
    assert [(peer.host, peer.address) for peer in by_name["c"].peers["llm"]] == [
        ("a", "10.0.0.1"), ("c", "10.0.0.3"), ("d", "::5"),
    ]  # fmt: skip
    assert by_name["a"] is by_name["c"]
    assert dict(by_name["b"].peers) == {}


def closed(one: HostSettings) -> list[tuple[str, str]]:
    """Return the port and the networks of each drop; without networks it drops all."""
    text = "\n".join(word_drops(NAME, one.word.port, askers(one)))
    return re.findall(r"dport (\d+) (?:ip6? saddr != \{ (.*) \}|meta nfproto ipv\d) drop", text)


def test_everybody_else_is_dropped() -> None:
    assert closed(settings()) == [("8010", ""), ("8010", "")]
    one = placed([host("a", "10.0.0.1", settings()), host("c", "10.0.0.3", settings())])["a"]
    assert closed(one) == [("8010", "10.0.0.1/32, 10.0.0.3/32"), ("8010", "")]
    accepted = [rule.text for rule in endpoint_rules([(NAME, listener(one))], 4, "docker0") if "allowed" in rule.text]
    assert len(accepted) == 1
    gateways = settings(word={"port": 9000, "allow_from": ["10.9.0.0/24", "fd00::/64"]})
    assert closed(gateways) == [("9000", "10.9.0.0/24"), ("9000", "fd00::/64")]


def test_a_port_of_an_endpoint_is_refused() -> None:
    (change,) = refusals(settings(port=8010))
    assert [step.code for step in change.steps if isinstance(step, Refuse)] == ["RW2531"]
    assert refusals(settings(port=8010, word={"port": 8019})) == []


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return word_host(tmp_path, settings())


def ask(folder: Path, question: bytes, asker: str = "::ffff:10.0.0.9") -> str:
    asking = subprocess.run(
        ["bash", f"{folder}/word"], input=question, capture_output=True, env={"REMOTE_ADDR": asker}, check=False
    )
    return asking.stdout.decode()


def test_a_question_gets_one_line_whatever_it_holds(script: Path) -> None:
    (script / "state/marks/trial-b").write_text("word=drain\n")
    assert ask(script, b"a\n") == "ready up\n"
    assert ask(script, b"a\r\nb\n") == "ready up\n"
    assert ask(script, b"b\n") == "drain\n"
    assert ask(script, b"") == "drain\n"
    (script / "state/endpoints/b/replaced-by").write_text("a")
    assert ask(script, b"\n") == "ready up\n"
    for odd in (b"c\n", b"../a\n", b"a b c\n", b"\0\xff\n", b"x" * 1_000_000, b"-n\n", b"*\n"):
        assert ask(script, odd) == "down #unknown\n"


def test_who_asked_and_when_is_noted_by_endpoint(script: Path) -> None:
    ask(script, b"a\n")
    first = (script / "notes/10.0.0.9@a").read_text().splitlines()
    ask(script, b"a\n")
    ask(script, b"", "fe80::1")
    ask(script, b"a\n", "../../x")
    second = (script / "notes/10.0.0.9@a").read_text().splitlines()
    assert second[1] == first[0].replace("last=", "previous=")
    assert second[2].rstrip() == "word=ready up"
    ask(script, b"c\n")
    assert sorted(path.name for path in (script / "notes").iterdir()) == ["10.0.0.9@a", "fe80::1"]


def ask_as_gateway(folder: Path, question: bytes, hangs_up: bool = False) -> str:
    ours, hosts = socket.socketpair()
    ours.sendall(question)
    if hangs_up:
        ours.shutdown(socket.SHUT_WR)
    with ours, hosts:
        environment = {"REMOTE_ADDR": "10.0.0.5"}
        subprocess.run(
            ["bash", f"{folder}/word"], stdin=hosts.fileno(), stdout=hosts.fileno(), env=environment, check=False
        )
        return ours.recv(100).decode()


def test_a_gateway_is_noted_by_its_name_wherever_it_asks_from(script: Path) -> None:
    (script / "state/marks/trial-a").write_text("word=drain\n")
    assert ask_as_gateway(script, f"{question('a', 'gw1.example')}\n".encode()) == "drain\n"
    assert [path.name for path in (script / "notes").iterdir()] == ["gateway-gw1.example@a"]
    assert "word=drain" in (script / "notes/gateway-gw1.example@a").read_text()
    for odd in (b"a ../x\n", b"a gw 1\n", b"a " + b"x" * 240 + b"\n", b"c gw1\n"):
        assert ask_as_gateway(script, odd) == "down #unknown\n"
    assert len(list((script / "notes").iterdir())) == 1


def test_a_gateway_that_hung_up_before_the_answer_has_not_heard_it(script: Path) -> None:
    assert ask_as_gateway(script, b"a gw1\n", hangs_up=True) == "ready up\n"
    assert list((script / "notes").iterdir()) == []


def test_a_name_that_no_note_can_have_is_left_out_of_the_question() -> None:
    assert (question("llm", "10.0.0.5"), question("llm", "a/b"), question("sent", "gw1")) == (
        "llm 10.0.0.5", "llm", "sent",
    )  # fmt: skip


def test_the_port_is_the_settings_own() -> None:
    unit = next(text for path, text in word_files(settings(word={"port": 9000})).items() if path.endswith(".socket"))
    assert "\nListenStream=9000\n" in unit
    assert replace(host("a", "10.0.0.1", settings())).settings.word.port == 8010


def test_a_peer_is_answered_whether_this_host_sends_an_event(script: Path) -> None:
    sent = script / "sent"
    sent.mkdir()
    (script / "word").write_text((script / "word").read_text().replace("/run/rackwright-notify/sent", str(sent)))
    (sent / "hang-llm").write_text("pending 1\n")
    answer, age = ask(script, b"sent hang-llm\n").split()
    assert (answer, int(age) > 1) == ("pending", True)
    for other in (b"sent dead-llm\n", b"sent \n", b"sent ../word\n", b"sent .\n"):
        assert ask(script, other) == "none\n"
    assert not any((script / "notes").iterdir())


def test_notes_of_ever_new_askers_end(script: Path) -> None:
    for number in range(2001):
        (script / f"notes/fd00::{number:x}@a").touch()
    ask(script, b"a\n", "fd00::0@a".partition("@")[0])
    assert (script / "notes/fd00::0@a").read_text().startswith("last=")
    assert ask(script, b"a\n", "fe80::1") == "ready up\n"
    assert not (script / "notes/fe80::1@a").exists()
