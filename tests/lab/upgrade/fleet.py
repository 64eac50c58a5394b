"""An inventory for both versions: one host with one endpoint, one that is drained, one with two, and a pair."""

from pathlib import Path

import yaml

from rackwright.inventory import build, site_root
from rackwright.settings.sections import Hardware
from rackwright_lab.inventory import hosts

of_the_lab = yaml.safe_load((site_root(Path(__file__)) / "group_vars" / "lab.yml").read_text())
half = {"tensor_parallel_size": 4, "moe_expert_parallel_size": 4}
two = {
    "a": {"port": 8000, "gpus": [0, 1, 2, 3], "engine": half},
    "b": {"port": 8001, "gpus": [4, 5, 6, 7], "engine": half},
}
# Of the eight GPUs that each host poses with, a pair takes all.
together = {"hosts": 2, "network": "host", "engine": {"tensor-parallel-size": 16}, "hardware": Hardware().model_dump()}
plain, drained, (name, data), *pair = hosts()
groups = {
    "lab": [plain, drained, (name, {**data, "endpoints": two})],
    "rtx_pro_6000_vllm": [(name, {**of_the_lab, **data, **together}) for name, data in pair],
}
globals().update(build(__file__, groups, children={"b200": ["lab"]}))
