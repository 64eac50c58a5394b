"""The hosts of a lab with a real vLLM as one endpoint: tensor parallel over both, with a test's settings over it."""

import json
import os

from rackwright.inventory import build
from rackwright_lab.inventory import endpoint, hosts

asked = json.loads(os.environ.get("GROUP_SETTINGS", "{}"))
real = endpoint()
engine = {**real["engine"], "tensor-parallel-size": 2, **asked.pop("engine", {})}
own = {**real, "hosts": 2, "network": "host", "engine": engine, **asked}
globals().update(build(__file__, {"lab": [(name, {**data, **own}) for name, data in hosts()]}))
