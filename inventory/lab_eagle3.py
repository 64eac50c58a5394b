"""The hosts of a lab with a real vLLM that drafts: its CPU build, its small model, and an EAGLE3 draft for that.

`rackwright lab up --engine vllm --engine-version 0.32.0`
"""

from rackwright.inventory import build
from rackwright_lab.inventory import endpoint, hosts
from rackwright_lab.real.builds import EAGLE3, EAGLE3_DRAFT

served = endpoint()
drafting = {**served, "draft": EAGLE3_DRAFT, "engine": {**served["engine"], **EAGLE3}, "gate": {"level": "full"}}
globals().update(build(__file__, {"lab": [(name, {**data, **drafting}) for name, data in hosts()]}))
