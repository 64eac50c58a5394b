"""What is allowed, and still worth a warning: said by `rackwright check`. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from rackwright.engines.finding import Level
from rackwright.engines.problems import engine_notes
from rackwright.settings.model import EndpointSettings, HostSettings

BEFORE_AUTO = ("1.0", "1.1", "1.2")
"""TensorRT-LLM versions whose MoE backend is CUTLASS unless it is chosen; later ones choose by the GPU."""


def notes(settings: HostSettings) -> list[str]:
    """Warnings about one host's settings."""
    own = [note for name, endpoint in settings.all_endpoints.items() for note in _endpoint(settings, name, endpoint)]
    return [*own, *engine_notes(settings, Level.WARN)]


def _endpoint(settings: HostSettings, name: str, endpoint: EndpointSettings) -> Iterator[str]:
    if not endpoint.allow_from and not _is_loopback(endpoint.address):
        yield f"endpoint {name}: port {endpoint.port} is open to every network; set allow_from to close it"
    if _runs_cutlass_on_sm100(settings, endpoint):
        yield (
            f"endpoint {name}: no engine.moe_config.backend is set, so {endpoint.version} runs CUTLASS; "
            "TRTLLM is the fast one on this GPU"
        )
    if endpoint.accept_known_bad:
        yield f"endpoint {name}: accept_known_bad is on, so combinations that are known to fail are not refused"


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _runs_cutlass_on_sm100(settings: HostSettings, endpoint: EndpointSettings) -> bool:
    if endpoint.engine_kind != "tensorrt-llm" or not endpoint.harmony:
        return False
    moe = endpoint.engine.get("moe_config")
    chosen = isinstance(moe, dict) and "backend" in moe
    blackwell = any(capability.startswith("10.") for capability in settings.hardware.compute_capability)
    return blackwell and not chosen and endpoint.version.startswith(BEFORE_AUTO)
