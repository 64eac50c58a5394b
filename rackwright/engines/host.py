"""Numbers that must fit together, within an endpoint, with its host, and between the endpoints of one host."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from rackwright.engines.api_key import check_api_key
from rackwright.engines.exported import exported
from rackwright.engines.group import check_group
from rackwright.engines.in_clear import check_hooks, check_secrets, showable
from rackwright.engines.paths import check_paths
from rackwright.engines.rights import check_rights
from rackwright.engines.shm import check_shm
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.sections import Hardware
from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.check import check_serving, smaller
from rackwright_engines.fit.other_engine import check_engine_of_image
from rackwright_engines.fit.sizes import EngineOptions, plan_of
from rackwright_engines.key_path import KeyPath
from rackwright_engines.options.inexact import DECIDES
from rackwright_engines.options.schema import VersionLine
from rackwright_engines.version import not_before, parse_version

SIZES = ("max_batch_size", "max_num_tokens", "max_seq_len")
EVERYWHERE = frozenset({"0.0.0.0", "::"})
JUDGED = "engines"
WAY_OUT = "to deploy it anyway, set accept_known_bad: true"
"""Ends what is refused and yet can be deployed."""
NOT_ASKED = (
    "the image was not asked: a host that serves has no memory for it beside the GPU's; to drain it first: "
    "rackwright drain INVENTORY --limit HOST --reason TEXT, then rackwright check INVENTORY --in-image --limit HOST"
)


def check_host(settings: HostSettings) -> list[Finding]:
    """Return everything that is wrong with a host's endpoints, each at the key where it stands; nothing twice.

    Settings are judged once, with what their images have said by then.
    """
    if JUDGED not in settings.judged:
        settings.judged[JUDGED] = tuple(_judged(settings))
    return list(settings.judged[JUDGED])


def _judged(settings: HostSettings) -> list[Finding]:
    found = [
        placed(settings, name, finding)
        for name, endpoint in settings.all_endpoints.items()
        for finding in check_endpoint(
            _listed(settings, name), endpoint, settings.hardware, exported(settings, endpoint)
        )
    ]
    every = showable([*found, *_between(settings), *check_hooks(settings)])
    return [one for index, one in enumerate(every) if one not in every[:index]]


def check_endpoint(
    name: str, endpoint: EndpointSettings, hardware: Hardware, image: VersionLine | None = None
) -> list[Finding]:
    """Return what is wrong with one endpoint on such hardware, with paths below the endpoint.

    name: for messages only; that of the endpoint which a replica comes from. Known-bad combinations are warnings
    with `accept_known_bad`. image: what the endpoint's own image accepts, where it was asked.
    """
    judged = accepted if endpoint.accept_known_bad else offered
    other = [judged(one) for one in check_engine_of_image(endpoint)]
    if other and not endpoint.accept_known_bad:
        return other  # each of its options would be refused as well, and by the wrong data
    plan = plan_of(endpoint)
    found = [
        *check_serving(endpoint, hardware, image, NOT_ASKED if hardware.unified_memory else DECIDES),
        *_parallel(name, endpoint, plan, hardware),
        *_sizes(endpoint, plan),
        *check_group(endpoint, plan),
        *check_api_key(endpoint),
        *check_secrets(endpoint),
        *check_rights(endpoint, hardware),
        *check_shm(endpoint, hardware),
        *check_paths(endpoint),
    ]
    return [*other, *map(judged, found)]


def offered(finding: Finding) -> Finding:
    """Return the finding with the setting by which it can be deployed anyway."""
    return replace(finding, text=f"{finding.text}; {WAY_OUT}") if _may_pass(finding) else finding


def accepted(finding: Finding) -> Finding:
    """Return the finding for an endpoint with `accept_known_bad`."""
    return replace(finding, level=Level.WARN, right=None) if _may_pass(finding) else finding


def _may_pass(finding: Finding) -> bool:
    return finding.overridable and finding.level is Level.REFUSE


def _parallel(name: str, endpoint: EndpointSettings, plan: EngineOptions, hardware: Hardware) -> Iterator[Finding]:
    given = hardware.gpu_count if endpoint.gpus == "all" else len(endpoint.gpus)
    each = " on each of its hosts" if endpoint.size > 1 else ""
    sizes = " x ".join(str(size) for name, size in plan.sizes.items() if name == "tp" or size > 1)
    if given is not None and plan.gpus > given:
        text = f"{sizes} needs {plan.gpus} GPUs{each}, and endpoint {name} has {given}; {smaller(plan, given)}"
        yield Finding(plan.path("tp"), text, code="RW0311")
    elif given is not None and plan.gpus < given:
        more = f"`replicas: {given}`" if plan.gpus == 1 else "serve another one on the rest under `endpoints:`"
        text = f"{sizes} leaves {given - plan.gpus} of {given} GPUs idle; set `gpus:` to the ones it uses, or {more}"
        yield Finding(plan.path("tp"), text, Level.WARN, code="RW0311")
    yield from _indexes(endpoint, hardware)


def _indexes(endpoint: EndpointSettings, hardware: Hardware) -> Iterator[Finding]:
    if endpoint.gpus == "all":
        return
    if len(set(endpoint.gpus)) < len(endpoint.gpus):
        yield Finding(("gpus",), "names a GPU twice", code="RW0312")
    count = hardware.gpu_count or math.inf
    beyond = [index for index in endpoint.gpus if index >= count]
    if beyond:
        text = f"GPU {beyond[0]} need not be there: hardware.gpu_count is {count}, so only 0 to {count - 1} are sure"
        yield Finding(("gpus",), text, Level.WARN, code="RW0312")


def _sizes(endpoint: EndpointSettings, plan: EngineOptions) -> Iterator[Finding]:
    """1.1.0rc0's command line overrides the YAML's sizes by its own defaults, so they must be given twice."""
    old = (
        plan.engine_kind == "tensorrt-llm" and parse_version(plan.version) and not not_before(plan.version, "1.2.0rc0")
    )
    set_ = [key for key in SIZES if key in plan.options]
    if old and set_ and not endpoint.sizes_on_command_line:
        text = f"{plan.version} takes its command line's defaults over this; set sizes_on_command_line: true as well"
        yield Finding(("engine", set_[0]), text, Level.WARN, code="RW0319")
    if endpoint.sizes_on_command_line and plan.engine_kind == "tensorrt-llm" and not old:
        text = f"is for 1.1.0rc0 only: {plan.version} takes the sizes from engine; leave it out"
        yield Finding(("sizes_on_command_line",), text, Level.NOTE, code="RW0319")


def placed(settings: HostSettings, name: str, finding: Finding) -> Finding:
    """Return a finding of one endpoint with its path below the host's settings, where that key is set."""
    return finding.below(*_above(settings, name, finding.path))


