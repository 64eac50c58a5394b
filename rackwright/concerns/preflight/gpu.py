"""Checks of the GPUs. N/A in nvidia-smi's output alone is never a failure: GB10 reports it for many values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from rackwright.concerns.gpus import Gpu, GpuProcess
from rackwright.concerns.preflight.row import Case, Check, figures, gib, uses
from rackwright.concerns.preflight.software import lost
from rackwright.settings.host_settings import EndpointSettings

Verdicts = Iterator[tuple[bool, str, str]]
DIAGNOSED = "RW3107"
"""Code of the row of a failed diagnosis."""


def model(case: Case) -> Verdicts:
    """Check that the GPUs have the machine type's product names."""
    expected, gpus = case.settings.hardware.gpu_models, case.gpus.gpus
    if not gpus:
        return
    text = ", ".join(f"{count} x {name}" for name, count in Counter(gpu.name for gpu in gpus).items())
    good = not expected or all(any(_is(part, gpu.name) for part in expected) for gpu in gpus)
    yield good, text, f"expected {' or '.join(expected)}: this host belongs in another group of the inventory"


def _is(part: str, name: str) -> bool:
    """Return True if `part` is among the words of `name`: "B200" is not "GB200", "H200" is not "GH200"."""
    words, wanted = name.lower().split(), part.lower().split()
    return any(words[start : start + len(wanted)] == wanted for start in range(len(words)))


def count(case: Case) -> Verdicts:
    """Check that there are at least as many GPUs as the machine type has."""
    expected, present = case.settings.hardware.gpu_count, len(case.gpus.gpus)
    if case.gpus.error:
        return
    least = 1 if expected is None else expected
    find = (
        f"{case.settings.hardware.machine} has {least}; find the lost ones: lspci -d 10de:; journalctl -k --grep NVRM"
    )
    other = "; if this host has no more, give it a profile for as many (a GB200 tray with 4: `profile: gb200_tray`)"
    yield present >= least, f"{present}{lost(case.gpus)}", find + (other if present else "")


def capability(case: Case) -> Verdicts:
    """Check the compute capability, which decides which kernels run."""
    expected, gpus = case.settings.hardware.compute_capability, case.gpus.gpus
    capabilities = {gpu.compute_capability for gpu in gpus if gpu.compute_capability}
    if not capabilities:
        return
    yield (
        not expected or capabilities <= set(expected),
        ", ".join(sorted(capabilities)),
        f"the profile is made for {' or '.join(expected)}",
    )


def named(case: Case) -> Verdicts:
    """Check that the GPUs in an endpoint's settings exist."""
    present = {gpu.index for gpu in case.gpus.gpus}
    for name, endpoint in case.endpoints.items():
        if endpoint.gpus == "all" or case.gpus.error:
            continue
        missing = [str(index) for index in endpoint.gpus if index not in present]
        text = f"{name} uses {', '.join(map(str, endpoint.gpus))}"
        yield not missing, text, f"there is no GPU {', '.join(missing)}: fix `gpus` of endpoint {name}"


def _each(case: Case, bad: Callable[[Gpu], str], well: str, fix: Callable[[Iterable[Gpu]], str]) -> Verdicts:
    """Yield one row for all used GPUs: the problem of each, or `well` when none has one."""
    if not case.used_gpus:
        return
    found = [(gpu, text) for gpu in case.used_gpus if (text := bad(gpu))]
    if not found:
        yield True, well, ""
    else:
        yield False, "; ".join(f"GPU {gpu.index}: {text}" for gpu, text in found), fix([gpu for gpu, _ in found])


def mig(case: Case) -> Verdicts:
    """Reject GPUs in MIG mode, which are not usable as a whole."""
    well = "off" if any(gpu.mig is not None for gpu in case.used_gpus) else "not available"
    return _each(case, lambda gpu: "on" if gpu.mig else "", well, lambda gpus: f"nvidia-smi -i {_list(gpus)} -mig 0")


def _list(gpus: Iterable[Gpu]) -> str:
    return ",".join(str(gpu.index) for gpu in gpus)


def uncorrectable(case: Case) -> Verdicts:
    """Check for uncorrectable memory errors since the driver was loaded."""
    return _each(
        case,
        lambda gpu: f"{gpu.uncorrectable} uncorrectable ECC errors" if gpu.uncorrectable else "",
        "none",
        lambda gpus: (
            f"nvidia-smi --gpu-reset -i {_list(gpus)}, or reboot; if they come back, the GPU is to be replaced"
        ),
    )


def correctable(case: Case) -> Verdicts:
    """Check for corrected memory errors: the GPU works, but should be watched."""
    return _each(
        case,
        lambda gpu: f"{gpu.correctable} corrected ECC errors" if gpu.correctable else "",
        "none",
        lambda gpus: f"watch them: nvidia-smi -q -d ECC -i {_list(gpus)}",
    )


def memory_beyond_repair(case: Case) -> Verdicts:
    """Check for memory that is beyond repair."""
    return _each(
        case,
        lambda gpu: "row remapping failed" if gpu.remap_failed else "too many SRAM errors" * gpu.threshold_exceeded,
        "none",
        lambda gpus: f"take GPU {_list(gpus)} out of service: its memory is beyond repair",
    )


def remap(case: Case) -> Verdicts:
    """Check for a row remap that waits for a reset."""
    return _each(
        case,
        lambda gpu: "row remap pending" * gpu.remap_pending,
        "none",
        lambda gpus: f"nvidia-smi --gpu-reset -i {_list(gpus)}, or reboot",
    )


def recovery(case: Case) -> Verdicts:
    """Check for a recovery action that the driver requests."""
    return _each(
        case, lambda gpu: gpu.recovery or "", "none", lambda _: "do what it says: nvidia-smi -q | grep -i recovery"
    )


