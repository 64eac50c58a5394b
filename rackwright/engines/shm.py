"""The container's /dev/shm beside the engine, where GPU and host have one memory (GB10)."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.settings.host_settings import EndpointSettings
from rackwright.settings.sections import Hardware
from rackwright_engines.finding import Finding, Level
from rackwright_engines.fit.memory import GIB, gib
from rackwright_engines.fit.sizes import plan_of
from rackwright_engines.fit.unified import CODE, SYSTEM, engine_memory, shared_memory

UNITS = {"b": 1, "k": 1024, "m": 1024**2, "g": GIB}


def check_shm(endpoint: EndpointSettings, hardware: Hardware) -> Iterator[Finding]:
    """Warn of a /dev/shm that leaves the system too little memory."""
    memory = shared_memory(hardware)
    if not memory:
        return
    engine, shared = engine_memory(endpoint, plan_of(endpoint), memory), size_of(endpoint.container.shm_size or "")
    # A small one is a limit that no endpoint reaches; half of the memory is what hosts have died of.
    if shared > memory / 4 and shared + min(engine, memory - SYSTEM) + SYSTEM > memory:
        text = (
            f"{gib(shared)} are taken from the {gib(memory)} that GPU and host share, beside the engine's "
            f"{gib(engine)}: leave it out (--ipc=host then), or write 16g"
        )
        yield Finding(("container", "shm_size"), text, Level.WARN, code=CODE)


def size_of(text: str) -> int:
    """Return the bytes of Docker's `16g`; 0 for other text."""
    number, unit = (text[:-1], text[-1:].lower()) if text[-1:].lower() in UNITS else (text, "b")
    try:
        return int(float(number) * UNITS[unit])
    except ValueError:
        return 0
