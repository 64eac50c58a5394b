"""The lab's hosts as one endpoint: a stand-in of vLLM over all of them, with the settings of lab and test over it."""

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
own = {**of_the_lab, **together, **json.loads(os.environ.get("GROUP_SETTINGS", "{}"))}
globals().update(build(__file__, {"rtx_pro_6000_vllm": [(name, {**data, **own}) for name, data in hosts()]}))
