"""The steps of deploy.py, as Rackwright brings them. A function of a step's name in this file replaces it.

`pyinfra INVENTORY tasks.firewall` runs one alone.
"""

from rackwright.tasks import (
    close_direct,
    converged,
    docker,
    dockerd,
    driver,
    encodings,
    endpoint,
    firewall,
    gateway,
    image,
    models,
    options,
    preflight,
    registry,
    release,
    retention,
    watch,
)

__all__ = [
    "close_direct",
    "converged",
    "docker",
    "dockerd",
    "driver",
    "encodings",
    "endpoint",
    "firewall",
    "gateway",
    "image",
    "models",
    "options",
    "preflight",
    "registry",
    "release",
    "retention",
    "watch",
]
