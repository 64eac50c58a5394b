"""One host of an inventory, with its settings read, merged and validated."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackwright.loading.merge import Layer
from rackwright.settings.host_settings import NOWHERE, HostSettings
from rackwright.settings.origin import Origins


@dataclass(frozen=True)
class InventoryHost:
    """One host: its groups (the weakest first), its pyinfra data, its typed settings, and the origin of every key."""

    name: str
    groups: tuple[str, ...]
    data: dict[str, Any]
    settings: HostSettings
    origins: Origins
    layers: tuple[Layer, Layer] = field(default=(Layer({}, {}), Layer({}, {})), repr=False)
    """Values of files and inventory for it, and those of `--data`."""
    root: Path = NOWHERE

    @property
    def address(self) -> str:
        """Return `ADDRESS:PORT`, by which SSH reaches it: it stays the same when the host has another name."""
        return f"{self.data.get('ssh_hostname') or self.name}:{self.data.get('ssh_port') or 22}"
