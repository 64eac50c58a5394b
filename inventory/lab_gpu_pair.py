"""Each two hosts of a lab that share this machine's own GPUs serve one model together.

A real vLLM, drafting by a real EAGLE3 head: `rackwright lab up --gpus host --hosts 2 --bare 2 --engine vllm`
"""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts
from rackwright_lab.real.gpu_settings import shared

globals().update(build(__file__, {"lab": [(name, {**data, **shared(2)}) for name, data in hosts()]}))
