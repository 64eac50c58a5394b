"""Ways in which an engine takes its clients' key, as data: by a file that root alone reads (DECISIONS 10).

A command line and an environment show in `ps`, in `docker inspect` and in the unit; an engine that takes a key in no
other way is refused one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rackwright.engines.tables import table
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.data import PRODUCTS
from rackwright_engines.finding import Finding
from rackwright_engines.version import bare, not_before

LOGGING_FILE = "logging.json"
"""The release's file that keeps an engine from writing its key into its log."""
_CLOSED = "give no key, keep `allow_from` narrow, and let a proxy ask for keys (docs/how-to/api-key.md)"


def check_api_key(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Yield what keeps an endpoint from asking for its key."""
    if endpoint.api_key is None:
        return
    way = table("api_key")[endpoint.engine_kind]
    product, version = PRODUCTS[endpoint.engine_kind], bare(endpoint.version)
    if none := way.get("none"):
        yield Finding(("api_key",), f"{none}: {_CLOSED}", link=way["source"], code="RW0323")
    elif not not_before(version, way["since"]):
        text = f"{product} reads a key from a file from {way['since']} on, not in {version}: {_CLOSED}"
        yield Finding(("api_key",), text, link=way["source"], code="RW0323")
    else:
        yield from _clashes(endpoint, way)


def _clashes(endpoint: EndpointSettings, way: Mapping[str, Any]) -> Iterator[Finding]:
    for row in way["clashes"]:
        [(section, name)] = [(key, value) for key, value in row.items() if key != "why"]
        if name in getattr(endpoint, section):
            yield Finding((section, name), f"does not go with api_key: {row['why']}; leave one out", code="RW0323")
    variable = way["logging"]
    if quiet_loggers(endpoint) and variable in endpoint.environment:
        text = f"does not go with api_key: Rackwright sets {variable}, since this version logs its key; leave one out"
        yield Finding(("environment", variable), text, link=way["source"], code="RW0323")


def quiet_loggers(endpoint: EndpointSettings) -> tuple[str, ...]:
    """Return the loggers that would write the endpoint's key at its start."""
    way = table("api_key")[endpoint.engine_kind]
    until = way.get("until")
    if endpoint.api_key is None or (until and not_before(bare(endpoint.version), until)):
        return ()
    return tuple(way.get("logs", ()))


def quiet(endpoint: EndpointSettings, folder: str) -> tuple[dict[str, str], dict[str, str]]:
    """Environment and files by which an engine keeps its key out of its log; empty where it does so without them.

    folder: where the engine sees the files.
    """
    if not quiet_loggers(endpoint):
        return {}, {}
    variable = table("api_key")[endpoint.engine_kind]["logging"]
    return {variable: f"{folder}/{LOGGING_FILE}"}, {LOGGING_FILE: _logging_config(endpoint)}


def _logging_config(endpoint: EndpointSettings) -> str:
    """Return a `logging` configuration as the engine's own, without the loggers that would write the key."""
    level = str(endpoint.engine.get("log-level", "info")).upper()
    speaks = {"handlers": ["plain"], "level": level, "propagate": False}
    spoken = dict.fromkeys(table("api_key")[endpoint.engine_kind]["speaks"], speaks)
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": "%(levelname)s %(asctime)s [%(name)s:%(lineno)d] %(message)s"}},
        "handlers": {"plain": {"class": "logging.StreamHandler", "formatter": "plain", "stream": "ext://sys.stdout"}},
        "loggers": spoken | {name: {"level": "WARNING"} for name in quiet_loggers(endpoint)},
    }
    return json.dumps(config, indent=1) + "\n"


def key_option(endpoint: EndpointSettings) -> str:
    """Return the key's name in the engine's YAML; empty where the endpoint asks for none."""
    return str(table("api_key")[endpoint.engine_kind]["option"]) if endpoint.api_key is not None else ""
