"""A real vLLM that drafts by a real EAGLE3 head, on one host: a draft that is proven, and each that must be refused.

The tests are one story, in this order: the first one's release is what the others are compared with.
"""

from __future__ import annotations

import json
import re

import pytest

from rackwright_lab.hosts.host import Host
from rackwright_lab.real.builds import EAGLE3_DRAFT
from tests.lab.conftest import BIN, Run, Site
from tests.lab.fleets import proven, running
from tests.real.test_vllm import PATIENCE, ask, on_builds_that_draft, started
from tests.refused import refusal, row_of

pytestmark = [pytest.mark.lab, pytest.mark.nightly, on_builds_that_draft]

INVENTORY = "inventory/lab_eagle3.py"
WEAK, RANDOM, OF_ANOTHER_MODEL, TORN = "v2", "v3", "v4", "v5"


@pytest.fixture
def host(site: Site) -> Host:
    return site.lab.hosts[-1]


def rollout(site: Site, host: Host, draft: str) -> Run:
    words = ("-y", "--bake", "1", "--limit", host.name)
    settings = json.dumps({**EAGLE3_DRAFT, "revision": draft})
    return site.rackwright("rollout", INVENTORY, *words, "--data", f"draft={settings}", timeout=PATIENCE)


def test_a_trained_draft_is_proven_with_its_rate_and_each_position(site: Site, host: Host) -> None:
    words = (INVENTORY, "deploy.py", "-y", "--limit", host.name)
    run = site.command(BIN / "pyinfra", *words, timeout=PATIENCE)
    assert run.status == 0, run.output
    row = row_of(run.output, "proved", "accepted drafts", "eagle3")
    rate = re.search(r"([\d.]+) tokens a step; by position (\d+), (\d+), (\d+) of (\d+)", row)
    assert rate, row
    assert float(rate[1]) > 3
    assert row_of(run.output, "proved", "sampled answers")
    assert ask(host) == "42"


@pytest.mark.parametrize("draft", [WEAK, RANDOM], ids=["weak", "random"])
def test_a_draft_that_gains_less_than_the_one_before_rolls_back(site: Site, host: Host, draft: str) -> None:
    before = proven([host])
    run = rollout(site, host, draft)
    assert run.status == 3, run.output
    assert row_of(run.output, "refused", "accepted drafts", "eagle3")
    assert proven([host]) == running([host]) == before
    assert ask(host) == "42"


def test_a_draft_of_another_model_is_refused_before_anything_stops(site: Site, host: Host) -> None:
    since = started(host)
    run = rollout(site, host, OF_ANOTHER_MODEL)
    assert refusal(run.output, "RW3008", "target_hidden_size 96")
    assert started(host) == since


def test_an_engine_that_dies_of_its_draft_says_first_what_its_core_died_of(site: Site, host: Host) -> None:
    before = proven([host])
    run = rollout(site, host, TORN)
    assert run.status == 3, run.output
    # A worker of its core: the server's own traceback says of it "see root cause above".
    assert "torch.Size" in refusal(run.output, "RW0731", host.name).splitlines()[0]
    assert proven([host]) == running([host]) == before
    assert ask(host) == "42"
