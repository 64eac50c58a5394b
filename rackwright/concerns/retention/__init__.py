"""Images and models of ours that no kept release names are pruned; what is not ours stays (DECISIONS 21).

Nothing goes before every endpoint's wanted release lies on the host, so that rolling back never needs a download.
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
