"""A canary of vLLM beside a peer while clients send requests to both: slower, drafting in vain, equal, and cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackwright_lab.hosts.host import Host
from tests.lab.conftest import BIN, Run, Site, own_lab
from tests.lab.products import in_proof
from tests.lab.running import Running
from tests.refused import refusal, row_of

WHY = "windows of 2 s for 42 s each; tests/lab/three_hosts/test_canary_beside_peers.py has one with its own requests"
pytestmark = [pytest.mark.lab, in_proof(WHY)]

ROW = "beside its peers"
INVENTORY = Path(__file__).parent / "profiles" / "inventory.py"
PROFILE = "rtx_pro_6000_vllm_eagle3"
HOME = "/var/lib/rackwright/endpoints/llm"
BODY = json.dumps({"model": "gpt-oss-120b", "messages": [{"role": "user", "content": "Count."}], "max_tokens": 60})
URL = "http://127.0.0.1:8000/v1/chat/completions"
CLIENT = f"""while :; do
  curl -s -m 20 -o /dev/null -H 'Content-Type: application/json' -d '{BODY}' {URL} || sleep 0.5
  sleep 0.2
done
"""
MARK = "/var/lib/rackwright/marks/trial-llm"
ADMITTED = "clients are let in, on trial"


@dataclass(frozen=True)
class Pair:
    """A canary and its one peer."""

    site: Site

    @property
    def hosts(self) -> list[Host]:
        return self.site.lab.hosts

    @property
    def canary(self) -> Host:
        return self.hosts[0]

    def words(self, number: int, **gate: Any) -> list[str | Path]:
        """Return the command of a rollout of its own release."""
        values = {"HOST": ",".join(host.name for host in self.hosts), "PROFILE": PROFILE}
        settings = json.dumps({"gpus": [0], "engine": {"stream-interval": number}})
        environment = [*(f"PROFILES_{name}={value}" for name, value in values.items()), f"PROFILES_SETTINGS={settings}"]
        limits = {"slower_by": 20, "beside_peers": 42, **gate}
        more = ["-y", "--bake", "1", "--data", f"gate={json.dumps(limits)}"]
        return ["env", *environment, BIN / "rackwright", "rollout", INVENTORY, *more]

    def rollout(self, number: int, **gate: Any) -> Run:
        return self.site.command(*self.words(number, **gate))

    def running(self, number: int, **gate: Any) -> Running:
        return Running(self.site, *map(str, self.words(number, **gate)))

    @contextmanager
    def clients(self) -> Iterator[None]:
        """Send each host one request after the other."""
        for host in self.hosts:
            host.run("cat >/root/client", stdin=CLIENT)
            host.run("systemd-run --quiet --collect --unit=client sh /root/client")
        try:
            yield
        finally:
            for host in self.hosts:
                host.run("systemctl stop client; rm -f /root/client")

    def fault(self, name: str, number: int, value: object = True) -> None:
        """Let the canary fail where it serves a release."""
        self.canary.set_engine_faults({"fault": name, "value": value, "when": {"option.stream_interval": number}})

    def proven(self) -> str:
        return self.canary.run(f"basename $(readlink {HOME}/proven)").stdout.strip()

    def marks(self) -> list[str]:
        return self.canary.run("ls /var/lib/rackwright/marks").stdout.split()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with own_lab("bp", hosts=2) as lab:
        found = Pair(Site(lab))
        words = found.words(31)
        deploy = [*words[: words.index(BIN / "rackwright")], BIN / "pyinfra", INVENTORY, "deploy.py", "-y"]
        run = found.site.command(*deploy)
        assert run.status == 0, run.output
        yield found


@pytest.fixture(autouse=True)
def _well(pair: Pair) -> Iterator[None]:
    yield
    pair.canary.set_engine_faults()


def test_a_release_30_per_cent_slower_is_refused_and_an_equal_one_kept(pair: Pair) -> None:
    good = pair.proven()
    with pair.clients():
        pair.fault("slow_factor", 32, 1 / 0.7)
        run = pair.rollout(32)
        assert run.status == 3, run.output
        refusal(run.output, "RW0424", ROW)
        row_of(run.output, "refused", ROW, "fewer tokens a second", "tokens accepted", "windows of 2 s")
        assert pair.proven() == good
        assert pair.marks() == []
        pair.canary.set_engine_faults()
        run = pair.rollout(32)
        assert run.status == 0, run.output
        row_of(run.output, "proved", ROW, "windows of 2 s")
        assert pair.proven() != good


def test_a_draft_that_wins_in_the_gate_and_never_under_load_is_named(pair: Pair) -> None:
    good = pair.proven()
    with pair.clients():
        running = pair.running(33)
        assert running.until(ADMITTED), running.output
        pair.fault("never_accepts", 33)
        run = running.end()
    assert run.status == 3, run.output
    row_of(run.output, "refused", ROW, "its draft never wins")
    assert pair.proven() == good


def test_without_clients_it_asks_both_itself(pair: Pair) -> None:
    run = pair.rollout(34)
    assert run.status == 0, run.output
    row_of(run.output, "proved", ROW, "pairs of")


def test_a_canary_whose_control_machine_is_lost_rolls_back(pair: Pair) -> None:
    good = pair.proven()
    with pair.clients():
        running = pair.running(35, beside_peers=600, commit_deadline=90)
        assert running.until(ADMITTED), running.output
        pair.canary.run(
            "for i in $(seq 50); do grep -q word=up /var/lib/rackwright/marks/trial-llm && exit; sleep 1; done; exit 1"
        )
        running.stop()
        pair.canary.run(f"for i in $(seq 200); do [ -e {HOME}/trial ] || exit 0; sleep 1; done; exit 1")
    assert pair.proven() == good
    assert pair.marks() == []
    assert "outcome=rolled-back" in pair.canary.run(f"cat {HOME}/last-switch").stdout
