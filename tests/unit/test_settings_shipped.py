"""The shipped inventories are valid as they are, and their profiles hold the published YAML key by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rackwright.adapter.run.inventories import load_inventory
from rackwright.cli.render import rendered_files
from rackwright.inventory import build
from rackwright.loading.merge import merge
from rackwright.loading.validate import leaves
from rackwright.settings.host_settings import HostSettings
from rackwright.settings.json_schema import json_schema
from rackwright_engines.quick_yaml import load_yaml
from tests.unit.test_engine_profiles import hosts_of

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "engine-yaml"
INVENTORIES = ("b200", "b300", "gb200", "gb300", "h200", "dgx_spark", "rtx_pro_6000")

PROFILES = {
    "b200": "s000_eagle",
    "gb200": "s000_eagle",
    "gb200_tray": "s000_eagle",
    "gb200_pair": "s000_eagle",
    "low_latency": "s001a_low_latency",
    "low_latency_speculative": "s001b_low_latency_speculative",
    "dgx_spark_eagle3": "s002a_spark_eagle3",
    "dgx_spark_draft_target": "s002b_spark_draft_target",
    "rtx_pro_6000_trtllm": "s003_low_latency",
}
PARENTS = {"gb200": ["gb200_tray", "gb200_pair"], "dgx_spark": ["dgx_spark_eagle3", "dgx_spark_draft_target"]}
COMMAND_LINES: dict[str, dict[str, Any]] = {
    "b200": {"tensor_parallel_size": 8, "moe_expert_parallel_size": 4, "max_batch_size": 10, "max_num_tokens": 131072},
    "gb200_pair": {
        "tensor_parallel_size": 8,
        "moe_expert_parallel_size": 4,
        "max_batch_size": 10,
        "max_num_tokens": 131072,
        "max_seq_len": 131072,
        "trust_remote_code": True,
    },
    "gb200_tray": {"tensor_parallel_size": 4, "moe_expert_parallel_size": 4, "max_seq_len": 131072},
    "low_latency": {
        "tensor_parallel_size": 1,
        "max_batch_size": 1,
        "kv_cache_config": {"free_gpu_memory_fraction": 0.9},
    },
    "low_latency_speculative": {"moe_expert_parallel_size": 1, "trust_remote_code": True},
    "dgx_spark_eagle3": {"tensor_parallel_size": 1, "max_batch_size": 1},
    "dgx_spark_draft_target": {"max_batch_size": 1, "kv_cache_config": {"free_gpu_memory_fraction": 0.9}},
}
"""What the guides give on the command line, and the profiles in YAML."""


def settings_of(group: str) -> HostSettings:
    """Return the settings of a host of one profile's group."""
    inventory = ROOT / "inventory" / "b200.py"
    parents = {parent: [group] for parent, children in PARENTS.items() if group in children}
    groups = build(str(inventory), {group: hosts_of(group)}, children=parents)
    assert groups["all"][0][0].startswith(f"{group}-host")
    return HostSettings.model_validate({k: v for k, v in groups["all"][0][1].items() if k in HostSettings.model_fields})


def holds(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and holds(whole[key], below) for key, below in part.items())
    return bool(whole == part)


@pytest.mark.parametrize("name", INVENTORIES)
def test_the_shipped_inventory_is_valid(name: str) -> None:
    for host in load_inventory(ROOT / "inventory" / f"{name}.py"):
        assert host.settings.all_endpoints["llm"].model is not None
        assert host.settings.hardware.gpu_count


@pytest.mark.parametrize(("group", "fixture"), PROFILES.items())
def test_the_profile_holds_the_published_yaml(group: str, fixture: str) -> None:
    published = load_yaml((FIXTURES / f"{fixture}.yaml").read_text())
    assert holds(settings_of(group).engine, published)


@pytest.mark.parametrize(("group", "fixture"), PROFILES.items())
def test_the_rendered_yaml_holds_the_published_one(group: str, fixture: str) -> None:
    published = load_yaml((FIXTURES / f"{fixture}.yaml").read_text())
    settings = settings_of(group)
    (text,) = [text for path, text in rendered_files(settings).items() if Path(path).name == settings.engine_file]
    assert holds(load_yaml(text), published)


@pytest.mark.parametrize(("group", "options"), COMMAND_LINES.items())
def test_the_profile_holds_the_published_command_line(group: str, options: dict[str, Any]) -> None:
    assert holds(settings_of(group).engine, options)


@pytest.mark.parametrize("group", [*PROFILES])
def test_the_draft_model_is_mounted_where_the_engine_looks(group: str) -> None:
    settings = settings_of(group)
    speculative = settings.engine.get("speculative_config")
    assert (settings.draft is None) == (speculative is None)
    if settings.draft and speculative:
        assert speculative["speculative_model_dir"].rstrip("/") == settings.draft.mount


@pytest.mark.parametrize("path", sorted((ROOT / "group_vars").glob("*.yml")), ids=lambda path: path.stem)
def test_every_shipped_file_names_its_schema_and_uses_its_keys(path: Path) -> None:
    text = path.read_text()
    first = text.splitlines()[0]
    schema = first.removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / schema).resolve() == ROOT / "docs" / "reference" / "settings.schema.json"
    assert set(load_yaml(text) or {}) <= set(json_schema()["properties"])


def test_only_the_old_version_gets_its_sizes_twice() -> None:
    doubled = {group for group in PROFILES if settings_of(group).sizes_on_command_line}
    assert doubled == {group for group in PROFILES if settings_of(group).version == "1.1.0rc0"}


def test_no_shipped_file_holds_a_secret() -> None:
    for path in (ROOT / "group_vars").glob("*.yml"):
        keys = {at[0] for at, _ in leaves(load_yaml(path.read_text()) or {}, ())}
        assert not keys & {"models", "registry"}


def test_merging_no_layers_gives_nothing() -> None:
    assert merge([]).values == {}
