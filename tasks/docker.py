"""Docker Engine and NVIDIA's container toolkit."""

from __future__ import annotations

from pyinfra.api import deploy

from rackwright.operations import settle


@deploy("Docker")
def docker() -> None:
    """Install what is missing, merge dockerd's configuration, let the named users in."""
    settle(name="Docker Engine and the NVIDIA container toolkit are installed and configured", concern="docker")
