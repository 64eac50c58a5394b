"""Names of the engines' counters of their work. Pure."""

from __future__ import annotations

from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.load_counters import ABSENT, COUNTERS, LoadCounters
from rackwright_engines.metrics import scrape


def counters_row(endpoint: EndpointSettings, base: str) -> str:
    """Return the URL of an endpoint's metrics and their names, as the host's script takes them. base: its URL there.

    TensorRT-LLM's /metrics is never read: it is a JSON list, and reading takes its rows from every other reader.
    """
    names, path = COUNTERS.get(endpoint.engine_kind, LoadCounters()), scrape(endpoint).path
    return " ".join([f"{base}{path}" if path else ABSENT, names.tokens, names.running, names.waiting])
