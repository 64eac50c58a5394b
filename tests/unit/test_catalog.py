"""The catalogue of profiles: complete, in the inventories' order, and saying of each file what it says itself."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackwright.loading.merge import Layer, merge
from rackwright.profiles import catalog
from rackwright.profiles.content import sha256_of
from rackwright.settings.host_settings import HostSettings
from rackwright_engines.data import PRODUCTS, table
from rackwright_engines.quick_yaml import load_yaml

ROOT = Path(__file__).parents[2]
INVENTORIES = ("b200", "b300", "gb200", "gb300", "h200", "dgx_spark", "rtx_pro_6000")
WITHOUT_A_MODEL = {"b300", "gb300", "h200", "dgx_spark", "rtx_pro_6000"}
"""Groups that are parents alone."""
SITE_FILES = {"all", "lab", "lab_gateway"}


def built(inventory: str) -> tuple[set[str], dict[str, list[str]]]:
    """Return the groups and `children` that an inventory gives to `build`."""
    tree = ast.parse((ROOT / "inventory" / f"{inventory}.py").read_text())
    call = next(
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("build")
    )
    children = {named.arg: ast.literal_eval(named.value) for named in call.keywords}.get("children", {})
    return {*ast.literal_eval(call.args[1]), *children}, children


def chain(name: str, children: dict[str, list[str]]) -> list[str]:
    """Return a group after its parents."""
    parents = sorted(parent for parent, below in children.items() if name in below)
    assert len(parents) < 2, "an order among parents would have to be Ansible's"
    return [*(chain(parents[0], children) if parents else []), name]


def values_of(name: str) -> dict[str, Any]:
    """Return a profile's settings as a host gets them."""
    return dict(merge(Layer(load_yaml(text), {}) for text in catalog.profile(name).files.values()).values)


def specs(values: Any) -> Iterator[Any]:
    """Yield what an engine's options say of drafting."""
    for key, value in values.get("engine", {}).items():
        if key in ("speculative_config", "speculative-config"):
            yield json.loads(value) if isinstance(value, str) else value
        elif key == "speculative-num-draft-tokens":  # SGLang counts the token that needs no draft, too
            yield {"num_speculative_tokens": value - 1}


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_files_are_those_of_the_group_and_its_parents_in_the_inventorys_order(inventory: str) -> None:
    groups, children = built(inventory)
    listed = {name for name in catalog.names() if catalog.profile(name).inventory == inventory}
    assert listed == groups - WITHOUT_A_MODEL
    for name in listed:
        assert list(catalog.profile(name).files) == [f"{group}.yml" for group in chain(name, children)]


def test_every_shipped_file_belongs_to_a_profile_and_says_what_is_on_disk() -> None:
    stems = {path.stem for path in (ROOT / "group_vars").glob("*.yml")} - SITE_FILES
    assert catalog.group_names() == stems
    for name in catalog.names():
        for file, text in catalog.profile(name).files.items():
            assert text == (ROOT / "group_vars" / file).read_text()


def test_every_profile_with_figures_is_in_the_catalogue_and_the_other_way_round() -> None:
    assert {row["name"] for row in table("measured")["profiles"]} == set(catalog.names())


@pytest.mark.parametrize("name", catalog.names())
def test_a_profile_says_of_its_files_what_the_settings_say(name: str) -> None:
    one, values = catalog.profile(name), values_of(name)
    settings = HostSettings.model_validate(values)
    assert settings.model
    assert (one.model, one.hosts) == (settings.model.repository, settings.hosts)
    assert (one.engine, one.version) == (PRODUCTS[settings.engine_kind], settings.version.removeprefix("v"))
    if "hardware" in values:
        hardware = settings.hardware
        columns = (one.machine, one.gpu_models, one.gpu_count, one.architecture)
        assert columns == (hardware.machine, hardware.gpu_models, hardware.gpu_count, hardware.architecture)
    assert one.gpu_models
    assert set(one.gpu_models) == {row["gpu"] for row in table("measured")["profiles"] if row["name"] == name}
    assert one.source
    assert one.seen_on


@pytest.mark.parametrize("name", catalog.names())
def test_drafting_is_what_the_engines_options_say(name: str) -> None:
    drafting = catalog.profile(name).drafting
    found = list(specs(values_of(name)))
    assert bool(drafting) == bool(found)
    for spec in found:
        keys = ("max_draft_len", "num_speculative_tokens", "num_nextn_predict_layers")
        tokens = next(spec[key] for key in keys if key in spec)
        assert drafting.endswith(f", {tokens} token{'s' if tokens > 1 else ''}")


def test_nothing_is_said_to_have_been_seen_before_the_page_of_real_hardware_names_it() -> None:
    page = (ROOT / "docs" / "real-hardware.md").read_text()
    for name in catalog.names():
        assert catalog.profile(name).seen_on == catalog.NOTHING or f"`{name}`" in page


@pytest.mark.parametrize(
    ("host", "first", "missing"),
    [
        (("NVIDIA B200", 8, "x86_64"), "b200_eagle3_v2", "gb200_tray"),
        (("NVIDIA GB200", 4, "aarch64"), "gb200_tray_stable", "gb200"),
        (("NVIDIA H200", 8, "x86_64"), "h200_vllm", "b200"),
        (("NVIDIA GB10", 1, "aarch64"), "dgx_spark_eagle3", "low_latency"),
        (("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 1, "x86_64"), "rtx_pro_6000_vllm_eagle3", "b200"),
    ],
)
def test_profiles_that_fit_a_host_best_first(host: tuple[str, int, str], first: str, missing: str) -> None:
    found = catalog.fitting(*host)
    assert found[0] == first
    assert missing not in found
    assert len(found) == len(set(found))


def test_a_host_with_less_or_of_another_architecture_gets_what_fits_it() -> None:
    assert set(catalog.fitting("NVIDIA B200", 1, "x86_64")) == {"low_latency", "low_latency_speculative"}
    assert "b200" not in catalog.fitting("NVIDIA B200", 8, "aarch64")
    assert catalog.fitting("NVIDIA H100 80GB HBM3", 8, "x86_64") == ()
    assert catalog.fitting("a GPU of tomorrow", 8, "x86_64") == ()


def test_a_pair_of_hosts_comes_after_what_serves_on_one_and_what_fails_is_left_out() -> None:
    hosts = [catalog.profile(name).hosts for name in catalog.fitting("NVIDIA GB10", 1, "aarch64")]
    assert (hosts[0], hosts[-1]) == (1, 4)
    assert hosts == sorted(hosts)
    assert "rtx_pro_6000_sglang" not in catalog.fitting("RTX PRO 6000", 1, "x86_64")
    assert "rtx_pro_6000_sglang" in catalog.for_gpu("RTX PRO 6000")


def test_the_hash_is_of_names_texts_and_their_order() -> None:
    one = {"a.yml": "x: 1\n", "b.yml": "y: 2\n"}
    others = ({"b.yml": "y: 2\n", "a.yml": "x: 1\n"}, {"a.yml": "x: 1\ny: 2\n"}, {**one, "b.yml": "y: 3\n"})
    assert len({sha256_of(one), *map(sha256_of, others)}) == 4
    assert catalog.profile("h200_vllm").sha256 == sha256_of(catalog.profile("h200_vllm").files)


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        catalog.profile("b100")
