"""Numbers that must fit together, within an endpoint, with its host, and between the endpoints of one host."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations

from rackwright.settings.model import EndpointSettings, HostSettings
from rackwright.settings.origin import KeyPath, dotted
from rackwright.settings.sections import Hardware
from rackwright_engines.api_key import check_api_key
from rackwright_engines.data import table
from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.drafts import check_draft
from rackwright_engines.fit.gpu import capabilities
from rackwright_engines.fit.group import check_group
from rackwright_engines.fit.known_bad import accepted, check_known_bad
from rackwright_engines.fit.length import check_length
from rackwright_engines.fit.memory import check_memory
from rackwright_engines.fit.other_engine import check_engine_of_image, image_facts
from rackwright_engines.fit.paths import check_paths
from rackwright_engines.fit.sizes import EngineOptions, plan_of
from rackwright_engines.fit.unified import check_unified
from rackwright_engines.in_clear import check_hooks, check_secrets, showable
from rackwright_engines.options.check import check_arguments, check_options
from rackwright_engines.options.exported import exported
from rackwright_engines.options.inexact import NEAR, WAY_OUT
from rackwright_engines.options.schema import VersionLine
from rackwright_engines.rights import check_rights
from rackwright_engines.version import not_before, parse_version

SIZES = ("max_batch_size", "max_num_tokens", "max_seq_len")
EVERYWHERE = frozenset({"0.0.0.0", "::"})
JUDGED = "engines"


def check_host(settings: HostSettings) -> list[Finding]:
    """Everything that is wrong with a host's endpoints, each at the key where it stands; nothing twice.

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
    """What is wrong with one endpoint on such hardware, with paths below the endpoint.

    name: for messages only; that of the endpoint which a replica comes from. Known-bad combinations are warnings
    with `accept_known_bad`. image: what the endpoint's own image accepts, where it was asked.
    """
    if (other := [*check_engine_of_image(endpoint)]) and not endpoint.accept_known_bad:
        return other  # each of its options would be refused as well, and by the wrong data
    plan = plan_of(endpoint)
    facts = image_facts(endpoint, hardware)
    found = check_options(plan.engine_kind, plan.version, endpoint.engine, image, facts, endpoint.arguments)
    meant = endpoint.accept_known_bad
    options = [(accepted(one) if meant and one.code == NEAR else one).below("engine") for one in found]
    words = check_arguments(plan.engine_kind, plan.version, endpoint.arguments, image, facts)
    bad = [*other, *check_known_bad(endpoint, hardware), *_moe(endpoint, plan, hardware)]
    return [
        *options,
        *((accepted(one) if meant and one.code == NEAR else one).below("arguments") for one in words),
        *_parallel(name, endpoint, plan, hardware),
        *_sizes(endpoint, plan),
        *check_group(endpoint, plan),
        *_command_line(endpoint),
        *check_api_key(endpoint),
        *check_secrets(endpoint),
        *check_rights(endpoint, hardware),
        *check_draft(endpoint, plan),
        *check_length(endpoint, plan),
        *check_memory(endpoint, plan, hardware),
        *check_unified(endpoint, plan, hardware),
        *check_paths(endpoint),
        *(map(accepted, bad) if endpoint.accept_known_bad else bad),
    ]


def _parallel(name: str, endpoint: EndpointSettings, plan: EngineOptions, hardware: Hardware) -> Iterator[Finding]:
    given = hardware.gpu_count if endpoint.gpus == "all" else len(endpoint.gpus)
    each = " on each of its hosts" if endpoint.size > 1 else ""
    sizes = " x ".join(str(size) for name, size in plan.sizes.items() if name == "tp" or size > 1)
    if given is not None and plan.gpus > given:
        text = f"{sizes} needs {plan.gpus} GPUs{each}, and endpoint {name} has {given}; {_smaller(plan, given)}"
        yield Finding(plan.path("tp"), text, code="RW0311")
    elif given is not None and plan.gpus < given:
        more = f"`replicas: {given}`" if plan.gpus == 1 else "serve another one on the rest under `endpoints:`"
        text = f"{sizes} leaves {given - plan.gpus} of {given} GPUs idle; set `gpus:` to the ones it uses, or {more}"
        yield Finding(plan.path("tp"), text, Level.WARN, code="RW0311")
    yield from _experts(plan)
    yield from _indexes(endpoint, hardware)


