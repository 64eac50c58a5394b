"""The driver that a host runs beside the one that it should, from what driver_seen.sh printed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rackwright.messages import printable
from rackwright.plan.reading import pairs


def wrong_with(lines: Iterable[str], version: str, gpus: int) -> str:
    """Return what is wrong with a host that should run that driver; empty when nothing is.

    gpus: that it had before; 0 when that is not known.
    """
    return "; ".join(_wrong(pairs("\n".join(lines)), version, gpus))


def _wrong(found: dict[str, str], version: str, gpus: int) -> Iterator[str]:
    module, library = found.get("module", "").strip(), found.get("library", "").strip()
    if module != version:
        yield f"the loaded module is {printable(module) or 'none'}, and not {version}"
    if found.get("status") != "0":
        yield f"nvidia-smi: {printable(found.get('error', '')).strip() or 'no answer'}"
    elif library != version:
        yield f"its libraries are {printable(library)}, and not {version}"
    elif gpus and found.get("gpus") != str(gpus):
        yield f"{printable(found.get('gpus', '0'))} of {gpus} GPUs are there"
    if (fabric := found.get("fabric", version)) != version:
        yield f"the fabric manager is {printable(fabric) or 'of an unknown version'}, and not {version}"
    if (imex := found.get("imex", version)) != version:
        yield f"IMEX is {printable(imex)}, and not {version}"
