"""The way a user meets the checks: `rackwright check`, `--fix`, `--to`, and the inventory that refuses to load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rackwright.commands.cli import main
from rackwright.loading.edit import comment_of, edited
from rackwright_engines.key_path import KeyPath
from rackwright_engines.move import Move
from rackwright_engines.quick_yaml import load_yaml
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
    """A site whose only group file has two keys of other versions."""
    for folder in ("inventory", "group_vars"):
        (tmp_path / folder).mkdir()
    (tmp_path / "deploy.py").touch()
    (tmp_path / "inventory" / "fleet.py").write_text(INVENTORY)
    (tmp_path / "group_vars" / "gpu.yml").write_text(SITE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_check_names_file_line_key_version_and_the_right_key(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_fix_rewrites_the_keys_and_takes_only_their_own_comments_away(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "inventory/fleet.py", "--fix"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == [
        "group_vars/gpu.yml:7: engine.tp_size: write `engine.tensor_parallel_size: 1`;"
        " gone with the old line: # one GPU",
        "group_vars/gpu.yml:9: engine.use_torch_sampler: write `engine.sampler_type: TorchSampler`;"
        " gone with the old line: # this version only: later ones refuse the key",
    ]
    assert out[-1] == "inventory/fleet.py: 2 hosts, the settings are valid"
    fixed = SITE.replace("tp_size: 1 # one GPU", "tensor_parallel_size: 1")
    fixed = fixed.replace(f"use_torch_sampler: true  {REMARK}", "sampler_type: TorchSampler")
    assert (site / "group_vars" / "gpu.yml").read_text() == fixed


def test_fix_leaves_to_a_person_what_is_not_sure(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SITE.replace("  tp_size: 1 # one GPU\n", "  moe_config: {backend: FAST}\n")
    (site / "group_vars" / "gpu.yml").write_text(text)
    assert main(["check", "inventory/fleet.py", "--fix"]) == 1
    assert "moe_config.backend: must be one of CUTLASS" in capsys.readouterr().err
    assert "backend: FAST" in (site / "group_vars" / "gpu.yml").read_text()


def test_fix_adds_the_layers_that_a_draft_needs(site: Path) -> None:
    text = SITE.replace("  tp_size: 1 # one GPU\n", "").replace(f"  use_torch_sampler: true  {REMARK}\n", "")
    text += "  speculative_config:\n    decoding_type: Eagle\n    max_draft_len: 3\n    speculative_model_dir: /d\n"
    text += "draft: {repository: nvidia/gpt-oss-120b-Eagle3-v2, mount: /d}\n"
    (site / "group_vars" / "gpu.yml").write_text(text)
    assert main(["check", "inventory/fleet.py", "--fix"]) == 0
    section = load_yaml((site / "group_vars" / "gpu.yml").read_text())["engine"]["speculative_config"]
    assert section["eagle3_layers_to_capture"] == [-1]


def test_moving_to_another_version_is_shown_before_it_is_done(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
        "next: write the new tag into `image:`, then: rackwright check inventory/fleet.py --fix",
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


def test_moving_says_all_that_changes_once_for_hosts_and_endpoints_alike(
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
        "next: write the new tag into `image:`, then: rackwright check inventory/fleet.py --fix",
    ]


def test_moving_says_what_is_so_no_more(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = MOVED.replace("1.4.0rc1", "1.2.0rc1").replace("Eagle3\n", "Eagle\n").replace("_model:", "_model_dir:")
    (site / "group_vars" / "gpu.yml").write_text(text)
    assert main(["check", "inventory/fleet.py", "--to", "1.2.0rc8"]) == 0
    assert capsys.readouterr().out.splitlines()[1:-1] == [
        "  warning: RW0316: engine: the options of TensorRT-LLM 1.2.0rc8 are not known here, so they were checked"
        " as 1.2.0rc6.post3's"
        " and 1.2.0's; only what is one letter from a known name is refused, and the image decides before anything is"
        " stopped",
        "  note: RW0318: engine.max_input_len: is not set; its default was 1024 and is null in TensorRT-LLM 1.2.0rc8",
        "  no more: RW0305: draft.repository: answers that never end were seen with this draft model, version and GPU"
        " (https://github.com/NVIDIA/TensorRT-LLM/issues/8615)",
    ]
    assert main(["check", "inventory/fleet.py", "--to", "1.4.0rc1"]) == 0
    assert "  note: temperature, top_p, top_k, seed of a request count again\n" in capsys.readouterr().out


EDITS: list[tuple[str, KeyPath, Move, str | None]] = [
    ("a: 1\nb: 2\n", ("a",), Move(None), "b: 2\n"),
    ("e:\n  a: 1 # why\n  # next\n  b: 2\n", ("e", "a"), Move(None), "e:\n  # next\n  b: 2\n"),
    ("e:\n  s:\n    a: 1\n  b: 2\n", ("e", "s", "a"), Move(None), "e:\n  b: 2\n"),
    ("e:\n  a: 1\n  s:\n    b: 2\n", ("e", "a"), Move(("e", "s", "c"), 1), "e:\n  s:\n    c: 1\n    b: 2\n"),
    ("e:\n  a: 1\n  b: 2\n", ("e", "a"), Move(("e", "s", "c"), 0.7), "e:\n  s:\n    c: 0.7\n  b: 2\n"),
    ("e: {a: 1, b: 2}\n", ("e", "a"), Move(("e", "c"), True), "e: {c: true, b: 2}\n"),
    ("e: {a: 1, b: 2}\n", ("e", "a"), Move(None), None),
    ("e:\n  a: |\n    x\n", ("e", "a"), Move(("e", "c"), 1), None),
    ('e:\n  "a": "x" # q\n', ("e", "a"), Move(("e", "c"), "x"), 'e:\n  c: "x"\n'),
    ('e:\n  a: "# x" # q\n  # b\n', ("e", "a"), Move(("e", "a"), 2), "e:\n  a: 2\n  # b\n"),
    ("e: {a: 1, b: 2} # both\n", ("e", "b"), Move(("e", "c"), 2), "e: {a: 1, c: 2} # both\n"),
    ("a: x#y # q", ("a",), Move(("c",), "x#y"), "c: x#y"),
    ("e:\n  a: [1,\n    2]\n  b: 1\n", ("e", "a"), Move(None), "e:\n  b: 1\n"),
    ("t: !vault |\n  x\ne:\n  a: 1\n", ("e", "a"), Move(("e", "c"), 2), "t: !vault |\n  x\ne:\n  c: 2\n"),
    ("b: 1\n", ("e", "a"), Move(None), None),
    ("b: 1\n", ("e", "a"), Move(("e", "a"), [-1]), "e:\n  a: [-1]\nb: 1\n"),
]


@pytest.mark.parametrize(("text", "path", "move", "expected"), EDITS, ids=lambda value: repr(value)[:40])
def test_edits_keep_everything_else(text: str, path: KeyPath, move: Move, expected: str | None) -> None:
    assert edited(text, path, move) == expected


@pytest.mark.parametrize(
    ("text", "path", "comment"),
    [
        ("a: 1\n", ("a",), ""),
        ("a: 1 # why\nb: 2 # not this\n", ("a",), "# why"),
        ("e:\n  a: [1]  # why\n", ("e", "a"), "# why"),
        ("e:\n  # of b\n  b: 1\n", ("e",), ""),
        ("e: {a: 1, b: 2} # both\n", ("e", "b"), ""),
        ("b: 1\n", ("a",), ""),
    ],
)
def test_the_comment_behind_a_key_is_told_before_it_goes(text: str, path: KeyPath, comment: str) -> None:
    assert comment_of(text, path) == comment


NAMES = st.sampled_from(["a", "b", "c", "d"])
LEAVES = st.integers() | st.booleans() | st.sampled_from(["x", "y: z", "# no", ""])
TREES = st.dictionaries(NAMES, LEAVES | st.dictionaries(NAMES, LEAVES, min_size=1, max_size=3), min_size=2, max_size=4)


@given(tree=TREES, name=NAMES, new=st.integers())
def test_an_edited_file_reads_as_meant(tree: dict[str, Any], name: str, new: int) -> None:
    text = edited(yaml.safe_dump(tree, sort_keys=False), (name,), Move(("z",), new))
    if text is not None:
        kept = {key: value for key, value in tree.items() if key != name}
        assert load_yaml(text) == {**kept, "z": new}
    gone = edited(yaml.safe_dump(tree, sort_keys=False), (name,), Move(None))
    if gone is not None:
        assert load_yaml(gone) == {key: value for key, value in tree.items() if key != name}
