"""Lab hosts under a shipped profile, with the lab's own settings and a test's over it."""

import json
import os
from pathlib import Path

import yaml

from rackwright.inventory import GroupEntry, build, site_root
from rackwright.settings.sections import Hardware
from rackwright_lab.inventory import hosts

CHILDREN = {
    "gb200": ["gb200_tray"],
    "dgx_spark": ["dgx_spark_eagle3", "dgx_spark_draft_target", "dgx_spark_newest"],
    "rtx_pro_6000": ["rtx_pro_6000_trtllm", "rtx_pro_6000_vllm", "rtx_pro_6000_sglang"],
    "rtx_pro_6000_vllm": ["rtx_pro_6000_vllm_eagle3"],
    "h200": ["h200_trtllm"],
}

chosen, profile = os.environ["PROFILES_HOST"], os.environ["PROFILES_PROFILE"]
of_the_lab = yaml.safe_load((site_root(Path(__file__)) / "group_vars" / "lab.yml").read_text())
# The machine is the lab's, whatever the profile was made for.
host_values = {**of_the_lab, "hardware": Hardware().model_dump(), **json.loads(os.environ["PROFILES_SETTINGS"])}
groups: dict[str, GroupEntry] = {child: [] for children in CHILDREN.values() for child in children}
members = [(name, {**data, **host_values}) for name, data in hosts() if name in chosen.split(",")]
globals().update(build(__file__, {**groups, profile: members}, CHILDREN))
