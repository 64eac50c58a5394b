"""Makes presets of a run: the settings of each variant that it proved, their figures, and what they ran on. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rackwright.profiles.presets import Preset, PresetCell
from rackwright.settings.host_settings import EndpointSettings
from rackwright_bench.figures.figures import Measured
from rackwright_bench.proven.shareable import shareable_settings
from rackwright_bench.proven.winners import Winner
from rackwright_bench.record import Bench, called
from rackwright_bench.variants.context import context_of
from rackwright_engines.fit.gpu import gpu_type
from rackwright_engines.version import bare

DATE = len("2026-01-31")
FIGURES = 4
"""Figures that count of a number, which people read."""


@dataclass(frozen=True)
class Proof:
    """A run's words of one variant."""

    variant: str
    sentence: str
    winners: Mapping[str, Winner]
    """Of the cells in which its settings are the ones to take."""
    bounds: tuple[str, ...] = ()


def preset_of(
    bench: Bench, proof: Proof, endpoint: EndpointSettings, names: Collection[str]
) -> tuple[str, Preset] | None:
    """Return a preset and its name; None where the record does not say what it was measured on.

    endpoint: the variant's, pinned. names: of hosts and addresses of the inventory, which have no place there.
    """
    conditions = bench.variants.get(proof.variant, {})
    cells = {name: one for name in _cells(conditions) if (one := _cell(bench, proof, conditions, name)) is not None}
    if not conditions.get("gpus") or not cells or endpoint.model is None:
        return None
    settings, left_out = shareable_settings(endpoint, names)
    version = bare(endpoint.version)
    preset = Preset(
        model=endpoint.model.repository,
        gpu=str(conditions["gpus"][0]),
        gpus=int(conditions["gpu_count"]),
        engine=endpoint.engine_kind,
        version=version,
        driver=str(conditions.get("driver", "")),
        date=str(conditions["time"])[:DATE],
        run=bench.id,
        suite=str(conditions["suite"]),
        rounds=max(len(bench.cells[called(name, proof.variant)].rounds) or 1 for name in cells),
        variant=proof.variant,
        proof=proof.sentence,
        bounds=list(proof.bounds),
        context=context_of(endpoint),
        cells=cells,
        settings=settings,
        left_out=left_out,
    )
    return preset_name(preset), preset


def preset_name(preset: Preset) -> str:
    """`gpt-oss-120b-1x-rtx-pro-6000-vllm-eagle3`: the same shape, engine and variant have the same name."""
    product = gpu_type(preset.gpu)
    parts = (preset.model.rpartition("/")[2], f"{preset.gpus}x", product.name if product else preset.gpu)
    text = "-".join([*parts, preset.engine, preset.variant]).lower()
    return re.sub(r"[^a-z0-9._]+", "-", text).strip("-._")[:128]


def _cells(conditions: Mapping[str, Any]) -> list[str]:
    suite = conditions.get("settings", {})
    return [f"{dataset}.{arrival}" for dataset in suite.get("datasets", ()) for arrival in suite.get("arrivals", ())]


def _cell(bench: Bench, proof: Proof, conditions: Mapping[str, Any], name: str) -> PresetCell | None:
    measured = bench.cells.get(called(name, proof.variant))
    if measured is None or measured.failed or not measured.requests:
        return None
    pattern, winner = conditions["settings"]["arrivals"][name.rpartition(".")[2]], proof.winners.get(name)
    share = {} if winner is None else _share(winner)
    return PresetCell(
        input=max(1, round(measured.input_tokens)),
        output=max(1, round(fmean(request.tokens for request in measured.requests))),
        concurrency=int(pattern["concurrency"]),
        rate=pattern.get("rate"),
        **_figures(measured),
        **share,
    )


def _figures(measured: Measured) -> dict[str, float]:
    values = {
        "output_rate": measured.output_rate,
        "total_rate": measured.total_rate,
        "ttft_p50": measured.at("ttft", 50),
        "ttft_p95": measured.at("ttft", 95),
        "itl_p50": measured.at("itl", 50),
    }
    return {name: shortened(value) for name, value in values.items()}


def _share(winner: Winner) -> dict[str, Any]:
    ratio = winner.ratio
    if ratio is None:
        return {"proven": True}
    bounds = {"low": ratio.low, "high": ratio.high} if ratio.is_bounded else {}
    numbers = {name: shortened(value) for name, value in {"share": ratio.value, **bounds}.items()}
    return {**numbers, "against": winner.against, "proven": True}


def shortened(value: float) -> float:
    """Return a number with the figures that count."""
    return float(f"{value:.{FIGURES}g}")


def names_of_site(entries: Sequence[tuple[str, Mapping[str, Any]]]) -> set[str]:
    """Return names and addresses of hosts, with their parts before the first dot. entries: host and its data."""
    addresses = {str(data["ssh_hostname"]) for _, data in entries if data.get("ssh_hostname")}
    found = {name for name, _ in entries} | addresses
    return found | {short for name in found if not (short := name.partition(".")[0]).isdigit()}
