"""The story of one endpoint that two hosts serve together, each with a real GPU of this machine."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.real_gpu.story import (
    HARDWARE,
    METRICS,
    QUESTION,
    Step,
    data,
    lab_up,
    pyinfra,
    rackwright,
    revision,
    rollout,
)

INVENTORY = "inventory/lab_gpu_pair.py"
ENGINE = {"max-num-seqs": 8}
"""What the good change asks for; what follows asks for the same, so that nothing else changes."""
LOOK = """\
nvidia-smi -L; ls -l /dev/nvidia*; cat /proc/driver/nvidia/version; ls /proc/driver/nvidia/gpus
nvidia-smi topo -m; ip -o -4 address; ip -o link; df -h /dev/shm; ulimit -l
own=$(ls /dev | sed -n 's/^nvidia\\([01]\\)$/\\1/p')
sudo mknod /run/other c 195 $((1 - own)) && exit 1
[ "$(nvidia-smi -L | wc -l)" = 1 ] && [ "$(sudo nvidia-smi -L | wc -l)" = 1 ] && echo 'one GPU, for root too'"""
"""The other host's GPU cannot be listed, and its device cannot be made."""
INSIDE = """\
sudo docker exec rackwright-llm nvidia-smi -L
sudo docker exec rackwright-llm sh -c 'ls -l /dev/nvidia*; env | grep -E "NCCL|GLOO|VLLM|NVSHMEM|SYMM"; df -h /dev/shm'
sudo docker exec rackwright-llm python3 -c 'import torch; print(torch.__version__, torch.cuda.nccl.version())'
sudo docker inspect rackwright-llm"""
JOURNAL = "sudo journalctl --no-pager --lines 800 --unit rackwright-llm"
SAID = "sudo journalctl --no-pager --output cat --unit rackwright-llm | grep -a NCCL | tail -n 400"
STARTED = "sudo docker inspect --format '{{.State.StartedAt}}' rackwright-llm"
REMEMBER = f"{STARTED} | sudo tee /run/started-before"
KILL = "sudo kill -9 $(sudo docker inspect --format '{{.State.Pid}}' rackwright-llm); date"
ANOTHER = f"""\
until [ "$(systemctl is-active rackwright-llm)" = active ] && [ "$({STARTED})" != "$(cat /run/started-before)" ]; do
  sleep 1
done
date; {STARTED}"""
"""Waits until another container than the remembered one is ready."""
POSE_IMEX = """\
sudo sh -c 'mkdir -p /etc/nvidia-imex /dev/nvidia-caps-imex-channels && touch /dev/nvidia-caps-imex-channels/channel0 &&
echo 192.0.2.1 >/etc/nvidia-imex/nodes_config.cfg &&
printf "#!/bin/sh\\necho Domain State: UP\\n" >/usr/local/bin/nvidia-imex-ctl &&
chmod 755 /usr/local/bin/nvidia-imex-ctl'"""
"""A host that says it has NVLink to the other: preflight lets it pass, and what NCCL chooses is up to the gate."""


def steps(lab: str, offline: bool) -> Iterator[Step]:
    """Every step in order; offline: the lab's hosts install packages from what was packed."""
    yield lab_up(lab, 2, offline)
    yield from _on_each(lab, "GPU on", LOOK, says="one GPU, for root too")
    yield Step(
        "deploy",
        pyinfra(INVENTORY, "deploy.py", "-y", "--data", "gate.level=full"),
        seconds=600,
        says="proved: a chat answer",
    )
    yield from _on_each(lab, "what NCCL said on", SAID, says="NCCL INFO")
    yield from _on_each(lab, "journal of", JOURNAL)
    yield Step("deploy again", pyinfra(INVENTORY, "deploy.py", "-y"))
    yield _chat("chat")
    yield from _on_each(lab, "container of", INSIDE)
    yield Step("drafts and tokens as vLLM counts them", _ssh(lab, 1, METRICS), says="generation_tokens")
    yield Step("status", rackwright("status", INVENTORY))
    yield Step("drift", rackwright("drift", INVENTORY))
    yield Step("hardware record", rackwright("report", "--hardware"), says=HARDWARE)
    yield Step("a good change", _change("v2"), seconds=300)
    yield Step("a bad change rolls back", _change("v3"), right=(3,), seconds=400, says="refused: ")
    yield _chat("chat after rolling back")
    yield from _more_is_asked_for(lab)
    yield from _a_member_dies(lab)
    yield Step("status at the end", rackwright("status", INVENTORY))
    yield from _on_each(lab, "journal at the end of", JOURNAL)
    yield Step("teardown", rackwright("teardown", INVENTORY, "--all", "-y", "--purge"))
    yield Step("lab down", rackwright("lab", "down", "--id", lab))


def _a_member_dies(lab: str) -> Iterator[Step]:
    yield from _on_each(lab, "container before the kill of", REMEMBER)
    yield Step("a member's container is killed", _ssh(lab, 2, KILL))
    yield from _on_each(lab, "another container of", ANOTHER, seconds=240)
    yield _chat("chat after the kill")


def _more_is_asked_for(lab: str) -> Iterator[Step]:
    """Than sockets: preflight refuses what is not there, the gate what NCCL did not take."""
    rdma, nvlink = _change("v2", group_transport="rdma"), _change("v2", group_transport="nvlink")
    yield Step("RDMA is asked for", rdma, right=(1,), says="no RDMA device")
    yield _chat("chat after RDMA was asked for")
    yield Step("NVLink is asked for", nvlink, right=(1,), says="nvidia-imex is not installed")
    yield from _on_each(lab, "IMEX is posed on", POSE_IMEX)
    yield Step(
        "NVLink is asked for and NCCL takes sockets", nvlink, right=(3,), seconds=400, says="and nvlink was asked for"
    )
    yield _chat("chat after NVLink was asked for")


def _change(name: str, **settings: object) -> tuple[str, ...]:
    return rollout(INVENTORY, *data(model=revision(name), engine=ENGINE, **settings))


def _chat(name: str) -> Step:
    return Step(name, rackwright("chat", INVENTORY, "--", QUESTION), says="Paris")


def _on_each(lab: str, name: str, command: str, seconds: int = 100, says: str = "") -> Iterator[Step]:
    for number in (1, 2):
        yield Step(f"{name} host {number}", _ssh(lab, number, command), seconds=seconds, says=says)


def _ssh(lab: str, number: int, command: str) -> tuple[str, ...]:
    return rackwright("lab", "ssh", "--id", lab, f"{lab}-bare{number}", command)
