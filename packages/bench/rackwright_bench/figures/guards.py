"""Causes of wrong measurements: refused, printed with the table, or a mark on the cell. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from rackwright.messages import counted
from rackwright.settings.host_settings import EndpointSettings
from rackwright_engines.quick_yaml import load_yaml

FORCED = "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"
"""Makes TensorRT-LLM count drafts as accepted that are wrong: every figure behind it is made up."""
FINISHED = "vllm:request_success"
"""vLLM's counter of requests that it has ended, by anybody."""
SLOWED = {0x08: "slowed by hardware", 0x20: "too hot", 0x40: "too hot", 0x80: "power brake"}
"""Bits of nvidia-smi's clocks_event_reasons.active that say that a GPU was slower than it can be."""


def forced(environment: Mapping[str, str]) -> str:
    """Return the reason to measure nothing with this environment of the container; else empty."""
    value = environment.get(FORCED)
    return "" if value is None else f"{FORCED}={value} is set in its environment: the engine makes its acceptance up"


@cache
def _switches() -> Mapping[str, Any]:
    text = (files("rackwright_bench") / "data" / "switches.yaml").read_text()
    found: Mapping[str, Any] = load_yaml(text)
    return found


def switches(endpoint: EndpointSettings) -> dict[str, str]:
    """Options that a reader of the table must know, in words: `prefix caching` to `on (the engine's default)`."""
    given = {**_flat(endpoint.engine), **dict(_words(endpoint.arguments))}
    return {row["name"]: _switch_text(row, given) for row in _switches()[endpoint.engine_kind]}


def _switch_text(row: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    without = ".".join(row.get("without", ())).replace("_", "-")
    if without and given.get(without):
        return "off"
    key = ".".join(row["key"]).replace("_", "-")
    if key in given:
        value = given[key]
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
    return f"{row['default']} (default)" if row["default"] != "the engine's choice" else str(row["default"])


def _flat(options: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in options.items():
        name = f"{above}{str(key).replace('_', '-')}"
        found |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found


def _words(arguments: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Options on a command line: `--name=value`, `--name value`, `--switch`."""
    for argument, following in pairwise((*arguments, "--")):
        if argument.startswith("--"):
            name, equals, value = argument.removeprefix("--").partition("=")
            yield name.replace("_", "-"), value if equals else True if following.startswith("--") else following


def others(grown: Mapping[str, float], sent: int) -> str:
    """Return the mark of other clients' requests, by vLLM's own count; empty where there were none or no count.

    sent: ours that were answered, the warm-up's included.
    """
    foreign = round(grown.get(FINISHED, sent)) - sent
    return f"{counted(foreign, 'request')} of other clients" if foreign > 0 else ""


def slowed(reasons: int) -> str:
    """Return the mark of a GPU that was slower than it can be, by the bits that were seen; empty where none was."""
    found = list(dict.fromkeys(text for bit, text in SLOWED.items() if reasons & bit))
    return f"a GPU was {', '.join(found)}" if found else ""
