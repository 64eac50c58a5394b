"""The way a user meets the checks: `rackwright check`, `--to`, and the inventory that refuses to load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rackwright.cli.main import main
from tests import texts

SITE = """\
# The fleet's own profile.
image: nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc6   # pinned
model: {repository: openai/gpt-oss-120b, mount: /config/models/gpt-oss-120b}
allow_from: [10.0.0.0/8]

engine:
  tp_size: 1 # one GPU
  # Eagle3 wants this one.
  use_torch_sampler: true  # this version only: later ones refuse the key
  kv_cache_config:
    enable_block_reuse: false

  print_iter_log: "yes"
"""
INVENTORY = 'from rackwright.inventory import build\nglobals().update(build(__file__, {"gpu": ["h1", "h2"]}))\n'
REMARK = "# this version only: later ones refuse the key"
SAMPLER = "https://github.com/NVIDIA/TensorRT-LLM/pull/18232"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a site whose only group file has two keys of other versions."""
    for folder in ("inventory", "group_vars"):
        (tmp_path / folder).mkdir()
    (tmp_path / "deploy.py").touch()
    (tmp_path / "inventory" / "fleet.py").write_text(INVENTORY)
    (tmp_path / "group_vars" / "gpu.yml").write_text(SITE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_text_of_check_names_file_line_key_version_and_the_right_key(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "inventory/fleet.py"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "rackwright: RW0101: the settings are not valid, nothing was connected:",
        "  RW0301: group_vars/gpu.yml:7: engine.tp_size: TensorRT-LLM 1.2.0rc6 does not know this key: it has"
        " another name"
        " in the"
        " YAML; write `engine.tensor_parallel_size: 1`; on h1, h2",
        "  RW0301: group_vars/gpu.yml:9: engine.use_torch_sampler: TensorRT-LLM 1.2.0rc6 does not know this"
        " key: sampling by"
        f" TorchSampler is said otherwise there; write `engine.sampler_type: TorchSampler` ({SAMPLER}); on h1, h2",
        "fix these, then: rackwright check inventory/fleet.py",
    ]


def test_a_problem_of_some_hosts_names_them(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = [f"h{index}" for index in range(6)]
    inventory = f'from rackwright.inventory import build\nglobals().update(build(__file__, {{"gpu": {hosts}}}))\n'
    (site / "inventory" / "fleet.py").write_text(inventory)
    text = MOVED.replace("replicas: 8\n", "").replace("engine:\n", "engine:\n  tensor_parallel_size: 8\n")
    (site / "group_vars" / "gpu.yml").write_text(text)
    (site / "host_vars").mkdir()
    for name in hosts[1:]:
        (site / "host_vars" / f"{name}.yml").write_text("hardware: {gpu_models: [RTX PRO 6000], gpu_count: 4}\n")
    (site / "host_vars" / "h0.yml").write_text("engine: {tensor_parallel_size: 16}\n")
    assert main(["check", "inventory/fleet.py"]) == 1
    key = "engine.tensor_parallel_size"
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"  RW0311: group_vars/gpu.yml:7: {key}: {texts.needs_gpus(8, 'llm', 4)}; on h1, h2, h3 and 2 more",
        f"  RW0311: host_vars/h0.yml:1: {key}: {texts.needs_gpus(16, 'llm', 8)}",
        f"{texts.FIX_THESE}rackwright check inventory/fleet.py",
    ]


def test_the_plain_pyinfra_command_refuses_the_same_before_any_connection(site: Path) -> None:
    pyinfra = Path(sys.executable).parent / "pyinfra"
    done = subprocess.run(
        [pyinfra, "-y", "inventory/fleet.py", "exec", "--", "true"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "group_vars/gpu.yml:9: engine.use_torch_sampler: TensorRT-LLM 1.2.0rc6" in done.stdout + done.stderr
    assert "Connecting" not in done.stdout + done.stderr


def test_fix_is_gone_and_says_what_to_do_instead(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (site / "group_vars" / "gpu.yml").read_text()
    assert main(["check", "inventory/fleet.py", "--fix"]) == 1
    assert "RW1040" in capsys.readouterr().err
    assert (site / "group_vars" / "gpu.yml").read_text() == before


def test_the_text_of_moving_to_another_version_before_it_is_done(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SITE.replace("tp_size", "tensor_parallel_size").replace(
        "use_torch_sampler: true", "sampler_type: TorchSampler"
    )
    (site / "group_vars" / "gpu.yml").write_text(text)
    assert main(["check", "inventory/fleet.py", "--limit", "h1", "--to", "1.1.0rc0"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "h1: endpoint llm, 1.2.0rc6 to 1.1.0rc0:",
        "  must change: RW0301: group_vars/gpu.yml:9: engine.sampler_type: TensorRT-LLM 1.1.0rc0 does not know"
        " this key:"
        " sampling"
        f" by TorchSampler is said otherwise there; write `engine.use_torch_sampler: true` ({SAMPLER})",
    ]
    assert main(["check", "inventory/fleet.py", "--limit", "h1", "--to", "1.4.0rc1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "h1: endpoint llm, 1.2.0rc6 to 1.4.0rc1:",
        "  warning: RW0315: engine.sampler_type: TensorRT-LLM 1.4.0rc1 takes this key and ignores it: leave it out",
        "  note: RW0318: engine.moe_config.backend: is not set; its default was CUTLASS and is AUTO in"
        " TensorRT-LLM 1.4.0rc1",
        "next: write the new tag into `image:`, then: rackwright check inventory/fleet.py",
    ]


MOVED = """\
model: {repository: openai/gpt-oss-120b, mount: /m/gpt-oss-120b}
draft: {repository: nvidia/gpt-oss-120b-Eagle3, mount: /m/eagle}
image: nvcr.io/nvidia/tensorrt-llm/release:1.4.0rc1
bind: 127.0.0.1
hardware: {gpu_models: [RTX PRO 6000], compute_capability: ["12.0"], gpu_count: 8}
replicas: 8
engine:
  speculative_config:
    decoding_type: Eagle3
    max_draft_len: 3
    speculative_model: /m/eagle
"""


def test_the_text_of_moving_says_all_that_changes_once_for_hosts_and_endpoints_alike(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "group_vars" / "gpu.yml").write_text(MOVED)
    assert main(["check", "inventory/fleet.py", "--to", "1.2.0rc1"]) == 0
    names = ", ".join(f"llm-{index}" for index in range(8))
    where, unknown = "group_vars/gpu.yml", "TensorRT-LLM 1.2.0rc1 does not know"
    section = "engine.speculative_config"
    assert capsys.readouterr().out.splitlines() == [
        f"h1, h2: endpoints {names}, 1.4.0rc1 to 1.2.0rc1:",
        f"  must change: RW0302: {where}:9: {section}.decoding_type: {unknown} Eagle3: drafting by an Eagle3"
        f" head is said"
        f" otherwise there; write `{section}.decoding_type: Eagle` (https://github.com/NVIDIA/TensorRT-LLM/pull/10124)",
        f"  must change: RW0301: {where}:11: {section}.speculative_model: {unknown} this key: the draft model's"
        f" folder is said"
        f" otherwise there; write `{section}.speculative_model_dir: /m/eagle`"
        " (https://github.com/NVIDIA/TensorRT-LLM/pull/10099)",
        "  warning: RW0305: draft.repository: answers that never end were seen with this draft model, version and GPU"
        " (https://github.com/NVIDIA/TensorRT-LLM/issues/8615)",
        "  note: RW0318: engine.moe_config.backend: is not set; its default was AUTO and is CUTLASS in"
        " TensorRT-LLM 1.2.0rc1",
        "  warning: temperature, top_p, top_k, seed of a request do nothing there: drafting with Eagle3 samples"
        " greedily in this version",
        "next: write the new tag into `image:`, then: rackwright check inventory/fleet.py",
    ]


def test_the_text_of_moving_says_what_is_so_no_more(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = MOVED.replace("1.4.0rc1", "1.2.0rc1").replace("Eagle3\n", "Eagle\n").replace("_model:", "_model_dir:")
    (site / "group_vars" / "gpu.yml").write_text(text)
    assert main(["check", "inventory/fleet.py", "--to", "1.2.0rc8"]) == 0
    assert capsys.readouterr().out.splitlines()[1:-1] == [
        "  warning: RW0316: engine: the options of TensorRT-LLM 1.2.0rc8 are not known here, so they were checked"
        " as 1.2.0rc6.post3's; only what is one letter from a known name is refused, and the image decides before"
        " anything is stopped",
        "  note: RW0318: engine.max_input_len: is not set; its default was 1024 and is null in TensorRT-LLM 1.2.0rc8",
        "  no more: RW0305: draft.repository: answers that never end were seen with this draft model, version and GPU"
        " (https://github.com/NVIDIA/TensorRT-LLM/issues/8615)",
    ]
    assert main(["check", "inventory/fleet.py", "--to", "1.4.0rc1"]) == 0
    assert "  note: temperature, top_p, top_k, seed of a request count again\n" in capsys.readouterr().out
