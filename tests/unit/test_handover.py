"""What a command hands to its pyinfra process arrives there whole, and nowhere else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.record.handover import VARIABLE, Handover, received

NAMES = st.lists(st.text(max_size=5), max_size=3)
RELEASES = st.dictionaries(st.text(max_size=5), st.dictionaries(st.text(max_size=5), st.text(max_size=5)), max_size=3)
HANDOVERS = st.builds(
    Handover, st.text(), st.booleans(), st.integers(), NAMES, NAMES, RELEASES, st.booleans(), st.none() | RELEASES
)


@given(HANDOVERS)
def test_it_arrives_as_it_was_sent(sent: Handover) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, sent.text)
        assert received() == sent


def test_a_plain_command_was_handed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert received() == Handover()


def test_the_process_that_is_started_has_it() -> None:
    sent = Handover(record="/site/runs/x.jsonl", first=["h1"], releases={"h1": {"*": "last"}})
    print_it = "from rackwright.record.handover import received; print(received().text)"
    done = subprocess.run([sys.executable, "-c", print_it], env=sent.environment, capture_output=True, check=True)
    assert json.loads(done.stdout) == json.loads(sent.text)
