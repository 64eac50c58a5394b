"""Names of `--compare`: settings of the host, each with another endpoint. Pure.

`settings`: as group_vars have it. `baseline`: the same without its draft. The name of its way of drafting (`eagle3`):
as group_vars have it, too. A key of `variants` in the suite's file: settings of the endpoint over its own. Any other is
one of variants/ready.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.concerns.endpoint.full_gate import drafting_of
from rackwright.loading.host import InventoryHost
from rackwright.loading.load import overlaid
from rackwright.messages import SettingsError
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.origin import Origin
from rackwright_bench.suites.suite import Suite
from rackwright_bench.variants.ready import BASE, groups, ready_keys, ready_names
from rackwright_engines.nearest import nearest

BASELINE, AS_SET = BASE, "settings"
DRAFTS = ("speculative", "decoding-type")
"""Beginnings of the engines' options for drafting, hyphens for underscores."""


def names_of(text: str) -> list[str]:
    """Return the names of `--compare A,B`, the first being what the others are compared with. Raises SettingsError."""
    names = spelled_out(text)
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise SettingsError(
            f"--compare {text}: must be two or more different names with commas between them, as "
            f"{BASELINE},{AS_SET}, or one of {' and '.join(groups())}; nothing was measured",
            code="RW1530",
        )
    return names


def spelled_out(text: str) -> list[str]:
    """Return the names of `A,B`, those of a group in its place; what two groups share is there once."""
    found = list[str]()
    for one in (name.strip() for name in text.split(",")):
        found += [name for name in groups()[one] if name not in found] if one in groups() else [one]
    return found


def is_of_group(name: str, text: str) -> bool:
    """Return True where a name is there only because a group of `A,B` has it, so that it may be left out."""
    return name not in [one.strip() for one in text.split(",")]


def refuse_groups(entry: InventoryHost, endpoint: str) -> None:
    """Raise SettingsError for an endpoint that several hosts serve together."""
    if entry.settings.all_endpoints[endpoint].size > 1:
        raise SettingsError(
            f"{entry.name} {endpoint}: several hosts serve it together, and --compare tries variants on one host "
            "alone; nothing was measured; next: measure it without --compare, roll the other release out, and `bench "
            "compare`",
            code="RW1534",
        )


def variant_of(name: str, entry: InventoryHost, endpoint: str, suite: Suite, file: str) -> HostSettings:
    """Return the host's settings for a variant. file: the suite's, for messages. Raises SettingsError."""
    current = entry.settings.all_endpoints[endpoint]
    drafting = drafting_of(current)
    if name in suite.variants:
        return _named(entry, endpoint, suite.variants[name], file)
    if name in (AS_SET, drafting):
        return entry.settings
    if name == BASELINE:
        return _without_draft(entry.settings, endpoint)
    if (keys := ready_keys(name, current)) is not None:
        return _named(entry, endpoint, keys, f"--compare {name}")
    names = [*suite.variants, AS_SET, BASELINE, *([drafting] if drafting else []), *ready_names()]
    raise SettingsError(
        f"--compare: missing variant {name}{nearest(name, names)}: {', '.join(names)}; next: write it under "
        f"`variants` in the suite's file ({file}); nothing was measured",
        code="RW1531",
    )


def _named(entry: InventoryHost, endpoint: str, keys: Mapping[str, Any], file: str) -> HostSettings:
    overrides: Mapping[str, Any] = {"endpoints": _listed(entry, endpoint, keys)} if entry.settings.endpoints else keys
    return overlaid(entry, overrides, Origin(file)).settings


def _listed(entry: InventoryHost, endpoint: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """All endpoints as they are listed, with one of them changed."""
    listed = {name: dict(settings_of) for name, settings_of in entry.settings.endpoints.items()}
    listed[endpoint] = {**listed[endpoint], **keys}
    return listed


def _without_draft(settings: HostSettings, endpoint: str) -> HostSettings:
    overrides: dict[str, Any] = {"draft": None, "engine": _plain(settings.engine)}
    if settings.endpoints:
        # What all endpoints share, the others must set themselves.
        shared = {key: value for key, value in settings.engine.items() if _is_drafting(key)}
        listed = {
            name: {**keys, "engine": {**shared, **keys.get("engine", {})}} for name, keys in settings.endpoints.items()
        }
        listed[endpoint] |= {"draft": None, "engine": _plain(listed[endpoint]["engine"])}
        overrides = {"endpoints": listed, "engine": _plain(settings.engine)}
    made = settings.model_copy(update=overrides)
    if _still_drafts(made.all_endpoints[endpoint]):
        raise SettingsError(
            f"--compare {BASELINE}: endpoint {endpoint} drafts by its `arguments`, which cannot be "
            f"distinguished from others; next: write {BASELINE} under `variants` in the suite's file, with `arguments` "
            "without them",
            code="RW1532",
        )
    return made


def _plain(engine: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in engine.items() if not _is_drafting(key)}


def _is_drafting(key: str) -> bool:
    return key.lstrip("-").replace("_", "-").startswith(DRAFTS)


def _still_drafts(endpoint: EndpointSettings) -> bool:
    return bool(drafting_of(endpoint)) or any(
        argument.startswith("--") and _is_drafting(argument) for argument in endpoint.arguments
    )


def on_trial(settings: HostSettings, endpoint: str) -> HostSettings:
    """Return the same, so that a host waits for the message of the bench, and never commits on its own."""
    gate = settings.all_endpoints[endpoint].gate.model_copy(update={"level": "full"})
    listed: dict[str, Any] = {name: dict(keys) for name, keys in settings.endpoints.items()}
    if endpoint in listed:
        listed[endpoint]["gate"] = gate.model_dump()
    return settings.model_copy(update={"gate": gate, "endpoints": listed})
