"""Combinations of engine, version, GPU, model and draft that are known not to work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.settings.model import EndpointSettings
from rackwright.settings.sections import Hardware
from rackwright_engines.data import table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.options.inexact import WAY_OUT
from rackwright_engines.version import bare


def check_known_bad(endpoint: EndpointSettings, hardware: Hardware) -> list[Finding]:
    """Every known-bad row that an endpoint on such a host is."""
    return [_finding(row) for row in table("known_bad") if _fits(row, endpoint, hardware)]


def accepted(finding: Finding) -> Finding:
    """The finding for an endpoint with `accept_known_bad`."""
    return Finding(
        finding.path, finding.text.removesuffix(f"; {WAY_OUT}"), Level.WARN, None, finding.link, code=finding.code
    )


def _fits(row: Mapping[str, Any], endpoint: EndpointSettings, hardware: Hardware) -> bool:
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
    text = f"{row['text']}; {WAY_OUT}" if row["level"] == "refuse" else str(row["text"])
    return Finding(path, text, Level(row["level"]), link=row["link"], code="RW0305")
