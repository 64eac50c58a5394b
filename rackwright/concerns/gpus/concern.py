"""GPUs: the data of NVIDIA's driver and nvidia-smi, and the processes that use them. Read only; preflight judges it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from xml.etree import ElementTree

from rackwright.concerns.diagnosis.seen import KEPT, SeenDiagnosis, seen_in
from rackwright.concerns.inflate import inflate
from rackwright.hostside import host_script
from rackwright.messages import ReadingError
from rackwright.plan.answers import Answers
from rackwright.plan.concern import Concern
from rackwright.plan.reading import decode, lines_of, whole_number
from rackwright.settings.host_settings import HostSettings
from rackwright_engines.fit.gpu import capability_by_name

ABSENT = frozenset({"", "N/A", "[N/A]", "None", "Requested functionality has been deprecated"})
"""nvidia-smi's output for a missing value; it alone is never a failure."""
MOST = 16 << 20
"""Most bytes of nvidia-smi's XML that are read: eight GPUs have 100 KiB, and each process a few hundred bytes."""
SLOWDOWNS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")
"""Reasons of low clocks that point to heat or a power supply."""
VERSION = re.compile(r"(?<![\d.])(\d{3,4}\.\d+(?:\.\d+)?)(?![\d.])")
LIBRARY = re.compile(r"NVML library version: (\S+)")


@dataclass(frozen=True)
class GpuProcess:
    """A process on a GPU. `user` and `container` (Docker's name for it) are empty when unknown."""

    pid: int
    name: str
    memory_mib: int | None
    user: str = ""
    container: str = ""
    kind: str = "C"
    """C computes, G draws (a desktop), M is MPS; several letters are possible."""
    in_container: bool = False
    """True when it runs in a container, Rackwright's or not."""

    @property
    def computes(self) -> bool:
        """False for a desktop's processes."""
        return "C" in self.kind or "M" in self.kind

    @property
    def ours(self) -> bool:
        """True when it belongs to a container of Rackwright's."""
        return self.container.startswith("rackwright-")


@dataclass(frozen=True)
class Gpu:
    """One GPU. None: nvidia-smi has no value, as on GB10 for memory, ECC and MIG."""

    index: int
    uuid: str
    name: str
    bus_id: str
    memory_mib: int | None
    compute_capability: str | None
    mig: bool | None
    ecc: bool | None
    correctable: int
    """ECC errors since the driver was loaded."""
    uncorrectable: int
    threshold_exceeded: bool
    remap_pending: bool
    remap_failed: bool
    fabric_state: str | None
    fabric_status: str | None
    fabric_health: str | None
    recovery: str | None
    """Action that the driver wants: Reset, Reboot, Drain P2P, ..."""
    persistence: bool | None = None
    """True if the driver keeps it initialized without a user."""
    throttled: tuple[str, ...] = ()
    """Reasons of heat and power that lower its clocks now: `hw thermal slowdown`."""
    vbios: str | None = None
    inforom: str | None = None
    """Version of the InfoROM's image."""
    processes: tuple[GpuProcess, ...] = ()


@dataclass(frozen=True)
class SeenGpus:
    """All GPUs of a host in nvidia-smi's order, the driver, and the error when nothing could be read."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    """Version of the driver's libraries, as nvidia-smi reports it."""
    module: str | None = None
    """Version of the loaded kernel module."""
    error: str = ""
    """nvidia-smi's message when it failed; empty otherwise."""
    fallen: str = ""
    """The kernel's last message about a GPU that has fallen off the bus; read only where one is missing."""
    diagnosis: SeenDiagnosis = field(default_factory=SeenDiagnosis)


@cache
def capabilities() -> Mapping[str, str]:
    """Return the compute capability by GPU's name, read once."""
    return capability_by_name()


def joined(output: str, answers: Answers) -> str:
    """Return the reading's lines with the names of Rackwright's containers; one may have started since."""
    ours = (one for one in answers.containers or () if "rackwright-" in one.name)
    return "\n".join([output, *(f"container {one.id} {one.name}" for one in ours)])


def parse(output: str) -> SeenGpus:
    """Parse the reading. Raises ReadingError when nvidia-smi succeeded, but printed something else."""
    lines = list(_words(output))
    return replace(_parse(lines), diagnosis=seen_in(lines))


def _parse(lines: Sequence[tuple[str, str]]) -> SeenGpus:
    first = {kind: content for kind, content in lines if kind in ("module", "status", "xml", "fallen")}
    module, fallen = _version(decode(first.get("module", ""))), decode(first.get("fallen", "")).strip()
    if "status" not in first:
        return SeenGpus(module=module, error="nvidia-smi is not installed")
    text = _unpack(first["xml"])
    if first["status"] != "0":
        found = LIBRARY.search(text)
        return SeenGpus((), found[1] if found else None, module, _said(text, first["status"]), fallen)
    return replace(_parse_xml(text, module, _table(lines), _owners(lines)), fallen=fallen)


def _words(output: str) -> Iterator[tuple[str, str]]:
    for row in lines_of(output):
        kind, _, content = row.partition(" ")
        yield kind, content


def _unpack(packed: str) -> str:
    try:
        return inflate(packed, MOST).decode(errors="replace")
    except ReadingError as error:
        raise ReadingError(f"nvidia-smi: {error.text}", code=error.code) from error


