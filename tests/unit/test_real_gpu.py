"""The real-GPU stories: everything about them that can be tested without a GPU."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest

from rackwright.cli.main import parsed, parser
from rackwright_lab.real import gpu
from scripts.real_gpu import pair, story
from scripts.real_gpu.story import Step

Story = Callable[[str, bool], Iterator[Step]]
STORIES = pytest.mark.parametrize("steps", [story.steps, pair.steps], ids=["one host", "pair"])


@STORIES
def test_steps_are_chosen_by_names_of_their_own(steps: Story) -> None:
    names = [step.name for step in steps("gpu", True)]
    assert len(names) == len(set(names))
    assert (names[0], names[-1]) == ("lab up", "lab down")


@STORIES
def test_every_command_is_one_and_every_line_for_a_host_is_shell(steps: Story) -> None:
    for step in steps("gpu", True):
        if step.words[3] == "rackwright":
            options = parsed(parser(), step.words[4:])  # exits, and says why, for what it does not know
            command = " ".join(getattr(options, "command", None) or []) if step.words[4:6] == ("lab", "ssh") else ""
            subprocess.run(["sh", "-n", "-c", command], check=True)


def test_hosts_that_serve_together_keep_multicast_off_and_have_a_rank_each() -> None:
    settings = gpu.shared(2)
    assert settings["engine"]["tensor-parallel-size"] == settings["hosts"] == 2
    assert settings["environment"].items() >= {"NCCL_NVLS_ENABLE": "0", "VLLM_USE_DEEP_GEMM": "0"}.items()
    assert "tensor-parallel-size" not in gpu.SETTINGS["engine"]
    for step in pair.steps("gpu", True):
        assignments = [
            argument for argument in step.words if argument.startswith("environment=") or argument.startswith("engine=")
        ]
        assert [json.loads(argument.partition("=")[2]) for argument in assignments] in ([], [pair.ENGINE])
