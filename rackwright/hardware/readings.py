"""What the record says of a host: its machine, its GPUs, preflight's rows and its endpoints, field by field. Pure.

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
from rackwright.settings.image_reference import repository_of
from rackwright.settings.model import EndpointSettings, HostSettings
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
    return known(
        architecture=allowed.word(values.get("architecture"), ("x86_64", "aarch64")),
        kernel=allowed.kernel(values.get("kernel")),
        system=allowed.word(docker.system.id, SYSTEMS),
        system_version=allowed.word(docker.system.version, SYSTEM_VERSIONS),
        memory_gib=allowed.whole(round(memory / 2**20)) if memory else None,
        docker=allowed.version(".".join(map(str, docker.version))),
        toolkit=allowed.version(values.get("toolkit")),
        driver=allowed.version(gpus.driver),
        driver_module=allowed.version(gpus.module),
        fabric_manager=allowed.word(values.get("fabric.ActiveState"), ACTIVITY),
        fabric_manager_version=allowed.version(values.get("fabric.version")),
    )


SYSTEM_VERSIONS = ("11", "12", "13", "14", "20.04", "22.04", "24.04", "26.04")


def gpus_of(gpus: Iterable[Gpu]) -> list[Json]:
    """Return equal GPUs once, with their count."""
    counted = Counter(tuple(_gpu(gpu).items()) for gpu in gpus)
    return [{"count": count, **dict(told)} for told, count in counted.items()]


def _gpu(gpu: Gpu) -> Json:
    return known(
        name=allowed.product(gpu.name),
        memory_mib=allowed.whole(gpu.memory_mib),
        compute_capability=allowed.version(gpu.compute_capability),
        mig=allowed.switch(gpu.mig),
        ecc=allowed.switch(gpu.ecc),
        correctable=allowed.whole(gpu.correctable),
        uncorrectable=allowed.whole(gpu.uncorrectable),
        remap_pending=allowed.switch(gpu.remap_pending),
        remap_failed=allowed.switch(gpu.remap_failed),
        fabric_state=allowed.word(gpu.fabric_state, STATES),
        fabric_status=allowed.word(gpu.fabric_status, STATES),
        fabric_health=allowed.word(gpu.fabric_health, STATES),
        recovery=allowed.word(gpu.recovery, RECOVERY),
    )


def endpoints_of(settings: HostSettings) -> list[Json]:
    """Return what the endpoints are, without the names that a site gave them."""
    return [_endpoint(own) for own in settings.all_endpoints.values()]


def _endpoint(own: EndpointSettings) -> Json:
    line, _ = line_for(own.engine_kind, bare(own.version))
    repositories = allowed.repositories()
    model, draft = (source.repository if source else None for source in (own.model, own.draft))
    return known(
        engine=allowed.word(own.engine_kind, ENGINES),
        version=allowed.version(bare(own.version), allowed.ENGINE_VERSION),
        image=allowed.word(repository_of(own.image), IMAGES) or OTHER,
        model=allowed.word(model, repositories) or OTHER,
        draft=(allowed.word(draft, repositories) or OTHER) if draft else None,
        gpus="all" if own.gpus == "all" else len(own.gpus),
        network=allowed.word(own.network, ("bridge", "host")),
        gate=allowed.word(own.gate.level, ("basic", "full")),
        options=allowed.options(plan_of(own).options, line.all_keys()),
    )


def known(**values: Any) -> Json:
    """Those values that there are."""
    return {key: value for key, value in values.items() if value is not None}


def profile_of(groups: Iterable[str]) -> Mapping[str, str]:
    """Return the shipped profile that a host's groups name, the narrowest one."""
    found = allowed.words_of(groups, allowed.profiles())
    return {"profile": found[-1]} if found else {}