def _said(text: str, status: str) -> str:
    if status == "124":
        return "nvidia-smi did not answer within 30 s"
    return " ".join(text.split()) or f"nvidia-smi ended with status {status}"


def _version(text: str) -> str | None:
    found = VERSION.search(text)
    return found[1] if found else None


def _table(lines: Iterable[tuple[str, str]]) -> dict[str, tuple[int, str | None]]:
    rows = [[cell.strip() for cell in content.split(",")] for kind, content in lines if kind == "gpu"]
    return {row[0]: (int(row[1]), _value(row[2])) for row in rows if len(row) == 3 and row[1].isdecimal()}


def _owners(lines: Iterable[tuple[str, str]]) -> dict[int, tuple[str, str, bool]]:
    processes = [content.split(" ") for kind, content in lines if kind == "process"]
    names = dict(content.split(" ", 1) for kind, content in lines if kind == "container" and " " in content)
    return {int(pid): (user, names.get(container, ""), container != "-") for pid, user, container in processes}


def _parse_xml(
    text: str,
    module: str | None,
    table: Mapping[str, tuple[int, str | None]],
    owners: Mapping[int, tuple[str, str, bool]],
) -> SeenGpus:
    # Entities are the only part of a well-formed document that can harm its reader; nvidia-smi writes none.
    if "<!ENTITY" in text:
        raise ReadingError("nvidia-smi printed XML with entities, which it never does", code="RW2601")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ReadingError(f"nvidia-smi printed unreadable XML ({error}): {text[:120]!r}", code="RW2601") from error
    gpus = [_gpu(node, position, table, owners) for position, node in enumerate(root.iter("gpu"))]
    driver = _value(root.findtext("driver_version"))
    return SeenGpus(tuple(sorted(gpus, key=lambda gpu: gpu.index)), driver, module)


def _gpu(
    node: ElementTree.Element,
    position: int,
    table: Mapping[str, tuple[int, str | None]],
    owners: Mapping[int, tuple[str, str, bool]],
) -> Gpu:
    def text(path: str) -> str | None:
        return _value(node.findtext(path))

    uuid = text("uuid") or ""
    name = text("product_name") or "unknown"
    index, capability = table.get(uuid, (position, capabilities().get(name)))
    return Gpu(
        index=index,
        uuid=uuid,
        name=name,
        bus_id=node.get("id", ""),
        memory_mib=_number(text("fb_memory_usage/total")),
        compute_capability=capability,
        mig=_switch(text("mig_mode/current_mig")),
        ecc=_switch(text("ecc_mode/current_ecc")),
        correctable=_errors(node, "correctable"),
        uncorrectable=_errors(node, "uncorrectable"),
        threshold_exceeded=text("ecc_errors/aggregate/sram_threshold_exceeded") == "Yes",
        remap_pending=text("remapped_rows/remapped_row_pending") == "Yes",
        remap_failed=text("remapped_rows/remapped_row_failure") == "Yes",
        fabric_state=text("fabric/state"),
        fabric_status=text("fabric/status"),
        fabric_health=text("fabric/health/summary"),
        recovery=text("gpu_recovery_action"),
        persistence=_switch(text("persistence_mode")),
        throttled=_throttled(node),
        vbios=text("vbios_version"),
        inforom=text("inforom_version/img_version"),
        processes=tuple(_process(entry, owners) for entry in node.findall("processes/process_info")),
    )


def _process(entry: ElementTree.Element, owners: Mapping[int, tuple[str, str, bool]]) -> GpuProcess:
    pid = int(entry.findtext("pid") or 0)
    memory = _number(_value(entry.findtext("used_memory")))
    user, container, inside = owners.get(pid, ("", "", False))
    name, kind = entry.findtext("process_name") or "?", entry.findtext("type") or "C"
    return GpuProcess(pid, name, memory, user, container, kind, inside)


def _throttled(node: ElementTree.Element) -> tuple[str, ...]:
    """Return harmful reasons: not an idle GPU, nor an operator's power cap. Old drivers write `throttle`."""
    reasons = [
        child for tag in ("clocks_event_reasons", "clocks_throttle_reasons") for child in node.findall(f"{tag}/*")
    ]
    named = {child.tag.split("_reason_", 1)[-1]: _value(child.text) for child in reasons}
    return tuple(reason.replace("_", " ") for reason in SLOWDOWNS if named.get(reason) == "Active")


def _errors(node: ElementTree.Element, kind: str) -> int:
    counts = node.find("ecc_errors/volatile")
    found = [] if counts is None else [child for child in counts if f"_{kind}" in child.tag]
    return sum(_number(_value(child.text)) or 0 for child in found)


def _value(text: str | None) -> str | None:
    stripped = (text or "").strip()
    return None if stripped in ABSENT else stripped


def _number(text: str | None) -> int | None:
    return whole_number((text or "").split(" ")[0])


def _switch(text: str | None) -> bool | None:
    return None if text is None else text == "Enabled"


def _read(_: HostSettings) -> str:
    return host_script("gpus_read", known="\n".join(capabilities()), diagnosis=KEPT)


GPUS: Concern[None, SeenGpus] = Concern(
    name="gpus",
    read=_read,
    parse=parse,
    wanted=lambda _settings, _reading: None,
    changes=lambda _wanted, _seen: [],
    takes=frozenset(),
    joined=joined,
)
