"""Hosts of the lab as they serve by deploy.py, with a closed network's settings over those of the lab."""

import json
import os
from pathlib import Path

import yaml

from rackwright.inventory import build, site_root
from rackwright.settings.secret import Secret
from rackwright_lab.inventory import hosts

chosen = os.environ["STAGING_HOST"].split()
of_the_test = json.loads(os.environ["STAGING_SETTINGS"])
key = of_the_test.pop("registry_key")
of_the_lab = yaml.safe_load((site_root(Path(__file__)) / "group_vars" / "lab.yml").read_text())


def settings(of_host: dict[str, object]) -> dict[str, object]:
    """Return a host's settings: the test's over the host's over the lab's."""
    return {**of_the_lab, **of_host, "registry": {"key": Secret(key)}, **of_the_test}


globals().update(build(__file__, {"b200": [(name, settings(values)) for name, values in hosts() if name in chosen]}))
