"""The hosts of a lab with a real vLLM as one endpoint: tensor parallel over both, with a test's settings over it."""

import json
import os

from rackwright.inventory import build
from rackwright_lab.inventory import endpoint, hosts

given = json.loads(os.environ.get("GROUP_SETTINGS", "{}"))
real = endpoint()
engine = {**real["engine"], "tensor-parallel-size": 2, **given.pop("engine", {})}
host_values = {**real, "hosts": 2, "network": "host", "engine": engine, **given}
globals().update(build(__file__, {"lab": [(name, {**data, **host_values}) for name, data in hosts()]}))
