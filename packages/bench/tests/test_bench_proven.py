"""The proof of a comparison, cell by cell, and the preset that is made of it: nothing private gets into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.profiles.presets import PRESETS_FILE, keep_presets, load_presets
from rackwright.settings.host_settings import HostSettings
from rackwright_bench.figures.figures import Measured, Request, as_json
from rackwright_bench.proven.making import Proof, names_of_site, preset_of
from rackwright_bench.proven.shareable import is_private_image, shareable_settings
from rackwright_bench.proven.winners import Winner, winners
from rackwright_bench.record import bench_of
from tests.unit.test_advise_own import condition_event

AT = {"s.one": 1, "s.many": 32}
FAST, EVEN, SLOW = [1.40, 1.41, 1.39], [0.9, 1.0, 1.1], [0.8, 0.81, 0.79]


def cell(rate: float, marks: tuple[str, ...] = ()) -> Measured:
    rows = tuple(Request(50, 5, 500, number + 1, 1024) for number in range(10))
    return Measured(rows, 10240 / rate, input_tokens=1024.0, marks=marks)


def found(**shares: tuple[list[float], list[float]]) -> dict[str, dict[str, list[Measured]]]:
    """Make rounds of a baseline, and of variants that have these shares of it in both cells."""
    base = {name: [cell(100)] * 3 for name in AT}
    return {
        "baseline": base,
        **{
            name: {c: [cell(100 * share) for share in rounds] for c, rounds in zip(AT, both, strict=True)}
            for name, both in shares.items()
        },
    }


def won(**shares: tuple[list[float], list[float]]) -> dict[str, str]:
    return {cell: one.variant for cell, one in winners(found(**shares), AT).items()}


def test_a_cell_has_a_winner_where_a_whole_interval_says_so() -> None:
    assert won(eagle3=(SLOW, FAST)) == {"s.one": "baseline", "s.many": "eagle3"}
    assert won(eagle3=(EVEN, EVEN)) == {}
    assert won(a=(FAST, SLOW), b=([2.0, 2.01, 1.99], SLOW)) == {"s.one": "b", "s.many": "baseline"}
    assert won(a=(SLOW, SLOW), b=(EVEN, EVEN)) == {}, "one of the others may be as fast as the first one"


def test_one_round_proves_no_winner() -> None:
    assert won(eagle3=([1.4], [2.0])) == {}


def test_a_first_one_that_wins_has_its_share_of_the_best_other() -> None:
    one = winners(found(a=(SLOW, SLOW), b=([0.5, 0.5, 0.5], SLOW)), AT)["s.one"]
    assert (one.variant, one.against) == ("baseline", "a")
    assert one.ratio is not None
    assert one.ratio.low < one.ratio.value < one.ratio.high
    assert one.ratio.value == pytest.approx(1 / 0.8, rel=0.01)


def test_a_doubtful_cell_proves_nothing() -> None:
    rounds = found(eagle3=(FAST, FAST))
    rounds["eagle3"]["s.one"][1] = cell(141, marks=("1 request of other clients",))
    assert list(winners(rounds, AT)) == ["s.many"]


# -- what a file that people commit may hold

SECRET = "sk-site-0123456789abcdef"
VLLM: dict[str, Any] = {
    "engine_kind": "vllm",
    "image": "vllm/vllm-openai:v0.14.1",
    "model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b", "directory": "acme-llm"},
    "draft": {"repository": "nvidia/gpt-oss-120b-Eagle3-throughput", "mount": "/config/models/eagle3"},
    "api_key": SECRET,
    "port": 9321,
    "bind": "10.20.30.40",
    "allow_from": ["10.20.0.0/16"],
    "drain_hook": ["/opt/acme/drain"],
    "endpoint_name": "acme-chat",
    "environment": {
        "VLLM_LOGGING_LEVEL": "INFO",
        "OTEL_ENDPOINT": "http://otel.acme.example:4317",
        "LOGS": "/srv/acme/l",
    },
    "engine": {
        "max-num-seqs": 64,
        "served-model-name": "acme-chat",
        "speculative-config": '{"model":"/config/models/eagle3","num_speculative_tokens":1,"method":"eagle3"}',
        "chat-template": "/srv/acme/template.jinja",
        "kv-transfer-config": {"kv_role": "both", "address": "gpu-03.acme.example"},
        "compilation-config": {"cudagraph_capture_sizes": [1, 2, 4], "cudagraph_mode": "FULL"},
    },
    "arguments": ["--enable-auto-tool-choice"],
}


def shared(**more: Any) -> tuple[dict[str, Any], list[str]]:
    endpoint = HostSettings.model_validate({**VLLM, **more}).all_endpoints["acme-chat"]
    return shareable_settings(endpoint, {"gpu-03", "b200-01.acme.example"})


def test_settings_that_decide_the_figures_are_kept_as_group_vars_have_them() -> None:
    settings, left_out = shared()
    assert settings == {
        "engine_kind": "vllm",
        "image": "vllm/vllm-openai:v0.14.1",
        "model": {"repository": "openai/gpt-oss-120b", "mount": "/config/models/gpt-oss-120b"},
        "draft": {"repository": "nvidia/gpt-oss-120b-Eagle3-throughput", "mount": "/config/models/eagle3"},
        "engine": {
            "max-num-seqs": 64,
            "speculative-config": VLLM["engine"]["speculative-config"],
            "kv-transfer-config": {"kv_role": "both"},
            "compilation-config": {"cudagraph_capture_sizes": [1, 2, 4], "cudagraph_mode": "FULL"},
        },
        "arguments": ["--enable-auto-tool-choice"],
        "environment": {"VLLM_LOGGING_LEVEL": "INFO"},
    }
    assert left_out == [
        "engine.chat-template",
        "engine.kv-transfer-config.address",
        "environment.LOGS",
        "environment.OTEL_ENDPOINT",
    ]
    HostSettings.model_validate(settings)


@pytest.mark.parametrize(
    "words",
    [
        ["--host", "b200-01.acme.example"],
        ["--otlp-traces-endpoint=grpc://otel:4317"],
        ["--middleware", "/srv/acme/x.py"],
        ["--master-addr", "10.20.30.40"],
        ["--head", "gpu-03"],
    ],
)
def test_a_command_line_with_a_private_word_is_left_out_whole(words: list[str]) -> None:
    settings, left_out = shared(arguments=words)
    assert "arguments" not in settings
    assert "arguments" in left_out


def test_models_of_a_folder_and_images_of_an_own_registry_are_named_as_missing() -> None:
    model = {"repository": "acme/secret-tune", "mount": "/config/models/m", "path": "/mnt/acme/m"}
    settings, left_out = shared(image="registry.acme.example:5000/vllm/vllm-openai:v0.14.1", model=model)
    assert "image" not in settings
    assert "path" not in settings["model"]
    assert {"image", "model.path"} <= set(left_out)
    assert [
        is_private_image(one) for one in ("nvcr.io/nvidia/x:1", "lmsysorg/sglang:v1", "localhost/x:1", "h:5000/x:1")
    ] == [
        False,
        False,
        True,
        True,
    ]


def test_names_of_the_site_are_its_hosts_and_addresses() -> None:
    entries = [("b200-01.acme.example", {"ssh_hostname": "10.1.2.3"}), ("gpu-03", {})]
    assert names_of_site(entries) == {"b200-01.acme.example", "b200-01", "10.1.2.3", "gpu-03"}


# -- the preset


def record(*conditions: dict[str, Any]) -> list[dict[str, Any]]:
    begin = {"kind": "begin", "purpose": "bench", "compare": "baseline,eagle3", "inventory": "inventory/acme.py"}
    rows = [
        {"kind": "cell", "name": f"{name}:s.high", "round": number, "text": "", "measured": as_json(cell(rate))}
        for name, rates in (("baseline", (100, 101)), ("eagle3", (140, 142)))
        for number, rate in enumerate(rates, 1)
    ]
    return [begin, *conditions, *rows]


SUITE = {
    "datasets": {"s": {"kind": "random", "input": 1024, "output": 1024}},
    "arrivals": {"high": {"concurrency": 32, "requests": 10}},
}


def test_a_preset_says_what_was_measured_on_what_and_holds_nothing_private(tmp_path: Path) -> None:
    more = {
        "settings": SUITE,
        "suite": "acme",
        "driver": "580.65.06",
        "host": "gpu-03.acme.example",
        "endpoint": "acme-chat",
    }
    events = record(*(condition_event("a", variant=name, **more) for name in ("baseline", "eagle3")))
    endpoint = HostSettings.model_validate(VLLM).all_endpoints["acme-chat"]
    proof = Proof("eagle3", "eagle3 wins", {"s.high": Winner("eagle3", "baseline")}, ("ttft_p95 <= 500",))
    made = preset_of(bench_of("20261127-100000-bench", events), proof, endpoint, {"gpu-03"})
    assert made is not None
    name, preset = made
    assert name == "gpt-oss-120b-1x-rtx-pro-6000-vllm-eagle3"
    assert (preset.gpus, preset.engine, preset.version, preset.driver) == (1, "vllm", "0.14.1", "580.65.06")
    assert (preset.date, preset.rounds, preset.context, preset.bounds) == ("2026-11-23", 2, 131072, ["ttft_p95 <= 500"])
    figures = preset.cells["s.high"]
    assert (figures.input, figures.output, figures.concurrency, figures.proven) == (1024, 1024, 32, True)
    assert (figures.output_rate, figures.ttft_p95) == (141.0, 50.0)
    keep_presets(tmp_path / PRESETS_FILE, {name: preset})
    assert load_presets(tmp_path / PRESETS_FILE) == {name: preset}
    text = yaml.safe_dump(yaml.safe_load((tmp_path / PRESETS_FILE).read_text())["presets"])
    for private in (
        SECRET,
        "gpu-03",
        "acme-chat",
        "10.20.",
        "acme.example",
        "/srv",
        "/opt",
        "9321",
        "acme-llm",
        "acme.py",
    ):
        assert private not in text, private
