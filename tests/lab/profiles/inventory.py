"""Lab hosts under a shipped profile, with the lab's own settings and a test's over it."""

import json
import os
from itertools import pairwise
from pathlib import Path

import yaml

from rackwright.inventory import GroupEntry, build, site_root
from rackwright.settings.sections import Hardware
from rackwright_lab.inventory import hosts

root = site_root(Path(__file__))
profiles = yaml.safe_load((root / "rackwright" / "data" / "profiles.yaml").read_text()).values()
below = {above: set[str]() for row in profiles for above in row["files"][:-1]}
for row in profiles:
    for above, child in pairwise(row["files"]):
        below[above].add(child)
children = {above: sorted(found) for above, found in below.items()}

chosen, profile = os.environ["PROFILES_HOST"], os.environ["PROFILES_PROFILE"]
of_the_lab = yaml.safe_load((root / "group_vars" / "lab.yml").read_text())
# The machine is the lab's, whatever the profile was made for.
host_values = {**of_the_lab, "hardware": Hardware().model_dump(), **json.loads(os.environ["PROFILES_SETTINGS"])}
groups: dict[str, GroupEntry] = {child: [] for found in children.values() for child in found}
members = [(name, {**data, **host_values}) for name, data in hosts() if name in chosen.split(",")]
globals().update(build(__file__, {**groups, profile: members}, children))