def _smaller(plan: EngineOptions, given: int) -> str:
    """The way out where there are too few GPUs: the sizes that fit, the experts' with them."""
    groups = math.prod(plan.sizes.values()) // plan.number("tp")
    tensor = given * plan.number("nodes") // groups
    if not tensor:
        return f"for {given} set it and {dotted(plan.path('pp'))} to 1"
    experts = plan.value("ep")
    uneven = isinstance(experts, int) and experts > 0 and tensor % experts
    also = f", and {dotted(plan.path('ep'))} to {tensor} with it" if uneven else ""
    return f"for {given} set it to {tensor}{also}"


def _experts(plan: EngineOptions) -> Iterator[Finding]:
    tensor, experts, shards = plan.number("tp"), plan.value("ep"), plan.value("moe_tp")
    if isinstance(experts, int) and experts > 0 and tensor % experts:
        yield Finding(plan.path("ep"), f"{experts} does not divide the tensor parallel size, {tensor}", code="RW0311")
    elif isinstance(experts, int) and isinstance(shards, int) and experts > 0 < shards and experts * shards != tensor:
        yield Finding(plan.path("ep"), f"{experts} x moe_tensor_parallel_size {shards} must be {tensor}", code="RW0311")


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


def _command_line(endpoint: EndpointSettings) -> Iterator[Finding]:
    """Which of YAML and command line wins has changed three times, so values belong into the YAML."""
    for index, word in enumerate(endpoint.arguments if endpoint.engine_kind == "tensorrt-llm" else ()):
        option = word.split("=")[0]
        if option in COMMAND_LINE:
            text = f"{option}: write it as engine.{COMMAND_LINE[option]}; whether it wins here depends on the version"
            yield Finding(("arguments", index), text, Level.WARN, code="RW0321")


COMMAND_LINE = {
    "--tp_size": "tensor_parallel_size",
    "--pp_size": "pipeline_parallel_size",
    "--ep_size": "moe_expert_parallel_size",
    "--max_batch_size": "max_batch_size",
    "--max_num_tokens": "max_num_tokens",
    "--max_seq_len": "max_seq_len",
    "--trust_remote_code": "trust_remote_code",
    "--kv_cache_free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "--free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "--kv_cache_dtype": "kv_cache_config.dtype",
}


def _moe(endpoint: EndpointSettings, plan: EngineOptions, hardware: Hardware) -> Iterator[Finding]:
    backend = plan.effective("moe")
    experts = {row["repository"] for row in table("models") if row.get("moe") == "mxfp4"}
    if endpoint.model is None or endpoint.model.repository not in experts or backend in (None, "AUTO"):
        return
    for capability in capabilities(hardware):
        row: Mapping[str, str] = table("moe").get(capability, {"fails": ""})
        if backend in row["fails"]:
            right = f"use {row['auto']}" if row["auto"] else "no backend does"
            text = f"{backend} does not run on compute capability {capability}: {right}; {WAY_OUT}"
            yield Finding(plan.path("moe"), text, link=row["link"], code="RW0305")


def placed(settings: HostSettings, name: str, finding: Finding) -> Finding:
    """A finding of one endpoint with its path below the host's settings, where that key stands."""
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
    """The name under which an endpoint, or the one that it is a replica of, stands in `endpoints`."""
    if not settings.endpoints:
        return settings.endpoint_name
    return name if name in settings.endpoints else name.rpartition("-")[0]


def _between(settings: HostSettings) -> Iterator[Finding]:
    for (left, one), (right, other) in combinations(settings.all_endpoints.items(), 2):
        if one.port == other.port and _overlap(one.address, other.address):
            text = f"endpoints {left} and {right} both take port {one.port}: give each its own `port:`"
            yield Finding(_own(settings, right, "port"), text, code="RW0312")
        shared = _shared(one, other)
        if shared:
            text = f"endpoints {left} and {right} both take {shared}: give each its own `gpus:`"
            yield Finding(_own(settings, right, "gpus"), text, code="RW0312")


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
