"""One lab host, or several, with the settings of a test over those of the lab."""

import json
import os
from typing import Any

from rackwright.inventory import build
from rackwright.settings.secret import Secret
from rackwright_lab.inventory import hosts


def _settings(values: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
    """Merge the test's keys over the lab's; one that is None is left out. A text for `registry_key` is a key."""
    merged = {**values, **test}
    if "registry_key" in merged:
        key = merged.pop("registry_key")
        merged["registry"] = {**dict(merged.get("registry") or {}), "key": Secret(key) if key else None}
    return {name: value for name, value in merged.items() if value is not None}


chosen = os.environ["STAGING_HOST"].split()
overrides = json.loads(os.environ["STAGING_SETTINGS"])
globals().update(
    build(__file__, {"staging": [(name, _settings(values, overrides)) for name, values in hosts() if name in chosen]})
)
