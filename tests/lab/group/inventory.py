"""The lab's hosts as one endpoint, a stand-in over all of them; lab and test add settings to those of its profile."""

import json
import os
from pathlib import Path

import yaml

from rackwright.inventory import build, site_root
from rackwright.settings.sections import Hardware
from rackwright_lab.inventory import hosts

of_the_lab = yaml.safe_load((site_root(Path(__file__)) / "group_vars" / "lab.yml").read_text())
# Of the eight GPUs that each host poses with, it takes all.
together = {"hosts": 2, "network": "host", "engine": {"tensor-parallel-size": 16}, "hardware": Hardware().model_dump()}
of_the_test = json.loads(os.environ.get("GROUP_SETTINGS", "{}"))
profile = of_the_test.pop("profile", "rtx_pro_6000_vllm")
order = -1 if of_the_test.pop("turned", False) else 1
host_values = {key: value for key, value in {**of_the_lab, **together, **of_the_test}.items() if value is not None}
globals().update(build(__file__, {profile: [(name, {**data, **host_values}) for name, data in hosts()[::order]]}))
