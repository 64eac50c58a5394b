"""The login at the image's registry, for root only, beside other registries' logins.

Docker's own `docker login` asks the registry each time, so an outage would fail a run that has nothing to pull.
The login is therefore merged into config.json here, and tried only in a pull (DECISIONS 17).
"""

from rackwright.concerns.registry.concern import (
    CONFIG,
    REGISTRY,
    SeenLogin,
    at_rest,
    auth_of,
    config_of,
    digest,
    parse,
    remove_script,
    try_key,
)

__all__ = [
    "CONFIG",
    "REGISTRY",
    "SeenLogin",
    "at_rest",
    "auth_of",
    "config_of",
    "digest",
    "parse",
    "remove_script",
    "try_key",
]
