"""Rackwright's pyinfra operations: six for any deploy, and what the steps of rackwright.tasks are made of."""

from rackwright.operations.concerns import (
    close_direct,
    docker,
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
    site,
    watch,
)
from rackwright.operations.steps import converge, hash_models, refuse_alone, remove_left_behind, tear_down, try_keys

ALONE = ("builtins", "__main__")
"""A module's `__name__` when its file is run as a deploy, as `pyinfra INVENTORY tasks.firewall` does."""

__all__ = [
    "ALONE",
    "close_direct",
    "converge",
    "docker",
    "driver",
    "encodings",
    "endpoint",
    "firewall",
    "gateway",
    "hash_models",
    "image",
    "models",
    "options",
    "preflight",
    "refuse_alone",
    "registry",
    "release",
    "remove_left_behind",
    "retention",
    "site",
    "tear_down",
    "try_keys",
    "watch",
]
