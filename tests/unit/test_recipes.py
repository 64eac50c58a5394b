"""The profiles of today: each has its vendor's published options, an address, and passes its checks at its version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rackwright.adapter.run.inventories import load_inventory
from rackwright.cli.render import rendered_files
from rackwright.engines.host import check_host
from rackwright_engines.data import table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.options.schema import line_for
from rackwright_engines.quick_yaml import load_yaml
from rackwright_engines.version import bare
from rackwright_lab.standins.engine import gpus
from rackwright_lab.standins.engine.llmapi.llm_utils import update_llm_args_with_extra_dict
from rackwright_lab.standins.engine.llmapi.models import torch_llm_args
from tests.unit.test_engine_profiles import EFFECTIVE, NEWEST, PARENTS, merged, profile

ROOT = Path(__file__).parents[2]
RECIPES: dict[str, dict[str, Any]] = load_yaml((ROOT / "tests" / "fixtures" / "recipes.yaml").read_text())
ADDRESS = re.compile(r"^# .*https://(?:github\.com|docs\.sglang\.io|huggingface\.co)/\S+", re.MULTILINE)
PARTS = {"rtx_pro_6000", "dgx_spark", "h200", "b300", "gb300"}
"""Files of group_vars that are hardware alone."""
EXACT = [group for group, recipe in RECIPES.items() if recipe.get("exact", True)]
NOT_COMPUTED = "RW0333"
STAND_INS = ("1.2.1", "1.4.0rc1")
OF_OTHERS = {"dgx_spark_pair_vllm_deepseek_v4_flash": "B12X_MLA_SPARSE"}
"""What an image that others built of vLLM has beside vLLM's own."""


def without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}


def options(group: str) -> dict[str, Any]:
    """Return the published options with Rackwright's differences."""
    found: dict[str, Any] = without_nulls(merged(RECIPES[group]["published"], RECIPES[group].get("ours", {})))
    return found


@pytest.mark.parametrize("group", RECIPES)
def test_the_options_are_the_published_ones(group: str) -> None:
    host_settings = profile(group)
    assert (bare(host_settings.version), host_settings.engine) == (RECIPES[group]["version"], options(group))
    texts = [
        text for path, text in rendered_files(host_settings).items() if Path(path).name == host_settings.engine_file
    ]
    assert [load_yaml(text) for text in texts] == [host_settings.engine]


def findings(group: str) -> list[Finding]:
    """Return what is said of a profile, but that its model's sizes are not known."""
    return [one for one in check_host(profile(group)) if one.code != NOT_COMPUTED]


@pytest.mark.parametrize("group", EXACT)
def test_the_version_is_known_exactly_and_nothing_is_said_against_it(group: str) -> None:
    host_settings = profile(group)
    assert line_for(host_settings.engine_kind, bare(host_settings.version))[1]
    assert findings(group) == []


@pytest.mark.parametrize("group", [group for group in RECIPES if group not in EXACT])
def test_where_the_version_is_not_known_that_is_the_only_warning(group: str) -> None:
    host_settings = profile(group)
    assert not line_for(host_settings.engine_kind, bare(host_settings.version))[1]
    others = OF_OTHERS.get(group, "")
    warnings = [one for one in findings(group) if one.level is not Level.NOTE and not (others and others in one.text)]
    assert [(one.level, one.code) for one in warnings] == [(Level.WARN, "RW0316")]


@pytest.mark.parametrize("group", RECIPES)
def test_a_model_without_sizes_is_said_not_to_be_computed(group: str) -> None:
    model = profile(group).model
    assert model is not None
    sizes: dict[str, Any] = next((row for row in table("models") if row["repository"] == model.repository), {})
    is_whole = bool(sizes.get("weights") and sizes.get("kv_bytes"))
    assert is_whole == (NOT_COMPUTED not in {one.code for one in check_host(profile(group))})


@pytest.mark.parametrize("group", RECIPES)
def test_the_file_names_its_source(group: str) -> None:
    assert ADDRESS.search((ROOT / "group_vars" / f"{group}.yml").read_text())


@pytest.mark.parametrize("group", [group for group, recipe in RECIPES.items() if recipe["version"] in STAND_INS])
def test_the_stand_in_takes_the_options(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "count", lambda: 8)
    host_settings, version = profile(group), RECIPES[group]["version"]
    assert host_settings.model is not None
    arguments = update_llm_args_with_extra_dict(
        {"model": host_settings.model.mount}, host_settings.engine, version=version
    )
    assert torch_llm_args(version)(**arguments).model_dump()["model"] == host_settings.model.mount


def test_every_profile_is_one_of_the_tested_and_advise_knows_it_with_its_source() -> None:
    shipped = {file.stem for file in (ROOT / "group_vars").glob("*.yml")} - PARTS - {"all", "lab", "lab_gateway"}
    assert shipped == {*EFFECTIVE, *NEWEST, *RECIPES}
    measured = table("measured")
    assert {row["name"] for row in measured["profiles"]} == shipped
    assert {row["from"] for row in measured["profiles"]} == set(measured["sources"]) - {"engine"}


def test_each_profile_is_a_group_of_the_inventory_of_its_machine() -> None:
    texts = "".join(file.read_text() for file in (ROOT / "inventory").glob("*.py"))
    assert [group for group in RECIPES if f'"{group}"' not in texts] == []
    assert [host.settings.engine_kind for host in load_inventory(ROOT / "inventory" / "h200.py")] == ["vllm"]
    assert PARENTS["h200_vllm_eagle3"] == ["h200_vllm", "h200"]
