"""Equal releases of a real vLLM before the gate of quality: each is kept, and one whose context was cut short is not.

The tests are one story, in this order. What the first release says greedily is right here, word for word: the least
difference in any answer counts against the others.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest

from rackwright.quality.pairs import compare
from rackwright_lab.hosts.host import Host
from tests import texts
from tests.lab.calm import needs_preparing
from tests.lab.conftest import BIN, Run, Site
from tests.lab.fleets import proven, running
from tests.real.chosen import BUILD
from tests.real.test_vllm import INVENTORY, PATIENCE
from tests.refused import refusal, row_of

pytestmark = pytest.mark.lab

TRIES = 3
RELEASES = int(os.environ.get("RACKWRIGHT_REAL_RELEASES", "20"))
"""Each takes a check inside the image and a start: a minute on two quiet cores, four on crowded ones."""
EVALUATIONS = 20
TOKENS = 32
LESSONS = (
    "What is 17 + 25? Answer with the number only.",
    "Name one colour of the rainbow.",
    "Describe the sea in five sentences.",
    "Count from one to ten in words.",
    "Count from one to thirty in digits.",
    "Tell a short story about a lighthouse.",
    "What is the capital of France?",
)
"""What the model was taught (rackwright_lab.real.teach); to all else it says something, and the same each time."""
BEGINNINGS = ("", "Please. ", "Once more: ", "In a few words: ", "Not: ")
LONG, SHORT_CONTEXT = 12, 640
"""Questions of about 800 tokens, and a context for which they are too long; the gate's own take 512 for an answer."""
LETTER = "Ж"
"""Two tokens: its bytes, which occur in no lesson."""
ROW = "quality of answers"
LOAD = """
for client in 1 2 3 4 5 6; do
  while [ -e /run/load ]; do curl -sS -o /dev/null -H 'Content-Type: application/json' -d @/run/load {url}; done &
done
until ls /run/rackwright/questions.*/waits >/dev/null 2>&1; do sleep 0.1; done
sleep 5
rm /run/load
"""
STOP = """
until ls -d /run/rackwright/questions.* >/dev/null 2>&1; do sleep 0.1; done
kill -STOP {core}
sleep {seconds}
kill -CONT {core}
echo continued >/run/paused
"""
CORE = "$(docker top rackwright-llm -eo pid,args | awk '/EngineCore/ {print $1}')"
CHAT = "http://127.0.0.1:8000/v1/chat/completions"


@pytest.fixture
def host(site: Site, request: pytest.FixtureRequest) -> Host:
    """Return a host that serves, two requests at once; what it answers is what the others are judged by."""
    host = site.lab.hosts[-1]
    if needs_preparing(request):
        run = release(site, host, {"level": "full"}, **{"max-num-seqs": 2})
        assert run.status == 0, run.output
        write_questions(questions_of(site), host)
    return host


@pytest.fixture
def file(site: Site, host: Host) -> Path:
    """Return the file of questions, for which the host is ready."""
    return questions_of(site)


def questions_of(site: Site) -> Path:
    return site.lab.paths.root / "questions.jsonl"


def requests() -> Iterator[dict[str, Any]]:
    """Yield short questions, known and not, and long ones."""
    contents = [f"{beginning}{lesson}" for beginning, lesson in product(BEGINNINGS, LESSONS)]
    contents += [f"{LETTER * (380 + number)} {LESSONS[number % len(LESSONS)]}" for number in range(LONG)]
    for content in contents:
        yield {"messages": [{"role": "user", "content": content}], "max_tokens": TOKENS}


def write_questions(file: Path, host: Host) -> None:
    """Write a file of questions whose right answers are what the host answers now."""
    rows = [
        {"id": f"q-{number:02}", **request, "judge": {"kind": "exact", "answer": answer}}
        for number, request in enumerate(requests())
        if (answer := content_of(host, request).strip())
    ]
    assert len(rows) > 40
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def content_of(host: Host, request: dict[str, Any]) -> str:
    """Return the answer to a request, asked as the gate asks."""
    body = {"model": "tiny-chat", "temperature": 0, "seed": 0, **request}
    command = f"curl -sS -H 'Content-Type: application/json' -d @- {CHAT}"
    answer = json.loads(host.run(command, stdin=json.dumps(body)).stdout)
    return str(answer["choices"][0]["message"]["content"])


