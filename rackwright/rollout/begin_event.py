"""The beginning of a run's record: who ran what, where, on which hosts, and what was asked."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rackwright.masks import MASK
from rackwright.processes import this_process
from rackwright.record.masked_changes import mask


def beginning(
    inventory: Path, root: Path, hosts: Sequence[str], purpose: str, request: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the first event of a record: who, where, what, and what was asked."""
    shown = inventory.resolve().relative_to(root) if inventory.resolve().is_relative_to(root) else inventory
    resumed = f", resumes {request['resumes']}" if request.get("resumes") else ""
    found = {
        "who": f"{getpass.getuser()}@{socket.gethostname()}",
        "what": f"{purpose} {shown}{resumed}",
        "purpose": purpose,
        "inventory": str(inventory),
        "hosts": list(hosts),
        "process": this_process(),
        **request,
    }
    if "data" in request:
        found["data"] = {key: without_secrets(key, value) for key, value in request["data"].items()}
    return found


def without_secrets(key: str, value: Any) -> Any:
    """Return a value of `--data` as a record may keep it: what looks like a secret is a mask."""
    if isinstance(value, Mapping):
        return {inner: without_secrets(str(inner), below) for inner, below in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(key, below) for below in value]
    if not isinstance(value, str):
        return value
    masked = mask(f"{key}={value}").removeprefix(f"{key}=")
    return MASK if masked.startswith(MASK) else mask(value)
