"""Firmware and VBIOS of a fleet as a table, with the odd ones marked. Only read: nothing here writes firmware. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rackwright.concerns.gpus import Gpu
from rackwright.concerns.gpus import parse as parse_gpus
from rackwright.hostside import host_script
from rackwright.inspect.host_names import hosts_text
from rackwright.messages import ReadingError, counted, printable
from rackwright.tables import Column, drawn, only

BIOS, VBIOS, INFOROM, NIC = "BIOS", "VBIOS", "InfoROM", "NIC"
COLUMNS = (
    Column("host"),
    Column("machine", 2, 12),
    Column(BIOS, 4),
    Column("GPUs", 1, 12),
    Column(VBIOS, 6),
    Column(INFOROM, 5),
    Column(NIC, 3, 16),
)
ODD = "*"
"""Mark behind a version that most others of the same model do not have."""


@dataclass(frozen=True)
class FirmwarePart:
    """A part with firmware. `model`: versions of equal models are compared; `unit`: which one of several."""

    kind: str
    model: str
    unit: str
    version: str


@dataclass(frozen=True)
class HostFirmware:
    """The parts of one host, or why they are not known."""

    host: str
    parts: tuple[FirmwarePart, ...] = ()
    machine: str = ""
    gpus: str = ""
    """GPUs, for people: `8 NVIDIA B200`."""
    error: str = ""


def script() -> str:
    """Return the command for a host."""
    return host_script("firmware_read")


def parse_firmware(host: str, lines: Sequence[str]) -> HostFirmware:
    """Parse its lines. What is odd in a host's text is harmless: it is shown as data."""
    if "end" not in lines:
        return HostFirmware(host, error="the reading broke off")
    rows = [row.split(" ") for row in lines]
    first = {words[0]: printable(" ".join(words[1:])) for words in rows}
    vendor, product = first.get("sys_vendor", ""), first.get("product_name", "")
    machine = product if product.startswith(vendor) else f"{vendor} {product}".strip()
    bios = [FirmwarePart(BIOS, machine, "", first["bios_version"])] if "bios_version" in first else []
    nics = [
        FirmwarePart(NIC, printable(words[2]), printable(words[1]), printable(words[3]))
        for words in rows
        if words[0] == "nic" and len(words) == 4
    ]
    try:
        gpu_reading = parse_gpus("\n".join(row for row in lines if row.startswith(("status ", "xml "))))
    except ReadingError as error:
        return HostFirmware(host, (*bios, *nics), machine, error=str(error))
    counts = Counter(gpu.name for gpu in gpu_reading.gpus)
    gpus = ", ".join(f"{number} {name}" for name, number in counts.items())
    parts = (*bios, *(part for gpu in gpu_reading.gpus for part in _of_gpu(gpu)), *nics)
    return HostFirmware(host, parts, machine, gpus, gpu_reading.error)


def _of_gpu(gpu: Gpu) -> Iterator[FirmwarePart]:
    for kind, version in ((VBIOS, gpu.vbios), (INFOROM, gpu.inforom)):
        if version:
            yield FirmwarePart(kind, gpu.name, f"GPU {gpu.index}", printable(version))


def usual_versions(hosts: Iterable[HostFirmware]) -> dict[tuple[str, str], str]:
    """Return the version that more parts of a kind and model have than any other; none where two are as frequent."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for host in hosts:
        for part in host.parts:
            counts.setdefault((part.kind, part.model), Counter())[part.version] += 1
    ranked = {key: found.most_common(2) for key, found in counts.items()}
    return {key: top[0][0] for key, top in ranked.items() if len(top) == 1 or top[0][1] > top[1][1]}


Usual = Mapping[tuple[str, str], str]


def is_odd(part: FirmwarePart, usual: Usual) -> bool:
    """Return True for a version that most others of its model do not have."""
    return usual.get((part.kind, part.model), part.version) != part.version


def table(hosts: Sequence[HostFirmware], width: int | None, names: Sequence[str] = ()) -> str:
    """Return a row a host. width: the terminal's. names: of the columns; none for all."""
    usual = usual_versions(hosts)
    return drawn(*only(COLUMNS, [_cells(host, usual) for host in hosts], names), width)


def _cells(host: HostFirmware, usual: Usual) -> tuple[str, ...]:
    versions = {kind: _versions(host, kind, usual) for kind in (BIOS, VBIOS, INFOROM, NIC)}
    return (
        host.host,
        host.machine or "-",
        versions[BIOS],
        host.gpus or "-",
        versions[VBIOS],
        versions[INFOROM],
        versions[NIC],
    )


def _versions(host: HostFirmware, kind: str, usual: Usual) -> str:
    """Return a host's versions of one kind, each once; an odd one with its mark."""
    found = dict.fromkeys((part.version, is_odd(part, usual)) for part in host.parts if part.kind == kind)
    return ", ".join(f"{version}{ODD * odd}" for version, odd in found) or "-"


def lines(hosts: Sequence[HostFirmware]) -> Iterator[str]:
    """Yield what is odd, which models have no usual version, and why a host is not known."""
    usual = usual_versions(hosts)
    yield from (f"{host.host}: {host.error}" for host in hosts if host.error)
    for host in hosts:
        odd: dict[tuple[str, str, str], list[str]] = {}
        for part in host.parts:
            if is_odd(part, usual):
                odd.setdefault((part.kind, part.model, part.version), []).append(part.unit)
        for (kind, model, version), units in odd.items():
            where = f" of {', '.join(units)}" if any(units) else ""
            yield f"{host.host}: {kind}{where} is {version}; most {_named(model)} have {usual[kind, model]}"
    yield from _without_usual(hosts, usual)


def _without_usual(hosts: Sequence[HostFirmware], usual: Usual) -> Iterator[str]:
    keys = dict.fromkeys((part.kind, part.model) for host in hosts for part in host.parts)
    for kind, model in (key for key in keys if key not in usual):
        by_version: dict[str, dict[str, None]] = {}
        for host in hosts:
            for part in host.parts:
                if (part.kind, part.model) == (kind, model):
                    by_version.setdefault(part.version, {})[host.host] = None
        places = "; ".join(f"{version} on {hosts_text(list(names))}" for version, names in by_version.items())
        yield f"{kind} of {_named(model)}: {counted(len(by_version), 'version')}, none of them usual: {places}"


def _named(model: str) -> str:
    return model if model and model != "-" else "others"


def firmware_values(hosts: Sequence[HostFirmware]) -> dict[str, Any]:
    """Return the same for `--json`."""
    usual = usual_versions(hosts)
    return {
        "version": 1,
        "hosts": [
            {
                "host": host.host,
                "machine": host.machine,
                "error": host.error,
                "parts": [{**asdict(part), "odd": is_odd(part, usual)} for part in host.parts],
            }
            for host in hosts
        ],
    }