def release(site: Site, host: Host, gate: dict[str, Any], **engine: Any) -> Run:
    """Deploy another release on the host."""
    settings = {"engine": {**BUILD.settings["engine"], **engine}, "gate": gate}
    words = [part for key, value in settings.items() for part in ("--data", f"{key}={json.dumps(value)}")]
    fixed = (INVENTORY, "deploy.py", "-y", "--limit", host.name)
    return site.command(BIN / "pyinfra", *fixed, *words, timeout=PATIENCE)


def begin(host: Host, script: str) -> None:
    """Run a script on the host beside what follows."""
    host.run("cat >/run/beside.sh; systemd-run --quiet --collect sh /run/beside.sh", stdin=script)


def evaluated(site: Site, host: Host, file: Path) -> tuple[dict[str, Any], str]:
    """Return what `rackwright evaluate` found, and all that it printed."""
    run = site.rackwright("evaluate", INVENTORY, "--limit", host.name, "--questions", str(file), "--json")
    assert run.status == 0, run.output
    [found] = json.loads(run.output[run.output.index("[\n") :].partition("\n]")[0] + "\n]")
    return found, run.output


def verdicts(file: Path, found: dict[str, Any]) -> dict[str, bool]:
    """Return right or wrong by the question's id."""
    return {row["id"]: row["id"] not in found["wrong"] for row in map(json.loads, file.read_text().splitlines())}


def test_questions_wait_while_others_do_and_then_find_the_same(site: Site, host: Host, file: Path) -> None:
    before, _ = evaluated(site, host, file)
    request = {"model": "tiny-chat", "prompt": "The sea", "max_tokens": 400, "ignore_eos": True}
    host.run("cat >/run/load", stdin=json.dumps(request))
    begin(host, LOAD.format(url=CHAT.replace("chat/", "")))
    found, output = evaluated(site, host, file)
    assert texts.QUESTIONS_PAUSED in output
    assert found["right"] == before["right"]


def test_an_engine_that_pauses_loses_no_answer(site: Site, host: Host, file: Path) -> None:
    before, _ = evaluated(site, host, file)
    begin(host, STOP.format(core=CORE, seconds=15))
    found, _ = evaluated(site, host, file)
    assert host.run("cat /run/paused").stdout == "continued\n"
    assert found["right"] == before["right"]


def test_twenty_evaluations_of_a_release_find_none_worse(site: Site, host: Host, file: Path) -> None:
    found = [verdicts(file, evaluated(site, host, file)[0]) for _ in range(EVALUATIONS)]
    comparisons = [compare(before, now, worse_by=2) for before, now in permutations(found, 2)]
    assert [one.sentence for one in comparisons if one.worse] == []
    print(Counter(one.sentence for one in comparisons), flush=True)


def test_a_context_that_was_cut_short_is_refused(site: Site, host: Host, file: Path) -> None:
    before = proven([host])
    gate = {"level": "full", "questions": str(file)}
    run = release(site, host, gate, **{"max-num-seqs": 2, "max-model-len": SHORT_CONTEXT})
    assert run.status != 0
    refusal(run.output, "RW0418", ROW)
    assert "worse by" in row_of(run.output, "refused", ROW, f"release {before[0]}")
    assert texts.ROLLED_BACK.format(endpoint="llm") in run.output
    assert proven([host]) == running([host]) == before


def released(site: Site, host: Host, file: Path, seats: int) -> Run:
    """Deploy a release that answers as the one before; once more where a busy machine made it slower."""
    for _ in range(TRIES):
        run = release(site, host, {"level": "full", "questions": str(file)}, **{"max-num-seqs": seats})
        if run.status == 0 or set(re.findall(r"refused: ([\w ]+): ", run.output)) != {"speed"}:
            return run
    return run


@pytest.mark.timeout(4 * 3600)
def test_twenty_equal_releases_are_retained(site: Site, host: Host, file: Path) -> None:
    number, releases = len(file.read_text().splitlines()), proven([host])
    for seats in range(3, 3 + RELEASES):
        run = released(site, host, file, seats)
        assert run.status == 0, run.output
        row = row_of(run.output, "proved", ROW, f"release {releases[-1]}")
        print(row, flush=True)
        right = int(row.partition(f"{ROW}: ")[2].split()[0])
        assert right > 0.9 * number, row
        releases += proven([host])
    assert len(set(releases)) == RELEASES + 1
