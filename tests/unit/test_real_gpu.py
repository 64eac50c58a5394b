"""The real-GPU stories: everything about them that can be tested without a GPU."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from rackwright.cli.main import parsed, parser
from rackwright.messages import RackwrightError
from rackwright_bench.suites.loading import load_suite
from rackwright_bench.suites.suite import cells
from rackwright_bench.variants.naming import names_of
from rackwright_lab.machine import inherited
from rackwright_lab.real import gpt_oss, gpu, gpu_settings, sglang
from rackwright_lab.real.builds import EAGLE3_DRAFT, NGRAM
from scripts.real_gpu import __main__ as command
from scripts.real_gpu import drafts, pack, pair, tune
from scripts.real_gpu.story import Step

Story = Callable[[str, bool], Iterator[Step]]
STORIES = pytest.mark.parametrize("steps", command.STORIES.values(), ids=command.STORIES.keys())


@STORIES
def test_steps_are_chosen_by_names_of_their_own(steps: Story) -> None:
    names = [step.name for step in steps("gpu", True)]
    assert len(names) == len(set(names))
    assert (names[0], names[-1]) in (("lab up", "lab down"), ("small gpt-oss taught", "lab down"))


@STORIES
def test_every_command_is_one_and_every_line_for_a_host_is_shell(steps: Story) -> None:
    for step in steps("gpu", True):
        if step.words[3] == "rackwright":
            options = parsed(parser(), step.words[4:])  # exits, and says why, for what it does not know
            command = " ".join(getattr(options, "command", None) or []) if step.words[4:6] == ("lab", "ssh") else ""
            subprocess.run(["sh", "-n", "-c", command], check=True)


def test_hosts_that_serve_together_keep_multicast_off_and_have_a_rank_each() -> None:
    settings = gpu_settings.shared(2)
    assert settings["engine"]["tensor-parallel-size"] == settings["hosts"] == 2
    assert settings["environment"].items() >= {"NCCL_NVLS_ENABLE": "0", "VLLM_USE_DEEP_GEMM": "0"}.items()
    assert "tensor-parallel-size" not in gpu.SETTINGS["engine"]
    for step in pair.steps("gpu", True):
        assignments = [
            argument for argument in step.words if argument.startswith("environment=") or argument.startswith("engine=")
        ]
        assert [json.loads(argument.partition("=")[2]) for argument in assignments] in ([], [pair.ENGINE])


def chosen(*words: str) -> list[str]:
    arguments = command._parser().parse_args(["run", *words])
    return [step.name for step in command._chosen(arguments)]


def test_a_story_on_a_host_of_a_lab_that_is_up_leaves_the_lab_up() -> None:
    whole, on_second = chosen("--story", "sglang"), chosen("--story", "sglang", "--host", "2")
    assert on_second == whole[1:-1]
    (deploy,) = [step for step in command.STORIES["sglang"]("gpu", True, 2) if step.name == "deploy of SGLang"]
    assert "gpu-bare2" in deploy.words


@pytest.mark.parametrize("story", ["pair", "n-grams", "gpt-oss"])
def test_a_story_of_all_hosts_is_refused_on_one(story: str) -> None:
    with pytest.raises(RackwrightError):
        chosen("--story", story, "--host", "2")


def test_each_draft_that_must_not_serve_is_rolled_out_and_its_end_is_another() -> None:
    given = {}
    for step in drafts.steps("gpu", True):
        for argument in step.words:
            if argument.startswith("draft="):
                draft = json.loads(argument.partition("=")[2])
                assert draft.keys() == EAGLE3_DRAFT.keys()
                given[draft["revision"]] = step.right
    assert given == {"v2": (3,), "v3": (3,), "v5": (3,), "v4": (1,)}


def test_a_tune_tries_the_drafting_of_the_labs_own_settings_and_ends_before_its_step_does() -> None:
    suite = yaml.safe_load((pack.ROOT / tune.SUITE).read_text())
    assert suite["variants"] == {"ngram": {"draft": None, "engine": {"speculative-config": NGRAM}}}
    steps = {step.name: step for step in command.STORIES["tune"]("gpu", True)}
    options = parsed(parser(), steps["tune"].words[4:])
    assert set(options.tune.split(",")) == {"baseline", *suite["variants"]}
    # A trial that is cut puts back what served, which takes a load of the model.
    assert options.timeout + 90 < steps["tune"].seconds
    assert steps["tune"].words[:-1] == steps["plan of the tune"].words[:-1]


def test_draft_lengths_are_compared_once_each_and_all_must_have_figures() -> None:
    steps = {step.name: step for step in command.STORIES["lengths"]("gpu", True)}
    options = parsed(parser(), steps["draft lengths"].words[4:])
    suite = cells(load_suite(str(pack.ROOT / options.suite)))
    variants = names_of(options.compare)
    assert (options.rounds, variants[0], variants[-1]) == (1, "baseline", "draft_8")
    assert steps["draft lengths"].says.startswith(f"{len(variants) * len(list(suite))} of")


def test_the_small_gpt_oss_is_taught_for_the_lab_that_serves_it_and_its_random_draft_is_refused() -> None:
    steps = {step.name: step for step in command.STORIES["gpt-oss"]("gpu", True)}
    assert list(steps)[:2] == ["small gpt-oss taught", "lab up"]
    models = Path(steps["lab up"].words[steps["lab up"].words.index("--models") + 1])
    assert steps["small gpt-oss taught"].says == models.name
    refused = steps["random draft is refused"]
    (draft,) = [json.loads(argument.partition("=")[2]) for argument in refused.words if argument.startswith("draft=")]
    assert gpt_oss.REVISIONS[draft["repository"]][draft["revision"]] == "random"
    assert refused.right == (3,)


def test_the_small_gpt_oss_has_revisions_that_are_taught_and_drafts_by_its_own() -> None:
    settings = gpu_settings.GPT_OSS_EAGLE3
    for kind, wanted in (("model", "base"), ("draft", "trained")):
        assert gpt_oss.REVISIONS[settings[kind]["repository"]][settings[kind]["revision"]] == wanted
    assert json.loads(settings["engine"]["speculative-config"])["model"] == settings["draft"]["mount"]
    eagle3 = gpu_settings.EAGLE3
    assert json.loads(eagle3["engine"]["speculative-config"])["model"] == EAGLE3_DRAFT["mount"]


def test_two_endpoints_of_a_host_have_a_gpu_and_a_port_each_and_one_drafts() -> None:
    endpoints = gpu_settings.a_gpu_each()["endpoints"]
    assert [(one["gpus"], one["port"], "draft" in one) for one in endpoints.values()] == [
        ([0], 8000, True),
        ([1], 8001, False),
    ]
    assert gpu_settings.both_gpus()["engine"]["tensor-parallel-size"] == 2


def test_sglang_installs_what_vllm_has_not_in_that_version_and_its_programs(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.txt", tmp_path / "theirs.txt"
    pins = "a==1 \\\n    --hash=sha256:aa\nb=={} \\\n    --hash=sha256:bb\nninja==3 \\\n    --hash=sha256:cc\n"
    ours.write_text(pins.format(2))
    theirs.write_text(pins.format(1))
    found = "".join(sglang._others(ours, theirs))
    assert sglang._pins(found) == ["b==2", "ninja==3"]
    assert "sha256:bb" in found


def test_the_locked_sglang_has_no_torch_of_its_own() -> None:
    pins = sglang._pins("".join(sglang._others(sglang.LOCKED, gpu.LOCKED, gpu.LOCKED_TORCH)))
    names = {pin.partition("==")[0] for pin in pins}
    assert {"sglang", "sglang-kernel", "ninja", "nvidia-cuda-nvcc"} <= names
    assert names.isdisjoint({"torch", "triton", "vllm", "nvidia-nccl-cu13"})


def test_the_first_part_has_what_unpacks_all_and_no_part_is_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = pack.What(part_mib=6)
    mib = 1024 * 1024

    def carry(folder: Path) -> None:
        folder.mkdir()
        (folder / "zstd").write_bytes(b"0" * (mib // 2))

    monkeypatch.setattr(pack, "carry_zstd", carry)
    pieces = [tmp_path / f"image.tar.zst.{number:03}" for number in range(3)]
    for piece in pieces:
        piece.write_bytes(b"0" * what.piece_mib * mib)
    parts = pack.spread(pieces, tmp_path, what.part_mib)
    assert [sorted(path.name for path in part.iterdir()) for part in parts] == [
        ["image.tar.zst.000", "image.tar.zst.001", "machine", "zstd"],
        ["image.tar.zst.002"],
    ]
    assert all(sum(path.stat().st_size for path in part.rglob("*")) <= 6 * mib for part in parts)


def test_the_zstd_that_travels_unpacks_what_pack_compresses(tmp_path: Path) -> None:
    (tmp_path / "from/one").mkdir(parents=True)
    (tmp_path / "from/one/file").write_text("content")
    parts = tmp_path / "rg/parts"
    parts.mkdir(parents=True)
    pack.archive(tmp_path / "from", ["one"], parts / "image.tar.zst.", [], 25)
    pack.carry_zstd(parts / "zstd")
    call = 'sed \'/^verb=/,$d\' "$1" >"$RG/verbs" && . "$RG/verbs" && open_archive image "$RG/to"'
    environment = {"RG": str(tmp_path / "rg"), "PATH": "/nowhere-with-zstd:/usr/bin:/bin"}
    subprocess.run(["sh", "-c", call, "-", str(pack.ROOT / "scripts/real_gpu/machine")], env=environment, check=True)
    assert (tmp_path / "rg/to/one/file").read_text() == "content"


def test_the_root_of_a_machine_without_a_network_names_no_server_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "machine/etc").mkdir(parents=True)
    call = 'sed \'/^verb=/,$d\' "$1" >"$RG/verbs" && . "$RG/verbs" && names'
    environment = {"RG": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run(["sh", "-c", call, "-", str(pack.ROOT / "scripts/real_gpu/machine")], env=environment, check=True)
    written = (tmp_path / "machine/etc/resolv.conf").read_text()
    monkeypatch.setattr(inherited, "resolv_conf", lambda: written)
    assert inherited.name_servers() == []
