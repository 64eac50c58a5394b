"""Settings that a site has proven: the file that people read and commit, and what `rackwright advise` offers of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from rackwright.cli.advise import _print_own
from rackwright.cli.main import main
from rackwright.cli.shapes import WantedShape, shape_of
from rackwright.inspect.gpu_facts import GpuFacts, parse_gpu_facts
from rackwright.loading.host import InventoryHost
from rackwright.messages import SettingsError
from rackwright.profiles.offers import Shape, offer_heading, offer_reasons, offers
from rackwright.profiles.presets import PRESETS_FILE, Preset, PresetCell, keep_presets, load_presets
from rackwright.settings.host_settings import HostSettings
from rackwright_engines.advice import Load
from tests import texts

PRODUCT = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"
MODEL = "openai/gpt-oss-120b"
SHARE: dict[str, Any] = {"against": "baseline", "share": 1.4, "low": 1.31, "high": 1.5, "proven": True}
SETTINGS = {
    "engine_kind": "vllm",
    "image": "vllm/vllm-openai:v0.14.1",
    "model": {"repository": MODEL, "mount": "/config/models/gpt-oss-120b"},
}


def cell(concurrency: int, rate: float = 2643.0, **more: Any) -> PresetCell:
    figures = {"output_rate": rate, "total_rate": 2 * rate, "ttft_p50": 50.0, "ttft_p95": 80.0, "itl_p50": 5.0}
    return PresetCell(input=1024, output=1024, concurrency=concurrency, **figures, **more)


def preset(**more: Any) -> Preset:
    cells = {"random.low": cell(1, 90.0), "random.high": cell(32, **SHARE)}
    fields = {
        "model": MODEL,
        "gpu": PRODUCT,
        "gpus": 1,
        "engine": "vllm",
        "version": "0.14.1",
        "driver": "580.65.06",
        "date": "2026-11-27",
        "run": "20261127-100000-bench",
        "suite": "seed003",
        "rounds": 3,
        "variant": "eagle3",
        "proof": "eagle3 has the most tokens a second",
        "context": 131072,
        "cells": cells,
        "settings": SETTINGS,
    }
    return Preset(**{**fields, **more})


ASKED = Shape("RTX PRO 6000")
LOAD = Load(1024, 32)


# -- the file


def test_the_text_that_is_kept_is_read_again_and_replaces_the_former_one(tmp_path: Path) -> None:
    path = tmp_path / PRESETS_FILE
    keep_presets(path, {"b": preset(), "a": preset(gpus=2)})
    keep_presets(path, {"b": preset(rounds=5)})
    found = load_presets(path)
    assert found == {"a": preset(gpus=2), "b": preset(rounds=5)}
    text = path.read_text()
    assert text.startswith("# Written by `rackwright bench`")
    assert list(yaml.safe_load(text)["presets"]) == ["a", "b"], "sorted, so that equal presets are equal files"
    assert [one.name for one in tmp_path.iterdir()] == [PRESETS_FILE]


def test_a_file_that_people_have_edited_is_read_and_a_damaged_one_is_refused_and_left(tmp_path: Path) -> None:
    path = tmp_path / PRESETS_FILE
    assert load_presets(path) == {}
    keep_presets(path, {"a": preset()})
    path.write_text(path.read_text().replace("'2026-11-27'", "2026-11-27"))
    assert load_presets(path)["a"].date == "2026-11-27"
    for damaged in (
        "version: 2\n",
        "presets: [\n",
        "version: 1\npresets: {a: {gpus: 0}}\n",
        "version: 1\nhosts: [x]\n",
        "<<<<<<< HEAD\n",
    ):
        path.write_text(damaged)
        with pytest.raises(SettingsError) as caught:
            keep_presets(path, {"b": preset()})
        assert caught.value.code == "RW1054"
        assert "_Document" not in str(caught.value)
        assert path.read_text() == damaged


# -- what is offered


def names(presets: dict[str, Preset], shape: Shape = ASKED, load: Load = LOAD) -> list[str]:
    return [one.name for one in offers(presets, shape, load)]


def test_a_preset_is_offered_for_its_model_gpu_and_count_alone() -> None:
    presets = {"a": preset()}
    assert names(presets) == ["a"]
    assert names(presets, Shape(PRODUCT, "gpt-oss-120b", 1)) == ["a"]
    assert names(presets, replace(ASKED, model=MODEL)) == ["a"]
    assert names(presets, replace(ASKED, model="openai/gpt-oss-20b")) == []
    assert names(presets, replace(ASKED, gpus=2)) == []
    assert names(presets, Shape("B200")) == []


def test_a_preset_is_offered_where_it_was_proven_and_holds_the_prompt() -> None:
    presets = {"a": preset()}
    assert names(presets, load=Load(1024, 1)) == [], "at one request it was measured, and not proven"
    assert names({"a": preset(context=1500)}, load=Load(1024, 32, 1024)) == []


def paced(rate: float, **more: Any) -> PresetCell:
    return cell(32, **more).model_copy(update={"rate": rate})


def test_a_preset_that_is_proven_for_a_rate_alone_is_offered_with_it_after_the_others() -> None:
    waiting, mixed = preset(cells={"x": paced(8.0, **SHARE)}), {"random.low": cell(1, 90.0), "x": paced(8.0, **SHARE)}
    both = {"waiting": waiting, "mixed": preset(cells=mixed), "plain": preset(cells={"x": cell(8, 1.0, **SHARE)})}
    assert names(both) == ["plain", "mixed", "waiting"]
    (one,) = offers({"a": waiting}, ASKED, LOAD)
    load = texts.AT_A_RATE.format(rate=8, s="s", concurrency=32)
    assert load in next(iter(offer_reasons(one)))
    assert any(text.startswith(texts.RATE_ALONE) for text in offer_reasons(one))
    (plain,) = offers({"a": preset()}, ASKED, LOAD)
    assert not any("rate" in text for text in offer_reasons(plain))
    assert names({"a": preset(cells={"x": paced(8.0)})}) == [], "measured, and not proven"
    several = preset(cells={"slow": paced(2.0), "fast": paced(64.0, **SHARE)})
    assert [one.cell for one in offers({"a": several}, ASKED, LOAD)] == ["fast"], "of equal lengths the proven one"


def test_the_nearest_load_comes_first_and_then_the_fastest() -> None:
    slow, fast = (preset(cells={"x": cell(32, rate, **SHARE)}) for rate in (10.0, 20.0))
    near = preset(cells={"x": cell(16, 5.0, **SHARE)})
    assert names({"slow": slow, "fast": fast, "near": near}, load=Load(1024, 16)) == ["near", "fast", "slow"]
    (far,) = offers({"a": slow}, ASKED, Load(1024, 1))
    assert far.is_far


def test_the_text_for_another_engine_or_driver() -> None:
    here = replace(ASKED, engine="vllm", version="0.33.0", driver="590.48.01")
    (found,) = offers({"a": preset()}, here, LOAD)
    assert found.differences == (
        "the engine is vllm 0.33.0, and was vllm 0.14.1",
        "the driver is 590.48.01, and was 580.65.06",
    )
    (same,) = offers({"a": preset()}, replace(ASKED, engine="vllm", version="0.14.1", driver="580.65.06"), LOAD)
    assert same.differences == ()
    assert offer_heading(same).endswith("1 GPU): 2643.0 tokens/s, 1.40x (1.31 to 1.50) of baseline")


# -- as a user asks


WORDS = ["advise", "--gpu", "RTX PRO 6000", "--context", "1k", "--concurrency", "32"]


@pytest.fixture(autouse=True)
def no_runs_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKWRIGHT_RUNS", str(tmp_path / "runs"))


def test_the_text_of_presets_comes_before_what_others_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_presets(tmp_path / PRESETS_FILE, {"mine": preset(left_out=["environment.PROXY"], bounds=["ttft_p95 <= 500"])})
    assert main([*WORDS, "--site", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"proven by this site ({PRESETS_FILE}):"
    assert lines[1] == f"1. mine ({MODEL}, 1 GPU): 2643.0 tokens/s, 1.40x (1.31 to 1.50) of baseline"
    assert lines[2] == "     first token after 50 ms, p95 80 ms at 1024 tokens in, 1024 out, 32 at once"
    assert lines[3].startswith(
        f"     measured 2026-11-27: vllm 0.14.1 on 1 x {PRODUCT}, driver 580.65.06; suite seed003"
    )
    assert "     kept: ttft_p95 <= 500" in lines
    assert "     without private settings that were measured with: environment.PROXY" in lines
    assert any(row.startswith("2. rtx_pro_6000_vllm") for row in lines)
    assert "its settings, for group_vars/: rackwright advise --preset NAME" in lines


def test_what_serves_another_model_is_counted_and_not_ranked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = preset(model="acme/other", cells={"x": cell(32, 9000.0, **SHARE)})
    keep_presets(tmp_path / PRESETS_FILE, {"mine": preset(), "other": other, "wide": preset(gpus=2)})
    words = [*WORDS, "--site", str(tmp_path), "--model", "gpt-oss-120b", "--gpus", "1"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("1. mine ")
    command = "rackwright advise --gpu 'RTX PRO 6000' --model gpt-oss-120b --gpus 1 --context 1024 --concurrency 32"
    groups = f"1 preset {texts.OF_ANOTHER_MODEL}, 1 preset {texts.FOR_ANOTHER_COUNT} (wide), "
    assert lines[-1].startswith(f"{texts.NOT_RANKED}{groups}")
    assert f"1 profile {texts.KNOWN_NOT_TO_RUN} (rtx_pro_6000_sglang)" in lines[-1]
    assert lines[-1].endswith(texts.ALL_OF_THEM.format(command=f"{command} --site {tmp_path}"))
    assert not any("acme/other" in row for row in lines[:-1])
    assert main([*words, "--all"]) == 0
    everything = capsys.readouterr().out
    assert "other (acme/other, 1 GPU): 9000.0 tokens/s" in everything
    assert f"rtx_pro_6000_sglang (1 GPU): {texts.DOES_NOT_RUN}" in everything
    assert texts.NOT_RANKED not in everything
    assert main([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"]: row["ranked"] for row in rows["presets"]} == {"mine": True, "other": False, "wide": False}
    assert {row["profile"] for row in rows["profiles"] if not row["ranked"]} >= {"rtx_pro_6000_sglang", "low_latency"}


def test_the_next_command_names_the_inventory_where_its_hosts_have_a_file_of_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_presets(tmp_path / "rackwright.presets.x.yml", {"mine": preset()})
    wanted = WantedShape(ASKED, tmp_path, "rackwright.presets.x.yml", "a llm")
    monkeypatch.setattr("rackwright.cli.advise.wanted_shape", lambda _: wanted)
    assert main(WORDS) == 0
    assert "group_vars/: rackwright advise -i INVENTORY --preset NAME" in capsys.readouterr().out
    assert main([*WORDS, "--site", str(tmp_path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["presets"]
    assert (row["name"], row["preset"]["settings"]) == ("mine", SETTINGS)


def test_the_text_of_a_preset_is_settings_as_group_vars_have_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_presets(tmp_path / PRESETS_FILE, {"mine": preset(left_out=["environment.PROXY"])})
    assert main(["advise", "--preset", "mine", "--site", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert yaml.safe_load(text) == SETTINGS
    assert "set them too: environment.PROXY" in text
    assert main(["advise", "--preset", "mine2", "--site", str(tmp_path)]) == 1
    assert "did you mean mine?" in capsys.readouterr().err


def test_the_command_for_a_preset_in_a_file_of_another_name_has_the_inventory_that_names_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = offers({"mine": preset()}, ASKED, LOAD)
    for file, words in ((PRESETS_FILE, "advise --preset"), ("other.yml", "advise -i INVENTORY --preset")):
        _print_own(WantedShape(ASKED, Path(), file), found, [])
        assert f"rackwright {words} NAME" in capsys.readouterr().out


def test_a_proof_of_several_lines_stays_a_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_presets(tmp_path / PRESETS_FILE, {"mine": preset(proof="draft_1 wins\nhooks: {after: reboot}")})
    assert main(["advise", "--preset", "mine", "--site", str(tmp_path)]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == SETTINGS


def test_a_damaged_file_of_presets_is_named_and_the_rest_is_advised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / PRESETS_FILE).write_text("version: 7\n")
    assert main([*WORDS, "--site", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert "RW1054" in output.err
    assert output.out.startswith("1. rtx_pro_6000_vllm")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--gpu", "B200"], "RW1074"),
        (["--context", "8k", "--concurrency", "1"], "RW1064"),
        (["--preset", "x"], "RW1084"),
    ],
)
def test_what_is_missing_is_said(
    words: list[str], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", *words, "--site", str(tmp_path)]) == 1
    assert code in capsys.readouterr().err


# -- the shape of a host

NO_OPTIONS = SimpleNamespace(gpu="", model="", gpus=None)


def shape(facts: GpuFacts, options: Any = NO_OPTIONS, **settings: Any) -> Shape:
    entry = InventoryHost("a", (), {}, HostSettings.model_validate({**SETTINGS, **settings}), {}, root=Path())
    return shape_of(entry, entry.settings.all_endpoints["llm"], facts, options)


def test_a_host_says_its_shape() -> None:
    facts = parse_gpu_facts(["NVIDIA B200, 580.65.06"] * 8)
    assert facts == GpuFacts(("NVIDIA B200",) * 8, "580.65.06")
    assert shape(facts) == Shape("NVIDIA B200", MODEL, 8, "vllm", "0.14.1", "580.65.06")
    assert shape(facts, gpus=[0, 1]).gpus == 2
    assert shape(facts, SimpleNamespace(gpu="GB200", model="x", gpus=4)).gpus == 4


def test_a_host_that_does_not_answer_has_the_gpu_of_its_settings_or_none() -> None:
    assert shape(GpuFacts(), hardware={"gpu_models": ["B200"], "gpu_count": 8}).gpus == 8
    with pytest.raises(SettingsError) as caught:
        shape(GpuFacts())
    assert caught.value.code == "RW1094"
