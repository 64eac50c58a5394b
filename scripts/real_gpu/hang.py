"""The story of a hang on a GPU: a real engine's core is stopped, and its host finds that, restarts it and proves it."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.concerns.watch.engine_check import FRESH
from scripts.real_gpu.drafts import INVENTORY, chat, deploy, teardown
from scripts.real_gpu.story import Step, data, lab_up, rackwright

ACTS = "/var/lib/rackwright/watch/acts-llm"
LOOK = "/run/rackwright/watch/llm"
PASS = """\
until sudo grep -q '^ready=[0-9]' LOOK; do sleep 1; done
ready=$(sudo sed -n 's/^ready=//p' LOOK)
until [ "$(cut -d. -f1 /proc/uptime)" -gt $((ready + FRESH)) ]; do sleep 1; done
sudo cat LOOK; sudo docker inspect --format '{{.State.StartedAt}}' rackwright-llm""".replace("LOOK", LOOK)
"""Waits until the watch takes an unanswered probe for a sign: not so soon after a start."""
STOP = """\
sudo rm -f ACTS
sudo sh -c 'kill -STOP $(docker top rackwright-llm -eo pid,args | awk "/EngineCore/ {print \\$1}")'; date
curl -sS -m 5 -o /dev/null -w 'health %{http_code}\\n' http://127.0.0.1:8000/health""".replace("ACTS", ACTS)
FOUND = """\
until sudo grep -q 'restart' ACTS; do sleep 1; done; date; sudo cat ACTS
until sudo grep -q 'restart proven' ACTS; do sleep 1; done; date; sudo cat ACTS; sudo cat LOOK
sudo docker inspect --format '{{.State.StartedAt}}' rackwright-llm; sudo ls -l /var/lib/rackwright/endpoints/llm/failed
sudo journalctl --no-pager --output short-iso --since -15min --unit 'rackwright-watch*' --unit 'rackwright-act*' |
  tail -n 60""".replace("ACTS", ACTS).replace("LOOK", LOOK)


def steps(lab: str, offline: bool, number: int = 1) -> Iterator[Step]:
    """Every step on one host, in order, from a lab that boots to one that ends."""
    name = f"{lab}-bare{number}"
    ssh = ("lab", "ssh", "--id", lab, name)
    yield lab_up(lab, 1, offline)
    # The lab's other hosts may serve nothing: the watch may take the last one down.
    alone = data(rollout={"max_unavailable": "100%"})
    yield deploy("deploy of what will hang", INVENTORY, name, "proved: a chat answer", *alone)
    passing = PASS.replace("FRESH", str(FRESH))
    yield Step("its first ten minutes pass", rackwright(*ssh, passing), seconds=FRESH + 60, says="state=")
    yield Step("core is stopped", rackwright(*ssh, STOP), says="health 200")
    yield Step("hang is found and proven again", rackwright(*ssh, FOUND), seconds=560, says="restart proven")
    yield chat(INVENTORY, name, "chat after the hang")
    yield Step("watch after the hang", rackwright("watch", "show", INVENTORY, "--limit", name))
    yield teardown(INVENTORY, name, "teardown after the hang")
    yield Step("lab down", rackwright("lab", "down", "--id", lab))
