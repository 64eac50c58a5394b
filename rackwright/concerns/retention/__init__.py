"""Prune Rackwright's images and models that no retained release needs; those of others stay (DECISIONS 21).

Nothing is pruned before every endpoint's wanted release is on the host, so that a rollback never needs a download.
"""

from rackwright.concerns.retention.concern import (
    RETENTION,
    KeptRelease,
    SeenRetention,
    listed,
    parse,
    remove_image,
    remove_model,
    spare_image,
    spare_model,
)

__all__ = [
    "RETENTION",
    "KeptRelease",
    "SeenRetention",
    "listed",
    "parse",
    "remove_image",
    "remove_model",
    "spare_image",
    "spare_model",
]
