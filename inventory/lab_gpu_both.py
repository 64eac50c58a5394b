"""The hosts of a lab with two GPUs each: a real vLLM over both, tensor parallel, with a real EAGLE3 head.

`rackwright lab up --gpus host --hosts 1 --bare 1 --engine vllm`, on a machine with two GPUs
"""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts
from rackwright_lab.real.gpu_settings import both_gpus

globals().update(build(__file__, {"lab": [(name, {**data, **both_gpus()}) for name, data in hosts()]}))
