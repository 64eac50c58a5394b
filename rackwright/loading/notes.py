"""Settings that are allowed, and still worth a warning: said by `rackwright check`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rackwright.engines.problems import engine_notes
from rackwright.loading.gateway_certificate import certificate_note
from rackwright.plan.reach import unreached_text
from rackwright.settings.gateway_limits import GIB, by_body, gateway_limits
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright_engines.finding import Level

BEFORE_AUTO = ("1.0", "1.1", "1.2")
"""TensorRT-LLM versions whose MoE backend is CUTLASS unless it is chosen; later ones choose by the GPU."""


def notes(settings: HostSettings, closes_ports: bool = True) -> list[str]:
    """Return warnings about one host's settings; endpoints that are warned of alike, as replicas are, in one.

    closes_ports: whether deploy.py calls firewall() for the host; otherwise who may reach a port is not ours to say.
    """
    every = settings.all_endpoints
    names_by_text: dict[str, list[str]] = {}
    for name, endpoint in every.items():
        for text in _endpoint(settings, endpoint):
            names_by_text.setdefault(text, []).append(name)
    of_endpoints = [
        f"endpoint{'s' if len(names) > 1 else ''} {', '.join(names)}: {text}" for text, names in names_by_text.items()
    ]
    return [
        *(_open_ports(every) if closes_ports else ()),
        *of_endpoints,
        *_without_peers(settings),
        *_gateway(settings),
        *engine_notes(settings, Level.WARN),
    ]


def _gateway(settings: HostSettings) -> Iterator[str]:
    """Yield what is worth a warning in the settings of a gateway, and of the endpoints behind it."""
    if not settings.is_gateway:
        return
    if not settings.backends:
        yield "gateway: no host of this inventory serves a model, so every request is refused"
    if not settings.gateway.tls:
        yield "gateway: `tls: false`, so keys and prompts are in clear in the network"
    yield from certificate_note(settings)
    for backend in settings.backends:
        if len(found := sorted({server.repository for server in backend.servers})) > 1:
            yield f"gateway: {backend.model} is {' and '.join(found)}, so answers differ by the host that gives them"
    if by_body(settings.gateway, settings.backends):
        most = gateway_limits(settings.gateway, settings.backends)
        yield (
            f"gateway: bodies are read for their model: {most.connections} connections x "
            f"{settings.gateway.body_limit} MiB, up to {most.memory / GIB:.1f} GiB of memory"
        )


def _open_ports(endpoints: Mapping[str, EndpointSettings]) -> Iterator[str]:
    open_ = {name: one.port for name, one in endpoints.items() if one.is_open}
    names, ports = ", ".join(open_), ", ".join(map(str, open_.values()))
    if len(open_) == 1:
        yield f"endpoint {names}: port {ports} is open to every network, as allow_from says any"
    elif open_:
        yield f"endpoints {names}: ports {ports} are open to every network, as allow_from says any"


def _without_peers(settings: HostSettings) -> Iterator[str]:
    for name, endpoint in settings.all_endpoints.items():
        if endpoint.gate.slower_by is not None and name not in settings.peers:
            yield f"endpoint {name}: gate.slower_by compares nothing, since no other host of this inventory serves it"


def _endpoint(settings: HostSettings, endpoint: EndpointSettings) -> Iterator[str]:
    if _runs_cutlass_on_sm100(settings, endpoint):
        yield (
            f"no engine.moe_config.backend is set, so {endpoint.version} runs CUTLASS; "
            "TRTLLM is the fast one on this GPU"
        )
    if unreached := unreached_text(endpoint):
        yield unreached
    if endpoint.accept_known_bad:
        yield "accept_known_bad is on, so combinations that are known to fail are not refused"


def _runs_cutlass_on_sm100(settings: HostSettings, endpoint: EndpointSettings) -> bool:
    if endpoint.engine_kind != "tensorrt-llm" or not endpoint.harmony:
        return False
    moe = endpoint.engine.get("moe_config")
    chosen = isinstance(moe, dict) and "backend" in moe
    blackwell = any(capability.startswith("10.") for capability in settings.hardware.compute_capability)
    return blackwell and not chosen and endpoint.version.startswith(BEFORE_AUTO)
