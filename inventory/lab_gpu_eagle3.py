"""The hosts of a lab with this machine's own GPUs: a real vLLM that drafts by a real EAGLE3 head, on the first GPU.

`rackwright lab up --gpus host --engine vllm`
"""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts
from rackwright_lab.real.gpu_settings import EAGLE3

globals().update(build(__file__, {"lab": [(name, {**data, **EAGLE3}) for name, data in hosts()]}))
