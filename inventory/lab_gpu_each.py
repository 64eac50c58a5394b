"""The hosts of a lab with two GPUs each: two real vLLMs with a GPU each, one of which drafts by a real EAGLE3 head.

`rackwright lab up --gpus host --hosts 1 --bare 1 --engine vllm`, on a machine with two GPUs
"""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts
from rackwright_lab.real.gpu_settings import a_gpu_each

globals().update(build(__file__, {"lab": [(name, {**data, **a_gpu_each()}) for name, data in hosts()]}))
