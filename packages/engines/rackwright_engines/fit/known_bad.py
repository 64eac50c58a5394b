"""Combinations of engine, version, GPU, model and draft that are known not to work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright_engines.data import table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.serving import GpuHost, Serving
from rackwright_engines.version import bare


def check_known_bad(endpoint: Serving, hardware: GpuHost) -> list[Finding]:
    """Return every known-bad row that an endpoint on such a host is."""
    return [_finding(row) for row in table("known_bad") if _fits(row, endpoint, hardware)]


def _fits(row: Mapping[str, Any], endpoint: Serving, hardware: GpuHost) -> bool:
    model = endpoint.model.repository if endpoint.model else ""
    draft = endpoint.draft.repository if endpoint.draft else ""
    return (
        row["engine"] == endpoint.engine_kind
        and bare(endpoint.version) in row["versions"]
        and row.get("model", model) == model
        and row.get("draft", draft) == draft
        and any(_is(row["gpu"], product) for product in hardware.gpu_models)
    )


def _is(gpu: str, product: str) -> bool:
    return gpu.lower() in product.lower()


def _finding(row: Mapping[str, Any]) -> Finding:
    path = ("draft", "repository") if "draft" in row else ("image",)
    level = Level(row["level"])
    return Finding(path, str(row["text"]), level, link=row["link"], code="RW0305", overridable=level is Level.REFUSE)