def _above(settings: HostSettings, name: str, path: KeyPath) -> KeyPath:
    """`endpoints.NAME` where the endpoint itself has the key, nothing where it comes from the top level."""
    listed = _listed(settings, name)
    here: object = settings.endpoints.get(listed)
    for part in path[:-1] or path:
        if not isinstance(here, Mapping) or part not in here:
            return ()
        here = here[part]
    return ("endpoints", listed)


def _listed(settings: HostSettings, name: str) -> str:
    """Return the name in `endpoints` of an endpoint, or of the one that it is a replica of."""
    if not settings.endpoints:
        return settings.endpoint_name
    return name if name in settings.endpoints else name.rpartition("-")[0]


def _between(settings: HostSettings) -> Iterator[Finding]:
    for (first, one), (second, other) in combinations(settings.all_endpoints.items(), 2):
        if one.port == other.port and _overlap(one.address, other.address):
            text = f"endpoints {first} and {second} both take port {one.port}: give each its own `port:`"
            yield Finding(_own(settings, second, "port"), text, code="RW0312")
        shared = _shared(one, other)
        if shared:
            text = f"endpoints {first} and {second} both take {shared}: give each its own `gpus:`"
            yield Finding(_own(settings, second, "gpus"), text, code="RW0312")


def _own(settings: HostSettings, name: str, key: str) -> KeyPath:
    listed = _listed(settings, name)
    if listed not in settings.endpoints:
        return (key,)
    return ("endpoints", listed, key) if key in settings.endpoints[listed] else ("endpoints", listed)


def _overlap(one: str, other: str) -> bool:
    return one == other or one in EVERYWHERE or other in EVERYWHERE


def _shared(one: EndpointSettings, other: EndpointSettings) -> str:
    if one.gpus == "all" or other.gpus == "all":
        return "all GPUs" if one.gpus == other.gpus else f"GPU {(other if one.gpus == 'all' else one).gpus[0]}"
    both = sorted(set(one.gpus) & set(other.gpus))
    return f"GPU {', '.join(map(str, both))}" if both else ""
