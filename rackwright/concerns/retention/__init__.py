"""Prune Rackwright's images and models that no retained release needs; those of others stay (DECISIONS 21).

Nothing is pruned before every endpoint's wanted release is on the host, so that a rollback never needs a download.
"""

from rackwright.concerns.retention.concern import (
    RETENTION,
    KeptRelease,
    SeenRetention,
    _spare_image,
    _spare_model,
    parse,
)

__all__ = [
    "RETENTION",
    "KeptRelease",
    "SeenRetention",
    "_spare_image",
    "_spare_model",
    "parse",
]
