"""A real vLLM on two hosts, from a bare OS to the full gate; a good change, bad ones, and servers that are killed.

The tests are one story, in this order. What is real: vLLM and its answers, the image, the pull, Docker, the unit, the
gate. What is not: GPUs, which a CPU build does not use; the rows about them judge the lab's stand-in nvidia-smi.
"""

from __future__ import annotations

import json
import re
import time
from statistics import median
from typing import Any

import pytest

from rackwright.concerns.endpoint.proof.drafts import PROMPT, TOKENS
from rackwright.concerns.endpoint.proof.sampling import MILD_TEMPERATURE, part_followed
from rackwright_lab.hosts.host import Host
from rackwright_lab.real.builds import NGRAM
from tests import texts
from tests.lab.conftest import BIN, Run, Site
from tests.lab.fleets import proven, running, switches
from tests.real.chosen import BUILD

pytestmark = pytest.mark.lab

INVENTORY = "inventory/lab_vllm.py"
ROWS = (
    "the model's name",
    "the engine's version",
    "GPUs inside the container",
    "a chat answer",
    "engine steps",
    "streaming",
    "no repeated token",
    "a tool call",
    "speed",
)
"""Rows of the gate that this endpoint has: neither harmony nor a draft is among them."""
SECONDS = 600
"""How long a server may take to come back: it loads in 20 s on a quiet core, in 250 s on two that forty others want."""
PATIENCE = 2700.0
"""Seconds for a run: a check inside the image and a start for each host, and another start where it rolls back."""
CHILD = "for pid in $(docker top rackwright-llm -eo pid,args | awk '/EngineCore/ {print $1}'); do kill -9 $pid; done"
KILLS = {"the server": "kill -9 $(docker inspect --format '{{.State.Pid}}' rackwright-llm)", "its engine's core": CHILD}


def deploy(site: Site, *words: str) -> Run:
    fixed = (INVENTORY, "deploy.py", "-y", "--data", "gate.level=full")
    return site.command(BIN / "pyinfra", *fixed, *words, timeout=PATIENCE)


def rollout(site: Site, **settings: Any) -> Run:
    words = [argument for key, value in settings.items() for argument in ("--data", f"{key}={json.dumps(value)}")]
    fixed = ("rollout", INVENTORY, "-y", "--bake", "1", "--wave", "1")
    return site.rackwright(*fixed, *words, timeout=PATIENCE)


def revision(name: str) -> dict[str, str]:
    """Return the model's settings with another revision."""
    return {**BUILD.settings["model"], "revision": name}


def get(host: Host, path: str) -> str:
    return host.run(f"curl -sS http://127.0.0.1:8000{path}").stdout


def ask(host: Host) -> str:
    question = {"role": "user", "content": "What is 17 + 25? Answer with the number only."}
    body = {"model": "tiny-chat", "messages": [question], "max_tokens": 16}
    command = "curl -sS -H 'Content-Type: application/json' -d @- http://127.0.0.1:8000/v1/chat/completions"
    answer = json.loads(host.run(command, stdin=json.dumps(body)).stdout)
    return str(answer["choices"][0]["message"]["content"])


def sampled(host: Host) -> list[str]:
    """Return the text that the gate asks for, five times at a mild temperature."""
    body = {"model": "tiny-chat", "prompt": PROMPT, "max_tokens": TOKENS, "temperature": MILD_TEMPERATURE}
    command = "curl -sS -H 'Content-Type: application/json' -d @- http://127.0.0.1:8000/v1/completions"
    answers = [json.loads(host.run(command, stdin=json.dumps(body)).stdout) for _ in range(5)]
    return [str(answer["choices"][0]["text"]) for answer in answers]


def started(host: Host) -> str:
    return host.run("docker inspect --format '{{.State.StartedAt}}' rackwright-llm", check=False).stdout.strip()


