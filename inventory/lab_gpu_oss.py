"""The hosts of a lab with this machine's own GPUs: a real vLLM with a small gpt-oss and an EAGLE3 head, on the first.

`rackwright lab up --gpus host --engine vllm --models "$(python3 -m rackwright_lab.real.gpt_oss)"`
"""

from rackwright.inventory import build
from rackwright_lab.inventory import hosts
from rackwright_lab.real.gpu_settings import GPT_OSS_EAGLE3

globals().update(build(__file__, {"lab": [(name, {**data, **GPT_OSS_EAGLE3}) for name, data in hosts()]}))
