"""The hosts of a lab with this machine's own GPUs: a real SGLang on the first.

`rackwright lab up --gpus host --engine sglang`
"""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts
from rackwright_lab.real.sglang import SETTINGS

globals().update(build(__file__, {"lab": [(name, {**data, **SETTINGS}) for name, data in hosts()]}))