def wait_for_another_start(host: Host, before: str) -> None:
    """Until the unit is active again with another container than the one of `before`."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        state = host.run("systemctl is-active rackwright-llm", check=False).stdout.strip()
        if state == "active" and started(host) not in ("", before):
            return
        time.sleep(1)
    pytest.fail(f"{host.name} does not serve again after {SECONDS} s:\n{host.journal('--lines', '40')}")


on_builds_that_draft = pytest.mark.skipif(not BUILD.drafts, reason=f"vLLM {BUILD.version} drafts on no CPU")


@on_builds_that_draft
def test_a_first_deploy_whose_drafts_spoil_the_answers_is_refused(site: Site) -> None:
    # At another temperature than 0 this build samples nonsense (https://github.com/vllm-project/vllm/issues/55005), all
    # of it on one processor, next to none on another: what it then says itself decides what the gate must have seen.
    host = site.lab.hosts[-1]
    drafts = json.dumps({**BUILD.settings["engine"], "speculative-config": NGRAM})
    run = deploy(site, "--limit", host.name, "--data", f"engine={drafts}")
    if run.status == 0:
        assert "proved: sampled answers: " in run.output, run.output
        assert median(part_followed(text) for text in sampled(host)) > 0.7
        return
    spoils = texts.DRAFTING_SPOILS.format(method="ngram")
    assert f"refused: sampled answers: {spoils}" in run.output, run.output
    assert host.run("systemctl is-active rackwright-llm", check=False).stdout.strip() != "active"


@pytest.mark.nightly
def test_a_bare_and_a_lived_in_host_pass_the_full_gate(site: Site) -> None:
    run = deploy(site)
    assert run.status == 0, run.output
    assert "not checked inside the image" not in run.output, run.output
    for row in ROWS:
        assert len(re.findall(f"proved: {row}: ", run.output)) == 2, f"{row}:\n{run.output}"
    for host in site.lab.hosts:
        assert json.loads(get(host, "/version")) == {"version": BUILD.version}
        assert "vllm:generation_tokens_total" in get(host, "/metrics")
        assert ask(host) == "42"
    assert deploy(site).changed == []


@pytest.mark.nightly
def test_a_good_change_goes_through(site: Site) -> None:
    before = proven(site.lab.hosts)
    run = rollout(site, model=revision("v2"), engine={"max-num-seqs": 8})
    assert run.status == 0, run.output
    assert switches(run) == [host.name for host in site.lab.hosts]
    after = proven(site.lab.hosts)
    assert not set(before) & set(after)
    assert running(site.lab.hosts) == after
    assert [ask(host) for host in site.lab.hosts] == ["42", "42"]


@on_builds_that_draft
def test_drafts_are_counted_where_they_are_accepted(site: Site) -> None:
    run = rollout(site, engine={"speculative-config": NGRAM, "override-generation-config": '{"temperature": 0}'})
    proposed = texts.pattern(texts.DRAFT_TOKENS, proposed=r"\d+")
    assert re.search(rf"proved: accepted drafts: \d+{proposed} accepted", run.output), run.output
    comes_back = texts.TEXT_COMES_BACK.format(share="100%")
    assert f"proved: sampled answers: {comes_back}" in run.output, run.output
    # N-grams of a model of 1.7 MB cost more than they win on two busy cores, and the gate says so.
    assert set(re.findall(r"refused: ([\w ]+): ", run.output)) <= {"speed"}, run.output
    assert [ask(host) for host in site.lab.hosts] == ["42", "42"]


@on_builds_that_draft
def test_drafts_that_spoil_the_answers_roll_back(site: Site) -> None:
    before = proven(site.lab.hosts)
    run = rollout(site, engine={"speculative-config": NGRAM})
    assert run.status not in (0, 1), run.output
    assert "refused: sampled answers" in run.output, run.output
    assert proven(site.lab.hosts) == running(site.lab.hosts) == before


@pytest.mark.nightly
def test_a_model_that_repeats_itself_rolls_back(site: Site) -> None:
    before = proven(site.lab.hosts)
    run = rollout(site, model=revision("v3"))
    assert run.status not in (0, 1), run.output
    assert "refused: a chat answer" in run.output, run.output
    assert set(switches(run)) == {site.lab.hosts[0].name}, "the second host is never touched"
    assert proven(site.lab.hosts) == running(site.lab.hosts) == before
    assert [ask(host) for host in site.lab.hosts] == ["42", "42"]


def test_an_option_that_this_vllm_does_not_know_never_starts(site: Site) -> None:
    since = [started(host) for host in site.lab.hosts]
    run = rollout(site, engine={"nonsense": 1})
    assert run.status != 0, run.output
    assert "nonsense" in run.output
    assert [started(host) for host in site.lab.hosts] == since


@pytest.mark.parametrize("killed", [pytest.param("the server", marks=pytest.mark.nightly), "its engine's core"])
def test_the_unit_brings_back_what_is_killed(site: Site, killed: str) -> None:
    host = site.lab.hosts[-1]
    before = started(host)
    host.run(KILLS[killed])
    wait_for_another_start(host, before)
    assert ask(host) == "42"
