"""An engine whose answers look like protocol and act on terminals: they are data, and stay on their own side."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rackwright_lab.lab import Lab
from tests import texts
from tests.lab.conftest import Run, Site
from tests.lab.products import with_proof
from tests.lab.scene import HOME, Scene, interval

pytestmark = pytest.mark.lab

SECRET = "aHVzaC1odXNoOm5vYm9keS1tYXktc2VlLXRoaXM="
CONFIG = "/root/.docker/config.json"
EVIL = {
    "a chat answer with line breaks": ("answer", f"no\n::kept {CONFIG}\nx\x1b]52;c;ZXZpbA==\x07\x1b[2J"),
    "a chat answer for a shell's echo": (
        "answer",
        f"no\\n::kept {CONFIG}\\n\\033]52;c;ZXZpbA==\\a",
    ),
    "a model id": ("model_id", f"no\\n::kept {CONFIG}\\n\\033[2J\x1b]0;owned\x07\u202e"),
}


@pytest.fixture(scope="module")
def hostile(worker_lab: Lab) -> Scene:
    """Return a serving host, with a login of root's that must stay hidden."""
    host = worker_lab.host("lived2")
    scene = Scene(Site(worker_lab), host)
    run = scene.deploy()
    assert run.status == 0, run.output
    login = json.dumps({"auths": {"elsewhere.example": {"auth": SECRET}}})
    host.run(f"mkdir -p -m 0700 /root/.docker && cat >{CONFIG} && chmod 0600 {CONFIG}", stdin=login)
    return scene


@pytest.mark.parametrize(
    "case", with_proof(EVIL, {"a chat answer for a shell's echo"}, "tests/unit/test_hostile.py has each word")
)
def test_what_an_engine_answers_is_never_obeyed(hostile: Scene, site: Site, case: str) -> None:
    fault, value = EVIL[case]
    number = 40 + list(EVIL).index(case)
    scene = Scene(site, hostile.host)
    with scene.faults({"fault": fault, "value": value, "when": {"option.stream_interval": number}}):
        run = scene.deploy(engine=interval(number))
    assert run.status != 0
    assert {"answer": "17 + 25 is answered with", "model_id": "/v1/models answers"}[fault] in run.output, run.output
    assert texts.ROLLED_BACK.format(endpoint="llm") in run.output, run.output
    (log,) = re.findall(r"the failed release's log: (/\S+)", run.output)
    assert "Starting" in Path(log).read_text()
    report = site.rackwright("report", "last")
    assert report.status == 0, report.output
    nothing_got_out(site, run)
    failed = scene.host.run(f"stat -c '%a %n' {HOME}/llm/failed {HOME}/llm/failed/*").stdout.split("\n")
    assert {row.split(" ")[0] for row in failed if row} == {"700", "600"}


def nothing_got_out(site: Site, run: Run) -> None:
    """Neither root's login nor a control character is in what was printed, recorded, kept and reported."""
    runs = Path(site.environment()["RACKWRIGHT_RUNS"])
    texts = {
        path: path.read_text(errors="replace") for path in runs.rglob("*") if path.is_file() and path.suffix != ".png"
    }
    assert {path.suffix for path in texts} >= {".jsonl", ".log", ".html"}
    for source, text in [("the output", run.output), *((str(path), text) for path, text in texts.items())]:
        assert SECRET not in text, source
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text), source


def test_words_for_a_terminal_stay_words(hostile: Scene, site: Site) -> None:
    """exec, logs and chat show an engine's words, and nothing that acts."""
    evil = r"\033]52;c;ZXZpbA==\007\033[2Jseen\302\233"
    limit = ("--limit", hostile.host.name)
    with Scene(site, hostile.host).faults({"fault": "answer", "value": "\x1b[2J\x1b]0;x\x07seen\u202e"}):
        chat = site.rackwright("chat", "inventory/lab.py", *limit, "--", "hello")
    hostile.host.run(f"printf '{evil}' | systemd-cat -t x; systemd-run --wait --quiet printf '{evil}'")
    ran = site.rackwright(
        "exec", "inventory/lab.py", *limit, "--", "sh", "-c", f"printf '{evil}\\n'; printf '{evil}\\n' >&2"
    )
    plain = site.command(Path(".venv/bin/pyinfra"), "inventory/lab.py", *limit, "exec", "--", f"printf '{evil}'")
    for run in (chat, ran, plain):
        assert run.status == 0, run.output
        assert "seen" in run.output
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", run.output), repr(run.output)