def throttled(case: Case) -> Verdicts:
    """Check for clocks that heat or a power supply lowers: the endpoint is slow, whatever its release."""
    return _each(
        case,
        lambda gpu: f"slowed down by {', '.join(gpu.throttled)}" if gpu.throttled else "",
        "none",
        lambda gpus: f"see to cooling and power: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER -i {_list(gpus)}",
    )


def fabric(case: Case) -> Verdicts:
    """Check NVLink's fabric, where the host has one."""
    if any(gpu.fabric_state for gpu in case.used_gpus):
        yield from _each(case, _fabric_trouble, "completed", lambda _: _fabric_fix(case))


def _fabric_trouble(gpu: Gpu) -> str:
    state, status, health = gpu.fabric_state, gpu.fabric_status, gpu.fabric_health
    if state is None:
        return ""
    if state != "Completed" or status not in (None, "Success"):
        return f"{state}, {status or 'no status'}"
    return f"health {health}" if health not in (None, "Healthy") else ""


def _fabric_fix(case: Case) -> str:
    if case.settings.hardware.fabric_manager:
        return "systemctl restart nvidia-fabricmanager; nvidia-smi -q | grep -A4 Fabric"
    return "the fabric manager runs on the switch trays of this rack: look there"


def diagnosis(case: Case) -> Verdicts:
    """Check the last diagnosis of the GPUs by DCGM, while nothing serves; none with `diagnosis.before_serving: 0`."""
    last = case.gpus.diagnosis.last
    if last is None or case.docker.serving or not case.settings.diagnosis.before_serving or last.report.error:
        return
    done = f"{last.name}: {last.report.summary()}"
    yield (
        last.verdict != "fail",
        last.reason or done,
        "reset or exchange it, then: rackwright diagnose INVENTORY --limit HOST",
    )


def diagnosis_remarks(case: Case) -> Verdicts:
    """Check for what DCGM says of a host that blames no GPU: a setting, heat, a diagnosis that could not run."""
    last = case.gpus.diagnosis.last
    if last is None or case.docker.serving or not case.settings.diagnosis.before_serving:
        return
    if last.report.error:
        yield False, f"{last.name}: {last.report.error}", f"on the host: {last.name}; journalctl -u nvidia-dcgm"
    for row in last.report.rows("warn"):
        yield False, f"{last.name}: {row.where}: {row.test}", row.text


def foreign_processes(case: Case) -> Verdicts:
    """Check for GPU processes of others, which take memory that the engine needs."""
    processes = {process.pid: process for gpu in case.used_gpus for process in gpu.processes if process.computes}
    down = case.docker.daemon == "down"
    foreign = [p for p in processes.values() if not p.ours and not (down and p.in_container)]
    if not case.used_gpus:
        return
    if not foreign:
        yield True, "none", ""
        return
    pids = " ".join(str(process.pid) for process in foreign)
    yield (
        False,
        "; ".join(map(_describe, foreign)),
        f"end them, or give this endpoint other GPUs: ps -fp {pids.replace(' ', ',')}",
    )


def _describe(process: GpuProcess) -> str:
    memory = f", {gib(process.memory_mib * 2**20)}" if process.memory_mib is not None else ""
    where = f" in container {process.container}" if process.container else ""
    return f"pid {process.pid} {process.name}{where} of {process.user or 'unknown user'}{memory}"


def weights(case: Case) -> Verdicts:
    """Compare memory with the weights' size: an estimate, so a warning. A serving endpoint has been shown to fit."""
    if case.docker.serving:
        return
    for name, endpoint in case.endpoints.items():
        size = _weights(endpoint)
        room, where = _room(case, endpoint)
        if size and room:
            text = f"{name}: {gib(room)} {where}, about {gib(size)} of weights"
            yield room > size, text, "more GPUs, a smaller model, or end what takes memory: nvidia-smi; free -h"


def _weights(endpoint: EndpointSettings) -> int:
    sources = (endpoint.model, endpoint.draft)
    names = {source.repository for source in sources if source}
    return sum(int(entry["about"]) for entry in figures()["models"] if entry["repository"] in names)


def _room(case: Case, endpoint: EndpointSettings) -> tuple[int, str]:
    """Return an endpoint's bytes, and their owner: on unified memory nvidia-smi reports N/A, and the host's count."""
    if case.settings.hardware.unified_memory:
        return (case.machine.number("MemAvailable") or 0) * 1024, "of unified memory available"
    sizes = [gpu.memory_mib for gpu in case.gpus.gpus if uses(endpoint, gpu)]
    return sum(size or 0 for size in sizes) * 2**20, f"on {len(sizes)} GPUs"


GPU = (
    Check("GPU model", "stop", model, "RW3130"),
    Check("GPU count", "stop", count, "RW3131"),
    Check("compute capability", "stop", capability, "RW3132"),
    Check("GPUs of endpoints", "stop", named, "RW3133"),
    Check("MIG", "stop", mig, "RW3134"),
    Check("ECC uncorrectable", "stop", uncorrectable, "RW3135"),
    Check("ECC corrected", "warn", correctable, "RW3136"),
    Check("GPU memory health", "stop", memory_beyond_repair, "RW3137"),
    Check("row remap", "stop", remap, "RW3138"),
    Check("recovery action", "stop", recovery, "RW3139"),
    Check("fabric", "stop", fabric, "RW3140"),
    Check("throttling", "warn", throttled, "RW3157"),
    Check("GPU diagnosis", "stop", diagnosis, DIAGNOSED),
    Check("remarks of DCGM", "warn", diagnosis_remarks, "RW3167"),
    Check("GPU processes", "stop", foreign_processes, "RW3141"),
    Check("memory for weights", "warn", weights, "RW3142"),
)
