"""A record's fields about a host: its machine, its GPUs, preflight's rows and its endpoints. Pure.

Fields are listed one by one: a reading's new fields of a later version are left out until they are listed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rackwright.concerns.docker import DOCKER, SeenDocker
from rackwright.concerns.gpus import GPUS, Gpu, SeenGpus
from rackwright.concerns.preflight.concern import PREFLIGHT
from rackwright.concerns.preflight.row import SeenMachine
from rackwright.concerns.preflight.table import verdict
from rackwright.hardware import allowed
from rackwright.plan.concern import HostReading
from rackwright.settings.host_settings import EndpointSettings, HostSettings
from rackwright.settings.image_reference import repository_of
from rackwright_engines.fit.sizes import plan_of
from rackwright_engines.options.schema import line_for
from rackwright_engines.version import bare

Json = dict[str, Any]
IMAGES = ("nvcr.io/nvidia/tensorrt-llm/release", "vllm/vllm-openai", "lmsysorg/sglang")
ENGINES = ("tensorrt-llm", "vllm", "sglang")
OTHER = "not published"
"""Stands for images and models that are somebody's own."""
SYSTEMS = ("debian", "ubuntu", "dgx")
STATES = ("Completed", "In Progress", "Not Started", "Success", "Healthy", "Unhealthy", "Limited Capacity")
RECOVERY = ("Reset", "Reboot", "Drain P2P", "Drain and Reset")
ACTIVITY = ("active", "inactive", "failed", "activating")


def host_record(reading: HostReading, settings: HostSettings) -> Json:
    """Return what the record says of a reading, and of preflight's verdict on it."""
    gpus, docker, machine = reading[GPUS], reading[DOCKER], reading[PREFLIGHT]
    return {
        "machine": machine_of(machine, docker, gpus),
        "gpus": gpus_of(gpus.gpus),
        "preflight": [
            {"check": row.name, "verdict": verdict(row), **({} if row.ok else {"code": row.code})}
            for row in PREFLIGHT.wanted(settings, reading).rows
        ],
    }


def machine_of(machine: SeenMachine, docker: SeenDocker, gpus: SeenGpus) -> Json:
    """Return the versions and sizes of a machine."""
    values, memory = machine.values, machine.number("MemTotal")
    return without_none(
        architecture=allowed.one_of(values.get("architecture"), ("x86_64", "aarch64")),
        kernel=allowed.kernel(values.get("kernel")),
        system=allowed.one_of(docker.system.id, SYSTEMS),
        system_version=allowed.one_of(docker.system.version, SYSTEM_VERSIONS),
        memory_gib=allowed.whole(round(memory / 2**20)) if memory else None,
        docker=allowed.version(".".join(map(str, docker.version))),
        toolkit=allowed.version(values.get("toolkit")),
        driver=allowed.version(gpus.driver),
        driver_module=allowed.version(gpus.module),
        fabric_manager=allowed.one_of(values.get("fabric.ActiveState"), ACTIVITY),
        fabric_manager_version=allowed.version(values.get("fabric.version")),
    )


SYSTEM_VERSIONS = ("11", "12", "13", "14", "20.04", "22.04", "24.04", "26.04")


def gpus_of(gpus: Iterable[Gpu]) -> list[Json]:
    """Return equal GPUs once, with their count."""
    counted = Counter(tuple(_gpu(gpu).items()) for gpu in gpus)
    return [{"count": count, **dict(items)} for items, count in counted.items()]


def _gpu(gpu: Gpu) -> Json:
    return without_none(
        name=allowed.product(gpu.name),
        memory_mib=allowed.whole(gpu.memory_mib),
        compute_capability=allowed.version(gpu.compute_capability),
        mig=allowed.switch(gpu.mig),
        ecc=allowed.switch(gpu.ecc),
        correctable=allowed.whole(gpu.correctable),
        uncorrectable=allowed.whole(gpu.uncorrectable),
        remap_pending=allowed.switch(gpu.remap_pending),
        remap_failed=allowed.switch(gpu.remap_failed),
        fabric_state=allowed.one_of(gpu.fabric_state, STATES),
        fabric_status=allowed.one_of(gpu.fabric_status, STATES),
        fabric_health=allowed.one_of(gpu.fabric_health, STATES),
        recovery=allowed.one_of(gpu.recovery, RECOVERY),
    )


def endpoints_of(settings: HostSettings) -> list[Json]:
    """Return what the endpoints are, without the names that a site gave them."""
    return [_endpoint(endpoint) for endpoint in settings.all_endpoints.values()]


def _endpoint(endpoint: EndpointSettings) -> Json:
    release_line, _ = line_for(endpoint.engine_kind, bare(endpoint.version))
    repositories = allowed.repositories()
    model, draft = (source.repository if source else None for source in (endpoint.model, endpoint.draft))
    return without_none(
        engine=allowed.one_of(endpoint.engine_kind, ENGINES),
        version=allowed.version(bare(endpoint.version), allowed.ENGINE_VERSION),
        image=allowed.one_of(repository_of(endpoint.image), IMAGES) or OTHER,
        model=allowed.one_of(model, repositories) or OTHER,
        draft=(allowed.one_of(draft, repositories) or OTHER) if draft else None,
        gpus="all" if endpoint.gpus == "all" else len(endpoint.gpus),
        network=allowed.one_of(endpoint.network, ("bridge", "host")),
        gate=allowed.one_of(endpoint.gate.level, ("basic", "full")),
        options=allowed.options(plan_of(endpoint).options, release_line.all_keys()),
    )


def without_none(**values: Any) -> Json:
    """Those values that there are."""
    return {key: value for key, value in values.items() if value is not None}


def profile_of(groups: Iterable[str]) -> Mapping[str, str]:
    """Return the shipped profile that a host's groups name, the narrowest one."""
    found = allowed.words_of(groups, allowed.profiles())
    return {"profile": found[-1]} if found else {}
